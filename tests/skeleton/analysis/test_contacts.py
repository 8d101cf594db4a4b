"""Contacts: planted feet of known motions, real walking, missing frames."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from skeleton.analysis.belts import still_ground
from skeleton.analysis.contacts import detect_contacts, foot_contacts
from skeleton.bodies import load_body
from skeleton.motion_files import read_bvh
from skeleton.motions import make_motion


@pytest.mark.parametrize(
    "name, gait, rate", [("mouse", "walk", 200.0), ("mouse", "trot", 200.0), ("human", "walk", 100.0)]
)
def test_feet_of_the_studio(name: str, gait: str, rate: float) -> None:
    body = load_body(name)
    motion = make_motion(body, gait, seconds=3, rate_hz=rate, rng=np.random.default_rng(1))
    found = foot_contacts(body, body.forward(motion.coordinates), rate)
    for column, foot in enumerate(motion.feet):
        assert np.mean(found[foot].states == motion.contacts[:, column]) > 0.95, foot


def test_touch_down_and_lift_off_of_a_plain_step() -> None:
    time = np.arange(200) / 100.0
    phase = time % 1.0
    swing = np.clip((phase - 0.6) / 0.4, 0.0, 1.0)
    ahead = np.floor(time) * 100.0 + 100.0 * swing
    height = 15.0 * np.sin(np.pi * swing)
    contacts = detect_contacts(np.stack([ahead, 0 * time, height], axis=1), 100.0)
    assert contacts.touch_downs == pytest.approx((100,), abs=2)
    assert contacts.lift_offs == pytest.approx((60, 160), abs=2)
    gaps = np.stack([ahead, 0 * time, height], axis=1)
    gaps[20:25] = np.nan
    assert not detect_contacts(gaps, 100.0).states[20:25].any()  # not seen is not contact


@pytest.mark.realdata
def test_a_real_walk_steps_alternately(shared_data: Path) -> None:
    motion = read_bvh(shared_data / "cmu" / "bvh" / "07_01.bvh", unit_mm=25.4 / 0.45, drop_first=True)
    places = motion.poses()[0]
    left, right = (
        detect_contacts(places[:, motion.names.index(name)], motion.rate_hz, up=1)
        for name in ("LeftToeBase", "RightToeBase")
    )
    order = sorted([(frame, "l") for frame in left.touch_downs] + [(frame, "r") for frame in right.touch_downs])
    assert len(order) >= 4
    assert all(a[1] != b[1] for a, b in itertools.pairwise(order))
    assert 0.4 < left.states.mean() < 0.75


def _set_down(jitter: float) -> tuple[Floats, int, int]:
    """Return a paw (400, 2, 3) that stands, is lifted softly, comes down fast and creeps the last of its way; its
    last frame of the first stance and its first of the second."""
    frames = np.arange(400)
    risen = np.clip((frames - 80.0) / 60.0, 0.0, 1.0)
    down = np.clip((frames - 200.0) / 80.0, 0.0, 1.0)
    rise, fall = (share**3 * (10.0 - 15.0 * share + 6.0 * share**2) for share in (risen, down))
    paw = np.stack([30.0 * rise + 20.0 * fall, 0.0 * rise, 40.0 * (rise - fall)], axis=1)
    points = np.stack([paw, paw + np.array([4.0, 0.0, 0.1])], axis=1)
    return points + jitter * np.random.default_rng(4).normal(size=(400, 1, 3)), 80, 280


@pytest.mark.parametrize("jitter", [0.0, 0.05])
def test_a_paw_that_is_set_down_softly_stands_when_it_rests(jitter: float) -> None:
    points, leaves, rests = _set_down(jitter)
    found = detect_contacts(points, 120.0)
    assert len(found.intervals) == 2
    assert found.lift_offs == pytest.approx((leaves,), abs=4)  # 0.1 mm away
    assert found.touch_downs == pytest.approx((rests,), abs=4)


def test_a_foot_that_stands_but_for_an_excursion_stands() -> None:
    rng = np.random.default_rng(3)
    place = 0.1 * rng.normal(size=(400, 3))
    place[380:, 0] += 0.4 * np.arange(20)
    found = detect_contacts(np.stack([place, place + np.array([4.0, 0.0, 0.0])], axis=1), 120.0)
    assert found.states[:370].all()
    assert not found.states[390:].any()
    steady = np.stack([3.0 * np.arange(400.0), *np.zeros((2, 400))], axis=1)  # one that goes on and on does not
    assert not detect_contacts(np.stack([steady, steady + 4.0], axis=1), 120.0, belt=still_ground(400)).states.any()


def test_a_stance_that_the_motion_ends_with_bears_jitter_of_the_last_frame() -> None:
    """Its speed is known worst there: a paw that had come down five frames before the end was said to swing on."""
    time = np.arange(100) / 100.0
    swing = np.clip((time - 0.7) / 0.245, 0.0, 1.0)
    ahead = 60.0 * (swing - np.sin(2 * np.pi * swing) / (2 * np.pi))
    sole = np.stack([ahead, 0 * time, 8.0 * np.sin(np.pi * swing) ** 2], axis=1)[:, None] + np.array(
        [[[0.0, 0, 0]], [[7.0, 0, 0]]]
    ).swapaxes(0, 1)
    sole[-1] += [0.0, 1.8, 0.0]
    contacts = detect_contacts(sole, 100.0, belt=still_ground(100))
    assert len(contacts.touch_downs) == 1 and contacts.touch_downs[0] == pytest.approx(94, abs=2)
    assert contacts.states[-1]


def test_bad_input() -> None:
    with pytest.raises(InputError, match="never seen"):
        detect_contacts(np.full((10, 3), np.nan), 100.0)
    with pytest.raises(InputError, match="3 frames or more"):
        detect_contacts(np.zeros((2, 3)), 100.0)
