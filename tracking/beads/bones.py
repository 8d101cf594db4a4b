"""Bones as rigid bodies of beads: which beads share a bone, its pose per frame, what a missing bead must be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from calibration.foundation.arrays import Bools, Floats
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import RigidTransform, fit_rigid, fit_similarity

__all__ = ["Bone", "PairDistance", "carry_surface", "fit_bone", "group_beads", "pair_distances"]


@dataclass(frozen=True)
class PairDistance:
    """Distance of two beads over a clip: constant if both sit in one bone, so its spread measures the precision.

    Attributes:
        first, second: bead names.
        mean_mm, sd_mm: over the frames that have both.
        frames: how many those are.
    """

    first: str
    second: str
    mean_mm: float
    sd_mm: float
    frames: int


@dataclass(frozen=True, eq=False)
class Bone:
    """A rigid body of beads.

    Attributes:
        name: for people.
        beads: the beads' numbers.
        shape: (n, 3) beads in the bone's own frame (origin at their middle, axes of the world at the first frame).
        pose: world from bone, leading axis T; NaN where fewer than three beads fix it.
        residual_mm: (T, n) distance of each bead from where the bone puts it; NaN where not seen.
        used: (T, n) beads the pose rests on: seen, and not contradicting the others.
        scale: (T,) size of the bead set over that of the shape: 1 for a rigid bone and a right calibration.
    """

    name: str
    beads: tuple[int, ...]
    shape: Floats
    pose: RigidTransform
    residual_mm: Floats
    used: Bools
    scale: Floats

    def predicted(self) -> Floats:
        """Return (T, n, 3) where the bone puts its beads; NaN where its pose is unknown."""
        moved = np.einsum("tij,nj->tni", self.pose.rotation, self.shape) + self.pose.translation[:, None]
        return np.asarray(moved)


def pair_distances(positions: Floats, names: Sequence[str], beads: Sequence[int]) -> list[PairDistance]:
    """Return the distance of each two of the given beads over (T, B, 3) positions."""
    rows: list[PairDistance] = []
    for a, b in combinations(beads, 2):
        distance = np.linalg.norm(positions[:, a] - positions[:, b], axis=1)
        seen = distance[np.isfinite(distance)]
        if len(seen) >= 2:
            rows.append(PairDistance(names[a], names[b], float(seen.mean()), float(seen.std(ddof=1)), len(seen)))
    return rows


def group_beads(positions: Floats, *, tolerance_mm: float, min_frames: int = 5) -> list[tuple[int, ...]]:
    """Group beads that keep their distances: each group moves as one bone as far as this clip shows.

    Two beads belong together if the robust spread of their distance is below ``tolerance_mm``; a group holds only
    beads that belong together pairwise (complete linkage). Two bones that do not move against each other in the
    clip come out as one.
    """
    count = positions.shape[1]
    if count < 2:
        return [(k,) for k in range(count)]
    spread = np.zeros((count, count))
    for a, b in combinations(range(count), 2):
        distance = np.linalg.norm(positions[:, a] - positions[:, b], axis=1)
        seen = distance[np.isfinite(distance)]
        # A quarter of the range from the 2nd to the 98th percentile: a bone that moved but once must count.
        enough = len(seen) >= min_frames
        value = 0.25 * float(np.percentile(seen, 98) - np.percentile(seen, 2)) if enough else 1e6
        spread[a, b] = spread[b, a] = value
    labels = fcluster(linkage(squareform(spread), method="complete"), tolerance_mm, criterion="distance")
    groups = [tuple(int(k) for k in np.flatnonzero(labels == label)) for label in np.unique(labels)]
    return sorted(groups, key=lambda group: group[0])


def fit_bone(
    positions: Floats,
    beads: Sequence[int],
    *,
    name: str = "bone",
    tolerance_mm: float = 0.3,
    shape: Floats | None = None,
) -> Bone:
    """Fit a rigid body to (T, B, 3) positions of its beads; missing and wrong beads are left out.

    Args:
        beads: three or more bead numbers.
        tolerance_mm: a bead farther than this from where the others put it does not count in that frame.
        shape: (n, 3) beads of the bone, if known (from CT); the mean shape of the clip otherwise.
    """
    index = np.asarray(beads, dtype=np.int64)
    if len(index) < 3:
        raise InputError(f"bone '{name}': a pose needs three or more beads, got {len(index)}")
    seen = positions[:, index]
    frames = len(seen)
    mean = _mean_shape(seen, name) if shape is None else np.asarray(shape, dtype=np.float64)
    mean = mean - mean.mean(axis=0)
    if np.linalg.svd(mean, compute_uv=False)[1] < 1e-3 * np.linalg.norm(mean):
        raise InputError(f"bone '{name}': its beads lie on a line, which leaves a turn about it open")
    rotation = np.full((frames, 3, 3), np.nan)
    translation = np.full((frames, 3), np.nan)
    used = np.zeros(seen.shape[:2], dtype=bool)
    scale = np.full(frames, np.nan)
    for t in range(frames):
        good = np.isfinite(seen[t]).all(axis=1)
        fitted = _robust_pose(mean, seen[t], good, tolerance_mm)
        if fitted is None:
            continue
        pose, good = fitted
        rotation[t], translation[t], used[t] = pose.rotation, pose.translation, good
        scale[t] = fit_similarity(mean[good], seen[t, good]).scale
    moved = np.einsum("tij,nj->tni", rotation, mean) + translation[:, None]
    residual = np.linalg.norm(seen - moved, axis=2)
    return Bone(name, tuple(int(b) for b in index), mean, RigidTransform(rotation, translation), residual, used, scale)


def _robust_pose(shape: Floats, seen: Floats, good: Bools, tolerance_mm: float) -> tuple[RigidTransform, Bools] | None:
    """Return the pose over the beads that agree with each other, or None where fewer than three do."""
    if good.sum() < 3 or _collinear(shape[good]):
        return None
    pose = fit_rigid(shape[good], seen[good])
    error = np.linalg.norm(pose.apply(shape) - seen, axis=1)
    if np.nanmax(np.where(good, error, np.nan)) <= tolerance_mm:
        return pose, good
    # One wrong bead bends the fit of all: take the three beads that most others agree with.
    best: tuple[int, float, Bools] | None = None
    for trio in combinations(np.flatnonzero(good), 3):
        pick = np.array(trio)
        if _collinear(shape[pick]):
            continue
        trial = fit_rigid(shape[pick], seen[pick])
        error = np.linalg.norm(trial.apply(shape) - seen, axis=1)
        with np.errstate(invalid="ignore"):
            agree = good & (error <= tolerance_mm)
        key = (int(agree.sum()), -float(error[agree].sum()) if agree.any() else -np.inf)
        if agree.sum() >= 3 and (best is None or key > best[:2]):
            best = (*key, agree)
    # With four beads or more a majority must agree; three that disagree tell nothing.
    if best is None or best[0] < max(3, int(good.sum()) // 2 + 1) or _collinear(shape[best[2]]):
        return None
    return fit_rigid(shape[best[2]], seen[best[2]]), best[2]


def _collinear(points: Floats) -> bool:
    values = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    return bool(values[1] < 0.05 * max(values[0], 1e-12))


def _mean_shape(seen: Floats, name: str) -> Floats:
    """Return the (n, 3) mean shape of beads over frames, each aligned to it (generalised Procrustes)."""
    complete = np.isfinite(seen).all(axis=(1, 2))
    if not complete.any():
        # No frame shows all: distances alone still fix the shape.
        return _shape_from_distances(seen, name)
    mean = np.median(_aligned(seen[complete], seen[np.flatnonzero(complete)[0]]), axis=0)
    for _ in range(3):
        mean = np.median(_aligned(seen[complete], mean), axis=0)
    return np.asarray(mean)


def _aligned(seen: Floats, target: Floats) -> Floats:
    return np.stack([fit_rigid(frame, target).apply(frame) for frame in seen])


def _shape_from_distances(seen: Floats, name: str) -> Floats:
    """Return a shape with the median distances, by classical scaling, mirrored as the frames show it."""
    count = seen.shape[1]
    distance = np.zeros((count, count))
    for a, b in combinations(range(count), 2):
        length = np.linalg.norm(seen[:, a] - seen[:, b], axis=1)
        if not np.isfinite(length).any():
            raise InputError(f"bone '{name}': two of its beads are never seen in the same frame")
        distance[a, b] = distance[b, a] = np.nanmedian(length)
    centring = np.eye(count) - 1.0 / count
    values, vectors = np.linalg.eigh(-0.5 * centring @ distance**2 @ centring)
    shape = vectors[:, -3:] * np.sqrt(np.maximum(values[-3:], 0.0))
    errors = []
    for candidate in (shape, shape * np.array([1.0, 1.0, -1.0])):
        total = 0.0
        for frame in seen:
            good = np.isfinite(frame).all(axis=1)
            if good.sum() >= 4:
                fit = fit_rigid(candidate[good], frame[good])
                total += float(np.sum((fit.apply(candidate[good]) - frame[good]) ** 2))
        errors.append(total)
    return np.asarray(shape if errors[0] <= errors[1] else shape * np.array([1.0, 1.0, -1.0]))


def carry_surface(bone: Bone, vertices: Floats, frame: int, *, at_frame: int = 0) -> Floats:
    """Return a bone surface (v, 3), given in the world at ``at_frame``, where the bone is at ``frame``; NaN if lost."""
    start = RigidTransform(bone.pose.rotation[at_frame], bone.pose.translation[at_frame])
    now = RigidTransform(bone.pose.rotation[frame], bone.pose.translation[frame])
    return (now @ start.inverse()).apply(vertices)
