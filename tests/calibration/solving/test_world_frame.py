"""World frames: floor board, points, L-frame; underground and mirrored worlds are told from good ones."""

from __future__ import annotations

import numpy as np
import pytest
from board_scenes import scene

from calibration.foundation.errors import InputError, SolveError
from calibration.geometry.transforms import RigidTransform, rotation_from_vector
from calibration.solving.world_frame import (
    check_world,
    load_named_points,
    moved_rig,
    scale_check,
    world_from_board,
    world_from_known_points,
    world_from_three_points,
)

MADE = scene(7, cameras=4, frames=12)
SOMEWHERE = RigidTransform(rotation_from_vector([0.4, -1.2, 2.0]), np.array([100.0, -50.0, 700.0]))  # rig_from_world


def corners() -> np.ndarray:
    board = MADE.sightings.boards[0].points_mm
    return np.concatenate([pose.apply(board) for pose in MADE.world_from_board[1:]])


def test_floor_board_puts_the_floor_at_zero_and_cameras_above() -> None:
    rig = moved_rig(MADE.rig, SOMEWHERE)
    world = world_from_board(SOMEWHERE @ MADE.world_from_board[0])
    placed = moved_rig(rig, world)
    for got, want in zip(placed, MADE.rig, strict=True):
        assert abs(got.centre[2] - want.centre[2]) < 1e-9
    floor = world.apply(SOMEWHERE.apply(MADE.world_from_board[0].apply(MADE.sightings.boards[0].points_mm)))
    assert np.abs(floor[:, 2]).max() < 1e-9
    assert check_world(placed, world.apply(SOMEWHERE.apply(corners()))) == []


def test_underground_world_is_caught() -> None:
    down = RigidTransform(np.diag([1.0, -1.0, -1.0]), np.zeros(3))
    words = check_world(moved_rig(MADE.rig, down), down.apply(corners()))
    assert sum("underground" in w for w in words) == 4 and any("upside-down" in w for w in words)


def test_one_camera_under_a_glass_floor_may_be_declared() -> None:
    lowered = RigidTransform(np.eye(3), np.array([0.0, 0.0, -900.0]))
    rig = moved_rig(MADE.rig, lowered)
    low = [camera.name for camera in rig if camera.centre[2] < 0]
    assert 0 < len(low) < 4
    assert any("--below" in w for w in check_world(rig, corners()))
    assert check_world(rig, corners(), below=low) == []


def test_three_points_and_l_frame() -> None:
    origin, x, y = np.array([10.0, 20, 0]), np.array([110.0, 20, 0]), np.array([30.0, 90, 0])
    world = world_from_three_points(*(SOMEWHERE.apply(p) for p in (origin, x, y)))
    back = world.apply(SOMEWHERE.apply(np.stack([origin, x, y, origin + np.array([0, 0, 5.0])])))
    assert np.allclose(back, [[0, 0, 0], [100, 0, 0], [20, 70, 0], [0, 0, 5]], atol=1e-9)
    with pytest.raises(InputError, match="one line"):
        world_from_three_points(origin, x, 2 * x - origin)


def test_known_points_and_their_mirror(rng: np.random.Generator) -> None:
    known = rng.uniform(-300, 300, (5, 3))
    names = list("abcde")
    _, misfit = world_from_known_points(SOMEWHERE.apply(known), known, names)
    assert misfit.max() < 1e-9
    with pytest.raises(SolveError, match="mirrored world"):
        world_from_known_points(SOMEWHERE.apply(known), known * [1, -1, 1], names)


def test_marked_points_file_and_scale_check(tmp_path) -> None:
    truth = {"a": [0.0, 0.0, 0.0], "b": [200.0, 0.0, 0.0], "c": [0.0, 150.0, 0.0]}
    lines = []
    for name, place in truth.items():
        lines.append(f"[points.{name}]")
        for camera in MADE.rig:
            u, v = camera.project(np.array(place))
            lines.append(f"pixels.{camera.name} = [{u}, {v}]")
    lines += ["[[distances]]", 'between = ["a", "b"]', "mm = 210.0"]
    (tmp_path / "points.toml").write_text("\n".join(lines))
    points = load_named_points(tmp_path / "points.toml", MADE.rig.names)
    measured = points.measured(MADE.rig)
    assert np.abs(measured - list(truth.values())).max() < 1e-6
    checks, _ = scale_check(points, measured)
    assert checks[0].error == pytest.approx(200 / 210 - 1)
    with pytest.raises(InputError, match="unknown camera"):
        load_named_points(tmp_path / "points.toml", ["left", "right"])
