"""What would mend a camera: a lag, a turn, a turn and a shift, fitted to the planes it shares with all others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.geometry.transforms import rotation_from_vector, vector_from_rotation
from capture.camera_checks.blocks import frame_costs, mean_cost, median_px
from capture.camera_checks.tangency import OutlineRays, Tangents, at_lag, disagreement, moved, stacked, tangents

__all__ = ["Placed", "cost_without", "fit_lag", "fit_pose", "residuals", "residuals_at", "usual_px"]

#: Lags whose pairs share fewer frames than this are not tried.
_LEAST_FRAMES = 20
_STEPS = 12
#: The width of the cost at the end, in scales: what shadows add to an outline is small, and the same in every frame.
_NARROW = 0.3


@dataclass(frozen=True, eq=False)
class Placed:
    """A camera's outlines, with what is taken to be wrong with it put right.

    Attributes:
        view: lines of sight, as calibrated.
        lag: frames by which the camera is late.
        turn, shift: (3,) rotation vector (rad) and shift (mm) against the calibration, world axes.
    """

    view: OutlineRays
    lag: float
    turn: Floats
    shift: Floats

    def now(self) -> OutlineRays:
        """Return the lines of sight with turn and shift."""
        return moved(self.view, self.turn, self.shift) if self.turn.any() or self.shift.any() else self.view


def _pencils(camera: int, view: OutlineRays, cameras: list[Placed], frames: Ints) -> tuple[Tangents, Tangents]:
    """Return the planes of ``view`` (not yet at its lag) and of each other camera (at its lag): leading axis C - 1."""
    mine, theirs = [], []
    for index, other in enumerate(cameras):
        if index == camera:
            continue
        facing = other.now()
        axis = facing.centre - view.centre
        axis = axis / max(float(np.linalg.norm(axis)), 1e-9)
        mine.append(tangents(view, axis))
        theirs.append(at_lag(tangents(facing, axis), frames, other.lag))
    return stacked(mine), stacked(theirs)


def residuals(camera: int, one: Placed, cameras: list[Placed], frames: Ints) -> Floats:
    """Return (C - 1, T, 2) px how a camera's planes differ from those of each other."""
    mine, theirs = _pencils(camera, one.now(), cameras, frames)
    return disagreement(at_lag(mine, frames, one.lag), theirs)[0]


def residuals_at(camera: int, cameras: list[Placed], frames: Ints) -> Callable[[float], Floats]:
    """Return a function of a camera's lag that gives its residuals (C - 1, T, 2), px."""
    mine, theirs = _pencils(camera, cameras[camera].now(), cameras, frames)
    return lambda lag: disagreement(at_lag(mine, frames, lag), theirs)[0]


def fit_lag(
    camera: int, cameras: list[Placed], frames: Ints, scale: float, most: int, *, around: float | None = None
) -> tuple[Placed, Floats]:
    """Return the camera at the lag that mends it best, and (2 most + 1,) the cost at each whole lag, NaN untried.

    With ``around`` only lags within two frames of it are looked at.
    """
    one = cameras[camera]
    found_at = residuals_at(camera, cameras, frames)

    def at(lag: float) -> float:
        costs = frame_costs(found_at(lag), scale)
        known = np.isfinite(costs)
        return float(costs[known].mean()) if known.any(axis=0).sum() >= _LEAST_FRAMES else np.nan

    lags = np.arange(-most, most + 1.0) if around is None else around + np.arange(-2.0, 3.0)
    curve = np.array([at(float(lag)) for lag in lags])
    if not np.isfinite(curve).any():
        return one, curve
    best = float(lags[int(np.nanargmin(curve))])
    for step in (0.25, 0.05):
        near = best + step * np.arange(-4, 5)
        values = np.array([at(lag) for lag in near])
        best = float(near[int(np.nanargmin(values))]) if np.isfinite(values).any() else best
    return replace(one, lag=best), curve


def fit_pose(camera: int, cameras: list[Placed], frames: Ints, scale: float, *, shift: bool) -> Placed:
    """Return the camera at the turn (and shift, if wanted) that mends it best.

    Gauss-Newton on the residuals with the weights of a bounded cost whose width falls below ``scale``.
    """
    one = cameras[camera]
    width = scale
    for step in range(_STEPS):
        found, by_turn = _linear(camera, one, cameras, frames)
        columns = by_turn
        if shift:
            columns = np.concatenate([by_turn, _by_shift(camera, one, cameras, frames, found)], axis=-1)
        good = np.isfinite(found) & np.isfinite(columns).all(axis=-1)
        r, j = found[good], columns[good]
        if len(r) < 2 * j.shape[1]:
            return cameras[camera]
        if step == 0:
            width = max(scale, 2.0 * float(np.median(np.abs(r))))
        weight = (width**2 / (r**2 + width**2)) ** 2
        normal = (j * weight[:, None]).T @ j
        normal += 1e-6 * np.diag(np.maximum(np.diag(normal), 1e-12))
        change = -np.linalg.solve(normal, (j * weight[:, None]).T @ r)
        one = replace(
            one,
            turn=vector_from_rotation(rotation_from_vector(change[:3]) @ rotation_from_vector(one.turn)),
            shift=one.shift + change[3:] if shift else one.shift,
        )
        width = max(_NARROW * scale, 0.6 * width)
    return one


def _linear(camera: int, one: Placed, cameras: list[Placed], frames: Ints) -> tuple[Floats, Floats]:
    """Return the residuals (C - 1, T, 2) px and their derivative by a turn (C - 1, T, 2, 3), px/rad."""
    mine, theirs = _pencils(camera, one.now(), cameras, frames)
    shown = at_lag(mine, frames, one.lag)
    residual, scale = disagreement(shown, theirs)
    return residual, shown.by_turn / scale[..., None]


def _by_shift(camera: int, one: Placed, cameras: list[Placed], frames: Ints, found: Floats) -> Floats:
    """Return the derivative of the residuals by a shift (C - 1, T, 2, 3), px/mm, by differences."""
    step = 1e-3 * float(np.median([np.linalg.norm(c.view.centre - one.view.centre) for c in cameras]) + 1.0)
    columns = [
        (residuals(camera, replace(one, shift=one.shift + step * axis), cameras, frames) - found) / step
        for axis in np.eye(3)
    ]
    return np.stack(columns, axis=-1)


def usual_px(cameras: list[Placed], frames: Ints) -> float:
    """Return by how much cameras that are right differ, px: the lowest tenth over all pairs of their medians."""
    pairs = [residuals(c, one, cameras, frames)[c:] for c, one in enumerate(cameras[:-1])]
    medians = np.array([median_px(pair) for several in pairs for pair in several])
    known = medians[np.isfinite(medians)]
    return float(np.quantile(known, 0.1, method="lower")) if len(known) else 0.0


def cost_without(camera: int, cameras: list[Placed], frames: Ints, scale: float) -> float:
    """Return the mean cost of the pairs without a camera; NaN where there is none."""
    others = [one for index, one in enumerate(cameras) if index != camera]
    if len(others) < 2:
        return float("nan")
    costs = np.array([mean_cost(residuals(c, one, others, frames), scale) for c, one in enumerate(others)])
    known = costs[np.isfinite(costs)]
    return float(known.mean()) if len(known) else float("nan")
