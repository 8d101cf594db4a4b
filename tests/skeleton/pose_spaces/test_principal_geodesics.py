"""Pose spaces: exact logarithms, Jacobian, independence of joint axes, files, bad input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from calibration.foundation.errors import InputError
from calibration.geometry.transforms import rotation_from_vector, vector_from_rotation
from skeleton.pose_spaces.principal_geodesics import learn_pose_space, load_pose_space, save_pose_space

NAMES = ("root", "hip", "knee", "thumb", "stiff")


def poses(frames: int = 60, seed: int = 0) -> np.ndarray:
    """Two numbers move hip and knee, the thumb shakes, one joint is stiff."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(frames, 2)) * [0.5, 0.2]
    vectors = np.zeros((frames, len(NAMES), 3))
    vectors[:, 1] = latent @ [[1.0, 0.2, 0.0], [0.0, 0.3, 0.5]]
    vectors[:, 2] = latent @ [[0.0, 0.8, 0.0], [0.4, 0.0, 0.1]]
    vectors[:, 3] = rng.normal(size=(frames, 3))
    bases = rotation_from_vector(rng.normal(size=(len(NAMES), 3)))
    out = bases @ rotation_from_vector(vectors)
    out[:, 0] = rotation_from_vector(rng.normal(size=(frames, 3)))
    return out


def test_two_modes_hold_what_two_numbers_move_and_all_modes_are_exact() -> None:
    space = learn_pose_space(poses(), NAMES, body="toy")
    assert space.left_out == ("thumb", "stiff")
    assert space.modes_for(0.99) == 2
    back = space.rotations(space.coordinates(poses()))
    apart = vector_from_rotation(np.swapaxes(back, -1, -2) @ poses())
    assert np.abs(apart[:, [1, 2, 4]]).max() < 1e-9


def test_logarithms_at_the_mean_sum_to_zero() -> None:
    space = learn_pose_space(poses(), NAMES, body="toy")
    assert np.abs(space.tangents(poses()).mean(axis=0)).max() < 1e-10


def test_spins_agree_with_differences() -> None:
    space = learn_pose_space(poses(), NAMES, body="toy")
    x = np.array([0.9, -0.4, 0.1, 0.05, 0.0, 0.0])[: space.modes]
    step = 1e-6
    for k, unit in enumerate(np.eye(space.modes)):
        low, high = space.rotations(x - step * unit)[0], space.rotations(x + step * unit)[0]
        numeric = vector_from_rotation(np.swapaxes(low, -1, -2) @ high) / (2 * step)
        assert np.allclose(space.spins(x)[:, :, k], numeric[space.used], atol=1e-6)


def test_turning_the_joints_own_axes_changes_nothing() -> None:
    shown = poses()
    turn = rotation_from_vector(np.pi * np.eye(3)[np.arange(len(NAMES)) % 3])
    other = np.swapaxes(turn, -1, -2) @ shown @ turn
    results = []
    for one in (shown, other):
        space = learn_pose_space(one, NAMES, body="toy").truncated(1)
        results.append(space.rotations(space.coordinates(one)))
    back = turn @ results[1] @ np.swapaxes(turn, -1, -2)
    assert np.abs((back - results[0])[:, 1:]).max() < 1e-9


def test_a_space_survives_its_file_and_equal_data_give_equal_bytes(tmp_path: Path) -> None:
    space = learn_pose_space(poses(), NAMES, body="toy", share=0.95)
    save_pose_space(space, tmp_path / "a.npz")
    save_pose_space(learn_pose_space(poses(), NAMES, body="toy", share=0.95), tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    loaded = load_pose_space(tmp_path / "a.npz")
    assert loaded.names == NAMES and loaded.body == "toy"
    assert np.array_equal(loaded.directions, space.directions)


def test_bad_input_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least 2 frames"):
        learn_pose_space(poses(1), NAMES, body="toy")
    still = np.repeat(np.eye(3)[None, None], 5, axis=0).repeat(len(NAMES), axis=1)
    with pytest.raises(InputError, match="no joint turns"):
        learn_pose_space(still, NAMES, body="toy")
    space = learn_pose_space(poses(), NAMES, body="toy")
    with pytest.raises(InputError, match=r"pose space of body 'toy'.*does not fit"):
        space.check_joints(("root", "elbow"), "body 'rat'")
    (tmp_path / "no.npz").write_bytes(b"nothing")
    with pytest.raises(InputError, match="not a pose space"):
        load_pose_space(tmp_path / "no.npz")
