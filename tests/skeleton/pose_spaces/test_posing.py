"""Poses from handles: reached targets, sigmas, the library's neighbours, bad input."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.foundation.errors import InputError
from calibration.geometry.transforms import rotation_from_vector, vector_from_rotation
from skeleton.pose_spaces import pose_kernels as kernels
from skeleton.pose_spaces.pose_library import LibrarySearch, build_library, grounded, tilts_of
from skeleton.pose_spaces.posing import HandleSet, follow_handles, free_model, packed, pose_one, space_model
from skeleton.pose_spaces.principal_geodesics import learn_pose_space
from skeleton.pose_spaces.representative_poses import cover_poses
from skeleton.pose_spaces.rotation_tree import RotationTree, place_rotations

TREE = RotationTree(
    ("root", "a", "b", "c", "d"), np.array([-1, 0, 1, 2, 0]),
    np.array([[0, 0, 0], [0, 0, 100], [80, 0, 0], [60, 0, 0], [0, 90, 0.0]]), "z",
)  # fmt: skip


def poses(frames: int, seed: int) -> np.ndarray:
    """One number bends the chain."""
    bend = np.random.default_rng(seed).uniform(-1.2, 1.2, frames)
    vectors = np.zeros((frames, 5, 3))
    vectors[:, 1, 1] = bend
    vectors[:, 2, 1] = bend**2
    vectors[:, 2, 2] = 0.5 * bend
    vectors[:, 4, 0] = -bend
    out = rotation_from_vector(vectors)
    out[:, 0] = rotation_from_vector(np.array([0.1, 0.2, 0.0]) * bend[:, None])
    return out


def test_the_kernels_jacobian_agrees_with_differences() -> None:
    rng = np.random.default_rng(1)
    model = free_model(rotation_from_vector(rng.normal(size=(5, 3))), 1.0)
    body, x = packed(TREE, model), rng.normal(size=12)
    joints, size = 5, 12

    def pose(at: np.ndarray, root: np.ndarray, turn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        centres, world = np.empty((joints, 3)), np.empty((joints, 3, 3))
        kernels.place(body, (model.centre + model.directions @ at).reshape(joints, 3), root, turn, centres, world)
        return centres, world

    start, turn = np.array([1.0, 2.0, 3.0]), rotation_from_vector([0.3, 0.2, -0.5])
    centres, world = pose(x, start, turn)
    spins = np.empty((joints, 3, size))
    kernels.spins_of(body, (model.directions @ x).reshape(joints, 3), model.directions, world, spins)
    by_place, by_turn = np.empty((3, 6 + size)), np.empty((3, 6 + size))
    kernels.point_jacobian(body, spins, centres, 3, centres[3], by_place, by_turn)
    step = 1e-6
    for k in range(6 + size):
        unit = np.eye(6 + size)[k] * step
        pair = [
            pose(x + s * unit[6:], start + s * unit[:3], rotation_from_vector(s * unit[3:6]) @ turn)[0][3]
            for s in (-1, 1)
        ]
        assert np.allclose(by_place[:, k], (pair[1] - pair[0]) / (2 * step), atol=1e-5)


def test_handles_of_a_pose_in_the_space_bring_that_pose_back() -> None:
    shown = poses(200, 0)
    space = learn_pose_space(shown, TREE.names, body="toy", share=0.9999)
    truth = place_rotations(TREE, shown[:20], np.tile([5.0, 6.0, 7.0], (20, 1))).positions
    handles = HandleSet.at(TREE, ("root", "c", "d", "b"))
    found = follow_handles(TREE, space_model(space), handles, truth[:, handles.joints], np.full(4, 0.5))
    assert np.linalg.norm(found.pose.positions - truth, axis=2).max() < 2.0
    assert np.isfinite(found.sigma).all() and (found.sigma > 0).all()


def test_an_orientation_is_met_and_a_missing_handle_is_no_target() -> None:
    model = free_model(np.repeat(np.eye(3)[None], 5, axis=0), 1.0)
    wanted = rotation_from_vector([0.4, -0.3, 0.2])
    handles = HandleSet.at(TREE, ("root", "c"))
    turns = np.full((2, 3, 3), np.nan)
    turns[1] = wanted
    targets = np.array([[0.0, 0.0, 0.0], [np.nan] * 3])
    found = pose_one(TREE, model, handles, targets, np.ones(2), turns=turns, turn_sigma=np.full(2, 1e-3))
    apart = vector_from_rotation(found.pose.rotations[0, 3].T @ wanted)
    assert np.linalg.norm(apart) < 1e-3


def test_a_library_finds_the_pose_that_belongs_to_the_handles() -> None:
    clips = [poses(150, seed) for seed in range(4)]
    library = build_library(clips, [0, 1, 2, 3], TREE, body="toy", count=300, calibrate=("root", "c"))
    test = poses(10, 9)
    truth = place_rotations(TREE, test, np.zeros((10, 3))).positions
    handles = HandleSet.at(TREE, ("root", "c"))
    search = LibrarySearch.of(library, TREE, handles)
    errors = []
    for frame in range(10):
        found = search.pose(truth[frame, handles.joints], np.full(2, 1.0))
        errors.append(np.linalg.norm(found.pose.positions[0] - truth[frame], axis=1).mean())
    assert np.mean(errors) < 12.0
    plain = [
        np.linalg.norm(
            pose_one(TREE, free_model(library.mean, 1.0), handles, truth[f, handles.joints], np.full(2, 1.0))
            .pose.positions[0] - truth[f], axis=1,
        ).mean()
        for f in range(10)
    ]  # fmt: skip
    assert np.mean(errors) < 0.65 * np.mean(plain)


def test_a_tilt_has_no_turn_about_the_vertical() -> None:
    turns = rotation_from_vector(np.random.default_rng(0).normal(size=(20, 3)))
    tilts = tilts_of(turns, "z")
    assert np.abs(vector_from_rotation(tilts)[:, 2]).max() < 1e-12
    assert np.allclose((turns @ np.swapaxes(tilts, -1, -2))[:, 2, 2], 1.0)
    assert grounded(TREE).names[0] == "ground"


def test_a_cover_keeps_rare_poses_and_no_more_than_asked() -> None:
    rng = np.random.default_rng(0)
    crowd, rare = rng.normal(0.0, 0.1, (5000, 6)), np.full((1, 6), 9.0)
    chunks = [crowd[:2500], np.concatenate([crowd[2500:], rare])]
    cover = cover_poses(chunks, 200)
    assert len(cover.poses) <= 200 and cover.seen == 5001
    assert 5000 in cover.frames
    every = np.concatenate(chunks)
    apart = np.sqrt(((every[:, None] - cover.poses[None]) ** 2).sum(2)).min(axis=1)
    assert apart.max() <= 2.0 * cover.radius + 1e-3


def test_bad_input_is_told_in_one_line() -> None:
    with pytest.raises(InputError, match="unknown joint 'paw'"):
        HandleSet.at(TREE, ("paw",))
    model = free_model(np.repeat(np.eye(3)[None], 5, axis=0), 1.0)
    with pytest.raises(InputError, match="every target is NaN"):
        pose_one(TREE, model, HandleSet.at(TREE, ("c",)), np.full((1, 3), np.nan), np.ones(1))
    with pytest.raises(InputError, match="no joint turns"):
        build_library([np.tile(np.eye(3), (40, 5, 1, 1))], [0], TREE, body="toy", count=10)
    library = build_library([poses(50, 0)], [0], TREE, body="toy", count=20)
    other = RotationTree(("x", "y"), np.array([-1, 0]), np.zeros((2, 3)), "z")
    with pytest.raises(InputError, match="does not fit"):
        LibrarySearch.of(library, other, HandleSet.at(other, ("y",)))
