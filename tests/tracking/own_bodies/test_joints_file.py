"""joints.toml: what is read, and one line for each way in which it is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from calibration.foundation.errors import InputError
from tracking.own_bodies.joints_file import load_joints, save_joints

GOOD = """
[joints]
paw = { at = [3, 0, 0], parent = "leg" }
root = { at = [0, 0, 1] }
leg = { at = [1, 0, 0.5], parent = "root", range_deg = 40 }
"nose tip" = { at = [0, 1, 0], parent = "root" }
"""


def test_parents_come_before_children_and_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "joints.toml"
    path.write_text(GOOD)
    plan = load_joints(path)
    assert plan.names == ("root", "leg", "paw", "nose tip")
    assert plan.parents.tolist() == [-1, 0, 1, 0] and plan.degree.tolist() == [2, 2, 1, 1]
    assert np.isnan(plan.ranges[0]) and plan.ranges[1] == pytest.approx(np.radians(40))
    save_joints(plan, path)
    again = load_joints(path)
    assert again.names == plan.names and np.array_equal(again.places, plan.places)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("{ at = [0, 0, 1] }", '{ at = [0, 0, 1], parent = "paw" }', "run in a circle"),
        ('parent = "leg"', 'parent = "lag"', "no joint 'lag'"),
        (', parent = "leg"', "", "2 joints have no parent"),
        ("at = [3, 0, 0]", "at = [3, 0]", "must be 3 numbers"),
        ("range_deg = 40", "range_deg = 400", "up to 180"),
        ("range_deg", "range", "range is not a known key"),
    ],
)
def test_each_mistake_is_told_in_one_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    path = tmp_path / "joints.toml"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(InputError, match=words) as caught:
        load_joints(path)
    assert "\n" not in str(caught.value)
