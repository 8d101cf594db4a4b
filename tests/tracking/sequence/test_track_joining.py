"""Parts of a track: joined where they agree, marked where they do not, never averaged."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from track_parts import FRAMES, UNIT, part, truth

from calibration.foundation.errors import InputError
from calibration.foundation.result_files import open_results, text_array
from tracking.sequence.track_joining import TrackPart, compare, join_tracks, mean_agreement, pose_at
from tracking.sequence.trust import Reason, Seams, Trust, loosely_clothed, plausible_size


def two_parts(tmp_path: Path, **second: float) -> list[TrackPart]:
    """Return two parts that meet at frame 10 and overlap by two frames on either side."""
    return [
        TrackPart(part(tmp_path / "a.h5", 0, 12), 0, 0, 10),
        TrackPart(part(tmp_path / "b.h5", 8, 20, **second), 8, 10, 20),
    ]


def joined(tmp_path: Path, parts: list[TrackPart], *, plausible: bool = True) -> dict[str, np.ndarray]:
    parameters = {"parts": len(parts)}
    path = tmp_path / "track.h5"
    join_tracks(path, parts, FRAMES, unit=UNIT, margin=2, parameters=parameters, plausible=plausible)
    with open_results(tmp_path / "track.h5", stage="track") as file:
        return {name: file[name][()] for name in file}


def test_parts_that_agree_become_one(tmp_path: Path) -> None:
    track = joined(tmp_path, two_parts(tmp_path))
    assert np.array_equal(track["centres"], truth())
    assert (track["trust"] == int(Trust.TRUSTED)).all() and track["vertices"].shape == (FRAMES, 5, 3)
    assert compare(*two_parts(tmp_path)).distance == 0


def test_limbs_are_judged_with_the_whole(tmp_path: Path) -> None:
    track = joined(tmp_path, two_parts(tmp_path, empty=0.1))
    assert track["limb_trust"][:, 0].tolist() == [0] * 10 + [int(Trust.DOUBTFUL)] * 10
    assert (track["trust"][10:] == int(Trust.DOUBTFUL)).all() and (track["reason"][10:] == int(Reason.A_LIMB)).all()
    assert (track["limb_reason"][10:] == int(Reason.IN_EMPTY_AIR)).all()


def test_limbs_in_loose_clothes_are_told_by_their_girth() -> None:
    skirt = {"arm": 0.89, "belly": 0.98, "chest": 0.93, "head": 1.0, "shank": 0.95, "thigh": 1.65}
    assert loosely_clothed(skirt, ("trunk", "left_leg", "right_leg", "left_arm")) == ("left_leg", "right_leg")
    stout = dict.fromkeys(skirt, 1.3) | {"thigh": 1.5}
    assert loosely_clothed(stout, ("left_leg",)) == () == loosely_clothed({}, ("left_leg",))
    assert loosely_clothed({}, ("left_leg", "left_arm"), skirt=0.5) == ("left_leg",)
    assert loosely_clothed({}, ("left_leg",), skirt=0.2) == ()


def test_a_limb_in_loose_clothes_is_doubtful(tmp_path: Path) -> None:
    parts = two_parts(tmp_path)
    for one in parts:
        assert one.path is not None
        with h5py.File(one.path, "r+") as file:
            del file["limb_names"]
            file["limb_names"] = text_array(["left_leg"])
    path = tmp_path / "track.h5"
    girths = {"thigh": 1.7, "shank": 1.0, "belly": 1.0}
    join_tracks(path, parts, FRAMES, unit=UNIT, margin=2, parameters={}, girths=girths)
    with open_results(path, stage="track") as file:
        assert (file["limb_reason"][:] == int(Reason.LOOSE_CLOTHES)).all()
        assert (file["limb_trust"][:] == int(Trust.DOUBTFUL)).all() and (file["trust"][:] == int(Trust.DOUBTFUL)).all()


def test_no_frame_of_a_body_that_cannot_be_is_trusted(tmp_path: Path) -> None:
    track = joined(tmp_path, two_parts(tmp_path), plausible=False)
    assert (track["trust"] == int(Trust.DOUBTFUL)).all() and (track["reason"] == int(Reason.IMPLAUSIBLE_BODY)).all()
    # A person of 1.29 times the built-in's size was a person on a chair.
    assert not plausible_size("human", 1.29) and plausible_size("human", 1.06)
    assert plausible_size("subjects/stout", 3.0), "a folder's template says nothing about sizes"


def test_each_frame_comes_from_its_own_part(tmp_path: Path) -> None:
    track = joined(tmp_path, two_parts(tmp_path, shift=2.0))
    assert np.array_equal(track["centres"][:10], truth()[:10])
    assert np.array_equal(track["centres"][10:], truth()[10:] + 2.0)
    assert (track["trust"] == 0).all(), "3.5 mm apart is within the tolerance of 15"


def test_parts_that_disagree_are_marked(tmp_path: Path) -> None:
    seam = compare(*two_parts(tmp_path, shift=20.0, overlap=0.8))
    assert seam.distance == pytest.approx(20 * np.sqrt(3)) and (seam.left, seam.right) == pytest.approx((0.9, 0.8))
    track = joined(tmp_path, two_parts(tmp_path, shift=20.0))
    marked = np.flatnonzero(track["reason"] == int(Reason.PARTS_DISAGREE))
    # the step to frame 10 itself is a jump, which is said first where it is larger than usual
    assert set(marked) | set(np.flatnonzero(track["reason"] == int(Reason.JUMP))) == {8, 9, 10, 11}
    assert (track["trust"][[8, 9, 10, 11]] == int(Trust.DOUBTFUL)).all()


def test_an_evenly_poor_track_is_not_trusted(tmp_path: Path) -> None:
    """Every frame as bad as every other: what the template cannot explain is said."""
    track = joined(tmp_path, [TrackPart(part(tmp_path / "a.h5", 0, FRAMES, overlap=0.79), 0, 0, FRAMES)])
    assert (track["trust"] == int(Trust.DOUBTFUL)).all() and (track["reason"] == int(Reason.LOW_AGREEMENT)).all()


def test_a_sure_neighbour_vouches_for_an_unsure_start(tmp_path: Path) -> None:
    assert (joined(tmp_path, two_parts(tmp_path, lead=0.0))["trust"] == 0).all()
    alone = joined(tmp_path, two_parts(tmp_path, lead=0.0, shift=40.0))
    assert (alone["reason"][13:] == int(Reason.AMBIGUOUS_START)).all() and (alone["trust"][:8] == 0).all()


def test_parts_that_differ_but_are_no_rivals_vouch_for_each_other(tmp_path: Path) -> None:
    """Tail and feet of a real animal differ between two tracks of it; which way it faces does not."""
    parts = two_parts(tmp_path, lead=0.0, shift=10.0)
    assert parts[1].path is not None
    with h5py.File(parts[1].path, "r+") as file:
        file["centres"][:, 2] += 300.0  # one quad of three: the tail's
    seam = compare(*parts)
    assert seam.distance > 100.0 and seam.most == pytest.approx(10.0 * np.sqrt(3))
    track = joined(tmp_path, parts)
    assert (track["reason"] != int(Reason.AMBIGUOUS_START)).all() and (track["trust"][12:] == 0).all()
    assert (track["trust"][[8, 9, 10, 11]] == int(Trust.DOUBTFUL)).all()  # where they differ is said all the same


def test_nobody_vouches_across_a_leap(tmp_path: Path) -> None:
    """The second part turns round after the seam: of what it shows from there the first part knows nothing."""
    parts = two_parts(tmp_path, lead=0.0)
    assert parts[1].path is not None
    with h5py.File(parts[1].path, "r+") as file:
        file["centres"][7:] += 200.0
    track = joined(tmp_path, parts)
    assert track["reason"][15] == int(Reason.JUMP) and (track["trust"][:15] == 0).all()
    assert (track["reason"][16:] == int(Reason.AMBIGUOUS_START)).all()


def test_frames_vouch_for_what_they_are_connected_with() -> None:
    seams = Seams(np.array([5, 10]), np.array([True, False]))
    lead = np.repeat([0.2, 0.0, 0.1], 5)
    leaps = np.zeros(15, bool)
    leaps[[5, 10]] = True  # the tracks of two parts differ at a seam: no leap of the body
    assert seams.vouched(lead, leaps).tolist() == [0.2] * 10 + [0.1] * 5
    leaps[6] = True
    assert seams.vouched(lead, leaps).tolist() == [0.2] * 6 + [0.0] * 4 + [0.1] * 5
    # A rival that came back after two frames leaves a doubt in these alone, and nobody outside vouches for them.
    lead[2:4], leaps[6] = 0.001, False
    assert seams.vouched(lead, leaps).tolist() == [0.2] * 2 + [0.001] * 2 + [0.2] * 6 + [0.1] * 5


def test_a_rival_that_came_back_leaves_a_doubt_where_it_was_one(tmp_path: Path) -> None:
    parts = two_parts(tmp_path)
    assert parts[1].path is not None
    with h5py.File(parts[1].path, "r+") as file:
        file["lead"][-3:] = 0.001
    unsure = joined(tmp_path, parts)["reason"] == int(Reason.AMBIGUOUS_START)
    assert unsure.tolist() == [False] * (FRAMES - 3) + [True] * 3


def test_a_part_without_subject_is_lost_not_invented(tmp_path: Path) -> None:
    parts = [two_parts(tmp_path)[0], TrackPart(None, 8, 10, 20)]
    track = joined(tmp_path, parts)
    assert np.isnan(track["centres"][10:]).all() and (track["trust"][10:] == int(Trust.LOST)).all()
    assert mean_agreement(parts[1]) == 0 and pose_at(parts[1], 12) is None
    pose = pose_at(parts[0], 11)
    assert pose is not None and np.array_equal(pose[0].centres, truth()[11])
    with pytest.raises(InputError, match="two cameras"):
        join_tracks(tmp_path / "none.h5", parts[1:], FRAMES, unit=UNIT, margin=2, parameters={})
