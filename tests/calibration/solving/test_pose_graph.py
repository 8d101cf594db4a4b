"""Rigs from sightings: recovery from nothing, disconnected cameras named, mirrored worlds caught, determinism."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from board_scenes import CHARUCO, disturb, film, ring_rig, scene, waved_board

from calibration.boards.board import Board
from calibration.boards.co_visibility import co_visibility, require_connected
from calibration.boards.sightings import Sightings
from calibration.cameras.camera_row import FOCAL, PRINCIPAL_POINT, ROTATION
from calibration.cameras.rig import duplicate_cameras
from calibration.foundation.errors import InputError, SolveError
from calibration.geometry.transforms import RigidTransform, fit_rigid
from calibration.solving.pose_graph import first_rig
from calibration.solving.rig_solver import SolveOptions, solve_rig


def centre_errors(solved, truth) -> np.ndarray:
    a, b = (np.stack([camera.centre for camera in rig]) for rig in (solved, truth))
    return np.linalg.norm(fit_rigid(a, b).apply(a) - b, axis=1)


def mirrored(table: Sightings, cameras: list[int]) -> Sightings:
    """The sightings as videos flipped left to right would give them."""
    pixels = table.pixels.copy()
    for c in cameras:
        mine = table.camera == c
        pixels[mine, 0] = table.sizes[c][0] - 1 - pixels[mine, 0]
    return replace(table, pixels=pixels)


def test_a_studio_rig_from_nothing() -> None:
    """Eight cameras, 0.2 px, 2 % wrong: focal length to 0.05 %, principal point 0.5 px, centres 0.1 % of the rig."""
    board = Board("charuco", 16, 12, 50.0, 37.5, "DICT_4X4_1000")
    rng = np.random.default_rng(11)
    rig = ring_rig(8, rng, radius=1100.0)
    table = disturb(film(rig, waved_board(90, rng, board), board), rng)
    options = SolveOptions(distortion="brown4")
    solution = solve_rig(table, options)
    assert solution.bundle.converged
    for c, camera in enumerate(rig):
        k, row = camera.lens.intrinsics, solution.bundle.bundle.rows[c]
        assert np.abs(row[FOCAL] / [k[0, 0], k[1, 1]] - 1).max() < 5e-4
        assert np.abs(row[PRINCIPAL_POINT] - k[:2, 2]).max() < 0.5
    size = max(np.linalg.norm(a.centre - b.centre) for a in rig for b in rig)
    assert centre_errors(solution.rig, rig).max() < 1e-3 * size


def test_same_sightings_same_numbers() -> None:
    table = scene(4, cameras=3, frames=20).sightings
    first, again = (solve_rig(table, SolveOptions(distortion="brown4")) for _ in range(2))
    assert (again.bundle.bundle.rows == first.bundle.bundle.rows).all()
    assert (again.bundle.covariance == first.bundle.covariance).all()


def test_both_planar_solutions_are_tried() -> None:
    """Far boards under a long lens, where the wrong planar pose fits nearly as well: the rig still comes out."""
    rng = np.random.default_rng(3)
    rig = ring_rig(4, rng)
    board = Board("charuco", 5, 4, 25.0, 18.0, "DICT_4X4_50")
    table = disturb(film(rig, waved_board(60, rng, board), board), rng, noise=0.3, wrong=0.0)
    bundle, _ = first_rig(rig.packed(), table)
    relative = [camera.camera_from_world @ rig[0].camera_from_world.inverse() for camera in rig]
    for c, pose in enumerate(relative):
        got = bundle.rows[c, ROTATION].reshape(3, 3)
        assert np.degrees(np.arccos(np.clip((np.trace(got @ pose.rotation.T) - 1) / 2, -1, 1))) < 5.0


def test_a_board_that_looks_the_same_upside_down_is_put_in_order() -> None:
    rng = np.random.default_rng(8)
    rig = ring_rig(3, rng, radius=1100.0)
    board = Board("chessboard", 9, 7, 60.0)
    clean = film(rig, waved_board(25, rng, board), board)
    full = clean.views()
    corner = clean.corner.copy()
    for rows in full.values():
        if len(rows) == board.corners and rng.random() < 0.5:
            corner[rows] = board.corners - 1 - corner[rows]
    whole = np.concatenate([rows for rows in full.values() if len(rows) == board.corners])
    keep = np.zeros(len(clean), bool)
    keep[whole] = True
    table = disturb(replace(clean, corner=corner).where(keep).sorted(), rng, noise=0.1, wrong=0.0)
    solution = solve_rig(table, SolveOptions(distortion="brown4"))
    assert solution.bundle.rms_px() < 0.2
    assert centre_errors(solution.rig, rig).max() < 5.0


def test_disconnected_cameras_are_named() -> None:
    made = scene(2, cameras=4, frames=30)
    table = made.sightings
    alone = table.camera == 3
    shared = np.isin(table.frame, table.frame[~alone])
    cut = table.where(~(alone & shared))
    # camera 4 keeps only frames of its own
    own = replace(cut, frame=np.where(cut.camera == 3, cut.frame + 1000, cut.frame))
    late = table.where(alone)
    own = replace(
        own,
        camera=np.concatenate([own.camera, late.camera]),
        frame=np.concatenate([own.frame, late.frame + 1000]),
        board=np.concatenate([own.board, late.board]),
        corner=np.concatenate([own.corner, late.corner]),
        pixels=np.concatenate([own.pixels, late.pixels]),
        velocity=np.concatenate([own.velocity, late.velocity]),
    ).sorted()
    graph = co_visibility(own)
    assert [len(part) for part in graph.parts] == [3, 1]
    with pytest.raises(SolveError, match=r"missing link between 'cam4' and 'cam1', 'cam2', 'cam3'.*--largest-part"):
        require_connected(graph, own)
    with pytest.raises(SolveError, match="'cam4' never saw a board"):
        blind = table.where(~alone)
        require_connected(co_visibility(blind), blind)
    part = own.of_cameras(["cam1", "cam2", "cam3"])
    assert solve_rig(part, SolveOptions(distortion="brown4")).bundle.converged


def test_mirrored_videos_are_caught() -> None:
    made = scene(5, cameras=4, frames=30, wrong=0.0)
    with pytest.raises(InputError, match="mirrored world"):
        solve_rig(mirrored(made.sightings, [0, 1, 2, 3]), SolveOptions(distortion="brown4"))
    with pytest.raises(SolveError, match="mirrored camera: 'cam3'"):
        solve_rig(mirrored(made.sightings, [2]), SolveOptions(distortion="brown4"))


def test_a_camera_behind_a_see_through_board_is_not_mirrored() -> None:
    rng = np.random.default_rng(9)
    rig = ring_rig(4, rng)
    poses = waved_board(30, rng, CHARUCO)
    upright = [
        RigidTransform(p.rotation @ np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]]), p.translation) for p in poses
    ]
    table = disturb(film(rig, upright, CHARUCO, two_sided=True), rng, noise=0.1, wrong=0.0)
    solution = solve_rig(table, SolveOptions(distortion="brown4"))
    assert solution.bundle.rms_px() < 0.2
    assert centre_errors(solution.rig, rig).max() < 20.0


def test_copied_cameras_are_noticed() -> None:
    made = scene(5, cameras=3, frames=5)
    first = made.rig[0]
    from calibration.cameras.camera import LensCamera
    from calibration.cameras.rig import Rig

    copy = LensCamera("copy", first.lens, first.camera_from_world)
    assert duplicate_cameras(Rig((*made.rig.cameras, copy))) == [("cam1", "copy")]


def test_too_few_views_ask_for_the_lens() -> None:
    made = scene(5, cameras=2, frames=2, wrong=0.0)
    with pytest.raises(InputError, match="--intrinsics"):
        solve_rig(made.sightings)
