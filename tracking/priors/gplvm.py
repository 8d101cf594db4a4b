"""Gaussian-process latent variable prior at run time: numpy alone, no PyTorch.

With ``k(x, x') = alpha exp(-gamma/2 |x - x'|^2)``, noise variance beta, centres c_1..m, weights W and a
symmetric matrix S, mean and variance and their derivatives have one form (Duveau et al. 2012, eq. 7-10)::

    y(x)       = centre + W^T k_x            sigma^2(x)    = alpha + beta - k_x^T S k_x
    dy/dx      = W^T dk_x/dx                 d sigma^2/dx  = -2 k_x^T S dk_x/dx

- exact: the centres are all training latents, ``S = (K + beta I)^-1`` and ``W = S Y``;
- FITC: the centres are inducing points u, with ``L = diag(K_ff - Q_ff) + beta I``, ``Q = K_fu K_uu^-1 K_uf``,
  ``B = K_uu + K_uf L^-1 K_fu``: ``W = B^-1 K_uf L^-1 Y`` and ``S = K_uu^-1 - B^-1`` (`pose-spaces`, B2).

Back constraints (Lawrence and Quinonero-Candela 2006) keep neighbours in pose neighbours in latent space:
``x(y) = k_b(y)^T A`` with a Gaussian kernel on pose vectors; `back` evaluates that map for any pose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from tracking.priors.pose_chart import PoseChart
from tracking.priors.prior import LatentPoint

__all__ = ["BackMap", "GplvmPrior", "Kernel", "exact_gplvm", "fitc_gplvm", "squared_distances"]

#: Relative jitter on kernel matrices without noise of their own (K_uu), against loss of rank.
JITTER = 1e-6
#: Singular values of the back kernel below this share of the largest are left out.
BACK_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Kernel:
    """Gaussian kernel with noise: ``alpha exp(-gamma/2 r^2)``, noise variance ``noise`` on each pose."""

    alpha: float
    gamma: float
    noise: float

    def __post_init__(self) -> None:
        if not (self.alpha > 0 and self.gamma > 0 and self.noise > 0):
            raise InputError(f"kernel: alpha, gamma and noise must be above 0, got {self}")

    def __call__(self, a: Floats, b: Floats) -> Floats:
        """Covariances (..., m) between latent points a (..., d) and b (m, d), without noise."""
        return np.asarray(self.alpha * np.exp(-0.5 * self.gamma * squared_distances(a, b)))


@dataclass(frozen=True, eq=False)
class BackMap:
    """Smooth map from pose vectors to latent points: ``x(y) = sum_j exp(-gamma/2 |y - y_j|^2) A_j``.

    Attributes:
        poses: (b, D) centres y_j.
        weights: (b, d) weights A_j.
        gamma: inverse squared width.
    """

    poses: Floats
    weights: Floats
    gamma: float

    def __call__(self, y: Floats) -> Floats:
        """Latent points (..., d) of pose vectors (..., D)."""
        return np.asarray(np.exp(-0.5 * self.gamma * squared_distances(y, self.poses)) @ self.weights)


@dataclass(frozen=True, eq=False)
class GplvmPrior:
    """Gaussian-process latent variable prior, exact or FITC (see the module's formulas).

    Attributes:
        rig_name: name of the quad rig.
        quad_names: names of its quads, in order.
        chart: chart of the pose vectors.
        kernel: kernel and noise, in the units of y squared.
        centre: (D,) mean of the training poses.
        centres: (m, d) latent points the kernel is centred on.
        weights: (m, D) W.
        precision: (m, m) S.
        back_map: map from poses to latents.
        training_poses: (n, D) training pose vectors (for FITC: those that were kept).
        training_latents: (n, d) their latent points.
        training_segments: (n, J, 4) wxyz, the skeleton's segments in the training poses, or None.
        training_roots: (n, 3, 3) world from root quad in the training poses, z up, or None: an animal that rears
            stands otherwise than one that walks.
    """

    rig_name: str
    quad_names: tuple[str, ...]
    chart: PoseChart
    kernel: Kernel
    centre: Floats
    centres: Floats
    weights: Floats
    precision: Floats
    back_map: BackMap
    training_poses: Floats
    training_latents: Floats
    training_segments: Floats | None = None
    training_roots: Floats | None = None

    @property
    def latent_dim(self) -> int:
        """Dimension d of the latent space."""
        return int(self.centres.shape[1])

    def mean(self, x: Floats) -> Floats:
        """Pose vectors (..., D) at latent points (..., d)."""
        return np.asarray(self.centre + self.kernel(np.asarray(x, float), self.centres) @ self.weights)

    def variance(self, x: Floats) -> Floats:
        """Predictive variances (...) at latent points (..., d), from the noise up to alpha + noise."""
        k = self.kernel(np.asarray(x, float), self.centres)
        explained = np.sum((k @ self.precision) * k, axis=-1)
        # Rounding must not take the variance of a pose below its noise, nor its logarithm to NaN.
        return np.asarray(self.kernel.noise + np.maximum(self.kernel.alpha - explained, 0.0))

    def mean_jacobian(self, x: Floats) -> Floats:
        """Derivative (D, d) of the pose vector at one latent point (d,)."""
        _, slope = self._kernel_slope(x)
        return np.asarray(self.weights.T @ slope)

    def variance_gradient(self, x: Floats) -> Floats:
        """Derivative (d,) of the variance at one latent point (d,)."""
        k, slope = self._kernel_slope(x)
        return np.asarray(-2.0 * (k @ self.precision) @ slope)

    def evaluate(self, x: Floats) -> LatentPoint:
        """Mean, variance and their derivatives at one latent point (d,)."""
        k, slope = self._kernel_slope(x)
        explained = k @ self.precision
        return LatentPoint(
            mean=self.centre + k @ self.weights,
            mean_jacobian=self.weights.T @ slope,
            variance=self.kernel.noise + max(self.kernel.alpha - float(explained @ k), 0.0),
            variance_gradient=-2.0 * (explained @ slope),
        )

    def back(self, y: Floats) -> Floats:
        """Latent points (..., d) of pose vectors (..., D) by the back constraints."""
        return self.back_map(np.asarray(y, float))

    def _kernel_slope(self, x: Floats) -> tuple[Floats, Floats]:
        """Kernel values (m,) at one latent point and their derivatives (m, d)."""
        offset = np.asarray(x, float) - self.centres
        k = self.kernel.alpha * np.exp(-0.5 * self.kernel.gamma * np.einsum("md,md->m", offset, offset))
        return k, (-self.kernel.gamma * k)[:, None] * offset


def squared_distances(a: Floats, b: Floats) -> Floats:
    """Squared distances (..., m) between points a (..., d) and b (m, d)."""
    if a.ndim == 1:
        offset = a - b
        return np.asarray(np.einsum("md,md->m", offset, offset))
    cross = np.sum(a**2, axis=-1)[..., None] - 2.0 * (a @ b.T) + np.sum(b**2, axis=-1)
    return np.asarray(np.maximum(cross, 0.0))


def exact_gplvm(
    latents: Floats,
    poses: Floats,
    kernel: Kernel,
    back_map: BackMap,
    chart: PoseChart,
    *,
    rig_name: str,
    quad_names: Sequence[str],
) -> GplvmPrior:
    """Build the prior from trained latents (n, d) of poses (n, D)."""
    centre = poses.mean(axis=0)
    covariance = kernel(latents, latents) + kernel.noise * np.eye(len(latents))
    precision = _inverse(covariance)
    weights = precision @ (poses - centre)
    return GplvmPrior(
        rig_name,
        tuple(quad_names),
        chart,
        kernel,
        centre,
        latents,
        weights,
        precision,
        back_map,
        poses,
        latents,
    )


def fitc_gplvm(
    latents: Floats,
    poses: Floats,
    inducing: Floats,
    kernel: Kernel,
    back_map: BackMap,
    chart: PoseChart,
    *,
    rig_name: str,
    quad_names: Sequence[str],
    keep: int | None = 300,
) -> GplvmPrior:
    """Build the sparse prior from trained latents (n, d) of poses (n, D) and inducing points (m, d).

    Of the training poses ``keep`` evenly spread ones stay with the prior (starting points for a tracker); None keeps
    all, which a prior that is to follow other subjects needs.
    """
    centre = poses.mean(axis=0)
    k_uu = kernel(inducing, inducing) + JITTER * kernel.alpha * np.eye(len(inducing))
    k_uf = kernel(inducing, latents)
    inverse_uu = _inverse(k_uu)
    q_ff = np.einsum("un,un->n", k_uf, inverse_uu @ k_uf)
    scaled = k_uf / (np.maximum(kernel.alpha - q_ff, 0.0) + kernel.noise)
    inverse_b = _inverse(k_uu + scaled @ k_uf.T)
    weights = inverse_b @ (scaled @ (poses - centre))
    count = len(poses) if keep is None else min(keep, len(poses))
    kept = np.unique(np.linspace(0, len(poses) - 1, count).round().astype(np.int64))
    return GplvmPrior(
        rig_name,
        tuple(quad_names),
        chart,
        kernel,
        centre,
        inducing,
        weights,
        inverse_uu - inverse_b,
        back_map,
        poses[kept],
        latents[kept],
    )


def _inverse(matrix: Floats) -> Floats:
    """Inverse of a symmetric positive definite matrix."""
    inverse = cho_solve(cho_factor(matrix, lower=True), np.eye(len(matrix)))
    return np.asarray(0.5 * (inverse + inverse.T))
