"""Mixtures of a gap's prediction and of interpolations: what does best in gaps made on purpose gets the weight."""

from __future__ import annotations

import numpy as np

from calibration.geometry.transforms import rotation_from_vector, vector_from_rotation
from skeleton.pose_spaces.gap_filling import Motion, gap_process, learn_gap_model
from skeleton.pose_spaces.gap_mixing import bent_and_straight, can_be_mixed, learn_mixture, mixed_rotations

RATE, GAP = 60.0, (150, 162)


def turning(speed: float = 0.4) -> np.ndarray:
    """Two joints that turn evenly, (300, 2, 3, 3)."""
    vectors = np.zeros((300, 2, 3))
    vectors[:, :, 0] = speed * np.arange(300)[:, None] / RATE
    return rotation_from_vector(vectors)


def known_but_gap() -> np.ndarray:
    known = np.ones(300, np.bool_)
    known[slice(*GAP)] = False
    return known


def test_a_joint_whose_prediction_is_wrong_is_interpolated_and_the_other_is_not() -> None:
    rng = np.random.default_rng(0)
    vectors = np.cumsum(rng.normal(0, 0.05, (300, 2, 3)), axis=0)
    rotations = rotation_from_vector(vectors)
    off = rotation_from_vector(np.array([[0.0, 0, 0], [0.9, 0, 0]]))
    weights = learn_mixture(lambda _, gap: rotations[slice(*gap)] @ off, rotations, known_but_gap(), [GAP], RATE)
    assert np.allclose(weights.sum(axis=1), 1.0) and (weights >= 0).all()
    assert weights[0, 0] > 0.4 > 0.2 > weights[1, 0]  # two joints: the bad one speaks for both
    shown = mixed_rotations(rotations[slice(*GAP)] @ off, rotations, GAP, weights)
    apart = np.linalg.norm(vector_from_rotation(np.swapaxes(rotations[slice(*GAP)], -1, -2) @ shown), axis=2)
    assert apart[:, 1].mean() < 0.5


def test_an_even_turn_is_interpolated_exactly() -> None:
    rotations = turning()
    for way in bent_and_straight(rotations, GAP):
        assert np.allclose(way, rotations[slice(*GAP)], atol=1e-9)


def test_too_few_known_frames_leave_the_prediction_alone() -> None:
    known = np.zeros(300, np.bool_)
    known[140:150] = known[162:170] = True
    weights = learn_mixture(lambda _, gap: turning()[slice(*gap)], turning(), known, [GAP], RATE)
    assert np.array_equal(weights, np.tile([1.0, 0, 0], (2, 1)))
    assert can_be_mixed(known, GAP) and not can_be_mixed(known, (1, 4)) and not can_be_mixed(known, (168, 172))


def test_a_joint_that_snaps_beside_the_gap_does_not_overshoot() -> None:
    rng = np.random.default_rng(1)
    vectors = np.zeros((300, 3, 3))
    vectors[:, 1, 0] = 0.5 * np.sin(np.arange(300) / 9)
    vectors[:, 2, 1] = 0.4 * (np.cumsum(rng.random(300) < 0.06) % 2)  # steps within one frame
    vectors[:, 2, 1] = np.convolve(np.pad(vectors[:, 2, 1], 1, mode="edge"), [0.25, 0.5, 0.25], mode="valid")
    motion = Motion(rotation_from_vector(vectors), np.zeros((300, 3)))
    known = known_but_gap()
    model = learn_gap_model(motion, known, ("root", "hip", "toe"), body="toy", rate_hz=RATE, gaps=[GAP])
    assert model.mixtures[12][1, 0] > 0.8 > model.mixtures[12][2, 0]
    motion.rotations[slice(*GAP)] = np.nan  # not read
    rotations = gap_process(model, motion, known, GAP).shown()[0]
    assert np.isfinite(rotations).all()
    assert np.abs(vector_from_rotation(rotations[:, 2])[:, 1]).max() < 0.45
