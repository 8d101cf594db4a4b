"""Compiled means and products of rotations against the plain ones."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.geometry.rotation_kernels import (
    dot3,
    left_jacobian,
    mean_rotations,
    times3,
    times_transposed3,
    transposed_times3,
)
from calibration.geometry.transforms import left_jacobian as plain_left_jacobian
from calibration.geometry.transforms import mean_rotation, rotation_from_vector


def test_means_are_those_of_the_plain_function(rng: np.random.Generator) -> None:
    many = rotation_from_vector(rng.normal(size=(3, 3))) @ rotation_from_vector(0.8 * rng.normal(size=(40, 3, 3)))
    assert np.allclose(mean_rotations(many), mean_rotation(many), atol=1e-12)


def test_wide_spreads_settle_too(rng: np.random.Generator) -> None:
    many = rotation_from_vector(1.5 * rng.normal(size=(300, 2, 3)))
    assert np.allclose(mean_rotations(many), mean_rotation(many), atol=1e-9)


def test_small_products_are_those_of_matrices() -> None:
    a, b = np.random.default_rng(3).normal(size=(2, 3, 3))
    out = np.empty((3, 3))
    for kernel, wanted in ((times3, a @ b), (times_transposed3, a @ b.T), (transposed_times3, a.T @ b)):
        kernel(a, b, out)
        np.testing.assert_allclose(out, wanted, atol=1e-14)
    assert dot3(a[0], b[0]) == pytest.approx(a[0] @ b[0], abs=1e-14)


@pytest.mark.parametrize("length", [0.0, 1e-7, 1e-3, 0.2999, 0.3001, 2.0, 5.0])
def test_left_jacobian_is_that_of_the_plain_function(length: float) -> None:
    vector = length * np.array([0.6, -0.48, 0.64])
    out = np.empty((3, 3))
    left_jacobian(*vector, out)
    np.testing.assert_allclose(out, plain_left_jacobian(vector), atol=1e-14)
