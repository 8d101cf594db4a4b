"""The ground's own velocity: a treadmill's belt, found as the velocity that low feet share.

A standing foot moves with the ground. Among the horizontal velocities of low feet those of stances therefore crowd at
one place, while those of swings spread: the mode is the belt's velocity, and zero on a floor. It is taken anew in
windows of two strides, so that a belt may speed up and slow down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from calibration.foundation.arrays import Floats, frozen
from calibration.foundation.errors import InputError

__all__ = ["Belt", "Ground", "find_belt", "given_belt", "still_ground", "stride_frames"]

_MOST = 160
"""Velocities that a mode is taken over, at most: more do not make it better."""
_MOST_WINDOWS = 600
"""Windows that changes of the belt are looked for in, at most, spread evenly over a long recording."""
_SLOWEST = 0.03
"""A belt slower than this share of the feet's fast velocities is none: a foot in stance is never quite still."""
_STRIDES = 2.0
"""Strides of a window in which the belt's velocity is one."""


class Ground(Protocol):
    """What feet stand on: a floor, a belt, a wheel."""

    @property
    def moves(self) -> bool:
        """Whether it moves at all."""

    @property
    def speed_mm_s(self) -> float:
        """Mean speed of its surface."""

    def without(self, points: Floats, rate_hz: float, *, up: int = 2) -> Floats:
        """Return points (T, ..., 3) as seen by somebody who rides on it, the surface flat and level."""

    def back(self, points: Floats, rate_hz: float) -> Floats:
        """Return such points (T, ..., 3) in the world, z up."""

    def path(self, root: Floats, rate_hz: float) -> Floats:
        """Return the way (T, 2) that a body's root (T, 2) goes over it, mm."""

    def words(self) -> str:
        """Say what it is, empty for a floor."""


@dataclass(frozen=True, eq=False)
class Belt:
    """How the ground moves.

    Attributes:
        velocity: (T, 2) over the floor, mm/s; zero on a floor.
        spread_mm_s: how far the velocities of stances lie about it, 1 sigma, mm/s.
        given: whether the recording names it; otherwise it was found.
    """

    velocity: Floats
    spread_mm_s: float = 0.0
    given: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "velocity", frozen(np.asarray(self.velocity, dtype=np.float64)))

    @property
    def moves(self) -> bool:
        """Whether it moves at all."""
        return bool(np.any(self.velocity != 0.0))

    @property
    def speed_mm_s(self) -> float:
        """Its mean speed."""
        return float(np.linalg.norm(self.velocity, axis=1).mean())

    def travel(self, rate_hz: float) -> Floats:
        """Return (T, 2) how far it has gone since the first frame, mm."""
        steps = 0.5 * (self.velocity[1:] + self.velocity[:-1]) / rate_hz
        return np.concatenate([np.zeros((1, 2)), np.cumsum(steps, axis=0)])

    def without(self, points: Floats, rate_hz: float, *, up: int = 2) -> Floats:
        """Return points (T, ..., 3) as seen by somebody who rides on it."""
        if not self.moves:
            return points
        out = np.array(points, dtype=np.float64)
        moved = self.travel(rate_hz).reshape(len(out), *([1] * (out.ndim - 2)), 2)
        out[..., [axis for axis in range(3) if axis != up]] -= moved
        return out

    def back(self, points: Floats, rate_hz: float) -> Floats:
        """Return points (T, ..., 3) seen from the belt in the world, z up."""
        out = np.array(points, dtype=np.float64)
        out[..., :2] += self.travel(rate_hz).reshape(len(out), *([1] * (out.ndim - 2)), 2)
        return out

    def path(self, root: Floats, rate_hz: float) -> Floats:
        """Return the way (T, 2) that a root (T, 2) goes over it, mm."""
        return np.asarray(root - self.travel(rate_hz)) if self.moves else root

    def words(self) -> str:
        """Say what it is, empty for a floor."""
        if not self.moves:
            return ""
        where = "named in recording.toml" if self.given else "found from the feet"
        vx, vy = self.velocity.mean(axis=0)
        return f"The ground is a belt, {where}: velocity ({vx:.0f}, {vy:.0f}) mm/s; strides are told in its frame."


def still_ground(frames: int) -> Belt:
    """Return a floor."""
    return Belt(np.zeros((frames, 2)))


def find_belt(feet: Sequence[Floats], rate_hz: float, *, up: int = 2) -> Belt:
    """Find the ground's velocity from the motion of the feet.

    Args:
        feet: per foot its points (T, P, 3), mm; NaN where not seen.
        rate_hz: frames per second.
        up: index of the vertical axis.
    """
    points = np.concatenate([np.asarray(foot, dtype=np.float64).reshape(len(foot), -1, 3) for foot in feet], axis=1)
    frames = len(points)
    if frames < 3 or not np.isfinite(points).all(axis=2).any():
        return still_ground(frames)
    across = [axis for axis in range(3) if axis != up]
    velocity = np.gradient(points[..., across], 1.0 / rate_hz, axis=0)
    height = points[..., up]
    # A stance is among the lower half of a point's heights; the belt's velocity is what these have in common.
    low = (height <= np.nanmedian(height, axis=0)) & np.isfinite(velocity).all(axis=2)
    if low.sum() < 8:
        return still_ground(frames)
    speed = np.linalg.norm(velocity, axis=2)
    fast = float(np.nanpercentile(speed, 95.0))
    mode, spread = _mode(velocity[low])
    if np.linalg.norm(mode) < max(_SLOWEST * fast, 3.0 * spread):
        mode = np.zeros(2)
    centres, modes = _windows(velocity, low, rate_hz)
    changes = np.linalg.norm(modes - mode, axis=1) > max(_SLOWEST * fast, 3.0 * spread)
    if not changes.any():
        return Belt(np.broadcast_to(mode, (frames, 2)), spread)
    slow = np.linalg.norm(modes, axis=1) < max(_SLOWEST * fast, 3.0 * spread)
    modes[slow] = 0.0
    moving = np.stack([np.interp(np.arange(frames), centres, modes[:, axis]) for axis in range(2)], axis=1)
    return Belt(moving, spread)


def given_belt(velocity: Floats, frames: int) -> Belt:
    """Return a belt of a velocity (2,) that is known, mm/s."""
    value = np.asarray(velocity, dtype=np.float64)
    if value.shape != (2,) or not np.isfinite(value).all():
        raise InputError(f"belt: wanted its velocity [vx, vy] over the floor in mm/s, got {velocity!r}")
    return Belt(np.broadcast_to(value, (frames, 2)), 0.0, given=True)


def _mode(values: Floats) -> tuple[Floats, float]:
    """Return the mode (2,) of values (N, 2) and the spread about it, 1 sigma per axis.

    The smallest disc that holds half of them, then half of those, and so on (half-sample mode); its centre is then
    the mean of what lies within 2.5 sigma, sigma from the disc that holds a quarter of all.
    """
    some = values[:: max(1, len(values) // _MOST)]
    inside = some
    while len(inside) > 8:
        count = max(4, len(inside) // 2)
        apart = np.linalg.norm(inside[:, None] - inside[None], axis=2)
        middle = int(np.argmin(np.partition(apart, count - 1, axis=1)[:, count - 1]))
        inside = inside[np.sort(np.argsort(apart[middle], kind="stable")[:count])]
    centre = inside.mean(axis=0)
    # Half of a plane's normal distribution lies within 1.18 sigma; half of the low feet's frames are stance at least.
    spread = float(np.sort(np.linalg.norm(some - centre, axis=1))[len(some) // 4]) / 1.18
    near = np.linalg.norm(values - centre, axis=1) <= max(2.5 * spread, 1e-9)
    return np.asarray(values[near].mean(axis=0)), spread


def _windows(velocity: Floats, low: np.ndarray, rate_hz: float) -> tuple[Floats, Floats]:
    """Return the middles (W,), frames, of windows of two strides that overlap by half, and the mode (W, 2) in each."""
    frames = len(velocity)
    length = round(_STRIDES * stride_frames(velocity))
    starts: Sequence[int] = range(0, max(1, frames - length // 2), max(1, length // 2))
    if len(starts) > _MOST_WINDOWS:
        starts = [starts[int(k)] for k in np.linspace(0, len(starts) - 1, _MOST_WINDOWS)]
    centres, modes = [], []
    for start in starts:
        here = slice(start, min(start + length, frames))
        chosen = velocity[here][low[here]]
        if len(chosen) >= 16:
            centres.append(0.5 * (start + min(start + length, frames) - 1))
            modes.append(_mode(chosen)[0])
    if not modes:
        return np.zeros(1), np.zeros((1, 2))
    return np.array(centres), np.array(modes)


def stride_frames(velocity: Floats) -> float:
    """Return the frames of a stride: the strongest period of velocities (T, ...), at most a third of the motion."""
    frames = len(velocity)
    centred = np.nan_to_num(velocity - np.nanmean(velocity, axis=0)).reshape(frames, -1)
    power = (np.abs(np.fft.rfft(centred, axis=0)) ** 2).sum(axis=1)
    power[:3] = 0.0
    return frames / max(3, int(np.argmax(power)))
