"""The pose chart: round trip, derivatives, invariance to the root, behaviour near half turns, bad input."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.foundation.errors import InputError
from calibration.geometry.transforms import RigidTransform, rotation_from_vector, vector_from_rotation
from tracking.priors.pose_chart import PoseChart, fit_pose_chart


def random_quads(rng, poses, quads, spread=0.5):
    """Quads that turn by `spread` rad about a mean of their own, under an arbitrary root motion."""
    means = rotation_from_vector(rng.normal(size=(quads, 3)))
    rotations = rotation_from_vector(rng.normal(scale=spread, size=(poses, quads, 3))) @ means
    centres = rng.normal(scale=100.0, size=(poses, quads, 3))
    root = RigidTransform(rotation_from_vector(rng.normal(size=(poses, 3))), rng.normal(scale=500, size=(poses, 3)))
    return root.rotation[:, None] @ rotations, root.apply(centres)


@pytest.mark.parametrize("root", [0, 2, 4])
@pytest.mark.parametrize("spread", [1e-9, 0.5])
def test_round_trip(root, spread):
    rng = np.random.default_rng(1)
    rotations, centres = random_quads(rng, 20, 5, spread)
    chart = fit_pose_chart(rotations, centres, root=root)
    frame, y = chart.to_vector(rotations, centres)
    assert y.shape == (20, 24)
    again = chart.from_vector(frame, y)
    np.testing.assert_allclose(again[0], rotations, atol=1e-12)
    np.testing.assert_allclose(again[1], centres, atol=1e-9)


def test_vector_does_not_depend_on_where_the_subject_stands():
    rng = np.random.default_rng(2)
    rotations, centres = random_quads(rng, 6, 4)
    chart = fit_pose_chart(rotations, centres)
    moved = RigidTransform.from_vectors([0.4, -2.0, 1.0], [300.0, -50.0, 9.0])
    _, before = chart.to_vector(rotations, centres)
    _, after = chart.to_vector(moved.rotation @ rotations, moved.apply(centres))
    np.testing.assert_allclose(after, before, atol=1e-12)


def test_no_wrap_within_half_a_turn_of_the_mean():
    # A quad that swings +-170 degrees about its mean: the vector must run straight through, where Euler
    # angles or logarithms about another frame would jump.
    angles = np.radians(np.linspace(-170, 170, 69))
    mean = rotation_from_vector(np.array([0.0, 3.0, 0.0]))
    swing = rotation_from_vector(angles[:, None] * np.array([0.6, 0.0, 0.8])) @ mean
    rotations = np.stack([np.broadcast_to(np.eye(3), swing.shape), swing], axis=1)
    centres = np.zeros((len(angles), 2, 3))
    centres[:, 1, 0] = 50.0
    chart = fit_pose_chart(rotations, centres)
    _, y = chart.to_vector(rotations, centres)
    np.testing.assert_allclose(y[:, 3:], angles[:, None] * np.array([0.6, 0.0, 0.8]), atol=1e-9)


def test_known_vector():
    chart = PoseChart(np.stack([np.eye(3)] * 2), length_scale=10.0)
    quarter = rotation_from_vector(np.array([0, 0, np.pi / 2]))
    rotations = np.stack([quarter, quarter @ quarter])
    root, y = chart.to_vector(rotations, np.array([[1.0, 2.0, 3.0], [1.0, 22.0, 3.0]]))
    np.testing.assert_allclose(root.translation, [1, 2, 3])
    # 20 mm along world y is 20 mm along the root's x: two length scales.
    np.testing.assert_allclose(y, [2, 0, 0, 0, 0, np.pi / 2], atol=1e-12)


@pytest.mark.parametrize("size", [1e-7, 0.3, 2.5, 4.0])
def test_derivatives_against_finite_differences(size):
    rng = np.random.default_rng(3)
    rotations, centres = random_quads(rng, 10, 5)
    chart = fit_pose_chart(rotations, centres, root=1)
    root, _ = chart.to_vector(rotations[0], centres[0])
    y = rng.normal(size=chart.dimension)
    y.reshape(-1, 6)[:, 3:] *= size / np.linalg.norm(y.reshape(-1, 6)[:, 3:], axis=1, keepdims=True)
    basis = chart.basis(root, y, np.eye(chart.dimension)).reshape(chart.quads, 6, -1)
    step = 1e-6
    for entry in range(6 + chart.dimension):
        ends = []
        for way in (step, -step):
            change = way * np.eye(6 + chart.dimension)[entry]
            turned = rotation_from_vector(change[:3]) @ root.rotation
            moved = RigidTransform(turned, root.translation + change[3:6])
            ends.append(chart.from_vector(moved, y + change[6:]))
        (r_plus, c_plus), (r_minus, c_minus) = ends
        turn = vector_from_rotation(r_plus @ np.swapaxes(r_minus, -1, -2)) / (2 * step)
        np.testing.assert_allclose(basis[:, :3, entry], turn, atol=1e-7)
        np.testing.assert_allclose(basis[:, 3:, entry], (c_plus - c_minus) / (2 * step), atol=1e-6)


def test_default_length_scale_is_the_distance_of_neighbours():
    centres = np.zeros((7, 4, 3))
    centres[:, :, 0] = [0.0, 30.0, 60.0, 120.0]
    rotations = np.broadcast_to(np.eye(3), (7, 4, 3, 3))
    assert fit_pose_chart(rotations, centres).length_scale == pytest.approx((30 + 30 + 30 + 60) / 4)
    assert fit_pose_chart(rotations, centres, length_scale=5.0).length_scale == 5.0


def test_leading_axes_broadcast():
    rng = np.random.default_rng(5)
    rotations, centres = random_quads(rng, 6, 4)
    chart = fit_pose_chart(rotations, centres)
    root, y = chart.to_vector(rotations.reshape(2, 3, 4, 3, 3), centres.reshape(2, 3, 4, 3))
    assert y.shape == (2, 3, 18)
    one_root = RigidTransform(root.rotation[0, 0], root.translation[0, 0])
    posed, _ = chart.from_vector(one_root, y)
    assert posed.shape == (2, 3, 4, 3, 3)


def test_bad_input_says_what_was_wanted():
    chart = PoseChart(np.stack([np.eye(3)] * 3), length_scale=10.0)
    with pytest.raises(InputError, match=r"wanted rotations \(\.\.\., 3, 3, 3\).*another rig"):
        chart.to_vector(np.zeros((4, 3, 3)), np.zeros((4, 3)))
    with pytest.raises(InputError, match=r"3 quads has 12 entries, got \(18,\)"):
        chart.from_vector(RigidTransform.identity(), np.zeros(18))
    with pytest.raises(InputError, match="length_scale"):
        PoseChart(np.stack([np.eye(3)] * 3), length_scale=0.0)
    with pytest.raises(InputError, match="root 3"):
        PoseChart(np.stack([np.eye(3)] * 3), length_scale=1.0, root=3)
