"""Curves over the gait cycle of a recording: left and right, by speed, the same in Python, table and report."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from walked_recordings import walked_recording

import vivarig
from skeleton.analysis.cycles import cycles_table


def test_slow_and_fast_strides_have_their_own_curves(tmp_path: Path) -> None:
    folder = walked_recording(tmp_path / "anna", seed=3, gaits=("walk", "jog"))
    curves = vivarig.gait_curves(folder)
    knees = {side: [curve for curve in curves if curve.name == f"{side}_knee (deg)"] for side in ("left", "right")}
    for mine in knees.values():
        slow, fast = mine
        assert fast.speed_mm_s > 1.5 * slow.speed_mm_s
        assert min(slow.strides, fast.strides) >= 2
        assert slow.mean.shape == slow.spread.shape == (101,) and np.isfinite(slow.spread).all()
        assert fast.mean.min() < slow.mean.min() - 10.0  # a knee bends more in a jog
    names = {curve.name for curve in curves}
    assert {"left_ankle_height (mm)", "right_wrist_ahead (mm)"} <= names
    rows = list(csv.DictReader(cycles_table(curves).splitlines()))
    assert len(rows) == 101 * len(curves) and len({row["speed_mm_s"] for row in rows}) >= 2


def test_who_does_not_walk_has_none(tmp_path: Path) -> None:
    assert vivarig.gait_curves(walked_recording(tmp_path / "bert", seed=3, gaits=("balance",))) == []
