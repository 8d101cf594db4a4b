"""Doubts that hold on: what errs in one frame by a limit does in the next, and a paw is not two."""

from __future__ import annotations

import numpy as np

from tracking.limbs.evidence import LimbRecord
from tracking.limbs.feet_apart import APART, in_one_place
from tracking.sequence.limb_trust import FEWER_PLACES, PEOPLE, PLACES, RODENTS, judge_limbs, limb_doubt
from tracking.sequence.trust import Reason, Trust


def good(frames: int) -> LimbRecord:
    """Frames in which trunk and limb are explained, seen and without a rival."""
    usual = {"bad": 0.0, "outside": 0.0, "missing": 0.0, "views": 4.0, "residual": 6.0, "weak": 2.0, "lead": 0.3}
    return LimbRecord(**{name: np.full((frames, 2), usual.get(name, np.nan)) for name in LimbRecord.NAMES})


def test_a_persons_limb_is_not_believed_between_frames_in_which_its_outline_is_off_if_it_fits_hardly_better() -> None:
    share = np.array([0.5, 0.95, 1.1, 0.98, 0.93, 0.9, 0.91, 0.93, 1.05, 0.9, 0.95, 0.9, 0.6, 0.9, 1.05, 0.95])
    record = good(len(share))
    record.residual[:, 1] = PEOPLE.rough * share
    trust, reason = judge_limbs(record, unit=1.0)
    assert np.flatnonzero(trust[:, 1]).tolist() == [2, 3, 4, 5, 6, 7, 8, 14] and not trust[:, 0].any()
    assert (reason[2:9, 1] == Reason.OUTLINE_OFF).all()
    assert (limb_doubt(record, unit=1.0)[2:9, 1] > 3).all()
    assert not limb_doubt(record, unit=1.0)[[0, 1, 9, 10, 11, 12, 13, 15], 1].any()
    record.residual[:, 1] = np.minimum(record.residual[:, 1], 0.99 * PEOPLE.rough)  # unsure is not wrong
    assert not judge_limbs(record, unit=1.0)[0].any()


def test_a_persons_limb_that_is_rough_between_two_frames_that_do_not_show_it_is_not_believed() -> None:
    """A boxer's wrist was 71 to 86 mm off between frames that held its arm from one side or told no place."""
    for residual, views, believed in ((8.0, 3.0, False), (4.0, 3.0, True), (8.0, 4.0, True)):
        record = good(12)
        record.views[:, 1], record.residual[:, 1] = views, residual
        record.weak[1, 1], record.lead[9, 1] = 5.0, 0.0
        trust, reason = judge_limbs(record, unit=1.0)
        assert not trust[2:9, 1].any() if believed else trust[2:9, 1].all()
        assert not trust[[0, 10, 11], 1].any() and reason[9, 1] == Reason.AMBIGUOUS_LIMB


def test_an_animal_does_not_uncurl_within_a_frame_or_two() -> None:
    record = good(12)
    record.standing[:, 1] = 0.5
    record.standing[6, 1] = np.inf
    record.feet[:, 1] = 4.0
    trust, reason = judge_limbs(record, unit=1.0, limits=RODENTS)
    assert np.flatnonzero(trust[:, 1]).tolist() == [4, 5, 6, 7, 8] and not trust[:, 0].any()
    assert (reason[4:9, 1] == Reason.TURN_UNTOLD).all()
    assert (limb_doubt(record, unit=1.0, limits=RODENTS)[4:9, 1] > 100).all()


def test_images_confirm_a_hidden_foot_that_stands_as_feet_do_only_where_they_are_clear() -> None:
    """A foot is put where feet stand: that it is there says little, and a fore paw's skin looks the same."""
    for views, share, believed in (
        (4.0, 0.5 * (FEWER_PLACES + PLACES), True),
        (0.0, 0.5 * (FEWER_PLACES + PLACES), False),
        (0.0, 0.5 * FEWER_PLACES, True),
    ):
        record = good(9)
        record.views[:, 1], record.standing[:, 1] = views, 0.5
        record.feet[:, 1], record.shown[:, 1] = 1.0, share
        trust, _ = judge_limbs(record, unit=1.0, limits=RODENTS)
        assert (trust[:, 1] == int(Trust.TRUSTED)).all() == believed


def test_two_feet_that_share_a_paw_are_in_one_place() -> None:
    unit = 0.08
    near, far = 0.9 * APART * unit, 1.1 * APART * unit
    feet = np.array([[0.0, 0, 0], [near, 0, 0], [0, 30.0, 0], [0, 30.0, far]])
    assert in_one_place(feet, unit).tolist() == [True, True, False, False]
