"""``vivarig evaluate``: studio truth, other files with a joint map, another rate, and HumanEva's folder layout."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import h5py
import numpy as np
import pytest
from example_rigs import ring

from calibration.foundation.errors import InputError
from calibration.foundation.result_files import create_results, text_array
from calibration.rig_formats import write_rig
from capture.recordings.humaneva_folder import find_sequences, open_sequence
from capture.recordings.masks import create_masks
from capture.recordings.recording import Footage, Recording, load_recording, save_recording
from capture.recordings.video import write_video
from skeleton.analysis.humaneva import MARKERS
from skeleton.analysis.humaneva_sets import FrameSet, frames_of_set
from skeleton.motion_files import MarkerSeries, write_motion
from vivarig.cli import main
from vivarig.evaluation.scores import load_truth

FRAMES, RATE = 20, 60.0


def joints(rng: np.random.Generator) -> np.ndarray:
    """Return smooth motions (T, 15, 3) mm: each joint on a line of its own."""
    start, speed = rng.normal(size=(15, 3)) * 400, rng.normal(size=(15, 3)) * 5
    return start + np.arange(FRAMES)[:, None, None] * speed


def write_skeleton(place: Path, landmarks: np.ndarray, trust: np.ndarray) -> None:
    """Write a skeleton file of which evaluate reads landmarks and trust; the rest is there because a file has it."""
    frames = len(trust)
    with create_results(place / "results" / "skeleton.h5", stage="skeleton", parameters={}) as file:
        file.attrs["rate_hz"] = RATE
        file["landmark_names"], file["landmarks"], file["trust"] = text_array(list(MARKERS)), landmarks, trust
        file["joint_names"], file["joint_parents"], file["joint_offsets"] = text_array(["root"]), [-1], np.zeros((1, 3))
        file["coordinate_names"], file["coordinates"] = text_array(["x"]), np.zeros((frames, 1))
        file["positions"], file["rotations"] = np.zeros((frames, 1, 3)), np.tile([1.0, 0, 0, 0], (frames, 1, 1))
        file["sigma"] = np.ones((frames, 1))


@pytest.fixture
def recording(tmp_path: Path, rng: np.random.Generator) -> Path:
    """A recording whose skeleton is off by (3, 0, 4) mm in every joint and lost in frame 5."""
    place = tmp_path / "walk"
    (place / "videos").mkdir(parents=True)
    (place / "videos" / "a.mp4").write_bytes(b"")
    save_recording(Recording(place, "walk", RATE, "human", None, (Footage("a", place / "videos" / "a.mp4"),)))
    truth = joints(rng)
    estimate = truth + np.array([3, 0, 4])
    trust = np.zeros(FRAMES, np.uint8)
    trust[5] = 2
    names = text_array(list(MARKERS))
    write_skeleton(place, estimate, trust)
    with create_results(place / "truth.h5", stage="simulate", parameters={}) as file:
        file["landmarks/names"], file["landmarks/positions"] = names, truth
    return place


def scored(recording: Path, *words: str) -> dict[str, object]:
    """Return the numbers that evaluate writes."""
    out = recording / "scores.json"
    assert main(["evaluate", str(recording), *words, "--json", str(out)]) == 0
    return dict(json.loads(out.read_text()))


def test_studio_truth(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, plot = recording / "errors.csv", recording / "errors.png"
    numbers = scored(recording, "--csv", str(table), "--plot", str(plot), "--pck", "5.5")
    assert numbers["mean_mm"] == pytest.approx(5) and numbers["pck"] == 1
    assert numbers["frames_valid"] == FRAMES, "lost frames count"
    assert numbers["trusted_share"] == pytest.approx(0.95)
    lines = table.read_text().splitlines()
    assert len(lines) == FRAMES + 1 and lines[6].startswith("5,1,2,5.0000")
    assert plot.read_bytes()[:4] == b"\x89PNG"
    assert "mean joint error 5.00 mm" in capsys.readouterr().out


def test_alignment_is_stated(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scored(recording, "--align", "rigid")["mean_mm"] == pytest.approx(0, abs=1e-6)
    assert "after rigid alignment" in capsys.readouterr().out
    assert scored(recording, "--relative", "pelvis")["mean_mm"] == pytest.approx(0, abs=1e-6)


def test_truth_of_another_rate_and_other_names(recording: Path, rng: np.random.Generator) -> None:
    truth = load_truth(recording / "truth.h5")
    # twice the rate by exact interpolation of straight lines, with one frame before the first
    fine = np.stack([truth.positions[0] + (k - 1) / 2 * (truth.positions[1] - truth.positions[0]) for k in range(41)])
    series = MarkerSeries(tuple(f"j_{name}" for name in truth.names), fine, 2 * RATE, up="z")
    write_motion(series, recording / "truth.trc")
    (recording / "map.toml").write_text("".join(f'j_{name} = "{name}"\n' for name in ("pelvis", "head")))
    numbers = scored(
        recording, "--truth", str(recording / "truth.trc"), "--map", str(recording / "map.toml"), "--offset", "1"
    )
    assert numbers["mean_mm"] == pytest.approx(5, abs=1e-3)
    assert main(["evaluate", str(recording), "--truth", str(recording / "truth.trc")]) == 2, "no common names, no map"


def humaneva_folder(root: Path, truth: np.ndarray, subject: str = "S2", mocap_start: int = 3) -> None:
    """Write a sequence in HumanEva's exact layout: mocap at twice the image rate, starting at its frame 3."""
    place = root / subject
    for name in ("Image_Data", "Sync_Data", "Mocap_Data", "Calibration_Data"):
        (place / name).mkdir(parents=True)
    rig = ring(2)
    write_rig(rig, place / "Calibration_Data", "humaneva", lossy=True)
    for camera in rig:
        clip = [np.full((480, 640, 3), k, np.uint8) for k in range(3)]
        write_video(place / "Image_Data" / f"Walking_1_({camera.name}).avi", clip, 60.0)
        (place / "Sync_Data" / f"Walking_1_({camera.name}).ofs").write_text(f"1\n{mocap_start}\n2\n")
    step = truth[1] - truth[0]
    fine = np.stack([truth[0] + (k - 2) / 2 * step for k in range(2 * FRAMES + 4)])  # mocap frame 3 is image frame 1
    by_name = {name: fine[:, index] for index, name in enumerate(MARKERS)}
    sides = {"L": "left", "R": "right"}
    points: dict[str, np.ndarray] = {"TRXO": by_name["thorax"]}
    for letter, side in sides.items():
        limbs = {"CLO": "shoulder", "HUO": "elbow", "RAO": "wrist", "FEP": "hip", "FEO": "knee", "TIO": "ankle"}
        points |= {letter + code: by_name[f"{side}_{joint}"] for code, joint in limbs.items()}
    points["PELO"] = by_name["pelvis"] + [50.0, 0, 0]
    points["PELA"] = points["PELO"] + [100.0, 0, 0]
    points["HEDO"] = by_name["head"] - [0, 0, 316.103]
    points["HEDP"] = points["HEDO"] + [0, 0, 100.0]
    positions = np.stack(list(points.values()), axis=1)
    write_motion(MarkerSeries(tuple(points), positions, 120.0, up="z"), place / "Mocap_Data" / "Walking_1.c3d")


def test_humaneva_layout(recording: Path, tmp_path: Path) -> None:
    truth = load_truth(recording / "truth.h5")
    order = [truth.names.index(name) for name in MARKERS]
    humaneva_folder(tmp_path / "he", truth.positions[:, order])
    assert find_sequences(tmp_path / "he") == [("S2", "Walking_1")]
    sequence = open_sequence(tmp_path / "he", "S2", "Walking_1")
    assert sequence.rig[0].size == (640, 480) and sequence.sync["cam1"].mocap_frame(2) == 5
    words = ("--humaneva", str(tmp_path / "he"), "S2", "Walking_1")
    # C3D stores single precision: 1e-3 mm at 1 m
    assert scored(recording, *words)["mean_mm"] == pytest.approx(5, abs=1e-3)
    assert scored(recording, *words, "--mode", "relative")["mean_mm"] == pytest.approx(0, abs=1e-3)
    with pytest.raises(InputError, match=r"there are S2/Walking_1"):
        open_sequence(tmp_path / "he", "S1", "Box_1")


def test_sets_and_splits(recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Twenty images from 580 on of S1 Walking_1: validation ends with image 590, so eleven of them are its."""
    truth = load_truth(recording / "truth.h5")
    order = [truth.names.index(name) for name in MARKERS]
    humaneva_folder(tmp_path / "he", truth.positions[:, order], subject="S1", mocap_start=3 - 2 * 579)
    words = ("--humaneva", str(tmp_path / "he"), "S1", "Walking_1", "--first-image", "580")
    assert scored(recording, *words)["frames_valid"] == FRAMES
    assert scored(recording, *words, "--set", "validate")["frames_valid"] == 11
    assert scored(recording, *words, "--set", "train")["frames_valid"] == 9
    assert main(["evaluate", str(recording), *words, "--set", "test"]) == 2
    assert "has no set 'test'; it has validate, train, all" in capsys.readouterr().err


def test_frames_of_the_sets() -> None:
    assert frames_of_set("S1", "Walking_1", "train") == FrameSet("HumanEvaI", "Train", 591, 1203)
    assert frames_of_set("S4", "Box_2", "test") == FrameSet("HumanEvaI", "Test", 6, 574)
    assert frames_of_set("S4", "Combo_4", "2") == FrameSet("HumanEvaII", "Test", 2, 700)
    with pytest.raises(InputError, match="all test"):
        frames_of_set("S2", "Combo_1", "train")
    with pytest.raises(InputError, match="no frames are known for S9/Walking_1"):
        frames_of_set("S9", "Walking_1", "all")


def test_a_recording_from_a_sequence(recording: Path, tmp_path: Path) -> None:
    """The second camera's file says that its image 3 was taken with the first one's image 1: offset 2."""
    humaneva_folder(tmp_path / "he", np.zeros((FRAMES, 15, 3)))
    (tmp_path / "he" / "S2" / "Sync_Data" / "Walking_1_(cam2).ofs").write_text("3\n3\n2\n")
    assert main(["convert", str(tmp_path / "he"), str(tmp_path / "walk"), "--humaneva", "S2", "Walking_1"]) == 0
    made = load_recording(tmp_path / "walk")
    assert [one.offset_frames for one in made.footage] == [0, 2]
    assert made.subject == "human" and made.rate_hz == 60 and made.need_rig().names == ("cam1", "cam2")
    assert made.footage[0].source.parent.name == "Image_Data", "nothing is copied"


def test_submission(recording: Path) -> None:
    """The layout that HumanEva's own reader takes: named limb ends, 20 of them, elbows and knees twice."""
    target = recording / "submission.xml"
    scored(recording, "--submission", str(target), "--first-image", "6")
    root = ElementTree.parse(target).getroot()
    assert root.tag == "SEQUENCE" and root.get("FrameStart") == "6" and root.get("FrameEnd") == str(FRAMES + 5)
    frames = root.findall("Frame")
    assert len(frames) == FRAMES and frames[0].findtext("Number") == "6"
    joints = {joint.findtext("Name"): joint for joint in frames[0].findall("Pose/Joint")}
    assert len(joints) == 20 and all(joint.findtext("Enabled") == "1" for joint in joints.values())
    assert [joints["upperLArmDistal"].findtext(axis) for axis in "XYZ"] == [
        joints["lowerLArmProximal"].findtext(axis) for axis in "XYZ"
    ]


def test_missing_truth(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (recording / "truth.h5").unlink()
    assert main(["evaluate", str(recording)]) == 2
    assert "name one with --truth" in capsys.readouterr().err


def test_results_of_a_part_of_the_recording(recording: Path) -> None:
    """The skeleton is that of recording frames 7 to 16: the truth of these frames counts, whatever its kind."""
    first, count = 7, 10
    with create_masks(recording / "results" / "silhouettes.h5", ["a"], [(8, 8)], count, {"start": first}):
        pass
    assert main(["evaluate", str(recording)]) == 2, "20 frames of the skeleton, 10 silhouettes"
    with h5py.File(recording / "results" / "skeleton.h5") as file:
        whole, trust = file["landmarks"][:], file["trust"][:]
    write_skeleton(recording, whole[first : first + count], trust[first : first + count])
    assert scored(recording)["mean_mm"] == pytest.approx(5)
    truth = load_truth(recording / "truth.h5")
    write_motion(MarkerSeries(truth.names, truth.positions, RATE, up="z"), recording / "truth.csv")
    assert scored(recording, "--truth", str(recording / "truth.csv"))["mean_mm"] == pytest.approx(5, abs=1e-3)
    humaneva_folder(recording / "HE", truth.positions)
    numbers = scored(recording, "--humaneva", str(recording / "HE"), "S2", "Walking_1")
    assert numbers["mean_mm"] == pytest.approx(5, abs=1e-3)


def test_a_truth_that_ends_too_early(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with h5py.File(recording / "truth.h5", "r+") as file:
        positions = file["landmarks/positions"][:]
        del file["landmarks/positions"]
        file["landmarks/positions"] = positions[:-1]
    assert main(["evaluate", str(recording)]) == 2
    assert "truth has 19 frames, the results are frames 0 to 19" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["--mode", "relative"], "--mode"),
        (["--set", "1"], "--set"),
        (["--humaneva", "HE", "S2", "Combo_1", "--align", "similarity"], "--align"),
        (["--humaneva", "HE", "S2", "Combo_1", "--truth", "walk.c3d"], "--truth"),
        (["--truth", "beads", "--csv", "errors.csv"], "--csv"),
    ],
)
def test_options_without_a_meaning_are_refused(
    recording: Path, words: list[str], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(recording), *words]) == 2
    assert f"vivarig evaluate: {name} " in capsys.readouterr().err


def test_a_truth_with_another_vertical_is_turned_and_that_is_said(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = load_truth(recording / "truth.h5")
    x, y, z = np.moveaxis(truth.positions, 2, 0)
    write_motion(MarkerSeries(truth.names, np.stack([x, z, -y], axis=2), RATE, up="y"), recording / "truth.c3d")
    assert scored(recording, "--truth", str(recording / "truth.c3d"))["mean_mm"] == pytest.approx(5, abs=1e-3)
    assert "turned from y up, as its file says, to z up" in capsys.readouterr().out


def test_a_submission_needs_no_truth(recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = load_truth(recording / "truth.h5")
    humaneva_folder(tmp_path / "he", truth.positions)
    (tmp_path / "he" / "S2" / "Mocap_Data" / "Walking_1.c3d").unlink()
    words = ["evaluate", str(recording), "--humaneva", str(tmp_path / "he"), "S2", "Walking_1"]
    assert main(words) == 2, "nothing to score against, nothing to write"
    out = tmp_path / "walk.xml"
    assert main([*words, "--submission", str(out), "--first-image", "2"]) == 0
    assert f"wrote {out}: images 2 to 21" in capsys.readouterr().out and out.is_file()


def test_a_plot_of_an_unknown_kind(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(recording), "--plot", str(recording / "errors.xyz")]) == 2
    assert "wanted a file name that ends in .png, .pdf, .svg" in capsys.readouterr().err


def test_a_truth_of_other_frames(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(recording), "--offset", "1000"]) == 2
    assert "no frame can be scored" in capsys.readouterr().err
