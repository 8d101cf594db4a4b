"""What parts of the body shall do in ``clean.h5``, as constraints on its motion."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from calibration.foundation.errors import InputError
from skeleton.inverse_kinematics.deformation import Constraint, limb_of
from skeleton.inverse_kinematics.shape_constraints import shape_goals
from skeleton.tree.joint_tree import Pose, Skeleton
from vivarig.edits.edit_file import load_edits

__all__ = ["hold_constraints"]


def hold_constraints(path: Path, skeleton: Skeleton, pose: Pose, first: int) -> list[Constraint]:
    """Return the constraints of a recording's holds: each moves the joints of its own limb and nothing else.

    ``first`` is the recording's frame that the pose begins at.
    """
    out = []
    for point, holds in load_edits(path).holds.items():
        try:
            track = pose.points(*skeleton.points([point]))[:, 0]
            shifted = [replace(hold, first=hold.first - first, last=hold.last - first) for hold in holds]
            goals, priority = shape_goals(track, shifted)
        except InputError as error:
            raise InputError(f"{path}: edit of '{point}': {error}") from None
        out.append(Constraint(f"edit {point}", point, goals, priority, joints=limb_of(skeleton, point)))
    return out
