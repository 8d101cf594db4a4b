"""Hand-computed scores, HumanEva's two-ends averaging, and the traps of its relative variant."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.foundation.errors import InputError
from calibration.geometry.transforms import rotation_from_vector
from skeleton.analysis.humaneva import LIMB_ENDS, MARKERS, limb_ends_from_joints, official_scores, truth_from_points
from skeleton.analysis.scoring import match_joints, score_joints

NAMES = ("a", "b", "c", "d")


def test_scores_by_hand() -> None:
    truth = np.zeros((3, 4, 3))
    estimate = truth.copy()
    estimate[0, :, 0] = [3, 0, 0, 0]
    estimate[0, 0, 1] = 4  # joint a is 5 mm off: the frame's error is 5/4
    estimate[1, :, 2] = 2  # all 2 mm off
    estimate[2, 0] = np.nan  # not recovered: mean over the other three
    estimate[2, 1, 0] = 6
    scores = score_joints(NAMES, estimate, truth)
    assert np.allclose(scores.per_frame, [1.25, 2, 2])
    assert scores.mean == pytest.approx(1.75) and scores.median == 2
    assert scores.sd == pytest.approx(np.std([1.25, 2, 2]))
    assert scores.per_joint == pytest.approx([3.5, 8 / 3, 2 / 3, 2 / 3])
    assert scores.mpjpe == pytest.approx((5 + 8 + 6) / 11)
    assert scores.missing_share == pytest.approx(1 / 12)
    assert scores.pck(2) == pytest.approx(9 / 12)


def test_frames_with_missing_truth_do_not_count() -> None:
    truth = np.zeros((2, 4, 3))
    truth[0, 2] = np.nan
    estimate = np.ones((2, 4, 3))
    scores = score_joints(NAMES, estimate, truth)
    assert scores.valid.tolist() == [False, True]
    assert scores.mean == pytest.approx(np.sqrt(3))
    assert score_joints(NAMES, estimate, truth, whole_frames=False).valid.all()


def test_relative_and_aligned(rng: np.random.Generator) -> None:
    truth = rng.normal(size=(5, 4, 3)) * 100
    shifted = truth + np.array([10, 20, 30])
    relative = score_joints(NAMES, shifted, truth, relative_to="a")
    assert relative.names == ("b", "c", "d") and relative.mean < 1e-12
    moved = 1.1 * truth @ rotation_from_vector([0.1, 0.2, 0.3]).T + 5
    assert score_joints(NAMES, moved, truth, alignment="similarity").mean < 1e-10
    assert score_joints(NAMES, moved, truth, alignment="rigid").mean > 1
    assert score_joints(NAMES, moved, truth, alignment="rigid").alignment == "rigid"


def test_unmatched_names_say_the_nearest() -> None:
    assert match_joints(["x", "y"], ["a"], {"a": "y"}) == [1]
    with pytest.raises(InputError, match="did you mean 'left_elbow'"):
        match_joints(["left_elbow", "nose"], ["left_elbw"])


def humaneva_case() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return estimate and truth of one frame, the estimate off along x by a known amount at each limb end."""
    truth = {name: np.zeros((1, 3)) for name in LIMB_ENDS}
    off = {name: float(index) for index, name in enumerate(LIMB_ENDS)}
    return {name: np.array([[off[name], 0, 0]]) for name in LIMB_ENDS}, truth


def test_official_error_by_hand() -> None:
    """Limb end k is k mm off. Neck (1+2)/2, left elbow (5+6)/2, right (9+10)/2, knees (13+14)/2 and (17+18)/2."""
    estimate, truth = humaneva_case()
    scores = official_scores(estimate, truth)
    expected = [0, 1.5, 4, 5.5, 7, 8, 9.5, 11, 12, 13.5, 15, 16, 17.5, 19, 3]
    assert scores.errors[0] == pytest.approx(expected)
    assert scores.mean == pytest.approx(np.mean(expected))
    assert len(scores.names) == 15


def test_two_ends_average_errors_not_positions() -> None:
    """An elbow whose ends are off by +4 and -4 mm has error 4, not 0."""
    estimate, truth = humaneva_case()
    estimate["upperLArmDistal"] = np.array([[4.0, 0, 0]])
    estimate["lowerLArmProximal"] = np.array([[-4.0, 0, 0]])
    scores = official_scores(estimate, truth)
    assert scores.errors[0, scores.names.index("left_elbow")] == 4


def test_relative_variants() -> None:
    estimate, truth = humaneva_case()
    moved = {name: value + 50 for name, value in estimate.items()}
    relative = official_scores(moved, truth, mode="relative")
    assert len(relative.names) == 14 and "pelvis" not in relative.names
    by_name = dict(zip(relative.names, relative.errors[0], strict=True))
    assert by_name["thorax"] == pytest.approx(1.5) and by_name["head"] == pytest.approx(3)
    coded = official_scores(moved, truth, mode="relative_as_coded")
    by_name = dict(zip(coded.names, coded.errors[0], strict=True))
    assert by_name["thorax"] == pytest.approx((1 + 3) / 2) and by_name["head"] == pytest.approx(2)


def test_a_missing_truth_marker_invalidates_the_frame() -> None:
    estimate, truth = humaneva_case()
    truth["lowerRLegDistal"] = np.full((1, 3), np.nan)
    assert not official_scores(estimate, truth).valid.any()
    del estimate["headDistal"]
    with pytest.raises(InputError, match="estimate lacks headDistal"):
        official_scores(estimate, truth)


def test_joints_become_limb_ends() -> None:
    joints = {marker: np.full((2, 3), float(index)) for index, marker in enumerate(MARKERS)}
    ends = limb_ends_from_joints(joints)
    assert set(ends) == set(LIMB_ENDS)
    assert np.array_equal(ends["upperLLegDistal"], ends["lowerLLegProximal"])


def test_truth_from_plug_in_gait_points() -> None:
    sides = [side + part for side in "LR" for part in ("CLO", "HUO", "RAO", "FEP", "FEO", "TIO")]
    names = [*sides, "TRXO", "PELO", "PELA", "HEDO", "HEDP"]
    points = {name: np.zeros((1, 3)) for name in names}
    points["PELA"] = np.array([[100.0, 0, 0]])
    points["HEDP"] = np.array([[0, 0, 100.0]])
    truth = truth_from_points(points)
    assert truth["pelvis"].tolist() == [[-50, 0, 0]]
    assert truth["head"].tolist() == [[0, 0, 316.103]]
    del points["LHUO"]
    with pytest.raises(InputError, match="LHUO"):
        truth_from_points(points)
