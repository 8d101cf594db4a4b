"""``vivarig convert``: motion files in every format, rigs for changed videos."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from example_rigs import ring

from calibration.cameras.rig import load_rig, save_rig
from skeleton.motion_files import CoordinateSeries, JointMotion, MarkerSeries, read_motion, write_motion
from vivarig.cli import main


@pytest.fixture
def points(rng: np.random.Generator) -> MarkerSeries:
    positions = rng.normal(0.0, 300.0, (10, 3, 3))
    positions[3, 1] = np.nan
    return MarkerSeries(("nose", "ear", "tail"), positions, 120.0, up="z")


def test_points_go_through_every_format(points: MarkerSeries, tmp_path: Path) -> None:
    """One chain through all formats of points; what comes out is what went in, gaps included."""
    write_motion(points, tmp_path / "0.csv")
    chain = [".csv", ".trc", ".c3d", ".nc", ".nwb", ".csv"]
    for step, suffix in enumerate(chain[1:]):
        source, target = tmp_path / f"{step}{chain[step]}", tmp_path / f"{step + 1}{suffix}"
        # TRC has no field for the vertical.
        assert main(["convert", str(source), str(target), *(["--up", "z"] if chain[step] == ".trc" else [])]) == 0
    again = read_motion(tmp_path / "5.csv")
    assert isinstance(again, MarkerSeries) and again.names == points.names and again.up == "z"
    np.testing.assert_allclose(again.positions, points.positions, atol=3e-4)
    assert again.rate_hz == pytest.approx(120.0)


def test_joint_trees_and_coordinates(rng: np.random.Generator, tmp_path: Path) -> None:
    turns = np.zeros((5, 2, 4))
    turns[..., 0] = 1.0
    motion = JointMotion(("hips", "leg"), (-1, 0), np.array([[0.0, 0, 0], [0, -80.0, 0]]),
                         np.array([[np.nan] * 3, [0, -70.0, 0]]), rng.normal(0, 9, (5, 2, 3)) * [[[1], [0]]],
                         turns, 120.0)  # fmt: skip
    write_motion(motion, tmp_path / "m.bvh")
    ten = ["--unit-mm", "10"]
    assert main(["convert", str(tmp_path / "m.bvh"), str(tmp_path / "m.amc"), *ten]) == 0
    assert main(["convert", str(tmp_path / "m.amc"), str(tmp_path / "m.trc")]) == 0
    assert main(["convert", str(tmp_path / "m.bvh"), str(tmp_path / "short.bvh"), "--drop-first", *ten]) == 0
    again, short = read_motion(tmp_path / "m.trc"), read_motion(tmp_path / "short.bvh", unit_mm=10.0)
    assert isinstance(again, MarkerSeries) and isinstance(short, JointMotion) and short.frames == 4
    index = [again.names.index(name) for name in ("root", "leg")]  # what ASF calls them
    np.testing.assert_allclose(again.positions[:, index], motion.poses()[0], atol=1e-4)
    series = CoordinateSeries(("hip", "knee"), rng.normal(size=(7, 2)), np.arange(7) / 60.0, True, "gait")
    write_motion(series, tmp_path / "a.mot")
    assert main(["convert", str(tmp_path / "a.mot"), str(tmp_path / "a.sto")]) == 0
    same = read_motion(tmp_path / "a.sto")
    assert isinstance(same, CoordinateSeries)
    np.testing.assert_allclose(same.values, series.values)


def test_files_of_pose_networks(rng: np.random.Generator, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tracks = rng.uniform(0, 500, (2, 2, 3, 6))  # tracks, xy, nodes, frames
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file["tracks"] = tracks
        file["node_names"] = [b"nose", b"ear", b"tail"]
        file["track_names"] = [b"one", b"two"]
    line = ["convert", str(tmp_path / "s.h5"), str(tmp_path / "s.csv"), "--rate", "25"]
    assert main(line) == 2
    assert "several tracks (one, two)" in capsys.readouterr().err
    assert main([*line, "--individual", "two"]) == 0
    series = read_motion(tmp_path / "s.csv")
    assert isinstance(series, MarkerSeries) and series.unit == "px"
    np.testing.assert_allclose(series.positions, tracks[1].transpose(2, 1, 0), atol=1e-5)
    (tmp_path / "dlc.csv").write_text(
        "scorer,net,net,net\nbodyparts,nose,nose,nose\ncoords,x,y,likelihood\n0,1.5,2.5,0.9\n1,1.6,2.6,0.2\n"
    )
    likely = [
        "convert",
        str(tmp_path / "dlc.csv"),
        str(tmp_path / "d.csv"),
        "--rate",
        "25",
        "--least-likelihood",
        "0.5",
    ]
    assert main(likely) == 0
    sure = read_motion(tmp_path / "d.csv")
    assert isinstance(sure, MarkerSeries) and np.isnan(sure.positions[1]).all() and sure.positions[0, 0, 0] == 1.5
    (tmp_path / "a.csv").write_text("nose_x,nose_y,nose_z,nose_error,nose_ncams,nose_score,fnum\n1,2,3,0.5,4,0.9,10\n")
    assert main(["convert", str(tmp_path / "a.csv"), str(tmp_path / "a.c3d"), "--rate", "100"]) == 2
    assert "unit_mm" in capsys.readouterr().err
    assert main(["convert", str(tmp_path / "a.csv"), str(tmp_path / "a.c3d"), "--rate", "100", "--unit-mm", "10"]) == 0


def test_a_rate_that_contradicts_itself_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = "".join(f"{frame},{frame / 50:.3f},1,2,3\n" for frame in range(5))
    head = "# vivarig markers rate_hz=100 up=z\nframe,time_s,nose_x_mm,nose_y_mm,nose_z_mm\n"
    (tmp_path / "p.csv").write_text(head + table)
    line = ["convert", str(tmp_path / "p.csv"), str(tmp_path / "q.trc")]
    assert main(line) == 2
    assert "the header says 100 Hz, the time column 50 Hz" in capsys.readouterr().err
    assert main([*line, "--rate", "50"]) == 0


def test_rig_for_cropped_scaled_and_turned_videos(tmp_path: Path) -> None:
    rig = ring(3, distortion=0)
    save_rig(rig, tmp_path / "rig.toml")
    target = tmp_path / "video.toml"
    words = ["--camera", "cam2", "--crop", "600x400+20+10", "--scale", "0.5", "--pad", "0,30,0,10"]
    assert main(["convert", str(tmp_path / "rig.toml"), str(target), *words]) == 0
    made = load_rig(target)
    assert [camera.size for camera in made] == [(640, 480), (300, 240), (640, 480)]
    point = np.array([5.0, -10.0, 15.0])
    wanted = (rig[1].project(point) - [20, 10] + 0.5) * 0.5 - 0.5 + [0, 30]
    assert made[1].project(point) == pytest.approx(wanted, abs=1e-6)
    assert made[0].project(point) == pytest.approx(rig[0].project(point), abs=1e-9)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--crop", "10x10"], "--crop must be WxH"),
        (["--pad", "1,2,3"], "--pad must be LEFT"),
        (["--scale", "half"], "--scale must be a factor"),
        (["--camera", "cam9", "--scale", "2"], "unknown camera 'cam9'"),
        (["--camera", "cam1"], "--camera says whose"),
    ],
)
def test_wrong_words_about_changed_images_are_said(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_rig(ring(2), tmp_path / "rig.toml")
    assert main(["convert", str(tmp_path / "rig.toml"), str(tmp_path / "out.toml"), *words]) == 2
    assert said in capsys.readouterr().err
