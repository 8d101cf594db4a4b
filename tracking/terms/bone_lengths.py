"""Bones keep their lengths: how far apart the joints at both ends of a limb's segment are in the training poses.

Outlines do not see a limb slide along itself, and Gaussians of neighbouring quads (`tracking.terms.pair_prior`) let
each slide a little against the next: over a shank that adds up to two centimetres. The joints that the cage carries are
as far apart in all poses as the cage allows; mean and spread of that distance are taken from the training poses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.geometry.transforms import RigidTransform
from tracking.priors.prior import Prior
from tracking.quads.deformation import CageRig
from tracking.quads.oriented_quads import QuadPose

__all__ = ["BoneLengths", "fit_bone_lengths", "limb_bones"]

POSES = 60
"""Training poses that lengths are learned from."""
LIMBS = (("shoulder", "elbow"), ("elbow", "wrist"), ("hip", "knee"), ("knee", "ankle"))


@dataclass(frozen=True, eq=False)
class BoneLengths:
    """Distances between pairs of joints that a cage carries.

    Attributes:
        rows: (B, 4 Q + F) coordinates of one joint less those of the other.
        lengths: (B,) mm. sigma: (B,) mm.
    """

    rows: Floats
    lengths: Floats
    sigma: Floats

    def add_to(self, cage_rig: CageRig, pose: QuadPose, hessian: Floats, gradient: Floats, weight: float = 1.0) -> None:
        """Add what the lengths say around a pose to a system whose first unknowns are the quads."""
        bones = cage_rig.deform(self.rows, pose)
        long = np.linalg.norm(bones, axis=1)
        root = np.sqrt(weight) / self.sigma
        directions = root[:, None] * bones / np.maximum(long, 1e-9)[:, None]
        by_point = cage_rig.point_jacobian(self.rows, cage_rig.derivatives(pose))
        jacobian = np.einsum("bi,bik->bk", directions, by_point)
        size = jacobian.shape[1]
        hessian[:size, :size] += jacobian.T @ jacobian
        gradient[:size] += jacobian.T @ (root * (long - self.lengths))


def limb_bones(names: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Pairs of a body's joints, by name, between which a segment of a limb lies."""
    found = []
    for side in ("left", "right"):
        for near, far in LIMBS:
            ends = (f"{side}_{near}", f"{side}_{far}")
            if all(end in names for end in ends):
                found.append((names.index(ends[0]), names.index(ends[1])))
    return tuple(found)


def fit_bone_lengths(
    cage_rig: CageRig, joints: Floats, bones: tuple[tuple[int, int], ...], prior: Prior, *, floor: float
) -> BoneLengths:
    """Learn the lengths of bones from a prior's training poses.

    Args:
        cage_rig: quads and cage.
        joints: (J, 4 Q + F) coordinates of the joints.
        bones: which of them lie at the ends of one.
        prior: holds the training poses.
        floor: least sigma of a length, mm.
    """
    ends = np.array(bones)
    rows = joints[ends[:, 0]] - joints[ends[:, 1]]
    poses = prior.training_poses
    some = poses[np.unique(np.linspace(0, len(poses) - 1, POSES).astype(int))]
    rotations, centres = prior.chart.from_vector(RigidTransform(np.eye(3), np.zeros(3)), some)
    found = [
        np.linalg.norm(cage_rig.deform(rows, QuadPose(*pose)), axis=1) for pose in zip(rotations, centres, strict=True)
    ]
    lengths = np.array(found)
    return BoneLengths(rows, np.median(lengths, axis=0), np.hypot(lengths.std(axis=0), floor))
