"""Session folders as programs leave them, and bad input to ``vivarig calibrate``: one clear line, nothing written."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from board_scenes import CHARUCO, ring_rig, waved_board

from calibration.boards.board import save_boards
from calibration.boards.printing import board_image
from calibration.boards.session import numbered_images, open_session
from calibration.cameras.rig import load_rig
from calibration.foundation.errors import InputError
from capture.recordings.video import write_video
from vivarig.cli import main

TEXTURE = board_image(CHARUCO, pixels_per_mm=3, margin_mm=20)


def picture(camera, pose) -> np.ndarray:
    """Render the board in a camera (its distortion left out: a homography does it)."""
    k, p = camera.lens.intrinsics, camera.camera_from_world @ pose
    flat = np.column_stack([p.rotation[:, 0], p.rotation[:, 1], p.translation])
    to_mm = np.array([[1 / 3, 0, -20 + 0.5 / 3], [0, 1 / 3, -20 + 0.5 / 3], [0, 0, 1]])
    h = k @ flat @ to_mm
    return cv2.warpPerspective(TEXTURE, h, camera.size, flags=cv2.INTER_AREA, borderValue=128)


@pytest.fixture(scope="module")
def films() -> tuple[list[list[np.ndarray]], object]:
    """Two cameras, twelve board pictures each, and their rig."""
    rng = np.random.default_rng(1)
    rig = ring_rig(8, rng, radius=900.0)
    pair = [rig[0], rig[1]]
    poses = [p for p in waved_board(120, rng, CHARUCO) if all(
        (-p.rotation[:, 2]) @ (c.centre - p.translation) > 0.6 * np.linalg.norm(c.centre - p.translation) for c in pair
    )][:12]  # fmt: skip
    return [[picture(c, p) for p in poses] for c in pair], pair


def write_session(folder: Path, films) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, images in zip(("left", "right"), films, strict=True):
        (folder / name).mkdir()
        for i, image in enumerate(images):
            cv2.imwrite(str(folder / name / f"{i:03d}.png"), image)
    save_boards((CHARUCO,), folder / "board.toml")
    return folder


def test_calibrate_writes_rig_and_report_and_the_same_bytes_twice(tmp_path: Path, films, capsys) -> None:
    images, pair = films
    session = write_session(tmp_path / "session", images)
    arguments = ["calibrate", str(session), "--distortion", "none", "--floor-frame", "3"]
    code = main([*arguments, "--workers", "1", "--json", str(tmp_path / "numbers.json")])
    assert code in (0, 1)  # few frames: the quality may be called insufficient, the files are there
    rig = load_rig(session / "results" / "rig.toml")
    baseline = np.linalg.norm(rig[0].centre - rig[1].centre)
    want = np.linalg.norm(pair[0].centre - pair[1].centre)
    assert baseline == pytest.approx(want, rel=0.01)
    assert min(rig[0].centre[2], rig[1].centre[2]) > 0  # above the board that was called the floor
    page = (session / "results" / "calibration.html").read_text()
    assert "<svg" in page and "http-equiv" not in page and "src=" not in page
    again = tmp_path / "again"
    main([*arguments, "--workers", "2", "--output", str(again)])
    for name in ("rig.toml", "calibration.html"):
        assert (again / name).read_bytes() == (session / "results" / name).read_bytes()
    assert "wrote" in capsys.readouterr().out


def expect_line(capsys, arguments: list[str], words: str) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err.strip()
    assert words in error and "\n" not in error, error


def test_bad_sessions_end_in_one_line_and_write_nothing(tmp_path: Path, films, capsys) -> None:
    images, _ = films
    expect_line(capsys, ["calibrate", str(tmp_path / "nowhere")], "no such session folder")
    empty = tmp_path / "empty"
    empty.mkdir()
    expect_line(capsys, ["calibrate", str(empty)], "no footage found")

    grey = [[np.full((120, 160), 90 + i, np.uint8) for i in range(6)]] * 2
    expect_line(capsys, ["calibrate", str(write_session(tmp_path / "no_board", grey))], "no board in any camera")

    blind = [images[0], [np.full_like(images[1][0], 90 + i) for i in range(len(images[1]))]]
    session = write_session(tmp_path / "blind", blind)
    expect_line(capsys, ["calibrate", str(session)], "'right' never saw a board")

    session = write_session(tmp_path / "no_toml", images)
    (session / "board.toml").unlink()
    expect_line(capsys, ["calibrate", str(session)], "no board.toml describes the board")
    for name in ("no_board", "blind", "no_toml"):
        assert not (tmp_path / name / "results" / "rig.toml").exists()
        assert not (tmp_path / name / "results" / "calibration.html").exists()


def test_videos_that_do_not_fit_together(tmp_path: Path, films, capsys) -> None:
    images, _ = films
    lengths = tmp_path / "lengths"
    lengths.mkdir()
    save_boards((CHARUCO,), lengths / "board.toml")
    write_video(lengths / "a.mp4", images[0], 10.0)
    write_video(lengths / "b.mp4", images[1][:6], 10.0)
    expect_line(capsys, ["calibrate", str(lengths)], "different lengths (a 12, b 6 frames)")
    rates = tmp_path / "rates"
    rates.mkdir()
    save_boards((CHARUCO,), rates / "board.toml")
    write_video(rates / "a.mp4", images[0], 10.0)
    write_video(rates / "b.mp4", images[1], 25.0)
    expect_line(capsys, ["calibrate", str(rates)], "different frame rates (a 10 Hz, b 25 Hz)")
    (rates / "b.mp4").write_bytes(b"not a video")
    expect_line(capsys, ["calibrate", str(rates)], "b.mp4: cannot be opened as a video")
    rolling = tmp_path / "rolling"
    write_session(rolling, [images[0], [images[1][i // 2] for i in range(12)]])
    expect_line(capsys, ["calibrate", str(rolling)], "'right' repeats 6 of 12 frames")


def test_layouts_of_other_programs(tmp_path: Path) -> None:
    anipose = tmp_path / "anipose"
    (anipose / "calibration").mkdir(parents=True)
    for name in ("calib-camB.mp4", "calib-camA.mp4"):
        (anipose / "calibration" / name).touch()
    (anipose / "config.toml").write_text(
        '[calibration]\nboard_type = "charuco"\nboard_size = [7, 5]\nboard_square_side_length = 20\n'
        "[triangulation]\ncam_regex = 'cam([A-Z])'\n"
    )
    session = open_session(anipose)
    assert session.layout == "anipose" and [f.name for f in session.footage] == ["A", "B"]
    many = tmp_path / "many"
    many.mkdir()
    save_boards((CHARUCO,), many / "board.toml")
    for i in (10, 9, 1, 11):
        (many / f"cam{i}.mp4").touch()
    assert [f.name for f in open_session(many).footage] == ["cam1", "cam9", "cam10", "cam11"]
    with pytest.raises(InputError, match="no such session"):
        open_session(tmp_path / "nothing")


def test_images_are_numbered_by_their_last_number() -> None:
    files = [Path(f"back-0224-{i}.jpg") for i in (10, 2, 1)]
    assert [n for n, _ in numbered_images(files)] == [1, 2, 10]
    assert [n for n, _ in numbered_images([Path("b.png"), Path("a.png")])] == [0, 1]


@pytest.mark.realdata
def test_borrowed_sessions_are_recognised(shared_data: Path) -> None:
    mouse = open_session(shared_data / "mouse_cage")
    assert mouse.layout == "sleap-anipose" and [len(f.images) for f in mouse.footage] == [21] * 4
    webcams = open_session(shared_data / "caliscope" / "charuco_calibration")
    assert webcams.layout == "caliscope" and webcams.boards[0].inverted and webcams.boards[0].square_mm == 54.0
