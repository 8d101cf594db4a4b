"""Coded motion: lossless whole numbers, error that follows the step, files that notice damage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.foundation.errors import InputError
from calibration.geometry.transforms import rotation_from_vector
from skeleton.pose_spaces.coding.motion_coding import code_motion, decode_motion
from skeleton.pose_spaces.coding.range_coder import decode_table, encode_table
from skeleton.pose_spaces.coding.vpg_files import pack_motion, read_vpg, write_vpg
from skeleton.pose_spaces.rotation_tree import RotationTree, place_rotations

TREE = RotationTree(
    ("root", "a", "b", "c", "d"), np.array([-1, 0, 1, 2, 0]),
    np.array([[0, 0, 0], [0, 0, 100], [80, 0, 0], [60, 0, 0], [0, 90, 0.0]]), "z",
)  # fmt: skip


def motion(frames: int = 300) -> tuple[np.ndarray, np.ndarray]:
    t = np.arange(frames) / 100.0
    vectors = np.zeros((frames, 5, 3))
    for j in range(5):
        for a in range(3):
            vectors[:, j, a] = 0.4 * np.sin(2 * np.pi * (0.6 + 0.2 * j) * t + a + j)
    vectors[:, 0, 2] += 2.5 * t  # turns round
    return rotation_from_vector(vectors), np.stack([900 * t, 50 * np.sin(5 * t), 0 * t + 100], axis=1)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from([0.05, 0.7, 20.0, 1e5]), st.integers(1, 9), st.integers(1, 60))
def test_whole_numbers_come_back(seed: int, scale: float, rows: int, columns: int) -> None:
    table = np.round(np.random.default_rng(seed).laplace(size=(rows, columns)) * scale).astype(np.int64)
    assert np.array_equal(decode_table(encode_table(table), rows, columns), table)


def test_small_numbers_cost_few_bits() -> None:
    table = (np.random.default_rng(0).random((20, 500)) < 0.02).astype(np.int64)
    assert len(encode_table(table)) < 0.25 * table.size / 8 * 1.2


def test_the_error_follows_the_step() -> None:
    rotations, root = motion()
    truth = place_rotations(TREE, rotations, root).positions
    errors, sizes = [], []
    for step in (0.5, 2.0, 8.0):
        coded = code_motion(TREE, rotations, root, rate_hz=100.0, step_mm=step)
        again, path = decode_motion(coded)
        errors.append(np.sqrt(((place_rotations(TREE, again, path).positions - truth) ** 2).sum(2).mean()))
        sizes.append(len(pack_motion(coded)))
        assert errors[-1] < step
    assert errors[0] < errors[1] < errors[2] and sizes[0] > sizes[1] > sizes[2]
    assert sizes[2] < 4 * rotations.shape[0] * 18 / 20


def test_a_file_brings_the_same_motion_and_the_same_bytes(tmp_path: Path) -> None:
    rotations, root = motion()
    coded = code_motion(TREE, rotations, root, rate_hz=100.0, step_mm=1.0)
    write_vpg(coded, tmp_path / "a.vpg")
    write_vpg(code_motion(TREE, rotations, root, rate_hz=100.0, step_mm=1.0), tmp_path / "b.vpg")
    assert (tmp_path / "a.vpg").read_bytes() == (tmp_path / "b.vpg").read_bytes()
    again = read_vpg(tmp_path / "a.vpg")
    assert again.names == TREE.names and again.rate_hz == 100.0
    for one, other in zip(decode_motion(coded), decode_motion(again), strict=True):
        assert np.allclose(one, other, atol=1e-6)


def test_damage_is_noticed(tmp_path: Path) -> None:
    rotations, root = motion(60)
    data = bytearray(pack_motion(code_motion(TREE, rotations, root, rate_hz=100.0, step_mm=1.0)))
    data[len(data) // 2] ^= 1
    (tmp_path / "x.vpg").write_bytes(bytes(data))
    with pytest.raises(InputError, match="damaged"):
        read_vpg(tmp_path / "x.vpg")
    (tmp_path / "y.vpg").write_bytes(b"BVH")
    with pytest.raises(InputError, match=r"not a \.vpg file"):
        read_vpg(tmp_path / "y.vpg")
    with pytest.raises(InputError, match="2 frames or more"):
        code_motion(TREE, rotations[:1], root[:1], rate_hz=100.0, step_mm=1.0)
