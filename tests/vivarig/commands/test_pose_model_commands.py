"""Pose spaces and libraries from the command line: trained on a recording, used by ``skeleton``, motion in a .vpg."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from tracked_mouse import write_tracked_mouse

from skeleton.motion_files import read_motion
from vivarig.cli import main


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recording of a swaying mouse with its skeleton."""
    folder = write_tracked_mouse(tmp_path_factory.mktemp("pose_models") / "mouse_01")
    assert main(["skeleton", str(folder), "--no-scaling", "--smooth", "0"]) == 0
    return folder


@pytest.fixture(scope="module")
def models(fitted: Path) -> Path:
    """A pose space and a library learnt from it."""
    place = fitted.parent
    space, library = str(place / "space.npz"), str(place / "library.npz")
    assert main(["train", "--skeleton", "mouse", str(fitted), "-o", space, "--picture", str(place / "modes.png"),
                 "--json", str(place / "space.json")]) == 0  # fmt: skip
    assert main(["train", "--skeleton", "mouse", str(fitted), "-o", library, "--poses", "20",
                 "--json", str(place / "library.json")]) == 0  # fmt: skip
    return place


def positions(folder: Path) -> np.ndarray:
    with h5py.File(folder / "results" / "skeleton.h5") as file:
        return np.asarray(file["positions"][:])


def test_train_says_how_many_numbers_hold_the_motion(models: Path) -> None:
    told = json.loads((models / "space.json").read_text())
    # Every angle is a sine of one frequency, so two numbers would do; the markers' noise turns small segments besides.
    assert 2 <= told["modes95"] <= 12 and told["modes95"] < told["modes99"] < 33 and told["frames"] == 34
    assert (models / "modes.png").read_bytes()[:4] == b"\x89PNG"
    assert 2 <= json.loads((models / "library.json").read_text())["library_poses"] <= 20


@pytest.mark.parametrize("flag", ["--pose-space", "--prior"])
def test_skeleton_takes_a_pose_model_as_its_rest_pose(fitted: Path, models: Path, tmp_path: Path, flag: str) -> None:
    model = models / ("space.npz" if flag == "--pose-space" else "library.npz")
    copy = tmp_path / "mouse_01"
    shutil.copytree(fitted, copy)
    assert main(["skeleton", str(copy), "--no-scaling", "--smooth", "0", flag, str(model)]) == 0
    before, after = positions(fitted), positions(copy)
    seen = np.r_[0:20, 25:40]
    apart = np.linalg.norm(after[seen] - before[seen], axis=2)
    # Markers decide where they are; what they leave open is drawn towards the likely pose.
    assert 1e-6 < np.median(apart) < 1.0
    with h5py.File(copy / "results" / "skeleton.h5") as file:
        key = "pose_space" if flag == "--pose-space" else "prior"
        assert model.name in json.loads(file.attrs["parameters"])[key]


def test_motion_goes_into_few_bytes_and_back(fitted: Path, tmp_path: Path) -> None:
    coded, again, copy = tmp_path / "motion.vpg", tmp_path / "motion.bvh", tmp_path / "mouse_01"
    shutil.copytree(fitted, copy)
    (copy / "results" / "track.h5").unlink()  # it holds markers alone, no surface
    assert main(["export", str(copy), str(coded)]) == 0
    assert main(["convert", str(coded), str(again)]) == 0
    motion = read_motion(again, unit_mm=1.0)
    truth = positions(fitted)
    assert coded.stat().st_size < 0.2 * truth.astype(np.float32).nbytes
    assert motion.rate_hz == pytest.approx(100.0) and len(motion.rotations) == len(truth)


def test_what_is_no_model_and_unknown_bodies_are_refused(
    fitted: Path, models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["skeleton", str(fitted), "--pose-space", str(models / "modes.png")]) == 2
    assert "modes.png" in capsys.readouterr().err
    both = ["--pose-space", str(models / "space.npz"), "--prior", str(models / "library.npz")]
    assert main(["skeleton", str(fitted), *both]) == 2
    assert "--prior" in capsys.readouterr().err
    assert main(["train", "--skeleton", "cat", str(fitted), "-o", str(models / "x.npz")]) == 2
    assert "built-in body" in capsys.readouterr().err
