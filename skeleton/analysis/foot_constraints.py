"""What each foot does against the ground, as typed intervals: fixed, or turning about a line or a point."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from calibration.foundation.arrays import Floats
from skeleton.analysis.belts import Ground
from skeleton.analysis.constraints import GeometricConstraint, Template, find_constraints
from skeleton.analysis.contacts import Contacts
from skeleton.tree.joint_tree import Pose, Skeleton

__all__ = ["foot_constraints", "foot_poses"]


def foot_poses(skeleton: Skeleton, pose: Pose) -> dict[str, Floats]:
    """Return the pose (T, 4, 4) of each foot: its segment's turn, and the first point of its sole, mm."""
    out: dict[str, Floats] = {}
    for foot, names in skeleton.floor_points.items():
        joints, offsets = skeleton.points(names[:1])
        poses = np.broadcast_to(np.eye(4), (len(pose), 4, 4)).copy()
        poses[:, :3, :3] = pose.rotations[:, joints[0]]
        poses[:, :3, 3] = pose.points(joints, offsets)[:, 0]
        out[foot] = poses
    return out


def foot_constraints(
    poses: Mapping[str, Floats], contacts: Mapping[str, Contacts], rate_hz: float, belt: Ground, size_mm: float
) -> list[tuple[str, GeometricConstraint]]:
    """Return foot and constraint, in the order of feet and time; places in the frame of the ground.

    Stances are the templates: how still a foot is while it stands, and how much it may roll, is what they show.

    Args:
        poses: each foot's (T, 4, 4), as `foot_poses` has them.
        contacts: when each stands.
        rate_hz: frames per second.
        belt: how the ground moves.
        size_mm: of a foot: what turns are compared with shifts by.
    """
    found: list[tuple[str, GeometricConstraint]] = []
    for foot, own in poses.items():
        stances = [Template("space", start, stop - 1) for start, stop in contacts[foot].intervals if stop - start >= 4]
        if not stances or len(own) < 4:
            continue
        on_ground = own.copy()
        on_ground[:, :3, 3] = belt.without(own[:, :3, 3], rate_hz)
        kept = find_constraints(on_ground, rate_hz, templates=stances, size_mm=size_mm, least_s=4.0 / rate_hz)
        # A foot that hangs as still as it stands is not on the ground.
        planted = contacts[foot].states
        found += [(foot, one) for one in kept if planted[one.first : one.last + 1].mean() > 0.5]
    return found
