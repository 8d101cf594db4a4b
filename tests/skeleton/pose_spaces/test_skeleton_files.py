"""Pose models on skeletons: training files, springs pulled to likely poses, skeleton files without gaps."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from calibration.foundation.errors import InputError
from skeleton.bodies import load_body
from skeleton.bodies.marker_sets import MarkerSet
from skeleton.motions import make_motion
from skeleton.pose_spaces.guided_springs import check_pose_model, likely_poses
from skeleton.pose_spaces.library_files import load_library, load_pose_model, save_library
from skeleton.pose_spaces.mode_pictures import draw_modes
from skeleton.pose_spaces.pose_library import build_library
from skeleton.pose_spaces.principal_geodesics import PoseSpace, learn_pose_space, save_pose_space
from skeleton.pose_spaces.rotation_tree import rotations_of_pose, tree_of_skeleton
from skeleton.pose_spaces.skeleton_filling import fill_skeleton_file
from skeleton.pose_spaces.training_motions import find_motions
from skeleton.tree.joint_tree import Skeleton

RATE = 50.0


def walk(frames: int = 160, seed: int = 1) -> tuple[Skeleton, np.ndarray]:
    body = load_body("human")
    motion = make_motion(body, "walk", frames=frames, rate_hz=RATE, rng=np.random.default_rng(seed))
    return body, motion.coordinates


def learnt(body: Skeleton, coordinates: np.ndarray) -> PoseSpace:
    return learn_pose_space(
        rotations_of_pose(body, body.forward(coordinates)), body.joint_names, body="human", share=0.99
    )


def test_few_markers_and_a_pose_space_give_the_whole_body() -> None:
    body, coordinates = walk()
    space = learnt(body, walk(seed=2)[1])
    names = ("pelvis", "neck", "left_wrist", "right_wrist", "left_ankle", "right_ankle")
    truth = body.forward(coordinates[:12]).positions
    seen = truth[:, [body.index(name) for name in names]]
    found = likely_poses(body, space, names, seen, None, MarkerSet(names, names, np.zeros((6, 3)), np.full(6, 2.0)))
    rest = np.repeat(body.rest(), 12, axis=0)
    rest[:, :6] = coordinates[:12, :6]
    error = np.linalg.norm(body.forward(found).positions - truth, axis=2).mean()
    assert error < 0.5 * np.linalg.norm(body.forward(rest).positions - truth, axis=2).mean()


def test_a_lost_stretch_is_filled_marked_and_never_trusted(tmp_path: Path) -> None:
    body, coordinates = walk()
    pose = body.forward(coordinates)
    trust = np.zeros(len(coordinates), np.uint8)
    trust[70:80] = 2
    trust[100:140] = 2  # too long
    shown = coordinates.copy()
    shown[70:80] = coordinates[69]
    with h5py.File(tmp_path / "skeleton.h5", "w") as file:
        file["coordinates"], file["trust"] = shown, trust
        file["positions"], file["rotations"] = pose.positions, np.zeros((160, len(body.joints), 4))
        file["sigma"] = np.full((160, len(body.joints)), 3.0)
        file["landmarks"] = body.landmarks(pose)[1]
        report = fill_skeleton_file(file, body, rate_hz=RATE, most_s=0.3, samples=2)
        assert (report.gaps, report.frames, report.left) == (1, 10, 40)
        filled, made = file["filled"][:], file["positions"][70:80]
        assert filled[70:80].all() and filled.sum() == 10 * len(body.joints)
        assert (file["trust"][70:80] == 2).all()
        assert np.array_equal(file["coordinates"][:70], shown[:70])
        held = body.forward(shown[70:80]).positions
        truth = pose.positions[70:80]
        assert np.linalg.norm(made - truth, axis=2).mean() < 0.5 * np.linalg.norm(held - truth, axis=2).mean()
        assert file["samples/coordinates"].shape == (2, 10, body.dimension)
        assert (file["sigma"][74] > 0).all() and not np.allclose(file["sigma"][74], 3.0)


def test_limbs_that_are_trusted_stay_as_they_are(tmp_path: Path) -> None:
    body, coordinates = walk()
    joint_trust = np.zeros((160, len(body.joints)), np.uint8)
    leg = [body.index(name) for name in ("left_hip", "left_knee", "left_ankle", "left_toes")]
    joint_trust[60:75, leg] = 1
    pose = body.forward(coordinates)
    with h5py.File(tmp_path / "skeleton.h5", "w") as file:
        file["coordinates"], file["trust"], file["joint_trust"] = coordinates, np.zeros(160, np.uint8), joint_trust
        file["positions"], file["rotations"] = pose.positions, np.zeros((160, len(body.joints), 4))
        file["sigma"], file["landmarks"] = np.full((160, len(body.joints)), 3.0), body.landmarks(pose)[1]
        fill_skeleton_file(file, body, rate_hz=RATE, most_s=0.5)
        other = [j for j in range(len(body.joints)) if j not in leg]
        assert np.allclose(file["positions"][60:75][:, other], pose.positions[60:75][:, other], atol=1e-6)
        assert file["filled"][60:75][:, leg].all() and not file["filled"][60:75][:, other].any()
        assert np.linalg.norm(file["positions"][60:75] - pose.positions[60:75], axis=2)[:, leg].mean() < 40.0


def test_models_survive_their_files_and_those_of_other_bodies_are_refused(tmp_path: Path) -> None:
    body, coordinates = walk()
    clip = rotations_of_pose(body, body.forward(coordinates))
    library = build_library([clip], [0], tree_of_skeleton(body), body="human", count=100)
    save_library(library, tmp_path / "library.npz")
    again = load_library(tmp_path / "library.npz")
    assert np.abs(again.tangents - library.tangents).max() < 1e-4 and again.up == "z"
    save_pose_space(learnt(body, coordinates), tmp_path / "space.npz")
    space = load_pose_model(tmp_path / "space.npz")
    assert isinstance(space, PoseSpace)
    for model in (space, again):
        check_pose_model(model, body)
        with pytest.raises(InputError, match="does not fit"):
            check_pose_model(model, load_body("rat"))
    with pytest.raises(InputError, match="a pose space, wanted a pose library"):
        load_library(tmp_path / "space.npz")
    draw_modes(space, body, tmp_path / "modes.png")
    assert (tmp_path / "modes.png").stat().st_size > 1000


def test_folders_without_motions_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no motion files"):
        find_motions([tmp_path])
    with pytest.raises(InputError, match="no such file"):
        find_motions([tmp_path / "none"])
