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
from scipy.linalg.lapack import spotrf, spotri

from calibration.foundation.arrays import Floats, Ints, Singles
from calibration.foundation.errors import SolveError

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
    direction, by_frames = np.zeros_like(x), np.zeros_like(x)
    ready = system.each_by_itself(residual)
    size = first = float(np.sum(residual * ready))
    grown = 0.0
    for _ in range(iterations):
        if size <= tolerance**2 * first or size == 0.0:
            break
        # The frames' own blocks times the direction follow from the last ones: they made `ready` of the residual.
        direction = ready + grown * direction
        by_frames = residual + grown * by_frames
        pushed = by_frames + system.ties(direction)
        length = size / float(np.sum(direction * pushed))
        x += length * direction
        residual -= length * pushed
        ready = system.each_by_itself(residual)
        size, before = float(np.sum(residual * ready)), size
        grown = size / before
    return x


class _System:
    """The joint energy's matrix: the frames' own blocks, sightings of marks and neighbours among them, and the rest."""

    def __init__(self, blocks: Sequence[FrameBlock], spread: Floats, bend_weight: Floats) -> None:
        frames, quads = len(blocks), len(bend_weight)
        self._quads = quads
        self._bend_weight = bend_weight
        self.gradient = np.array([block.gradient for block in blocks])
        self._bend = np.zeros((frames, quads))
        bent = np.zeros(frames)
        for index, block in enumerate(blocks):
            if block.bend is not None:
                self._bend[index], bent[index] = block.bend, 1.0
        self._bent = bent[:, None]
        # Rows of all frames, as many for each as the one with most has
        counts = np.array([len(block.rows.residuals) for block in blocks])
        self._there = np.arange(counts.max(initial=0)) < counts[:, None]
        self._rows = np.zeros((*self._there.shape, quads), np.float32)
        for rows, block in zip(self._rows, blocks, strict=True):
            rows[: len(block.rows.residuals)] = block.rows.jacobian
        self._residuals = np.concatenate([block.rows.residuals for block in blocks])
        self._marks = np.repeat(np.concatenate([block.rows.marks for block in blocks]), 2)
        self._spots = np.concatenate([block.rows.spots for block in blocks])
        inner = spread.copy()
        outer = self._spots[:, :, None] * self._spots[:, None, :]
        for i in range(3):
            for j in range(3):
                inner[:, i, j] += np.bincount(self._marks, outer[:, i, j], len(spread))
        self._inverse = np.linalg.inv(inner)
        # A frame's own part of what ties it to its neighbours: its row, and its share in the rows beside it
        own = bent.copy()
        own[:-1] += 0.25 * bent[1:]
        own[1:] += 0.25 * bent[:-1]
        self._own = own[:, None] * bend_weight
        # In units in which the diagonal is 1 single precision does. It is read for every step, and reading it is what
        # a step costs.
        self._units = np.empty_like(self.gradient)
        self._solved = np.empty((frames, len(self.gradient[0]), len(self.gradient[0])), np.float32)
        for index, block in enumerate(blocks):
            matrix = block.hessian.copy()
            matrix[:quads, :quads] += block.rows.jacobian.T @ block.rows.jacobian
            matrix[np.arange(quads), np.arange(quads)] += self._own[index]
            units = np.sqrt(np.diag(matrix))
            self._units[index] = units
            self._solved[index] = _inverse(matrix / (units[:, None] * units))

    def slope(self) -> Floats:
        """Return the (T, n) gradient of the joint energy at no step."""
        result = self.gradient.copy()
        self._pull(self._residuals - self._taken_up(self._residuals), result)
        self._unbend(self._bend, result)
        return result

    def ties(self, x: Floats) -> Floats:
        """Return the (T, n) product of what is not of one frame alone with steps."""
        quads = x[:, : self._quads]
        moved = (self._rows @ quads.astype(np.float32)[..., None])[self._there, 0]
        result = np.zeros_like(x)
        result[:, : self._quads] -= self._own * quads
        self._pull(-self._taken_up(moved.astype(np.float64)), result)
        bend = np.zeros_like(quads)
        bend[1:-1] = quads[1:-1] - 0.5 * (quads[:-2] + quads[2:])
        self._unbend(bend * self._bent, result)
        return result

    def each_by_itself(self, residual: Floats) -> Floats:
        """Solve each frame by itself: its own block's inverse times (T, n)."""
        rows = (residual / self._units).astype(np.float32)
        return np.asarray((self._solved @ rows[..., None])[..., 0] / self._units)

    def _taken_up(self, rows: Floats) -> Floats:
        """Return what the spots take up of the sightings' residuals, moved to where these are least."""
        pulled = np.stack(
            [np.bincount(self._marks, self._spots[:, i] * rows, len(self._inverse)) for i in range(3)], axis=1
        )
        shift = np.einsum("kij,kj->ki", self._inverse, pulled)
        return np.asarray(np.einsum("si,si->s", self._spots, shift[self._marks]))

    def _pull(self, rows: Floats, result: Floats) -> None:
        single = np.zeros(self._there.shape, np.float32)
        single[self._there] = rows
        result[:, : self._quads] += (single[:, None, :] @ self._rows)[:, 0]

    def _unbend(self, bend: Floats, result: Floats) -> None:
        weighted = bend * self._bend_weight
        result[:, : self._quads] += weighted
        result[:-1, : self._quads] -= 0.5 * weighted[1:]
        result[1:, : self._quads] -= 0.5 * weighted[:-1]


def _inverse(matrix: Singles) -> Singles:
    """Invert a symmetric positive definite matrix."""
    upper, failed = spotrf(matrix)
    if failed:
        raise SolveError(f"all frames at once: the curvature of a frame is not positive definite (row {failed})")
    half, _ = spotri(upper)
    whole = np.triu(half)
    return np.asarray(whole + np.triu(whole, 1).T)
