"""``vivarig skeleton`` from a track file to skeleton.h5."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from tracked_mouse import write_tracked_mouse

from vivarig.cli import main


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A recording with the track of a mouse that sways; five frames are lost."""
    return write_tracked_mouse(tmp_path / "mouse_01")


def test_skeleton_file_holds_what_the_design_says(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["skeleton", str(recording), "--json", str(recording / "r.json")]) == 0
    assert "34 joints" in capsys.readouterr().out
    with (
        h5py.File(recording / "results" / "skeleton.h5") as file,
        h5py.File(recording / "results" / "track.h5") as track,
    ):
        assert file.attrs["stage"] == "skeleton" and file.attrs["units"] == "mm"
        assert file["positions"].shape == (40, 34, 3)
        assert file["rotations"].shape == (40, 34, 4)
        assert file["coordinates"].shape == (40, 87)
        assert file["sigma"].shape == (40, 34)
        assert file["marker_residuals"].shape == (40, 56)
        assert file["cage_joints"].shape == (40, 2, 3)
        assert file["contacts/planted"].shape == (40, 4) and file["contacts/names"][0] == b"left_fore"
        events = file["events"]
        assert set(events["kind"].asstr()[:]) <= {"toe strike", "toe off"} and len(events["foot"]) == len(
            events["time_s"]
        )
        told = file["constraints"]
        assert set(told["kind"].asstr()[:]) <= {"space", "line", "point"} and len(told["frames"]) == len(told["part"])
        np.testing.assert_array_equal(np.flatnonzero(file["trust"][:] == 2), np.arange(20, 25))
        # A frame that the tracker doubts is doubted, however well a skeleton fits its markers.
        assert file["trust"][5] == 1 and b"track" in file["reasons"][int(file["reason"][5])]
        np.testing.assert_allclose(np.linalg.norm(file["rotations"][:], axis=2), 1.0)
        off = np.linalg.norm(file["landmarks"][:] - track["truth"][:], axis=2)
        assert np.median(off) < 0.5  # mm; 0.1 mm noise, lengths estimated with it
        assert off[20:25].mean() < 2.0  # the window bridges the gap


def test_same_input_gives_the_same_bytes(recording: Path) -> None:
    target = recording / "results" / "skeleton.h5"
    assert main(["skeleton", str(recording), "--no-scaling", "--smooth", "0"]) == 0
    first = target.read_bytes()
    assert main(["skeleton", str(recording), "--no-scaling", "--smooth", "0"]) == 0
    assert target.read_bytes() == first


def test_bad_input(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["skeleton", str(recording), "--body", "cat"]) == 2
    assert "unknown subject 'cat'" in capsys.readouterr().err
    (recording / "results" / "track.h5").unlink()
    assert main(["skeleton", str(recording)]) == 2
    assert "run `vivarig track` first" in capsys.readouterr().err


def test_the_body_is_the_one_that_was_tracked(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tracked with ``--subject mouse``: that word counts, not what the recording says."""
    description = recording / "recording.toml"
    description.write_text(description.read_text().replace('subject = "mouse"', 'subject = "human"'))
    with h5py.File(recording / "results" / "track.h5", "r+") as file:
        file.attrs["parameters"] = '{"subject": "mouse"}'
    assert main(["skeleton", str(recording)]) == 0
    assert "body 'mouse'" in capsys.readouterr().out
