"""Motion files on our bodies: rotations of a mocap skeleton's joints given to the segments of a built-in body.

Lengths stay the body's own; only world rotations are taken. A segment's rotation is the mocap joint's,
``R_segment(t) = R_joint(t) A``, with A fixed by the zero poses of both: A is the change of axes (mocap: y up,
z forward) and, for limbs, also the smallest rotation that lays the body's rest bone along the mocap bone (a
T-pose and arms hung at 45 degrees differ by just that).
"""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import smallest_rotation
from skeleton.motion_files.motions import JointMotion
from skeleton.motions.retarget import CMU_HUMAN as HUMAN_SEGMENTS
from skeleton.motions.retarget import Source as SegmentSource
from skeleton.motions.retarget import bone_direction
from skeleton.tree.joint_tree import Pose, Skeleton

__all__ = ["HUMAN_SEGMENTS", "SegmentSource", "pose_from_motion"]

#: Body axes (x forward, y left, z up) in the axes of a mocap file (z forward, x left, y up).
_MOCAP_FROM_BODY = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])


def pose_from_motion(motion: JointMotion, body: Skeleton, segments: dict[str, SegmentSource]) -> Pose:
    """Pose a body by a motion file.

    Args:
        motion: T frames whose zero pose stands upright, y up and facing z (CMU; the reader's ``up`` is "y").
        body: the skeleton to pose; its lengths are kept.
        segments: source of each body segment, by joint name; one without entry follows its parent.

    Returns:
        T posed skeletons in body axes (z up), the root where the file has it, mm.
    """
    if motion.up != "y":
        raise InputError(f"motion mapping: wanted a motion with y up, got up = '{motion.up}'")
    joint_positions, joint_rotations = motion.poses()
    to_body = _MOCAP_FROM_BODY.T
    count = len(body.joints)
    rotations = np.empty((motion.frames, count, 3, 3))
    positions = np.empty((motion.frames, count, 3))
    found = 0
    for index, (joint, parent) in enumerate(zip(body.joints, body.parents, strict=True)):
        source = segments.get(joint.name)
        name = None if source is None else next((n for n in source.joints if n in motion.names), None)
        if source is None or name is None:
            if parent < 0:
                raise InputError(
                    f"motion mapping: no joint of the file moves '{joint.name}', the root of '{body.name}'; "
                    f"the file has {', '.join(motion.names[:8])}, ..."
                )
            rotations[:, index] = rotations[:, parent]
        else:
            found += 1
            number = motion.names.index(name)
            fixed = _MOCAP_FROM_BODY
            if source.towards:
                own = _MOCAP_FROM_BODY @ _bone_of_body(body, joint.name, source.towards)
                fixed = smallest_rotation(own, bone_direction(motion, number)) @ fixed
            rotations[:, index] = to_body @ joint_rotations[:, number] @ fixed
        if parent < 0:
            number = motion.names.index(name) if name is not None else 0
            positions[:, index] = joint_positions[:, number] @ to_body.T
        else:
            positions[:, index] = positions[:, parent] + rotations[:, parent] @ joint.offset
    if found < max(2, len(segments) // 2):
        raise InputError(
            f"motion mapping: only {found} of {len(segments)} segments of '{body.name}' have a joint in the file "
            f"({', '.join(motion.names[:8])}, ...); give a table of names for it"
        )
    return Pose(positions, rotations)


def _bone_of_body(body: Skeleton, joint: str, towards: str) -> Floats:
    """Rest direction of a bone of the body, in body axes."""
    rest = body.forward(body.rest())
    start, stop = rest.points(*body.points([joint, towards]))[0]
    return np.asarray(stop - start)
