"""Which frames to believe, and why not the others.

The overlap of the model's and the observed silhouettes falls when the pose is wrong (on a captured person:
correlation with the true error -0.78 to -0.97). How high it is when all is well depends on subject, template and
cameras, so a frame is judged against the sequence's own good frames; but a sequence whose good frames are poor (the
template cannot explain what the cameras see, say a person with a chair) is not trusted either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from calibration.foundation.arrays import Bools, Floats, Ints
from calibration.foundation.trust import Trust

__all__ = [
    "AMBIGUOUS",
    "FALL",
    "POOR",
    "Reason",
    "Seams",
    "Trust",
    "Verdicts",
    "judge",
    "judge_track",
    "loosely_clothed",
    "plausible_size",
]

_ROWS = 4096
POOR, FALL = 0.82, 0.03
"""Mean overlap below which a frame is doubtful, and fall below the sequence's usual."""
AMBIGUOUS = 0.01
"""Lead of a start over its best rival, below which either may be right, in overlap."""
DIFFERS = 50.0
"""Distance of the quads, in the mean, from which on two poses of a frame are rivals, thousandths of the size; and of
most quads (the median) from which on two tracks are. Nearer ones are the same animal; tail and feet may differ."""
LEAP = 8.0
"""Step of a whole body, in usual ones, from which on it is a jump."""
CARRIED = 0.3
"""Share of a step that the step before or after goes on in the same direction, from which on it is a motion and no
jump: the sample mouse that comes down from rearing has 0.65 and more, flips and seams of real mice at most 0.0."""

#: Least and greatest size of a subject against the built-in body. Larger ones explain something else: a person of 2.1 m
#: or more is a person with a chair. Rodents grow, and there are many strains: the limits only catch what is absurd.
_SIZES = {"human": (0.4, 1.2), "mouse": (0.4, 2.0), "rat": (0.3, 2.0)}

#: A part so many times thicker, against the built-in body, than the others usually are is cloth: a skirt made thighs of
#: 1.7 and 1.8, knees in it were 80 to 130 mm off; people of eight builds have at most 1.2.
_LOOSE = 1.4
_CLOTHED = {"thigh": "_leg", "shank": "_leg", "arm": "_arm"}
#: A skirt shorter than this share of the leg shows most of the thighs.
_SHORT = 0.3


class Reason(IntEnum):
    """Why a frame, or a limb in it, is not trusted."""

    NONE = 0
    TOO_FEW_VIEWS = 1
    LOW_AGREEMENT = 2
    ONE_VIEW_DISAGREES = 3
    FAR_FROM_PRIOR = 4
    JUMP = 5
    AMBIGUOUS_START = 6
    NOT_TRACKED = 7
    PARTS_DISAGREE = 8
    IMPLAUSIBLE_BODY = 9
    A_LIMB = 10
    IN_EMPTY_AIR = 11
    UNEXPLAINED_NEAR = 12
    OUTLINE_OFF = 13
    AMBIGUOUS_LIMB = 14
    HIDDEN = 15
    ONE_SIDED = 16
    SAID_BY_HAND = 17
    LOOSE_CLOTHES = 18
    FACING_UNTOLD = 19
    TURN_UNTOLD = 20
    FOOT_UNSEEN = 21


@dataclass(frozen=True, eq=False)
class Verdicts:
    """Trust (T,) and reason (T,) codes."""

    trust: Ints
    reason: Ints


def judge(
    overlap: Floats,
    departure: Floats,
    jump: Floats,
    *,
    min_views: int = 2,
    doubt: float = FALL,
    loss: float = 0.10,
    poor: float = POOR,
) -> Verdicts:
    """Judge every frame of a sequence.

    Args:
        overlap: (T, C) silhouette overlap per view; NaN where a camera saw nothing or was dropped.
        departure: (T,) distance of the quads from the prior, in its sigmas; NaN where not tracked.
        jump: (T,) mean displacement of the quads since the frame before, in units of the usual; NaN at the first.
        min_views: fewer views than this cannot place a body.
        doubt: fall of the mean overlap below the sequence's usual that makes a frame doubtful, at least.
        loss: the same for lost.
        poor: mean overlap below which a frame is doubtful however usual it is. The sample mouse has 0.90 to 0.93; a
            real person on a chair fitted by a person alone 0.80.
    """
    seen = np.isfinite(overlap).sum(axis=1)
    agreement = np.array([np.nanmean(row) if count else np.nan for row, count in zip(overlap, seen, strict=True)])
    worst = np.array([np.nanmin(row) if count else np.nan for row, count in zip(overlap, seen, strict=True)])
    trust = np.zeros(len(overlap), np.int64)
    reason = np.zeros(len(overlap), np.int64)

    def mark(where: np.ndarray, level: Trust, why: Reason) -> None:
        raised = where & (trust < int(level))
        trust[raised] = int(level)
        reason[raised] = int(why)

    good = np.isfinite(agreement) & (seen >= min_views)
    if good.any():
        usual, spread = _usual(agreement[good])
        usual_worst, spread_worst = _usual(worst[good])
        lasting = _lasting(departure)
        usual_departure, spread_departure = _usual(-lasting[good])
        mark(good & (agreement < usual - max(2 * loss, 8 * spread)), Trust.LOST, Reason.LOW_AGREEMENT)
        mark(good & (agreement < min(usual - loss, 0.6)), Trust.LOST, Reason.LOW_AGREEMENT)
        mark(good & (agreement < usual - max(doubt, 5 * spread)), Trust.DOUBTFUL, Reason.LOW_AGREEMENT)
        mark(good & (agreement < poor), Trust.DOUBTFUL, Reason.LOW_AGREEMENT)
        mark(good & (worst < usual_worst - max(3 * doubt, 6 * spread_worst)), Trust.DOUBTFUL, Reason.ONE_VIEW_DISAGREES)
        far = -lasting < usual_departure - max(1.5, 8 * spread_departure)
        mark(good & far, Trust.DOUBTFUL, Reason.FAR_FROM_PRIOR)
    mark(np.nan_to_num(jump) > LEAP, Trust.DOUBTFUL, Reason.JUMP)
    mark(seen < min_views, Trust.LOST, Reason.TOO_FEW_VIEWS)
    return Verdicts(trust, reason)


def _lasting(departure: Floats) -> Floats:
    """(T,) middle of a frame's departure and its neighbours'.

    A body does not leave the prior's poses and come back within a frame, unless it jumps, which is told elsewhere; a
    latent point that was not followed as far as its neighbours' does.
    """
    beside = np.pad(departure, 1, constant_values=np.nan)
    rows = np.stack([beside[:-2], departure, beside[2:]])
    known = np.isfinite(departure)
    return np.asarray(np.where(known, np.nanmedian(np.where(known, rows, 0.0), axis=0), np.nan))


@dataclass(frozen=True, eq=False)
class Seams:
    """Where the parts of a track meet.

    Which of two rivals is right is told once for all frames through which the body is followed without a jump.

    Attributes:
        frames: (P - 1,) first frame of each part but the first.
        linked: (P - 1,) whether the two parts that meet there follow the same hypothesis.
    """

    frames: Ints
    linked: Bools

    def vouched(self, lead: Floats, leaps: Bools) -> Floats:
        """(T,) the greatest lead over rivals that any frame has that a frame is connected with.

        Args:
            lead: (T,) of each frame by itself. Where it changes within a part a rival came back to what was kept: the
                frames beyond know nothing of those in which it was another hypothesis.
            leaps: (T,) where the body leaps from the frame before. What lies between the tracks of two parts at their
                seam is no leap of the body.
        """
        breaks = leaps | (np.diff(lead, prepend=lead[:1]) != 0)
        breaks[self.frames] = ~self.linked
        stretch = np.cumsum(breaks)
        best = np.zeros(len(leaps) + 1)
        np.maximum.at(best, stretch, lead)
        return np.asarray(best[stretch])


def judge_track(
    overlap: Floats,
    departure: Floats,
    centres: Floats,
    lead: Floats,
    *,
    unit: float,
    poor: float = POOR,
    fall: float = FALL,
    seams: Seams | None = None,
) -> tuple[Ints, Ints]:
    """Judge every frame of a tracked sequence against the sequence as a whole.

    Args:
        overlap: (T, C) silhouette overlap per view. departure: (T,) from the prior. centres: (T, Q, 3) mm, an array or
            a dataset of a file, read a few rows at a time; NaN where not tracked.
        lead: (T,) by how much the hypothesis that a frame follows beat its rivals.
        unit: one thousandth of the subject's size, mm.
        poor: see `judge`. fall: its ``doubt``.
        seams: of the parts of the track, which vouch for each other; None: it is one.

    Returns:
        trust (T,) and reason (T,) codes of `tracking.sequence.trust`.
    """
    (step, carried), missing = _motion(centres)
    usual = float(np.nanmedian(step)) if np.isfinite(step).any() else 0.0
    jump = np.where(np.nan_to_num(carried) > CARRIED, 0.0, step / max(usual, 2.0 * unit))
    verdicts = judge(overlap, departure, jump, doubt=fall, poor=poor)
    trust, reason = verdicts.trust.copy(), verdicts.reason.copy()
    trust[missing], reason[missing & (reason == 0)] = int(Trust.LOST), int(Reason.NOT_TRACKED)
    astray = _between_jumps(np.nan_to_num(jump) > LEAP) & (trust < int(Trust.LOST))
    trust[astray], reason[astray] = int(Trust.DOUBTFUL), int(Reason.JUMP)
    if seams is not None:
        lead = seams.vouched(np.nan_to_num(lead), np.nan_to_num(jump) > LEAP)
    unsure = (lead < AMBIGUOUS) & (trust == int(Trust.TRUSTED))
    trust[unsure], reason[unsure] = int(Trust.DOUBTFUL), int(Reason.AMBIGUOUS_START)
    return trust, reason


def _between_jumps(jumps: Bools) -> Bools:
    """(T,) frames of stretches between two jumps that are shorter than those before and after: there and back again."""
    ends = np.concatenate([[0], np.flatnonzero(jumps), [len(jumps)]])
    lengths = np.diff(ends)
    short = np.zeros(len(lengths), np.bool_)
    short[1:-1] = (lengths[1:-1] < lengths[:-2]) & (lengths[1:-1] < lengths[2:])
    return np.repeat(short, lengths)


def _motion(centres: Floats) -> tuple[Floats, Bools]:
    """(2, T) mean step of the quads since the frame before, mm, and how far steps beside it go on; (T,) lost frames.

    A body that starts to run goes on running, one that flips does not: the share of a step's own square that its
    product with the step before or after has, whichever is larger.
    """
    count = len(centres)
    found, missing = np.full((count, 2), np.nan), np.zeros(count, np.bool_)
    for first in range(0, count, _ROWS):
        start, stop = max(first - 2, 0), min(first + _ROWS, count)
        rows = np.asarray(centres[start : min(stop + 1, count)])
        missing[first:stop] = ~np.isfinite(rows[first - start : stop - start]).all(axis=(1, 2))
        steps = np.diff(rows, axis=0)
        own = np.sum(steps**2, axis=(1, 2))
        on = np.concatenate([[np.nan], np.sum(steps[1:] * steps[:-1], axis=(1, 2)), [np.nan]])
        beside = np.fmax(on[:-1], on[1:]) / np.maximum(own, 1e-12)
        told = np.stack([np.linalg.norm(steps, axis=-1).mean(axis=1), beside], axis=1)
        found[max(first, 1) : stop] = told[max(first, 1) - start - 1 : stop - start - 1]
    return found.T, missing


def plausible_size(body: str, scale: float) -> bool:
    """Return whether a subject of a built-in body's kind may be of this size against it."""
    least, most = _SIZES.get(body, (0.0, np.inf))
    return bool(least <= scale <= most)


def loosely_clothed(girths: Mapping[str, float], limbs: Sequence[str], *, skirt: float = 0.0) -> tuple[str, ...]:
    """Return the limbs whose bones loose clothes hide.

    Args:
        girths: factors of girth that were found for the body's parts.
        limbs: names of the limbs.
        skirt: length of a skirt, as a share of the leg's; 0 for none.
    """
    usual = float(np.median(list(girths.values()))) if girths else np.inf
    ends = {_CLOTHED[part] for part, girth in girths.items() if part in _CLOTHED and girth > _LOOSE * usual}
    if skirt > _SHORT:
        ends.add(_CLOTHED["thigh"])
    return tuple(limb for limb in limbs if any(limb.endswith(end) for end in ends))


def _usual(values: Floats) -> tuple[float, float]:
    """Level of the good frames and their spread: median of the better three quarters, and its distance to the best."""
    values = values[np.isfinite(values)]
    if not len(values):
        return 0.0, 0.0
    better = values[values >= np.percentile(values, 25)]
    level = float(np.median(better))
    return level, float(np.median(np.abs(better - level))) * 1.4826
