"""Lenses from board views: recovery, how many terms the data bear, fisheye told from pinhole."""

from __future__ import annotations

import numpy as np
import pytest
from board_scenes import disturb, film, ring_rig, waved_board

from calibration.boards.board import Board
from calibration.bundle.parameters import Freedom
from calibration.cameras.camera import LensCamera
from calibration.cameras.camera_row import FOCAL, FX, PRINCIPAL_POINT
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig
from calibration.foundation.errors import SolveError
from calibration.solving.intrinsics import PINHOLE_LADDER, choose_lens, fit_lens, start_row
from calibration.solving.planar_pose import half_turn, planar_poses
from calibration.solving.rig_solver import SolveOptions, start_lenses

BOARD = Board("charuco", 12, 9, 60.0, 45.0, "DICT_4X4_1000")


def views(seed: int, *, fisheye: bool = False, terms: np.ndarray | None = None, frames: int = 60):
    rng = np.random.default_rng(seed)
    camera = ring_rig(6, rng, fisheye=fisheye, radius=1000.0)[0]
    if terms is not None:
        camera = LensCamera("cam1", PinholeLens(camera.size, camera.lens.intrinsics, terms), camera.camera_from_world)
    table = disturb(film(Rig((camera,)), waved_board(frames, rng, BOARD), BOARD), rng, noise=0.15, wrong=0.01)
    return camera, table


@pytest.mark.parametrize("fisheye", [False, True])
def test_a_lens_from_nothing(fisheye: bool) -> None:
    camera, table = views(1, fisheye=fisheye)
    fit = fit_lens(table, Freedom(2, True, "fisheye4" if fisheye else "brown4"))
    k = camera.lens.intrinsics
    sd = fit.solution.camera_sd(0)
    assert np.abs(fit.row[FOCAL] - [k[0, 0], k[1, 1]]).max() < 4 * sd[:2].max() + 1e-9
    assert np.abs(fit.row[PRINCIPAL_POINT] - k[:2, 2]).max() < 4 * sd[2:4].max()
    assert abs(fit.solution.sigma_px - 0.15) < 0.01


def test_start_finds_the_focal_length_within_a_third() -> None:
    camera, table = views(2)
    row = start_row(table, fisheye=False)
    assert abs(np.log(row[FX] / camera.lens.intrinsics[0, 0])) < 0.35


def test_terms_the_data_do_not_bear_are_not_taken() -> None:
    _, table = views(3, terms=np.array([-0.2, 0.0, 0.0, 0.0, 0.0]))
    _, choice = choose_lens(table, PINHOLE_LADDER)
    assert choice.freedom.distortion in ("radial1", "radial2")
    assert "not supported by the data" in choice.reason
    _, table = views(3, terms=np.array([-0.25, 0.1, 0.004, -0.003, 0.0]))
    _, choice = choose_lens(table, PINHOLE_LADDER)
    assert choice.freedom.distortion in ("brown4", "brown5")


def test_a_pinhole_is_not_called_a_fisheye() -> None:
    """The other way round is tested on the real fisheye pairs (test_accuracy)."""
    _, straight = views(4)
    assert not start_lenses(straight, SolveOptions()).freedoms[0].distortion.startswith("fisheye")


def test_planar_poses_hold_the_truth_and_its_twin() -> None:
    camera, table = views(5, frames=12)
    points, index = table.model_points()
    rows = next(iter(table.views().values()))
    poses = planar_poses(camera.packed(), points[index[rows]], table.pixels[rows])
    assert 1 <= len(poses) <= 2 and poses[0].rms_px <= poses[-1].rms_px
    turn = half_turn(BOARD.points_mm)
    assert np.allclose(turn.apply(BOARD.points_mm), BOARD.points_mm[::-1])


def test_planar_poses_of_exact_corners_are_exact() -> None:
    rng = np.random.default_rng(7)
    camera = ring_rig(6, rng, radius=1000.0)[0]
    poses = waved_board(12, rng, BOARD)
    table = film(Rig((camera,)), poses, BOARD)
    points, index = table.model_points()
    for (_, frame, _), rows in table.views().items():
        want = camera.camera_from_world @ poses[frame]
        best = planar_poses(camera.packed(), points[index[rows]], table.pixels[rows])[0]
        assert best.rms_px < 1e-6  # of a closed form on undistorted corners
        assert np.abs(best.camera_from_board.rotation - want.rotation).max() < 1e-8
        assert np.abs(best.camera_from_board.translation - want.translation).max() < 1e-5
    on_a_line = points[index[rows]] * [1.0, 0.0, 0.0]
    assert planar_poses(camera.packed(), on_a_line, table.pixels[rows]) == ()
    assert planar_poses(camera.packed(), points[index[rows]][:3], table.pixels[rows][:3]) == ()


def test_a_camera_with_tiny_views_says_so() -> None:
    _, table = views(6, frames=8)
    few = table.where(table.corner < 4)
    with pytest.raises(SolveError, match="six corners"):
        fit_lens(few, Freedom())
