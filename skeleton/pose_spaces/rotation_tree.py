"""A body as a tree of rotations: every joint turns freely, and lengths come in only when a pose is placed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calibration.foundation.arrays import Floats, Ints, shaped
from calibration.foundation.errors import InputError, nearest
from skeleton.motion_files.motions import JointMotion
from skeleton.tree.joint_tree import Pose, Skeleton

__all__ = [
    "RotationTree",
    "local_rotations",
    "place_rotations",
    "rotations_of_pose",
    "tree_of_motion",
    "tree_of_skeleton",
]


@dataclass(frozen=True, eq=False)
class RotationTree:
    """Joints with their parents before them; the first is the root.

    Attributes:
        names: J joint names.
        parents: (J,) index of the parent, -1 for the root.
        offsets: (J, 3) joint centre in the parent's axes, mm.
        up: the vertical of the world, "x", "y" or "z".
    """

    names: tuple[str, ...]
    parents: Ints
    offsets: Floats
    up: str = "z"

    def __post_init__(self) -> None:
        parents = np.asarray(self.parents, dtype=np.int64)
        count = len(self.names)
        if parents.shape != (count,) or not count or parents[0] != -1 or (parents[1:] < 0).any():
            raise InputError(f"rotation tree: wanted one root, first of {count} joints, got parents {parents.tolist()}")
        if (parents >= np.arange(count)).any():
            raise InputError("rotation tree: each parent must stand before its children")
        if self.up not in ("x", "y", "z"):
            raise InputError(f"rotation tree: up must be 'x', 'y' or 'z', got '{self.up}'")
        object.__setattr__(self, "parents", parents)
        object.__setattr__(self, "offsets", shaped(self.offsets, (count, 3), "rotation tree: offsets"))

    def index(self, name: str) -> int:
        """Return the index of a joint."""
        if name not in self.names:
            raise InputError(f"unknown joint '{name}'; {nearest(name, self.names)}")
        return self.names.index(name)

    def indices(self, names: Sequence[str]) -> Ints:
        """Return the indices (n,) of joints."""
        return np.array([self.index(name) for name in names], dtype=np.int64)

    @property
    def vertical(self) -> int:
        """Index of the vertical axis."""
        return "xyz".index(self.up)

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """Joints without children."""
        inner = set(self.parents.tolist())
        return tuple(j for j in range(len(self.names)) if j not in inner)


def tree_of_motion(motion: JointMotion) -> RotationTree:
    """Return the tree of a motion file with one root."""
    return RotationTree(motion.names, np.array(motion.parents), motion.offsets, motion.up or "y")


def tree_of_skeleton(skeleton: Skeleton) -> RotationTree:
    """Return the tree of a skeleton with one root, z up."""
    offsets = np.array([joint.offset for joint in skeleton.joints])
    return RotationTree(skeleton.joint_names, skeleton.parents, offsets, "z")


def local_rotations(parents: Ints, world: Floats) -> Floats:
    """Return rotations (T, J, 3, 3) parent-from-joint of world rotations (T, J, 3, 3); the root keeps its own."""
    out = np.array(world)
    for joint, parent in enumerate(parents):
        if parent >= 0:
            out[:, joint] = np.swapaxes(world[:, parent], -1, -2) @ world[:, joint]
    return out


def rotations_of_pose(skeleton: Skeleton, pose: Pose) -> Floats:
    """Return rotations (T, J, 3, 3) parent-from-joint of a placed skeleton."""
    return local_rotations(skeleton.parents, pose.rotations)


def place_rotations(tree: RotationTree, rotations: Floats, root: Floats) -> Pose:
    """Place a body: rotations (T, J, 3, 3) parent-from-joint (root: world) and root places (T, 3) to a `Pose`."""
    frames, joints = rotations.shape[:2]
    positions, world = np.empty((frames, joints, 3)), np.empty((frames, joints, 3, 3))
    for joint, parent in enumerate(tree.parents):
        if parent < 0:
            positions[:, joint], world[:, joint] = root, rotations[:, joint]
        else:
            world[:, joint] = world[:, parent] @ rotations[:, joint]
            positions[:, joint] = positions[:, parent] + world[:, parent] @ tree.offsets[joint]
    return Pose(positions, world)
