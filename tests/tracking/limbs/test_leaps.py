"""Limbs that leave their path and come back."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.foundation.arrays import Floats
from tracking.limbs.chains import Limbs
from tracking.limbs.leaps import leaps, with_stretches_between

#: A trunk of one quad, and an arm of two and a hand.
LIMBS = Limbs(("trunk", "left_arm"), (np.array([0]), np.array([1, 2, 3])), np.array([0, 0]), np.array([0, 1, 1, 1]))


def swinging(frames: int = 40) -> Floats:
    """Quads (T, 4, 3) that swing by 300 mm twice a second at 60 Hz."""
    phase = 2 * np.pi * 2.0 / 60.0 * np.arange(frames)
    way = np.stack([np.sin(phase), np.cos(phase), np.zeros(frames)], axis=1)
    return np.asarray(300.0 * way[:, None] * np.array([0.0, 0.3, 0.7, 1.0])[None, :, None])


def test_fast_motion_is_no_leap_and_coming_back_from_one_frame_to_the_next_is() -> None:
    centres = swinging()
    assert np.nanmax(leaps(centres, LIMBS)) == 0
    centres[:20, 2, 2] += 90.0 * np.clip(np.arange(20) - 14, 0, 5) / 5  # goes astray slowly, and comes back at once
    found = leaps(centres, LIMBS)
    assert np.flatnonzero(np.nan_to_num(found[:, 1]) > 25).tolist() == [19, 20]
    assert found[19, 1] == pytest.approx(45, rel=0.2) and not np.nan_to_num(found[:, 0]).any()


def test_a_hand_that_turns_in_place_is_no_leap_of_the_arm() -> None:
    centres = swinging()
    centres[20, 3] += 60.0
    assert np.nanmax(leaps(centres, LIMBS)) == 0


def test_what_always_flutters_and_what_is_not_tracked_say_nothing() -> None:
    centres = swinging() + np.random.default_rng(3).normal(0, 15.0, (40, 4, 3))
    assert np.nanmax(leaps(centres, LIMBS)) == 0
    centres[10] = np.nan
    found = leaps(centres, LIMBS)
    assert np.isnan(found[[0, 1, 8, 9, 10, 11, 12, 38, 39]]).all() and np.isfinite(found[13:38]).all()
    assert np.isnan(leaps(centres[:4], LIMBS)).all()


def test_a_limb_that_leapt_away_and_back_is_away_between() -> None:
    leap = np.zeros(30)
    leap[[10, 11, 15, 16]] = 20.0, 25.0, 40.0, 30.0
    between = with_stretches_between(leap)
    assert between[12:15].tolist() == [40.0] * 3 and not between[:10].any() and not between[17:].any()
    leap[28] = 20.0  # the last stretch is not a return: it is shorter than the right one before it
    assert not with_stretches_between(leap)[17:28].any()
