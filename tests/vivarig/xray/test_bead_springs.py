"""X-ray beads in the skeleton fit, and as the truth of the fit without them."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from calibration.foundation.result_files import create_results, text_array
from calibration.geometry.transforms import rotation_from_quaternion
from capture.studio.films.acting import perform
from skeleton.actors.actor import sample_actor
from skeleton.motions import make_motion
from vivarig.cli import main

FRAMES = 24
#: Lengths and smoothing are tested elsewhere and take most of the time.
QUICK = ["--smooth", "0", "--no-scaling"]


@pytest.fixture(scope="module")
def rat():
    """A rat of other proportions than the built-in one, with soft tissue between skin and bone, walking."""
    actor = sample_actor("rat", 11)
    motion = make_motion(actor.skeleton, "walk", rate_hz=200.0, frames=FRAMES, rng=np.random.default_rng(2))
    return perform(actor, motion.coordinates, 200.0).truth()


def write_beads(folder: Path, names, bones, positions) -> None:
    with create_results(folder / "results" / "beads.h5", stage="beads", parameters={}) as file:
        file["names"] = text_array(list(names))
        file["bead_bones"] = text_array(list(bones))
        file["positions"] = positions
        file["covariance"] = np.broadcast_to(np.eye(3) * 0.02**2, (*positions.shape, 3))


@pytest.fixture
def recording(tmp_path: Path, rat) -> Path:
    folder = tmp_path / "rat_01"
    (folder / "results").mkdir(parents=True)
    (folder / "a.mp4").write_bytes(b"")
    (folder / "recording.toml").write_text(
        'name = "r"\nrate_hz = 200.0\nsubject = "rat"\n[cameras.a]\nvideo = "a.mp4"\n'
    )
    rng = np.random.default_rng(3)
    # Errors of markerless markers drift rather than flicker: a smooth 2 mm on every one.
    drift = np.cumsum(rng.normal(size=rat.markers.positions.shape), axis=0)
    drift *= 2.0 / drift.std(axis=0)
    with create_results(folder / "results" / "track.h5", stage="track", parameters={}) as file:
        file["markers"] = rat.markers.positions + drift - drift.mean(axis=0)
        file["marker_sigma"] = np.full(rat.markers.positions.shape[:2], 2.0)
        file["marker_names"] = text_array(list(rat.markers.names))
        file["trust"] = np.zeros(FRAMES, dtype=np.uint8)
    beads = rat.beads.positions + rng.normal(size=rat.beads.positions.shape) * 0.02
    beads[10:13, 3] = np.nan
    write_beads(folder, rat.beads.names, [""] * len(rat.beads.names), beads)
    return folder


def carried(file: h5py.File, where: str, rat) -> np.ndarray:
    """Return (T, B) how far true beads wander in the frames of their segments, mm."""
    group = file[where] if where else file
    actor = sample_actor("rat", 11)
    index = actor.implanted_beads.segments
    turns = rotation_from_quaternion(group["rotations"][:][:, index])
    local = np.einsum("tbji,tbj->tbi", turns, rat.beads.positions - group["positions"][:][:, index])
    return np.linalg.norm(local - local.mean(axis=0), axis=2)


def test_beads_hold_their_bones_and_judge_the_fit_without_them(recording: Path, rat, capsys) -> None:
    assert main(["skeleton", str(recording), *QUICK]) == 0
    assert "X-ray beads hold their segments" in capsys.readouterr().out
    with h5py.File(recording / "results" / "skeleton.h5") as file:
        alone, held = carried(file, "markerless", rat), carried(file, "", rat)
    # 2 mm of drift in the skin; the springs of the beads are of 0.25 mm.
    assert held.mean() < 0.35 * alone.mean() and held.mean() < 0.3
    assert main(["evaluate", str(recording), "--truth", "beads", "--json", str(recording / "e.json")]) == 0
    said = capsys.readouterr().out
    assert "left_hip" in said and "skin against bone" in said
    assert float(said.split("bone: ")[1].split()[0]) == pytest.approx(np.nanmean(alone), abs=0.05)
    # Without the beads the result is the one kept beside.
    assert main(["skeleton", str(recording), "--no-beads", *QUICK]) == 0
    with h5py.File(recording / "results" / "skeleton.h5") as file:
        assert "markerless" not in file
        np.testing.assert_allclose(carried(file, "", rat), alone)


def test_beads_are_mapped_by_the_bones_the_user_named(recording: Path, rat, capsys) -> None:
    index = [list(rat.beads.names).index(name) for name in ("left_femur_proximal", "left_femur_distal")]
    beads = rat.beads.positions[:, index]
    write_beads(recording, ("bead01", "bead02"), ("left_hip", "elsewhere"), beads)
    assert main(["skeleton", str(recording), *QUICK]) == 0
    assert "1 X-ray beads hold their segments (left_hip)" in capsys.readouterr().out
    write_beads(recording, ("bead01", "bead02"), ("", ""), beads)
    assert main(["skeleton", str(recording), *QUICK]) == 0
    assert "X-ray" not in capsys.readouterr().out
    assert main(["evaluate", str(recording), "--truth", "beads"]) == 2
    assert "triangulate --bones" in capsys.readouterr().err


def test_another_frame_of_reference_is_said(recording: Path, rat, capsys) -> None:
    write_beads(recording, rat.beads.names, [""] * len(rat.beads.names), rat.beads.positions + 900.0)
    assert main(["skeleton", str(recording), *QUICK]) == 2
    assert "do not share a frame of reference" in capsys.readouterr().err
    write_beads(recording, rat.beads.names, [""] * len(rat.beads.names), rat.beads.positions[:20])
    assert main(["skeleton", str(recording), *QUICK]) == 2
    assert "beads.h5 has 20 frames, the skeleton 24" in capsys.readouterr().err
