"""Joints of the legs are carried to where the skeleton has them, in poses that were not learned from."""

from __future__ import annotations

from functools import cache

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.geometry.transforms import rotation_from_quaternion
from tracking.priors.gplvm import GplvmPrior
from tracking.quads.attachment import attach_posed_quads, carry_quads, posed_by_rotations
from tracking.quads.oriented_quads import QuadPose
from tracking.quads.skin_following import builtin_following
from tracking.subjects.settled_joints import SETTLED, STEP
from tracking.subjects.shape import BodyShape
from tracking.subjects.shaped import Shaper
from tracking.subjects.subject import Subject, builtin_subject


@cache
def human() -> Subject:
    return builtin_subject("human")


def away_mm(subject: Subject, rows: Floats) -> Floats:
    """(J,) mean distance of joints from the skeleton's, in poses of the prior beside those that were learned from."""
    assert isinstance(subject.prior, GplvmPrior) and subject.prior.training_segments is not None
    attachment = attach_posed_quads(subject.cage_rig.quads, subject.bones.skeleton, subject.bones.pose)
    rotations = rotation_from_quaternion(subject.prior.training_segments[2 :: 8 * STEP].astype(float))
    poses = posed_by_rotations(attachment.skeleton, rotations)
    following = builtin_following("human")
    assert following is not None
    quads = following.applied(attachment, rotations, carry_quads(attachment, poses))
    carried = [
        subject.cage_rig.deform(rows, QuadPose(*one)) for one in zip(quads.rotations, quads.centres, strict=True)
    ]
    truth = attachment.skeleton.landmarks(poses)[1]
    return np.asarray(np.linalg.norm(np.array(carried) - truth, axis=2).mean(axis=0))


def test_legs_come_near_their_joints_and_the_rest_stays() -> None:
    subject = human()
    plain = subject.cage_rig.bind(subject.joint_points)
    legs = np.array([name.endswith(SETTLED) for name in subject.joint_names])
    np.testing.assert_allclose(subject.joint_binding[~legs], plain[~legs], atol=1e-12)
    before, after = away_mm(subject, plain)[legs], away_mm(subject, subject.joint_binding)[legs]
    assert before.mean() > 9.0 and after.mean() < 5.5 and (after < before).all()


def test_a_shaped_body_keeps_it() -> None:
    lengths = {"thigh": 1.1, "shank": 0.95, "trunk": 1.04}
    shape = BodyShape.uniform("human", 1.05)
    shaper = Shaper(human())
    subject = shaper.make(BodyShape("human", shape.lengths | lengths, shape.girths), whole=False).subject
    legs = np.array([name.endswith(SETTLED) for name in subject.joint_names])
    before = away_mm(subject, subject.joint_binding - shaper._settled)[legs]
    assert away_mm(subject, subject.joint_binding)[legs].mean() < 0.6 * before.mean()


def test_moved_and_turned_with_all_quads() -> None:
    subject, rest = human(), human().cage_rig.quads.rest
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    moved = QuadPose(turn @ rest.rotations, rest.centres @ turn.T + 5000.0)
    before = subject.cage_rig.deform(subject.joint_binding, rest)
    np.testing.assert_allclose(
        subject.cage_rig.deform(subject.joint_binding, moved), before @ turn.T + 5000.0, atol=0.05
    )
