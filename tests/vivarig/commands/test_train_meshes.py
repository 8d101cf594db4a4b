"""vivarig train --meshes: a subject learns its poses, the sizes of its quads and the spread of its outlines."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import trimesh

from calibration.geometry.transforms import RigidTransform
from tracking.adapting.scale_search import usual_settings
from tracking.fitting.settings import OWN_POSES
from tracking.quads.deformation import resized
from tracking.quads.oriented_quads import QuadPose
from tracking.subjects.subject import Subject, builtin_subject, load_subject, save_subject, scaled_subject
from vivarig.cli import main

MESHES = 3


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Subject]:
    """A folder with a subject and meshes of it, its belly thicker than at rest in all of them."""
    folder = tmp_path_factory.mktemp("taught")
    subject = builtin_subject("mouse")
    save_subject(subject, folder / "m7")
    (folder / "meshes").mkdir()
    thick = np.ones((len(subject.cage_rig.quads), 2))
    thick[subject.cage_rig.quads.root] = 1.12
    fat = resized(subject.cage_rig, thick)
    for number, vector in enumerate(subject.prior.training_poses[[0, 40, 80]]):
        pose = QuadPose(*subject.prior.chart.from_vector(RigidTransform(np.eye(3), np.array([5.0, 2.0, 9.0])), vector))
        x, y, z = fat.deform(subject.template.binding, pose).T
        mesh = trimesh.Trimesh(np.stack([x, z, -y], axis=1), subject.template.faces, process=False)  # y up
        mesh.export(folder / "meshes" / f"key_{number}.ply")
    return folder, subject


def test_meshes_teach_a_subject(place: tuple[Path, Subject]) -> None:
    folder, subject = place
    words = ["train", "--meshes", str(folder / "meshes"), "--subject", str(folder / "m7"), "--up", "y"]
    words += ["--latent", "2"]
    assert main([*words, "-o", str(folder / "knows"), "--json", str(folder / "numbers.json")]) == 0
    numbers = json.loads((folder / "numbers.json").read_text())
    known = load_subject(str(folder / "knows"))
    assert known.sizes is not None and known.template.spread is not None and known.outline_template.spread is not None
    root = known.cage_rig.quads.root
    assert known.sizes[root].mean() > 1.03 and abs(np.median(known.sizes) - 1.0) < 0.03
    assert known.prior.latent_dim == 2 and len(known.prior.training_poses) == numbers["meshes"] == MESHES
    assert max(numbers["away_mm"]) < 0.5 and known.template.spread.max() < 1.0
    assert usual_settings(known) is OWN_POSES and usual_settings(subject) is not OWN_POSES
    # The cage at rest is the old one, and a larger subject strays further.
    assert np.abs(known.cage_rig.cage.vertices - subject.cage_rig.cage.vertices).max() < 1e-3
    larger = scaled_subject(known, 2.0)
    assert larger.template.spread is not None and np.allclose(larger.template.spread, 2.0 * known.template.spread)


def test_meshes_of_something_else_are_refused(place: tuple[Path, Subject], capsys: pytest.CaptureFixture[str]) -> None:
    folder, _ = place
    other = folder / "other"
    other.mkdir()
    for number in range(3):
        trimesh.creation.icosphere(3, 20.0).export(other / f"ball_{number}.ply")
    words = ["train", "--meshes", str(other), "--subject", str(folder / "m7"), "-o", str(folder / "ball")]
    assert main(words) == 2 and "642 vertices" in capsys.readouterr().err
    assert main(["train", "--meshes", str(other), "-o", str(folder / "ball")]) == 2
