"""What is said of cameras that no fault explains: a doubt, a word of comfort, or nothing."""

from __future__ import annotations

import numpy as np
import pytest

from capture.camera_checks.faults import CameraCheck, Fault
from vivarig.results.camera_check import _doubted

NAMES = ("a", "b", "c", "d")
LATE = Fault("c", "late", 5.0, np.zeros(3), np.zeros(3), "", 9.0, 1.0)


@pytest.mark.parametrize(
    ("left", "faults", "doubted", "alone"),
    [
        ([3.0, 2.0, 2.5, 2.2], (), [], ["a"]),  # the views mended it
        ([9.0, 2.0, 2.5, 2.2], (), ["a"], []),  # they did not
        ([np.nan] * 4, (), ["a"], []),  # nobody tried
        ([3.0, np.inf, 2.5, 2.2], (), ["b"], []),  # a is far off because b is
        ([3.0, 2.0, np.inf, 2.2], (LATE,), [], []),  # c is named already
    ],
)
def test_a_camera_is_doubted_by_what_the_views_left(
    left: list[float], faults: tuple[Fault, ...], doubted: list[str], alone: list[str]
) -> None:
    check = CameraCheck(NAMES, np.array([30.0, 5.0, 5.0, 5.0]), faults, unclear=("a",))
    assert _doubted(check, np.array(left)) == (doubted, alone)
