"""Neighbouring quads keep their rest places relative to each other, softly.

For neighbours a and b with world rotations R and centres c, the residual is how far the corners of b stand from where
a would carry them rigidly, and the reverse, plus the change of the distance between the centres (the bone's length,
which a bending joint keeps though its corners move)::

    bend_ab   = (c_b - c_a) - 1/2 (R_a + R_b) d_ab        d_ab the rest offset in rest axes, R relative to rest
    length_ab = |c_b - c_a| - |d_ab|
"""

from __future__ import annotations

import numpy as np

from calibration.arrays import Floats
from tracking.quads import QuadPose, QuadRig

__all__ = ["rigidity_term"]


def rigidity_term(
    rig: QuadRig,
    pose: QuadPose,
    *,
    bend: float = 0.3,
    length: float = 1.0,
    twist: float = 0.1,
    derivatives: bool = True,
) -> tuple[Floats, Floats]:
    """Residuals, mm, of neighbours that leave their rest places, and their derivative by the quads.

    Args:
        rig: quads at rest.
        pose: their pose.
        bend: weight of the offset between centres, seen from the mean of both frames.
        length: weight of the bone's length.
        twist: weight of the relative rotation, as the displacement of a point one bone length away.
        derivatives: False leaves the Jacobian empty.

    Returns:
        residual: (7 E,) mm, for E pairs of neighbours.
        jacobian: (7 E, 6 Q).
    """
    pairs = rig.neighbours
    first, second = pairs[:, 0], pairs[:, 1]
    rest_offset = rig.centres[second] - rig.centres[first]
    rest_length = np.maximum(np.linalg.norm(rest_offset, axis=1), 1e-9)
    turn = pose.rotations @ rig.rotations.transpose(0, 2, 1)  # rest to now, world axes
    offset = pose.centres[second] - pose.centres[first]
    span = np.maximum(np.linalg.norm(offset, axis=1), 1e-9)
    carried_first = np.einsum("eij,ej->ei", turn[first], rest_offset)
    carried_second = np.einsum("eij,ej->ei", turn[second], rest_offset)
    stretch = span - rest_length
    lean = offset - 0.5 * (carried_first + carried_second)
    relative = turn[second] @ turn[first].transpose(0, 2, 1)
    # Half the antisymmetric part: sin of the angle, smooth everywhere.
    vector = 0.5 * np.stack(
        [
            relative[:, 2, 1] - relative[:, 1, 2],
            relative[:, 0, 2] - relative[:, 2, 0],
            relative[:, 1, 0] - relative[:, 0, 1],
        ],
        axis=1,
    )
    arm = twist * rest_length[:, None]
    residual = np.concatenate([length * stretch[:, None], bend * lean, arm * vector], axis=1)
    if not derivatives:
        return residual.ravel(), np.empty((0, 6 * len(rig)))
    count = len(pairs)
    jacobian = np.zeros((count, 7, len(rig), 6))
    rows = np.arange(count)
    direction = offset / span[:, None]
    jacobian[rows, 0, second, 3:] = length * direction
    jacobian[rows, 0, first, 3:] = -length * direction
    identity = np.eye(3)
    for axis in range(3):
        jacobian[rows, 1 + axis, second, 3 + axis] = bend
        jacobian[rows, 1 + axis, first, 3 + axis] = -bend
        # d(R d) = omega x (R d)
        jacobian[rows, 1 + axis, first, :3] -= 0.5 * bend * np.cross(carried_first, identity[axis])
        jacobian[rows, 1 + axis, second, :3] -= 0.5 * bend * np.cross(carried_second, identity[axis])
    # relative X = exp(w_b) B A^T exp(-w_a); [w] X + X^T [w] = [(tr X - X) w], X [w] + [w] X^T = [(tr X - X^T) w]
    trace = np.trace(relative, axis1=1, axis2=2)
    left = 0.5 * (trace[:, None, None] * identity - relative)
    right = 0.5 * (trace[:, None, None] * identity - relative.transpose(0, 2, 1))
    for axis in range(3):
        jacobian[rows, 4 + axis, second, :3] = arm * left[:, axis]
        jacobian[rows, 4 + axis, first, :3] = -arm * right[:, axis]
    return residual.ravel(), jacobian.reshape(7 * count, -1)
