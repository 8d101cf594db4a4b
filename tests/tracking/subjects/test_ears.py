"""Ears of another size: only they move, alike on both sides, and up and out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tracking.subjects.shape import BodyShape, builds
from tracking.subjects.shaped import Shaper
from tracking.subjects.subject import load_subject


def test_larger_ears_stand_higher_and_further_apart() -> None:
    mouse = load_subject("mouse")
    shape = BodyShape.uniform("mouse", 1.0)
    shaper = Shaper(mouse)
    plain = shaper.make(shape).subject
    eared = shaper.make(replace(shape, girths=shape.girths | {"ears": 1.35})).subject
    moved = eared.template.vertices - plain.template.vertices
    which = {name: int(vertex) for name, vertex in zip(mouse.marker_names, mouse.marker_vertices, strict=True)}
    left, right = moved[which["left_ear"]], moved[which["right_ear"]]
    assert left[1] > 1.0 and left[2] > 1.5 and right[1] < -1.0 and right[2] > 1.5
    assert np.abs(moved[[which["nose_tip"], which["nape"], which["left_cheek"], which["occiput"]]]).max() < 1e-9
    share = float(np.mean(np.linalg.norm(moved, axis=1) > 1e-6))
    assert 0.01 < share < 0.12
    # The cage carries them: at rest every vertex lies where the template has it.
    carried = eared.cage_rig.deform(eared.template.binding, eared.cage_rig.quads.rest)
    assert np.abs(carried - eared.template.vertices).max() < 1e-5


def test_stout_builds_have_the_ears_of_a_grown_animal() -> None:
    assert [round(build.ears, 2) for build in builds("mouse")] == [1.0, 1.17, 1.35]
    assert {build.ears for build in builds("rat")} == {1.0}
