"""Time offsets: known shifts of signals and of a moving board, whole frames and fractions."""

from __future__ import annotations

import numpy as np
import pytest
from board_scenes import CHARUCO, film, ring_rig

from calibration.boards.sightings import Sightings, merge_sightings
from calibration.boards.synchronisation import offset_between, offset_of_signals, offsets_of_session
from calibration.cameras.rig import Rig
from calibration.foundation.errors import SolveError
from calibration.geometry.transforms import RigidTransform, rotation_from_vector


def wave(times: np.ndarray) -> list[RigidTransform]:
    """A board in smooth irregular motion, facing up and turning."""
    poses = []
    middle = CHARUCO.points_mm.mean(0)
    for t in times:
        turn = rotation_from_vector([0.5 * np.sin(0.11 * t), 0.4 * np.sin(0.17 * t + 1), 0.02 * t])
        rotation = turn @ np.diag([1.0, -1.0, -1.0])
        centre = np.array([250 * np.sin(0.09 * t), 220 * np.sin(0.13 * t + 2), 350 + 150 * np.sin(0.07 * t)])
        poses.append(RigidTransform(rotation, centre - rotation @ middle))
    return poses


def filmed(late: tuple[float, ...], frames: int = 90) -> Sightings:
    """Cameras whose frame f shows the instant f - late."""
    rng = np.random.default_rng(3)
    rig = ring_rig(len(late), rng)
    parts = []
    for camera, delay in zip(rig, late, strict=True):
        part = film(Rig((camera,)), wave(np.arange(frames) - delay), CHARUCO, two_sided=True)
        parts.append(part)
    table = merge_sightings(parts)
    from dataclasses import replace

    return replace(table, pixels=table.pixels + rng.normal(0, 0.2, table.pixels.shape))


def test_signals_shifted_by_whole_frames_and_a_fraction(rng: np.random.Generator) -> None:
    t = np.arange(300.0)

    def signal(at: np.ndarray) -> np.ndarray:
        return np.abs(np.sin(0.2 * at) + 0.7 * np.sin(0.131 * at + 1) + 0.5 * np.sin(0.37 * at))

    for shift in (-17.0, 0.0, 6.4):
        noisy = signal(t - shift) + rng.normal(0, 0.05, len(t))
        noisy[40:60] = np.nan
        assert offset_of_signals(signal(t), noisy, most=40).frames == pytest.approx(shift, abs=0.3)
    with pytest.raises(SolveError, match="fewer than"):
        offset_of_signals(np.ones(50), np.ones(50))


@pytest.mark.parametrize("late", [3.0, -7.0, 0.4])
def test_board_motion_gives_the_fraction(late: float) -> None:
    offset = offset_between(filmed((0.0, late)), 0, 1)
    assert offset.method == "geometry"
    assert offset.frames == pytest.approx(late, abs=0.05)
    assert offset.sd_frames < 0.1


def test_all_cameras_against_the_first() -> None:
    found = offsets_of_session(filmed((0.0, 1.5, -2.25)))
    assert [round(o.frames, 1) for o in found.values()] == pytest.approx([0.0, 1.5, -2.2], abs=0.11)
