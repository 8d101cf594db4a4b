"""Logarithms and angles of many numbers at once against those of the C library."""

from __future__ import annotations

import numpy as np

from calibration.geometry.elementary_kernels import angles, logarithms


def test_logarithms_are_those_of_the_library_to_the_last_digits(rng: np.random.Generator) -> None:
    near_one = 1.0 + 10.0 ** rng.uniform(-12, 0, 2000)
    x = np.concatenate([np.exp(rng.uniform(-300, 300, 2000)), near_one, 1.0 / near_one, [1.0, 2.0, 0.5, np.sqrt(0.5)]])
    out = np.empty(len(x))
    logarithms(x, out)
    np.testing.assert_allclose(out, np.log(x), rtol=5e-16)


def test_angles_are_those_of_the_library_in_all_quarters(rng: np.random.Generator) -> None:
    x, y = rng.normal(size=(2, 4000)) * 10.0 ** rng.uniform(-8, 8, (2, 4000))
    x = np.concatenate([x, [0.0, 0.0, 1.0, -1.0, 0.0, 1.0, 1e-300]])
    y = np.concatenate([y, [1.0, -1.0, 0.0, 0.0, 0.0, 1.0, -1e-300]])
    out = np.empty(len(x))
    angles(y, x, out)
    np.testing.assert_allclose(out, np.arctan2(y, x), rtol=5e-16)
