"""A lizard that is drawn, not built in: its subject, its cage's deformation beside its own, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.animals.drawn_animals import drawn_plan, moving_drawn
from benchmarks.animals.moving_skin import MovingSkin
from calibration.foundation.errors import InputError
from tracking.adapting.scale_search import make_solver
from tracking.fitting.initialisation import Finder
from tracking.own_bodies.joints_file import BodyPlan
from tracking.own_bodies.making import own_subject
from tracking.own_bodies.suggestion import suggested_joints
from tracking.subjects.subject import Subject, load_subject, save_subject, scaled_subject


@pytest.fixture(scope="module")
def lizard() -> MovingSkin:
    return moving_drawn("lizard", "play", 8)


@pytest.fixture(scope="module")
def made(lizard: MovingSkin, tmp_path_factory: pytest.TempPathFactory) -> Subject:
    folder = tmp_path_factory.mktemp("lizard") / "lizard"
    subject, check = own_subject(folder, lizard.rest, lizard.faces, drawn_plan("lizard"), "lizard.obj")
    assert check.outside < 0.5 and (folder / "body.png").is_file()
    save_subject(subject, folder)
    return load_subject(str(folder))


def test_at_rest_the_cage_gives_the_mesh_again_at_any_size(made: Subject) -> None:
    for subject in (made, scaled_subject(made, 1.7)):
        rest = subject.cage_rig.quads.rest
        again = subject.cage_rig.deform(subject.template.binding, rest)
        assert np.abs(again - subject.template.vertices).max() < 1e-6 * np.ptp(again)
        joints = subject.cage_rig.deform(subject.joint_binding, rest)
        assert np.abs(joints - subject.joint_points).max() < 1e-6 * np.ptp(again)


def test_a_subject_has_what_the_stages_need(made: Subject) -> None:
    skeleton = made.bones.skeleton
    assert skeleton.joint_names[0] == "pelvis" and "snout" not in skeleton.joint_names
    assert {"snout", "left_fingers", "tail_end"} <= set(skeleton.landmark_names)
    assert set(skeleton.floor_points) == {"left_fingers", "right_fingers", "left_hind_toes", "right_hind_toes"}
    assert len(made.marker_names) >= 3 * len(skeleton.joints)
    # x forward, y left: sides are told by the joints' names.
    places = dict(zip(made.joint_names, made.joint_points, strict=True))
    assert places["snout"][0] > places["tail_end"][0] + 300 and places["left_fingers"][1] > 50


def test_a_pose_it_never_saw_is_found_from_nothing(made: Subject, lizard: MovingSkin) -> None:
    rig = lizard.cameras(6)
    solver = make_solver(made, rig)
    fit = Finder(solver, rig, np.array([0.0, 0.0, 1.0]), poses=12).find(lizard.observe(rig, 5), keep=4, finish=2)[0]
    found = made.cage_rig.deform(made.template.binding, fit.pose)
    # Its own mesh, in its own order: nothing had to be mended.
    error = np.linalg.norm(found - lizard.vertices[5], axis=1).mean() / lizard.length
    assert fit.agreement > 0.93 and error < 0.015


def test_joints_outside_the_mesh_are_refused_with_a_picture(lizard: MovingSkin, tmp_path: Path) -> None:
    plan = drawn_plan("lizard")
    with pytest.raises(InputError, match=r"joints lie outside the mesh: .* units and axes") as caught:
        own_subject(tmp_path / "x", lizard.rest, lizard.faces, plan.moved(10 * plan.places), "lizard.obj")
    assert (tmp_path / "x" / "body.png").is_file() and "\n" not in str(caught.value)


def test_a_bone_through_the_air_is_refused(lizard: MovingSkin, tmp_path: Path) -> None:
    plan = drawn_plan("lizard")
    parents = plan.parents.copy()
    parents[plan.names.index("left_fingers")] = plan.names.index("left_ankle")
    wrong = BodyPlan(plan.names, parents, plan.places, plan.ranges)
    with pytest.raises(InputError, match="from left_ankle to left_fingers runs outside"):
        own_subject(tmp_path / "x", lizard.rest, lizard.faces, wrong, "lizard.obj")


def test_a_first_guess_finds_the_extremities_and_makes_a_subject(lizard: MovingSkin, tmp_path: Path) -> None:
    plan, words = suggested_joints(lizard.rest, lizard.faces, "lizard.obj")
    assert words.startswith("6 extremities"), words
    ends = {plan.names[joint] for joint in range(len(plan)) if not plan.children[joint]}
    assert ends == {
        "head_end", "tail_end", "left_fore_leg_end", "right_fore_leg_end", "left_hind_leg_end", "right_hind_leg_end"
    }  # fmt: skip
    places = dict(zip(plan.names, plan.places, strict=True))
    assert places["left_fore_leg_end"][1] > 0 > places["right_hind_leg_end"][1]
    assert places["head_end"][0] > 100 and places["tail_end"][0] < -300
    own_subject(tmp_path / "x", lizard.rest, lizard.faces, plan, "lizard.obj")
