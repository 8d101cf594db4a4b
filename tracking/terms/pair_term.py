"""Squared residuals of pairs of quads, kept as the blocks that are not zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.compiled import compiled

__all__ = ["PairTerm"]


@dataclass(frozen=True, eq=False)
class PairTerm:
    """k residuals for each of E pairs of quads.

    Attributes:
        pairs: (E, 2) quads a and b.
        residual: (E, k).
        jacobian: (E, k, 12) derivative by the six numbers of a, then of b.
    """

    pairs: Ints
    residual: Floats
    jacobian: Floats

    @property
    def cost(self) -> float:
        """Sum of the squared residuals."""
        return float(np.sum(self.residual**2))

    def dense(self, quads: int) -> Floats:
        """Return the (E k, 6 Q) derivative by all quads."""
        count, size = self.residual.shape
        full = np.zeros((count, size, quads, 6))
        rows = np.arange(count)
        full[rows, :, self.pairs[:, 0]] = self.jacobian[:, :, :6]
        full[rows, :, self.pairs[:, 1]] = self.jacobian[:, :, 6:]
        return full.reshape(count * size, 6 * quads)

    def add_to(self, hessian: Floats, gradient: Floats, weight: float = 1.0) -> None:
        """Add the weighted residuals' normal equations to a system whose first unknowns are the quads."""
        _add(self.pairs, self.residual, self.jacobian, weight, hessian, gradient)


@compiled
def _add(pairs: Ints, residual: Floats, jacobian: Floats, weight: float, hessian: Floats, gradient: Floats) -> None:
    for e in range(len(pairs)):
        for i in range(12):
            at = 6 * pairs[e, i // 6] + i % 6
            for k in range(residual.shape[1]):
                slope = weight * jacobian[e, k, i]
                if slope != 0.0:
                    gradient[at] += slope * residual[e, k]
                    for j in range(12):
                        hessian[at, 6 * pairs[e, j // 6] + j % 6] += slope * jacobian[e, k, j]
