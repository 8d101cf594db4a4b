"""Motions from files: rotations of another skeleton's joints given to a body through a joint map.

Only rotations (and the root's place) are taken; lengths stay the body's. A body segment takes the world rotation of
its source joint since the file's zero pose, after the bone of the body has been laid along the file's bone where the
map names one (a T-pose and arms at 45 degrees differ by just that). Joints of fewer than three angles take the
nearest they can reach, children make up for the rest, and everything is brought within the limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Bools, Floats
from calibration.foundation.errors import InputError, nearest
from calibration.geometry.transforms import rotation_from_vector, smallest_rotation, vector_from_rotation
from skeleton.motion_files.motions import JointMotion
from skeleton.tree.joint_tree import Joint, Skeleton
from skeleton.tree.limits import project_to_ellipsoid

__all__ = ["CMU_HUMAN", "Source", "bone_direction", "motion_from_file", "motion_from_rotations"]

#: Columns: the file's axes in which the body's x (forward), y (left) and z (up) point, by the file's vertical.
_FILE_FROM_BODY = {
    "y": np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]),  # BVH, ASF/AMC: z forward, x left
    "z": np.eye(3),
}


@dataclass(frozen=True)
class Source:
    """Where a segment takes its rotation from: ``joints`` the names to look for in the file, the first found is
    taken; ``towards`` the joint or site of the body at the bone's end, "" to trust the file's zero pose."""

    joints: tuple[str, ...]
    towards: str = ""


def _side(side: str) -> dict[str, Source]:
    big, small = side.capitalize(), side[0]
    return {
        f"{side}_clavicle": Source((f"{big}Shoulder", f"{small}clavicle")),
        f"{side}_shoulder": Source((f"{big}Arm", f"{small}humerus"), f"{side}_elbow"),
        f"{side}_elbow": Source((f"{big}ForeArm", f"{small}radius"), f"{side}_wrist"),
        f"{side}_wrist": Source((f"{big}Hand", f"{small}wrist"), f"{side}_finger_tip"),
        f"{side}_hip": Source((f"{big}UpLeg", f"{small}femur"), f"{side}_knee"),
        f"{side}_knee": Source((f"{big}Leg", f"{small}tibia"), f"{side}_ankle"),
        f"{side}_ankle": Source((f"{big}Foot", f"{small}foot")),
        f"{side}_toes": Source((f"{big}ToeBase", f"{small}toes")),
    }


#: The built-in human from the CMU database, by its BVH and its Acclaim names.
CMU_HUMAN: dict[str, Source] = {
    "pelvis": Source(("Hips", "root")),
    "lumbar": Source(("LowerBack", "lowerback")),
    "spine": Source(("Spine", "upperback")),
    "chest": Source(("Spine1", "thorax")),
    "neck": Source(("Neck1", "upperneck")),
    "head": Source(("Head", "head")),
    **_side("left"),
    **_side("right"),
}


def rotations_from_file(
    motion: JointMotion, skeleton: Skeleton, joint_map: Mapping[str, Source] = CMU_HUMAN
) -> tuple[dict[str, Floats], Floats]:
    """Return world rotations (T, 3, 3) per mapped body joint, in body axes, and the root's place (T, 3), mm."""
    if motion.up not in _FILE_FROM_BODY:
        raise InputError(f"motion file: the vertical must be y or z, got '{motion.up}'")
    axes = _FILE_FROM_BODY[motion.up]
    positions, turned = motion.poses()
    rest = skeleton.forward(skeleton.rest())
    out: dict[str, Floats] = {}
    root = None
    for joint in skeleton.joints:
        source = joint_map.get(joint.name)
        found = [name for name in source.joints if name in motion.names] if source else []
        if source is None or not found:
            continue
        number = motion.names.index(found[0])
        fixed = axes
        if source.towards:
            start, stop = rest.points(*skeleton.points([joint.name, source.towards]))[0]
            fixed = smallest_rotation(axes @ (stop - start), bone_direction(motion, number)) @ axes
        out[joint.name] = np.asarray(axes.T @ turned[:, number] @ fixed)
        if joint.parent is None:
            root = positions[:, number] @ axes
    if root is None or len(out) < 2:
        wanted = sorted({name for source in joint_map.values() for name in source.joints})
        raise InputError(
            f"motion file: its joints ({', '.join(motion.names[:6])}, ...) do not match the map of '{skeleton.name}', "
            f"root included; {nearest(motion.names[0], wanted)}"
        )
    return out, np.asarray(root)


def motion_from_rotations(
    skeleton: Skeleton, rotations: Mapping[str, Floats], root: Floats, *, scale: float = 1.0
) -> Floats:
    """Return coordinates (T, D) within all limits.

    Args:
        rotations: joint name to world-from-segment rotations (T, 3, 3); a joint without entry stays at rest.
        root: (T, 3) place of the root joint, mm.
        scale: factor on the root's way, for a file of a longer or shorter subject.
    """
    for name in rotations:
        skeleton.index(name)
    frames = len(root)
    q = skeleton.rest(frames)
    world: list[Floats] = []
    for i, joint in enumerate(skeleton.joints):
        parent = int(skeleton.parents[i])
        base = np.broadcast_to(np.eye(3), (frames, 3, 3)) if parent < 0 else world[parent]
        columns = skeleton.columns(joint.name)
        if joint.kind == "free":
            q[:, columns.start - 3 : columns.start] = scale * np.asarray(root) - joint.offset
        wanted = rotations.get(joint.name)
        if wanted is not None and columns.stop > columns.start:
            q[:, columns] = _angles(joint, np.swapaxes(base, -1, -2) @ wanted)
            q[:, columns] = _limited(joint, q[:, columns])  # children see what the limited parent does
        world.append(base @ _turn(joint, q[:, columns]))
    return skeleton.continuous(q)


def motion_from_file(
    motion: JointMotion, skeleton: Skeleton, joint_map: Mapping[str, Source] = CMU_HUMAN
) -> tuple[Floats, Bools]:
    """Return coordinates (T, D) and contacts (T, feet) of a motion file on a body, its feet set on the floor.

    The root's way is scaled by the ratio of leg lengths. A foot is in contact while its floor points are low and
    slow: within 3 % of the leg of that foot's own floor, and its slowest point under 0.4 leg lengths per second.
    """
    rotations, root = rotations_from_file(motion, skeleton, joint_map)
    own = skeleton.forward(skeleton.rest())
    leg = float(own.positions[0, 0, 2])
    theirs = float(np.percentile(root[:, 2], 90) - _lowest(motion))
    q = motion_from_rotations(skeleton, rotations, root, scale=leg / theirs if theirs > 0 else 1.0)
    feet = [skeleton.forward(q).points(*skeleton.points(list(p))) for p in skeleton.floor_points.values()]
    floor = own.points(*skeleton.points([p for ps in skeleton.floor_points.values() for p in ps]))[0, :, 2].min()
    low = np.stack([points[..., 2].min(axis=1) for points in feet], axis=1)
    q[:, 2] += floor - np.percentile(low.min(axis=1), 5)
    # The zero pose of a file seldom holds both feet level: each foot's floor is where it mostly is at its lowest.
    low = low - np.percentile(low, 10, axis=0)
    speed = np.stack(
        [np.linalg.norm(np.gradient(points, axis=0), axis=2).min(axis=1) * motion.rate_hz for points in feet], axis=1
    )
    return q, (low < 0.03 * leg) & (speed < 0.4 * leg)


def _lowest(motion: JointMotion) -> float:
    """Return the height of the file's floor: where its lowest joint mostly is, mm."""
    positions, _ = motion.poses()
    height = positions @ _FILE_FROM_BODY[motion.up][:, 2]
    return float(np.percentile(height.min(axis=1), 5))


def _angles(joint: Joint, local: Floats) -> Floats:
    """Return the coordinates (T, n) whose rotation is nearest to ``local`` (T, 3, 3)."""
    if joint.kind in ("ball", "free"):
        return vector_from_rotation(local)
    first = joint.axes[0]
    if joint.kind == "hinge":
        return _twist(local, first)[:, None]
    second = joint.axes[1]
    angles = np.zeros((len(local), 2))
    for _ in range(12):  # alternate: each angle given the other; converges fast, the axes are nearly orthogonal
        angles[:, 0] = _twist(local @ rotation_from_vector(-angles[:, 1:] * second), first)
        angles[:, 1] = _twist(rotation_from_vector(-angles[:, :1] * first) @ local, second)
    return angles


def _twist(rotation: Floats, axis: Floats) -> Floats:
    """Return the angle (T,) about ``axis`` of the nearest pure turn: maximises ``trace(R^T exp(angle a))``."""
    cosine = np.trace(rotation, axis1=-2, axis2=-1) - np.einsum("i,tij,j->t", axis, rotation, axis)
    skew = np.stack(
        [
            rotation[:, 2, 1] - rotation[:, 1, 2],
            rotation[:, 0, 2] - rotation[:, 2, 0],
            rotation[:, 1, 0] - rotation[:, 0, 1],
        ],
        axis=1,
    )
    return np.asarray(np.arctan2(skew @ axis, cosine))


def _turn(joint: Joint, angles: Floats) -> Floats:
    if angles.shape[1] == 0:
        return np.broadcast_to(np.eye(3), (len(angles), 3, 3))
    if joint.kind in ("ball", "free"):
        return rotation_from_vector(angles)
    out = rotation_from_vector(angles[:, :1] * joint.axes[0])
    return out if joint.kind == "hinge" else out @ rotation_from_vector(angles[:, 1:] * joint.axes[1])


def _limited(joint: Joint, angles: Floats) -> Floats:
    """Return the nearest angles within the joint's limits."""
    if angles.shape[1] == 0:
        return angles
    if joint.ellipsoidal:
        return project_to_ellipsoid(np.ascontiguousarray(angles), joint.bounds[:, 0], joint.bounds[:, 1])
    return np.clip(angles, joint.bounds[:, 0], joint.bounds[:, 1])


def bone_direction(motion: JointMotion, joint: int) -> Floats:
    """Return the zero-pose direction of a file's bone: to its farthest child or tip."""
    ends, waiting = [], [joint]
    while waiting:
        here = waiting.pop()
        if np.isfinite(motion.tips[here]).all():
            ends.append(motion.tips[here])
        for child, parent in enumerate(motion.parents):
            if parent == here:
                if np.linalg.norm(motion.offsets[child]) > 0:
                    ends.append(motion.offsets[child])
                else:
                    waiting.append(child)
    longest = max(ends, key=lambda end: float(np.linalg.norm(end)), default=np.zeros(3))
    if not np.linalg.norm(longest) > 0:
        raise InputError(f"motion file: joint '{motion.names[joint]}' has a bone of no length")
    return np.asarray(longest)
