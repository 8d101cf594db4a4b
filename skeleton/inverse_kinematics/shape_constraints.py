"""Paths for parts of a body through given places: holds, eased in and out, in three modes.

Le Callennec (EPFL thesis 3459, 2006), section 4.3. *absolute*: the part is at a place. *relative*: a displacement is
added to what it did, whose detail stays. *still*: relative with condensation, the displacement and no motion of its
own: the part stands. Between holds the correction follows a cubic with level ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError

__all__ = ["MODES", "Hold", "joined_holds", "shape_goals"]

MODES = ("absolute", "relative", "still")


@dataclass(frozen=True)
class Hold:
    """What a point does over some frames.

    Attributes:
        first, last: frames, both in it.
        place: (x, y, z) mm: a place of the world, or a displacement in the modes relative and still.
        mode: one of `MODES`.
        priority: the larger the more important.
        ramp: frames in which it sets in before, and ends after.
    """

    first: int
    last: int
    place: tuple[float, float, float]
    mode: str = "absolute"
    priority: int = 2
    ramp: int = 10

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InputError(f"mode must be one of {', '.join(MODES)}, got '{self.mode}'")
        if self.last < self.first or self.first < 0:
            raise InputError(f"frames must be [first, last] with 0 <= first <= last, got [{self.first}, {self.last}]")
        if self.ramp < 0:
            raise InputError(f"ramp must be 0 frames or more, got {self.ramp}")


def joined_holds(holds: Sequence[Hold]) -> list[Hold]:
    """Return holds of one point of which none overlaps another, in the order of time.

    Where two do, the one of lower priority (of equal ones the later) gives way in time.
    """
    kept: list[Hold] = []
    for hold in sorted(holds, key=lambda one: (-one.priority, one.first)):
        spans = [(hold.first, hold.last)]
        for other in kept:
            spans = [
                piece
                for first, last in spans
                for piece in ((first, min(last, other.first - 1)), (max(first, other.last + 1), last))
                if piece[0] <= piece[1] and not (piece[0] > last or piece[1] < first)
            ]
            spans = sorted(set(spans))
        kept += [Hold(a, b, hold.place, hold.mode, hold.priority, hold.ramp) for a, b in spans]
    return sorted(kept, key=lambda one: one.first)


def shape_goals(track: Floats, holds: Sequence[Hold]) -> tuple[Floats, Ints]:
    """Return goals (T, 3), NaN where nothing is asked, and priorities (T,) for a point that was at ``track`` (T, 3)."""
    frames = len(track)
    shift, share = np.zeros((frames, 3)), np.zeros(frames)
    priority = np.zeros(frames, dtype=np.int64)
    ordered = joined_holds(holds)
    for hold in ordered:
        if hold.last >= frames:
            raise InputError(f"frames [{hold.first}, {hold.last}]: the motion has {frames}")
        shift[hold.first : hold.last + 1] = _asked(track[hold.first : hold.last + 1], hold)
        share[hold.first : hold.last + 1] = 1.0
        priority[hold.first : hold.last + 1] = hold.priority
    for index, hold in enumerate(ordered):
        before = ordered[index - 1].last if index else -1
        after = ordered[index + 1].first if index + 1 < len(ordered) else frames
        _ease(shift, share, priority, hold.first, max(before, hold.first - hold.ramp - 1), hold.priority)
        _ease(shift, share, priority, hold.last, min(after, hold.last + hold.ramp + 1), hold.priority)
    goals = np.where(share[:, None] > 0, track + shift, np.nan)
    return goals, priority


def _asked(track: Floats, hold: Hold) -> Floats:
    """Return (n, 3) by how much a hold moves the point."""
    place = np.array(hold.place)
    if hold.mode == "relative":
        return np.broadcast_to(place, track.shape).copy()
    if hold.mode == "still":
        place = np.median(track, axis=0) + place
    return np.asarray(place - track)


def _ease(shift: Floats, share: Floats, priority: Ints, edge: int, other: int, rank: int) -> None:
    """Fill the frames between a hold's edge and ``other`` (another hold's edge, or a frame where nothing is asked)."""
    step = 1 if other > edge else -1
    count = abs(other - edge)
    start = shift[edge].copy()
    stop = shift[other].copy() if 0 <= other < len(shift) and share[other] > 0 else np.zeros(3)
    for k in range(1, count):
        frame = edge + step * k
        if share[frame] > 0 and k > 0:
            continue
        along = k / count
        eased = along * along * (3.0 - 2.0 * along)
        shift[frame] = (1.0 - eased) * start + eased * stop
        share[frame] = 1.0
        priority[frame] = rank
