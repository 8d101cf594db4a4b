"""Group laws, exactness near 0 and pi, and closed-form fits."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.foundation.errors import InputError, SolveError
from calibration.geometry.transforms import (
    RigidTransform,
    SimilarityTransform,
    fit_rigid,
    fit_similarity,
    left_jacobian,
    left_jacobian_inverse,
    mean_rotation,
    quaternion_from_rotation,
    rotation_from_quaternion,
    rotation_from_vector,
    vector_from_rotation,
)

# the angles where the formulas change hands, and both ends
ANGLES = [0, 1e-14, 1e-9, 1e-7, 9e-5, 1.1e-4, 0.049, 0.051, 0.29, 0.31, 1.0, 3.0, np.pi - 1e-5, np.pi - 1e-9]


def axes(rng: np.random.Generator, n: int = 50) -> np.ndarray:
    a = rng.normal(size=(n, 3))
    return np.concatenate([np.eye(3), -np.eye(3), a / np.linalg.norm(a, axis=1, keepdims=True)])


@pytest.mark.parametrize("angle", ANGLES)
def test_logarithm_inverts_exponential(angle: float, rng: np.random.Generator) -> None:
    v = axes(rng) * angle
    assert np.abs(vector_from_rotation(rotation_from_vector(v)) - v).max() < 1e-14


def test_half_turn_gives_an_axis_of_length_pi(rng: np.random.Generator) -> None:
    a = axes(rng)
    v = vector_from_rotation(rotation_from_vector(a * np.pi))
    assert np.allclose(np.linalg.norm(v, axis=1), np.pi, atol=1e-14)
    assert np.allclose(np.abs((v / np.pi * a).sum(1)), 1, atol=1e-14)


def test_rotations_are_proper(rng: np.random.Generator) -> None:
    r = rotation_from_vector(rng.normal(size=(4, 5, 3)) * 2)
    assert np.allclose(r @ np.swapaxes(r, -1, -2), np.eye(3), atol=1e-14)
    assert np.allclose(np.linalg.det(r), 1)


def test_quaternions_round_trip(rng: np.random.Generator) -> None:
    q = rng.normal(size=(200, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    q *= np.where(q[:, :1] < 0, -1, 1)
    assert np.abs(quaternion_from_rotation(rotation_from_quaternion(q)) - q).max() < 1e-14


@pytest.mark.parametrize("angle", ANGLES)
def test_left_jacobian_against_finite_differences(angle: float, rng: np.random.Generator) -> None:
    v, d = axes(rng, 5) * angle, rng.normal(size=(11, 3))
    step = 1e-6
    moved = rotation_from_vector(v + step * d) @ np.swapaxes(rotation_from_vector(v - step * d), -1, -2)
    numeric = vector_from_rotation(moved) / (2 * step)
    assert np.abs((left_jacobian(v) @ d[..., None])[..., 0] - numeric).max() < 1e-8
    assert np.allclose(left_jacobian(v) @ left_jacobian_inverse(v), np.eye(3), atol=1e-12)


def test_rigid_group_laws(rng: np.random.Generator) -> None:
    a = RigidTransform.exp(rng.normal(size=(7, 6)))
    b = RigidTransform.exp(rng.normal(size=(7, 6)))
    p = rng.normal(size=(7, 9, 3))
    assert np.allclose((a @ b).apply(p), a.apply(b.apply(p)))
    assert np.allclose((a @ a.inverse()).matrix(), np.eye(4), atol=1e-14)
    assert np.allclose(RigidTransform.exp(a.log()).matrix(), a.matrix(), atol=1e-13)


def test_mean_rotation_is_equivariant_and_central(rng: np.random.Generator) -> None:
    r = rotation_from_vector(rng.normal(size=(20, 3)) * 0.5)
    g = rotation_from_vector([0.3, -2, 1])
    mean = mean_rotation(r)
    assert np.abs(vector_from_rotation(mean.T @ r).sum(0)).max() < 1e-12
    assert np.allclose(mean_rotation(g @ r), g @ mean, atol=1e-12)
    with pytest.raises(InputError, match="at least one"):
        mean_rotation(np.zeros((0, 3, 3)))


def test_fits_recover_the_motion_and_skip_nan(rng: np.random.Generator) -> None:
    p = rng.normal(size=(30, 3))
    s = SimilarityTransform(2.5, rotation_from_vector([0.1, 3, -0.4]), np.array([1.0, 2, 3]))
    q = s.apply(p)
    q[4] = np.nan
    fit = fit_similarity(p, q)
    assert abs(fit.scale - 2.5) < 1e-12
    assert np.allclose(fit.apply(p)[:4], q[:4])
    assert np.allclose((fit @ fit.inverse()).apply(p), p)
    assert np.allclose(fit_rigid(p, RigidTransform(s.rotation, s.translation).apply(p)).rotation, s.rotation)


def test_fit_never_mirrors(rng: np.random.Generator) -> None:
    p = rng.normal(size=(30, 3))
    assert np.linalg.det(fit_rigid(p, p * [1, 1, -1]).rotation) > 0


def test_degenerate_fits_say_so() -> None:
    line = np.outer(np.arange(5.0), [1, 2, 3])
    with pytest.raises(SolveError, match="one line"):
        fit_rigid(line, line)
    with pytest.raises(SolveError, match="at least 3"):
        fit_rigid(np.full((5, 3), np.nan), np.zeros((5, 3)))
