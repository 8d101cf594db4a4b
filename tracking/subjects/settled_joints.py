"""Joints of the legs carried to where the skeleton has them in the poses of the prior, not only where the cage stands.

A cage carries a point inside as it carries flesh: in a bent leg the hip goes 14 mm, the knee 9 mm from its joint (mean
of captured poses of the built-in human). But in the prior's poses both are known, the quads, which lie on the skin, and
the joints; so a joint's coordinates are changed a little, those of the quads around it alone, to lie on the joint in
the mean of the poses (5 and 3 mm are left, in poses not learned from). Only pelvis and legs: how far shoulders go along
with a raised arm differs from skeleton to skeleton more than the cage errs by.
"""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.geometry.transforms import rotation_from_quaternion
from tracking.priors.gplvm import GplvmPrior
from tracking.priors.prior import LinearPrior
from tracking.quads.attachment import QuadAttachment, carry_quads, posed_by_rotations
from tracking.quads.deformation import CageRig
from tracking.quads.oriented_quads import QuadPose
from tracking.quads.skin_following import builtin_following

__all__ = ["settled_rows"]

SETTLED = ("pelvis", "hip", "knee", "ankle")
STEP = 5
"""Every how many of the prior's training poses are learned from."""
AROUND = 6
"""Quads whose coordinates may change for a joint."""
NORMAL_MM = 100.0
"""What a normal is worth beside a corner of a quad, mm."""
HELD_MM = 55.0
"""A change of all coordinates by one costs as much as an error of so many mm."""


def settled_rows(
    cage_rig: CageRig,
    attachment: QuadAttachment,
    prior: LinearPrior | GplvmPrior,
    names: tuple[str, ...],
    binding: Floats,
) -> Floats:
    """Return the coordinates of joints, those of the legs changed; all as they are where the prior does not tell.

    Args:
        cage_rig: quads and cage.
        attachment: the quads on their skeleton.
        prior: holds the training poses.
        names: of the J joints.
        binding: (J, 4 Q + F) their coordinates.
    """
    following = builtin_following(attachment.skeleton.name)
    segments = prior.training_segments if isinstance(prior, GplvmPrior) else None
    if following is None or following.quad_names != attachment.rig.quad_names or segments is None:
        return binding
    rotations = rotation_from_quaternion(segments[::STEP].astype(np.float64))
    poses = posed_by_rotations(attachment.skeleton, rotations)
    quads = following.applied(attachment, rotations, carry_quads(attachment, poses))
    carriers = np.stack([cage_rig.carriers(QuadPose(*one)) for one in zip(quads.rotations, quads.centres, strict=True)])
    known, joints = attachment.skeleton.landmarks(poses)
    result = binding.copy()
    for index, name in enumerate(names):
        if name.endswith(SETTLED):
            columns = _columns_around(cage_rig, cage_rig.deform(binding[index][None], cage_rig.quads.rest)[0])
            truth = joints[:, known.index(name)]
            result[index, columns] += _change(carriers, columns, 4 * len(attachment.rig), binding[index], truth)
    return result


def _columns_around(cage_rig: CageRig, point: Floats) -> Ints:
    """Columns of the coordinates by the quads around a point, and by the faces between them."""
    quads = np.argsort(np.linalg.norm(cage_rig.quads.centres - point, axis=1), kind="stable")[:AROUND]
    corners = (4 * quads[:, None] + np.arange(4)).ravel()
    faces = np.flatnonzero(np.isin(cage_rig.cage.faces // 4, quads).all(axis=1))
    return np.concatenate([corners, 4 * len(cage_rig.quads) + faces])


def _change(carriers: Floats, columns: Ints, corners: int, row: Floats, truth: Floats) -> Floats:
    """Change of some coordinates of one joint that brings it nearest to its truth (T, 3), ridge-regressed."""
    own = np.where(columns < corners, 1.0, NORMAL_MM)
    left = truth - np.einsum("k,tki->ti", row, carriers)
    # Corners are taken from the joint, so that numbers are small; the change of their coordinates sums to nothing.
    features = carriers[:, columns] * own[:, None]
    features[:, columns < corners] -= truth[:, None]
    rows = features.transpose(0, 2, 1).reshape(-1, len(columns))
    sums = 1e4 * (columns < corners).astype(np.float64)
    curvature = rows.T @ rows / len(truth) + HELD_MM**2 * np.eye(len(columns)) + np.outer(sums, sums)
    return np.asarray(own * np.linalg.solve(curvature, rows.T @ left.ravel() / len(truth)))
