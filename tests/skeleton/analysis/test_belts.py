"""The ground's velocity from feet: floors, belts, belts that change, and a treadmill walk with force plates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from calibration.foundation.errors import InputError
from skeleton.analysis import belts
from skeleton.analysis.belts import Belt, find_belt, given_belt
from skeleton.analysis.contacts import detect_contacts, foot_contacts, foot_points, ground_of
from skeleton.analysis.gait import gait_of, gait_paths
from skeleton.bodies import load_body
from skeleton.motion_files import read_trc
from skeleton.motions import make_motion
from skeleton.tree.joint_tree import Pose

RATE = 120.0


def _walk() -> tuple[object, Pose]:
    body = load_body("mouse")
    motion = make_motion(body, "walk", seconds=3, rate_hz=RATE, rng=np.random.default_rng(4))
    return body, body.forward(motion.coordinates)


def test_a_floor_does_not_move() -> None:
    body, pose = _walk()
    assert not ground_of(foot_points(body, pose), RATE).moves  # type: ignore[arg-type]


def test_the_same_strides_on_a_floor_and_on_a_belt() -> None:
    body, pose = _walk()
    velocity = np.array([-180.0, 40.0, 0.0])
    shift = np.arange(len(pose))[:, None, None] / RATE * velocity
    moved = Pose(pose.positions + shift, pose.rotations)
    found = ground_of(foot_points(body, moved), RATE)  # type: ignore[arg-type]
    np.testing.assert_allclose(found.velocity, np.broadcast_to(velocity[:2], (len(pose), 2)), atol=2.0)
    on_floor = foot_contacts(body, pose, RATE)  # type: ignore[arg-type]
    on_belt = foot_contacts(body, moved, RATE)  # type: ignore[arg-type]
    for foot, contacts in on_floor.items():
        np.testing.assert_allclose(on_belt[foot].touch_down_s, contacts.touch_down_s, atol=1.0 / RATE)
    one, other = (gait_of(gait_paths(body, p), RATE) for p in (pose, moved))  # type: ignore[arg-type]
    assert other.speed_mm_s == pytest.approx(one.speed_mm_s, rel=0.02)
    for foot, gait in one.feet.items():
        np.testing.assert_allclose(other.feet[foot].length_mm, gait.length_mm, atol=2.0)


@pytest.mark.parametrize("windows", [600, 5])
def test_a_belt_that_starts(windows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Still for two seconds, then 300 mm/s: steps of 0.5 s, a foot down for 60 % of them."""
    time = np.arange(600) / 100.0
    speed = np.where(time < 2.0, 0.0, -300.0)
    travel = np.cumsum(speed) / 100.0
    feet = []
    for offset in (0.0, 0.5):
        phase = (time / 0.5 + offset) % 1.0
        swing = np.clip((phase - 0.6) / 0.4, 0.0, 1.0)
        stand = np.floor(time / 0.5 + offset) + swing * swing * (3 - 2 * swing)
        x = travel + 150.0 * np.where(time < 2.0, 4.0, stand)
        lift = np.where(time < 2.0, 0.0, 15.0 * np.sin(np.pi * swing))
        feet.append(np.stack([x, 0 * x, lift], axis=1)[:, None])
    monkeypatch.setattr(belts, "_MOST_WINDOWS", windows)  # a long recording is looked at here and there
    belt = find_belt(feet, 100.0)
    assert np.abs(belt.velocity[:100]).max() < 20.0
    np.testing.assert_allclose(belt.velocity[400:, 0], -300.0, atol=15.0)


def test_belt_given_in_a_recording_and_bad_ones() -> None:
    belt = given_belt(np.array([10.0, 0.0]), 5)
    assert belt.given and belt.moves and belt.speed_mm_s == 10.0
    np.testing.assert_allclose(belt.travel(10.0)[:, 0], np.arange(5.0))
    with pytest.raises(InputError, match=r"wanted its velocity \[vx, vy\]"):
        given_belt(np.array([1.0, np.nan]), 5)
    assert not Belt(np.zeros((3, 2))).moves


@pytest.mark.realdata
def test_force_plates_confirm_the_contacts(shared_data: Path) -> None:
    """Gait2354 walks on a treadmill: all eight events of the plates (20 N), none extra, no belt speed given."""
    series = read_trc(shared_data / "opensim_gait/Pipelines/Gait2354_Simbody/subject01_walk1.trc")
    names = list(series.names)
    feet = {s: series.positions[:, [names.index(f"{s}.Heel"), names.index(f"{s}.Toe.Tip")]] for s in "RL"}
    belt = find_belt(list(feet.values()), series.rate_hz, up=1)
    assert belt.speed_mm_s == pytest.approx(1140.0, rel=0.03)
    plates = {"R": (0.165, 0.618, 1.410, 1.853), "L": (0.788, 1.247, 2.018, 2.460)}
    for foot, points in feet.items():
        found = detect_contacts(points, series.rate_hz, up=1, belt=belt)
        events = np.sort(np.concatenate([found.touch_down_s, found.lift_off_s]))
        np.testing.assert_allclose(events, plates[foot], atol=0.033)
        assert np.abs(events - plates[foot]).mean() < 0.017


def test_a_belt_much_slower_than_the_swings_is_a_belt() -> None:
    # A rat that walks in a bow: on the spot it needs a belt of 46 mm/s, and its feet swing at a metre per second.
    body = load_body("rat")
    for seed in (3, 4, 5):
        motion = make_motion(body, "walk", seconds=3, rate_hz=120.0, rng=np.random.default_rng(seed))
        pose = body.forward(motion.coordinates)
        drift = (pose.positions[-1, 0] - pose.positions[0, 0]) / (len(pose) - 1) * np.array([1.0, 1.0, 0.0])
        carried = np.arange(len(pose))[:, None, None] * drift
        floor = foot_points(body, pose)
        belt = {foot: points - carried for foot, points in floor.items()}
        grounds = [ground_of(feet, 120.0) for feet in (floor, belt)]
        assert not grounds[0].moves and grounds[1].moves
        for foot, points in floor.items():
            here = detect_contacts(points, 120.0, belt=grounds[0]).touch_down_s
            there = detect_contacts(belt[foot], 120.0, belt=grounds[1]).touch_down_s
            np.testing.assert_allclose(here, there, atol=1.0 / 120.0)
