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
from functools import lru_cache

import numpy as np

from calibration.foundation.arrays import Floats, Ints, SameNumbers
from calibration.foundation.compiled import compiled
from calibration.geometry.rotation_kernels import (
    inverse_left_jacobian,
    mean_rotations,
    rotation_log,
    times_transposed3,
    transposed_times3,
)
from calibration.geometry.transforms import RigidTransform, vector_from_rotation
from tracking.priors.pose_chart import PoseChart
from tracking.priors.prior import Prior
from tracking.quads.oriented_quads import QuadPose, QuadRig
from tracking.terms.pair_term import PairTerm

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

    def term(self, pose: QuadPose) -> PairTerm:
        """Return the six residuals of each pair, in sigmas."""
        residual, jacobian = np.empty((len(self.pairs), 6)), np.empty((len(self.pairs), 6, 12))
        _deviations(
            self.pairs,
            self.rotations,
            self.means,
            self.whitening,
            np.ascontiguousarray(pose.rotations),
            np.ascontiguousarray(pose.centres),
            residual,
            jacobian,
        )
        return PairTerm(self.pairs, residual, jacobian)


@compiled
def _deviations(
    pairs: Ints,
    means_r: Floats,
    means: Floats,
    whitening: Floats,
    rotations: Floats,
    centres: Floats,
    residual: Floats,
    jacobian: Floats,
) -> None:
    raw, away, offset = np.zeros((6, 12)), np.empty(6), np.empty(3)
    twist, relative, turned, twist_first = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    for e in range(len(pairs)):
        a, b = pairs[e, 0], pairs[e, 1]
        first = rotations[a]
        for i in range(3):
            offset[i] = centres[b, i] - centres[a, i]
        for i in range(3):
            away[i] = first[0, i] * offset[0] + first[1, i] * offset[1] + first[2, i] * offset[2]
        transposed_times3(first, rotations[b], relative)
        times_transposed3(relative, means_r[e], turned)
        away[3], away[4], away[5] = rotation_log(turned)
        inverse_left_jacobian(away[3], away[4], away[5], twist)
        times_transposed3(twist, first, twist_first)
        for i in range(6):
            away[i] -= means[e, i]
        for i in range(3):
            for k in range(3):
                n, m = (k + 1) % 3, (k + 2) % 3
                # d(R_a^T (c_b - c_a)) by a turn of a: R_a^T [c_b - c_a]
                raw[i, k] = first[n, i] * offset[m] - first[m, i] * offset[n]
                raw[i, 3 + k], raw[i, 9 + k] = -first[k, i], first[k, i]
                raw[3 + i, k], raw[3 + i, 6 + k] = -twist_first[i, k], twist_first[i, k]
        for i in range(6):
            residual[e, i] = 0.0
            jacobian[e, i] = 0.0
            for k in range(6):
                residual[e, i] += whitening[e, i, k] * away[k]
                for m in range(12):
                    jacobian[e, i, m] += whitening[e, i, k] * raw[k, m]


@lru_cache(maxsize=2)
def fit_pair_prior(rig: QuadRig, prior: Prior, *, shift_floor: float, turn_floor: float) -> PairPrior:
    """Learn the pairs of a rig from a prior's training poses; the last are kept, solvers are made by the dozen.

    Args:
        rig: quads, for who neighbours whom.
        prior: holds the training poses.
        shift_floor: least sigma of a translation, mm.
        turn_floor: least sigma of a rotation, rad.
    """
    poses, pairs = prior.training_poses, rig.neighbours
    centres, turns = prior.chart.blocks(poses)
    known = _turned_pairs(SameNumbers(turns, prior.chart.mean_rotations, pairs), prior.chart.root)
    between = np.zeros((len(poses), len(rig), 3))
    between[:, prior.chart.others] = centres * prior.chart.length_scale
    shifts = (known.to_first @ (between[:, pairs[:, 1]] - between[:, pairs[:, 0]])[..., None])[..., 0]
    numbers = np.concatenate([shifts, known.turns], axis=-1)
    mean = numbers.mean(axis=0)
    spread = numbers - mean
    covariance = np.einsum("nei,nej->eij", spread, spread) / max(len(poses) - 1, 1)
    # Few training poses: what varies in them varies a little more outside.
    covariance = covariance * (1.0 + 4.0 / len(poses))
    covariance = covariance + np.diag(np.repeat([shift_floor**2, turn_floor**2], 3))
    whitening = np.ascontiguousarray(np.linalg.cholesky(np.linalg.inv(covariance)).transpose(0, 2, 1))
    return PairPrior(pairs, known.means, mean, whitening)


@dataclass(frozen=True, eq=False)
class _TurnedPairs:
    """What of the pairs in training poses is the same for all lengths of bones.

    Attributes:
        to_first: (N, E, 3, 3) the first quad of each pair from the root.
        means: (E, 3, 3) mean rotation of the second in the first.
        turns: (N, E, 3) rotation vectors away from it.
    """

    to_first: Floats
    means: Floats
    turns: Floats


@lru_cache(maxsize=1)
def _turned_pairs(known: SameNumbers, root: int) -> _TurnedPairs:
    """Pairs (E, 2) in poses of a chart: rotation vectors (N, Q - 1, 3), mean rotations (Q, 3, 3), which is the root."""
    turns, mean_turns, pairs = known.arrays
    chart = PoseChart(mean_turns, 1.0, root)
    vectors = np.concatenate([np.zeros_like(turns), turns], axis=-1).reshape(len(turns), -1)
    rotations, _ = chart.from_vector(RigidTransform(np.eye(3), np.zeros(3)), vectors)
    to_first = np.swapaxes(rotations[:, pairs[:, 0]], -1, -2)
    relative = to_first @ rotations[:, pairs[:, 1]]
    means = mean_rotations(relative)
    return _TurnedPairs(to_first, means, vector_from_rotation(relative @ np.swapaxes(means, -1, -2)))
