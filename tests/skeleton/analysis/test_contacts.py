"""Contacts: planted feet of known motions, real walking, missing frames."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from calibration.foundation.errors import InputError
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


def test_bad_input() -> None:
    with pytest.raises(InputError, match="never seen"):
        detect_contacts(np.full((10, 3), np.nan), 100.0)
    with pytest.raises(InputError, match="3 frames or more"):
        detect_contacts(np.zeros((2, 3)), 100.0)
