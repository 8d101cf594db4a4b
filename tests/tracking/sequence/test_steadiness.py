"""Motion and noise are told apart by how successive distances from the neighbours' middle go together."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from calibration.foundation.arrays import Floats
from tracking.sequence.steadiness import FEWEST, steadiness

FRAMES, SIGMA = 400, 2.0


def told(noise: float, swing: float, *, frames: int = FRAMES, jump: float = 0.0) -> Any:
    """One quad that swings slowly, seen with some noise by fits that believe in errors of `SIGMA`."""
    random = np.random.default_rng(3)
    time = np.arange(frames)[:, None]
    path = swing * np.sin(0.2 * time + np.arange(6)) + noise * random.normal(size=(frames, 6))
    path[frames // 2 :] += jump
    bends: list[Floats | None] = [None, *(path[1:-1] - 0.5 * (path[:-2] + path[2:])), None]
    fits: list[Any] = [SimpleNamespace(hessian=np.eye(6, dtype=np.float32) / SIGMA**2)] * frames
    return steadiness(fits, bends)


def test_the_pull_is_that_of_the_motion_in_units_of_what_the_fits_believe() -> None:
    bend = 100.0 * (1.0 - np.cos(0.2)) / np.sqrt(2.0)
    for noise in (0.5, 2.0):
        np.testing.assert_allclose(told(noise, 100.0).pull, bend * SIGMA / noise, rtol=0.35)


def test_the_noisier_the_stronger_and_the_quicker_the_weaker() -> None:
    assert (told(4.0, 100.0).pull < 0.6 * told(2.0, 100.0).pull).all()
    assert (told(2.0, 300.0).pull > 2.0 * told(2.0, 100.0).pull).all()
    assert told(4.0, 100.0).noisy and not told(1.0, 100.0).noisy


def test_a_jump_is_no_noise_and_a_short_sequence_tells_nothing() -> None:
    np.testing.assert_allclose(told(2.0, 100.0, jump=500.0).pull, told(2.0, 100.0).pull, rtol=0.2)
    assert told(2.0, 100.0, frames=FEWEST) is None
