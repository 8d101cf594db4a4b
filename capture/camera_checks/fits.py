"""What would mend a camera: a lag, a turn, a turn and a shift, fitted to the planes it shares with all others."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calibration.arrays import Floats, Ints
from calibration.transforms import rotation_from_vector, vector_from_rotation
from capture.camera_checks.tangency import Tangents, View, at_lag, disagreement, moved, tangents

__all__ = ["Placed", "cost", "fit_lag", "fit_pose", "residuals"]

#: Lags whose pairs share fewer frames than this are not tried.
_LEAST_FRAMES = 20
_STEPS = 12


@dataclass(frozen=True, eq=False)
class Placed:
    """A camera's outlines, with what is taken to be wrong with it put right.

    Attributes:
        view: lines of sight, as calibrated.
        lag: frames by which the camera is late.
        turn, shift: (3,) rotation vector (rad) and shift (mm) against the calibration, world axes.
    """

    view: View
    lag: float
    turn: Floats
    shift: Floats

    def now(self) -> View:
        """Return the lines of sight with turn and shift."""
        return moved(self.view, self.turn, self.shift) if self.turn.any() or self.shift.any() else self.view


def cost(residual: Floats, scale: float) -> Floats:
    """Return the robust cost of residuals (px), 0 to 1 each; NaN stays NaN."""
    squares = residual**2
    return np.asarray(squares / (squares + scale**2))


def _pencils(camera: int, view: View, cameras: list[Placed], frames: Ints) -> list[tuple[Tangents, Tangents]]:
    """Return for each other camera the planes of ``view`` (not yet at its lag) and those of the other, at its lag."""
    pairs = []
    for index, other in enumerate(cameras):
        if index == camera:
            continue
        facing = other.now()
        axis = facing.centre - view.centre
        axis = axis / max(float(np.linalg.norm(axis)), 1e-9)
        pairs.append((tangents(view, axis), at_lag(tangents(facing, axis), frames, other.lag)))
    return pairs


def residuals(camera: int, one: Placed, cameras: list[Placed], frames: Ints) -> Floats:
    """Return (C - 1, T, 2) px how a camera's planes differ from those of each other."""
    return np.array(
        [
            disagreement(at_lag(mine, frames, one.lag), theirs)[0]
            for mine, theirs in _pencils(camera, one.now(), cameras, frames)
        ]
    )


def fit_lag(camera: int, cameras: list[Placed], frames: Ints, scale: float, most: int) -> tuple[Placed, Floats]:
    """Return the camera at the lag that mends it best, and (2 most + 1,) the cost at each whole lag, NaN untried."""
    one = cameras[camera]
    pairs = _pencils(camera, one.now(), cameras, frames)

    def at(lag: float) -> float:
        found = np.array([disagreement(at_lag(mine, frames, lag), theirs)[0] for mine, theirs in pairs])
        enough = np.isfinite(found).any(axis=(0, 2)).sum() >= _LEAST_FRAMES
        return _mean(cost(found, scale)) if enough else np.nan

    curve = np.array([at(float(lag)) for lag in range(-most, most + 1)])
    if not np.isfinite(curve).any():
        return one, curve
    best = float(np.nanargmin(curve) - most)
    for step in (0.25, 0.05):
        near = best + step * np.arange(-4, 5)
        values = np.array([at(lag) for lag in near])
        best = float(near[int(np.nanargmin(values))]) if np.isfinite(values).any() else best
    return replace(one, lag=best), curve


def fit_pose(camera: int, cameras: list[Placed], frames: Ints, scale: float, *, shift: bool) -> Placed:
    """Return the camera at the turn (and shift, if wanted) that mends it best.

    Gauss-Newton on the residuals with the weights of a bounded cost whose width falls to ``scale``.
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
        width = max(scale, 0.6 * width)
    return one


def _linear(camera: int, one: Placed, cameras: list[Placed], frames: Ints) -> tuple[Floats, Floats]:
    """Return the residuals (C - 1, T, 2) px and their derivative by a turn (C - 1, T, 2, 3), px/rad."""
    found, slopes = [], []
    for mine, theirs in _pencils(camera, one.now(), cameras, frames):
        shown = at_lag(mine, frames, one.lag)
        residual, scale = disagreement(shown, theirs)
        found.append(residual)
        slopes.append(shown.by_turn / scale[..., None])
    return np.array(found), np.array(slopes)


def _by_shift(camera: int, one: Placed, cameras: list[Placed], frames: Ints, found: Floats) -> Floats:
    """Return the derivative of the residuals by a shift (C - 1, T, 2, 3), px/mm, by differences."""
    step = 1e-3 * float(np.median([np.linalg.norm(c.view.centre - one.view.centre) for c in cameras]) + 1.0)
    columns = [
        (residuals(camera, replace(one, shift=one.shift + step * axis), cameras, frames) - found) / step
        for axis in np.eye(3)
    ]
    return np.stack(columns, axis=-1)


def _mean(values: Floats) -> float:
    """Return the mean over pairs of the mean over a pair's known values; NaN if there is none."""
    known = np.isfinite(values)
    counts = known.sum(axis=(1, 2))
    if not counts.any():
        return float("nan")
    sums = np.where(known, values, 0.0).sum(axis=(1, 2))
    return float((sums[counts > 0] / counts[counts > 0]).mean())
