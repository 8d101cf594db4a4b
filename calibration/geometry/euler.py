"""Rotations from and to angles about named axes, in the order in which they are written."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError

__all__ = ["angles_from_rotation", "rotation_from_angles"]


def _turn(axis: str, angle: Floats) -> Floats:
    first, second = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
    turn = np.zeros((*angle.shape, 3, 3))
    turn[..., range(3), range(3)] = 1.0
    cosine, sine = np.cos(angle), np.sin(angle)
    turn[..., first, first], turn[..., first, second] = cosine, -sine
    turn[..., second, first], turn[..., second, second] = sine, cosine
    return turn


def rotation_from_angles(angles: ArrayLike, axes: str) -> Floats:
    """Multiply turns about moving axes, left to right: ``"zyx"`` gives ``Rz(a0) Ry(a1) Rx(a2)``.

    Args:
        angles: (..., len(axes)) rad.
        axes: letters of x, y, z; any number of them, none gives the identity.

    Returns:
        (..., 3, 3) rotations.
    """
    values = np.asarray(angles, dtype=np.float64)
    if set(axes) - set("xyz") or values.shape[-1] != len(axes):
        raise InputError(f"angles about '{axes}' must be (..., {len(axes)}), got {values.shape}")
    rotation = np.broadcast_to(np.eye(3), (*values.shape[:-1], 3, 3)).copy()
    for place, axis in enumerate(axes):
        rotation = rotation @ _turn(axis, values[..., place])
    return rotation


def angles_from_rotation(rotation: ArrayLike, axes: str) -> Floats:
    """Split rotations into three turns about distinct moving axes (the inverse of `rotation_from_angles`).

    At gimbal lock (the middle angle at 90 degrees) the last angle is set to 0.

    Args:
        rotation: (..., 3, 3).
        axes: a permutation of "xyz".

    Returns:
        (..., 3) rad; the middle angle within +-90 degrees.
    """
    if sorted(axes) != ["x", "y", "z"]:
        raise InputError(f"three angles want a permutation of 'xyz', got '{axes}'")
    matrix = np.asarray(rotation, dtype=np.float64)
    i, j, k = ("xyz".index(axis) for axis in axes)
    sign = 1.0 if (i, j, k) in ((0, 1, 2), (1, 2, 0), (2, 0, 1)) else -1.0
    # R = Ri(a) Rj(b) Rk(c): its entry (i, k) is sign * sin b, its row i and column k hold c and a.
    middle_sine = np.clip(sign * matrix[..., i, k], -1.0, 1.0)
    middle_cosine = np.hypot(matrix[..., i, i], matrix[..., i, j])
    locked = middle_cosine < 1e-9
    first = np.arctan2(-sign * matrix[..., j, k], matrix[..., k, k])
    last = np.arctan2(-sign * matrix[..., i, j], matrix[..., i, i])
    alone = np.arctan2(sign * matrix[..., k, j], matrix[..., j, j])
    return np.stack(
        [np.where(locked, alone, first), np.arctan2(middle_sine, middle_cosine), np.where(locked, 0.0, last)],
        axis=-1,
    )
