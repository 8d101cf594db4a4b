"""Rotations, rigid and similarity transforms, with logarithms that stay exact near 0 and near pi.

Every function broadcasts over leading axes. A transform is named target-from-source, so that
``camera_from_world @ world_from_board`` reads as ``camera_from_board``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError, SolveError

__all__ = [
    "RigidTransform",
    "SimilarityTransform",
    "cross_matrix",
    "fit_rigid",
    "fit_similarity",
    "left_jacobian",
    "left_jacobian_inverse",
    "mean_rigid",
    "mean_rotation",
    "quaternion_from_rotation",
    "rotation_from_quaternion",
    "rotation_from_vector",
    "smallest_rotation",
    "vector_from_rotation",
]

_SMALL = 1e-4  # below this angle the series of sin(a)/a and its kin are exact to the last bit


def cross_matrix(vector: ArrayLike) -> Floats:
    """Return the matrix (..., 3, 3) whose product with w is ``vector x w``."""
    v = np.asarray(vector, dtype=np.float64)
    matrix = np.zeros((*v.shape, 3))
    matrix[..., 0, 1], matrix[..., 0, 2] = -v[..., 2], v[..., 1]
    matrix[..., 1, 0], matrix[..., 1, 2] = v[..., 2], -v[..., 0]
    matrix[..., 2, 0], matrix[..., 2, 1] = -v[..., 1], v[..., 0]
    return matrix


def _coefficients(angle: Floats) -> tuple[Floats, Floats, Floats]:
    """Return sin(a)/a, (1-cos a)/a^2 and (a-sin a)/a^3, by series where the quotients would cancel."""
    small = angle < _SMALL
    a = np.where(small, 1.0, angle)
    a2 = angle * angle
    first = np.where(small, 1 - a2 / 6, np.sin(a) / a)
    second = np.where(small, 0.5 - a2 / 24, 2 * np.sin(a / 2) ** 2 / (a * a))
    # a - sin(a) cancels long before sin(a)/a does, so its series reaches further out
    modest = angle < 0.3
    b = np.where(modest, 1.0, angle)
    series = 1 / 6 - a2 / 120 + a2**2 / 5040 - a2**3 / 362880 + a2**4 / 39916800
    third = np.where(modest, series, (b - np.sin(b)) / b**3)
    return first, second, third


def rotation_from_vector(vector: ArrayLike) -> Floats:
    """Return the rotation matrix (..., 3, 3) of a rotation vector (..., 3), radians (Rodrigues)."""
    v = np.asarray(vector, dtype=np.float64)
    first, second, _ = _coefficients(np.linalg.norm(v, axis=-1))
    k = cross_matrix(v)
    return np.asarray(np.eye(3) + first[..., None, None] * k + second[..., None, None] * (k @ k))


def smallest_rotation(source: Floats, target: Floats) -> Floats:
    """Return the smallest rotation (3, 3) that takes one direction to another."""
    a, b = source / np.linalg.norm(source), target / np.linalg.norm(target)
    axis = np.cross(a, b)
    sine = float(np.linalg.norm(axis))
    if sine < 1e-12:
        # Parallel: nothing to turn; opposite: half a turn about any axis across.
        across = np.cross(a, np.eye(3)[int(np.argmin(np.abs(a)))])
        return np.eye(3) if a @ b > 0 else rotation_from_vector(np.pi * across / np.linalg.norm(across))
    return rotation_from_vector(axis / sine * np.arctan2(sine, float(a @ b)))


def quaternion_from_rotation(rotation: ArrayLike) -> Floats:
    """Return the unit quaternion (..., 4), wxyz with w >= 0, of a rotation matrix (..., 3, 3).

    The largest of the four components is found first and the others divided by it, so that no
    half turn loses digits.
    """
    r = np.asarray(rotation, dtype=np.float64)
    trace = np.trace(r, axis1=-2, axis2=-1)
    d0, d1, d2 = r[..., 0, 0], r[..., 1, 1], r[..., 2, 2]
    squares = np.stack([1 + trace, 1 + 2 * d0 - trace, 1 + 2 * d1 - trace, 1 + 2 * d2 - trace], axis=-1)
    a, b, c = r[..., 2, 1] - r[..., 1, 2], r[..., 0, 2] - r[..., 2, 0], r[..., 1, 0] - r[..., 0, 1]
    d, e, f = r[..., 0, 1] + r[..., 1, 0], r[..., 0, 2] + r[..., 2, 0], r[..., 1, 2] + r[..., 2, 1]
    s0, s1, s2, s3 = (squares[..., i] for i in range(4))
    candidates = np.stack(
        [
            np.stack([s0, a, b, c], axis=-1),
            np.stack([a, s1, d, e], axis=-1),
            np.stack([b, d, s2, f], axis=-1),
            np.stack([c, e, f, s3], axis=-1),
        ],
        axis=-2,
    )
    best = np.argmax(squares, axis=-1)
    q = np.take_along_axis(candidates, best[..., None, None], axis=-2)[..., 0, :]
    q = q / np.linalg.norm(q, axis=-1, keepdims=True)
    return np.asarray(np.where(q[..., :1] < 0, -q, q))


def rotation_from_quaternion(quaternion: ArrayLike) -> Floats:
    """Return the rotation matrix (..., 3, 3) of a quaternion (..., 4) wxyz of any length but 0."""
    q = np.asarray(quaternion, dtype=np.float64)
    q = q / np.linalg.norm(q, axis=-1, keepdims=True)
    k = cross_matrix(q[..., 1:])
    return np.asarray(np.eye(3) + 2 * q[..., :1, None] * k + 2 * (k @ k))


def vector_from_rotation(rotation: ArrayLike) -> Floats:
    """Return the rotation vector (..., 3), of length 0 to pi, of a rotation matrix (..., 3, 3)."""
    q = quaternion_from_rotation(rotation)
    half_sine = np.linalg.norm(q[..., 1:], axis=-1, keepdims=True)
    angle = 2 * np.arctan2(half_sine, q[..., :1])
    tiny = half_sine < 1e-12
    return np.asarray(q[..., 1:] * np.where(tiny, 2.0, angle / np.where(tiny, 1.0, half_sine)))


def left_jacobian(vector: ArrayLike) -> Floats:
    """Return J (..., 3, 3) with exp(v + dv) = exp(J dv) exp(v) to first order."""
    v = np.asarray(vector, dtype=np.float64)
    _, second, third = _coefficients(np.linalg.norm(v, axis=-1))
    k = cross_matrix(v)
    return np.asarray(np.eye(3) + second[..., None, None] * k + third[..., None, None] * (k @ k))


def left_jacobian_inverse(vector: ArrayLike) -> Floats:
    """Return the inverse (..., 3, 3) of `left_jacobian`; defined for angles below 2 pi."""
    v = np.asarray(vector, dtype=np.float64)
    angle = np.linalg.norm(v, axis=-1)
    modest = angle < 0.05
    a = np.where(modest, 1.0, angle)
    series = 1 / 12 + angle**2 / 720 + angle**4 / 30240
    factor = np.where(modest, series, (1 - a / (2 * np.tan(a / 2))) / a**2)
    k = cross_matrix(v)
    return np.asarray(np.eye(3) - 0.5 * k + factor[..., None, None] * (k @ k))


def mean_rotation(rotations: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """Return the geodesic mean (..., 3, 3) of rotations (n, ..., 3, 3): the one whose logarithms to all sum to zero."""
    r = np.asarray(rotations, dtype=np.float64)
    if r.ndim < 3 or r.shape[-2:] != (3, 3) or len(r) == 0:
        raise InputError(f"mean rotation: wanted at least one matrix as (n, ..., 3, 3), got {r.shape}")
    w = np.ones(len(r)) if weights is None else np.asarray(weights, dtype=np.float64)
    w = w / w.sum()
    u, _, vt = np.linalg.svd(np.einsum("n,n...->...", w, r))  # chordal mean: a start in the right basin
    u[..., 2] *= np.linalg.det(u @ vt)[..., None]
    mean = u @ vt
    for _ in range(50):
        step = np.einsum("n,n...->...", w, vector_from_rotation(np.swapaxes(mean, -1, -2) @ r))
        mean = mean @ rotation_from_vector(step)
        if np.linalg.norm(step, axis=-1).max() < 1e-14:
            break
    return np.asarray(mean)


@dataclass(frozen=True, eq=False)
class RigidTransform:
    """A rigid motion ``target = rotation @ source + translation``.

    Attributes:
        rotation: (..., 3, 3).
        translation: (..., 3), mm.
    """

    rotation: Floats
    translation: Floats

    @staticmethod
    def identity() -> RigidTransform:
        """Return the motion that moves nothing."""
        return RigidTransform(np.eye(3), np.zeros(3))

    @staticmethod
    def from_vectors(rotation_vector: ArrayLike, translation: ArrayLike) -> RigidTransform:
        """Build from a rotation vector (..., 3) and a translation (..., 3)."""
        return RigidTransform(rotation_from_vector(rotation_vector), np.asarray(translation, dtype=np.float64))

    @staticmethod
    def exp(twist: ArrayLike) -> RigidTransform:
        """Return the motion of a twist (..., 6): rotation vector, then translational part (SE(3) exponential)."""
        xi = np.asarray(twist, dtype=np.float64)
        moved = (left_jacobian(xi[..., :3]) @ xi[..., 3:, None])[..., 0]
        return RigidTransform(rotation_from_vector(xi[..., :3]), moved)

    def log(self) -> Floats:
        """Return the twist (..., 6) of this motion, the inverse of `exp`."""
        v = vector_from_rotation(self.rotation)
        u = (left_jacobian_inverse(v) @ self.translation[..., None])[..., 0]
        return np.concatenate([v, u], axis=-1)

    def apply(self, points: ArrayLike) -> Floats:
        """Move points (..., n, 3) by this transform (..., ), or (..., 3) by a single one."""
        p = np.asarray(points, dtype=np.float64)
        if self.rotation.ndim == 2:
            return np.asarray(p @ self.rotation.T + self.translation)
        return np.asarray(p @ np.swapaxes(self.rotation, -1, -2) + self.translation[..., None, :])

    def inverse(self) -> RigidTransform:
        """Return the motion back."""
        back = np.swapaxes(self.rotation, -1, -2)
        return RigidTransform(back, -(back @ self.translation[..., None])[..., 0])

    def __matmul__(self, other: RigidTransform) -> RigidTransform:
        """Return the motion that applies ``other`` first, then this one."""
        moved = (self.rotation @ other.translation[..., None])[..., 0] + self.translation
        return RigidTransform(self.rotation @ other.rotation, moved)

    def matrix(self) -> Floats:
        """Return the homogeneous matrix (..., 4, 4)."""
        out = np.zeros((*self.translation.shape[:-1], 4, 4))
        out[..., :3, :3], out[..., :3, 3], out[..., 3, 3] = self.rotation, self.translation, 1
        return out


@dataclass(frozen=True, eq=False)
class SimilarityTransform:
    """A similarity ``target = scale * rotation @ source + translation``.

    Attributes:
        scale: positive factor.
        rotation: (3, 3).
        translation: (3,), mm.
    """

    scale: float
    rotation: Floats
    translation: Floats

    def apply(self, points: ArrayLike) -> Floats:
        """Move points (..., 3)."""
        p = np.asarray(points, dtype=np.float64)
        return np.asarray(self.scale * p @ self.rotation.T + self.translation)

    def inverse(self) -> SimilarityTransform:
        """Return the similarity back."""
        back = self.rotation.T
        return SimilarityTransform(1 / self.scale, back, -(back @ self.translation) / self.scale)

    def __matmul__(self, other: SimilarityTransform) -> SimilarityTransform:
        """Return the similarity that applies ``other`` first, then this one."""
        return SimilarityTransform(
            self.scale * other.scale, self.rotation @ other.rotation, self.apply(other.translation)
        )


def mean_rigid(transforms: RigidTransform, weights: ArrayLike | None = None) -> RigidTransform:
    """Return the mean of stacked motions: geodesic mean rotation, arithmetic mean translation."""
    rotation = mean_rotation(transforms.rotation, weights)
    w = None if weights is None else np.asarray(weights, dtype=np.float64)
    return RigidTransform(rotation, np.average(transforms.translation, axis=0, weights=w))


def fit_similarity(source: ArrayLike, target: ArrayLike, weights: ArrayLike | None = None) -> SimilarityTransform:
    """Return the similarity that brings ``source`` (n, 3) nearest to ``target`` (n, 3), least squares (Umeyama)."""
    return _fit(source, target, weights, scaled=True)


def fit_rigid(source: ArrayLike, target: ArrayLike, weights: ArrayLike | None = None) -> RigidTransform:
    """Return the rigid motion that brings ``source`` (n, 3) nearest to ``target`` (n, 3), least squares (Kabsch)."""
    fit = _fit(source, target, weights, scaled=False)
    return RigidTransform(fit.rotation, fit.translation)


def _fit(source: ArrayLike, target: ArrayLike, weights: ArrayLike | None, *, scaled: bool) -> SimilarityTransform:
    a, b = np.asarray(source, dtype=np.float64), np.asarray(target, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 2 or a.shape[1] != 3:
        raise InputError(f"point fit: wanted two (n, 3) sets of equal length, got {a.shape} and {b.shape}")
    w = np.ones(len(a)) if weights is None else np.asarray(weights, dtype=np.float64)
    seen = np.isfinite(a).all(1) & np.isfinite(b).all(1) & (w > 0)
    if seen.sum() < 3:
        raise SolveError(f"point fit: wanted at least 3 common points, got {int(seen.sum())}")
    a, b, w = a[seen], b[seen], w[seen] / w[seen].sum()
    ca, cb = w @ a, w @ b
    u, s, vt = np.linalg.svd((b - cb).T @ (w[:, None] * (a - ca)))
    if s[1] <= 1e-12 * max(s[0], 1e-300):
        raise SolveError("point fit: the points lie on one line, which leaves the turn about it open")
    sign = np.array([1, 1, np.sign(np.linalg.det(u @ vt))])
    rotation = (u * sign) @ vt
    spread = float(w @ ((a - ca) ** 2).sum(1))
    scale = float(s @ sign) / spread if scaled else 1.0
    return SimilarityTransform(scale, rotation, cb - scale * rotation @ ca)
