"""How good a rig is, measured on what it was not fitted to: pixels, millimetres, repeatability, coverage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.boards.sightings import Sightings
from calibration.bundle.adjustment import OUTLIER_SIGMAS, BundleSolution, adjust, robust_sigma
from calibration.bundle.parameters import LensPrior
from calibration.cameras.camera import LensCamera
from calibration.cameras.camera_row import ROTATION, TRANSLATION
from calibration.cameras.rig import Rig
from calibration.cameras.triangulation import triangulate
from calibration.foundation.arrays import Bools, Floats, Ints
from calibration.foundation.errors import SolveError
from calibration.solving.intrinsics import fit_lens
from calibration.solving.planar_pose import lens_row
from calibration.solving.rig_solver import (
    RigSolution,
    SolveOptions,
    frames_seen_together,
    single_camera_priors,
    solve_rig,
)

__all__ = [
    "Coverage",
    "HeldOut",
    "Repeatability",
    "coverage",
    "held_out",
    "held_out_frames",
    "measure",
    "repeatability",
]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Errors of corners triangulated in frames that did not take part in the solution.

    Attributes:
        frames: frames scored.
        corners: corners triangulated (seen by two cameras or more).
        rms_px: reprojection, 2D distance, px.
        camera_rms_px: (c,) the same per camera, NaN where it has none.
        left_out: share of sightings beyond the outlier rule, not in the RMS.
        raw_rms_px: RMS with those.
        square_mm: RMS error of the distance between neighbouring corners, mm.
        square_bias_mm: its mean: a wrong scale shows here.
        long_mm: RMS error of each view's longest corner distance, mm.
        positions: (v, 3) board centres in the rig's frame, mm.
        position_mm: (v,) RMS distance error of each board there, mm.
    """

    frames: int
    corners: int
    rms_px: float
    camera_rms_px: Floats
    left_out: float
    raw_rms_px: float
    square_mm: float
    square_bias_mm: float
    long_mm: float
    positions: Floats
    position_mm: Floats


def held_out_frames(sightings: Sightings, every: int = 5) -> Ints:
    """Return every fifth frame that two cameras shared: the ones to hold out."""
    shared = frames_seen_together(sightings)
    return shared[every // 2 :: every]


def corner_pixels(sightings: Sightings) -> tuple[Floats, Ints, Ints]:
    """Return pixels (c, m, 2) of the m distinct (target, corner) seen by two cameras or more, their targets, points."""
    targets = sightings.targets()
    _, index = sightings.model_points()
    key = targets.of_row * (int(index.max(initial=0)) + 1) + index
    unique, first, which = np.unique(key, return_index=True, return_inverse=True)
    pixels = np.full((len(sightings.cameras), len(unique), 2), np.nan)
    pixels[sightings.camera, which.ravel()] = sightings.pixels
    enough = np.isfinite(pixels[..., 0]).sum(0) >= 2
    return pixels[:, enough], targets.of_row[first][enough], index[first][enough]


def measure(rig: Rig, sightings: Sightings) -> HeldOut:
    """Score a rig on sightings: triangulate each corner from all its views and compare with board and pixels."""
    pixels, target, point = corner_pixels(sightings)
    if pixels.shape[1] == 0:
        raise SolveError("no corner of the held-out frames is seen by two cameras")
    points = triangulate(rig, pixels, robust=False).points
    error = np.linalg.norm(rig.project(points) - pixels, axis=-1)
    good = np.isfinite(error)
    keep = np.zeros_like(good)
    for c in range(len(rig)):
        if good[c].any():
            keep[c] = good[c] & (error[c] <= OUTLIER_SIGMAS * robust_sigma(error[c][good[c]]))
    trusted = ~(good & ~keep).any(0) & np.isfinite(points).all(1)
    camera_rms = np.array(
        [np.sqrt((error[c][keep[c]] ** 2).mean()) if keep[c].any() else np.nan for c in range(len(rig))]
    )
    squares, longs, centres, per_view = _distances(sightings, points[trusted], target[trusted], point[trusted])
    return HeldOut(
        frames=len(np.unique(sightings.targets().frame[target])),
        corners=int(points.shape[0]),
        rms_px=float(np.sqrt((error[keep] ** 2).mean())),
        camera_rms_px=camera_rms,
        left_out=float(1 - keep.sum() / max(good.sum(), 1)),
        raw_rms_px=float(np.sqrt((error[good] ** 2).mean())),
        square_mm=float(np.sqrt((squares**2).mean())) if len(squares) else float("nan"),
        square_bias_mm=float(squares.mean()) if len(squares) else float("nan"),
        long_mm=float(np.sqrt((longs**2).mean())) if len(longs) else float("nan"),
        positions=centres,
        position_mm=per_view,
    )


def _distances(
    sightings: Sightings, points: Floats, target: Ints, point: Ints
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return errors of neighbour distances and of longest distances, board centres, RMS error per board."""
    model, _ = sightings.model_points()
    starts = np.cumsum([0] + [b.corners for b in sightings.boards])
    pairs = np.concatenate(
        [b.neighbours() + s for b, s in zip(sightings.boards, starts, strict=False)] or [np.empty((0, 2), int)]
    )
    squares, longs, centres, per_view = [], [], [], []
    for t in np.unique(target):
        mine = target == t
        place = np.full((len(model), 3), np.nan)
        place[point[mine]] = points[mine]
        a, b = pairs[:, 0], pairs[:, 1]
        off = np.linalg.norm(place[a] - place[b], axis=1) - np.linalg.norm(model[a] - model[b], axis=1)
        off = off[np.isfinite(off)]
        squares.append(off)
        if len(off):
            centres.append(points[mine].mean(0))
            per_view.append(np.sqrt((off**2).mean()))
        ids = point[mine]
        far = np.linalg.norm(model[ids][:, None] - model[ids][None], axis=-1)
        i, j = np.unravel_index(int(far.argmax()), far.shape)
        if far[i, j] > 0:
            longs.append(float(np.linalg.norm(place[ids[i]] - place[ids[j]]) - far[i, j]))
    return (
        np.concatenate([np.empty(0), *squares]),
        np.array(longs),
        np.array(centres).reshape(-1, 3),
        np.array(per_view),
    )


def held_out(sightings: Sightings, options: SolveOptions) -> HeldOut | None:
    """Solve without every fifth shared frame and score those; None where too few frames are left to do that."""
    out = held_out_frames(sightings)
    if len(out) < 2:
        return None
    inside = np.isin(sightings.frame, out)
    try:
        trained = solve_rig(sightings.where(~inside), options)
    except SolveError:
        return None
    return measure(trained.rig, sightings.where(inside).at_common_time(trained.bundle.bundle.offsets))


@dataclass(frozen=True, eq=False)
class Repeatability:
    """Spread of the solution over random halves of the frames, which equals that of the whole solution.

    Attributes:
        samples: halves solved.
        centre_mm: (c,) standard deviation (3D) of each camera's centre relative to the first camera, mm.
        turn_deg: (c,) of its orientation, degrees.
        focal_px: (c,) of its mean focal length, px.
    """

    samples: int
    centre_mm: Floats
    turn_deg: Floats
    focal_px: Floats


def repeatability(solution: RigSolution, rng: np.random.Generator, samples: int = 10) -> Repeatability | None:
    """Solve random halves of the frames again, starting from the solution; None where halves do not connect.

    Half-sampling (delete-d jackknife with d = n/2): the spread of the halves about the whole estimates the
    standard deviation of the whole, without assuming that corner errors are independent.
    """
    frames = np.unique(solution.sightings.frame)
    bundle, inlier = solution.bundle.bundle, solution.bundle.inlier
    whole = bundle.rows
    centres, turns, focals = [], [], []
    for _ in range(samples):
        half = rng.choice(frames, size=(len(frames) + 1) // 2, replace=False)
        mask = np.isin(solution.sightings.frame, half) & inlier
        if len(np.unique(bundle.camera[mask])) < len(whole):
            continue
        try:
            priors = () if solution.in_step else _own_views(solution, mask)
            again = adjust(bundle.only(mask), solution.freedoms, priors=priors, rounds=1).bundle.rows
        except SolveError:
            continue
        centres.append(_centres(again) - _centres(whole))
        a, b = again[:, 20:29].reshape(-1, 3, 3), whole[:, 20:29].reshape(-1, 3, 3)
        cosine = (np.einsum("cij,cij->c", a, b) - 1) / 2
        turns.append(np.degrees(np.arccos(np.clip(cosine, -1, 1))))
        focals.append((again[:, 1:3] - whole[:, 1:3]).mean(1))
    if len(centres) < max(3, samples // 2):
        return None
    return Repeatability(
        len(centres),
        np.sqrt((np.array(centres) ** 2).sum(2).mean(0)),
        np.sqrt((np.array(turns) ** 2).mean(0)),
        np.sqrt((np.array(focals) ** 2).mean(0)),
    )


def _own_views(solution: RigSolution, mask: Bools) -> tuple[LensPrior, ...]:
    """Return what the chosen views of each camera alone say of its lens, as the whole solution took it from all."""
    singles: list[BundleSolution | None] = []
    for c, freedom in enumerate(solution.freedoms):
        mine = solution.sightings.where(mask & (solution.sightings.camera == c)).of_camera(c)
        row = lens_row(solution.bundle.bundle.rows[c])
        singles.append(fit_lens(mine, freedom, start=row).solution if freedom.lens_parameters else None)
    return single_camera_priors(solution.bundle.sigma_px, tuple(singles))


def _centres(rows: Floats) -> Floats:
    return np.asarray(-np.einsum("cji,cj->ci", rows[:, ROTATION].reshape(-1, 3, 3), rows[:, TRANSLATION]))


@dataclass(frozen=True, eq=False)
class Coverage:
    """Where in one image corners were seen, on a grid of cells.

    Attributes:
        count: (rows, columns) corners per cell.
        residual_px: (rows, columns) RMS distance of the inliers, NaN where there is none.
        share: share of the cells with at least one corner.
    """

    count: Ints
    residual_px: Floats
    share: float


def coverage(solution: RigSolution, camera: int, cells: tuple[int, int] = (10, 8)) -> Coverage:
    """Return the coverage of one camera's image and its residuals there."""
    width, height = solution.sightings.sizes[camera]
    mine: Bools = solution.bundle.bundle.camera == camera
    pixels = solution.sightings.pixels[mine]
    x = np.clip((pixels[:, 0] / width * cells[0]).astype(int), 0, cells[0] - 1)
    y = np.clip((pixels[:, 1] / height * cells[1]).astype(int), 0, cells[1] - 1)
    square = (solution.bundle.bundle.residuals()[mine] ** 2).sum(1)
    good = solution.bundle.inlier[mine]
    count, total, used = (np.zeros((cells[1], cells[0])) for _ in range(3))
    np.add.at(count, (y, x), 1)
    np.add.at(total, (y[good], x[good]), square[good])
    np.add.at(used, (y[good], x[good]), 1)
    residual = np.where(used > 0, np.sqrt(total / np.maximum(used, 1)), np.nan)
    return Coverage(count.astype(np.int64), residual, float((count > 0).mean()))


def rig_size_mm(rig: Rig) -> float:
    """Return the largest distance between two camera centres, mm."""
    centres = np.stack([c.centre for c in rig if isinstance(c, LensCamera)])
    return float(np.linalg.norm(centres[:, None] - centres[None], axis=-1).max())
