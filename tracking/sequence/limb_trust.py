"""Which limbs to believe in each frame, and why not the others: by what the images show of the limb itself.

All tests are absolute: a recording that is poor throughout is not trusted throughout. The limits were chosen on tracks
of people that were never seen before, right and wrong ones: arms that stood 150 to 600 mm off had a residual of 16 to
25 thousandths, or no lead over their rivals; arms that were right at most 12 (7 where hidden by the trunk), and a lead
of 0.06 and more.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibration.foundation.arrays import Bools, Floats, Ints
from tracking.limbs.evidence import LimbRecord
from tracking.sequence.trust import Reason, Trust

__all__ = ["frames_with_limbs", "judge_limbs", "limb_doubt"]

DOUBT, LOSS = 0.012, 0.25
"""Unexplained and empty share of a limb (`LimbSight.bad`, mean of the views) from which on it is doubtful, or lost."""
ONE_VIEW = 0.08
"""The same in a single view."""
ROUGH, TRUNK_ROUGH = 12.0, 14.0
"""Root mean square of a limb's outline residuals from which on it is doubtful, and the trunk's, thousandths."""
WEAK = 4.0
"""Uncertainty of a limb's outer half along its worst direction, by its own outlines alone, from which on it is seen
from one side only, thousandths."""
HIDDEN_ROUGH, SHOWN = 10.0, 2.0
"""The same for a limb that fewer than two views show apart from the rest: the body's outline may pass for its own."""
AMBIGUOUS, HIDDEN_AMBIGUOUS = 0.06, 0.10
"""Lead over another place of the limb, below which either may be right; and for a limb that fewer than two views show
apart from the rest."""
UNSEEN = (int(Reason.HIDDEN), int(Reason.AMBIGUOUS_LIMB), int(Reason.ONE_SIDED))
"""Reasons that say that a limb is not seen, not that it is contradicted."""
REACH = 250.0
"""How far off a limb is that is explained by nothing, thousandths of the size: what doubt adds to its sigma."""


def judge_limbs(record: LimbRecord, *, unit: float) -> tuple[Ints, Ints]:
    """Return trust (T, L) and reason (T, L) of the limbs; ``unit`` is one thousandth of the subject's size, mm."""
    trust = np.zeros(record.bad.shape, np.int64)
    reason = np.zeros(record.bad.shape, np.int64)

    def mark(where: Bools, level: Trust, why: Reason) -> None:
        raised = where & (trust < int(level))
        trust[raised], reason[raised] = int(level), int(why)

    bad, outside, missing = (np.nan_to_num(values) for values in (record.bad, record.outside, record.missing))
    empty = outside >= missing
    mark(~np.isfinite(record.bad), Trust.LOST, Reason.NOT_TRACKED)
    for limit, level in ((LOSS, Trust.LOST), (DOUBT, Trust.DOUBTFUL)):
        mark((bad > limit) & empty, level, Reason.IN_EMPTY_AIR)
        mark((bad > limit) & ~empty, level, Reason.UNEXPLAINED_NEAR)
    mark(outside > ONE_VIEW, Trust.DOUBTFUL, Reason.IN_EMPTY_AIR)
    mark(missing > ONE_VIEW, Trust.DOUBTFUL, Reason.UNEXPLAINED_NEAR)
    off = np.nan_to_num(record.residual) > _rough(record, unit)
    hidden = np.nan_to_num(record.views) < SHOWN
    hidden[:, 0] = False
    mark(off & hidden, Trust.DOUBTFUL, Reason.HIDDEN)
    mark(off, Trust.DOUBTFUL, Reason.OUTLINE_OFF)
    mark(np.nan_to_num(record.weak) > WEAK * unit, Trust.DOUBTFUL, Reason.ONE_SIDED)
    lead = np.nan_to_num(record.lead, nan=1.0)  # the trunk has no rivals
    mark(hidden & ((lead < HIDDEN_AMBIGUOUS) | (record.views < 1)), Trust.DOUBTFUL, Reason.HIDDEN)
    mark(lead < AMBIGUOUS, Trust.DOUBTFUL, Reason.AMBIGUOUS_LIMB)
    return trust, reason


def limb_doubt(record: LimbRecord, *, unit: float) -> Floats:
    """(T, L) what doubt about a limb adds to the sigma of its points, mm: 0 where it is explained and has a lead."""
    unexplained = np.clip((np.nan_to_num(record.bad, nan=1.0) - DOUBT) / (LOSS - DOUBT), 0.0, 1.0)
    rival = np.clip(1.0 - np.nan_to_num(record.lead, nan=1.0) / AMBIGUOUS, 0.0, 1.0)
    rough = np.clip(np.nan_to_num(record.residual) / _rough(record, unit) - 1.0, 0.0, 1.0)
    weak = np.clip(np.nan_to_num(record.weak) / (WEAK * unit) - 1.0, 0.0, 1.0)
    doubt = np.max([unexplained, 0.5 * rival, 0.3 * rough, 0.3 * weak], axis=0)
    return np.asarray(REACH * unit * doubt)


def _rough(record: LimbRecord, unit: float) -> Floats:
    """(T, L) residual from which on a limb is doubtful, mm; the trunk is the first."""
    limit = np.where(np.nan_to_num(record.views) < SHOWN, HIDDEN_ROUGH, ROUGH)
    limit[:, 0] = TRUNK_ROUGH
    return np.asarray(unit * limit)


def frames_with_limbs(
    trust: Ints, reason: Ints, limb_trust: Ints, limb_reason: Ints, names: Sequence[str]
) -> tuple[Ints, Ints]:
    """Bring frames and limbs together; changes the limbs in place, returns the frames' trust (T,) and reason (T,).

    A person's frame is trusted only if all limbs are. A rodent's limbs are under it as a rule: that some are not seen
    is said of them, and is no doubt about the frame unless the silhouettes contradict one. A doubt about the frame that
    no limb accounts for is about all limbs; in a lost frame all are lost.
    """
    trust, reason = trust.copy(), reason.copy()
    person = any(name.endswith("_arm") for name in names)
    told = limb_trust if person else np.where(np.isin(limb_reason, UNSEEN), 0, limb_trust)
    worst = told.max(axis=1, initial=0)
    whole = (trust == int(Trust.LOST)) | ((trust != int(Trust.TRUSTED)) & (worst == int(Trust.TRUSTED)))
    for level in (Trust.DOUBTFUL, Trust.LOST):
        rows = whole & (trust == int(level))
        raised = rows[:, None] & (limb_trust < int(level))
        limb_trust[raised] = int(level)
        limb_reason[raised] = np.broadcast_to(reason[:, None], limb_reason.shape)[raised]
    doubted = (worst > 0) & (trust == int(Trust.TRUSTED))
    trust[doubted], reason[doubted] = int(Trust.DOUBTFUL), int(Reason.A_LIMB)
    return trust, reason
