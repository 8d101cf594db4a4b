"""Representative frames: they cover the set, are real and distinct, and do not follow the crowd."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import cKDTree

from calibration.foundation.errors import InputError
from tracking.priors.representative_frames import representative_frames


def test_each_cluster_gets_a_frame():
    rng = np.random.default_rng(1)
    centres = rng.normal(scale=10, size=(7, 5))
    # The crowd stands in one place: 2000 frames there, 20 in each other.
    label = np.concatenate([np.zeros(2000, int), np.repeat(np.arange(1, 7), 20)])
    poses = centres[label] + 0.1 * rng.normal(size=(len(label), 5))
    chosen = representative_frames(poses, 7, chunk=500)
    assert sorted(label[chosen]) == list(range(7))


def test_coverage_beats_random_choice_by_far():
    rng = np.random.default_rng(2)
    phase = np.cumsum(rng.exponential(0.002, 6000) * (1 + 20 * (rng.random(6000) < 0.01)))
    poses = np.column_stack([np.sin(phase), np.cos(phase), np.sin(2 * phase)])
    chosen = representative_frames(poses, 40, chunk=1000)
    assert len(chosen) == len(set(chosen.tolist())) == 40
    worst = cKDTree(poses[chosen]).query(poses)[0].max()
    random = [cKDTree(poses[rng.choice(6000, 40, replace=False)]).query(poses)[0].max() for _ in range(10)]
    assert worst < 0.6 * np.median(random)


def test_same_seed_same_frames_and_small_sets_are_kept_whole():
    poses = np.random.default_rng(3).normal(size=(300, 4))
    poses[7] = np.nan
    np.testing.assert_array_equal(representative_frames(poses, 20), representative_frames(poses, 20))
    everything = representative_frames(poses, 400)
    assert len(everything) == 299
    assert 7 not in everything


def test_repeated_poses_do_not_loop():
    poses = np.repeat(np.eye(3), 50, axis=0)
    chosen = representative_frames(poses, 10)
    assert len(set(chosen.tolist())) == 10
    assert {tuple(row) for row in poses[chosen]} == {tuple(row) for row in np.eye(3)}


def test_bad_input():
    with pytest.raises(InputError, match=r"must be \(N, D\)"):
        representative_frames(np.zeros(4), 2)
    with pytest.raises(InputError, match="at least 1"):
        representative_frames(np.zeros((4, 2)), 0)
    with pytest.raises(InputError, match="every pose"):
        representative_frames(np.full((4, 2), np.nan), 2)
