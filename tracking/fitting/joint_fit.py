"""All frames of a sequence at once: what ties them to each other is the skin that they all see, and time.

Around the fits of the frames, the energy of each is a quadric (`tracking.fitting.solver`), and so is what ties them
together::

    E(x, d) = sum_t (1/2 x_t' H_t x_t + g_t' x_t) + 1/2 sum_s |r_s + J_s x_t(s) + B_s d_k(s)|^2 + 1/2 sum_k d_k' D_k d_k
            + 1/2 sum_t |S (c_t + x_t - (x_t-1 + x_t+1) / 2)|^2

x_t is the step of a frame's quads and latent point; d_k moves the spot of mark k on the skin, which is known only
through the fits themselves; s runs over the sightings of the marks; c_t is how far a frame lies from the middle of its
neighbours. The spots are eliminated, 3 numbers each, and the steps follow by conjugate gradients with the frames' own
blocks as preconditioner. Going from frame to frame instead would carry a slow error of twist only as far as a mark is
seen, a few tens of frames, and would take as many sweeps to spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor
from scipy.linalg.lapack import spotrs

from calibration.foundation.arrays import Floats, Ints, Singles

__all__ = ["FrameBlock", "MarkRows", "joint_step"]


@dataclass(frozen=True, eq=False)
class MarkRows:
    """The sightings of one frame, two rows each, divided by their sigma and robust weight.

    Attributes:
        jacobian: (2 N, 6 Q) derivative by the quads.
        spots: (2 N, 3) derivative by the move of the mark's spot, template at rest.
        residuals: (2 N,).
        marks: (N,) which mark.
    """

    jacobian: Singles
    spots: Floats
    residuals: Floats
    marks: Ints


@dataclass(frozen=True, eq=False)
class FrameBlock:
    """The energy of one frame around its fit.

    Attributes:
        hessian: (n, n) curvature, n = 6 Q + d, damped.
        gradient: (n,) slope.
        rows: sightings of marks.
        bend: (6 Q,) how far the quads lie from the middle of the frames beside, rad and mm; None where one is missing.
    """

    hessian: Singles
    gradient: Floats
    rows: MarkRows
    bend: Floats | None


def joint_step(
    blocks: Sequence[FrameBlock],
    spread: Floats,
    bend_weight: Floats,
    *,
    iterations: int = 60,
    tolerance: float = 1e-3,
) -> Floats:
    """Return the (T, n) steps of all frames that make the joint energy least.

    Args:
        blocks: one per frame, in order of time.
        spread: (K, 3, 3) curvature that holds each mark's spot where it is, D.
        bend_weight: (6 Q,) weight of the distance from the neighbours' middle, 1 / sigma^2.
        iterations: conjugate gradient steps, at most.
        tolerance: fall of the residual, in the metric of the frames' blocks, that ends them.
    """
    system = _System(blocks, spread, bend_weight)
    x = np.zeros_like(system.gradient)
    residual = -system.slope()
    ready = system.precondition(residual)
    direction = ready.copy()
    size = first = float(np.sum(residual * ready))
    for _ in range(iterations):
        if size <= tolerance**2 * first or size == 0.0:
            break
        pushed = system.apply(direction)
        length = size / float(np.sum(direction * pushed))
        x += length * direction
        residual -= length * pushed
        ready = system.precondition(residual)
        grown = float(np.sum(residual * ready))
        direction = ready + (grown / size) * direction
        size = grown
    return x


class _System:
    """The joint energy's matrix, applied block by block."""

    def __init__(self, blocks: Sequence[FrameBlock], spread: Floats, bend_weight: Floats) -> None:
        self._blocks = blocks
        self._quads = len(bend_weight)
        self._bend_weight = bend_weight
        self.gradient = np.array([block.gradient for block in blocks])
        self._bent = np.array([block.bend is not None for block in blocks])
        self._ends = np.cumsum([0] + [len(block.rows.residuals) for block in blocks])
        self._marks = np.repeat(np.concatenate([block.rows.marks for block in blocks]), 2)
        self._spots = np.concatenate([block.rows.spots for block in blocks])
        inner = spread.copy()
        outer = self._spots[:, :, None] * self._spots[:, None, :]
        for i in range(3):
            for j in range(3):
                inner[:, i, j] += np.bincount(self._marks, outer[:, i, j], len(spread))
        self._inverse = np.linalg.inv(inner)
        # A frame's own part of what ties it to its neighbours: its row, and its share in the rows beside it
        bent = self._bent.astype(float)
        own = bent.copy()
        own[:-1] += 0.25 * bent[1:]
        own[1:] += 0.25 * bent[:-1]
        self._factors = []
        for block, share in zip(blocks, own, strict=True):
            matrix = block.hessian.astype(np.float64)
            size = self._quads
            matrix[:size, :size] += block.rows.jacobian.T @ block.rows.jacobian
            matrix[np.arange(size), np.arange(size)] += share * bend_weight
            factor, _ = cho_factor(matrix, overwrite_a=True, check_finite=False)
            # In single precision: it is read for every step, and reading it is what a step costs.
            self._factors.append(np.asarray(factor, np.float32, order="F"))

    def slope(self) -> Floats:
        """Return the (T, n) gradient of the joint energy at no step."""
        residuals = np.concatenate([block.rows.residuals for block in self._blocks])
        result = self.gradient.copy()
        self._pull(self._settled(residuals), result)
        bend = np.zeros((len(self._blocks), self._quads))
        for index, block in enumerate(self._blocks):
            if block.bend is not None:
                bend[index] = block.bend
        self._unbend(bend, result)
        return result

    def apply(self, x: Floats) -> Floats:
        """Return the (T, n) product of the matrix with steps."""
        single = x.astype(np.float32)
        result = np.array([block.hessian @ step for block, step in zip(self._blocks, single, strict=True)], np.float64)
        moved = [block.rows.jacobian @ step[: self._quads] for block, step in zip(self._blocks, single, strict=True)]
        self._pull(self._settled(np.concatenate(moved).astype(np.float64)), result)
        quads = x[:, : self._quads]
        bend = np.zeros_like(quads)
        bend[1:-1] = quads[1:-1] - 0.5 * (quads[:-2] + quads[2:])
        self._unbend(bend * self._bent[:, None], result)
        return result

    def precondition(self, residual: Floats) -> Floats:
        """Solve each frame by itself."""
        rows = residual.astype(np.float32)
        return np.array([spotrs(factor, row)[0] for factor, row in zip(self._factors, rows, strict=True)], np.float64)

    def _settled(self, rows: Floats) -> Floats:
        """Return what is left of the sightings' residuals when the spots have moved to where they are least."""
        pulled = np.stack(
            [np.bincount(self._marks, self._spots[:, i] * rows, len(self._inverse)) for i in range(3)], axis=1
        )
        shift = np.einsum("kij,kj->ki", self._inverse, pulled)
        return np.asarray(rows - np.einsum("si,si->s", self._spots, shift[self._marks]))

    def _pull(self, rows: Floats, result: Floats) -> None:
        single = rows.astype(np.float32)
        for index, block in enumerate(self._blocks):
            part = single[self._ends[index] : self._ends[index + 1]]
            result[index, : self._quads] += block.rows.jacobian.T @ part

    def _unbend(self, bend: Floats, result: Floats) -> None:
        weighted = bend * self._bend_weight
        result[:, : self._quads] += weighted
        result[:-1, : self._quads] -= 0.5 * weighted[1:]
        result[1:, : self._quads] -= 0.5 * weighted[:-1]
