"""Compiled energy of the springs, its derivatives in tree form, and the joints' standard deviations.

Energy of a pose q, with m_i(q) the attached point of marker i, p_i its target, k_i its stiffness:

    ``E(q) = 1/2 sum_i rho(k_i |m_i(q) - p_i|^2) + 1/2 sum_d s_d (q_d - rest_d)^2``

``rho(u) = c u / (c + u)`` (Geman and McClure, c = cutoff^2) bounds what a wrong marker can pull. Stiffness is in
1/mm^2, the inverse variance of the marker about its bone, so the normal matrix is an information matrix.

The normal matrix is the joint-space inertia of the body with the markers as its masses: it is built from the leaves to
the root with composite inertias, and factored as ``A = L^T D L``, which keeps its zeros (Featherstone 2008, chapter 6).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.compiled import compiled
from skeleton.tree.articulation import Articulation
from skeleton.tree.articulation_kernels import Nodes, place_nodes

__all__ = ["SpringBody", "assemble", "factor", "joint_sigmas", "solve_factored", "spring_body"]


class SpringBody(NamedTuple):
    """A body and its markers as the springs see them; coordinates D, markers M, segments J.

    Attributes:
        nodes: the tree.
        parents: (D,) the coordinate before each on the way to the root, -1 for the first.
        balls: (D,) the first column of a coordinate's ball, -1 if it has none.
        marker_nodes, marker_columns: (M,) the node that carries a marker and the last coordinate on the way to it.
        offsets: (M, 3) places of the markers on their nodes, mm.
        segment_nodes, segment_columns: (J,) the same of the segments.
        lever: (D,) mm moved per unit of each coordinate.
    """

    nodes: Nodes
    parents: Ints
    balls: Ints
    marker_nodes: Ints
    marker_columns: Ints
    offsets: Floats
    segment_nodes: Ints
    segment_columns: Ints
    lever: Floats


def spring_body(body: Articulation, segments: Ints, offsets: Floats, lever: Floats) -> SpringBody:
    """Return a body with markers on ``segments`` (M,) at ``offsets`` (M, 3)."""
    return SpringBody(
        body.nodes,
        body.coordinate_parents,
        body.balls,
        body.segment_nodes[segments],
        body.segment_coordinates[segments],
        offsets,
        body.segment_nodes,
        body.segment_coordinates,
        lever,
    )


@compiled
def _swap(s: Floats, t: Floats, f: Floats) -> float:
    """Return ``(w_s x w_t) . moment of the forces about the centre of the ball`` that both motions turn about."""
    return float(
        (s[1] * t[2] - s[2] * t[1]) * f[0]
        + (s[2] * t[0] - s[0] * t[2]) * f[1]
        + (s[0] * t[1] - s[1] * t[0]) * f[2]
        + (s[1] * t[5] - s[2] * t[4] - t[1] * s[5] + t[2] * s[4]) * f[3]
        + (s[2] * t[3] - s[0] * t[5] - t[2] * s[3] + t[0] * s[5]) * f[4]
        + (s[0] * t[4] - s[1] * t[3] - t[0] * s[4] + t[1] * s[3]) * f[5]
    )


class _Moved(NamedTuple):
    """Of all markers that a coordinate moves, about a common reference point; coordinates D.

    Attributes:
        mass: (D, 10) weight, first moments, second moments xx yy zz xy xz yz.
        force: (D, 6) moment and force.
        virial: (D, 3, 3) sum of p f^T.
    """

    mass: Floats
    force: Floats
    virial: Floats


@compiled
def _pull_markers(
    body: SpringBody,
    positions: Floats,
    rotations: Floats,
    reference: Floats,
    targets: Floats,
    stiffness: Floats,
    cutoff: float,
    moved: _Moved,
    residuals: Floats,
) -> float:
    """Add each marker's pull to the coordinate that carries it, fill ``residuals`` (M,); return the energy."""
    marker_nodes, marker_columns, offsets = body.marker_nodes, body.marker_columns, body.offsets
    mass, force, virial = moved
    energy = 0.0
    bound = cutoff * cutoff
    for m in range(marker_nodes.size):
        residuals[m] = np.nan
        if not (targets[m, 0] == targets[m, 0] and stiffness[m] > 0.0):
            continue
        n = marker_nodes[m]
        x, y, z = positions[n, 0], positions[n, 1], positions[n, 2]
        for k in range(3):
            x += rotations[n, 0, k] * offsets[m, k]
            y += rotations[n, 1, k] * offsets[m, k]
            z += rotations[n, 2, k] * offsets[m, k]
        rx, ry, rz = x - targets[m, 0], y - targets[m, 1], z - targets[m, 2]
        square = rx * rx + ry * ry + rz * rz
        residuals[m] = math.sqrt(square)
        u = stiffness[m] * square
        share = bound / (bound + u) if cutoff < 1e9 else 1.0
        energy += 0.5 * u * share
        c = marker_columns[m]
        if c < 0:
            continue
        w = stiffness[m] * share * share
        x, y, z = x - reference[0], y - reference[1], z - reference[2]
        row = mass[c]
        row[0] += w
        row[1] += w * x
        row[2] += w * y
        row[3] += w * z
        row[4] += w * x * x
        row[5] += w * y * y
        row[6] += w * z * z
        row[7] += w * x * y
        row[8] += w * x * z
        row[9] += w * y * z
        row = force[c]
        row[0] += w * (y * rz - z * ry)
        row[1] += w * (z * rx - x * rz)
        row[2] += w * (x * ry - y * rx)
        row[3] += w * rx
        row[4] += w * ry
        row[5] += w * rz
        outer = virial[c]
        outer[0, 0] += w * x * rx
        outer[0, 1] += w * x * ry
        outer[0, 2] += w * x * rz
        outer[1, 0] += w * y * rx
        outer[1, 1] += w * y * ry
        outer[1, 2] += w * y * rz
        outer[2, 0] += w * z * rx
        outer[2, 1] += w * z * ry
        outer[2, 2] += w * z * rz
    return energy


@compiled
def _fold(c: int, body: SpringBody, motions: Floats, moved: _Moved, normal: Floats, bend: Floats) -> None:
    """Fill the row of a coordinate in ``normal`` and ``bend`` from what it moves."""
    parents, balls = body.parents, body.balls
    r, s, f, k = moved.mass[c], motions[c], moved.force[c], moved.virial[c]
    # Momentum of the moved markers: linear m v + w x h, angular I w + h x v.
    px = r[0] * s[3] + s[1] * r[3] - s[2] * r[2]
    py = r[0] * s[4] + s[2] * r[1] - s[0] * r[3]
    pz = r[0] * s[5] + s[0] * r[2] - s[1] * r[1]
    lx = (r[5] + r[6]) * s[0] - r[7] * s[1] - r[8] * s[2] + r[2] * s[5] - r[3] * s[4]
    ly = (r[4] + r[6]) * s[1] - r[7] * s[0] - r[9] * s[2] + r[3] * s[3] - r[1] * s[5]
    lz = (r[4] + r[5]) * s[2] - r[8] * s[0] - r[9] * s[1] + r[1] * s[4] - r[2] * s[3]
    trace = k[0, 0] + k[1, 1] + k[2, 2]
    bx = s[4] * f[5] - s[5] * f[4] + k[0, 0] * s[0] + k[0, 1] * s[1] + k[0, 2] * s[2] - trace * s[0]
    by = s[5] * f[3] - s[3] * f[5] + k[1, 0] * s[0] + k[1, 1] * s[1] + k[1, 2] * s[2] - trace * s[1]
    bz = s[3] * f[4] - s[4] * f[3] + k[2, 0] * s[0] + k[2, 1] * s[1] + k[2, 2] * s[2] - trace * s[2]
    i = c
    while i >= 0:
        t = motions[i]
        bend[c, i] = t[0] * bx + t[1] * by + t[2] * bz
        if i != c and balls[c] >= 0 and balls[i] == balls[c]:
            bend[c, i] += 0.5 * _swap(s, t, f)
        normal[c, i] = t[0] * lx + t[1] * ly + t[2] * lz + t[3] * px + t[4] * py + t[5] * pz
        i = parents[i]


@compiled
def _hand_on(c: int, parent: int, moved: _Moved) -> None:
    """Add what a coordinate moves to what the one before it moves."""
    for i in range(10):
        moved.mass[parent, i] += moved.mass[c, i]
    for i in range(6):
        moved.force[parent, i] += moved.force[c, i]
    for i in range(3):
        for j in range(3):
            moved.virial[parent, i, j] += moved.virial[c, i, j]


# Eleven parameters: what is read (body, pose, springs) and the four arrays that the caller keeps between calls.
@compiled
def assemble(
    body: SpringBody,
    q: Floats,
    targets: Floats,
    stiffness: Floats,
    cutoff: float,
    rest: Floats,
    rest_stiffness: Floats,
    normal: Floats,
    bend: Floats,
    gradient: Floats,
    residuals: Floats,
) -> float:
    """Fill the tree entries of ``normal`` and ``bend`` (D, D), ``gradient`` (D,), ``residuals`` (M,); return energy.

    ``normal`` is Gauss-Newton's matrix. ``bend`` is what it leaves out, the second derivative of the points against the
    forces f: for a coordinate i between coordinate j and the root ``w_i . sum (v_j + w_j x p) x f``. It decides the
    step where a marker pulls beyond its lever's reach. Within a ball the order of turns does not count, and both orders
    are averaged.

    A marker with a NaN target or stiffness 0 does not pull; its residual is NaN. Robust weights enter as they stand
    (iterated reweighting): their curvature promises too much while the pose is still far.
    """
    nodes, marker_nodes = body.nodes, body.marker_nodes
    count, size = nodes.parents.size, q.size
    positions, rotations, motions = np.empty((count, 3)), np.empty((count, 3, 3)), np.empty((size, 6))
    moved = _Moved(np.zeros((size, 10)), np.zeros((size, 6)), np.zeros((size, 3, 3)))
    reference = np.zeros(3)
    for m in range(marker_nodes.size):
        if targets[m, 0] == targets[m, 0]:
            for i in range(3):
                reference[i] = targets[m, i]
            break
    place_nodes(nodes, q, reference, positions, rotations, motions)
    energy = _pull_markers(body, positions, rotations, reference, targets, stiffness, cutoff, moved, residuals)
    for c in range(size - 1, -1, -1):
        _fold(c, body, motions, moved, normal, bend)
        off = q[c] - rest[c]
        pull = rest_stiffness[c] * off
        for i in range(6):
            pull += motions[c, i] * moved.force[c, i]
        normal[c, c] += rest_stiffness[c]
        gradient[c] = pull
        energy += 0.5 * rest_stiffness[c] * off * off
        if body.parents[c] >= 0:
            _hand_on(c, body.parents[c], moved)
    return energy


@compiled
def factor(matrix: Floats, parents: Ints) -> bool:
    """Replace the tree entries of a matrix by D (diagonal) and L (below it), ``L^T D L``; False if not positive."""
    for k in range(matrix.shape[0] - 1, -1, -1):
        if matrix[k, k] <= 0.0:
            return False
        i = parents[k]
        while i >= 0:
            share = matrix[k, i] / matrix[k, k]
            j = i
            while j >= 0:
                matrix[i, j] -= share * matrix[k, j]
                j = parents[j]
            matrix[k, i] = share
            i = parents[i]
    return True


@compiled
def solve_factored(matrix: Floats, parents: Ints, vector: Floats) -> None:
    """Solve ``L^T D L x = vector`` in place."""
    for i in range(vector.size - 1, -1, -1):
        j = parents[i]
        while j >= 0:
            vector[j] -= matrix[i, j] * vector[i]
            j = parents[j]
    for i in range(vector.size):
        vector[i] /= matrix[i, i]
    for i in range(vector.size):
        j = parents[i]
        while j >= 0:
            vector[i] -= matrix[i, j] * vector[j]
            j = parents[j]


@compiled
def joint_sigmas(body: SpringBody, q: Floats, normal: Floats, out: Floats) -> None:
    """Fill ``out`` (J,): root mean square over the axes of the standard deviation of each segment's origin,
    mm.

    With the covariance ``C = normal^-1`` and the joint's Jacobian B: ``sqrt(trace(B C B^T) / 3)``.
    """
    nodes, parents, lever = body.nodes, body.parents, body.lever
    carriers, carrier_columns = body.segment_nodes, body.segment_columns
    count, size = nodes.parents.size, q.size
    positions, rotations, motions = np.empty((count, 3)), np.empty((count, 3, 3)), np.empty((size, 6))
    vectors, matrix, reference = np.empty((size, 3)), np.empty((size, size)), np.zeros(3)
    place_nodes(nodes, q, reference, positions, rotations, motions)
    for a in range(size):
        b = a
        while b >= 0:
            matrix[a, b] = normal[a, b]
            b = parents[b]
        matrix[a, a] += 1e-9 * lever[a] * lever[a]  # what nothing measures gets some 30 m, not infinity
    factor(matrix, parents)
    for s in range(carriers.size):
        x, y, z = positions[carriers[s], 0], positions[carriers[s], 1], positions[carriers[s], 2]
        i = carrier_columns[s]
        while i >= 0:
            vectors[i, 0] = motions[i, 3] + motions[i, 1] * z - motions[i, 2] * y
            vectors[i, 1] = motions[i, 4] + motions[i, 2] * x - motions[i, 0] * z
            vectors[i, 2] = motions[i, 5] + motions[i, 0] * y - motions[i, 1] * x
            i = parents[i]
        total = 0.0
        i = carrier_columns[s]
        while i >= 0:
            j = parents[i]
            while j >= 0:
                for axis in range(3):
                    vectors[j, axis] -= matrix[i, j] * vectors[i, axis]
                j = parents[j]
            for axis in range(3):
                total += vectors[i, axis] * vectors[i, axis] / matrix[i, i]
            i = parents[i]
        out[s] = math.sqrt(total / 3.0)
