"""Gaps: better than interpolation on a gait, known values met, honest sigmas, samples, seen points."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.foundation.errors import InputError
from calibration.geometry.transforms import rotation_from_vector, vector_from_rotation
from skeleton.pose_spaces.gap_filling import Motion, fill_gaps, gap_process, gaps_of, learn_gap_model
from skeleton.pose_spaces.posing import HandleSet
from skeleton.pose_spaces.rotation_tree import RotationTree, place_rotations
from skeleton.pose_spaces.seen_points import with_seen_points
from skeleton.pose_spaces.time_kernels import TimeKernel, condition, find_period

RATE = 60.0
TREE = RotationTree(
    ("root", "hip", "knee", "toe"),
    np.array([-1, 0, 1, 2]),
    np.array([[0, 0, 0], [0, 50, 0], [0, 0, -400], [0, 0, -400.0]]),
)


def gait(frames: int = 240) -> Motion:
    t = np.arange(frames) / RATE
    phase = 2 * np.pi * (t / 0.9 + 0.02 * np.sin(1.3 * t))
    vectors = np.zeros((frames, 4, 3))
    vectors[:, 1, 1] = 0.5 * np.sin(phase) + 0.1 * np.sin(2 * phase + 1)
    vectors[:, 2, 1] = 0.6 * np.sin(phase + 1.0) ** 2
    vectors[:, 3, 1] = 0.3 * np.cos(phase)
    vectors[:, 1, 0] = 0.05 * np.sin(phase + 0.5)
    return Motion(rotation_from_vector(vectors), np.stack([1200 * t, 0 * t, 900 + 20 * np.sin(2 * phase)], axis=1))


def test_a_gait_is_filled_better_than_by_a_straight_line_and_marked() -> None:
    motion = gait()
    known = np.ones(240, np.bool_)
    known[120:150] = False
    filled = fill_gaps(motion, known, TREE.names, body="toy", rate_hz=RATE, most_s=0.6, samples=2)
    assert np.array_equal(filled.filled, ~known)
    assert np.array_equal(filled.rotations[known], motion.rotations[known])
    apart = vector_from_rotation(np.swapaxes(motion.rotations[~known], -1, -2) @ filled.rotations[~known])
    ends = motion.rotations[[119, 150]]
    share = (np.arange(1, 31) / 31)[:, None, None]
    line = ends[0] @ rotation_from_vector(share * vector_from_rotation(np.swapaxes(ends[0], -1, -2) @ ends[1]))
    straight = vector_from_rotation(np.swapaxes(motion.rotations[~known], -1, -2) @ line)
    assert np.sqrt((apart**2).mean()) < 0.4 * np.sqrt((straight**2).mean())
    assert (filled.rotation_sigma[~known][:, 1:3].max(axis=2) > 0).all() and (filled.rotation_sigma[known] == 0).all()
    assert np.linalg.norm(filled.root[~known] - motion.root[~known], axis=1).max() < 30.0
    one, other = filled.samples
    assert np.abs(one.rotations - other.rotations)[~known].max() > 0
    assert np.array_equal(one.rotations[known], motion.rotations[known])


def test_known_values_are_met() -> None:
    times = np.arange(60) / RATE
    values = np.sin(7 * times)[:, None]
    kernel = TimeKernel(0.15, 0.5, 0.01, 1 / RATE)
    found = condition(kernel, times, values, times[10:20])
    assert np.abs(found.mean - values[10:20]).max() < 1e-9


def test_sigma_and_samples_of_a_known_process_agree() -> None:
    rng = np.random.default_rng(0)
    kernel, times = TimeKernel(0.2, 1.0, 0.01, 1 / RATE), np.arange(120) / RATE
    table = kernel(times[:, None] - times) + 1e-10 * np.eye(120)
    values = np.linalg.cholesky(table) @ rng.normal(size=(120, 400))
    keep = np.r_[0:50, 62:120]
    found = condition(kernel, times[keep], values[keep], times[50:62])
    score = (values[50:62] - found.mean) / np.sqrt(np.diag(found.shape))[:, None]
    assert abs((np.abs(score) < 1).mean() - 0.68) < 0.05 and abs((np.abs(score) < 2).mean() - 0.95) < 0.03
    assert found.scale.mean() == pytest.approx(1.0, abs=0.05)


def test_the_period_of_a_gait_is_found_and_noise_has_none() -> None:
    t = np.arange(300) / RATE
    known = np.ones(300, np.bool_)
    assert find_period(np.sin(2 * np.pi * t / 0.8)[:, None], known, RATE) == pytest.approx(0.8, abs=0.03)
    assert find_period(np.random.default_rng(0).normal(size=(300, 3)), known, RATE) is None


def test_points_still_seen_make_the_gap_surer_and_better() -> None:
    motion = gait()
    known = np.ones(240, np.bool_)
    gap = (100, 130)
    known[slice(*gap)] = False
    model = learn_gap_model(motion, known, TREE.names, body="toy", rate_hz=RATE, gaps=[gap])
    process = gap_process(model, motion, known, gap)
    truth = place_rotations(TREE, motion.rotations[slice(*gap)], motion.root[slice(*gap)]).positions
    handles = HandleSet.at(TREE, ("root", "toe"))
    points = truth[:, handles.joints] + np.random.default_rng(0).normal(0, 1.0, (30, 2, 3))
    better = with_seen_points(process, TREE, handles, points, np.ones(2))

    def error(one: object) -> float:
        rotations, root, _, _ = one.shown()  # type: ignore[attr-defined]
        return float(np.linalg.norm(place_rotations(TREE, rotations, root).positions - truth, axis=2).mean())

    assert error(better) < 0.7 * error(process)
    assert better.deviations.mean() < process.deviations.mean()


def test_long_gaps_and_those_at_the_ends_stay() -> None:
    known = np.ones(100, np.bool_)
    known[:5] = known[40:80] = known[20:24] = False
    assert gaps_of(known, 10) == [(20, 24)]
    with pytest.raises(InputError, match="at least 16 known frames"):
        few = np.zeros(240, np.bool_)
        few[[0, 1, 10, 11]] = True
        fill_gaps(gait(), few, TREE.names, body="toy", rate_hz=RATE, most_s=1.0)
