"""Key poses of joints in ``skeleton.h5``: the joint is where it is said to be, its limb follows, nothing else moves."""

from __future__ import annotations

from collections.abc import Sequence

import h5py
import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError, nearest
from calibration.geometry.transforms import quaternion_from_rotation
from skeleton.inverse_kinematics.deformation import Constraint, deform_motion, limb_of
from skeleton.inverse_kinematics.shape_constraints import Hold, shape_goals
from skeleton.tree.joint_tree import Skeleton
from vivarig.edits.edit_file import KeyPose

__all__ = ["hold_key_poses", "signed_like"]


def hold_key_poses(file: h5py.File, body: Skeleton, poses: Sequence[KeyPose], first: int) -> list[str]:
    """Move joints of an open skeleton file to their key poses, eased in and out; return what was done, in words.

    Written: coordinates, positions, rotations and landmarks of the rows around, and ``edited`` (T, J), which joints
    were moved by hand. Trust stays what it was.
    """
    frames = len(file["trust"])
    wanted = [one for one in poses if one.joints and 0 <= one.frame - first < frames]
    if not wanted:
        return []
    names = list(body.joint_names)
    for pose in wanted:
        for joint in pose.joints:
            if joint not in names:
                raise InputError(
                    f"edits.toml: key pose of frame {pose.frame}: no joint '{joint}'; {nearest(joint, names)}"
                )
    edited = np.zeros((frames, len(names)), np.bool_)
    said = []
    for low, high, group in _groups(wanted, first, frames):
        rows = slice(low, high)
        raw = np.asarray(file["coordinates"][rows], dtype=np.float64)
        before = body.forward(raw)
        constraints = []
        for joint in sorted({name for pose in group for name in pose.joints}, key=names.index):
            holds = [
                Hold(pose.frame - first - low, pose.frame - first - low, pose.joints[joint], ramp=pose.ramp)
                for pose in group
                if joint in pose.joints
            ]
            goals, priority = shape_goals(before.positions[:, names.index(joint)], holds)
            limb = limb_of(body, joint)
            constraints.append(Constraint(f"key pose {joint}", joint, goals, priority, joints=limb))
            moved = np.flatnonzero(np.isfinite(goals).all(axis=1))
            for name in limb:
                edited[low + moved, names.index(name)] = True
        result = deform_motion(body, raw, constraints)
        pose_now = body.forward(result.coordinates)
        moved = np.flatnonzero(edited[rows].any(axis=1))
        for name, values in (
            ("coordinates", result.coordinates),
            ("positions", pose_now.positions),
            ("rotations", signed_like(quaternion_from_rotation(pose_now.rotations), file["rotations"][rows])),
            ("landmarks", body.landmarks(pose_now)[1]),
        ):
            for k in moved.tolist():
                file[name][low + k] = values[k]
        for pose in group:
            missed = float(np.nanmax(result.residuals[pose.frame - first - low]))
            if missed > 1.0:
                said.append(f"key pose of frame {pose.frame}: out of reach by {missed:.1f} mm; nothing was stretched")
    file["edited"] = edited
    return said


def signed_like(quaternions: Floats, before: Floats) -> Floats:
    """Return quaternions with the sign of those that they take the place of."""
    turned = (quaternions * before).sum(axis=-1, keepdims=True) < 0
    return np.where(turned, -quaternions, quaternions)


def _groups(poses: Sequence[KeyPose], first: int, frames: int) -> list[tuple[int, int, list[KeyPose]]]:
    """Return rows [low, high) with the key poses whose ramps lie in them, those that overlap together."""
    groups: list[tuple[int, int, list[KeyPose]]] = []
    for pose in sorted(poses, key=lambda one: one.frame):
        row = pose.frame - first
        low, high = max(row - pose.ramp - 1, 0), min(row + pose.ramp + 2, frames)
        if groups and low < groups[-1][1]:
            groups[-1] = (groups[-1][0], max(high, groups[-1][1]), [*groups[-1][2], pose])
        else:
            groups.append((low, high, [pose]))
    return groups
