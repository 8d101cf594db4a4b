"""``vivarig calibrate`` and its neighbours from the command line: several boards, world frames, known lenses, gaps."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
from board_scenes import CHARUCO, ring_rig, waved_board

from calibration.boards.board import Board, load_boards, save_boards
from calibration.boards.detection import detect_in_image
from calibration.boards.printing import board_image
from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig, load_rig
from calibration.geometry.transforms import RigidTransform
from vivarig.cli import main

TAGS = Board("aprilgrid", 5, 4, 60.0, 45.0, "DICT_APRILTAG_36h11", name="tags")
MARKS = Board("charuco", CHARUCO.columns, CHARUCO.rows, 40.0, 30.0, "DICT_4X4_50", name="marks")
BESIDE = RigidTransform(np.eye(3), np.array([-420.0, 0.0, 0.0]))  # marks_from_tags: both on one long sheet
FLOOR = 0


def straight_rig() -> Rig:
    """Three cameras without distortion, so that a homography renders a board exactly."""
    rig = ring_rig(8, np.random.default_rng(2), radius=1000.0)
    return Rig(
        tuple(
            LensCamera(c.name, PinholeLens(c.size, c.lens.intrinsics, np.zeros(5)), c.camera_from_world)
            for c in list(rig)[:3]
        )
    )


def picture(camera: LensCamera, poses: dict[Board, RigidTransform]) -> np.ndarray:
    out = np.full(camera.size[::-1], 128, np.uint8)
    to_mm = np.array([[1 / 3, 0, -20 + 0.5 / 3], [0, 1 / 3, -20 + 0.5 / 3], [0, 0, 1]])
    for board, world_from_board in poses.items():
        p = camera.camera_from_world @ world_from_board
        h = camera.lens.intrinsics @ np.column_stack([p.rotation[:, :2], p.translation]) @ to_mm
        texture = board_image(board, pixels_per_mm=3, margin_mm=20)
        drawn = cv2.warpPerspective(texture, h, camera.size, flags=cv2.INTER_AREA, borderValue=0)
        mask = cv2.warpPerspective(np.full_like(texture, 255), h, camera.size, flags=cv2.INTER_NEAREST)
        out[mask > 0] = drawn[mask > 0]
    return out


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Rig]:
    """A ChArUco board and an AprilTag grid waved together before three cameras; in frame 0 they lie on the floor."""
    folder, rig = tmp_path_factory.mktemp("two_boards"), straight_rig()
    poses = waved_board(150, np.random.default_rng(4), MARKS)

    def faces(pose: RigidTransform) -> bool:
        towards = [c.centre - pose.apply(MARKS.points_mm.mean(0)) for c in rig]
        return all(-pose.rotation[:, 2] @ t > 0.5 * np.linalg.norm(t) for t in towards)

    chosen = [poses[0], *[p for p in poses[1:] if faces(p)][:11]]
    for camera in rig:
        assert isinstance(camera, LensCamera)
        (folder / camera.name).mkdir()
        for i, pose in enumerate(chosen):
            image = picture(camera, {MARKS: pose, TAGS: pose @ BESIDE})
            cv2.imwrite(str(folder / camera.name / f"{i:03d}.png"), image)
    save_boards((MARKS, TAGS), folder / "board.toml")
    return folder, rig


def spacing(rig: Rig) -> np.ndarray:
    centres = np.stack([camera.centre for camera in rig])
    return np.linalg.norm(centres[[0, 0, 1]] - centres[[1, 2, 2]], axis=1)


def test_several_boards_floor_points_and_a_known_distance(
    session: tuple[Path, Rig], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, truth = session
    assert {b.kind for b in load_boards(folder / "board.toml")} == {"charuco", "aprilgrid"}
    first = cv2.imread(str(folder / "cam1" / "000.png"), cv2.IMREAD_GRAYSCALE)
    assert {view.board for view in detect_in_image(first, (MARKS, TAGS))} == {0, 1}
    lines = []
    places = {"corner": [0.0, 0.0, 0.0], "x_end": [300.0, 0.0, 0.0], "y_end": [0.0, 200.0, 0.0]}
    for name, place in places.items():
        lines.append(f"[points.{name}]\nworld = {place}")
        lines += [f"pixels.{c.name} = {c.project(np.array(place)).tolist()}" for c in truth]
    lines.append('[[distances]]\nbetween = ["x_end", "y_end"]\nmm = 360.555')
    (tmp_path / "points.toml").write_text("\n".join(lines))
    numbers, out = tmp_path / "numbers.json", tmp_path / "out"  # one folder: the corners are found once
    base = ["calibrate", str(folder), "--distortion", "none", "--workers", "1", "--output", str(out)]
    for world in (["--axes", "corner,x_end,y_end"], []):  # an L-frame's three marks; known places
        options = ["--points", str(tmp_path / "points.toml"), "--json", str(numbers)]
        assert main([*base, *options, *world]) in (0, 1)
        rig = load_rig(out / "rig.toml")
        # 0.1 px of rendering at a metre, three cameras within 90 degrees: a few millimetres
        assert np.abs(np.stack([c.centre for c in rig]) - np.stack([c.centre for c in truth])).max() < 8.0
    text = json.dumps(json.loads(numbers.read_text()))
    assert "360.5" in text and "sd" in text
    assert main([*base, "--floor-frame", str(FLOOR)]) == 2  # two boards lie there
    assert main([*base, "--floor-frame", str(FLOOR), "--floor-board", "marks"]) in (0, 1)
    rig = load_rig(out / "rig.toml")
    assert spacing(rig) == pytest.approx(spacing(truth), rel=0.005)
    assert min(c.centre[2] for c in rig) > 0
    # the same frame as clips of the floor, one for each camera, of another day; a clip of a board elsewhere is said
    for camera in truth:
        assert isinstance(camera, LensCamera)
        place = folder / "floor" / camera.name
        place.mkdir(parents=True)
        shutil.copy(folder / camera.name / f"{FLOOR:03d}.png", place / "000.png")
    assert main([*base, "--floor-board", "marks"]) in (0, 1)
    assert "clips of cam1, cam2, cam3" in (out / "calibration.html").read_text()
    for before, after in zip(rig, load_rig(out / "rig.toml"), strict=True):
        assert after.centre == pytest.approx(before.centre, abs=3.0)
    shutil.copy(folder / "cam1" / "003.png", folder / "floor" / "cam1" / "000.png")
    capsys.readouterr()
    assert main([*base, "--floor-board", "marks"]) == 2
    assert "px off in camera 'cam" in capsys.readouterr().err
    shutil.rmtree(folder / "floor")
    # extrinsics only: lenses from a file, held
    lenses = tmp_path / "lenses.toml"
    (out / "rig.toml").rename(lenses)
    assert main([*base, "--intrinsics", str(lenses)]) in (0, 1)
    for before, after in zip(rig, load_rig(out / "rig.toml"), strict=True):
        assert isinstance(before, LensCamera) and isinstance(after, LensCamera)
        assert np.array_equal(before.lens.intrinsics, after.lens.intrinsics)


def test_a_camera_cut_off_is_named_and_the_rest_solved_on_request(
    session: tuple[Path, Rig], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, truth = session
    cut = tmp_path / "cut"
    for camera in truth:
        (cut / camera.name).mkdir(parents=True)
        for file in sorted((folder / camera.name).glob("*.png")):
            number = int(file.stem) + (100 if camera.name == "cam3" else 0)  # never the same instant
            (cut / camera.name / f"{number:03d}.png").write_bytes(file.read_bytes())
    save_boards((MARKS, TAGS), cut / "board.toml")
    base = ["calibrate", str(cut), "--distortion", "none", "--workers", "1"]
    assert main(base) == 2
    error = capsys.readouterr().err.strip()
    assert "missing link between 'cam3' and 'cam1', 'cam2'" in error and "--largest-part" in error
    assert "\n" not in error and not (cut / "results" / "rig.toml").exists()
    assert main([*base, "--largest-part"]) in (0, 1)
    assert load_rig(cut / "results" / "rig.toml").names == ("cam1", "cam2")


def test_swapped_rows_and_columns_are_said(session: tuple[Path, Rig], tmp_path: Path, capsys) -> None:
    folder, _ = session
    swapped = Board("charuco", MARKS.rows, MARKS.columns, 40.0, 30.0, "DICT_4X4_50")
    save_boards((swapped,), tmp_path / "board.toml")
    arguments = ["calibrate", str(folder), "--board", str(tmp_path / "board.toml"), "--distortion", "none"]
    main([*arguments, "--output", str(tmp_path / "out"), "--workers", "1"])
    said = capsys.readouterr()
    assert "8x6" in said.out + said.err and "6x8" in said.out + said.err
