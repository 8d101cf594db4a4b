"""Trust limb by limb, from made-up evidence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tracking.limbs.evidence import LimbRecord
from tracking.sequence.limb_trust import PEOPLE, RODENTS, STOOD, frames_with_limbs, judge_limbs, limb_doubt, limits_of
from tracking.sequence.trust import Reason, Trust, judge_track

UNIT = 1.0
PERSON, RODENT = ("trunk", "left_arm"), ("trunk", "left_fore_limb")


def good(frames: int = 3, limbs: int = 2) -> LimbRecord:
    """Frames in which every limb is explained, seen and without a rival."""
    zeros = np.zeros((frames, limbs))
    return LimbRecord(zeros, zeros, zeros, zeros + 4, zeros + 6.0, zeros + 2.0, zeros + 0.3, *(5 * (zeros + np.nan,)))


def with_one(record: LimbRecord, **changed: float) -> LimbRecord:
    """Change the second limb of the second frame."""
    rows = {key: values.copy() for key, values in record.rows().items()}
    for key, value in changed.items():
        rows[key][1, 1] = value
    return LimbRecord(**rows)


def throughout(record: LimbRecord, **changed: float) -> LimbRecord:
    """Change the second limb of all frames."""
    rows = {key: values.copy() for key, values in record.rows().items()}
    for key, value in changed.items():
        rows[key][:, 1] = value
    return LimbRecord(**rows)


def test_what_is_explained_is_trusted() -> None:
    trust, reason = judge_limbs(good(), unit=UNIT)
    assert not trust.any() and not reason.any()
    assert not limb_doubt(good(), unit=UNIT).any()


def test_each_kind_of_evidence_speaks_against_its_own_limb_alone() -> None:
    for changed, why in (
        ({"bad": 0.1, "outside": 0.3}, Reason.IN_EMPTY_AIR),
        ({"bad": 0.1, "missing": 0.3}, Reason.UNEXPLAINED_NEAR),
        ({"missing": 0.2}, Reason.UNEXPLAINED_NEAR),
        ({"residual": 25.0}, Reason.OUTLINE_OFF),
        ({"residual": 14.0, "views": 1.0}, Reason.HIDDEN),
        ({"weak": 6.0}, Reason.ONE_SIDED),
        ({"lead": -0.1}, Reason.AMBIGUOUS_LIMB),
    ):
        record = with_one(good(), **changed)
        trust, reason = judge_limbs(record, unit=UNIT)
        assert trust[1, 1] == Trust.DOUBTFUL and reason[1, 1] == why
        assert trust.sum() == 1
        if "bad" in changed or why in (Reason.OUTLINE_OFF, Reason.AMBIGUOUS_LIMB):
            assert limb_doubt(record, unit=UNIT)[1, 1] > 5


def test_a_recording_that_is_poor_throughout_is_not_trusted() -> None:
    poor = replace(good(), bad=np.full((3, 2), 0.1))
    assert judge_limbs(poor, unit=UNIT)[0].all()


def test_a_limb_that_one_of_two_views_shows_is_not_believed() -> None:
    for cameras, wanted in ((2.0, Trust.DOUBTFUL), (4.0, Trust.TRUSTED)):
        record = with_one(replace(good(), views=np.full((3, 2), cameras)), views=1.0)
        trust, reason = judge_limbs(record, unit=UNIT)
        assert trust[1, 1] == wanted and trust.sum() == int(wanted)
        assert reason[1, 1] == (Reason.HIDDEN if wanted else 0)
        assert (limb_doubt(record, unit=UNIT)[1, 1] > 5) == bool(wanted)


def test_a_body_that_turns_round_for_some_frames_is_doubted_in_all_of_them_limb_by_limb() -> None:
    centres = np.zeros((40, 4, 3))
    centres[:, :, 0] = 5.0 * np.arange(40)[:, None]
    centres[12:17] += 400.0 * np.array([[1.0, -1, 1], [-1, 1, 1], [1, 1, -1], [-1, -1, -1]])
    trust, reason = judge_track(np.full((40, 4), 0.95), np.ones(40), centres, np.ones(40), unit=UNIT)
    assert set(np.flatnonzero(reason == Reason.JUMP)) == {12, 13, 14, 15, 16, 17}
    limb_trust, limb_reason = judge_limbs(good(40), unit=UNIT)
    limb_trust[14, 0] = int(Trust.DOUBTFUL)  # what one limb lacks does not account for it
    frames_with_limbs(trust, reason, limb_trust, limb_reason, PERSON)
    assert limb_trust[12:18].all() and not limb_trust[:12].any() and not limb_trust[18:].any()


def test_what_was_not_tracked_is_lost() -> None:
    trust, reason = judge_limbs(LimbRecord.empty(2, 2), unit=UNIT)
    assert (trust == Trust.LOST).all() and (reason == Reason.NOT_TRACKED).all()


def test_a_frame_is_trusted_only_with_all_its_limbs() -> None:
    limb_trust, limb_reason = judge_limbs(with_one(good(), residual=25.0), unit=UNIT)
    trust, reason = frames_with_limbs(np.zeros(3, int), np.zeros(3, int), limb_trust, limb_reason, PERSON)
    assert trust.tolist() == [0, 1, 0] and reason[1] == Reason.A_LIMB
    assert limb_trust[1].tolist() == [0, 1]


def test_a_doubt_about_the_frame_that_no_limb_accounts_for_is_about_all() -> None:
    limb_trust, limb_reason = judge_limbs(with_one(good(), residual=25.0), unit=UNIT)
    frames = np.array([1, 1, 2])
    why = np.array([int(Reason.JUMP), int(Reason.LOW_AGREEMENT), int(Reason.TOO_FEW_VIEWS)])
    trust, _ = frames_with_limbs(frames, why, limb_trust, limb_reason, PERSON)
    assert trust.tolist() == [1, 1, 2]
    assert limb_trust.tolist() == [[1, 1], [0, 1], [2, 2]]
    assert limb_reason[0].tolist() == [int(Reason.JUMP)] * 2


def test_a_limb_that_is_not_seen_is_no_doubt_about_a_rodent() -> None:
    for names, wanted in ((PERSON, [0, 1, 0]), (RODENT, [0, 0, 0])):
        limb_trust, limb_reason = judge_limbs(with_one(good(), lead=0.0), unit=UNIT)
        frames = frames_with_limbs(np.zeros(3, int), np.zeros(3, int), limb_trust, limb_reason, names)[0]
        assert frames.tolist() == wanted and limb_trust[1, 1] == Trust.DOUBTFUL


def test_a_rodents_limits_are_wider_but_a_strained_head_is_not_believed() -> None:
    limits = limits_of(("trunk", "head", "left_fore_limb"))
    assert limits is RODENTS and limits_of(PERSON) is PEOPLE
    furry = with_one(good(), residual=18.0, bad=0.03, lead=-0.05)
    assert judge_limbs(furry, unit=UNIT)[0][1, 1] == Trust.DOUBTFUL
    assert not judge_limbs(furry, unit=UNIT, limits=limits)[0].any()
    for changed in ({"lead": -0.5}, {"views": 1.0, "lead": 0.0}, {"bad": 0.1}, {"missing": 0.3}, {"residual": 30.0}):
        record = with_one(good(), **changed)
        assert judge_limbs(record, unit=UNIT, limits=limits)[0][1, 1] == Trust.DOUBTFUL, changed
    assert limb_doubt(with_one(good(), lead=-0.5), unit=UNIT, limits=limits)[1, 1] > 50


def test_a_limb_is_not_believed_for_a_moment_between_two_doubts() -> None:
    record = LimbRecord(**{key: np.repeat(values[:1], 12, axis=0) for key, values in good().rows().items()})
    rows = record.rows()
    for frame in (2, 5, 11):
        rows["residual"][frame, 1] = 25.0
    trust, reason = judge_limbs(LimbRecord(**rows), unit=UNIT)
    assert np.flatnonzero(trust[:, 1]).tolist() == [2, 3, 4, 5, 11]
    assert (reason[2:6, 1] == Reason.OUTLINE_OFF).all()


def test_a_persons_trunk_is_not_believed_for_a_moment_between_two_doubts_either() -> None:
    record = good(frames=5)
    record.bad[[1, 3], 0] = 0.02
    assert judge_limbs(record, unit=UNIT)[0][:, 0].tolist() == [0, 1, 1, 1, 0]


def test_a_limb_once_seen_from_one_side_is_believed_again_only_where_outlines_hold_it_clearly() -> None:
    record = good(frames=8)
    record.views[:6, 1] = 2.0
    record.weak[:, 1] = [2.0, 3.5, 6.0, 3.5, 3.0, 2.0, 3.5, 3.5]
    trust, reason = judge_limbs(record, unit=UNIT)
    assert trust[:, 1].tolist() == [0, 1, 1, 1, 1, 0, 0, 0] and reason[4, 1] == Reason.ONE_SIDED
    assert (limb_doubt(record, unit=UNIT)[1:5, 1] > 10).all()
    record.views[3:, 1] = 3.0  # a third view tells it
    assert judge_limbs(record, unit=UNIT)[0][:, 1].tolist() == [0, 1, 1, 0, 0, 0, 0, 0]
    record = replace(record, weak=np.minimum(record.weak, 3.9))  # never doubted: unsure is not wrong
    assert not judge_limbs(record, unit=UNIT)[0].any()


def test_outlines_of_two_cameras_must_hold_a_persons_limb_firmly() -> None:
    record = good()
    record.weak[:, 1] = 2.5
    assert not judge_limbs(record, unit=UNIT)[0].any()
    two = replace(record, views=np.full((3, 2), 2.0))
    trust, reason = judge_limbs(two, unit=UNIT)
    assert trust[:, 1].all() and (reason[:, 1] == Reason.ONE_SIDED).all() and limb_doubt(two, unit=UNIT)[:, 1].all()
    two.weak[:, 1] = [2.5, 1.6, 1.6]  # no doubt that lingers: two cameras would never end it
    assert judge_limbs(two, unit=UNIT)[0][:, 1].tolist() == [1, 0, 0]


def test_a_trunk_whose_roll_nothing_tells_is_doubted_alone() -> None:
    for lead, doubted in ((0.002, True), (-0.01, True), (0.02, False), (np.nan, False)):
        record = good()
        rows = {key: values.copy() for key, values in record.rows().items()}
        rows["turned"][:, 0] = lead
        trust, reason = judge_limbs(LimbRecord(**rows), unit=UNIT, limits=RODENTS)
        assert (trust[:, 0] == Trust.DOUBTFUL).all() == doubted and not trust[:, 1].any()
        assert (limb_doubt(LimbRecord(**rows), unit=UNIT, limits=RODENTS)[:, 0] > 5).all() == doubted
        if doubted:
            assert (reason[:, 0] == Reason.TURN_UNTOLD).all()


def test_a_rodents_head_is_not_believed_where_another_place_explains_more_nor_any_limb_in_a_doubtful_frame() -> None:
    names = ("trunk", "head", "left_fore_limb")
    empty = np.zeros((4, 3))
    turned = np.full((4, 3), np.nan)
    turned[:, :2] = 0.02
    lead = np.array([[np.nan, 0.1, 0.1], [np.nan, -0.03, -0.03], [np.nan, 0.1, 0.1], [np.nan, 0.1, 0.1]])
    unknown = empty + np.nan
    record = LimbRecord(empty, empty, empty, empty + 4, empty + 6.0, empty + 2.0, lead, turned, *(4 * (unknown,)))
    limb_trust, limb_reason = judge_limbs(record, unit=UNIT, limits=limits_of(names))
    assert limb_trust.tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 0]]
    assert limb_reason[1, 1] == Reason.AMBIGUOUS_LIMB
    limb_trust[3, 2], limb_reason[3, 2] = Trust.DOUBTFUL, Reason.IN_EMPTY_AIR
    frames = np.array([0, 0, 0, 1]), np.array([0, 0, 0, int(Reason.LOW_AGREEMENT)])
    frames_with_limbs(*frames, limb_trust, limb_reason, names)
    assert limb_trust[3].tolist() == [1, 1, 1] and limb_trust[2].tolist() == [0, 0, 0]


def test_a_rodents_limbs_hang_on_its_trunk() -> None:
    """A trunk that silhouettes contradict makes all doubtful; one whose roll alone is not known does not."""
    names = ("trunk", "head", "left_fore_limb")
    for changed, all_doubted in (({"bad": 0.1, "missing": 0.1}, True), ({"turned": 0.0}, False)):
        rows = {key: values.copy() for key, values in good(2, 3).rows().items()}
        for key, value in changed.items():
            rows[key][1, 0] = value
        limb_trust, limb_reason = judge_limbs(LimbRecord(**rows), unit=UNIT, limits=RODENTS)
        trust, _ = frames_with_limbs(np.zeros(2, int), np.zeros(2, int), limb_trust, limb_reason, names)
        assert limb_trust[0].tolist() == [0, 0, 0]
        assert limb_trust[1].tolist() == ([1, 1, 1] if all_doubted else [1, 0, 0])
        assert trust.tolist() == [0, int(all_doubted)]


def test_a_small_furry_body_may_overlap_less_than_a_person() -> None:
    overlap, still = np.full((6, 4), 0.78), np.zeros((6, 2, 3))
    for limits, doubted in ((PEOPLE, True), (RODENTS, False)):
        trust, _ = judge_track(overlap, np.ones(6), still, np.ones(6), unit=UNIT, poor=limits.poor)
        assert (trust == Trust.DOUBTFUL).all() == doubted and trust.any() == doubted


def test_a_rodent_overlaps_less_in_some_poses_than_in_others_and_a_person_does_not() -> None:
    """Silhouettes of a small animal err by more in one pose than in another; its limbs are judged by themselves."""
    overlap, still = np.full((40, 4), 0.85), np.zeros((40, 2, 3))
    overlap[7], overlap[9] = 0.79, 0.73
    for limits, doubted in ((PEOPLE, [7, 9]), (RODENTS, [9])):
        trust, reason = judge_track(
            overlap, np.ones(40), still, np.ones(40), unit=UNIT, poor=limits.poor, fall=limits.fall
        )
        assert np.flatnonzero(trust == Trust.DOUBTFUL).tolist() == doubted
        assert (reason[doubted] == Reason.LOW_AGREEMENT).all()


def test_a_rodent_of_which_neither_end_is_believed_may_face_the_other_way() -> None:
    names = ("trunk", "tail", "left_hind_limb", "head")
    for ends, doubted in (((0, 0), []), ((1, 0), []), ((0, 1), []), ((1, 1), list(range(9)))):
        limb_trust, limb_reason = np.zeros((9, 4), int), np.zeros((9, 4), int)
        limb_trust[:, [3, 1]] = ends
        limb_reason[:, 3] = int(Reason.AMBIGUOUS_LIMB)  # which by itself is no doubt about the frame
        trust, reason = frames_with_limbs(np.zeros(9, int), np.zeros(9, int), limb_trust, limb_reason, names)
        assert np.flatnonzero(limb_trust[:, 0]).tolist() == doubted
        assert np.flatnonzero(limb_trust[:, 2]).tolist() == doubted
        assert (reason[doubted] == Reason.FACING_UNTOLD).all() and (trust[doubted] == Trust.DOUBTFUL).all()
    # A head that may be nodded otherwise is still the head.
    limb_trust, limb_reason = np.zeros((9, 4), int), np.zeros((9, 4), int)
    limb_trust[:, [1, 3]], limb_reason[:, 3] = int(Trust.DOUBTFUL), int(Reason.TURN_UNTOLD)
    frames_with_limbs(np.zeros(9, int), np.zeros(9, int), limb_trust, limb_reason, names)
    assert not limb_trust[:, [0, 2]].any()
    # It does not turn round from one frame to the next: a moment's doubt is none, nor is a moment's belief a proof.
    for believed, doubted in (([0, 1, 2, 3, 5, 6, 7, 8], []), ([4], list(range(9)))):
        limb_trust, limb_reason = np.zeros((9, 4), int), np.zeros((9, 4), int)
        limb_trust[:, [1, 3]] = int(Trust.DOUBTFUL)
        limb_trust[believed, 3] = 0
        frames_with_limbs(np.zeros(9, int), np.zeros(9, int), limb_trust, limb_reason, names)
        assert np.flatnonzero(limb_trust[:, 0]).tolist() == doubted


def test_a_frame_that_was_not_tracked_is_no_doubt_about_those_beside_it() -> None:
    rows = {key: np.repeat(values[:1], 9, axis=0) for key, values in good().rows().items()}
    rows["residual"][5, 1] = 25.0
    for values in rows.values():
        values[[2, 8]] = np.nan
    trust, _ = judge_limbs(LimbRecord(**rows), unit=UNIT)
    assert trust[:, 1].tolist() == [0, 0, 2, 0, 0, 1, 0, 0, 2]


def test_a_foot_that_silhouettes_lack_is_believed_where_the_images_show_it() -> None:
    for changed in ({"bad": 0.1, "outside": 0.3}, {"missing": 0.3}, {"views": 1.0}, {"residual": 30.0}):
        for share, wanted in ((0.02, Trust.TRUSTED), (0.3, Trust.DOUBTFUL), (np.nan, Trust.DOUBTFUL)):
            record = with_one(good(), **changed, shown=share)
            assert judge_limbs(record, unit=UNIT, limits=RODENTS)[0][1, 1] == wanted
    # Left or right is not told where the trunk's roll is not.
    for roll, wanted in ((0.02, Trust.TRUSTED), (0.001, Trust.DOUBTFUL)):
        record = with_one(good(), bad=0.1, shown=0.02)
        record.turned[:, 0] = roll
        assert judge_limbs(record, unit=UNIT, limits=RODENTS)[0][1, 1] == wanted
    # A leg that hardly any view shows by itself may be anywhere under the body: its colours must be clearer.
    for views, believed in ((2.0, Trust.TRUSTED), (1.0, Trust.DOUBTFUL)):
        record = with_one(good(), missing=0.3, views=views, shown=0.08)
        assert judge_limbs(record, unit=UNIT, limits=RODENTS)[0][1, 1] == believed
    # Hidden, and contradicted besides: colours alone do not outweigh both.
    assert judge_limbs(with_one(good(), bad=0.3, views=1.0, shown=0.0), unit=UNIT, limits=RODENTS)[0][1, 1]
    # A leg that its outlines hold from one side only may stand on a fore paw, which looks the same.
    for weak, believed in ((2.2, Trust.TRUSTED), (2.8, Trust.DOUBTFUL)):
        record = with_one(good(), bad=0.1, views=2.0, weak=weak, residual=15.0, shown=0.02)
        assert judge_limbs(record, unit=UNIT, limits=RODENTS)[0][1, 1] == believed
    lost = with_one(good(), bad=0.4, outside=0.5, shown=0.0)
    assert judge_limbs(lost, unit=UNIT, limits=RODENTS)[0][1, 1] == Trust.LOST
    assert limb_doubt(with_one(good(), bad=0.1, shown=0.0), unit=UNIT, limits=RODENTS)[1, 1] > 5


def test_a_rodents_leg_that_two_views_show_must_be_held_firmly_by_them() -> None:
    for views, weak, wanted in ((2.0, 2.2, 0), (2.0, 2.8, 1), (3.0, 2.8, 0), (3.0, 4.5, 1)):
        record = with_one(good(), views=views, weak=weak, residual=15.0)
        trust, reason = judge_limbs(record, unit=UNIT, limits=RODENTS)
        assert trust[1, 1] == wanted and reason[1, 1] == (int(Reason.ONE_SIDED) if wanted else 0)
    assert not judge_limbs(with_one(good(), views=2.0, weak=2.8), unit=UNIT, limits=RODENTS)[0].any(), "it fits well"


def test_leads_over_a_turn_in_place_are_taken_together() -> None:
    """A frame that stands out is no proof; one that lacks its lead is doubted by itself: heads slip in a frame."""
    rows = {key: np.repeat(values[:1], 9, axis=0) for key, values in good().rows().items()}
    for usual, single, doubted in ((0.024, 0.016, []), (0.01, 0.024, list(range(9))), (0.024, 0.014, [4])):
        turned = np.full((9, 2), np.nan)
        turned[:, 1] = usual
        turned[4, 1] = single
        trust, _ = judge_limbs(LimbRecord(**rows | {"turned": turned}), unit=UNIT, limits=RODENTS)
        assert np.flatnonzero(trust[:, 1]).tolist() == doubted
    gap = np.full((9, 2), np.nan)
    gap[[0, 8], 1] = 0.03, -0.03
    trust, _ = judge_limbs(LimbRecord(**rows | {"turned": gap}), unit=UNIT, limits=RODENTS)
    assert trust[:, 1].tolist() == [0] * 8 + [1]


def test_a_motion_that_goes_on_is_no_jump_and_a_flip_is() -> None:
    """An animal that comes down from rearing is fast for some frames; one that flips, or flips back, is not."""
    rng = np.random.default_rng(3)
    still = 0.3 * UNIT * rng.normal(size=(5000, 6, 3)).cumsum(axis=0)
    way = rng.normal(size=(6, 3))
    rises: dict[str, tuple[int, ...]] = {"runs": (40, 30, 20, 12, 6), "flips": (100,), "flips back": (100, -100)}
    for name, steps in rises.items():
        for first in (20, 4094, 4095, 4096):  # rows are read some at a time
            moved = still.copy()
            for k, size in enumerate(steps):
                moved[first + k :] += size * UNIT * way
            trust, reason = judge_track(np.full((5000, 4), 0.95), np.ones(5000), moved, np.ones(5000), unit=UNIT)
            jumps = np.flatnonzero(reason == int(Reason.JUMP)).tolist()
            assert jumps == ([] if name == "runs" else list(range(first, first + len(steps)))), (name, first)
            assert (trust[jumps] == Trust.DOUBTFUL).all()


def test_what_silhouettes_hold_against_a_rodents_limb_in_one_frame_is_weighed_with_the_frames_around() -> None:
    rows = {key: np.repeat(values[:1], 9, axis=0) for key, values in good().rows().items()}
    for usual, single, doubted in ((0.03, 0.07, False), (0.03, 0.12, True), (0.06, 0.02, True)):
        bad = np.full((9, 2), 0.0)
        bad[:, 1] = usual
        bad[4, 1] = single
        record = LimbRecord(**rows | {"bad": bad, "missing": bad})
        assert bool(judge_limbs(record, unit=UNIT, limits=RODENTS)[0][4, 1]) == doubted
        assert judge_limbs(record, unit=UNIT)[0][4, 1] == Trust.DOUBTFUL  # a person's is judged frame by frame
    lone = LimbRecord(**{key: np.where(np.arange(9)[:, None] == 4, values, np.nan) for key, values in rows.items()})
    lone.bad[4, 1] = 0.06
    assert judge_limbs(lone, unit=UNIT, limits=RODENTS)[0][4].tolist() == [0, 1]


@pytest.mark.parametrize(
    "changed, believed",
    [
        ({"standing": 1.0}, True),
        ({"standing": 3.0}, False),  # not where hind feet stand
        ({"standing": np.nan}, False),  # no hind foot
        ({"standing": 1.0, "bad": 0.09}, True),  # shade beside it
        ({"standing": 1.0, "bad": 0.2}, False),
        ({"standing": 1.0, "missing": 0.4}, False),
    ],
)
def test_a_leg_whose_foot_is_seen_is_believed_where_it_stands_as_hind_feet_do(
    changed: dict[str, float], believed: bool
) -> None:
    record = throughout(good(9), views=0.0, feet=2.0, **changed)
    trust, _ = judge_limbs(record, unit=UNIT, limits=RODENTS)
    assert (trust[:, 1] == int(Trust.TRUSTED)).all() == believed


def test_a_foot_that_no_two_views_show_is_not_believed_for_standing_where_feet_stand() -> None:
    """Neither where its leg fits well, nor where it is hidden; its sigma is as far as feet spread about that place."""
    for views in (0.0, 4.0):
        record = throughout(good(9), views=views, standing=0.5, feet=1.0, residual=2.0)
        trust, reason = judge_limbs(record, unit=UNIT, limits=RODENTS)
        assert (trust[:, 1] == int(Trust.DOUBTFUL)).all() and (trust[:, 0] == int(Trust.TRUSTED)).all()
        assert (limb_doubt(record, unit=UNIT, limits=RODENTS)[:, 1] >= 0.99 * STOOD).all()
    assert (reason[:, 1] == int(Reason.FOOT_UNSEEN)).all()
    # One frame in which a view less shows it is no doubt.
    for frames, believed in (([4], True), ([2, 3, 4, 5, 6], False)):
        seen = throughout(good(9), feet=2.0)
        seen.feet[frames, 1] = 1.0
        assert (judge_limbs(seen, unit=UNIT, limits=RODENTS)[0][4, 1] == int(Trust.TRUSTED)) == believed
    # The images may show what silhouettes lack.
    shown = throughout(good(9), standing=0.5, feet=1.0, shown=0.08)
    assert not judge_limbs(shown, unit=UNIT, limits=RODENTS)[0].any()
    assert not limb_doubt(shown, unit=UNIT, limits=RODENTS).any()
    # But a paw that no silhouette has may be another's.
    other = throughout(good(9), standing=0.5, feet=0.0, shown=0.01)
    assert (judge_limbs(other, unit=UNIT, limits=RODENTS)[0][:, 1] == int(Trust.DOUBTFUL)).all()
    assert limb_doubt(other, unit=UNIT, limits=RODENTS)[:, 1].all()


def test_no_hind_foot_stands_under_a_trunk_whose_roll_is_not_told() -> None:
    record = throughout(good(9), views=0.0, standing=1.0)
    turned = np.full(record.turned.shape, np.nan)
    turned[:, 0] = 0.0
    trust, _ = judge_limbs(LimbRecord(**record.rows() | {"turned": turned}), unit=UNIT, limits=RODENTS)
    assert (trust[:, 1] == int(Trust.DOUBTFUL)).all()


def test_hind_feet_of_an_animal_that_is_curled_up_are_doubted() -> None:
    record = throughout(good(9), standing=np.inf)
    trust, reason = judge_limbs(record, unit=UNIT, limits=RODENTS)
    assert (trust[:, 1] == int(Trust.DOUBTFUL)).all() and (reason[:, 1] == int(Reason.TURN_UNTOLD)).all()
    assert (limb_doubt(record, unit=UNIT, limits=RODENTS)[:, 1] > 100.0).all()


def test_an_animal_that_is_curled_up_and_may_be_rolled_is_doubted_as_a_whole() -> None:
    record = throughout(good(9, 3), standing=np.inf)
    for lead, doubted in ((0.0, True), (0.02, False)):
        turned = np.full(record.turned.shape, np.nan)
        turned[:, 0] = lead
        trust, _ = judge_limbs(LimbRecord(**record.rows() | {"turned": turned}), unit=UNIT, limits=RODENTS)
        assert (trust[:, 2] == int(Trust.DOUBTFUL)).all() == doubted


def test_a_persons_limb_that_leaps_is_doubted_there_and_while_it_is_away() -> None:
    leap = np.zeros((30, 2))
    leap[[10, 11, 14, 15], 1] = 40.0
    record = replace(good(30), leap=leap)
    trust, reason = judge_limbs(record, unit=UNIT)
    assert np.flatnonzero(trust[:, 1]).tolist() == list(range(10, 16)) and not trust[:, 0].any()
    assert (reason[10:16, 1] == Reason.JUMP).all()
    assert (limb_doubt(record, unit=UNIT)[10:16, 1] == 40.0).all()
    assert not (judge_limbs(record, unit=UNIT, limits=RODENTS)[1] == Reason.JUMP).any()


def test_a_limb_on_a_body_that_is_contradicted_for_the_most_part_is_not_believed() -> None:
    for contradicted, wanted in ((4, 6), (3, 3)):
        residual = np.full((3, 6), 6.0)
        residual[1, :contradicted] = 20.0
        record = replace(good(3, 6), residual=residual)
        trust, _ = judge_limbs(record, unit=UNIT)
        assert trust.sum(axis=1).tolist() == [0, wanted, 0]
        assert (limb_doubt(record, unit=UNIT)[1, 5] > 20) == (wanted == 6)


def test_a_limb_seen_from_one_side_is_believed_again_sooner_where_it_fits_well() -> None:
    weak = np.full((4, 2), 1.0)
    weak[:, 1] = 1.0, 5.0, 3.0, 1.0
    for residual, wanted in ((7.0, [0, 1, 1, 0]), (3.0, [0, 1, 0, 0])):
        record = replace(good(4), weak=weak, views=np.full((4, 2), 2.0), residual=np.full((4, 2), residual))
        record.views[:, 0] = 4.0
        assert judge_limbs(record, unit=UNIT)[0][:, 1].tolist() == wanted


def test_a_persons_limb_that_fits_roughly_is_not_believed_where_three_cameras_see_it() -> None:
    for cameras, residual, wanted in ((4.0, 7.0, 0), (3.0, 7.0, 1), (3.0, 5.0, 0)):
        record = replace(good(), views=np.full((3, 2), cameras), residual=np.full((3, 2), residual))
        trust, reason = judge_limbs(record, unit=UNIT)
        assert trust[:, 1].tolist() == [wanted] * 3 and not trust[:, 0].any()
        assert (reason[:, 1] == Reason.OUTLINE_OFF).all() == bool(wanted)
    assert not (judge_limbs(record, unit=UNIT, limits=RODENTS)[1] == Reason.OUTLINE_OFF).any()
