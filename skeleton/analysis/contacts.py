"""Contacts of feet with the floor: touch-down and lift-off from height and speed, thresholds from the data.

A foot in contact is low and slow. Both thresholds come from the motion itself: Otsu's split of the logarithm of the
speed, and of the height above the foot's own floor level; where one kind of frame is missing (an animal that stands
still, or hops high) a split that separates nothing is not used.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Bools, Floats, frozen
from calibration.foundation.errors import InputError
from skeleton.tree.joint_tree import Pose, Skeleton

__all__ = ["Contacts", "detect_contacts", "foot_contacts", "foot_points"]


@dataclass(frozen=True, eq=False)
class Contacts:
    """When a foot stands.

    Attributes:
        states: (T,) True in contact.
        rate_hz: frames per second.
        floor_mm: height of the foot's floor level.
        height_mm: height above that level below which a frame may be contact.
        speed_mm_s: speed below which a frame may be contact.
    """

    states: Bools
    rate_hz: float
    floor_mm: float
    height_mm: float
    speed_mm_s: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "states", frozen(np.asarray(self.states, dtype=np.bool_)))

    @property
    def intervals(self) -> tuple[tuple[int, int], ...]:
        """Stances as (touch-down, lift-off): first frame in contact, first frame after it."""
        edges = np.diff(np.concatenate([[False], self.states, [False]]).astype(np.int8))
        return tuple(zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist(), strict=True))

    @property
    def touch_downs(self) -> tuple[int, ...]:
        """Frames of touch-down; a stance that the recording begins with has none."""
        return tuple(start for start, _ in self.intervals if start > 0)

    @property
    def lift_offs(self) -> tuple[int, ...]:
        """Frames of lift-off; a stance that the recording ends with has none."""
        return tuple(stop for _, stop in self.intervals if stop < len(self.states))


def _otsu(values: Floats) -> tuple[float, float]:
    """Return the split that separates values best, and the share of their variance that it explains."""
    ordered = np.sort(values)
    count = len(ordered)
    total, below = ordered.sum(), np.cumsum(ordered)[:-1]
    left = np.arange(1, count)
    between = left * (count - left) * (below / left - (total - below) / (count - left)) ** 2 / count**2
    best = int(np.argmax(between))
    variance = float(ordered.var())
    return float(0.5 * (ordered[best] + ordered[best + 1])), float(between[best]) / variance if variance > 0 else 0.0


def _speeds(points: Floats, rate_hz: float) -> Floats:
    """(T, P) speed by central differences, mm/s."""
    if len(points) < 3:
        raise InputError(f"contacts: wanted 3 frames or more, got {len(points)}")
    return np.asarray(np.linalg.norm(np.gradient(points, 1.0 / rate_hz, axis=0), axis=-1))


def detect_contacts(
    points: Floats,
    rate_hz: float,
    *,
    up: int = 2,
    least_stance_s: float = 0.03,
    longest_gap_s: float = 0.015,
) -> Contacts:
    """Find when a foot stands.

    Args:
        points: (T, 3) or (T, P, 3) points of one foot's sole, mm; the foot stands if any of them is low and
            slow.
        rate_hz: frames per second.
        up: index of the vertical axis.
        least_stance_s: shorter stances are dropped.
        longest_gap_s: shorter gaps within a stance are closed.
    """
    values = np.asarray(points, dtype=np.float64)
    values = values[:, None] if values.ndim == 2 else values
    if values.ndim != 3 or values.shape[2] != 3 or not rate_hz > 0:
        raise InputError(f"contacts: points must be (T, P, 3) with a rate above 0, got {values.shape} at {rate_hz} Hz")
    seen: Bools = np.asarray(np.isfinite(values).all(axis=2), dtype=np.bool_)
    if not seen.any():
        raise InputError("contacts: the foot is never seen")
    # Runs of missing frames are bridged for speed only; a missing frame itself is not in contact.
    filled = values.copy()
    for p in range(values.shape[1]):
        good = np.flatnonzero(seen[:, p])
        if len(good):
            for axis in range(3):
                filled[:, p, axis] = np.interp(np.arange(len(values)), good, values[good, p, axis])
    filled = filled[:, seen.any(axis=0)]
    speed, height = _speeds(filled, rate_hz), filled[..., up]
    level = np.percentile(height, 5.0, axis=0)
    above = height - level
    slowest = np.argmin(speed, axis=1)
    rows = np.arange(len(speed))
    least_speed, its_height = speed[rows, slowest], above[rows, slowest]
    slow = max(1e-3, 1e-3 * float(np.max(speed)))
    fast_split, explained = _otsu(np.log(np.maximum(least_speed, slow)))
    speed_limit = float(np.exp(fast_split)) if explained > 0.6 else float(np.inf)
    low_split, explained_height = _otsu(its_height)
    height_limit = low_split if explained_height > 0.6 else float(np.inf)
    if not np.isfinite(speed_limit) and not np.isfinite(height_limit):
        # One kind of frame only: standing if it hardly moves against its own size of motion.
        speed_limit = float(np.median(least_speed)) * 3.0
    # The split of heights lies half way up; a foot in contact may roll, so all of that counts as low.
    states: Bools = np.asarray(((speed < speed_limit) & (above < height_limit)).any(axis=1), dtype=np.bool_)
    states = _tidied(states, round(least_stance_s * rate_hz), round(longest_gap_s * rate_hz)) & seen.any(axis=1)
    return Contacts(states, rate_hz, float(level.min()), height_limit, speed_limit)


def _tidied(states: Bools, least: int, gap: int) -> Bools:
    out = states.copy()
    for wanted, shorter in ((False, gap), (True, least - 1)):
        edges = np.flatnonzero(np.diff(out.astype(np.int8))) + 1
        bounds = np.concatenate([[0], edges, [len(out)]])
        for start, stop in itertools.pairwise(bounds):
            inside = start > 0 and stop < len(out)
            if out[start] == wanted and stop - start <= shorter and inside:
                out[start:stop] = not wanted
    return out


def foot_points(skeleton: Skeleton, pose: Pose) -> dict[str, Floats]:
    """Return the points (T, P, 3) of each foot's sole, mm."""
    if not skeleton.floor_points:
        raise InputError(f"skeleton '{skeleton.name}' names no floor points")
    return {foot: pose.points(*skeleton.points(names)) for foot, names in skeleton.floor_points.items()}


def foot_contacts(skeleton: Skeleton, pose: Pose, rate_hz: float) -> Mapping[str, Contacts]:
    """Return the contacts of each foot of a body in motion; z is up."""
    return {foot: detect_contacts(points, rate_hz) for foot, points in foot_points(skeleton, pose).items()}
