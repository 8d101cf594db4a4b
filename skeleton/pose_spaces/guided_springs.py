"""Springs that pull a skeleton towards likely poses: a pose model's answer to the markers is each frame's rest pose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from calibration.foundation.arrays import Floats
from skeleton.bodies.marker_sets import MarkerSet, match_names
from skeleton.inverse_kinematics.spring_ik import Springs
from skeleton.motions.retarget import motion_from_rotations
from skeleton.pose_spaces.pose_library import LibrarySearch, PoseLibrary
from skeleton.pose_spaces.posing import HandleSet, follow_handles, space_model
from skeleton.pose_spaces.principal_geodesics import PoseSpace
from skeleton.pose_spaces.rotation_tree import tree_of_skeleton
from skeleton.tree.joint_tree import Pose, Skeleton

__all__ = ["check_pose_model", "guided_springs", "likely_poses"]


def check_pose_model(model: PoseLibrary | PoseSpace, body: Skeleton) -> None:
    """Refuse a model of another skeleton."""
    if isinstance(model, PoseSpace):
        model.check_joints(body.joint_names, f"body '{body.name}'")
    else:
        LibrarySearch.of(model, tree_of_skeleton(body), HandleSet.at(tree_of_skeleton(body), body.joint_names[:1]))


def likely_poses(
    body: Skeleton,
    model: PoseLibrary | PoseSpace,
    names: Sequence[str],
    markers: Floats,
    sigma: Floats | None,
    marker_set: MarkerSet,
) -> Floats:
    """Return coordinates (T, D) of the model's most likely poses for markers (T, M, 3), NaN where not seen.

    A frame that shows no marker keeps the pose of the frame before it.
    """
    pairs = match_names(marker_set.names, names, f"body '{body.name}'")
    mine, given = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    segments = np.array([body.index(marker_set.segments[index]) for index in mine], dtype=np.int64)
    handles = HandleSet(segments, np.asarray(marker_set.offsets[mine], float))
    targets = np.asarray(markers, float)[:, given]
    spread = np.broadcast_to(marker_set.sd_mm[mine], targets.shape[:2])
    if sigma is not None:
        noise = np.broadcast_to(np.asarray(sigma, float), np.shape(markers)[:2])[:, given]
        spread = np.sqrt(spread**2 + np.where(np.isfinite(noise), noise, 1e3) ** 2)
    tree = tree_of_skeleton(body)
    if isinstance(model, PoseSpace):
        pose = follow_handles(tree, space_model(model), handles, targets, spread).pose
    else:
        pose = _from_library(LibrarySearch.of(model, tree, handles), targets, spread)
    rotations = {name: pose.rotations[:, j] for j, name in enumerate(body.joint_names)}
    return motion_from_rotations(body, rotations, pose.positions[:, 0])


def _from_library(search: LibrarySearch, targets: Floats, spread: Floats) -> Pose:
    seen = np.asarray(np.isfinite(targets).all(axis=2).max(axis=1), np.bool_)
    places: list[Floats] = []
    turns: list[Floats] = []
    for frame in range(len(targets)):
        if seen[frame] or not places:
            here = frame if seen[frame] else int(np.argmax(seen))
            found = search.pose(targets[here], spread[here]).pose
            places.append(found.positions)
            turns.append(found.rotations)
        else:
            places.append(places[-1])
            turns.append(turns[-1])
    return Pose(np.concatenate(places), np.concatenate(turns))


def guided_springs(springs: Springs, rest: Floats) -> Springs:
    """Return springs that hold each frame to its own rest pose (T, D), as stiff as they were."""
    return replace(springs, rest=rest)
