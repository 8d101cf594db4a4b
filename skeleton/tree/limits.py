"""Joint limits: asymmetric ellipsoids of rotation vectors, and the closest valid rotation.

Gilles, Reveret, Pai 2010: a rotation vector ``r`` is valid if ``(x/a)^2 + (y/b)^2 + (z/c)^2 <= 1`` with the half
axes of the octant that holds it (six limits). The body is convex and smooth across octants (at ``x = 0`` the
normal has no x part on either side), so the closest point of an outside ``r`` lies in its own octant:
``y_i = a_i^2 r_i / (l + a_i^2)`` where ``l > 0`` solves ``sum (a_i r_i / (l + a_i^2))^2 = 1``.
"""

from __future__ import annotations

import math

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.compiled import compiled

__all__ = ["closest_in_ellipsoid", "project_to_ellipsoid"]

#: Half axes above this are "free": in the kernel they act as this many radians.
FREE_AXIS = 1e6


@compiled
def _project(vectors: Floats, lower: Floats, upper: Floats) -> Floats:
    out = vectors.copy()
    half = np.empty(3)
    for n in range(vectors.shape[0]):
        inside = 0.0
        for i in range(3):
            half[i] = min(upper[i] if vectors[n, i] >= 0.0 else -lower[i], FREE_AXIS)
            inside += (vectors[n, i] / half[i]) ** 2
        if inside <= 1.0:
            continue
        # Newton from 0 on a convex falling function: climbs to the root from the left, never past it.
        shift = 0.0
        for _ in range(60):
            value = -1.0
            slope = 0.0
            for i in range(3):
                bottom = shift + half[i] * half[i]
                part = half[i] * vectors[n, i] / bottom
                value += part * part
                slope -= 2.0 * part * part / bottom
            step = -value / slope
            shift += step
            if abs(step) <= 1e-15 * (1.0 + shift):
                break
        for i in range(3):
            out[n, i] = half[i] * half[i] * vectors[n, i] / (shift + half[i] * half[i])
    return out


def closest_in_ellipsoid(vectors: Floats, lower: Floats, upper: Floats) -> Floats:
    """Return the closest points (N, 3) to ``vectors`` (N, 3) inside the six-limit ellipsoid, as plain vectors."""
    return _project(np.array(vectors, dtype=np.float64), lower, upper)


def project_to_ellipsoid(vectors: Floats, lower: Floats, upper: Floats) -> Floats:
    """Return the valid rotation vectors (N, 3) nearest to ``vectors`` (N, 3), rad.

    ``r`` and ``-(2 pi - |r|) r/|r|`` are the same rotation (the paper prints ``-(pi + |r|)``, which is not);
    both are projected and the nearer projection is kept.
    """
    first = closest_in_ellipsoid(vectors, lower, upper)
    angle = np.linalg.norm(vectors, axis=1)
    far = angle > 1e-9
    other = vectors.copy()
    other[far] *= ((angle[far] - 2.0 * math.pi) / angle[far])[:, None]
    second = closest_in_ellipsoid(other, lower, upper)
    nearer = far & (np.linalg.norm(second - other, axis=1) < np.linalg.norm(first - vectors, axis=1))
    return np.where(nearer[:, None], second, first)
