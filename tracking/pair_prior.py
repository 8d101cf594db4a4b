"""What training poses say of neighbouring quads: how each lies in the frame of the next, with full covariance.

A latent prior sees the whole body at once and knows little between and beyond its training poses. How the quad at a
wrist lies relative to the one at mid-forearm is simpler: it hardly changes in any pose, while at a joint it varies
along one curve. For each pair of neighbours (a, b) the six numbers ``t = R_a^T (c_b - c_a)`` (mm) and
``w = log(R_a^T R_b M^T)`` (rad, M their mean rotation) are taken as Gaussian, with the covariance of the training poses
and a floor. This holds the length and the twist of limbs, which silhouettes do not see, and still holds in poses that
the latent prior never met.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.arrays import Floats, Ints
from calibration.transforms import (
    RigidTransform,
    cross_matrix,
    left_jacobian_inverse,
    mean_rotation,
    vector_from_rotation,
)
from tracking.prior import Prior
from tracking.quads import QuadPose, QuadRig

__all__ = ["PairPrior", "fit_pair_prior"]


@dataclass(frozen=True, eq=False)
class PairPrior:
    """Gaussians of neighbouring quads.

    Attributes:
        pairs: (E, 2) quads a and b.
        rotations: (E, 3, 3) mean rotation of b in a.
        means: (E, 6) mean of (t, w).
        whitening: (E, 6, 6) turns a deviation into units of sigma.
    """

    pairs: Ints
    rotations: Floats
    means: Floats
    whitening: Floats

    def term(self, pose: QuadPose) -> tuple[Floats, Floats]:
        """Return residuals (6 E,) in sigmas and their derivative (6 E, 6 Q) by the quads."""
        first, second = self.pairs[:, 0], self.pairs[:, 1]
        deviation, turn = self._deviation(pose)
        residual = np.einsum("eij,ej->ei", self.whitening, deviation)
        count, quads = len(self.pairs), len(pose.centres)
        to_first = pose.rotations[first].transpose(0, 2, 1)
        arms = pose.centres[second] - pose.centres[first]
        by_first, by_second = np.zeros((count, 6, 6)), np.zeros((count, 6, 6))
        by_second[:, :3, 3:] = to_first
        by_first[:, :3, 3:] = -to_first
        by_first[:, :3, :3] = to_first @ cross_matrix(arms)
        twist = left_jacobian_inverse(turn) @ to_first
        by_second[:, 3:, :3] = twist
        by_first[:, 3:, :3] = -twist
        jacobian = np.zeros((count, 6, quads, 6))
        rows = np.arange(count)
        jacobian[rows, :, first] = self.whitening @ by_first
        jacobian[rows, :, second] = self.whitening @ by_second
        return residual.ravel(), jacobian.reshape(6 * count, 6 * quads)

    def _deviation(self, pose: QuadPose) -> tuple[Floats, Floats]:
        numbers = _pair_numbers(self.pairs, self.rotations, pose.rotations, pose.centres)
        return numbers - self.means, numbers[..., 3:]


def fit_pair_prior(rig: QuadRig, prior: Prior, *, shift_floor: float, turn_floor: float) -> PairPrior:
    """Learn the pairs of a rig from a prior's training poses.

    Args:
        rig: quads, for who neighbours whom.
        prior: holds the training poses.
        shift_floor: least sigma of a translation, mm.
        turn_floor: least sigma of a rotation, rad.
    """
    poses = prior.training_poses
    rotations, centres = prior.chart.from_vector(RigidTransform(np.eye(3), np.zeros(3)), poses)
    pairs = rig.neighbours
    relative = rotations[:, pairs[:, 0]].transpose(0, 1, 3, 2) @ rotations[:, pairs[:, 1]]
    means = np.stack([mean_rotation(relative[:, pair]) for pair in range(len(pairs))])
    numbers = _pair_numbers(pairs, means, rotations, centres)
    mean = numbers.mean(axis=0)
    spread = numbers - mean
    covariance = np.einsum("nei,nej->eij", spread, spread) / max(len(poses) - 1, 1)
    # Few training poses: what varies in them varies a little more outside.
    covariance = covariance * (1.0 + 4.0 / len(poses))
    covariance = covariance + np.diag(np.repeat([shift_floor**2, turn_floor**2], 3))
    whitening = np.linalg.cholesky(np.linalg.inv(covariance)).transpose(0, 2, 1)
    return PairPrior(pairs, means, mean, whitening)


def _pair_numbers(pairs: Ints, means: Floats, rotations: Floats, centres: Floats) -> Floats:
    first, second = pairs[:, 0], pairs[:, 1]
    to_first = np.swapaxes(rotations[..., first, :, :], -1, -2)
    shift = (to_first @ (centres[..., second, :] - centres[..., first, :])[..., None])[..., 0]
    turn = vector_from_rotation(to_first @ rotations[..., second, :, :] @ np.swapaxes(means, -1, -2))
    return np.concatenate([shift, turn], axis=-1)
