"""``vivarig clean``: feet of a fitted recording stand, edits are done, bad edits are told."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from calibration.foundation.errors import InputError
from calibration.foundation.result_files import create_results, text_array
from calibration.geometry.transforms import quaternion_from_rotation
from capture.recordings.recording import load_recording
from skeleton.bodies import load_body
from skeleton.motion_files import read_csv
from skeleton.motions import make_motion
from vivarig.cli import main
from vivarig.stages import clean
from vivarig.stages.options import CleanOptions


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A recording whose fitted skeleton sways: a walk of 60 frames."""
    body = load_body("human")
    motion = make_motion(body, "walk", frames=60, rate_hz=60.0, rng=np.random.default_rng(8))
    raw = motion.coordinates.copy()
    raw[:, 1] += 5.0 * np.sin(np.arange(60) / 6.0)
    (tmp_path / "meshes").mkdir()
    (tmp_path / "recording.toml").write_text('name = "w"\nrate_hz = 60.0\nmeshes = "meshes"\n')
    (tmp_path / "results").mkdir()
    pose = body.forward(raw)
    with create_results(tmp_path / "results" / "skeleton.h5", stage="skeleton", parameters={}) as file:
        file.attrs.update({"body": "human", "rate_hz": 60.0})
        file["joint_names"] = text_array(list(body.joint_names))
        file["coordinate_names"] = text_array(list(body.coordinate_names))
        file["landmark_names"] = text_array(list(body.landmark_names))
        file["joint_parents"], file["joint_offsets"] = body.parents, np.array([j.offset for j in body.joints])
        file["coordinates"], file["positions"] = raw, pose.positions
        file["rotations"] = quaternion_from_rotation(pose.rotations)
        file["landmarks"] = body.landmarks(pose)[1]
        file["sigma"], file["trust"] = np.ones(pose.positions.shape[:2]), np.zeros(60, dtype=np.uint8)
    return tmp_path


def test_feet_stand_and_an_edit_is_done(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = load_body("human")
    (recording / "edits.toml").write_text(
        '[[edit]]\npoint = "left_wrist"\nframes = [20, 25]\nplace = [0.0, 0.0, 30.0]\nmode = "relative"\n'
    )
    before = (recording / "results" / "skeleton.h5").read_bytes()
    assert main(["clean", str(recording)]) == 0
    assert "median slide" in capsys.readouterr().out
    assert (recording / "results" / "skeleton.h5").read_bytes() == before
    with h5py.File(recording / "results" / "clean.h5") as file:
        names = [name.decode() for name in file["constraints/names"][:]]
        planted = file["contacts/planted"][:, 0]
        ours, raw = file["coordinates"][:], file["raw/coordinates"][:]
        missed = file["constraints/residual_mm"][:]
    assert "edit left_wrist" in names and missed.shape == (60, len(names))
    wrist = [body.forward(motion).points(*body.points(["left_wrist"]))[20:26, 0] for motion in (raw, ours)]
    np.testing.assert_allclose(wrist[1] - wrist[0], np.broadcast_to([0.0, 0.0, 30.0], (6, 3)), atol=0.01)
    ball = body.forward(ours).points(*body.points(["left_ball"]))[:, 0]
    both = planted[1:] & planted[:-1]
    assert np.median(np.linalg.norm(np.diff(ball, axis=0), axis=1)[both]) < 0.3
    # The clean motion goes to other programs, too, and is refused once it is of another fit.
    for flags, motion in (([], raw), (["--clean"], ours)):
        assert main(["export", str(recording), str(recording / "j.csv"), "--points", "joints", *flags]) == 0
        series = read_csv(recording / "j.csv")
        wanted = body.forward(motion).positions[:, body.index("left_wrist")]
        np.testing.assert_allclose(series.positions[:, series.names.index("left_wrist")], wanted, atol=0.01)
    with h5py.File(recording / "results" / "skeleton.h5", "r+") as file:
        file["coordinates"][0, 0] += 1.0
    assert main(["export", str(recording), str(recording / "j.csv"), "--clean"]) == 2
    assert "cleaned from another skeleton.h5" in capsys.readouterr().err


def test_what_is_wrong_with_an_edit_is_told(recording: Path) -> None:
    def run() -> None:
        clean.run(load_recording(recording), CleanOptions())

    edit = recording / "edits.toml"
    edit.write_text('[[edit]]\npoint = "left_paw"\nframes = [1, 2]\nplace = [0, 0, 0]\n')
    with pytest.raises(InputError, match="unknown point 'left_paw'"):
        run()
    edit.write_text('[[edit]]\npoint = "left_wrist"\nframes = [1, 200]\nplace = [0, 0, 0]\n')
    with pytest.raises(InputError, match="the motion has 60"):
        run()
    edit.write_text('[[edit]]\npoint = "left_wrist"\nframes = [1, 2]\nplace = [0, 0, 0]\nmode = "bent"\n')
    with pytest.raises(InputError, match="mode must be one of absolute"):
        run()
