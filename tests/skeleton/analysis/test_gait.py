"""Gait summaries of motions whose footfalls are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from skeleton.analysis.contacts import Contacts, detect_contacts
from skeleton.analysis.gait import foot_gait, gait_summary
from skeleton.bodies import load_body
from skeleton.motion_files import read_bvh
from skeleton.motions import make_motion
from skeleton.motions.retarget import motion_from_file


def test_strides_in_closed_form() -> None:
    """Stance of 60 frames, swing of 40, 100 mm per stride at 100 Hz."""
    frames = np.arange(450)
    states = frames % 100 < 60
    place = np.stack([100.0 * (frames // 100), 0 * frames, 0 * frames], axis=1).astype(float)
    gait = foot_gait(Contacts(states, 100.0, 0.0, 1.0, 1.0), place)
    assert gait.strides == 3
    np.testing.assert_allclose(gait.stride_s, 1.0)
    np.testing.assert_allclose(gait.stance_s, 0.6)
    np.testing.assert_allclose(gait.swing_s, 0.4)
    np.testing.assert_allclose(gait.length_mm, 100.0)
    np.testing.assert_allclose(gait.duty_factor, 0.6)


def test_a_stride_that_does_not_go_with_the_body_is_left_out() -> None:
    """The second stance is seen as two: between them the foot stays while the body goes on."""
    frames = np.arange(450)
    states = (frames % 100 < 60) & (frames != 130)
    place = np.stack([100.0 * (frames // 100), 0 * frames, 0 * frames], axis=1).astype(float)
    root = np.stack([1.0 * frames, 0.0 * frames], axis=1)
    contacts = Contacts(states, 100.0, 0.0, 1.0, 1.0)
    assert foot_gait(contacts, place).strides == 4
    gait = foot_gait(contacts, place, root=root, trunk_mm=60.0)
    np.testing.assert_allclose(gait.length_mm, 100.0)
    assert gait.strides == 3


def test_a_walking_mouse() -> None:
    body = load_body("mouse")
    motion = make_motion(body, "walk", seconds=3, rate_hz=200.0, rng=np.random.default_rng(1))
    summary = gait_summary(body, body.forward(motion.coordinates), 200.0)
    for column, foot in enumerate(motion.feet):
        assert summary.feet[foot].strides >= 5
        assert summary.feet[foot].duty_factor.mean() == pytest.approx(motion.contacts[:, column].mean(), abs=0.05)
    # A walk in lateral sequence: fore feet half a stride apart.
    assert summary.phase["right_fore"] == pytest.approx(0.5, abs=0.06)
    assert summary.speed_mm_s > 50.0 and summary.cadence_per_min > 300.0
    assert summary.range_deg["left_knee"][0] > 10.0
    low, high = summary.inner_range_deg["left_knee"]
    assert 20.0 < low < high < 180.0


@pytest.mark.realdata
def test_a_walk_from_a_file(shared_data: Path) -> None:
    """CMU 07_01: as the file has it (y up), and on our body; a person strides 1.2 to 1.6 m in about 1.1 s."""
    motion = read_bvh(shared_data / "cmu" / "bvh" / "07_01.bvh", unit_mm=25.4 / 0.45, drop_first=True)
    foot = motion.poses()[0][:, [motion.names.index("RightFoot"), motion.names.index("RightToeBase")]]
    gait = foot_gait(detect_contacts(foot, motion.rate_hz, up=1), foot.mean(axis=1), up=1)
    assert gait.strides >= 1  # it stands on this foot in the first frame
    assert gait.length_mm.mean() == pytest.approx(1400.0, abs=200.0)
    assert gait.stride_s.mean() == pytest.approx(1.1, abs=0.1)
    body = load_body("human")
    coordinates, _ = motion_from_file(motion, body)
    summary = gait_summary(body, body.forward(coordinates), motion.rate_hz)
    for foot in summary.feet.values():
        assert foot.strides >= 1
        assert foot.stride_s.mean() == pytest.approx(gait.stride_s.mean(), rel=0.05)
        assert foot.duty_factor.mean() == pytest.approx(0.6, abs=0.1)
    assert summary.phase["right_foot"] == pytest.approx(0.5, abs=0.08)
    assert 90.0 < summary.cadence_per_min < 130.0 and 1000.0 < summary.speed_mm_s < 1800.0
    low, high = summary.inner_range_deg["left_knee"]
    assert low < 130.0 and high > 160.0  # bends some 60 degrees in swing, almost straight in stance
