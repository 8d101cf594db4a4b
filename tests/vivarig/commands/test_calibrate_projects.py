"""Calibration from projects as they lie on disk: Pose2Sim's, Anipose's root; lenses alone; a wrong dictionary."""

from __future__ import annotations

import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
from board_scenes import ring_rig, waved_board

from calibration.boards.board import Board, save_boards
from calibration.boards.printing import board_image
from calibration.boards.session import open_session
from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig, load_rig
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import RigidTransform
from calibration.rig_formats.known_lenses import load_stated_lenses
from vivarig.cli import main

CHESS = Board("chessboard", 5, 8, 40.0)
CONFIG = """
[calibration]
calibration_type = "calculate"
[calibration.calculate.intrinsics]
intrinsics_extension = "png"
intrinsics_corners_nb = [4, 7]
intrinsics_square_size = 40
[calibration.calculate.extrinsics]
extrinsics_method = "board"
[calibration.calculate.extrinsics.board]
board_position = "horizontal"
extrinsics_corners_nb = [4, 7]
extrinsics_square_size = 40
"""
HALF = np.diag([0.5, 0.5, 1.0])
FLAT = RigidTransform(np.diag([1.0, -1.0, -1.0]), np.array([-80.0, 140.0, 0.0]))


def picture(camera: LensCamera, board: Board, world_from_board: RigidTransform) -> np.ndarray:
    to_mm = np.array([[1 / 3, 0, -20 + 0.5 / 3], [0, 1 / 3, -20 + 0.5 / 3], [0, 0, 1]])
    if board.kind == "chessboard":  # whose frame begins at the first inner corner
        to_mm[:2, 2] -= board.square_mm
    pose = camera.camera_from_world @ world_from_board
    h = camera.lens.intrinsics @ np.column_stack([pose.rotation[:, :2], pose.translation]) @ to_mm
    texture = board_image(board, pixels_per_mm=3, margin_mm=20)
    drawn = cv2.warpPerspective(texture, h, camera.size, flags=cv2.INTER_AREA, borderValue=0)
    mask = cv2.warpPerspective(np.full_like(texture, 255), h, camera.size, flags=cv2.INTER_NEAREST)
    return np.where(mask > 0, drawn, 128).astype(np.uint8)


def straight_rig() -> Rig:
    rig = ring_rig(8, np.random.default_rng(2), radius=1000.0)
    return Rig(
        tuple(
            LensCamera(c.name, PinholeLens((640, 512), HALF @ c.lens.intrinsics, np.zeros(5)), c.camera_from_world)
            for c in list(rig)[:3]
            if isinstance(c, LensCamera)
        )
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Rig]:
    """A Pose2Sim project: each camera's lens pictures were taken alone, then one of the board on the floor by all."""
    place, rig = tmp_path_factory.mktemp("pose2sim"), straight_rig()
    (place / "Config.toml").write_text(CONFIG)
    for index, camera in enumerate(rig):
        assert isinstance(camera, LensCamera)
        inside = place / "calibration" / "intrinsics" / f"int_{camera.name}_img"
        inside.mkdir(parents=True)
        centre = camera.centre

        def faces(pose: RigidTransform, centre: np.ndarray = centre) -> bool:
            towards = centre - pose.apply(CHESS.points_mm.mean(0))
            return bool(-pose.rotation[:, 2] @ towards > 0.6 * np.linalg.norm(towards))

        poses = [p for p in waved_board(200, np.random.default_rng(20 + index), CHESS)[1:] if faces(p)][:12]
        for number, pose in enumerate(poses):
            cv2.imwrite(str(inside / f"{number:03d}.png"), picture(camera, CHESS, pose))
        outside = place / "calibration" / "extrinsics" / f"ext_{camera.name}_img"
        outside.mkdir(parents=True)
        cv2.imwrite(str(outside / f"{camera.name}_board.png"), picture(camera, CHESS, FLAT))
    return place, rig


def test_lenses_alone_are_never_taken_for_one_instant(
    project: tuple[Path, Rig], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folders share picture numbers, yet nothing ties cameras together; focal lengths within 2 %."""
    place, rig = project
    pictures = tmp_path / "pictures"
    for camera in rig:
        shutil.copytree(place / "calibration" / "intrinsics" / f"int_{camera.name}_img", pictures / camera.name)
    save_boards((CHESS,), pictures / "board.toml")
    assert main(["calibrate", str(pictures), "--lenses-only", "--distortion", "none", "--workers", "1"]) == 0
    assert "3 lenses, each from its own views alone; no poses" in capsys.readouterr().out
    assert not (pictures / "results" / "rig.toml").exists()
    found = load_stated_lenses(pictures / "results" / "lenses", rig.names)
    for camera in rig:
        assert isinstance(camera, LensCamera) and found[camera.name].size == camera.size
        assert found[camera.name].intrinsics[0, 0] == pytest.approx(camera.lens.intrinsics[0, 0], rel=0.02)


def test_a_pose2sim_project_as_it_is(project: tuple[Path, Rig], tmp_path: Path) -> None:
    """Its lenses from their pictures, its poses from the board on the floor: cameras where they are, z up."""
    place, rig = project
    words = ["calibrate", str(place), "--distortion", "none", "--workers", "1", "--output", str(tmp_path)]
    assert main(words) in (0, 1)
    found = load_rig(tmp_path / "rig.toml")
    for camera in found:
        assert isinstance(camera, LensCamera)
    between = [np.linalg.norm(a.centre - b.centre) for a, b in zip(list(found)[1:], list(found), strict=False)]
    wanted = [np.linalg.norm(a.centre - b.centre) for a, b in zip(list(rig)[1:], list(rig), strict=False)]
    np.testing.assert_allclose(between, wanted, rtol=0.02)
    assert [c.centre[2] for c in found] == pytest.approx([c.centre[2] for c in rig], abs=25.0)


def test_a_pose2sim_project_with_clicked_points(
    project: tuple[Path, Rig], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its object_coords_3d are metres; the clicks are all it does not keep: lenses and poses with one command."""
    place, rig = project
    points = np.random.default_rng(7).uniform([-0.4, -0.4, 0.0], [0.4, 0.4, 0.6], (8, 3)).round(3)
    scene = f"[calibration.calculate.extrinsics.scene]\nobject_coords_3d = {points.tolist()}\n"
    shutil.copytree(place / "calibration" / "intrinsics", tmp_path / "calibration" / "intrinsics")
    config = CONFIG.replace('extrinsics_method = "board"', 'extrinsics_method = "scene"') + scene
    (tmp_path / "Config.toml").write_text(config)
    words = ["calibrate", str(tmp_path), "--distortion", "none", "--workers", "1"]
    assert main(words) == 2
    assert "--marks clicks.csv" in capsys.readouterr().err
    rows = [f"{c.name},{k + 1},{x},{y}" for c in rig for k, (x, y) in enumerate(c.project(1000 * points).tolist())]
    (tmp_path / "clicks.csv").write_text("camera,point,x,y\n" + "\n".join(rows) + "\n")
    assert main([*words, "--marks", str(tmp_path / "clicks.csv")]) == 0
    assert "3 cameras from 8 surveyed points" in capsys.readouterr().out
    found = load_rig(tmp_path / "results" / "rig.toml")
    assert max(np.linalg.norm(found[name].centre - rig[name].centre) for name in rig.names) < 40.0  # lenses to 2 %


def test_the_root_of_an_anipose_project_leads_to_its_session(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        '[calibration]\nboard_type = "charuco"\nboard_size = [7, 5]\nboard_square_side_length = 25\n'
        "board_marker_length = 18\nboard_marker_bits = 4\nboard_marker_dict_number = 50\n"
    )
    session = tmp_path / "day1" / "trial_a"
    (session / "calibration").mkdir(parents=True)
    for name in ("calib-camA.mp4", "calib-camB.mp4"):
        (session / "calibration" / name).write_bytes(b"x")
    found = open_session(tmp_path)
    assert found.folder == session and [f.name for f in found.footage] == ["A", "B"] and found.layout == "anipose"
    shutil.copytree(session, tmp_path / "day2" / "trial_b")
    with pytest.raises(InputError, match=r"holds 2 calibration sessions .*; give one of them"):
        open_session(tmp_path)


def test_a_wrong_dictionary_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = Board("charuco", 7, 5, 40.0, 30.0, "DICT_5X5_100")
    camera = straight_rig()[0]
    assert isinstance(camera, LensCamera)
    (tmp_path / "cam1").mkdir()
    for number, pose in enumerate(waved_board(6, np.random.default_rng(3), shown)):
        cv2.imwrite(str(tmp_path / "cam1" / f"{number}.png"), picture(camera, shown, pose))
    save_boards((Board("charuco", 7, 5, 40.0, 30.0, "DICT_4X4_50"),), tmp_path / "board.toml")
    assert main(["calibrate", str(tmp_path), "--workers", "1"]) == 2
    said = capsys.readouterr().err
    assert "markers of DICT_5X5_50 (or a larger one of its kind), not of DICT_4X4_50" in said
    assert said.count("\n") == 1
