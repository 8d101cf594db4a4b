"""`vivarig subject` for animals that are not built in: units and axes of other programs, and one line per mistake."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import trimesh

from benchmarks.animals.drawn_animals import drawn_plan, moving_drawn
from tracking.own_bodies.joints_file import load_joints, save_joints
from tracking.subjects.mesh_files import UPRIGHT
from tracking.subjects.subject import load_subject
from vivarig.cli import main


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a lizard in metres, y up, and its joints."""
    place = tmp_path_factory.mktemp("own")
    skin = moving_drawn("lizard", "walk", 1)
    plan = drawn_plan("lizard")
    mesh = trimesh.Trimesh(skin.rest @ UPRIGHT["y"] / 1000.0, skin.faces, process=False)
    mesh.export(place / "lizard.obj")
    save_joints(plan.moved(plan.places @ UPRIGHT["y"] / 1000.0), place / "joints.toml", digits=6)
    return place


def words(place: Path, *more: str) -> list[str]:
    return ["subject", str(place / "s"), "--mesh", str(place / "lizard.obj"), "--unit-mm", "1000", "--up", "y", *more]


def test_a_mesh_in_metres_with_y_up_becomes_a_subject_in_mm(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words(files, "--joints", str(files / "joints.toml"))) == 0
    subject = load_subject(str(files / "s"))
    assert np.ptp(subject.template.vertices[:, 0]) == pytest.approx(580, rel=0.05)
    assert "carried along" in capsys.readouterr().out
    assert (files / "s" / "body.png").is_file() and (files / "s" / "skeleton.toml").is_file()


def test_the_first_guess_is_in_the_meshs_own_units(files: Path) -> None:
    verb, _, *rest = words(files, "--suggest-joints")
    assert main([verb, str(files / "guess"), *rest]) == 0
    plan = load_joints(files / "guess" / "joints.toml")
    assert (files / "guess" / "joints.png").is_file()
    assert 0.4 < np.ptp(plan.places, axis=0).max() < 0.7 and np.ptp(plan.places[:, 1]) < 0.15


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--joints", "JOINTS", "--body", "mouse"], "leave --body"),
        (["--joints", "JOINTS", "--suggest-joints"], "give one of the two"),
        ([], "whose body is it"),
    ],
)
def test_mistakes_are_told_in_one_line(
    files: Path, capsys: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    more = [str(files / "joints.toml") if word == "JOINTS" else word for word in more]
    assert main(["subject", str(files / "t"), "--mesh", str(files / "lizard.obj"), "--up", "y", *more]) == 2
    error = capsys.readouterr().err.strip()
    assert said in error and "\n" not in error
