"""Where a foot is planted."""

from __future__ import annotations

import numpy as np

from skeleton.inverse_kinematics.footplants import _place


def test_a_paw_that_creeps_in_and_rolls_off_stands_where_mid_stance_saw_it() -> None:
    track = np.tile([10.0, -4.0, 1.0], (40, 1))
    track[:8, 0] -= np.linspace(2.0, 0.0, 8)  # it creeps in from one side, and rolls off to the other, farther
    track[-8:, 1] += np.linspace(0.0, 4.0, 8)
    off = np.linalg.norm(_place(track) - [10.0, -4.0, 1.0])
    assert off < 0.35 * np.linalg.norm(track.mean(axis=0) - [10.0, -4.0, 1.0])
    assert np.allclose(_place(track[:1]), track[0])


def test_noise_is_averaged() -> None:
    rng = np.random.default_rng(0)
    places = np.array([_place(rng.normal(0.0, 1.0, (60, 3))) for _ in range(200)])
    medians = np.array([np.median(rng.normal(0.0, 1.0, (60, 3)), axis=0) for _ in range(200)])
    assert places.std() < 1.1 * medians.std() < 0.2
