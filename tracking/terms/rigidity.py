"""Neighbouring quads keep their rest places relative to each other, softly.

For neighbours a and b with world rotations R and centres c, the residual is how far the corners of b stand from where
a would carry them rigidly, and the reverse, plus the change of the distance between the centres (the bone's length,
which a bending joint keeps though its corners move)::

    bend_ab   = (c_b - c_a) - 1/2 (R_a + R_b) d_ab        d_ab the rest offset in rest axes, R relative to rest
    length_ab = |c_b - c_a| - |d_ab|
"""

from __future__ import annotations

import math

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.compiled import compiled
from calibration.geometry.rotation_kernels import dot3, times_transposed3
from tracking.quads.oriented_quads import QuadPose, QuadRig
from tracking.terms.pair_term import PairTerm

__all__ = ["rigidity_term"]


def rigidity_term(
    rig: QuadRig, pose: QuadPose, *, bend: float = 0.3, length: float = 1.0, twist: float = 0.1
) -> PairTerm:
    """Seven residuals, mm, of each pair of neighbours that leaves its rest place.

    Args:
        rig: quads at rest.
        pose: their pose.
        bend: weight of the offset between centres, seen from the mean of both frames.
        length: weight of the bone's length.
        twist: weight of the relative rotation, as the displacement of a point one bone length away.
    """
    pairs = rig.neighbours
    residual, jacobian = np.zeros((len(pairs), 7)), np.zeros((len(pairs), 7, 12))
    _rigidity(
        pairs,
        np.array(rig.centres),  # copies: arrays that may not be written to are compiled for once more
        np.array(rig.rotations),
        np.ascontiguousarray(pose.rotations),
        np.ascontiguousarray(pose.centres),
        bend,
        length,
        twist,
        residual,
        jacobian,
    )
    return PairTerm(pairs, residual, jacobian)


@compiled
def _rigidity(
    pairs: Ints,
    rest_centres: Floats,
    rest_rotations: Floats,
    rotations: Floats,
    centres: Floats,
    bend: float,
    length: float,
    twist: float,
    residual: Floats,
    jacobian: Floats,
) -> None:
    rest, offset, by_a, by_b = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    turn_a, turn_b, x = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    for e in range(len(pairs)):
        a, b = pairs[e, 0], pairs[e, 1]
        for k in range(3):
            rest[k], offset[k] = rest_centres[b, k] - rest_centres[a, k], centres[b, k] - centres[a, k]
        rest_length, span = max(math.sqrt(dot3(rest, rest)), 1e-9), max(math.sqrt(dot3(offset, offset)), 1e-9)
        times_transposed3(rotations[a], rest_rotations[a], turn_a)  # rest to now, world axes
        times_transposed3(rotations[b], rest_rotations[b], turn_b)
        for k in range(3):
            by_a[k], by_b[k] = dot3(turn_a[k], rest), dot3(turn_b[k], rest)
        times_transposed3(turn_b, turn_a, x)
        arm = twist * rest_length
        residual[e, 0] = length * (span - rest_length)
        trace = x[0, 0] + x[1, 1] + x[2, 2]
        for k in range(3):
            n, m = (k + 1) % 3, (k + 2) % 3
            jacobian[e, 0, 3 + k] = -length * offset[k] / span
            jacobian[e, 0, 9 + k] = length * offset[k] / span
            residual[e, 1 + k] = bend * (offset[k] - 0.5 * (by_a[k] + by_b[k]))
            jacobian[e, 1 + k, 3 + k] = -bend
            jacobian[e, 1 + k, 9 + k] = bend
            # d(R d) = omega x (R d)
            jacobian[e, 1 + k, n] = -0.5 * bend * by_a[m]
            jacobian[e, 1 + k, m] = 0.5 * bend * by_a[n]
            jacobian[e, 1 + k, 6 + n] = -0.5 * bend * by_b[m]
            jacobian[e, 1 + k, 6 + m] = 0.5 * bend * by_b[n]
            # Half the antisymmetric part: sin of the angle, smooth everywhere.
            residual[e, 4 + k] = 0.5 * arm * (x[m, n] - x[n, m])
            # X = exp(w_b) B A^T exp(-w_a); [w] X + X^T [w] = [(tr X - X) w], X [w] + [w] X^T = [(tr X - X^T) w]
            for j in range(3):
                unit = trace if j == k else 0.0
                jacobian[e, 4 + k, j] = -0.5 * arm * (unit - x[j, k])
                jacobian[e, 4 + k, 6 + j] = 0.5 * arm * (unit - x[k, j])
