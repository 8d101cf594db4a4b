"""When a point of a body rests on the ground: slow, low intervals, their ends where the speed turns its corner.

Intervals are found as slow and low, thresholds from the motion itself: slow against the swings beside them, low
against how high these go. An interval's end is then placed where the speed bends most between standing and swinging:
a foot leaves and meets the ground with a jerk (Hreljac and Marshall 2000, J Biomech 33), whatever share of its full
speed it has at that moment, so that no threshold on speed sets the time of the event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.ndimage import gaussian_filter1d

from calibration.foundation.arrays import Bools, Floats, frozen
from calibration.foundation.errors import InputError
from skeleton.analysis.stance_ends import apart, at_their_places, sole_length

__all__ = ["Stances", "find_stances", "least_median", "otsu_split", "runs_of"]

_SLOW = 0.15
"""Share of a swing's greatest speed below which a foot may stand; the ends are placed by the corner, not by it."""
_CORE, _FLANK = 0.05, 0.4
"""Shares of a swing's greatest speed between which its corner is looked for."""
_TOP = 0.25
"""Share of the usual swing's greatest speed from which a peak beside a stance is one it ends at."""
_WAY = 0.5
"""A swing leads the foot farther than this share of its sole's length; less is jitter of a foot that stands."""
_LOW = 0.5
"""Share of a swing's height below which a foot may stand, at most."""
_LEAST_LOW = 0.15
"""The same, at least: a foot rolls while it stands."""
_LATE = 0.25
"""Frames by which the bend of three speeds lies within the swing: half of one after a jerk, none after a jolt."""
_SMOOTH = 1.0 / 30.0
"""Width of the smoothing, 1 sigma, as a share of a swing's duration."""


@dataclass(frozen=True, eq=False)
class Stances:
    """When a foot stands.

    Attributes:
        intervals: (S, 2) begin and end of each stance in frames, between frames too; -inf and inf where the motion
            begins or ends with it.
        states: (T,) the frames in stance.
        floor_mm: height of the foot's ground level.
        height_mm: height above it below which a frame may be stance.
        speed_mm_s: speed below which it may.
        swing_mm_s: greatest speed of its usual swing; NaN if it has none.
        confidence: (S,) how far the speed in stance lies below that of the swings beside it, 0 to 1.
    """

    intervals: Floats
    states: Bools
    floor_mm: float
    height_mm: float
    speed_mm_s: float
    swing_mm_s: float
    confidence: Floats

    def __post_init__(self) -> None:
        for name, kind in (("intervals", np.float64), ("states", np.bool_), ("confidence", np.float64)):
            object.__setattr__(self, name, frozen(np.asarray(getattr(self, name), dtype=kind)))


def find_stances(
    points: Floats, rate_hz: float, *, up: int = 2, least_stance_s: float = 0.03, longest_gap_s: float = 0.015
) -> Stances:
    """Find when a foot stands on a ground that does not move.

    Args:
        points: (T, P, 3) points of its sole, mm; it stands while any of them is low and slow. NaN where not seen.
        rate_hz: frames per second.
        up: index of the vertical axis.
        least_stance_s: shorter stances are dropped.
        longest_gap_s: shorter gaps within a stance are closed.
    """
    seen: Bools = np.asarray(np.isfinite(points).all(axis=2), dtype=np.bool_)
    filled = _bridged(points, seen)
    swing, frames = _swing_scale(filled, _speeds(filled, rate_hz, 0.0).min(axis=1))
    if not np.isfinite(swing):
        return _one_kind(filled, _in_any(seen), rate_hz, up)
    speeds = _speeds(filled, rate_hz, _SMOOTH * frames)
    speed = speeds.min(axis=1)
    level, limits = _heights(filled, speeds, swing, up)
    low = filled[..., up] - level < limits
    limit = _stance_limit(speed, _in_any(low), swing)
    slow = _in_any((speeds < limit) & low)
    maybe = _in_any(low) & (speed < 2.0 * _SLOW * swing)
    core = _tidied(slow, maybe, round(least_stance_s * rate_hz), round(longest_gap_s * rate_hz))
    found, shares = [], []
    for start, stop in runs_of(core):
        begin = _corner(speed, start, -1, swing) if start > 0 else -np.inf
        found.append((begin, _corner(speed, stop - 1, 1, swing) if stop < len(speed) else np.inf))
        shares.append(1.0 - min(1.0, float(np.median(speed[start:stop])) / limit))
    intervals = apart(at_their_places(filled, runs_of(core), np.array(found).reshape(-1, 2), frames))
    states = _frames_within(intervals, len(speed)) & _in_any(seen)
    return Stances(intervals, states, float(level.min()), float(limits.max()), limit, swing, np.array(shares))


def _in_any(states: Bools) -> Bools:
    """(T,) what holds of any of the points (T, P)."""
    return np.asarray(states.any(axis=1), dtype=np.bool_)


def runs_of(states: Bools) -> list[tuple[int, int]]:
    """Return the runs of True as (first, one after the last)."""
    edges = np.diff(np.concatenate([[False], states, [False]]).astype(np.int8))
    return list(zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist(), strict=True))


def otsu_split(values: Floats) -> tuple[float, float]:
    """Return the split that separates values best, and the share of their variance that it explains."""
    ordered = np.sort(values)
    count = len(ordered)
    total, below = ordered.sum(), np.cumsum(ordered)[:-1]
    left = np.arange(1, count)
    between = left * (count - left) * (below / left - (total - below) / (count - left)) ** 2 / count**2
    best = int(np.argmax(between))
    variance = float(ordered.var())
    return float(0.5 * (ordered[best] + ordered[best + 1])), float(between[best]) / variance if variance > 0 else 0.0


def _bridged(points: Floats, seen: Bools) -> Floats:
    """Return the points that are seen at all, runs of missing frames bridged: for their speed only."""
    if not seen.any():
        raise InputError("contacts: the foot is never seen")
    filled = points[:, seen.any(axis=0)].copy()
    for p, there in enumerate(seen[:, seen.any(axis=0)].T):
        good = np.flatnonzero(there)
        if len(good) < len(there):
            for axis in range(3):
                filled[:, p, axis] = np.interp(np.arange(len(there)), good, filled[good, p, axis])
    return filled


def _speeds(points: Floats, rate_hz: float, smooth: float) -> Floats:
    """(T, P) speed by central differences of positions smoothed by ``smooth`` frames, mm/s."""
    if len(points) < 3:
        raise InputError(f"contacts: wanted 3 frames or more, got {len(points)}")
    soft = gaussian_filter1d(points, smooth, axis=0, mode="nearest") if smooth > 0.4 else points
    return np.asarray(np.linalg.norm(np.gradient(soft, 1.0 / rate_hz, axis=0), axis=-1))


def _swing_scale(points: Floats, speed: Floats) -> tuple[float, float]:
    """Return the usual swing's greatest speed and its frames; NaN if the foot does not swing.

    Of the runs of fast frames those count that lead the foot away; each weighs by its frames, so that neither a jump
    of one frame nor jitter sets the scale.
    """
    least = max(1e-3, 1e-3 * float(speed.max()))
    split, explained = otsu_split(np.log(np.maximum(speed, least)))
    if explained < 0.6:
        return np.nan, np.nan
    sole = sole_length(points)
    rows = [
        (float(speed[start:stop].max()), float(stop - start))
        for start, stop in runs_of(speed > np.exp(split))
        if np.linalg.norm(np.ptp(points[start:stop].mean(axis=1), axis=0)) > _WAY * sole
    ]
    if not rows:
        return np.nan, np.nan
    peaks, frames = np.array(sorted(rows)).T
    passed = np.cumsum(frames)
    usual = float(peaks[np.searchsorted(passed, 0.5 * passed[-1])])
    return usual, float(np.median(frames[peaks > _TOP * usual]))


def _one_kind(points: Floats, seen: Bools, rate_hz: float, up: int) -> Stances:
    """Return a foot without swings: it stands while it stays within its length, and not at all if it goes on and on.

    A foot that is at one place in most frames stands there, and not in those that it is away. A single point has no
    length: that stands in the frames in which it hardly moves against the others.
    """
    sole = sole_length(points)
    speed = _speeds(points, rate_hz, 0.0).min(axis=1)
    limit = 3.0 * float(np.median(speed)) if sole == 0.0 else np.inf
    middle = points.mean(axis=1)
    stays = np.linalg.norm(middle - np.median(middle, axis=0), axis=1) <= 0.5 * sole
    if sole == 0.0 or float(np.linalg.norm(np.ptp(middle, axis=0))) <= sole:
        stays[:] = True
    states: Bools = np.asarray((speed <= limit) & seen & stays & (stays.mean() > 0.5), dtype=np.bool_)
    spans = [
        (start - 0.5 if start else -np.inf, stop - 0.5 if stop < len(states) else np.inf)
        for start, stop in runs_of(states)
    ]
    level = float(np.percentile(points[..., up], 5.0, axis=0).min())
    return Stances(np.array(spans).reshape(-1, 2), states, level, np.inf, limit, np.nan, np.full(len(spans), 0.5))


def _heights(points: Floats, speeds: Floats, swing: float, up: int) -> tuple[Floats, Floats]:
    """Return the ground level (P,) of each point and the height (P,) above it that counts as low.

    The level is where most slow frames of the lower half lie (least median of squares), low what is within 2.5 robust
    standard deviations of them, or a small share of what swings lift it and of the sole's length.
    """
    heights = points[..., up]
    slow = speeds.min(axis=1) < _SLOW * swing
    lowest = np.percentile(heights[slow] if slow.any() else heights, 10.0, axis=0)
    peaks = [heights[start:stop].max(axis=0) for start, stop in runs_of(~slow)]
    lift = np.median(np.array(peaks), axis=0) - lowest if peaks else np.full(heights.shape[1], np.inf)
    level, limit = lowest.copy(), _LOW * lift
    sole = sole_length(points)
    rolls = np.minimum(_LEAST_LOW * lift, 0.5 * sole if sole > 0.0 else np.inf)
    for p in range(heights.shape[1]):
        mine = heights[(speeds[:, p] < _SLOW * swing) & (heights[:, p] - lowest[p] < _LOW * lift[p]), p]
        if len(mine) >= 6:
            level[p], sigma = least_median(mine)
            limit[p] = min(_LOW * lift[p], max(2.5 * sigma, rolls[p]))
    return level, limit


def least_median(values: Floats) -> tuple[float, float]:
    """Return the least-median-of-squares location of values (N,) and its robust standard deviation (Rousseeuw 1984)."""
    ordered = np.sort(values)
    half = len(ordered) // 2
    widths = ordered[half:] - ordered[: len(ordered) - half]
    first = int(np.argmin(widths))
    sigma = 1.4826 * (1.0 + 5.0 / max(len(ordered) - 1, 1)) * 0.5 * float(widths[first])
    return 0.5 * float(ordered[first] + ordered[first + half]), sigma


def _stance_limit(speed: Floats, low: Bools, swing: float) -> float:
    """Return the speed below which a frame may be stance: a share of a swing's, or what stances show if that is more.

    Beyond 2.5 robust standard deviations of the slow frames' speeds a frame is none.
    """
    values = speed[low & (speed < 2.0 * _SLOW * swing)]
    if len(values) < 6:
        return _SLOW * swing
    middle, sigma = least_median(values)
    return max(_SLOW * swing, min(middle + 2.5 * sigma, 2.0 * _SLOW * swing))


def _corner(speed: Floats, edge: int, way: int, swing: float) -> float:
    """Return where the speed bends most between the stance whose last frame is ``edge`` and the swing ``way`` of it."""
    last = len(speed) - 1
    peak = edge
    while 0 < peak < last and (speed[peak + way] >= speed[peak] or speed[peak] < _TOP * swing):
        peak += way
    top = max(float(speed[peak]), _SLOW * swing)
    inner, outer = edge, edge
    while 0 < inner < last and speed[inner] > _CORE * top and speed[inner - way] <= speed[inner]:
        inner -= way
    while 0 < outer < last and speed[outer] < _FLANK * top:
        outer += way
    first, stop = sorted((inner, outer))
    first, stop = max(first - 1, 1), min(stop + 1, last - 1)
    if stop <= first:
        return float(edge + 0.5 * way)
    bend = speed[first - 1 : stop] - 2.0 * speed[first : stop + 1] + speed[first + 1 : stop + 2]
    best = int(np.argmax(bend))
    place = float(first + best)
    if 0 < best < len(bend) - 1:
        a, b, c = bend[best - 1 : best + 2]
        place += 0.5 * (a - c) / (a - 2.0 * b + c) if a - 2.0 * b + c < 0 else 0.0
    return place


def _frames_within(intervals: Sequence[Sequence[float]] | Floats, frames: int) -> Bools:
    """(T,) the frames that lie in an interval, and not at its very end."""
    index = np.arange(frames)
    states = np.zeros(frames, dtype=np.bool_)
    for begin, end in intervals:
        states |= (index >= begin + _LATE) & (index <= end - _LATE)
    return states


def _tidied(states: Bools, maybe: Bools, least: int, gap: int) -> Bools:
    """Return states (T,) with short gaps closed, then without short runs; ``maybe`` (T,): a foot might stand there."""
    out = states.copy()
    for wanted, shorter in ((False, gap), (True, least - 1)):
        edges = np.flatnonzero(np.diff(out.astype(np.int8))) + 1
        bounds = np.concatenate([[0], edges, [len(out)]])
        for start, stop in pairwise(bounds):
            inside = start > 0 and stop < len(out)
            # A stance that the motion begins or ends with is longer than what is seen of it; the speed of its first and
            # last frames is the least sure.
            most = shorter if inside or (not wanted and maybe[start:stop].all()) else int(wanted)
            if out[start] == wanted and stop - start <= most:
                out[start:stop] = not wanted
    return out
