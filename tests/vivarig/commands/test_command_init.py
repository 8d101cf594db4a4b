"""``vivarig init``: a folder as a laboratory leaves it becomes a recording, or one line says what is missing."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from calibration.boards.board import load_boards
from calibration.cameras.rig import load_rig, save_rig
from calibration.rig_formats import write_rig
from calibration.solving.world_frame import moved_rig
from capture.recordings.recording import load_recording
from capture.recordings.video import write_video
from vivarig.calibration_stage.uprightness import AXES, turned_up, upward
from vivarig.cli import main


@pytest.fixture
def filmed(tmp_path: Path, sample_data: Path) -> Path:
    """Four videos with plates, named as cameras are, and an Anipose calibration."""
    folder = tmp_path / "monday"
    folder.mkdir()
    source = sample_data / "mouse"
    rig = load_recording(source).need_rig().subset(["cam01", "cam02", "cam03", "cam04"])
    for name in rig.names:
        shutil.copy(source / "videos" / f"{name}.mp4", folder / f"trial3-{name}.mp4")
        shutil.copy(source / "videos" / f"{name}_background.mp4", folder / f"{name}_empty.mp4")
    write_rig(rig, folder / "calibration.toml", "anipose", lossy=True)
    return folder


def test_a_folder_becomes_a_recording(filmed: Path, sample_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path.name: path.read_bytes() for path in filmed.iterdir()}
    assert main(["init", str(filmed), "--subject", "mouse"]) == 0
    out = capsys.readouterr().out
    assert "4 cameras, 120 frames per second" in out and f"next: vivarig run {filmed}" in out
    made = load_recording(filmed)
    assert (made.name, made.rate_hz, made.subject) == ("monday", 120.0, "mouse")
    assert [f.source.name for f in made.footage] == [f"trial3-cam0{k}.mp4" for k in range(1, 5)]
    assert [f.background and f.background.name for f in made.footage] == [f"cam0{k}_empty.mp4" for k in range(1, 5)]
    truth = load_rig(sample_data / "mouse" / "rig.toml")
    for camera in made.need_rig():
        assert np.allclose(camera.centre, truth[camera.name].centre, atol=1e-6)
    assert all((filmed / name).read_bytes() == content for name, content in before.items())


def test_what_is_missing_is_said(filmed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (filmed / "calibration.toml").unlink()
    (filmed / "calibration").mkdir()
    shutil.copy(filmed / "trial3-cam01.mp4", filmed / "calibration" / "cam01.mp4")
    assert main(["init", str(filmed)]) == 1
    err = capsys.readouterr().err
    assert "no calibration found; make rig.toml with `vivarig calibrate SESSION`" in err
    assert 'no subject; add a line like subject = "mouse"' in err
    assert len(load_recording(filmed).footage) == 4  # written all the same, to be completed


@pytest.mark.parametrize(
    ("spoil", "words", "message"),
    [
        (lambda f: (f / "recording.toml").write_text(""), [], "is there already"),
        (lambda f: (f / "trial3-cam02.mp4").rename(f / "left.mp4"), [], "cannot tell which camera left.mp4 is of"),
        (lambda f: shutil.copy(f / "calibration.toml", f / "old.toml"), [], "several calibrations"),
        (lambda f: shutil.copy(f / "trial3-cam01.mp4", f / "again-cam01.mp4"), [], "look like camera 'cam01'"),
        (lambda f: [p.unlink() for p in f.glob("*.mp4")], [], "no video and no folder of images found"),
    ],
)
def test_one_line_for_what_cannot_be_told(
    filmed: Path, capsys: pytest.CaptureFixture[str], spoil: object, words: list[str], message: str
) -> None:
    spoil(filmed)  # type: ignore[operator]
    assert main(["init", str(filmed), "--subject", "mouse", *words]) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1


def test_by_order_where_names_do_not_tell(filmed: Path) -> None:
    for k, name in enumerate(("a", "b", "c", "d"), start=1):
        (filmed / f"trial3-cam0{k}.mp4").rename(filmed / f"{name}.mp4")
    assert main(["init", str(filmed), "--subject", "mouse", "--by-order"]) == 0
    assert [f.source.name for f in load_recording(filmed).footage] == ["a.mp4", "b.mp4", "c.mp4", "d.mp4"]


@pytest.mark.parametrize("up", [axis for axis in AXES if axis != "z"])
def test_a_rig_that_lies_on_its_side_is_turned(filmed: Path, sample_data: Path, up: str) -> None:
    upright = load_rig(sample_data / "mouse" / "rig.toml")
    lying = moved_rig(upright, turned_up(up).inverse())
    assert (upward(upright), upward(lying)) == ("z", up)
    save_rig(lying.subset(["cam01", "cam02", "cam03", "cam04"]), filmed / "calibration.toml")
    assert main(["init", str(filmed), "--subject", "mouse"]) == 0
    made = load_recording(filmed).need_rig()
    assert upward(made) == "z"
    heights = [camera.centre[2] for camera in made]
    assert np.allclose(heights, [upright[name].centre[2] for name in made.names], atol=1e-6)


def test_a_size_that_does_not_fit_is_named(filmed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_video(filmed / "trial3-cam02.mp4", iter(np.zeros((3, 120, 160, 3), np.uint8)), 120.0)
    assert main(["init", str(filmed), "--subject", "mouse"]) == 1
    assert "cam02: images of 160x120 px, calibrated at 640x480" in capsys.readouterr().err


def test_board_videos_in_the_folder_are_calibrated_from(
    filmed: Path, sample_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only videos and ChArUco videos, nothing about the board: cameras as high and far apart as they are, to 1 mm."""
    (filmed / "calibration.toml").unlink()
    boards = filmed / "calibration"
    (boards / "floor").mkdir(parents=True)
    source = sample_data / "mouse" / "calibration"
    for name in ("cam01", "cam02", "cam03", "cam04"):
        shutil.copy(source / f"{name}.mp4", boards)
        shutil.copy(source / "floor" / f"{name}.mp4", boards / "floor")
    assert main(["init", str(filmed), "--subject", "mouse"]) == 1
    assert f"give the side of a square: vivarig init {filmed} --square MM" in capsys.readouterr().out
    (filmed / "recording.toml").unlink()
    assert main(["init", str(filmed), "--subject", "mouse", "--square", "14"]) == 0
    assert "calibrated from" in capsys.readouterr().out
    (board,) = load_boards(boards / "board.toml")
    assert (board.columns, board.rows, board.dictionary, board.square_mm) == (7, 5, "DICT_4X4_50", 14.0)
    assert board.marker_mm == pytest.approx(10.5, abs=0.5)
    made, truth = load_recording(filmed).need_rig(), load_rig(sample_data / "mouse" / "rig.toml")
    found, wanted = (np.stack([rig[name].centre for name in made.names]) for rig in (made, truth))
    assert np.abs(found[:, 2] - wanted[:, 2]).max() < 1.0
    assert np.abs(np.linalg.norm(found - found[0], axis=1) - np.linalg.norm(wanted - wanted[0], axis=1)).max() < 1.0


def test_a_folder_of_mayacams_is_one_calibration(tmp_path: Path, sample_data: Path) -> None:
    """As XMALab leaves it: a file per camera; cameras called X-ray are of that kind."""
    folder = tmp_path / "xma"
    shutil.copytree(sample_data / "rat_xray" / "videos", folder / "videos")
    write_rig(load_rig(sample_data / "rat_xray" / "rig.toml"), folder / "cams", "mayacam2", lossy=True)
    assert main(["init", str(folder), "--subject", "rat"]) == 0
    made = load_recording(folder)
    assert {f.name: f.kind for f in made.footage} == {
        "light1": "light", "light2": "light", "xray1": "xray", "xray2": "xray",
    }  # fmt: skip
