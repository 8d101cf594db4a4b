"""The terms of the energy that do not look at images: prior on the pose, variance of the prior, rigidity, time.

Every term adds to one Gauss-Newton system in the step of all quads (six numbers each, see `tracking.deformation`) and
of the latent point x::

    E(q, x) = sum_contours rho(r) + |y(q) - m(x)|^2 / s^2 + w log sigma^2(x) + rigidity(q) + |q - q_predicted|^2 / s_t^2

(oqr-tracking.md, eq. 5, with the sign of the variance term that penalises leaving the training poses). With the quads
held at y(x) the system shrinks to the root's six numbers and x: the latent stage.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.arrays import Floats
from calibration.transforms import cross_matrix, left_jacobian_inverse, vector_from_rotation
from tracking.pose_chart import PoseChart
from tracking.prior import Prior
from tracking.quads import QuadPose

__all__ = ["System", "latent_basis", "pose_vector_jacobian", "prediction_term", "prior_term"]


@dataclass
class System:
    """Normal equations ``hessian step = -gradient`` over 6 Q quad numbers and d latent ones; grows term by term."""

    hessian: Floats
    gradient: Floats
    cost: float = 0.0

    @classmethod
    def empty(cls, quads: int, latent: int) -> System:
        """Return a system of no terms."""
        size = 6 * quads + latent
        return cls(np.zeros((size, size)), np.zeros(size))

    def add(self, jacobian: Floats, residual: Floats, weights: Floats | float = 1.0, *, start: int = 0) -> None:
        """Add weighted squared residuals whose (N, k) Jacobian covers the unknowns from ``start`` on."""
        scaled = jacobian * (weights[:, None] if isinstance(weights, np.ndarray) else weights)
        span = slice(start, start + jacobian.shape[1])
        self.hessian[span, span] += scaled.T @ jacobian
        self.gradient[span] += scaled.T @ residual
        self.cost += float(np.sum(weights * residual**2))


def pose_vector_jacobian(chart: PoseChart, pose: QuadPose, y: Floats) -> Floats:
    """Return the (D, 6 Q) derivative of the pose vector y by the quads' steps."""
    root = chart.root
    others = list(chart.others)
    to_root = pose.rotations[root].T
    jacobian = np.zeros((len(others), 6, chart.quads, 6))
    rows = np.arange(len(others))
    arms = pose.centres[others] - pose.centres[root]
    # t = R_r^T (c_q - c_r) / s;  w = log(R_r^T R_q M^T), so dw = J_l^-1(w) R_r^T (w_q - w_r)
    jacobian[rows, :3, others, 3:] = to_root / chart.length_scale
    jacobian[:, :3, root, 3:] = -to_root / chart.length_scale
    jacobian[:, :3, root, :3] = to_root @ cross_matrix(arms) / chart.length_scale
    turn = left_jacobian_inverse(y.reshape(-1, 6)[:, 3:]) @ to_root
    jacobian[rows, 3:, others, :3] = turn
    jacobian[:, 3:, root, :3] = -turn
    return jacobian.reshape(6 * len(others), -1)


def prior_term(
    system: System,
    prior: Prior,
    pose: QuadPose,
    latent: Floats,
    *,
    shift_sigma: float,
    turn_sigma: float,
    variance_weight: float,
) -> float:
    """Pull the quads to the prior's pose and the latent point to low variance; return the variance.

    Args:
        system: grows by the term.
        prior: learned poses.
        pose: quads.
        latent: (d,) latent point.
        shift_sigma: how far a quad's centre lies from the prior's, 1 sigma, mm.
        turn_sigma: how far its rotation does, rad.
        variance_weight: weight of log sigma^2(x).
    """
    chart = prior.chart
    _, y = chart.to_vector(pose.rotations, pose.centres)
    at = prior.evaluate(latent)
    units = np.tile(np.repeat([chart.length_scale / shift_sigma, 1.0 / turn_sigma], 3), chart.quads - 1)
    by_quads = pose_vector_jacobian(chart, pose, y) * units[:, None]
    jacobian = np.hstack([by_quads, -at.mean_jacobian * units[:, None]])
    system.add(jacobian, units * (y - at.mean))
    variance_term(system, at.variance, at.variance_gradient, variance_weight)
    return at.variance


def variance_term(system: System, variance: float, gradient: Floats, weight: float) -> None:
    """Add w log sigma^2(x), its curvature taken as that of the square of its slope (always convex)."""
    slope = gradient / variance
    start = len(system.gradient) - len(slope)
    system.gradient[start:] += 0.5 * weight * slope
    system.hessian[start:, start:] += 0.5 * weight * np.outer(slope, slope)
    system.cost += weight * float(np.log(variance))


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
    system.cost += float(residual @ residual)


def latent_basis(prior: Prior, pose: QuadPose, latent: Floats) -> Floats:
    """Return the (6 Q, 6 + d) derivative of the quads by the root's step and the latent point, at y(x)."""
    chart = prior.chart
    root = chart.root
    root_pose, y = chart.to_vector(pose.rotations, pose.centres)
    basis = np.zeros((chart.quads, 6, 6 + prior.latent_dim))
    basis[:, :3, :3] = np.eye(3)
    basis[:, 3:, :3] = -cross_matrix(pose.centres - pose.centres[root])
    basis[:, 3:, 3:6] = np.eye(3)
    basis[:, :, 6:] = chart.quad_jacobian(root_pose, y, prior.mean_jacobian(latent))
    return basis.reshape(6 * chart.quads, -1)
