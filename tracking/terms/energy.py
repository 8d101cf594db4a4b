"""The terms of the energy that do not look at images: prior on the pose, variance of the prior, rigidity, time.

Every term adds to one Gauss-Newton system in the step of all quads (six numbers each, see `tracking.quads.deformation`)
and of the latent point x::

    E(q, x) = sum_contours rho(r) + |y(q) - m(x)|^2 / s^2 + w log sigma^2(x) + rigidity(q) + |q - q_predicted|^2 / s_t^2

(Duveau et al. 2012, eq. 5, with the sign of the variance term that penalises leaving the training poses). With quads
held at y(x) the system shrinks to the root's six numbers and x: the latent stage.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.compiled import compiled
from calibration.geometry.rotation_kernels import (
    dot3,
    inverse_left_jacobian,
    rotation_log,
    times3,
    times_transposed3,
)
from calibration.geometry.transforms import vector_from_rotation
from tracking.priors.pose_chart import PoseChart
from tracking.priors.prior import LatentPoint
from tracking.quads.oriented_quads import QuadPose

__all__ = ["System", "add_row", "prediction_term", "prior_term", "variance_term"]


@dataclass(frozen=True, eq=False)
class System:
    """Normal equations ``hessian step = -gradient`` over 6 Q quad numbers and d latent ones; grows term by term."""

    hessian: Floats
    gradient: Floats

    @classmethod
    def empty(cls, quads: int, latent: int) -> System:
        """Return a system of no terms."""
        size = 6 * quads + latent
        return cls(np.zeros((size, size)), np.zeros(size))


@compiled
def add_row(columns: Ints, row: Floats, residual: float, hessian: Floats, gradient: Floats) -> None:
    """Add a residual whose derivatives (k,) by some of the numbers (k,) are given; by the others it has none."""
    for i in range(len(columns)):
        gradient[columns[i]] += row[i] * residual
        for j in range(len(columns)):
            hessian[columns[i], columns[j]] += row[i] * row[j]


def prior_term(
    system: System, chart: PoseChart, at: LatentPoint, pose: QuadPose, *, shift_sigma: float, turn_sigma: float
) -> float:
    """Pull the quads and the prior's pose to each other; return their root mean square distance in sigmas.

    The residuals are those of the pose vector y of the quads, less the prior's, y(x).

    Args:
        system: grows by the term.
        chart: chart of the prior.
        at: the prior at the latent point.
        pose: quads.
        shift_sigma: how far a quad's centre lies from the prior's, 1 sigma, mm.
        turn_sigma: how far its rotation does, rad.
    """
    sum_of_squares = _add_prior(
        np.ascontiguousarray(pose.rotations),
        np.ascontiguousarray(pose.centres),
        np.ascontiguousarray(chart.mean_rotations),
        np.array(chart.others, np.int64),
        chart.root,
        chart.length_scale,
        at.mean,
        np.ascontiguousarray(at.mean_jacobian),
        chart.length_scale / shift_sigma,
        1.0 / turn_sigma,
        system.hessian,
        system.gradient,
    )
    return float(np.sqrt(sum_of_squares / chart.dimension))


# Twelve parameters: a kernel that adds to the system in place.
@compiled
def _add_prior(
    rotations: Floats,
    centres: Floats,
    means: Floats,
    others: Ints,
    root: int,
    length_scale: float,
    mean: Floats,
    mean_jacobian: Floats,
    shift: float,
    turn: float,
    hessian: Floats,
    gradient: Floats,
) -> float:
    quads, latent = len(rotations), mean_jacobian.shape[1]
    to_root = np.ascontiguousarray(rotations[root].T)
    relative, away, turned = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    arm = np.empty(3)
    # One block of six residuals: derivative by the root's numbers, the quad's own and the latent point
    size = 12 + latent
    block = np.zeros((6, size))
    residual, squares = np.empty(6), np.empty(size)
    columns = np.empty(size, np.int64)
    columns[:6] = 6 * root + np.arange(6)
    columns[12:] = 6 * quads + np.arange(latent)
    twist = np.empty((3, 3))
    cost = 0.0
    for index in range(len(others)):
        quad = others[index]
        columns[6:12] = 6 * quad + np.arange(6)
        for k in range(3):
            arm[k] = centres[quad, k] - centres[root, k]
        times3(to_root, rotations[quad], relative)
        times_transposed3(relative, means[quad], away)
        x, y, z = rotation_log(away)
        inverse_left_jacobian(x, y, z, twist)
        # t = R_r^T (c_q - c_r) / s;  w = log(R_r^T R_q M^T), so dw = J_l^-1(w) R_r^T (w_q - w_r)
        times3(twist, to_root, turned)
        for k in range(3):
            residual[k] = dot3(to_root[k], arm) / length_scale
        residual[3], residual[4], residual[5] = x, y, z
        for k in range(6):
            unit = shift if k < 3 else turn
            residual[k] = unit * (residual[k] - mean[6 * index + k])
            cost += residual[k] * residual[k]
            for m in range(latent):
                block[k, 12 + m] = -unit * mean_jacobian[6 * index + k, m]
        for i in range(3):
            for k in range(3):
                n, m = (k + 1) % 3, (k + 2) % 3
                block[i, 9 + k] = shift * to_root[i, k] / length_scale
                block[i, 3 + k] = -block[i, 9 + k]
                block[i, k] = shift * (to_root[i, n] * arm[m] - to_root[i, m] * arm[n]) / length_scale
                block[3 + i, 6 + k] = turn * turned[i, k]
                block[3 + i, k] = -block[3 + i, 6 + k]
        for i in range(size):
            squares[:] = 0.0
            for k in range(6):
                if block[k, i] != 0.0:
                    gradient[columns[i]] += block[k, i] * residual[k]
                    for j in range(size):
                        squares[j] += block[k, i] * block[k, j]
            for j in range(size):
                hessian[columns[i], columns[j]] += squares[j]
    return cost


def variance_term(system: System, variance: float, gradient: Floats, weight: float) -> None:
    """Add w log sigma^2(x), its curvature taken as that of the square of its slope (always convex)."""
    slope = gradient / variance
    start = len(system.gradient) - len(slope)
    system.gradient[start:] += 0.5 * weight * slope
    system.hessian[start:, start:] += 0.5 * weight * np.outer(slope, slope)


def prediction_term(
    system: System, pose: QuadPose, predicted: QuadPose, *, shift_sigma: float, turn_sigma: float
) -> None:
    """Pull the quads to a predicted pose, in world axes."""
    turn = vector_from_rotation(pose.rotations @ predicted.rotations.transpose(0, 2, 1))
    residual = np.concatenate([turn / turn_sigma, (pose.centres - predicted.centres) / shift_sigma], axis=1).ravel()
    units = np.tile(np.repeat([1.0 / turn_sigma, 1.0 / shift_sigma], 3), len(turn))
    # The inverse left Jacobian is taken as the identity: the prediction is near, and only pulls.
    size = len(units)
    system.hessian[np.arange(size), np.arange(size)] += units**2
    system.gradient[:size] += units * residual
