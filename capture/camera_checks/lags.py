"""How late every camera of a rig is, from the planes that the outlines share: any number of cameras, any lags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Floats, Ints
from capture.camera_checks.blocks import block_gains, mean_cost, median_px, sureness
from capture.camera_checks.faults import MENDED
from capture.camera_checks.fits import Placed, cost_without, fit_lag, residuals, residuals_at, usual_px
from capture.camera_checks.outlines import Outlines
from capture.camera_checks.tangency import view_of

__all__ = ["Lag", "find_lags"]

_SWEEPS = 3
#: Every lag a frame away must cost more by this many standard errors, and the lag be known this well (frames).
_LEAST_SURENESS = 3.0
_LARGEST_SD = 0.25
#: Distance at which the bend of the cost is felt, frames.
_BEND = 0.5


@dataclass(frozen=True)
class Lag:
    """How late one camera is against the first that can be told.

    Attributes:
        frames: by how many frames it is late.
        sd_frames: standard deviation.
        disagreement_px: how far its outlines then differ from the others' (median).
        doubt: why it cannot be told; empty if it can.
    """

    frames: float
    sd_frames: float
    disagreement_px: float
    doubt: str


def find_lags(rig: Rig, outlines: Sequence[Outlines], frames: Ints, *, most: int) -> list[Lag]:
    """Return how late each camera is, looking up to ``most`` frames either way; arguments as of `check_cameras`."""
    nothing = np.zeros(3)
    cameras = [Placed(view_of(c, o), 0.0, nothing, nothing) for c, o in zip(rig, outlines, strict=True)]
    cameras = _joined(cameras, frames, most)
    for _ in range(_SWEEPS):
        scale = max(1.0, 4.0 * usual_px(cameras, frames))
        for index in range(len(cameras)):
            cameras[index] = fit_lag(index, cameras, frames, scale, most, around=cameras[index].lag)[0]
    scale = max(1.0, 4.0 * usual_px(cameras, frames))
    doubts = [_doubt(index, cameras, frames, scale, most) for index in range(len(cameras))]
    sure = [index for index, doubt in enumerate(doubts) if not doubt]
    if len(sure) == 1:  # against nothing
        doubts[sure[0]] = "no other camera can be told"
    zero = cameras[sure[0] if sure else 0].lag
    return [
        Lag(
            one.lag - zero,
            _sd(index, cameras, frames, scale),
            median_px(residuals(index, one, cameras, frames)),
            doubts[index],
        )
        for index, one in enumerate(cameras)
    ]


def _joined(cameras: list[Placed], frames: Ints, most: int) -> list[Placed]:
    """Return the cameras at lags that suit the pairs that tell most, joined pair by pair."""
    count = len(cameras)
    lag, told = np.zeros((count, count)), np.full((count, count), -np.inf)
    for a in range(count):
        for b in range(a + 1, count):
            pair = [cameras[a], cameras[b]]
            coarse = max(1.0, median_px(residuals(1, pair[1], pair, frames)))
            found, curve = fit_lag(1, pair, frames, coarse if np.isfinite(coarse) else 1.0, most)
            if np.isfinite(curve).any():
                lag[a, b], lag[b, a] = found.lag, -found.lag
                told[a, b] = told[b, a] = float(np.nanmedian(curve) - np.nanmin(curve))
    placed = {int(np.unravel_index(int(np.argmax(told)), told.shape)[0]): 0.0}
    while len(placed) < count:
        known, rest = list(placed), [index for index in range(count) if index not in placed]
        block = told[np.ix_(known, rest)]
        at = np.unravel_index(int(np.argmax(block)), block.shape)
        a, b = known[int(at[0])], rest[int(at[1])]
        placed[b] = placed[a] + lag[a, b]
    return [replace(one, lag=placed[index]) for index, one in enumerate(cameras)]


def _doubt(camera: int, cameras: list[Placed], frames: Ints, scale: float, most: int) -> str:
    """Return why the lag of a camera cannot be told, empty if it can."""
    one = cameras[camera]
    at = residuals_at(camera, cameras, frames)
    here = at(one.lag)
    rest = cost_without(camera, cameras, frames, scale)
    if not np.isfinite(here).any():
        return "no outlines that the other cameras can check"
    if np.isfinite(rest) and mean_cost(here, scale) > rest + MENDED:
        return (
            f"its outlines differ from the others' by {median_px(here):.1f} px at any lag; is it turned, or its "
            "silhouettes wrong?"
        )
    for step in range(-most, most + 1):
        if step == 0:
            continue
        there = at(one.lag + step)
        if _shares(there, here) and sureness(there, here, scale) < _LEAST_SURENESS:
            return (
                "too little moves to tell one lag from another"
                if abs(step) <= 2
                else (f"a lag of {one.lag + step:+.0f} frames fits nearly as well")
            )
    if not _sd(camera, cameras, frames, scale) < _LARGEST_SD:
        return "too little moves to tell one lag from another"
    return ""


def _shares(there: Floats, here: Floats) -> bool:
    """Return whether two lags are seen by enough of the same frames to be compared: a third of the better one's."""
    both = (np.isfinite(there) & np.isfinite(here)).any(axis=(0, 2)).sum()
    return bool(both >= max(20, np.isfinite(here).any(axis=(0, 2)).sum() / 3))


def _sd(camera: int, cameras: list[Placed], frames: Ints, scale: float) -> float:
    """Return the standard deviation of a lag, frames, by leaving out each stretch of time and each pair in turn."""
    one = cameras[camera]
    at = residuals_at(camera, cameras, frames)
    # what either side costs more, per pair and block
    left, right = (block_gains(at(one.lag + step), at(one.lag), scale) for step in (-_BEND, _BEND))
    good = np.isfinite(left) & np.isfinite(right)
    left, right = np.where(good, left, 0.0), np.where(good, right, 0.0)
    spreads = []
    for axis in (0, 1):
        count = left.shape[axis]
        if count < 2:
            continue
        a, b = left.sum() - left.sum(axis=1 - axis), right.sum() - right.sum(axis=1 - axis)
        if not (a + b > 0).all():
            return float("nan")
        vertex = 0.5 * _BEND * (a - b) / (a + b)
        spreads.append(float(np.sqrt((count - 1) / count * ((vertex - vertex.mean()) ** 2).sum())))
    return max(spreads) if spreads else float("nan")
