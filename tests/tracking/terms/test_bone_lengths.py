"""Bones keep their lengths: slopes against differences, and what is learned from training poses."""

from __future__ import annotations

import numpy as np
import pytest

from tracking.fitting.point_fit import moved
from tracking.subjects.subject import Subject, builtin_subject
from tracking.terms.bone_lengths import BoneLengths, fit_bone_lengths, limb_bones


@pytest.fixture(scope="module")
def human() -> Subject:
    return builtin_subject("human")


@pytest.fixture(scope="module")
def bones(human: Subject) -> BoneLengths:
    pairs = limb_bones(human.joint_names)
    return fit_bone_lengths(human.cage_rig, human.joint_binding, pairs, human.prior, floor=4.0)


def test_the_gradient_is_the_slope_of_the_energy(human: Subject, bones: BoneLengths) -> None:
    rig, rng = human.cage_rig, np.random.default_rng(3)
    pose = moved(rig.quads.rest, rng.normal(0.0, 0.05, 6 * len(rig.quads)) * np.tile([1, 1, 1, 200, 200, 200], 32))
    size = 6 * len(rig.quads)
    hessian, gradient = np.zeros((size, size)), np.zeros(size)
    bones.add_to(rig, pose, hessian, gradient, 2.0)

    def energy(step: np.ndarray) -> float:
        long = np.linalg.norm(rig.deform(bones.rows, moved(pose, step)), axis=1)
        return float(np.sum(((long - bones.lengths) / bones.sigma) ** 2))

    for index in rng.choice(size, 12, replace=False):
        step = np.zeros(size)
        step[index] = 1e-4
        slope = (energy(step) - energy(-step)) / 2e-4
        assert slope == pytest.approx(gradient[index], rel=1e-3, abs=1e-3)
    assert np.linalg.eigvalsh(hessian).min() > -1e-6


def test_quads_that_follow_the_skin_keep_bones_as_long_as_they_are(human: Subject, bones: BoneLengths) -> None:
    long = np.linalg.norm(human.cage_rig.deform(bones.rows, human.cage_rig.quads.rest), axis=1)
    np.testing.assert_allclose(bones.lengths, long, rtol=0.06)
    # Learned: half of a joint's rotation alone gives 8 to 15 mm.
    assert bones.sigma.max() < 10.0


def test_bones_are_named_by_their_ends() -> None:
    assert limb_bones(("left_hip", "left_knee", "right_hip")) == ((0, 1),)
    assert limb_bones(("nose", "tail")) == ()
