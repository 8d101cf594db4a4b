"""Solvers that do one thing otherwise, to see what it is worth."""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Floats
from tracking.fitting.frame_energy import Evaluation
from tracking.fitting.point_fit import moved
from tracking.fitting.solver import Expectation, FrameSolver
from tracking.quads.oriented_quads import QuadPose
from tracking.terms.energy import System, prediction_term
from tracking.terms.silhouette import PackedObservation

__all__ = ["ByDescent", "InTurn", "OnManifold"]


class InTurn(FrameSolver):
    """Along the manifold, the root and the shape are stepped one after the other."""

    def along_manifold(
        self, packed: PackedObservation, pose: QuadPose, latent: Floats, scale: float
    ) -> tuple[QuadPose, Floats]:
        """Step the root, then the shape."""
        for part in (slice(0, 6), slice(6, None)):
            pose, latent = self._latent_step(packed, pose, latent, scale, part)
        return pose, latent


class OnManifold(FrameSolver):
    """Quads never leave the manifold."""

    def off_manifold(
        self,
        packed: PackedObservation,
        pose: QuadPose,
        latent: Floats,
        expected: Expectation | None,
        scales: tuple[float, ...],
    ) -> tuple[QuadPose, Floats, Evaluation | None]:
        """Leave them where they are."""
        return pose, latent, None


class ByDescent(FrameSolver):
    """Goes down the gradient with momentum and one rate per unknown (Adam), 15 steps for each Gauss-Newton step."""

    def off_manifold(
        self,
        packed: PackedObservation,
        pose: QuadPose,
        latent: Floats,
        expected: Expectation | None,
        scales: tuple[float, ...],
    ) -> tuple[QuadPose, Floats, Evaluation | None]:
        """Descend."""
        quads = 6 * len(self.cage_rig.quads)
        # A step is at most about 3 thousandths of the size, or 0.1 of a training pose's spread.
        rate = np.concatenate([3.0 / np.sqrt(self._metric), np.full(self.prior.latent_dim, 0.1)])
        last: Evaluation | None = None
        slope, square = np.zeros(len(rate)), np.zeros(len(rate))
        count = 15 * len(scales)
        for turn in range(count):
            scale = scales[turn * len(scales) // count]
            level = self._fine if scale == scales[-1] else self._coarse
            last = self._evaluate(level, packed, pose, latent, scale)
            gradient = last.system.gradient.copy()
            if expected is not None:
                pull = System(np.zeros_like(last.system.hessian), gradient)
                prediction_term(
                    pull, pose, expected.pose, shift_sigma=expected.shift_sigma, turn_sigma=expected.turn_sigma
                )
            slope = 0.9 * slope + 0.1 * gradient
            square = 0.99 * square + 0.01 * gradient**2
            step = -rate * (1.0 - turn / count) * (slope / (1 - 0.9 ** (turn + 1)))
            step /= np.sqrt(square / (1 - 0.99 ** (turn + 1))) + 1e-12
            pose, latent = moved(pose, step[:quads]), latent + step[quads:]
        return pose, latent, last
