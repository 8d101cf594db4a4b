"""The rendered set in HumanEva's layout: its motions, its truth, its table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from skeleton.analysis.humaneva import MARKERS, truth_from_points
from tracking.priors.cmu import HELD_OUT, CmuTable, load_cmu
from vivarig.cli import main
from vivarig.commands import evaluate
from vivarig.evaluation.humaneva_like import ACTIONS, RENDERED, action_motion, plug_in_gait_points
from vivarig.evaluation.humaneva_runs import ActionScores, table_lines, table_numbers


def test_truth_goes_into_plug_in_gait_points_and_back() -> None:
    rng = np.random.default_rng(0)
    markers = {name: rng.normal(0, 500, (4, 3)) for name in MARKERS}
    again = truth_from_points(plug_in_gait_points(markers))
    for name, place in markers.items():
        np.testing.assert_allclose(again[name], place, atol=1e-9)


def test_every_line_says_what_its_images_are() -> None:
    errors = np.concatenate([np.full(150, 10.0), np.full(150, 30.0)])
    scores = {"Box_1": ActionScores(errors, errors < 20)}
    lines = table_lines(scores)
    assert "1-150 10.0" in lines[1] and "1-300 20.0" in lines[1] and "50 %" in lines[1]
    assert all(RENDERED in line or "real images, published" in line for line in lines[1:])
    assert table_numbers(scores)["Box_1_1_300_mm"] == pytest.approx(20.0)


def test_options_of_other_scores_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(tmp_path), "--humaneva-like", str(tmp_path), "--pck", "5"]) == 2
    assert "--pck is not for --humaneva-like" in capsys.readouterr().err
    assert main(["evaluate", str(tmp_path), "--humaneva-like", str(tmp_path)]) == 2
    assert "no such file; give the folder of the CMU table" in capsys.readouterr().err


@pytest.mark.realdata
def test_the_command_runs_every_action(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The films, 1,200 frames that take an hour to make and to track, are left out; the rest is the command's own."""
    asked = []

    def scored(table: CmuTable, name: str, folder: Path, run: object, **options: object) -> ActionScores:
        assert ACTIONS[name].clip in table.clips and callable(run)
        asked.append((name, folder))
        return ActionScores(np.full(300, 12.5), np.ones(300, bool))

    monkeypatch.setattr(evaluate, "run_action", scored)
    assert main(["evaluate", str(tmp_path / "he_like"), "--humaneva-like", str(shared_data / "cmu")]) == 0
    said = capsys.readouterr().out
    assert asked == [(name, tmp_path / "he_like") for name in ACTIONS] and said.count("1-300 12.5") == len(ACTIONS)


@pytest.mark.realdata
def test_motions_of_people_the_prior_never_saw(shared_data: Path) -> None:
    table = load_cmu(shared_data / "cmu")
    for action in ACTIONS.values():
        assert table.subjects[table.clips.index(action.clip)] in HELD_OUT
    walk = action_motion(table, ACTIONS["Jog_1"], 300)
    assert walk.frames == 300 and walk.rate_hz == 60.0
    place = walk.shifts[:, 0, [0, 2]]
    step = np.linalg.norm(np.diff(place, axis=0), axis=1)
    # A short run goes on, evenly, around a circle.
    assert step.max() < 100.0 and np.ptp(place, axis=0).max() < 2.5 * ACTIONS["Jog_1"].circle
    turn = np.abs(np.einsum("tji,tji->tj", walk.rotations[1:], walk.rotations[:-1]))
    assert turn.min() > np.cos(np.radians(15.0))
