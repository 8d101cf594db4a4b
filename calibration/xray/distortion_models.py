"""Smooth maps of the plane fitted to grid beads: local weighted mean, polynomial, B-spline.

Each model is a small frozen class, fitted from (n, 2) sources to (n, 2) targets, that maps (..., 2) to (..., 2) px.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.interpolate import BSpline
from scipy.spatial import cKDTree

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import SolveError
from calibration.xray.spots import nearest_neighbours

__all__ = ["FitMap", "LocalWeightedMean", "PlaneMap", "Polynomial", "SplineSurface", "cross_validate"]


class PlaneMap(Protocol):
    """A map of the plane."""

    def __call__(self, points: Floats) -> Floats:
        """Map (..., 2) px to (..., 2) px; NaN where the model says nothing."""
        ...


#: Fits a map from (n, 2) source points to (n, 2) targets.
FitMap = Callable[[Floats, Floats], PlaneMap]


@dataclass(frozen=True, eq=False)
class LocalWeightedMean:
    """Goshtasby's local weighted mean (Image and Vision Computing 6, 1988).

    Each control point carries a second-order polynomial through itself and its nearest neighbours; a point is
    mapped by the mean of the polynomials near it with weight ``1 - 3 R^2 + 2 R^3``, R the distance over that of
    the control point's farthest neighbour, zero beyond it.

    Attributes:
        centres: (n, 2) control points, px.
        radii: (n,) distance to the farthest neighbour used, px.
        coefficients: (n, 6, 2) of 1, u, v, u^2, uv, v^2 with u, v the offset from the centre over the radius.
    """

    centres: Floats
    radii: Floats
    coefficients: Floats

    @classmethod
    def fit(cls, source: Floats, target: Floats, *, neighbours: int = 12) -> LocalWeightedMean:
        """Fit the polynomials; ``neighbours`` counts the control point itself."""
        if len(source) < neighbours:
            raise SolveError(f"local weighted mean: wanted at least {neighbours} control points, got {len(source)}")
        distance, index = nearest_neighbours(source, source, neighbours)
        radii = distance[:, -1] * (1.0 + 1e-9)
        offset = (source[index] - source[:, None]) / radii[:, None, None]
        design = _quadratic(offset)
        # Minimum-norm least squares: neighbours of an edge point may all lie on one side.
        coefficients = np.linalg.pinv(design, rcond=1e-6) @ target[index]
        return cls(source.copy(), radii, coefficients)

    def __call__(self, points: Floats) -> Floats:
        """Map (..., 2) px; NaN beyond the reach of all control points."""
        flat = np.asarray(points, dtype=np.float64).reshape(-1, 2)
        total = np.zeros((len(flat), 2))
        weights = np.zeros(len(flat))
        finite = np.flatnonzero(np.isfinite(flat).all(axis=1))
        pairs = cKDTree(flat[finite]).sparse_distance_matrix(
            cKDTree(self.centres), float(self.radii.max()), output_type="coo_matrix"
        )
        who, control = finite[pairs.row], np.asarray(pairs.col, dtype=np.int64)
        offset = (flat[who] - self.centres[control]) / self.radii[control, None]
        ratio = np.linalg.norm(offset, axis=1)
        inside = ratio < 1.0
        who, control, offset, ratio = who[inside], control[inside], offset[inside], ratio[inside]
        weight = 1.0 - 3.0 * ratio**2 + 2.0 * ratio**3
        value = np.einsum("nk,nkd->nd", _quadratic(offset), self.coefficients[control])
        np.add.at(total, who, weight[:, None] * value)
        np.add.at(weights, who, weight)
        with np.errstate(invalid="ignore", divide="ignore"):
            mapped = np.where(weights[:, None] > 1e-9, total / weights[:, None], np.nan)
        return np.asarray(mapped.reshape(np.shape(points)))


@dataclass(frozen=True, eq=False)
class Polynomial:
    """A polynomial of both coordinates up to a total degree.

    Attributes:
        degree: total degree.
        middle, scale: bring the sources to about [-1, 1].
        coefficients: (k, 2) of the Chebyshev products T_i(x) T_j(y), i + j <= degree.
    """

    degree: int
    middle: Floats
    scale: float
    coefficients: Floats

    @classmethod
    def fit(cls, source: Floats, target: Floats, *, degree: int) -> Polynomial:
        """Fit by least squares."""
        middle = 0.5 * (source.min(axis=0) + source.max(axis=0))
        scale = 0.5 * float(np.ptp(source, axis=0).max())
        design = _chebyshev((source - middle) / scale, degree)
        if len(source) < 2 * design.shape[1]:
            raise SolveError(
                f"polynomial of degree {degree}: wanted at least {2 * design.shape[1]} points, got {len(source)}"
            )
        coefficients, *_ = np.linalg.lstsq(design, target, rcond=None)
        return cls(degree, middle, scale, np.asarray(coefficients, dtype=np.float64))

    def __call__(self, points: Floats) -> Floats:
        """Map (..., 2) px."""
        flat = np.asarray(points, dtype=np.float64).reshape(-1, 2)
        mapped = _chebyshev((flat - self.middle) / self.scale, self.degree) @ self.coefficients
        return np.asarray(mapped.reshape(np.shape(points)))


@dataclass(frozen=True, eq=False)
class SplineSurface:
    """A cubic tensor B-spline of the displacement, with a bending penalty.

    Attributes:
        low, high: (2,) corners of its rectangle, px; NaN outside.
        cells: cells per side.
        coefficients: (cells + 3, cells + 3, 2) of the displacement, px.
    """

    low: Floats
    high: Floats
    cells: int
    coefficients: Floats

    @classmethod
    def fit(cls, source: Floats, target: Floats, *, cells: int, bending: float = 1e-4) -> SplineSurface:
        """Fit by penalised least squares: residual^2 + bending * (second differences of the coefficients)^2."""
        margin = 0.06 * np.ptp(source, axis=0)
        low, high = source.min(axis=0) - margin, source.max(axis=0) + margin
        bx = _spline_rows((source[:, 0] - low[0]) / (high[0] - low[0]), cells)
        by = _spline_rows((source[:, 1] - low[1]) / (high[1] - low[1]), cells)
        design = np.einsum("ni,nj->nij", bx, by).reshape(len(source), -1)
        size = cells + 3
        second = np.diff(np.eye(size), n=2, axis=0)
        along = np.kron(second, np.eye(size))
        across = np.kron(np.eye(size), second)
        first = np.diff(np.eye(size), n=1, axis=0)
        twist = np.kron(first, first)
        penalty = along.T @ along + across.T @ across + 2.0 * twist.T @ twist
        # The penalty leaves planes free; a trace of ridge keeps corners without beads from drifting.
        normal = design.T @ design + bending * penalty + 1e-9 * np.eye(size * size)
        solution = np.linalg.solve(normal, design.T @ (target - source))
        return cls(low, high, cells, solution.reshape(size, size, 2))

    def __call__(self, points: Floats) -> Floats:
        """Map (..., 2) px; NaN outside the rectangle."""
        flat = np.asarray(points, dtype=np.float64).reshape(-1, 2)
        unit = (flat - self.low) / (self.high - self.low)
        with np.errstate(invalid="ignore"):
            inside = ((unit >= 0.0) & (unit <= 1.0)).all(axis=1)
        mapped = np.full(flat.shape, np.nan)
        bx = _spline_rows(unit[inside, 0], self.cells)
        by = _spline_rows(unit[inside, 1], self.cells)
        mapped[inside] = flat[inside] + np.einsum("ni,nj,ijd->nd", bx, by, self.coefficients, optimize=True)
        return np.asarray(mapped.reshape(np.shape(points)))


def cross_validate(fit: FitMap, source: Floats, target: Floats, *, folds: int = 10) -> Floats:
    """Return (n, 2) errors, px, of each point under the model fitted without its fold (NaN: model says nothing)."""
    # Folds by a fixed stride through a shuffled order, the same for each model and each run.
    order = np.random.default_rng(0).permutation(len(source))
    errors = np.full(source.shape, np.nan)
    for fold in range(folds):
        held = order[fold::folds]
        kept = np.setdiff1d(order, held)
        errors[held] = fit(source[kept], target[kept])(source[held]) - target[held]
    return errors


def _quadratic(offset: Floats) -> Floats:
    """Return (..., 6): 1, u, v, u^2, uv, v^2."""
    u, v = offset[..., 0], offset[..., 1]
    return np.stack([np.ones_like(u), u, v, u * u, u * v, v * v], axis=-1)


def _chebyshev(unit: Floats, degree: int) -> Floats:
    """Return (n, k) products of Chebyshev polynomials up to a total degree."""
    x = np.polynomial.chebyshev.chebvander(unit[:, 0], degree)
    y = np.polynomial.chebyshev.chebvander(unit[:, 1], degree)
    return np.stack([x[:, i] * y[:, j] for i in range(degree + 1) for j in range(degree + 1 - i)], axis=1)


def _spline_rows(unit: Floats, cells: int) -> Floats:
    """Return (n, cells + 3) values of the uniform cubic B-splines on [0, 1]."""
    knots = (np.arange(cells + 7) - 3.0) / cells
    clipped = np.clip(unit, 0.0, 1.0 - 1e-12)
    return np.asarray(BSpline.design_matrix(clipped, knots, 3).toarray())
