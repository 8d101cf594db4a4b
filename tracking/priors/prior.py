"""Pose priors: a smooth map from a low-dimensional latent point x to a pose vector y, with a variance.

`Prior` is what the tracker needs of any of them. `LinearPrior` is the baseline: principal component analysis
of the pose vectors, which are rotation logarithms about intrinsic means, hence approximate principal geodesic
analysis (PGA). The Gaussian-process prior is in `tracking.priors.gplvm`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from tracking.priors.pose_chart import PoseChart

__all__ = [
    "LatentPoint",
    "LinearPrior",
    "Prior",
    "checked_poses",
    "fit_linear_prior",
    "latent_near",
    "project_pose",
    "require_rig",
]


@dataclass(frozen=True, eq=False)
class LatentPoint:
    """All a solver needs of a prior at one latent point.

    Attributes:
        mean: (D,) pose vector y(x).
        mean_jacobian: (D, d) dy/dx.
        variance: predictive variance of each entry of y, the noise of the training poses included; > 0.
        variance_gradient: (d,) derivative of the variance.
    """

    mean: Floats
    mean_jacobian: Floats
    variance: float
    variance_gradient: Floats


class Prior(Protocol):
    """A map from latent points to pose vectors of one rig."""

    def __hash__(self) -> int:
        """Priors are told apart by identity: what is learned from one is kept under it."""
        ...

    @property
    def rig_name(self) -> str:
        """Name of the quad rig whose poses were learned."""
        ...

    @property
    def quad_names(self) -> tuple[str, ...]:
        """Names of the rig's quads, in order."""
        ...

    @property
    def chart(self) -> PoseChart:
        """Chart of the pose vectors."""
        ...

    @property
    def latent_dim(self) -> int:
        """Dimension d of the latent space."""
        ...

    @property
    def training_latents(self) -> Floats:
        """(n, d) latent points of the training poses kept with the prior."""
        ...

    @property
    def training_poses(self) -> Floats:
        """(n, D) the pose vectors themselves."""
        ...

    def mean(self, x: Floats) -> Floats:
        """Pose vectors (..., D) at latent points (..., d)."""
        ...

    def variance(self, x: Floats) -> Floats:
        """Predictive variances (...) at latent points (..., d)."""
        ...

    def mean_jacobian(self, x: Floats) -> Floats:
        """Derivative (D, d) of the pose vector at one latent point (d,)."""
        ...

    def variance_gradient(self, x: Floats) -> Floats:
        """Derivative (d,) of the variance at one latent point (d,)."""
        ...

    def evaluate(self, x: Floats) -> LatentPoint:
        """Mean, variance and their derivatives at one latent point (d,), at once."""
        ...

    def back(self, y: Floats) -> Floats:
        """Latent points (..., d) of pose vectors (..., D): a smooth guess, not the nearest pose."""
        ...


@dataclass(frozen=True, eq=False)
class LinearPrior:
    """Principal components of pose vectors, scaled so that the training latents have unit variance.

    ``y(x) = centre + components x``; ``sigma^2(x) = noise (1 + |x|^2 / d)``, the noise being the mean squared
    residual of the training poses: a heavy-tailed cost of leaving the training set, since a linear map itself
    knows no edge.

    Attributes:
        rig_name: name of the quad rig.
        quad_names: names of its quads, in order.
        chart: chart of the pose vectors.
        centre: (D,) mean pose vector.
        components: (D, d) orthogonal columns, longest first.
        noise: variance left over per entry of y.
        training_poses: (n, D) training pose vectors.
        training_latents: (n, d) their latent points.
    """

    rig_name: str
    quad_names: tuple[str, ...]
    chart: PoseChart
    centre: Floats
    components: Floats
    noise: float
    training_poses: Floats
    training_latents: Floats

    @property
    def latent_dim(self) -> int:
        """Dimension d of the latent space."""
        return int(self.components.shape[1])

    def mean(self, x: Floats) -> Floats:
        """Pose vectors (..., D) at latent points (..., d)."""
        return self.centre + np.asarray(x, float) @ self.components.T

    def variance(self, x: Floats) -> Floats:
        """Predictive variances (...) at latent points (..., d)."""
        x = np.asarray(x, float)
        return np.asarray(self.noise * (1.0 + np.sum(x**2, axis=-1) / self.latent_dim))

    def mean_jacobian(self, x: Floats) -> Floats:
        """Derivative (D, d) of the pose vector: the same everywhere."""
        return self.components

    def variance_gradient(self, x: Floats) -> Floats:
        """Derivative (d,) of the variance at one latent point (d,)."""
        return np.asarray(x, float) * (2.0 * self.noise / self.latent_dim)

    def evaluate(self, x: Floats) -> LatentPoint:
        """Mean, variance and their derivatives at one latent point (d,)."""
        return LatentPoint(self.mean(x), self.mean_jacobian(x), float(self.variance(x)), self.variance_gradient(x))

    def back(self, y: Floats) -> Floats:
        """Latent points (..., d) of pose vectors (..., D): orthogonal projection."""
        scaled = self.components / np.sum(self.components**2, axis=0)
        return np.asarray((np.asarray(y, float) - self.centre) @ scaled)


def fit_linear_prior(
    poses: Floats, latent_dim: int, chart: PoseChart, *, rig_name: str, quad_names: Sequence[str]
) -> LinearPrior:
    """Fit a linear prior (PCA in the chart, hence approximate PGA) to pose vectors.

    Args:
        poses: (n, D) training pose vectors, no NaN.
        latent_dim: dimension of the latent space, below n.
        chart: chart of the pose vectors.
        rig_name: name of the quad rig.
        quad_names: names of its quads.
    """
    poses = checked_poses(poses, latent_dim, chart)
    centre = poses.mean(axis=0)
    _, singular, directions = np.linalg.svd(poses - centre, full_matrices=False)
    spread = singular / np.sqrt(len(poses))
    if spread[latent_dim - 1] <= 1e-9 * max(spread[0], 1e-300):
        rank = int(np.sum(spread > 1e-9 * spread[0]))
        raise InputError(f"linear prior: the poses span {rank} dimensions, {latent_dim} were asked; ask for fewer")
    # Deterministic signs: the largest entry of each component is positive.
    kept = directions[:latent_dim]
    signs = np.sign(kept[np.arange(latent_dim), np.argmax(np.abs(kept), axis=1)])
    components = (kept * (signs * spread[:latent_dim])[:, None]).T
    noise = float(np.sum(spread[latent_dim:] ** 2) / poses.shape[1])
    floor = 1e-8 * float(np.mean(np.var(poses, axis=0)))
    prior = LinearPrior(
        rig_name,
        tuple(quad_names),
        chart,
        centre,
        components,
        max(noise, floor),
        poses,
        np.empty((0, latent_dim)),
    )
    latents = prior.back(poses)
    return LinearPrior(rig_name, tuple(quad_names), chart, centre, components, prior.noise, poses, latents)


def checked_poses(poses: Floats, latent_dim: int, chart: PoseChart) -> Floats:
    """Return training poses as float64 after checking them against the chart and the latent dimension."""
    poses = np.asarray(poses, float)
    if poses.ndim != 2 or poses.shape[1] != chart.dimension:
        raise InputError(f"training poses must be (n, {chart.dimension}) for {chart.quads} quads, got {poses.shape}")
    if not np.all(np.isfinite(poses)):
        raise InputError(f"training poses: {int(np.sum(~np.isfinite(poses).all(axis=1)))} hold NaN; leave them out")
    if not 1 <= latent_dim < min(len(poses), poses.shape[1]):
        raise InputError(
            f"latent dimension must lie from 1 to {min(len(poses), poses.shape[1]) - 1} "
            f"for {len(poses)} poses, got {latent_dim}"
        )
    return poses


def require_rig(prior: Prior, rig_name: str, quad_names: Sequence[str]) -> None:
    """Raise InputError unless the prior was learned on this rig: same name, same quads in the same order."""
    if prior.rig_name != rig_name or tuple(prior.quad_names) != tuple(quad_names):
        wrong = [name for name in prior.quad_names if name not in quad_names]
        detail = f"; it has quads the rig lacks: {', '.join(wrong[:4])}" if wrong else ""
        raise InputError(
            f"prior of rig '{prior.rig_name}' ({len(prior.quad_names)} quads) cannot drive rig '{rig_name}' "
            f"({len(quad_names)} quads){detail}; train one with `vivarig train --rig {rig_name}`"
        )


def project_pose(prior: Prior, pose: Floats, *, starts: int = 4, iterations: int = 20) -> Floats:
    """Find the latent point (d,) whose mean is nearest to a pose vector (D,).

    Levenberg-Marquardt from several starts: the back constraint's guess and the nearest training poses.
    """
    pose = np.asarray(pose, float)
    distance = np.sum((prior.training_poses - pose) ** 2, axis=1)
    nearest = np.argsort(distance, kind="stable")[: starts - 1]
    best, best_cost = prior.back(pose), np.inf
    for start in [best, *prior.training_latents[nearest]]:
        x, cost = _descend(prior, pose, start, iterations)
        if cost < best_cost:
            best, best_cost = x, cost
    return best


def latent_near(prior: Prior, pose: Floats, start: Floats, steps: int) -> Floats:
    """Follow a latent point (d,) to a pose vector (D,) near its own, some steps."""
    return _descend(prior, np.asarray(pose, float), start, steps)[0]


def _descend(prior: Prior, pose: Floats, x: Floats, iterations: int) -> tuple[Floats, float]:
    """Levenberg-Marquardt on |y(x) - pose|^2."""
    damping = 1e-3
    residual = prior.mean(x) - pose
    cost = float(residual @ residual)
    for _ in range(iterations):
        jacobian = prior.mean_jacobian(x)
        hessian = jacobian.T @ jacobian
        size = float(np.trace(hessian))
        if not size > 1e-12:  # so far from all training poses that the mean is flat
            break
        step = np.linalg.solve(hessian + damping * size * np.eye(len(x)), -jacobian.T @ residual)
        new_residual = prior.mean(x + step) - pose
        new_cost = float(new_residual @ new_residual)
        if new_cost < cost:
            converged = cost - new_cost < 1e-9 * cost
            x, residual, cost, damping = x + step, new_residual, new_cost, max(damping / 5, 1e-9)
            if converged:
                break
        else:
            damping *= 5
            if damping > 1e6:
                break
    return x, cost
