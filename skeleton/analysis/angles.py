"""Joint angles in anatomical words: flexion, abduction, rotation of a segment against its parent, and inner
angles.

At rest all segment frames are aligned (x forward, y left, z up). The turn of a segment in its parent is split about the
mediolateral axis of the parent (flexion), the floating axis (abduction) and the long axis of the segment (rotation):
``R = Ry(a) Rx(b) Rz(c)``, the sequence of Grood and Suntay that the ISB recommends for knee and hip.

Signs are anatomical: flexion brings a limb's parts together (hip and shoulder: forward), abduction leads away from the
midline, internal rotation turns the front inwards; for trunk, neck and head flexion is forward, abduction is bending to
the left, rotation is turning to the left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError, nearest
from calibration.geometry.euler import angles_from_rotation
from skeleton.tree.joint_tree import Pose, Skeleton

__all__ = ["JointAngles", "inner_angle", "inner_angles", "joint_angles", "limb_reaches", "segment_tilt"]

#: Joints whose flexion is a backward turn of the distal part (a positive turn about y); all others flex
# forward.
_BACKWARD = ("knee", "toes", "wrist", "tail")


@dataclass(frozen=True, eq=False)
class JointAngles:
    """Anatomical angles of every joint.

    Attributes:
        names: J joint names.
        flexion, abduction, rotation: (T, J) rad; see the module for signs.
    """

    names: tuple[str, ...]
    flexion: Floats
    abduction: Floats
    rotation: Floats

    def of(self, name: str) -> Floats:
        """Return (T, 3) flexion, abduction, rotation of one joint, rad."""
        if name not in self.names:
            raise InputError(f"no joint '{name}'; {nearest(name, self.names)}")
        index = self.names.index(name)
        return np.stack([self.flexion[:, index], self.abduction[:, index], self.rotation[:, index]], axis=1)

    def ranges_deg(self) -> dict[str, tuple[float, float, float]]:
        """Return the range of motion of each joint in degrees: flexion, abduction, rotation."""
        spans = [np.degrees(np.nanmax(part, axis=0) - np.nanmin(part, axis=0)) for part in self._parts()]
        return {name: (float(spans[0][i]), float(spans[1][i]), float(spans[2][i])) for i, name in enumerate(self.names)}

    def _parts(self) -> tuple[Floats, Floats, Floats]:
        return self.flexion, self.abduction, self.rotation


def joint_angles(skeleton: Skeleton, pose: Pose) -> JointAngles:
    """Return the anatomical angles of a posed body; the root's are against the world."""
    names = skeleton.joint_names
    local = np.empty_like(pose.rotations)
    for index, parent in enumerate(skeleton.parents):
        turn = pose.rotations[:, index]
        local[:, index] = turn if parent < 0 else np.swapaxes(pose.rotations[:, parent], -1, -2) @ turn
    split = angles_from_rotation(local, "yxz")
    flexion, abduction, rotation = split[..., 0].copy(), split[..., 1].copy(), split[..., 2].copy()
    for index, name in enumerate(names):
        side = 1.0 if name.startswith("left_") else -1.0 if name.startswith("right_") else 0.0
        if side:
            # A limb hangs down: a positive turn about y swings it backward, about x to the left.
            flexion[:, index] *= 1.0 if any(word in name for word in _BACKWARD) else -1.0
            abduction[:, index] *= side
            rotation[:, index] *= -side
        elif "tail" not in name:
            # Trunk and head point up or forward: a positive turn about y bends forward, about x to the right.
            abduction[:, index] *= -1.0
    return JointAngles(names, np.unwrap(flexion, axis=0), abduction, np.unwrap(rotation, axis=0))


def inner_angle(proximal: Floats, centre: Floats, distal: Floats) -> Floats:
    """Return (...,) the angle at ``centre`` between two points (..., 3), rad: pi for a straight joint."""
    a, b = np.asarray(proximal) - centre, np.asarray(distal) - centre
    return np.asarray(np.arctan2(np.linalg.norm(np.cross(a, b), axis=-1), (a * b).sum(axis=-1)))


#: Inner angles of limbs: name to (proximal, centre, distal) points.
_LIMBS = {
    "hip": ("pelvis", "hip", "knee"),
    "knee": ("hip", "knee", "ankle"),
    "ankle": ("knee", "ankle", "toes"),
    "shoulder": ("scapula", "shoulder", "elbow"),
    "elbow": ("shoulder", "elbow", "wrist"),
}


def inner_angles(skeleton: Skeleton, pose: Pose) -> dict[str, Floats]:
    """Return the inner angles (T,) of the limb joints that the body has, rad, as rodent laboratories report them."""
    out: dict[str, Floats] = {}
    for joint, points in _LIMBS.items():
        for side in ("left_", "right_"):
            names = [name if name == "pelvis" else side + name for name in points]
            if all(name in skeleton.joint_names for name in names):
                places = [pose.positions[:, skeleton.index(name)] for name in names]
                out[side + joint] = inner_angle(*places)
    return out


def limb_reaches(skeleton: Skeleton, pose: Pose) -> dict[str, Floats]:
    """Return (T,) the ankles' heights and how far the wrists are ahead of the pelvis along its own forward axis, mm."""
    out: dict[str, Floats] = {}
    ahead = pose.rotations[:, 0, :2, 0]
    ahead = ahead / np.maximum(np.linalg.norm(ahead, axis=1, keepdims=True), 1e-12)
    for side in ("left_", "right_"):
        if f"{side}ankle" in skeleton.joint_names:
            out[f"{side}ankle_height"] = pose.positions[:, skeleton.index(f"{side}ankle"), 2].copy()
        if f"{side}wrist" in skeleton.joint_names:
            reach = pose.positions[:, skeleton.index(f"{side}wrist"), :2] - pose.positions[:, 0, :2]
            out[f"{side}wrist_ahead"] = np.asarray((reach * ahead).sum(axis=1))
    return out


def segment_tilt(pose: Pose, skeleton: Skeleton, chain: Sequence[str]) -> Floats:
    """Return (T,) the angle of the line from the first to the last named point above the floor plane, rad."""
    points = pose.points(*skeleton.points([chain[0], chain[-1]]))
    along = points[:, 1] - points[:, 0]
    return np.asarray(np.arctan2(along[:, 2], np.linalg.norm(along[:, :2], axis=1)))
