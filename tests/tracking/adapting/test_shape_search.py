"""Lengths and girths of a subject: bodies in other shapes, and shapes found from silhouettes of skinned actors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from calibration.cameras.ring import ring_rig
from calibration.foundation.errors import InputError
from skeleton.actors.actor import build_actor
from skeleton.motions import make_motion
from tracking.adapting.proportions import known_of_bodies
from tracking.adapting.scale_search import Found, make_solver
from tracking.adapting.shape_poses import keeping_up
from tracking.adapting.shape_search import Adaptation, _keeps_skin, _measured, adapt_shape, adapt_to_clothes
from tracking.fitting.initialisation import Finder
from tracking.observations.contours import Observation, observe
from tracking.observations.rasteriser import cast_masks
from tracking.quads.oriented_quads import QuadPose
from tracking.subjects.settled_joints import SETTLED
from tracking.subjects.shape import BodyShape, shape_groups
from tracking.subjects.shaped import Shaper
from tracking.subjects.subject import Subject, builtin_subject, scaled_subject

UP = np.array([0.0, 0.0, 1.0])
RIG = ring_rig(
    4, radius=3600.0, height=[1500.0, 1700.0], target=(0.0, 0.0, 900.0), size=(656, 490), field_mm=3400.0, seed=3
)
TRUTH = BodyShape(
    "human",
    {"trunk": 1.05, "head": 0.97, "upper_arm": 1.05, "forearm": 1.05, "thigh": 0.98, "shank": 0.98},
    {"belly": 1.0, "chest": 1.15, "head": 1.0, "arm": 1.05, "thigh": 0.9, "shank": 1.12},
)


@cache
def human() -> Subject:
    return builtin_subject("human")


def film(frames: int) -> list[Observation]:
    """Silhouettes of a walking actor of that shape: skinned, left unlike right, never moved by a cage."""
    actor = build_actor("human", lengths=TRUTH.joint_lengths(), girth=TRUTH.joint_girths(), asymmetry=0.015, seed=5)
    walk = make_motion(actor.skeleton, "walk", rate_hz=60.0, frames=100, rng=np.random.default_rng(8))
    looks = []
    for skin in actor.skin(actor.skeleton.forward(walk.coordinates[np.linspace(10, 99, frames).astype(int)])):
        middle = 0.5 * (skin.min(axis=0) + skin.max(axis=0))
        looks.append(observe(cast_masks(RIG, skin - middle * [1.0, 1.0, 0.0], actor.faces)))
    return looks


@pytest.mark.parametrize("body", ["mouse", "rat", "human"])
def test_every_segment_has_a_length_and_a_girth(body: str) -> None:
    lengths, girths = shape_groups(body)
    shape = BodyShape.uniform(body, 1.1)
    assert set(shape.joint_lengths()) == set(shape.joint_girths())
    assert set(shape.joint_lengths().values()) == {1.1} and abs(shape.scale - 1.1) < 1e-12
    assert BodyShape.from_logs(body, shape.logs).lengths.keys() == lengths.keys()
    assert len(shape.logs) == len(lengths) + len(girths)


def test_a_shape_told_by_an_earlier_version_is_understood() -> None:
    girths = BodyShape.uniform("human", 1.0).girths
    shape = BodyShape.told("human", {"trunk": 1.05, "head": 0.97, "arm": 1.02, "leg": 0.98}, girths)
    assert shape.lengths["upper_arm"] == shape.lengths["forearm"] == 1.02
    assert shape.lengths["thigh"] == shape.lengths["shank"] == 0.98
    assert BodyShape.told("human", TRUTH.lengths, TRUTH.girths) == TRUTH
    with pytest.raises(InputError, match="no length or girth of head"):
        BodyShape.told("human", {"trunk": 1.05, "arm": 1.02, "leg": 0.98}, girths)


def test_the_built_in_shape_is_the_built_in_subject() -> None:
    same = Shaper(human()).make(BodyShape.uniform("human", 1.0)).subject
    assert np.abs(same.template.binding - human().template.binding).max() < 1e-10
    assert np.abs(same.cage_rig.quads.centres - human().cage_rig.quads.centres).max() < 1e-9


def test_a_shaped_subject_stands_as_the_actor_of_that_shape() -> None:
    """At rest the cage carries every vertex to the actor's own skin, though much of it lies outside the cage."""
    stout = BodyShape("human", TRUTH.lengths, {part: 1.4 * factor for part, factor in TRUTH.girths.items()})
    subject = Shaper(human()).make(stout).subject
    rest = subject.cage_rig.quads.rest
    assert np.abs(subject.cage_rig.deform(subject.template.binding, rest) - subject.template.vertices).max() < 1e-5
    away = np.linalg.norm(subject.cage_rig.deform(subject.joint_binding, rest) - subject.joint_points, axis=1)
    legs = np.array([name.endswith(SETTLED) for name in subject.joint_names])
    assert away[~legs].max() < 1e-5 and away[legs].max() < 12.0, "those of the legs are right in the mean of the poses"
    assert subject.bones.lengths["left_knee"] == 0.98
    # A rotation of all quads turns the whole body with them: rows carry offsets as the cage turns.
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    turned = type(rest)(turn @ rest.rotations, rest.centres @ turn.T)
    moved = subject.cage_rig.deform(subject.template.binding, turned)
    assert np.abs(moved - subject.template.vertices @ turn.T).max() < 1e-5


def test_lengths_and_girths_are_found() -> None:
    """Four cameras, six poses: lengths within 5 % and girths within 10 %, twice as near as the built-in body at best.

    The rest is not noise: a cage bends a body otherwise than its skin does, and the estimate makes up for that.
    """
    looks = film(6)
    found = adapt_shape(human(), RIG, lambda frame: looks[frame], range(6), scale=1.02, up=UP)
    assert found.subject is not None and found.after > found.before + 0.005 and not found.why
    error = np.exp(found.shape.logs - TRUTH.logs) - 1.0
    count = len(TRUTH.lengths)
    assert np.abs(error[:count]).max() < 0.05 and np.abs(error[count:]).max() < 0.10
    plain = np.abs(np.log(1.02) - TRUTH.logs[count:]).mean()
    assert np.abs(error[count:]).mean() < 0.6 * plain
    assert found.as_table()["kept"] and set(found.fitted) | set(found.held) == set(range(6))


@pytest.mark.parametrize("anew", [False, True])
def test_poses_of_another_build_are_looked_for_along_the_manifold_too(
    monkeypatch: pytest.MonkeyPatch, anew: bool
) -> None:
    """Of two ways to stand a local fit keeps the one it has; along the manifold the better one is found."""
    stuck, free = (SimpleNamespace(pose=name, latent=None, agreement=score) for name, score in (("a", 0.7), ("b", 0.8)))

    class Solver:
        template = SimpleNamespace(vertices=np.zeros((3, 3)))

        def fit(self, look: Any, pose: Any, latent: Any, *, latent_steps: bool) -> Any:
            return free if latent_steps or pose == "b" else stuck

        def shape_system(self, look: Any, fit: Any) -> tuple[Any, Any]:
            return np.eye(1), np.ones(1)

    monkeypatch.setattr("tracking.adapting.shape_search._effects", lambda *args: ())
    monkeypatch.setattr("tracking.adapting.shape_search._shifts", lambda rig, longer, poses: [None] * len(poses))
    solver: Any = Solver()
    nothing: Any = None
    shaped: Any = SimpleNamespace(subject=SimpleNamespace(cage_rig=SimpleNamespace(quads=None)))
    begun: Any = {0: stuck}
    fits, _, _ = _measured(solver, {0: nothing}, begun, shaped, nothing, [], anew)
    assert fits[0].pose == ("b" if anew else "a")


def test_bones_of_a_limb_keep_their_proportion_more_than_other_parts() -> None:
    names = list(TRUTH.lengths)
    curvature = known_of_bodies("human")

    def cost(longer: str, shorter: str) -> float:
        step = np.zeros(len(curvature))
        step[names.index(longer)], step[names.index(shorter)] = 0.1, -0.1
        return float(step @ curvature @ step)

    assert cost("upper_arm", "forearm") == pytest.approx(cost("thigh", "shank"))
    assert cost("upper_arm", "forearm") > 1.4 * cost("upper_arm", "shank") > 2 * cost("trunk", "head")


def test_too_few_frames_leave_the_body_as_it_is() -> None:
    looks = film(2)
    found = adapt_shape(human(), RIG, lambda frame: looks[frame], [0, 1], scale=1.02, up=UP)
    assert found.subject is None and "only" in found.why
    assert found.shape.lengths == BodyShape.uniform("human", 1.02).lengths


def test_only_its_own_body_takes_a_shape() -> None:
    with pytest.raises(InputError, match="not the built-in mouse"):
        Shaper(human()).make(BodyShape.uniform("mouse", 1.0))


def test_a_stout_animal_keeps_its_skin_unless_it_loses_by_it() -> None:
    assert _keeps_skin(0.80, 0.80, stout=True) and not _keeps_skin(0.80, 0.79, stout=True)
    assert _keeps_skin(0.80, 0.81, stout=False) and not _keeps_skin(0.80, 0.803, stout=False)


def test_a_frame_in_which_the_body_was_found_turned_round_does_not_spoil_the_shape() -> None:
    """With the shape that the others tell it overlaps less than they do, and is looked for once more."""
    looks = film(6)
    solver = make_solver(scaled_subject(human(), 1.02), RIG)
    fit = Finder(solver, RIG, UP, poses=40).find(looks[2], keep=6, finish=2)[0]
    half = np.diag([-1.0, -1.0, 1.0])
    middle = fit.pose.centres.mean(axis=0) * [1.0, 1.0, 0.0]
    turned = QuadPose(half @ fit.pose.rotations, (fit.pose.centres - middle) @ half + middle)
    wrong = Found(2, turned, fit.latent, np.nan)
    found = adapt_shape(human(), RIG, lambda frame: looks[frame], range(6), scale=1.02, up=UP, known=[wrong])
    pose = next(item.pose for item in found.found if item.frame == 2)
    root = human().cage_rig.quads.root
    assert (pose.rotations[root] * fit.pose.rotations[root]).sum() > 2.0, "it faces where it faced"
    assert np.abs(np.exp(found.shape.logs - TRUTH.logs) - 1.0).max() < 0.10


def test_frames_fall_behind_by_half_of_what_an_arm_costs() -> None:
    @dataclass
    class Fit:
        agreement: float

    fits = {3: Fit(0.96), 5: Fit(0.95), 8: Fit(0.93), 9: Fit(0.955), 11: Fit(0.94)}
    assert keeping_up(fits, (3, 8, 11)) == (3, 11)  # type: ignore[arg-type]


def test_who_is_loosely_dressed_is_looked_at_in_more_frames_and_rounds() -> None:
    plain = BodyShape.uniform("human", 1.0)
    wide = replace(plain, girths=plain.girths | {"shank": 1.5})
    asked = []

    def adapt(
        _: Callable[[int], Observation],
        frames: Sequence[int],
        shape: BodyShape,
        more: Sequence[int] = (),
        thorough: bool = False,
    ) -> Adaptation:
        asked.append((tuple(frames), thorough))
        return Adaptation(shape, None, (), (), np.nan, np.nan, "", (), np.zeros(0))

    for shape in (plain, wide):
        adapt_to_clothes(partial(adapt, shape=shape), lambda frame: film(1)[frame], (0, 4), (0, 2, 4))
    assert asked == [((0, 4), False), ((0, 4), False), ((0, 2, 4), True)]
