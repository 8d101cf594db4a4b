"""A skirt drawn with the body: closed, carried by waist and legs, no part of any limb."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from calibration.geometry.transforms import rotation_from_vector
from tracking.limbs.chains import limbs_of
from tracking.limbs.evidence import cloth_over
from tracking.observations.contour_fill import MeshEdges
from tracking.quads.oriented_quads import QuadPose
from tracking.quads.template import bare
from tracking.subjects.garments import Skirt, dressed
from tracking.subjects.subject import Subject, builtin_subject, scaled_subject

SKIRT = Skirt(0.55, 0.18, 0.3, follows=0.5)


@cache
def human() -> Subject:
    return builtin_subject("human")


def test_a_skirt_is_closed_looks_out_and_leaves_the_written_mesh_bare() -> None:
    subject = dressed(human(), SKIRT)
    template = subject.outline_template
    count = len(human().outline_template.vertices)
    assert template.flesh == count and subject.template is human().template
    MeshEdges.of(template.faces)  # raises where it is open
    sewn = template.faces[len(human().outline_template.faces) :]
    a, b, c = (template.vertices[sewn[:, k]] for k in range(3))
    assert np.sum(a * np.cross(b, c)) > 0
    naked = bare(template)
    assert len(naked.vertices) == count and np.array_equal(naked.faces, human().outline_template.faces)
    assert scaled_subject(subject, 1.1).outline_template.flesh == count
    assert dressed(human(), None) is human()


def test_a_skirt_goes_with_the_body_and_its_hem_half_way_with_a_leg() -> None:
    subject = dressed(human(), SKIRT)
    rig, template = subject.cage_rig.quads, subject.step_template
    cloth = template.binding[template.flesh :]
    rest = template.vertices[template.flesh :]
    turn, shift = rotation_from_vector(np.array([0.3, -0.5, 0.8])), np.array([100.0, -50.0, 20.0])
    pose = QuadPose(turn @ rig.rest.rotations, rig.rest.centres @ turn.T + shift)
    assert np.abs(subject.cage_rig.deform(cloth, pose) - (rest @ turn.T + shift)).max() < 1e-6
    ahead = rig.rest.centres.copy()
    left = [rig.quad_names.index(name) for name in ("left_hip", "left_thigh", "left_knee")]
    ahead[left, 0] += 100.0
    moved = (subject.cage_rig.deform(cloth, replace(rig.rest, centres=ahead)) - rest)[:, 0]
    rings = moved[:-2].reshape(8, -1)
    assert np.abs(rings[0]).max() < 1e-6
    assert abs(rings[-1].max() - 50.0) < 1e-6 and abs(rings[-1].min()) < 1e-6


def test_clothes_make_the_limbs_below_less_known() -> None:
    limbs = limbs_of(human().cage_rig.quads)
    over = dict(zip(limbs.names, cloth_over(limbs, dressed(human(), SKIRT).outline_template), strict=True))
    assert over["left_leg"] == over["right_leg"] > 30.0
    assert over["trunk"] == over["left_arm"] == 0.0
    assert not cloth_over(limbs, human().outline_template).any()


def test_a_skirt_is_told_as_it_was_written() -> None:
    assert Skirt.told(SKIRT.as_table()) == SKIRT
