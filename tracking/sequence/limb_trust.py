"""Which limbs to believe in each frame, and why not the others: by what the images show of the limb itself.

All tests are absolute: a recording that is poor throughout is not trusted throughout. The limits were chosen on tracks
of people that were never seen before, right and wrong ones: arms that stood 150 to 600 mm off had a residual of 16 to
25 thousandths, or no lead over their rivals; arms that were right at most 12 (7 where hidden by the trunk), and a lead
of 0.06 and more.

What one view holds against a rodent's limb counts as far as others bear it out (`tracking.limbs.confirming`).
A rodent's limits are wider, against what is wrong for it: fur and a trunk that bulges leave residuals twice as large, a
point 15 mm off is 160 thousandths of its size, and its limbs stand before the trunk, where no lead is to be had. What
tells a wrong head is its posture (`tracking.fitting.posture`), which the lead holds against it. A limb that fewer than
two views show apart from the rest is never believed: a tail that the silhouettes lack folds over the back. Nor is a leg
whose foot no two silhouettes show (`tracking.limbs.feet_apart`), unless the images do (`tracking.appearance.feet`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from calibration.foundation.arrays import Bools, Floats, Ints
from tracking.limbs.evidence import LimbRecord
from tracking.limbs.leaps import with_stretches_between
from tracking.sequence.trust import FALL, POOR, Reason, Trust

__all__ = [
    "MANY",
    "PEOPLE",
    "RODENTS",
    "SHOWN",
    "STOOD",
    "TURN",
    "Limits",
    "frames_with_limbs",
    "images_could_tell",
    "judge_limbs",
    "lead_speaks_against",
    "limb_doubt",
    "limits_of",
]


@dataclass(frozen=True)
class Limits:
    """From where on a limb is doubtful. Lengths are in thousandths of the subject's size.

    Attributes:
        doubt: unexplained and empty share of it (`LimbSight.bad`, mean of the views).
        one_view: the same in a single view.
        rough, trunk_rough: root mean square of its outline's residuals, and of the trunk's.
        hidden_rough: the same for a limb that fewer than two views show apart from the rest: the body's outline may
            pass for its own.
        weak: uncertainty of its outer half along its worst direction, by its own outlines alone: beyond, it is seen
            from one side only.
        few_weak: the same for a limb that no more than two views show apart from the rest, and that does not fit well
            (`_weak`): a curled mouse's hind foot on a fore paw has 2.8 to 3.4, feet that were right up to 2.2.
        told_again: share of that uncertainty below which a limb that was seen from one side only is believed again,
            as long as no more than two views show it and it does not fit well (`_lingering`): an arm that went astray
            unseen is not put right by outlines that barely hold it. A boxer's wrist was 75 to 115 mm off with 0.68 to
            0.98 for six frames; arms that came back right fitted twice as well.
        hardly_better: share of the allowed residual above which a limb is not believed between two frames in which its
            outline is off: it is where it was. A boxer's wrist in blurred videos was 81 to 94 mm off for seven frames
            with 0.90 to 1.10 of it, and believed in the middle four.
        ambiguous, hidden_ambiguous: lead over another place of it, below which either may be right; and for a limb that
            fewer than two views show apart from the rest.
        search: unexplained and empty share of it, and residual, from which on it is looked for: as each view has it,
            borne out by the others or not.
        poor: mean overlap of a frame below which all of it is doubtful. A rodent is small and furry, and silhouettes
            lose its feet and ears: poses that were right had 0.76 to 0.87. What is wrong, the tests of its trunk and
            limbs tell.
        fall: the same below what is usual in the recording. Right poses of one real mouse differ by 0.08, as its
            silhouettes do; turned round it falls by 0.02 to 0.16, which its head and tail tell (`_facing_told`).
        leap: how far it may leave the path through the frames before and after (`tracking.limbs.leaps`).
    """

    doubt: float
    one_view: float
    rough: float
    trunk_rough: float
    hidden_rough: float
    weak: float
    few_weak: float
    told_again: float
    hardly_better: float
    ambiguous: float
    hidden_ambiguous: float
    search: tuple[float, float]
    poor: float
    fall: float
    leap: float


PEOPLE = Limits(0.012, 0.08, 12.0, 14.0, 10.0, 4.0, 4.0, 0.6, 0.85, 0.06, 0.10, (0.012, 12.0), POOR, FALL, 15.0)
RODENTS = Limits(0.05, 0.15, 24.0, 24.0, 20.0, 4.0, 2.4, 1.0, 1.0, -0.20, 2.0, (0.03, 18.0), 0.70, 0.10, np.inf)
TURN, NOD = 0.005, 0.015
"""Lead over itself rolled, or with its head nodded, in place, below which a rodent's roll or the pitch of its head is
not known, in overlap. It is nodded further than it is rolled (`tracking.limbs.turned_in_place`)."""
PLACES, FEWER_PLACES = 0.10, 0.05
"""Share of the places around that may show a foot better in the images than its own: below, it is seen there, though
silhouettes lack it; and the same where fewer than two views show the leg apart from the rest."""
STANDS, FIRM = 2.0, 2.0
"""Sigmas from where hind feet stand under a trunk that is believed, within which one that is shown is believed; and how
many times what is allowed silhouettes may hold against it: shade lies where feet stand."""
STOOD = 48.0
"""How far a foot that is not shown may be from where it is put, 1 sigma along an axis, thousandths of the size: as feet
of the published motions spread about where they stand (`tracking.fitting.stance`), 0.18 of the trunk in all. A real
mouse's marked hind paws: 7.7 mm in all, which is the same."""
LOSS = 0.25
"""Unexplained and empty share of a limb from which on it is lost."""
SHOWN = 2.0
"""Views that show a limb apart from the rest, below which it is hidden."""
CHECKED = 3.0
"""Views that show the limb shown best, below which one that fewer than two show is not believed: outlines of two
cameras alone leave a forearm before the trunk anywhere between, and no third one carves it away."""
MANY, FEW_ROUGH = 4.0, 0.5
"""Views that show the limb shown best, below which a person's limb has this share of the residual: where three cameras
see the body, two of them often from opposite sides, a wrong knee between a right hip and a right ankle leaves little. A
dancer's was 58 to 87 mm off with 6 to 8 thousandths, right ones had 4 to 5."""
UNCHECKED = 0.5
"""Share of the uncertainty that a person's limb may have where fewer views than that show any limb: outlines of two
cameras are checked by no third one. A dancer's leg that two cameras show was 85 mm off with 0.5 to 0.75."""
UNSEEN = tuple(
    int(why)
    for why in (
        Reason.HIDDEN, Reason.AMBIGUOUS_LIMB, Reason.ONE_SIDED, Reason.TURN_UNTOLD, Reason.FOOT_UNSEEN,
    )
)  # fmt: skip
"""Reasons that say that a limb is not seen, not that it is contradicted."""
CONTRADICTED = (int(Reason.IN_EMPTY_AIR), int(Reason.UNEXPLAINED_NEAR), int(Reason.OUTLINE_OFF))
"""Reasons that say that silhouettes contradict a limb."""
TOGETHER, SINGLE = 2, 1.6
"""Frames before and after whose leads over a turn in place, and whose unexplained and empty shares of a rodent's limb,
are taken together: a head that nods wrongly does so for more than a frame, and what single silhouettes err by averages
out. A single frame counts by itself where it has so many times what is allowed. Its own lead it needs in any case: a
head that slips away does so from one frame to the next."""
BETWEEN = 3
"""Frames, at most, between doubtful ones that are doubted too: a limb astray passes by places that explain it."""
ENDS = ("head", "tail")
"""Limbs that tell which way a rodent faces."""
REACH = 250.0
"""How far off a limb is that is explained by nothing, thousandths of the size: what doubt adds to its sigma."""


def limits_of(names: Sequence[str]) -> Limits:
    """Return the limits for a body with these limbs."""
    return RODENTS if any(name.endswith("_limb") for name in names) else PEOPLE


def judge_limbs(record: LimbRecord, *, unit: float, limits: Limits = PEOPLE) -> tuple[Ints, Ints]:
    """Return trust (T, L) and reason (T, L) of the limbs; ``unit`` is one thousandth of the subject's size, mm."""
    trust = np.zeros(record.bad.shape, np.int64)
    reason = np.zeros(record.bad.shape, np.int64)

    def mark(where: Bools, level: Trust, why: Reason) -> None:
        raised = where & (trust < int(level))
        trust[raised], reason[raised] = int(level), int(why)

    bad, outside, missing = (np.nan_to_num(values) for values in (record.bad, record.outside, record.missing))
    empty = outside >= missing
    mark(~np.isfinite(record.bad), Trust.LOST, Reason.NOT_TRACKED)
    mark((bad > LOSS) & empty, Trust.LOST, Reason.IN_EMPTY_AIR)
    mark((bad > LOSS) & ~empty, Trust.LOST, Reason.UNEXPLAINED_NEAR)
    if limits is RODENTS:
        shares = (record.bad, record.outside, record.missing)
        bad, outside, missing = (np.maximum(_around(one), np.nan_to_num(one) / SINGLE) for one in shares)
    mark((bad > limits.doubt) & empty, Trust.DOUBTFUL, Reason.IN_EMPTY_AIR)
    mark((bad > limits.doubt) & ~empty, Trust.DOUBTFUL, Reason.UNEXPLAINED_NEAR)
    mark(outside > limits.one_view, Trust.DOUBTFUL, Reason.IN_EMPTY_AIR)
    mark(missing > limits.one_view, Trust.DOUBTFUL, Reason.UNEXPLAINED_NEAR)
    off = np.nan_to_num(record.residual) > _rough(record, unit, limits)
    hidden = np.nan_to_num(record.views) < SHOWN
    hidden[:, 0] = False
    mark(off & hidden, Trust.DOUBTFUL, Reason.HIDDEN)
    mark(off, Trust.DOUBTFUL, Reason.OUTLINE_OFF)
    one_sided = np.nan_to_num(record.weak) > _weak(record, unit, limits)
    mark(one_sided, Trust.DOUBTFUL, Reason.ONE_SIDED)
    lead = np.nan_to_num(record.lead, nan=1.0)  # the trunk has no rivals
    untold = (record.views < 1) | _unchecked(record)
    mark(hidden & ((lead < limits.hidden_ambiguous) | untold), Trust.DOUBTFUL, Reason.HIDDEN)
    mark(lead_speaks_against(record, limits), Trust.DOUBTFUL, Reason.AMBIGUOUS_LIMB)
    mark(_leapt(record, unit, limits) > 0, Trust.DOUBTFUL, Reason.JUMP)
    if limits is not RODENTS:
        mark(_mostly_contradicted(trust, reason)[:, None], Trust.DOUBTFUL, Reason.OUTLINE_OFF)
    # Last: where nothing else speaks against it.
    mark(_turn_doubt(record) > 0, Trust.DOUBTFUL, Reason.TURN_UNTOLD)
    foot_unseen = _foot_unseen(record)
    mark(foot_unseen, Trust.DOUBTFUL, Reason.FOOT_UNSEEN)
    places = _better_places(record)
    seen = (trust == int(Trust.DOUBTFUL)) & (places < np.where(hidden, FEWER_PLACES, PLACES))
    # A paw in the images is not known to be the left or the right one where the trunk's roll is not known, nor to be
    # this leg's where outlines hold the leg from one side only, or hide it and speak against it: a fore paw looks the
    # same, and so does a bare tail.
    seen &= (_turn_doubt(record)[:, :1] <= 0) & ~one_sided & ~(hidden & (bad > limits.doubt))
    little = (
        (~foot_unseen | (places < np.where(hidden, FEWER_PLACES, PLACES)))
        & (bad <= FIRM * limits.doubt)
        & (np.maximum(outside, missing) <= FIRM * limits.one_view)
    )
    seen |= _stands(record, trust) & little & (trust == int(Trust.DOUBTFUL))
    trust[seen], reason[seen] = int(Trust.TRUSTED), 0
    curled = _curled(record)
    mark(curled, Trust.DOUBTFUL, Reason.TURN_UNTOLD)
    # Curled up, and no roll of its trunk told from another: a ball, whose nose may be the rump.
    ball = curled.any(axis=1) & (_turn_doubt(record)[:, 0] > 0)
    mark(np.broadcast_to(ball[:, None], trust.shape), Trust.DOUBTFUL, Reason.FACING_UNTOLD)
    rough = _rough_and_little_shown(record, unit, limits)
    for limb in range(1 if limits is RODENTS else 0, record.bad.shape[1]):  # a rodent's trunk: by `_around`
        # A frame that was not tracked says nothing of those beside it.
        doubted = np.flatnonzero((trust[:, limb] > 0) & np.isfinite(record.bad[:, limb]))
        for before, after in pairwise(doubted):
            between = np.arange(before + 1, after)
            # What goes astray unseen and comes back unseen has not been right between, if it fits roughly there.
            unseen = np.isin(reason[[before, after], limb], UNSEEN).all() and rough[between, limb].all()
            if len(between) and (len(between) <= BETWEEN or unseen):
                between = between[trust[between, limb] == int(Trust.TRUSTED)]
                trust[between, limb], reason[between, limb] = int(Trust.DOUBTFUL), reason[before, limb]
    return trust, reason


def lead_speaks_against(record: LimbRecord, limits: Limits) -> Bools:
    """(T, L) limbs of which another place explains as much; the trunk has no rivals."""
    return np.asarray(np.nan_to_num(record.lead, nan=1.0) < _least_lead(record, limits))


def images_could_tell(record: LimbRecord, legs: Ints, *, unit: float, limits: Limits) -> Bools:
    """(T, legs) rodents' legs that would be judged otherwise if images showed all feet: of the others nobody asks."""
    shown = np.full(record.bad.shape, np.nan)
    blind = judge_limbs(replace(record, shown=shown.copy()), unit=unit, limits=limits)
    shown[:, legs] = 0.0
    best = judge_limbs(replace(record, shown=shown), unit=unit, limits=limits)
    return np.asarray(((best[0] != blind[0]) | (best[1] != blind[1]))[:, legs])


def _foot_unseen(record: LimbRecord, views: float = SHOWN) -> Bools:
    """(T, L) legs of a rodent whose foot fewer views than this show in most of the frames around."""
    return np.asarray(np.isfinite(record.feet) & (_around(record.feet) < views - 0.5))


def _better_places(record: LimbRecord) -> Floats:
    """(T, L) share of the places around that show a foot better in the images; 1 where these say nothing.

    They show that a paw is there, not whose: one view at least must have a foot of this leg in its silhouette. Of a
    mouse curled up, faced wrongly, a left leg stood on the right paw, 26 mm off, and the images showed it.
    """
    return np.where(_foot_unseen(record, 1.0), 1.0, np.nan_to_num(record.shown, nan=1.0))


def _stands(record: LimbRecord, trust: Ints) -> Bools:
    """(T, L) hind feet of a rodent that stand where such a trunk has them, under one that is believed."""
    return np.asarray((np.nan_to_num(record.standing, nan=np.inf) < STANDS) & (trust[:, :1] == int(Trust.TRUSTED)))


def _curled(record: LimbRecord) -> Bools:
    """(T, L) hind feet of an animal that is curled up in one of the frames around.

    How far it is curled is known to some ten degrees, and it does not uncurl within a frame or two.
    """
    return np.asarray(_around(np.where(np.isnan(record.bad), np.nan, np.isposinf(record.standing))) > 0)


def limb_doubt(record: LimbRecord, *, unit: float, limits: Limits = PEOPLE) -> Floats:
    """(T, L) what doubt about a limb adds to the sigma of its points, mm: 0 where it is explained and has a lead."""
    unexplained = np.clip((np.nan_to_num(record.bad, nan=1.0) - limits.doubt) / (LOSS - limits.doubt), 0.0, 1.0)
    # Doubt grows from the limit down to a lead that is 0.06 less.
    rival = np.clip((_least_lead(record, limits) - np.nan_to_num(record.lead, nan=1.0)) / 0.06, 0.0, 1.0)
    rough = np.clip(np.nan_to_num(record.residual) / _rough(record, unit, limits) - 1.0, 0.0, 1.0)
    weak = np.clip(np.nan_to_num(record.weak) / _weak(record, unit, limits) - 1.0, 0.0, 1.0)
    turned = 0.5 * np.clip(_turn_doubt(record), 0.0, 1.0)
    alone = 0.1 * _unchecked(record)
    stood = STOOD / REACH * (_foot_unseen(record) & (_better_places(record) >= PLACES))
    curled = 0.5 * _curled(record)
    share = np.max([unexplained, 0.5 * rival, turned, 0.3 * rough, 0.3 * weak, alone, stood, curled], axis=0)
    doubt = REACH * unit * share
    if limits is not RODENTS:
        wrong = _mostly_contradicted(*judge_limbs(record, unit=unit, limits=limits))
        doubt[wrong] = np.maximum(doubt[wrong], doubt[wrong].mean(axis=1, keepdims=True))
    return np.asarray(np.maximum(doubt, _leapt(record, unit, limits)))


def _leapt(record: LimbRecord, unit: float, limits: Limits) -> Floats:
    """(T, L) how far a limb leapt, mm, here or before and after a stretch that it spent elsewhere; 0 if it did not.

    Half of what it came back by shows on either side of a leap, and any part of all of it may be the error.
    """
    leap = np.nan_to_num(record.leap)
    leap = np.where(leap > limits.leap * unit, leap, 0.0)
    return np.stack([with_stretches_between(own) for own in leap.T], axis=1)


def _mostly_contradicted(trust: Ints, reason: Ints) -> Bools:
    """(T,) frames in which silhouettes contradict the trunk and, with it, most of a person.

    Size, lengths or the whole pose are wrong then, and a limb that seems right hangs on that: the wrist of a child
    whose body came out a quarter too large was 114 mm off, and the arm alone was explained.
    """
    contradicted = (trust > 0) & np.isin(reason, CONTRADICTED)
    return np.asarray(contradicted[:, 0] & (contradicted.mean(axis=1) > 0.5))


def _unchecked(record: LimbRecord) -> Bools:
    """(T, L) limbs that fewer than two views show, where too few cameras see the body to carve the rest away."""
    views = np.nan_to_num(record.views)
    unchecked = (views < SHOWN) & (views.max(axis=1, keepdims=True) < CHECKED)
    unchecked[:, 0] = False
    return np.asarray(unchecked)


def _least_lead(record: LimbRecord, limits: Limits) -> Floats:
    """(T, L) lead over another place of a limb, below which it is doubtful.

    A rodent's head (which is also turned in place) stands out, unlike its legs: another place that explains the
    silhouettes better is a doubt.
    """
    return np.where(np.isfinite(record.turned), max(limits.ambiguous, 0.0), limits.ambiguous)


def _turn_doubt(record: LimbRecord) -> Floats:
    """(T, L) by how much the lead over itself turned in place is too small, here or over the frames around; 1: none."""
    known = np.isfinite(record.turned)
    lead = np.where(known, np.minimum(_around(record.turned), np.nan_to_num(record.turned)), 1.0)
    wanted = np.where(np.arange(known.shape[1]) == 0, TURN, NOD)  # the trunk is rolled, the head nodded
    return np.asarray(np.maximum(1.0 - lead / wanted, 0.0))


def _around(values: Floats) -> Floats:
    """(T, L) means of values over the frames around, of those that are known; 0 where none is."""
    known, frames = np.isfinite(values), len(values)
    total, count = np.zeros(known.shape), np.zeros(known.shape)
    reach = min(TOGETHER, frames - 1)
    for shift in range(-reach, reach + 1):
        to = slice(max(-shift, 0), min(frames, frames - shift))
        of = slice(max(shift, 0), min(frames, frames + shift))
        total[to] += np.nan_to_num(values[of])
        count[to] += known[of]
    return np.asarray(total / np.maximum(count, 1))


def _rough(record: LimbRecord, unit: float, limits: Limits) -> Floats:
    """(T, L) residual from which on a limb is doubtful, mm; the trunk is the first."""
    limit = np.where(np.nan_to_num(record.views) < SHOWN, limits.hidden_rough, limits.rough)
    if limits is not RODENTS:
        limit = limit * np.where(np.nan_to_num(record.views).max(axis=1, keepdims=True) < MANY, FEW_ROUGH, 1.0)
    limit[:, 0] = limits.trunk_rough
    limit = unit * limit
    residual = np.nan_to_num(record.residual)
    astray = _enclosed(residual > limit, residual > limits.hardly_better * limit)
    return np.where(astray, limits.hardly_better * limit, limit)


def _weak(record: LimbRecord, unit: float, limits: Limits) -> Floats:
    """(T, L) uncertainty of a limb by its own outlines from which on it is doubtful, mm.

    It takes outlines at their word: where few views show a limb, and its outlines leave more than good ones do, less.
    """
    few = np.nan_to_num(record.views) <= SHOWN
    rough = np.nan_to_num(record.residual) > 0.5 * limits.hidden_rough * unit
    limit = unit * np.where(few & rough, limits.few_weak, limits.weak)
    weak = np.nan_to_num(record.weak)
    astray = _lingering(weak > limit, few & rough & (weak > limits.told_again * limit))
    limit = np.where(astray, limits.told_again * limit, limit)
    if limits is not RODENTS:  # what is left is doubted by itself: doubt that lingered so easily would never end
        limit = limit * np.where(np.nan_to_num(record.views).max(axis=1, keepdims=True) < CHECKED, UNCHECKED, 1.0)
    return np.asarray(limit)


def _rough_and_little_shown(record: LimbRecord, unit: float, limits: Limits) -> Bools:
    """(T, L) limbs of people that leave more than good ones do, and that not many views show."""
    if limits is RODENTS:  # furry
        return np.zeros(record.bad.shape, np.bool_)
    rough = np.nan_to_num(record.residual) > 0.5 * limits.hidden_rough * unit
    return np.asarray(rough & (np.nan_to_num(record.views) < MANY))


def _lingering(doubted: Bools, unsure: Bools) -> Bools:
    """(T, L) frames in a row in which a limb is doubted, or too unsure to end a doubt before or after them."""
    result = doubted.copy()
    for limb in range(doubted.shape[1]):
        open_still = doubted[:, limb] | unsure[:, limb]
        for run in np.split(np.arange(len(open_still)), np.flatnonzero(np.diff(open_still)) + 1):
            if open_still[run].all() and doubted[run, limb].any():
                result[run, limb] = True
    return result


def _enclosed(doubted: Bools, unsure: Bools) -> Bools:
    """(T, L) frames between two doubted ones, all of which are unsure."""
    result = np.zeros_like(doubted)
    for limb in range(doubted.shape[1]):
        for before, after in pairwise(np.flatnonzero(doubted[:, limb])):
            between = slice(before + 1, after)
            result[between, limb] = unsure[between, limb].all()
    return result


def _facing_told(limb_trust: Ints, limb_reason: Ints, names: Sequence[str]) -> Bools:
    """(T,) whether head or tail of a rodent is believed in at least half of the frames around.

    A trunk is much alike from both ends, and turned round it is explained as well: its ends tell which is which. A head
    of which nothing but the nod is not known is where it is.
    """
    ends = [names.index(name) for name in ENDS if name in names]
    if not ends:
        return np.ones(len(limb_trust), np.bool_)
    told = np.where(
        (limb_trust == int(Trust.LOST)).all(axis=1, keepdims=True),
        np.nan,
        ((limb_trust == int(Trust.TRUSTED)) | (limb_reason == int(Reason.TURN_UNTOLD)))[:, ends].any(
            axis=1, keepdims=True
        ),
    )
    return np.asarray(_around(told)[:, 0] >= 0.5)


def frames_with_limbs(
    trust: Ints, reason: Ints, limb_trust: Ints, limb_reason: Ints, names: Sequence[str]
) -> tuple[Ints, Ints]:
    """Bring frames and limbs together; changes the limbs in place, returns the frames' trust (T,) and reason (T,).

    A person's frame is trusted only if all limbs are. A rodent's limbs are under it as a rule: that some are not seen
    is said of them, and is no doubt about the frame unless the silhouettes contradict one; but where neither head nor
    tail is believed, it may face the other way. A doubt about the frame that no limb accounts for, a jump above all, is
    about all limbs, and of a rodent any doubt about the frame is: its limbs are too small to account for one, and hang
    on a trunk that is as large as all of them; in a lost frame all are lost.
    """
    trust, reason = trust.copy(), reason.copy()
    person = any(name.endswith("_arm") for name in names)
    if limits_of(names) is RODENTS:
        wrong = np.isin(limb_reason[:, :1], CONTRADICTED) & (limb_trust == int(Trust.TRUSTED))
        limb_reason[wrong] = np.broadcast_to(limb_reason[:, :1], wrong.shape)[wrong]
        limb_trust[wrong] = int(Trust.DOUBTFUL)
        untold = ~_facing_told(limb_trust, limb_reason, names) & (trust == int(Trust.TRUSTED))
        trust[untold], reason[untold] = int(Trust.DOUBTFUL), int(Reason.FACING_UNTOLD)
    told = limb_trust if person else np.where(np.isin(limb_reason, UNSEEN), 0, limb_trust)
    worst = told.max(axis=1, initial=0)
    unaccounted = (worst == int(Trust.TRUSTED)) if person else np.ones(len(trust), np.bool_)
    unaccounted |= reason == int(Reason.JUMP)  # of the whole body: no limb accounts for it
    whole = (trust == int(Trust.LOST)) | ((trust != int(Trust.TRUSTED)) & unaccounted)
    for level in (Trust.DOUBTFUL, Trust.LOST):
        rows = whole & (trust == int(level))
        raised = rows[:, None] & (limb_trust < int(level))
        limb_trust[raised] = int(level)
        limb_reason[raised] = np.broadcast_to(reason[:, None], limb_reason.shape)[raised]
    doubted = (worst > 0) & (trust == int(Trust.TRUSTED))
    trust[doubted], reason[doubted] = int(Trust.DOUBTFUL), int(Reason.A_LIMB)
    return trust, reason
