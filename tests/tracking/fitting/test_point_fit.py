"""Steps of quads."""

from __future__ import annotations

import numpy as np

from calibration.geometry.transforms import rotation_from_vector
from tracking.fitting.point_fit import moved
from tracking.quads.oriented_quads import QuadPose


def test_quads_turn_by_rotation_vectors_and_shift() -> None:
    rng = np.random.default_rng(5)
    # None, next to nothing, on both sides of where series end, and far
    angles = np.array([0.0, 1e-9, 9e-5, 1.1e-4, 0.5, 3.0])
    axes = rng.normal(size=(6, 3))
    turns = angles[:, None] * axes / np.linalg.norm(axes, axis=1, keepdims=True)
    pose = QuadPose(rotation_from_vector(rng.normal(size=(6, 3))), rng.normal(size=(6, 3)))
    step = np.concatenate([turns, rng.normal(size=(6, 3))], axis=1)
    there = moved(pose, step.ravel())
    np.testing.assert_allclose(there.rotations, rotation_from_vector(turns) @ pose.rotations, atol=4e-15)
    np.testing.assert_allclose(there.centres, pose.centres + step[:, 3:], atol=1e-15)
