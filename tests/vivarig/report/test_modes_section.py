"""The report's line about modes: how many numbers hold the motion, of trusted frames alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from calibration.foundation.trust import Trust
from calibration.geometry.transforms import quaternion_from_rotation, rotation_from_vector
from vivarig.report.modes_section import add_modes
from vivarig.report.page import Page
from vivarig.results.findings import SkeletonFindings

FRAMES, JOINTS = 120, 6


def findings(numbers: int) -> SkeletonFindings:
    """A chain of joints moved by so many independent numbers a frame."""
    rng = np.random.default_rng(3)
    drive = rng.normal(size=(FRAMES, numbers)) @ rng.normal(size=(numbers, JOINTS * 3)) * 0.1
    local = rotation_from_vector(drive.reshape(FRAMES, JOINTS, 3))
    local[:, 0] = np.eye(3)
    world = local.copy()
    for joint in range(1, JOINTS):
        world[:, joint] = world[:, joint - 1] @ local[:, joint]
    names = tuple(f"j{k}" for k in range(JOINTS))
    none, trust = np.zeros((FRAMES, 0, 3)), np.full(FRAMES, int(Trust.TRUSTED))
    return SkeletonFindings(
        Path("skeleton.h5"), "chain", 100.0, names, np.arange(JOINTS) - 1, np.tile([10.0, 0.0, 0.0], (JOINTS, 1)),
        np.zeros((FRAMES, JOINTS, 3)), quaternion_from_rotation(world), (), np.zeros((FRAMES, 0)),
        np.ones((FRAMES, JOINTS)), trust, (), none, np.zeros((FRAMES, JOINTS), int), np.zeros((FRAMES, 0), int),
    )  # fmt: skip


@pytest.mark.parametrize("numbers", [1, 3])
def test_as_many_numbers_as_the_motion_has(numbers: int) -> None:
    page = Page("t")
    assert add_modes(page, findings(numbers))["modes99"] == numbers
    html = page.html()
    assert f"{numbers} number{'' if numbers == 1 else 's'} a frame hold 99 %" in html and "data:image/png" in html


def test_frames_that_are_not_trusted_do_not_count() -> None:
    made = findings(1)
    wild = quaternion_from_rotation(rotation_from_vector(np.random.default_rng(4).normal(size=(40, JOINTS, 3))))
    rotations, trust = made.rotations.copy(), made.trust.copy()
    rotations[:40], trust[:40] = wild, int(Trust.DOUBTFUL)
    assert add_modes(Page("t"), replace(made, rotations=rotations, trust=trust))["modes99"] == 1
    assert add_modes(Page("t"), replace(made, rotations=rotations))["modes99"] > 3


def test_too_few_frames_or_no_motion_say_nothing() -> None:
    made, page = findings(2), Page("t")
    trust = np.full(FRAMES, int(Trust.LOST))
    trust[:20] = int(Trust.TRUSTED)
    assert add_modes(page, replace(made, trust=trust)) == {}
    assert add_modes(page, replace(made, rotations=np.tile(made.rotations[:1], (FRAMES, 1, 1)))) == {}
    assert "Modes of motion" not in page.html()
