"""Many recordings in one table, and groups compared from it."""

from __future__ import annotations

import csv
import json
import runpy
import sys
from itertools import permutations
from pathlib import Path

import h5py
import numpy as np
import pytest
from walked_recordings import FRAMES, RATE, walked_recording

from vivarig.cli import main
from vivarig.statistics.comparing import permutation_p
from vivarig.statistics.table_files import read_table

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two days of two walkers each; those of the second are larger by a tenth."""
    place = tmp_path_factory.mktemp("days")
    for at, name in enumerate(("anna", "bert", "carl", "dora")):
        walked_recording(place / ("day1" if at < 2 else "day2") / name, seed=at, size=1.0 if at < 2 else 1.1)
    (place / "day1" / "notes.txt").write_text("sunny")
    return place


def _folders(days: Path) -> list[str]:
    return [str(path) for path in sorted(days.glob("day*/*"))]


def test_a_row_is_a_joint_in_a_frame(days: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "all.csv"
    assert main(["table", *_folders(days), "-o", str(target)]) == 0
    assert "notes.txt is no recording" in capsys.readouterr().out
    with open(target, newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["animal"] == "carl" and row["joint"] == "left_knee"]
    assert (
        len(rows) == FRAMES and {row["group"] for row in rows} == {"day2"} and {r["trust"] for r in rows} == {"trusted"}
    )
    with h5py.File(days / "day2" / "carl" / "results" / "skeleton.h5") as file:
        joints = [name.decode() for name in file["joint_names"][:]]
        places = file["positions"][:]
    knee = places[:, joints.index("left_knee")]
    wanted = ("x_mm", "y_mm", "z_mm", "speed_mm_s", "inner_deg")
    table = {key: np.array([float(row[key]) for row in rows]) for key in wanted}
    np.testing.assert_allclose(np.stack([table[f"{axis}_mm"] for axis in "xyz"], axis=1), knee, rtol=1e-5)
    speed = np.linalg.norm(np.gradient(knee, 1 / RATE, axis=0), axis=1)
    np.testing.assert_allclose(table["speed_mm_s"], speed, rtol=1e-4)
    thigh, shank = (places[:, joints.index(name)] - knee for name in ("left_hip", "left_ankle"))
    cosine = (thigh * shank).sum(axis=1) / np.linalg.norm(thigh, axis=1) / np.linalg.norm(shank, axis=1)
    np.testing.assert_allclose(table["inner_deg"], np.degrees(np.arccos(cosine)), atol=1e-3)


def test_parquet_holds_what_the_csv_holds(days: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow: pip install -e '.[parquet]'")
    wanted = ("animal", "joint", "phase", "x_mm")
    for suffix in ("csv", "parquet"):
        assert main(["table", *_folders(days), "-o", str(tmp_path / f"a.{suffix}"), "--every", "10"]) == 0
    one, two = (read_table(tmp_path / f"a.{suffix}", wanted) for suffix in ("csv", "parquet"))
    for name in wanted:
        if one[name].dtype == object:
            assert one[name].tolist() == two[name].tolist()
        else:
            np.testing.assert_allclose(one[name], two[name], rtol=1e-5)


def test_strides_of_larger_walkers_are_longer(days: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "strides.csv"
    assert main(["table", *_folders(days), "-o", str(table), "--rows", "strides"]) == 0
    columns = read_table(table, ("group", "length_mm", "start_s", "stride_s", "stance_s", "trusted_share"))
    assert (columns["trusted_share"] == 1).all() and (columns["stance_s"] < columns["stride_s"]).all()
    means = [columns["length_mm"][columns["group"] == day].mean() for day in ("day1", "day2")]
    assert means[1] > 1.03 * means[0]
    capsys.readouterr()
    words = ["compare", str(table), "--value", "length_mm", "--foot", "left_foot", "-o", str(tmp_path / "length.png")]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "day1:" in said and "(2 animals" in said and "p = 0.333" in said  # 2 of the 6 exchanges are as far apart
    assert (tmp_path / "length.png").stat().st_size > 5000


def test_a_joint_over_the_gait_cycle(days: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The knee is bent most in swing, which is the last third of the cycle."""
    table = tmp_path / "all.csv"
    assert main(["table", *_folders(days), "-o", str(table)]) == 0
    numbers = tmp_path / "knee.json"
    words = ["compare", str(table), "--joint", "left_knee", "--value", "inner_deg", "-o", str(tmp_path / "knee.svg")]
    assert main([*words, "--json", str(numbers)]) == 0
    curve = np.array(json.loads(numbers.read_text())["groups"]["day1"]["values"]).mean(axis=0)
    assert len(curve) == 101 and 60 <= int(curve.argmin()) <= 90
    first = (tmp_path / "knee.svg").read_bytes()
    assert main(words) == 0 and (tmp_path / "knee.svg").read_bytes() == first
    capsys.readouterr()
    assert main([*words[:3], "left_nee", *words[4:]]) == 2
    assert "no joint 'left_nee' in the table; did you mean 'left_knee'" in capsys.readouterr().err


def test_what_is_not_finished_is_said(days: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = tmp_path / "new"
    (new / "meshes").mkdir(parents=True)
    (new / "recording.toml").write_text('rate_hz = 60.0\nmeshes = "meshes"\n')
    words = ["table", str(days / "day1" / "anna"), str(new), "-o", str(tmp_path / "a.csv")]
    assert main(words) == 2
    assert "no results/skeleton.h5; `vivarig run" in capsys.readouterr().err
    assert main([*words, "--skip-unfinished"]) == 0
    assert "has no skeleton yet" in capsys.readouterr().out
    assert main([*words[:-1], str(tmp_path / "a.xlsx"), "--skip-unfinished"]) == 2
    assert "a table is .csv or .parquet" in capsys.readouterr().err


def test_the_permutation_test_against_all_orders() -> None:
    rng = np.random.default_rng(1)
    one, two = rng.normal(0, 1, 3), rng.normal(1, 1, 4)
    every, seen = np.concatenate([one, two]), abs(one.mean() - two.mean())
    share = np.mean([abs(np.mean(o[:3]) - np.mean(o[3:])) >= seen - 1e-12 for o in permutations(every)])
    assert permutation_p(one, two) == pytest.approx(share)
    assert np.isnan(permutation_p(one[:1], two))


def test_the_statistics_example(days: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Executed as it is, on two days of recordings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["statistics.py", *_folders(days)])
    runpy.run_path(str(REPOSITORY / "docs" / "examples" / "statistics.py"))
    assert (tmp_path / "knee.png").is_file() and (tmp_path / "stride_length.png").is_file()
