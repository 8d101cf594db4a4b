"""Compiled means of rotations against the plain ones."""

from __future__ import annotations

import numpy as np

from calibration.geometry.rotation_kernels import mean_rotations
from calibration.geometry.transforms import mean_rotation, rotation_from_vector


def test_means_are_those_of_the_plain_function(rng: np.random.Generator) -> None:
    many = rotation_from_vector(rng.normal(size=(3, 3))) @ rotation_from_vector(0.8 * rng.normal(size=(40, 3, 3)))
    assert np.allclose(mean_rotations(many), mean_rotation(many), atol=1e-12)


def test_wide_spreads_settle_too(rng: np.random.Generator) -> None:
    many = rotation_from_vector(1.5 * rng.normal(size=(300, 2, 3)))
    assert np.allclose(mean_rotations(many), mean_rotation(many), atol=1e-9)
