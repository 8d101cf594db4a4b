"""Compiled logarithm of a rotation, its derivative, small products, and means of many rotations, for loops over quads.

The products are loops over arrays that exist: in a compiled loop `@` makes an array and calls a library for each.
"""

from __future__ import annotations

import math

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.compiled import compiled
from calibration.geometry.transforms import rotation_from_vector

__all__ = [
    "dot3",
    "inverse_left_jacobian",
    "left_jacobian",
    "mean_rotations",
    "rotation_log",
    "times3",
    "times_transposed3",
    "transposed_times3",
]


@compiled
def dot3(a: Floats, b: Floats) -> float:
    """Return the product of two vectors (3,)."""
    return float(a[0] * b[0] + a[1] * b[1] + a[2] * b[2])


@compiled
def times3(a: Floats, b: Floats, out: Floats) -> None:
    """Write the product a b of two (3, 3)."""
    for i in range(3):
        for j in range(3):
            out[i, j] = a[i, 0] * b[0, j] + a[i, 1] * b[1, j] + a[i, 2] * b[2, j]


@compiled
def times_transposed3(a: Floats, b: Floats, out: Floats) -> None:
    """Write the product a b^T of two (3, 3)."""
    for i in range(3):
        for j in range(3):
            out[i, j] = a[i, 0] * b[j, 0] + a[i, 1] * b[j, 1] + a[i, 2] * b[j, 2]


@compiled
def transposed_times3(a: Floats, b: Floats, out: Floats) -> None:
    """Write the product a^T b of two (3, 3)."""
    for i in range(3):
        for j in range(3):
            out[i, j] = a[0, i] * b[0, j] + a[1, i] * b[1, j] + a[2, i] * b[2, j]


@compiled
def rotation_log(r: Floats) -> tuple[float, float, float]:
    """Return the rotation vector, of length 0 to pi, of a rotation matrix (3, 3), by its quaternion's largest part."""
    d0, d1, d2 = r[0, 0], r[1, 1], r[2, 2]
    a, b, c = r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]
    s0, s1, s2, s3 = 1.0 + d0 + d1 + d2, 1.0 + d0 - d1 - d2, 1.0 - d0 + d1 - d2, 1.0 - d0 - d1 + d2
    if s0 >= s1 and s0 >= s2 and s0 >= s3:
        w, x, y, z = s0, a, b, c
    elif s1 >= s2 and s1 >= s3:
        w, x, y, z = a, s1, r[0, 1] + r[1, 0], r[0, 2] + r[2, 0]
    elif s2 >= s3:
        w, x, y, z = b, r[0, 1] + r[1, 0], s2, r[1, 2] + r[2, 1]
    else:
        w, x, y, z = c, r[0, 2] + r[2, 0], r[1, 2] + r[2, 1], s3
    if w < 0.0:
        w, x, y, z = -w, -x, -y, -z
    sine = math.sqrt(x * x + y * y + z * z)
    scale = 2.0 / w if sine < 1e-12 * w else 2.0 * math.atan2(sine, w) / sine
    return scale * x, scale * y, scale * z


@compiled
def left_jacobian(x: float, y: float, z: float, out: Floats) -> None:
    """Fill the (3, 3) left Jacobian of the exponential at a rotation vector."""
    square = x * x + y * y + z * z
    angle = math.sqrt(square)
    if angle < 1e-4:
        second = 0.5 - square / 24.0
    else:
        sine = math.sin(0.5 * angle)
        second = 2.0 * sine * sine / square
    if angle < 0.3:  # the difference cancels
        third = 1.0 / 6.0 - square / 120.0 + square**2 / 5040.0 - square**3 / 362880.0 + square**4 / 39916800.0
    else:
        third = (angle - math.sin(angle)) / (angle * square)
    # 1 + b K + c K^2, with K^2 = v v^T - |v|^2
    out[0, 0] = 1.0 + third * (x * x - square)
    out[1, 1] = 1.0 + third * (y * y - square)
    out[2, 2] = 1.0 + third * (z * z - square)
    out[0, 1], out[1, 0] = -second * z + third * x * y, second * z + third * x * y
    out[0, 2], out[2, 0] = second * y + third * x * z, -second * y + third * x * z
    out[1, 2], out[2, 1] = -second * x + third * y * z, second * x + third * y * z


@compiled
def inverse_left_jacobian(x: float, y: float, z: float, out: Floats) -> None:
    """Fill the (3, 3) inverse of the left Jacobian of the exponential at a rotation vector."""
    square = x * x + y * y + z * z
    angle = math.sqrt(square)
    if angle < 0.05:
        factor = 1.0 / 12.0 + square / 720.0 + square * square / 30240.0
    else:
        factor = (1.0 - angle / (2.0 * math.tan(0.5 * angle))) / square
    # 1 - K / 2 + f K^2, with K^2 = v v^T - |v|^2
    out[0, 0] = 1.0 + factor * (x * x - square)
    out[1, 1] = 1.0 + factor * (y * y - square)
    out[2, 2] = 1.0 + factor * (z * z - square)
    out[0, 1], out[1, 0] = 0.5 * z + factor * x * y, -0.5 * z + factor * x * y
    out[0, 2], out[2, 0] = -0.5 * y + factor * x * z, 0.5 * y + factor * x * z
    out[1, 2], out[2, 1] = 0.5 * x + factor * y * z, -0.5 * x + factor * y * z


def mean_rotations(rotations: Floats) -> Floats:
    """Return the geodesic means (K, 3, 3) of thousands of rotations (n, K, 3, 3), as `mean_rotation` of transforms."""
    rotations = np.ascontiguousarray(rotations, np.float64)
    u, _, vt = np.linalg.svd(rotations.mean(axis=0))
    u[..., 2] *= np.linalg.det(u @ vt)[..., None]
    means = u @ vt
    for _ in range(50):
        steps = _mean_logs(np.ascontiguousarray(means), rotations)
        means = means @ rotation_from_vector(steps)
        if np.abs(steps).max(initial=0.0) < 1e-14:
            break
    return np.asarray(means)


@compiled
def _mean_logs(means: Floats, rotations: Floats) -> Floats:
    """Mean rotation vectors (K, 3) of rotations (n, K, 3, 3) seen from their means (K, 3, 3)."""
    steps = np.zeros((len(means), 3))
    seen = np.empty((3, 3))
    for n in range(len(rotations)):
        for k in range(len(means)):
            for i in range(3):
                for j in range(3):
                    total = 0.0
                    for m in range(3):
                        total += means[k, m, i] * rotations[n, k, m, j]
                    seen[i, j] = total
            x, y, z = rotation_log(seen)
            steps[k, 0] += x
            steps[k, 1] += y
            steps[k, 2] += z
    return steps / len(rotations)
