"""Functional calibration: known centres and axes of two moving rigid bodies."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.foundation.errors import InputError, SolveError
from calibration.geometry.transforms import rotation_from_vector
from skeleton.inverse_kinematics.functional import cluster_poses, joint_axis, joint_centre


def two_bodies(turns: np.ndarray, rng: np.random.Generator, noise: float = 0.0):  # type: ignore[no-untyped-def]
    """A parent in random motion and a child that turns by rotation vectors (T, 3) about a fixed centre."""
    count = len(turns)
    rotation_a = rotation_from_vector(rng.normal(0.0, 0.5, (count, 3)))
    origin_a = rng.normal(0.0, 100.0, (count, 3))
    centre_a, centre_b = np.array([10.0, -5.0, 30.0]), np.array([2.0, 4.0, -20.0])
    rotation_b = rotation_a @ rotation_from_vector(turns)
    origin_b = origin_a + np.einsum("tij,j->ti", rotation_a, centre_a) - np.einsum("tij,j->ti", rotation_b, centre_b)
    shape = rng.normal(0.0, 30.0, (5, 3))
    clusters = [
        np.einsum("tij,mj->tmi", r, shape) + x[:, None] + rng.normal(0.0, noise, (count, 5, 3)) if noise
        else np.einsum("tij,mj->tmi", r, shape) + x[:, None]
        for r, x in ((rotation_a, origin_a), (rotation_b, origin_b))
    ]  # fmt: skip
    return [cluster_poses(points, shape) for points in clusters], centre_a, centre_b


def test_exact_centre(rng: np.random.Generator) -> None:
    (first, second), centre_a, centre_b = two_bodies(rng.normal(0.0, 0.4, (30, 3)), rng)
    found = joint_centre(first, second)
    np.testing.assert_allclose(found.in_first, centre_a, atol=1e-8)
    np.testing.assert_allclose(found.in_second, centre_b, atol=1e-8)
    assert found.residual_mm < 1e-8


def test_noisy_centre_within_its_standard_deviation(rng: np.random.Generator) -> None:
    (first, second), centre_a, _ = two_bodies(rng.normal(0.0, 0.4, (200, 3)), rng, noise=0.5)
    found = joint_centre(first, second)
    assert np.abs(found.in_first - centre_a).max() < 1.0
    assert (np.abs(found.in_first - centre_a) < 4 * found.sd_mm).all()


def test_axis_of_a_hinge(rng: np.random.Generator) -> None:
    axis = np.array([0.2, 0.9, -0.1])
    axis /= np.linalg.norm(axis)
    (first, second), centre_a, _ = two_bodies(rng.uniform(-1.0, 1.0, (60, 1)) * axis, rng, noise=0.2)
    found = joint_axis(first, second)
    assert np.degrees(np.arccos(abs(found.direction_in_first @ axis))) < 1.0
    assert found.sd_deg < 1.0
    across = (found.point_in_first - centre_a) - axis * (axis @ (found.point_in_first - centre_a))
    assert np.linalg.norm(across) < 1.0
    with pytest.raises(SolveError, match="about one axis only"):
        joint_centre(first, second)


def test_degenerate_and_bad_input(rng: np.random.Generator) -> None:
    (first, second), _, _ = two_bodies(rng.normal(0.0, 0.4, (30, 3)), rng)
    with pytest.raises(SolveError, match="about several axes"):
        joint_axis(first, second)
    with pytest.raises(InputError, match="are their rates equal"):
        joint_centre(first, (second[0][:10], second[1][:10]))
    with pytest.raises(InputError, match="no frame shows all its markers"):
        cluster_poses(np.full((4, 3, 3), np.nan))
