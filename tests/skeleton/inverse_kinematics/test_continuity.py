"""Turns counted on and signs kept from frame to frame: as a loop over the frames does it."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.foundation.arrays import Floats
from skeleton.inverse_kinematics import spring_window
from skeleton.inverse_kinematics.fits import same_sign


def signs_one_by_one(quaternions: Floats) -> Floats:
    out = np.array(quaternions)
    for frame in range(1, len(out)):
        flipped = np.einsum("jk,jk->j", out[frame], out[frame - 1]) < 0
        out[frame, flipped] *= -1.0
    return out


def turns_one_by_one(vectors: Floats) -> Floats:
    out = np.array(vectors)
    for t in range(1, len(out)):
        angle = float(np.linalg.norm(out[t]))
        if angle > 1e-9:
            unit = out[t] / angle
            turns = np.round((float(unit @ out[t - 1]) - angle) / (2 * np.pi))
            out[t] = (angle + 2 * np.pi * turns) * unit
    return out


def test_signs_are_those_of_a_loop(rng: np.random.Generator) -> None:
    turning = np.repeat(rng.normal(size=(1, 5, 4)), 80, axis=0) * rng.choice([-1.0, 1.0], (80, 5, 1))
    some = rng.normal(size=(80, 5, 4))
    some[20], some[30:33, 2], some[50, 1] = np.nan, np.nan, 0.0
    for quaternions in (turning, some, some[:1], some[:0]):
        np.testing.assert_array_equal(same_sign(quaternions), signs_one_by_one(quaternions))


def test_turns_are_those_of_a_loop(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spring_window, "_balls", lambda body: [1])
    for step in (0.01, 0.6):
        turns = np.cumsum(step * rng.normal(size=(300, 3)), axis=0)
        angle = np.linalg.norm(turns, axis=1, keepdims=True)
        turns *= 1.0 - 2 * np.pi * np.round(angle / (2 * np.pi)) / np.maximum(angle, 1e-9)
        path = np.concatenate([np.ones((300, 1)), turns], axis=1)
        found = spring_window.unwrapped(None, path)  # type: ignore[arg-type]
        np.testing.assert_array_equal(found[:, 0], 1.0)
        np.testing.assert_allclose(found[:, 1:], turns_one_by_one(turns), atol=1e-12)
        assert step < 0.1 or np.abs(found - path).max() > 6.0
