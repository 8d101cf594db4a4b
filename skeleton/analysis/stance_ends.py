"""The ends of stances that a foot creeps to or from: when it comes to rest at its place, and when it leaves it.

A foot that stands is where it stands, but for what its sole rolls and the capture jitters. One that still goes there,
slow as it may be, is not standing. How it comes to rest tells when: struck hard its place bends, braked its speed,
set down softly only its acceleration (Flash and Hogan 1985), so that the last frames lie within the jitter. A point's
way to its place is therefore fitted as a power of the time that is left, and all of it tells the moment of rest.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from calibration.foundation.arrays import Floats

__all__ = ["apart", "at_their_places", "sole_length"]

_NEAR = 0.02
"""Share of the sole's length within which a foot is at its place, if its jitter is not more."""
_ROLLS = 0.8
"""How far points of a sole may lie off what it rolls on, as a share of its length."""
_WAY = 1.0 / 3.0
"""The last share of the sole's length on its way to rest is what tells when it does."""
_POWERS = (1, 2, 3)
"""Of the time left: a foot that strikes, one that brakes, one that is set down."""
_CLEAR = 0.95
"""Share of a point's way that the fit must explain: a foot that rolls on, or slips, comes to rest at no moment."""
_STEP = 0.25
"""Frames between the moments of rest that are tried."""


def sole_length(points: Floats) -> float:
    """Return the length of a sole (T, P, 3), mm; 0 for a single point."""
    return float(np.median(np.linalg.norm(np.ptp(points, axis=1), axis=1)))


def at_their_places(points: Floats, cores: list[tuple[int, int]], spans: Floats, swing: float) -> Floats:
    """Return stances (S, 2) less what of their ends the foot still goes.

    Args:
        points: (T, P, 3) points of the sole, mm.
        cores: of each stance (first, one after the last) frame in which it surely stands.
        spans: (S, 2) begin and end as found so far, frames; infinite where the motion begins or ends with it.
        swing: frames of a swing.
    """
    sole = sole_length(points)
    out = spans.copy()
    for row, core in enumerate(cores):
        if sole == 0.0 or core[1] - core[0] < 4:
            continue
        begin = _landing(points, core, float(spans[row, 0]), sole, swing)
        # Backwards in time a foot that leaves lands.
        last = len(points) - 1
        turned = (last + 1 - core[1], last + 1 - core[0])
        end = last - _landing(points[::-1], turned, last - float(spans[row, 1]), sole, swing)
        if begin < end:
            out[row] = begin, end
    return out


def _landing(points: Floats, core: tuple[int, int], begin: float, sole: float, swing: float) -> float:
    """Return when a stance begins that was thought to begin at ``begin``: no earlier than that."""
    if not np.isfinite(begin):
        return begin
    first = max(math.ceil(begin), 0)
    # Its place is that of the first swing's time in which it surely stands: captures wander.
    near = max(4, round(swing))
    skip = near // 2 if core[1] - core[0] > near + near // 2 else 0
    inner = points[core[0] + skip : min(core[1], core[0] + 2 * near)]
    place = np.median(inner, axis=0)
    usual = float(np.median(np.linalg.norm(inner - place, axis=2).min(axis=1)))
    limit = max(_NEAR * sole, 2.5 * 1.4826 * usual)
    away = _beyond(points[first : core[1]], place, sole) - limit
    there = np.flatnonzero(away <= 0.0)
    if not len(there) or there[0] == 0:
        return begin
    rest = first + _crossing(away, int(there[0]) - 1)
    # Less than a frame is no creeping.
    if rest - begin > 1.0:
        far = max(_WAY * sole, 4.0 * limit)
        rest = min(_at_rest(points[:, p], core, rest, place[p], far, swing) for p in range(points.shape[1]))
    return max(begin, rest)


def _beyond(points: Floats, place: Floats, sole: float) -> Floats:
    """(T,) how much farther a sole (T, P, 3) is from its place (P, 3) than rolling explains, of its nearest point."""
    along, still = points[:, -1] - points[:, 0], place[-1] - place[0]
    size = np.linalg.norm(along, axis=1) * np.linalg.norm(still)
    turn = np.arccos(np.clip(along @ still / np.maximum(size, 1e-12), -1.0, 1.0))
    return np.asarray(np.linalg.norm(points - place, axis=2).min(axis=1) - _ROLLS * sole * turn)


def _at_rest(track: Floats, core: tuple[int, int], guess: float, place: Floats, far: float, swing: float) -> float:
    """Return when a point (T, 3) comes to rest: the moment T for which place + way * (T - t)^n fits best, any n.

    Fitted to the frames in which it is nearer than ``far``, and as many after ``guess``.
    """
    begin = math.floor(guess)
    while begin > 0 and np.linalg.norm(track[begin] - place) < far:
        begin -= 1
    stop = min(round(guess + max(guess - begin, 6.0)) + 1, core[1])
    if stop - begin < 6:
        return guess
    seen = track[begin:stop] - track[begin:stop].mean(axis=0)
    tried = guess + np.arange(-2.0, 0.5 * swing, _STEP)
    left = np.maximum(tried[:, None] - np.arange(begin, stop), 0.0)
    fits = ((left > 0).sum(axis=1) >= 3) & ((left == 0).sum(axis=1) >= 3)
    if not fits.any():
        return guess
    left, tried = left[fits], tried[fits]
    gains = []
    for power in _POWERS:
        shape = left**power
        shape -= shape.mean(axis=1, keepdims=True)
        gains.append(((shape @ seen) ** 2).sum(axis=1) / (shape**2).sum(axis=1))
    best = np.max(gains, axis=0)
    return float(tried[int(np.argmax(best))]) if best.max() >= _CLEAR * float((seen**2).sum()) else guess


def _crossing(values: Floats, frame: int) -> float:
    """Return when values pass zero between a frame and the next."""
    before, after = float(values[frame]), float(values[frame + 1])
    return frame - before / (after - before)


def apart(intervals: Floats) -> Floats:
    """Return intervals of which none reaches into the next: the corner they share ends the first."""
    out = intervals.copy()
    for before, after in pairwise(range(len(out))):
        if out[after, 0] < out[before, 1]:
            out[before, 1] = out[after, 0] = 0.5 * (out[before, 1] + out[after, 0])
    return out
