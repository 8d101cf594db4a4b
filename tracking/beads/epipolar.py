"""What two views of one bead have to do with each other: the epipolar line, known or learnt from the tracks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration.foundation.arrays import Floats

__all__ = ["EpipolarGeometry", "epipolar_distance", "fit_fundamental", "fundamental_from_matrices"]

#: Takes (..., 2) pixels as brought to (..., 2) pixels of the ideal pinhole image.
Undistort = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class EpipolarGeometry:
    """Epipolar relation between all views.

    Attributes:
        fundamental: (C, C, 3, 3) with ``x_j^T F[i, j] x_i = 0`` in ideal pixels; NaN where unknown.
        sigma_px: expected distance of a true match from its epipolar line, px.
        undistort: one function per view from pixels as brought to ideal pixels.
        undistort_at: the same at a frame of the film, where the distortion moves with a C-arm.
    """

    fundamental: Floats
    sigma_px: float
    undistort: tuple[Undistort, ...]
    undistort_at: Callable[[int], tuple[Undistort, ...]] | None = None

    def at(self, frame: int) -> EpipolarGeometry:
        """Return the relation at a frame of the film."""
        return self if self.undistort_at is None else replace(self, undistort=self.undistort_at(frame))

    def distance(self, i: int, pixels_i: Floats, j: int, pixels_j: Floats) -> Floats:
        """Return the epipolar distance of matches between view i and view j, (...,) px, broadcasting."""
        return epipolar_distance(self.fundamental[i, j], self.undistort[i](pixels_i), self.undistort[j](pixels_j))

    def known(self, i: int, j: int) -> bool:
        """Whether the relation of the two views is known."""
        return bool(np.isfinite(self.fundamental[i, j]).all())


def fundamental_from_matrices(first: Floats, second: Floats) -> Floats:
    """Return the (3, 3) F with ``x2^T F x1 = 0`` of two (3, 4) projection matrices."""
    rows = np.empty((3, 3))
    for i in range(3):
        for j in range(3):
            stacked = np.concatenate([np.delete(first, j, axis=0), np.delete(second, i, axis=0)])
            # Hartley and Zisserman, eq. 17.3: minors of the stacked matrix with alternating sign.
            rows[i, j] = (-1.0) ** (i + j) * np.linalg.det(stacked)
    return np.asarray(rows / np.linalg.norm(rows))


def epipolar_distance(fundamental: Floats, first: Floats, second: Floats) -> Floats:
    """Return Sampson's distance of matches (..., 2) and (..., 2), px: how far the pair is from a perfect match."""
    x = np.concatenate([first, np.ones((*first.shape[:-1], 1))], axis=-1)
    y = np.concatenate([second, np.ones((*second.shape[:-1], 1))], axis=-1)
    line_y = x @ fundamental.T
    line_x = y @ fundamental
    error = np.sum(y * line_y, axis=-1)
    slope = line_y[..., 0] ** 2 + line_y[..., 1] ** 2 + line_x[..., 0] ** 2 + line_x[..., 1] ** 2
    return np.asarray(np.abs(error) / np.sqrt(np.maximum(slope, 1e-30)))


def fit_fundamental(first: Floats, second: Floats, *, rounds: int = 3) -> tuple[Floats, float]:
    """Fit F to (n, 2) matches, n >= 8, by the normalised eight-point method, outliers down-weighted.

    Returns:
        the (3, 3) matrix of rank 2 and the robust standard deviation of the epipolar distances, px.
    """
    to_first, a = _normalised(first)
    to_second, b = _normalised(second)
    x, y = a[:, 0], a[:, 1]
    u, v = b[:, 0], b[:, 1]
    design = np.stack([u * x, u * y, u, v * x, v * y, v, x, y, np.ones(len(x))], axis=1)
    weights = np.ones(len(x))
    fundamental = np.zeros((3, 3))
    spread = np.inf
    for _ in range(rounds):
        _, _, vt = np.linalg.svd(design * weights[:, None], full_matrices=False)
        left, values, right = np.linalg.svd(vt[-1].reshape(3, 3))
        rank2 = left @ np.diag([values[0], values[1], 0.0]) @ right
        fundamental = to_second.T @ rank2 @ to_first
        fundamental /= np.linalg.norm(fundamental)
        distance = epipolar_distance(fundamental, first, second)
        spread = max(1.4826 * float(np.median(distance)), 1e-6)
        weights = 1.0 / (1.0 + (distance / (3.0 * spread)) ** 2)
    return fundamental, spread


def learn_geometry(pixels: Floats, undistort: Sequence[Undistort], *, min_matches: int = 40) -> EpipolarGeometry | None:
    """Learn the epipolar relations from (T, C, B, 2) tracked pixels (NaN: lost); None while there are too few."""
    count = pixels.shape[1]
    fundamental = np.full((count, count, 3, 3), np.nan)
    spreads: list[float] = []
    for i in range(count):
        for j in range(i + 1, count):
            first = pixels[:, i].reshape(-1, 2)
            second = pixels[:, j].reshape(-1, 2)
            both = np.isfinite(first[:, 0]) & np.isfinite(second[:, 0])
            if both.sum() < min_matches:
                continue
            matrix, spread = fit_fundamental(undistort[i](first[both]), undistort[j](second[both]))
            fundamental[i, j] = matrix
            fundamental[j, i] = matrix.T
            spreads.append(spread)
    if not spreads:
        return None
    # Learnt from beads that fill little of the space, the matrix is good near them and vague elsewhere.
    return EpipolarGeometry(fundamental, max(1.0, 2.0 * max(spreads)), tuple(undistort))


def unchanged(pixels: Floats) -> Floats:
    """Return pixels as they are: the undistortion of a view that has none."""
    return pixels


def _normalised(points: Floats) -> tuple[Floats, Floats]:
    mean = points.mean(axis=0)
    scale = np.sqrt(2.0) / max(float(np.mean(np.linalg.norm(points - mean, axis=1))), 1e-12)
    matrix = np.array([[scale, 0.0, -scale * mean[0]], [0.0, scale, -scale * mean[1]], [0.0, 0.0, 1.0]])
    return matrix, (points - mean) * scale
