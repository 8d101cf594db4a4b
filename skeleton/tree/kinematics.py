"""Compiled forward kinematics and Jacobians of a joint tree; `skeleton.tree.joint_tree` is the door.

A joint ``j`` with parent ``p`` turns by ``Q_j(q)`` and sits at ``offset_j`` of its parent's frame:

    ``R_j = R_p Q_j(q)``,  ``x_j = x_p + R_p (offset_j + shift_j)``

Kinds: 0 fixed, 1 hinge ``exp(q a)``, 2 universal ``exp(q0 a0) exp(q1 a1)``, 3 ball ``exp([q])``,
4 free: translation (3) in the parent's frame, then a ball.
"""

from __future__ import annotations

import math

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.compiled import compiled

__all__ = ["BALL", "FIXED", "FREE", "HINGE", "UNIVERSAL", "coordinate_axes", "forward", "point_jacobian"]

FIXED, HINGE, UNIVERSAL, BALL, FREE = 0, 1, 2, 3, 4


@compiled
def rotate_by_vector(x: float, y: float, z: float, out: Floats) -> None:
    """Write the rotation ``exp([v])`` (Rodrigues) of the rotation vector (x, y, z) into ``out`` (3, 3)."""
    square = x * x + y * y + z * z
    if square < 1e-8:  # series: the closed form divides nearly zero by nearly zero
        a = 1.0 - square / 6.0 + square * square / 120.0
        b = 0.5 - square / 24.0 + square * square / 720.0
    else:
        angle = math.sqrt(square)
        a = math.sin(angle) / angle
        half = math.sin(0.5 * angle) / angle
        b = 2.0 * half * half  # (1 - cos) / angle^2 without cancellation
    _vector_polynomial(x, y, z, a, b, out)


@compiled
def left_jacobian_of_vector(x: float, y: float, z: float, out: Floats) -> None:
    """Write the left Jacobian of SO(3) at (x, y, z): ``exp(v + dv) = exp(J dv) exp(v)`` to first order."""
    square = x * x + y * y + z * z
    if square < 1e-4:
        b = 0.5 - square / 24.0 + square * square / 720.0
        c = 1.0 / 6.0 - square / 120.0 + square * square / 5040.0
    else:
        angle = math.sqrt(square)
        half = math.sin(0.5 * angle) / angle
        b = 2.0 * half * half
        c = (angle - math.sin(angle)) / (square * angle)
    _vector_polynomial(x, y, z, b, c, out)


@compiled
def _vector_polynomial(x: float, y: float, z: float, a: float, b: float, out: Floats) -> None:
    """Write ``1 + a [v]x + b [v]x^2`` of v = (x, y, z)."""
    out[0, 0] = 1.0 - b * (y * y + z * z)
    out[0, 1] = b * x * y - a * z
    out[0, 2] = b * x * z + a * y
    out[1, 0] = b * x * y + a * z
    out[1, 1] = 1.0 - b * (x * x + z * z)
    out[1, 2] = b * y * z - a * x
    out[2, 0] = b * x * z - a * y
    out[2, 1] = b * y * z + a * x
    out[2, 2] = 1.0 - b * (x * x + y * y)


@compiled
def _multiply(a: Floats, b: Floats, out: Floats) -> None:
    for i in range(3):
        for j in range(3):
            out[i, j] = a[i, 0] * b[0, j] + a[i, 1] * b[1, j] + a[i, 2] * b[2, j]


@compiled
def forward(
    coordinates: Floats,
    parents: Ints,
    kinds: Ints,
    offsets: Floats,
    axes: Floats,
    starts: Ints,
    shifts: Ints,
    positions: Floats,
    rotations: Floats,
) -> None:
    """Fill ``positions`` (T, J, 3) and ``rotations`` (T, J, 3, 3), world from segment, from coordinates (T, D)."""
    turn = np.empty((3, 3))
    second = np.empty((3, 3))
    both = np.empty((3, 3))
    local = np.empty(3)
    for t in range(coordinates.shape[0]):
        for j in range(parents.size):
            p = parents[j]
            q = starts[j]
            kind = kinds[j]
            for i in range(3):
                local[i] = offsets[j, i]
            if kind == FREE:
                for i in range(3):
                    local[i] += coordinates[t, q + i]
                q += 3
            if shifts[j] >= 0:
                for i in range(3):
                    local[i] += coordinates[t, shifts[j] + i]
            if p < 0:
                for i in range(3):
                    positions[t, j, i] = local[i]
            else:
                for i in range(3):
                    positions[t, j, i] = (
                        positions[t, p, i]
                        + rotations[t, p, i, 0] * local[0]
                        + rotations[t, p, i, 1] * local[1]
                        + rotations[t, p, i, 2] * local[2]
                    )
            if kind == FIXED:
                for i in range(3):
                    for k in range(3):
                        turn[i, k] = 1.0 if i == k else 0.0
            elif kind == HINGE:
                angle = coordinates[t, q]
                rotate_by_vector(angle * axes[j, 0, 0], angle * axes[j, 0, 1], angle * axes[j, 0, 2], turn)
            elif kind == UNIVERSAL:
                angle = coordinates[t, q]
                rotate_by_vector(angle * axes[j, 0, 0], angle * axes[j, 0, 1], angle * axes[j, 0, 2], both)
                angle = coordinates[t, q + 1]
                rotate_by_vector(angle * axes[j, 1, 0], angle * axes[j, 1, 1], angle * axes[j, 1, 2], second)
                _multiply(both, second, turn)
            else:
                rotate_by_vector(coordinates[t, q], coordinates[t, q + 1], coordinates[t, q + 2], turn)
            if p < 0:
                for i in range(3):
                    for k in range(3):
                        rotations[t, j, i, k] = turn[i, k]
            else:
                _multiply(rotations[t, p], turn, rotations[t, j])


@compiled
def coordinate_axes(
    coordinates: Floats,
    rotations: Floats,
    parents: Ints,
    kinds: Ints,
    axes: Floats,
    starts: Ints,
    shifts: Ints,
    out: Floats,
) -> None:
    """Fill ``out`` (T, D, 3): world axis that each coordinate turns about or moves along, at unit rate.

    Rotation vector: ``omega = R_p J_left(v) dv``; hinge: ``R_p a``; universal: ``R_p a0`` and
    ``R_p exp(q0 a0) a1``; translation and shift: columns of ``R_p``.
    """
    base = np.empty((3, 3))
    local = np.empty((3, 3))
    for t in range(coordinates.shape[0]):
        for j in range(parents.size):
            p = parents[j]
            for i in range(3):
                for k in range(3):
                    if p < 0:
                        base[i, k] = 1.0 if i == k else 0.0
                    else:
                        base[i, k] = rotations[t, p, i, k]
            q = starts[j]
            kind = kinds[j]
            if kind == FREE:
                for k in range(3):
                    for i in range(3):
                        out[t, q + k, i] = base[i, k]
                q += 3
            if shifts[j] >= 0:
                for k in range(3):
                    for i in range(3):
                        out[t, shifts[j] + k, i] = base[i, k]
            if kind in (HINGE, UNIVERSAL):
                for i in range(3):
                    out[t, q, i] = base[i, 0] * axes[j, 0, 0] + base[i, 1] * axes[j, 0, 1] + base[i, 2] * axes[j, 0, 2]
                if kind == UNIVERSAL:
                    angle = coordinates[t, q]
                    rotate_by_vector(angle * axes[j, 0, 0], angle * axes[j, 0, 1], angle * axes[j, 0, 2], local)
                    for i in range(3):
                        total = 0.0
                        for k in range(3):
                            turned = (
                                local[k, 0] * axes[j, 1, 0] + local[k, 1] * axes[j, 1, 1] + local[k, 2] * axes[j, 1, 2]
                            )
                            total += base[i, k] * turned
                        out[t, q + 1, i] = total
            elif kind in (BALL, FREE):
                left_jacobian_of_vector(coordinates[t, q], coordinates[t, q + 1], coordinates[t, q + 2], local)
                for k in range(3):
                    for i in range(3):
                        out[t, q + k, i] = (
                            base[i, 0] * local[0, k] + base[i, 1] * local[1, k] + base[i, 2] * local[2, k]
                        )


@compiled
def point_jacobian(
    points: Floats,
    segments: Ints,
    positions: Floats,
    world_axes: Floats,
    parents: Ints,
    kinds: Ints,
    starts: Ints,
    shifts: Ints,
    counts: Ints,
    out: Floats,
) -> None:
    """Fill ``out`` (T, P, 3, D), zero on entry: derivative of world points (T, P, 3) riding on segments (P,)."""
    for t in range(points.shape[0]):
        for n in range(points.shape[1]):
            j = segments[n]
            while j >= 0:
                q = starts[j]
                if kinds[j] == FREE:
                    for k in range(3):
                        for i in range(3):
                            out[t, n, i, q + k] = world_axes[t, q + k, i]
                    q += 3
                if shifts[j] >= 0:
                    for k in range(shifts[j], shifts[j] + 3):
                        for i in range(3):
                            out[t, n, i, k] = world_axes[t, k, i]
                x = points[t, n, 0] - positions[t, j, 0]
                y = points[t, n, 1] - positions[t, j, 1]
                z = points[t, n, 2] - positions[t, j, 2]
                for k in range(q, q + counts[j]):
                    a = world_axes[t, k, 0]
                    b = world_axes[t, k, 1]
                    c = world_axes[t, k, 2]
                    out[t, n, 0, k] = b * z - c * y
                    out[t, n, 1, k] = c * x - a * z
                    out[t, n, 2, k] = a * y - b * x
                j = parents[j]
