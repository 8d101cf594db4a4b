"""Calibration without a board: a wand of known length, matched points, or points tracked in the recording itself."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import cv2
import numpy as np

from calibration.bundle.adjustment import Bundle, BundleSolution, adjust
from calibration.bundle.equations import SHIFT
from calibration.bundle.parameters import Freedom
from calibration.cameras.camera import LensCamera
from calibration.cameras.camera_row import ROTATION, TRANSLATION
from calibration.cameras.lens import FisheyeLens, Lens
from calibration.cameras.projection import undistort_pixels
from calibration.cameras.rig import Rig
from calibration.cameras.triangulation import triangulate
from calibration.foundation.arrays import Floats, Ints, measured
from calibration.foundation.damaged_files import guarded
from calibration.foundation.errors import InputError, SolveError
from calibration.foundation.files import read_text
from calibration.geometry.transforms import RigidTransform, fit_similarity
from calibration.solving.planar_pose import camera_from_row

__all__ = ["Marks", "MarksSolution", "load_marks", "refine_rig", "solve_marks"]

LEAST_PAIRS = 12  # matched points that two cameras must share
POSES_ONLY = Freedom(0, False, "none")


@dataclass(frozen=True, eq=False)
class Marks:
    """Marks followed in the images of several cameras.

    Attributes:
        cameras: names.
        frames: (t,) frame numbers.
        pixels: (c, t, k, 2) k marks per frame, px; NaN where not seen.
    """

    cameras: tuple[str, ...]
    frames: Ints
    pixels: Floats


@dataclass(frozen=True, eq=False)
class MarksSolution:
    """A rig solved from marks: the rig in its first camera's frame, the bundle, and each frame's wand length error.

    Attributes:
        rig: cameras, mm.
        bundle: the solution with covariance.
        length_mm: (t,) triangulated wand length minus its true one, mm; empty without a wand.
    """

    rig: Rig
    bundle: BundleSolution
    length_mm: Floats


@guarded("a table of marks")
def load_marks(path: Path | str) -> Marks:
    """Read a table with the columns frame, camera, mark, x, y (CSV); missing rows are marks not seen."""
    reader = csv.DictReader(io.StringIO(read_text(path), newline=None))
    wanted = ("frame", "camera", "mark", "x", "y")
    missing = [name for name in wanted if name not in (reader.fieldnames or ())]
    if missing:
        raise InputError(f"{path}: column {', '.join(missing)} missing; wanted {', '.join(wanted)}")
    rows = []
    for line, row in enumerate(reader, 2):
        try:
            rows.append((int(row["frame"]), row["camera"], row["mark"], float(row["x"]), float(row["y"])))
        except (TypeError, ValueError):
            raise InputError(f"{path}: line {line}: frame, x and y must be numbers") from None
    cameras = tuple(dict.fromkeys(r[1] for r in rows))
    names = tuple(dict.fromkeys(r[2] for r in rows))
    frames = np.unique([r[0] for r in rows])
    pixels = np.full((len(cameras), len(frames), len(names), 2), np.nan)
    for frame, camera, mark, x, y in rows:
        pixels[cameras.index(camera), np.searchsorted(frames, frame), names.index(mark)] = x, y
    return Marks(cameras, frames.astype(np.int64), measured(pixels, f"{path}: pixels"))


def solve_marks(
    marks: Marks,
    lenses: Sequence[Lens],
    *,
    along_mm: Sequence[float] | None = None,
    baseline_mm: float | None = None,
    freedom: Freedom = POSES_ONLY,
) -> MarksSolution:
    """Solve the poses of cameras with known lenses from marks seen in common.

    ``along_mm`` gives the places of the k marks along a straight wand; it fixes the scale and is held exactly.
    Without a wand every mark is a point of its own and ``baseline_mm``, the distance between the first two
    cameras, sets the scale. ``freedom`` may free lens parameters too (a wand only).
    """
    c, t, k, _ = marks.pixels.shape
    if along_mm is None and baseline_mm is None:
        raise InputError("matched points have no scale: give the wand's length, or the distance of two cameras")
    if along_mm is not None and (len(along_mm) != k or k < 2 or len(set(along_mm)) < k):
        raise InputError(f"the wand has {k} marks: along_mm must be {k} different places, got {len(along_mm)}")
    rows = np.stack([lens.packed() for lens in lenses])
    flat = marks.pixels.reshape(c, t * k, 2)
    ideal = np.stack([undistort_pixels(rows[i], np.ascontiguousarray(flat[i])) for i in range(c)])
    poses = _chain(marks.cameras, ideal)
    rig = _rig(rows, poses, marks.cameras, lenses)
    points = triangulate(rig, flat, robust=False).points.reshape(t, k, 3)
    if along_mm is not None:
        true = abs(along_mm[-1] - along_mm[0])
        scale = true / float(np.nanmedian(np.linalg.norm(points[:, -1] - points[:, 0], axis=1)))
    else:
        assert baseline_mm is not None
        scale = baseline_mm / float(np.linalg.norm(rig[1].centre - rig[0].centre))
    poses = [RigidTransform(p.rotation, p.translation * scale) for p in poses]
    points = points * scale
    for i, pose in enumerate(poses):
        rows[i, ROTATION], rows[i, TRANSLATION] = pose.rotation.ravel(), pose.translation
    freedoms = (freedom,) * c
    if along_mm is not None:
        bundle = _wand_bundle(rows, marks, points, np.asarray(along_mm, np.float64))
        solution = adjust(bundle, freedoms, least_points=4)
    else:
        bundle = _point_bundle(rows, flat, points.reshape(-1, 3))
        solution = adjust(bundle, freedoms, least_points=2, held=(_longest(rows),))
    rig = _rig_of(solution.bundle.rows, marks.cameras, lenses)
    lengths = np.empty(0)
    if along_mm is not None:
        again = triangulate(rig, flat, robust=False).points.reshape(t, k, 3)
        lengths = np.linalg.norm(again[:, -1] - again[:, 0], axis=1) - abs(along_mm[-1] - along_mm[0])
    return MarksSolution(rig, solution, lengths)


def refine_rig(rig: Rig, pixels: Floats, *, freedom: Freedom = POSES_ONLY) -> MarksSolution:
    """Refine a rig with points (c, n, 2) tracked in a recording; frame and scale stay as they are.

    The poses (and what ``freedom`` says of the lenses) move; the result is brought back to the old camera
    centres by a similarity, since points without a known length say nothing of frame and scale.
    """
    cameras = [camera for camera in rig if isinstance(camera, LensCamera)]
    if len(cameras) < len(rig):
        raise InputError("refinement needs cameras with a lens and a pose; one is known only by its matrix")
    points = triangulate(rig, pixels).points
    bundle = _point_bundle(rig.packed(), np.asarray(pixels, np.float64), points)
    solution = adjust(bundle, (freedom,) * len(rig), least_points=2, held=(_longest(rig.packed()),))
    moved = _rig_of(solution.bundle.rows, rig.names, [camera.lens for camera in cameras])
    old, new = (np.stack([camera.centre for camera in r]) for r in (rig, moved))
    spread = np.linalg.svd(old - old.mean(0), compute_uv=False)
    if len(rig) >= 3 and spread[1] > 1e-3 * spread[0]:
        back = fit_similarity(new, old)
        fixed = []
        for camera in moved:
            assert isinstance(camera, LensCamera)
            rotation = camera.camera_from_world.rotation @ back.rotation.T
            centre = back.apply(camera.centre)
            fixed.append(
                LensCamera(camera.name, camera.lens, RigidTransform(rotation, -rotation @ centre), camera.kind)
            )
        moved = Rig(tuple(fixed))
    return MarksSolution(moved, solution, np.empty(0))


def _longest(rows: Floats) -> tuple[int, int]:
    """Return (camera, number) of the largest translation entry: holding it holds the scale."""
    far = np.abs(rows[1:, TRANSLATION])
    camera, axis = np.unravel_index(int(far.argmax()), far.shape)
    return int(camera) + 1, SHIFT + int(axis)


def _rig(rows: Floats, poses: Sequence[RigidTransform], names: Sequence[str], lenses: Sequence[Lens]) -> Rig:
    return Rig(tuple(LensCamera(n, lens, pose) for n, lens, pose in zip(names, lenses, poses, strict=True)))


def _rig_of(rows: Floats, names: Sequence[str], lenses: Sequence[Lens]) -> Rig:
    made = []
    for row, name, lens in zip(rows, names, lenses, strict=True):
        terms = 4 if isinstance(lens, FisheyeLens) else max(len(lens.distortion), 5)
        made.append(camera_from_row(row, lens.size, name, terms))
    return Rig(tuple(made))


def _chain(names: Sequence[str], ideal: Floats) -> list[RigidTransform]:
    """Return first poses (unit scale) of all cameras from ideal image points (c, n, 2).

    The pair with most common points and a wide angle starts (essential matrix); each further camera is placed
    by resection from the points triangulated so far, the best-seen first.
    """
    seen = np.asarray(np.isfinite(ideal).all(-1))
    count = len(names)
    shared = seen.astype(int) @ seen.T.astype(int)
    tries = sorted(((shared[a, b], a, b) for a, b in combinations(range(count), 2)), reverse=True)
    start = None
    for pairs, a, b in tries[:6]:
        if pairs < LEAST_PAIRS:
            break
        found = _essential(ideal[a], ideal[b], seen[a] & seen[b])
        if found is not None and (start is None or found[2] * np.sqrt(pairs) > start[0]):
            start = (found[2] * np.sqrt(pairs), a, b, found[0], found[1])
    if start is None:
        raise SolveError(f"no two cameras share {LEAST_PAIRS} marks that determine their relative pose")
    _, a, b, relative, points = start
    poses: dict[int, RigidTransform] = {a: RigidTransform.identity(), b: relative}
    while len(poses) < count:
        left = [(int((seen[c] & np.isfinite(points).all(1)).sum()), -c) for c in range(count) if c not in poses]
        most, minus = max(left)
        c = -minus
        if most < LEAST_PAIRS:
            raise SolveError(
                f"missing link: camera '{names[c]}' shares {most} marks with the others, {LEAST_PAIRS} needed"
            )
        use = seen[c] & np.isfinite(points).all(1)
        cv2.setRNGSeed(1)
        ok, turn, shift, _ = cv2.solvePnPRansac(
            points[use],
            ideal[c][use],
            np.eye(3),
            np.zeros(4),
            reprojectionError=0.02,
            iterationsCount=400,
            flags=cv2.SOLVEPNP_SQPNP,
        )
        if not ok:
            raise SolveError(f"camera '{names[c]}': its marks do not fit those of the other cameras")
        rotation, _ = cv2.Rodrigues(turn)
        poses[c] = RigidTransform(np.asarray(rotation, np.float64), np.asarray(shift, np.float64).reshape(3))
        points = _triangulate_ideal(poses, ideal, seen)
    base = poses[0].inverse()
    return [poses[c] @ base for c in range(count)]


def _essential(x: Floats, y: Floats, both: np.ndarray) -> tuple[RigidTransform, Floats, float] | None:
    """Return b_from_a (unit baseline), points (n, 3) and the median angle between rays, rad."""
    cv2.setRNGSeed(1)
    p, q = np.ascontiguousarray(x[both]), np.ascontiguousarray(y[both])
    matrix, mask = cv2.findEssentialMat(p, q, np.eye(3), method=cv2.RANSAC, prob=0.9999, threshold=0.005)
    if matrix is None or matrix.shape != (3, 3):
        return None
    good, rotation, shift, _ = cv2.recoverPose(matrix, p, q, np.eye(3), mask=mask.copy())
    if good < LEAST_PAIRS:
        return None
    pose = RigidTransform(np.asarray(rotation, np.float64), np.asarray(shift, np.float64).reshape(3))
    poses = {0: RigidTransform.identity(), 1: pose}
    points = _triangulate_ideal(poses, np.stack([x, y]), np.stack([both, both]))
    known = np.isfinite(points).all(1)
    away = points[known] - pose.inverse().translation
    cosine = (points[known] * away).sum(1) / (np.linalg.norm(points[known], axis=1) * np.linalg.norm(away, axis=1))
    return pose, points, float(np.median(np.arccos(np.clip(cosine, -1, 1))))


def _triangulate_ideal(poses: dict[int, RigidTransform], ideal: Floats, seen: np.ndarray) -> Floats:
    """Return the points (n, 3) nearest to the rays of the posed cameras, NaN below two views."""
    n = ideal.shape[1]
    a, b, views = np.zeros((n, 3, 3)), np.zeros((n, 3)), np.zeros(n)
    for c, pose in poses.items():
        rays = np.column_stack([np.nan_to_num(ideal[c]), np.ones(n)]) @ pose.rotation
        rays /= np.linalg.norm(rays, axis=1, keepdims=True)
        across = (np.eye(3) - rays[:, :, None] * rays[:, None, :]) * seen[c][:, None, None]
        a += across
        b += across @ pose.inverse().translation
        views += seen[c]
    out = np.full((n, 3), np.nan)
    good = (views >= 2) & (np.abs(np.linalg.det(a)) > 1e-9)
    out[good] = np.linalg.solve(a[good], b[good][..., None])[..., 0]
    return out


def _wand_bundle(rows: Floats, marks: Marks, points: Floats, along: Floats) -> Bundle:
    """One target per frame: the wand along its own x axis, not free to spin about it."""
    k = marks.pixels.shape[2]
    whole = np.isfinite(points).all((1, 2))
    whole &= np.isfinite(marks.pixels[..., 0]).sum((0, 2)) >= 4
    chosen = np.flatnonzero(whole)
    if len(chosen) < 5:
        raise SolveError(f"{len(chosen)} frames show the whole wand to two cameras; at least 5 are needed, 50 are good")
    x = points[chosen, -1] - points[chosen, 0]
    x *= np.sign(along[-1] - along[0])
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    other = np.where(np.abs(x[:, :1]) < 0.8, [[1.0, 0, 0]], [[0.0, 1, 0]])
    z = np.cross(x, other)
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    rotations = np.stack([x, np.cross(z, x), z], axis=2)
    middle = along.mean()
    translations = points[chosen].mean(1) - middle * x
    model = np.column_stack([along, np.zeros((k, 2))])
    camera, target, mark = np.nonzero(np.isfinite(marks.pixels[..., 0][:, chosen]))
    order = np.lexsort((mark, camera, target))
    camera, target, mark = camera[order], target[order], mark[order]
    freedom = np.ones((len(chosen), 6))
    freedom[:, 0] = 0.0
    return Bundle(
        rows, rotations, translations, model, camera, target, mark, marks.pixels[camera, chosen[target], mark],
        target_freedom=freedom,
    )  # fmt: skip


def _point_bundle(rows: Floats, pixels: Floats, points: Floats) -> Bundle:
    """One target per point: a lone corner at its own origin, free to move but not to turn."""
    known = np.flatnonzero(np.isfinite(points).all(1) & (np.isfinite(pixels[..., 0]).sum(0) >= 2))
    if len(known) < LEAST_PAIRS:
        raise SolveError(f"{len(known)} points are seen by two cameras or more; at least {LEAST_PAIRS} are needed")
    camera, target = np.nonzero(np.isfinite(pixels[:, known, 0]))
    order = np.lexsort((camera, target))
    camera, target = camera[order], target[order]
    freedom = np.zeros((len(known), 6))
    freedom[:, 3:] = 1.0
    return Bundle(
        rows,
        np.tile(np.eye(3), (len(known), 1, 1)),
        points[known].copy(),
        np.zeros((1, 3)),
        camera,
        target,
        np.zeros(len(camera), np.int64),
        pixels[camera, known[target]],
        target_freedom=freedom,
    )
