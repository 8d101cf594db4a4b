"""Bodies in other shapes: lengths and girths of the parts of a built-in body."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from calibration.errors import InputError
from tracking.body_shape import BodyShape, shape_groups
from tracking.shaped_subject import Shaper
from tracking.subject import Subject, builtin_subject

TRUTH = BodyShape(
    "human",
    {"trunk": 1.05, "head": 0.97, "arm": 1.05, "leg": 0.98},
    {"belly": 1.0, "chest": 1.15, "head": 1.0, "arm": 1.05, "thigh": 0.9, "shank": 1.12},
)


@cache
def human() -> Subject:
    return builtin_subject("human")


@pytest.mark.parametrize("body", ["mouse", "rat", "human"])
def test_every_segment_has_a_length_and_a_girth(body: str) -> None:
    lengths, girths = shape_groups(body)
    shape = BodyShape.uniform(body, 1.1)
    assert set(shape.joint_lengths()) == set(shape.joint_girths())
    assert set(shape.joint_lengths().values()) == {1.1} and abs(shape.scale - 1.1) < 1e-12
    assert BodyShape.from_logs(body, shape.logs).lengths.keys() == lengths.keys()
    assert len(shape.logs) == len(lengths) + len(girths)


def test_the_built_in_shape_is_the_built_in_subject() -> None:
    same = Shaper(human()).make(BodyShape.uniform("human", 1.0)).subject
    assert np.abs(same.template.binding - human().template.binding).max() < 1e-10
    assert np.abs(same.cage_rig.rig.centres - human().cage_rig.rig.centres).max() < 1e-9


def test_a_shaped_subject_stands_as_the_actor_of_that_shape() -> None:
    """At rest the cage carries every vertex to the actor's own skin, though much of it lies outside the cage."""
    stout = BodyShape("human", TRUTH.lengths, {part: 1.4 * factor for part, factor in TRUTH.girths.items()})
    subject = Shaper(human()).make(stout).subject
    rest = subject.cage_rig.rig.rest
    assert np.abs(subject.cage_rig.deform(subject.template.binding, rest) - subject.template.vertices).max() < 1e-5
    assert np.abs(subject.cage_rig.deform(subject.joint_binding, rest) - subject.joint_points).max() < 1e-5
    assert subject.bones.lengths["left_knee"] == 0.98
    # A rotation of all quads turns the whole body with them: rows carry offsets as the cage turns.
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    turned = type(rest)(turn @ rest.rotations, rest.centres @ turn.T)
    moved = subject.cage_rig.deform(subject.template.binding, turned)
    assert np.abs(moved - subject.template.vertices @ turn.T).max() < 1e-5


def test_only_its_own_body_takes_a_shape() -> None:
    with pytest.raises(InputError, match="not the built-in mouse"):
        Shaper(human()).make(BodyShape.uniform("mouse", 1.0))
