"""Names from files: checked at the door, and no path made from one leaves its folder."""

from pathlib import Path

import numpy as np
import pytest
from example_rigs import ring

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import load_rig, rig_to_toml
from calibration.foundation.errors import InputError
from calibration.foundation.names import checked_label, checked_name, inside
from calibration.geometry.transforms import RigidTransform
from vivarig.cli import main

BAD = ("../../../x", "/etc/x", "..", ".", "", "a/b", "a\\b", "a\0b", "x" * 101, "a:b", "a\nb", " ", "…")
GOOD = ("cam01", "Kamera 3", "C1.left", "左", "a-b_c")


@pytest.mark.parametrize("name", BAD)
def test_bad_names_are_refused_wherever_a_camera_is_made(name: str) -> None:
    lens = PinholeLens((640, 480), np.array([[500.0, 0, 320], [0, 500, 240], [0, 0, 1]]), np.zeros(0))
    with pytest.raises(InputError, match="is called"):
        LensCamera(name, lens, RigidTransform(np.eye(3), np.zeros(3)))


@pytest.mark.parametrize("name", GOOD)
def test_good_names_pass(name: str) -> None:
    assert checked_name(name, "a camera") == name == checked_label(name, "a marker")


def test_markers_may_carry_their_subject() -> None:
    assert checked_label("Anna:LASI", "a marker") == "Anna:LASI"
    with pytest.raises(InputError, match="may not be in a name"):
        checked_label("a/b", "a marker")


@pytest.mark.parametrize("name", ["../x", "/x", "..", ".", "", "a/b", "a\\b"])
def test_paths_stay_in_their_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="would not lie in this folder"):
        inside(tmp_path, name)


@pytest.mark.parametrize("target", ["jarvis", "mayacam1", "mayacam2", "humaneva"])
@pytest.mark.parametrize("name", ["../../../x", "ABSOLUTE", "."])
def test_a_rig_file_writes_nothing_outside_its_target(
    tmp_path: Path, target: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "a" / "b" / "c"
    place.mkdir(parents=True)
    called = str(tmp_path / "x") if name == "ABSOLUTE" else name
    text = rig_to_toml(ring(3)).replace('"cam1"', repr(called))
    assert called in text
    (place / "rig.toml").write_text(text)
    before = set(tmp_path.rglob("*"))
    assert main(["convert", str(place / "rig.toml"), str(place / "out"), "--to", target, "--lossy"]) == 2
    assert "is called" in capsys.readouterr().err
    assert set(tmp_path.rglob("*")) - before <= {place / "out"}


def test_camera_names_of_a_recording_are_checked(tmp_path: Path) -> None:
    from capture.recordings.recording import load_recording

    (tmp_path / "v.mp4").write_bytes(b"")
    (tmp_path / "recording.toml").write_text('rate_hz = 30\n[cameras."../x"]\nvideo = "v.mp4"\n')
    with pytest.raises(InputError, match="is called"):
        load_recording(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        load_rig(tmp_path / "rig.toml")
