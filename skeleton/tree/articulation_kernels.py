"""Compiled work on a tree of elementary motions: placing it, derivatives, limits. `skeleton.tree.articulation` is the
door."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.compiled import compiled
from skeleton.tree.kinematics import left_jacobian_of_vector, rotate_by_vector

__all__ = [
    "BALL", "RIGID", "SLIDE", "TURN", "Limits", "Nodes", "clamp_coordinates", "forward_all", "place_nodes",
    "point_derivatives", "wrap_balls",
]  # fmt: skip

RIGID, TURN, SLIDE, BALL = 0, 1, 2, 3


class Nodes(NamedTuple):
    """The tree as plain arrays, parents before children; `place_nodes` says how they act.

    ``functions[n]`` is -1 for the identity, else the row of ``spans`` (start, stop) into ``breaks`` (K,) and
    ``pieces`` (K, 4): on the piece from break k, ``f = c0 + c1 d + c2 d^2 + c3 d^3`` with ``d = q - break``.
    """

    parents: Ints
    kinds: Ints
    axes: Floats
    rotations: Floats
    offsets: Floats
    columns: Ints
    functions: Ints
    spans: Ints
    breaks: Floats
    pieces: Floats


class Limits(NamedTuple):
    """Box limits (D,) of all coordinates, and ellipsoids over three coordinates from ``starts`` (G,).

    ``halves`` (G, 3, 2) are the six half axes, on the negative and on the positive side, all above 0.
    """

    lower: Floats
    upper: Floats
    starts: Ints
    halves: Floats


@compiled
def point_derivatives(parents: Ints, columns: Ints, motions: Floats, points: Floats, out: Floats) -> None:
    """Fill ``out`` (P, 3, D), zero on entry, for motions taken at the world origin."""
    for p in range(points.shape[0]):
        x, y, z = points[p, 0], points[p, 1], points[p, 2]
        c = columns[p]
        while c >= 0:
            out[p, 0, c] = motions[c, 3] + motions[c, 1] * z - motions[c, 2] * y
            out[p, 1, c] = motions[c, 4] + motions[c, 2] * x - motions[c, 0] * z
            out[p, 2, c] = motions[c, 5] + motions[c, 0] * y - motions[c, 1] * x
            c = parents[c]


@compiled
def evaluate_piece(nodes: Nodes, function: int, q: float) -> tuple[float, float]:
    """Return value and slope of a node's function at q; outside its breaks it goes on straight."""
    if function < 0:
        return q, 1.0
    first, last = nodes.spans[function, 0], nodes.spans[function, 1]
    piece = first
    while piece + 1 < last and nodes.breaks[piece + 1] <= q:
        piece += 1
    d = q - nodes.breaks[piece]
    if d < 0.0:
        return nodes.pieces[piece, 0] + nodes.pieces[piece, 1] * d, nodes.pieces[piece, 1]
    c1, c2, c3 = nodes.pieces[piece, 1], nodes.pieces[piece, 2], nodes.pieces[piece, 3]
    return nodes.pieces[piece, 0] + d * (c1 + d * (c2 + d * c3)), c1 + d * (2.0 * c2 + 3.0 * d * c3)


@compiled
def _add_turn(motion: Floats, a: float, b: float, c: float, x: float, y: float, z: float) -> None:
    """Add a turn at angular velocity (a, b, c) about a point at (x, y, z) from the reference: v = p x w."""
    motion[0] += a
    motion[1] += b
    motion[2] += c
    motion[3] += y * c - z * b
    motion[4] += z * a - x * c
    motion[5] += x * b - y * a


@compiled
def place_nodes(
    nodes: Nodes, q: Floats, reference: Floats, positions: Floats, rotations: Floats, motions: Floats
) -> None:
    """Fill node origins (N, 3), rotations (N, 3, 3) and the motion (D, 6) that each coordinate gives what it
    moves.

    A motion is angular velocity and velocity of the body point at ``reference`` (3,), at unit rate: a point x of the
    body moves with ``v + w x (x - reference)``. A coordinate that drives several nodes in a row adds them up.
    """
    turn, base, local = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    for c in range(q.size):
        for i in range(6):
            motions[c, i] = 0.0
    for n in range(nodes.parents.size):
        p = nodes.parents[n]
        for i in range(3):
            if p < 0:
                positions[n, i] = nodes.offsets[n, i]
                for k in range(3):
                    base[i, k] = nodes.rotations[n, i, k]
            else:
                positions[n, i] = positions[p, i]
                for k in range(3):
                    positions[n, i] += rotations[p, i, k] * nodes.offsets[n, k]
                    base[i, k] = (
                        rotations[p, i, 0] * nodes.rotations[n, 0, k]
                        + rotations[p, i, 1] * nodes.rotations[n, 1, k]
                        + rotations[p, i, 2] * nodes.rotations[n, 2, k]
                    )
        kind = nodes.kinds[n]
        column = nodes.columns[n]
        if kind == RIGID:
            for i in range(3):
                for k in range(3):
                    rotations[n, i, k] = base[i, k]
            continue
        x, y, z = positions[n, 0] - reference[0], positions[n, 1] - reference[1], positions[n, 2] - reference[2]
        if kind == BALL:
            rotate_by_vector(q[column], q[column + 1], q[column + 2], turn)
            left_jacobian_of_vector(q[column], q[column + 1], q[column + 2], local)
            for k in range(3):
                a = base[0, 0] * local[0, k] + base[0, 1] * local[1, k] + base[0, 2] * local[2, k]
                b = base[1, 0] * local[0, k] + base[1, 1] * local[1, k] + base[1, 2] * local[2, k]
                c = base[2, 0] * local[0, k] + base[2, 1] * local[1, k] + base[2, 2] * local[2, k]
                _add_turn(motions[column + k], a, b, c, x, y, z)
        else:
            value, slope = evaluate_piece(nodes, nodes.functions[n], q[column])
            a0, a1, a2 = nodes.axes[n, 0], nodes.axes[n, 1], nodes.axes[n, 2]
            a = base[0, 0] * a0 + base[0, 1] * a1 + base[0, 2] * a2
            b = base[1, 0] * a0 + base[1, 1] * a1 + base[1, 2] * a2
            c = base[2, 0] * a0 + base[2, 1] * a1 + base[2, 2] * a2
            if kind == SLIDE:
                motions[column, 3] += slope * a
                motions[column, 4] += slope * b
                motions[column, 5] += slope * c
                positions[n, 0] += value * a
                positions[n, 1] += value * b
                positions[n, 2] += value * c
                for i in range(3):
                    for k in range(3):
                        rotations[n, i, k] = base[i, k]
                continue
            _add_turn(motions[column], slope * a, slope * b, slope * c, x, y, z)
            rotate_by_vector(value * a0, value * a1, value * a2, turn)
        for i in range(3):
            for k in range(3):
                rotations[n, i, k] = base[i, 0] * turn[0, k] + base[i, 1] * turn[1, k] + base[i, 2] * turn[2, k]


@compiled
def forward_all(nodes: Nodes, segments: Ints, coordinates: Floats) -> tuple[Floats, Floats]:
    frames, count = coordinates.shape[0], nodes.parents.size
    positions, rotations = np.empty((count, 3)), np.empty((count, 3, 3))
    motions, reference = np.empty((coordinates.shape[1], 6)), np.zeros(3)
    out_positions = np.empty((frames, segments.size, 3))
    out_rotations = np.empty((frames, segments.size, 3, 3))
    for t in range(frames):
        place_nodes(nodes, coordinates[t], reference, positions, rotations, motions)
        for j in range(segments.size):
            out_positions[t, j] = positions[segments[j]]
            out_rotations[t, j] = rotations[segments[j]]
    return out_positions, out_rotations


@compiled
def clamp_coordinates(limits: Limits, q: Floats) -> None:
    """Move coordinates (D,) to the nearest place within their boxes and ellipsoids.

    Outside an ellipsoid the closest point is ``a_i^2 r_i / (s + a_i^2)`` with s from Newton's method, which climbs to
    the root of a convex falling function from the left (Gilles, Reveret, Pai 2010).
    """
    for d in range(q.size):
        if q[d] < limits.lower[d]:
            q[d] = limits.lower[d]
        elif q[d] > limits.upper[d]:
            q[d] = limits.upper[d]
    half = np.empty(3)
    for g in range(limits.starts.size):
        first = limits.starts[g]
        inside = 0.0
        for i in range(3):
            half[i] = limits.halves[g, i, 1] if q[first + i] >= 0.0 else limits.halves[g, i, 0]
            half[i] = max(half[i], 1e-9)
            inside += (q[first + i] / half[i]) ** 2
        if inside <= 1.0:
            continue
        shift = 0.0
        for _ in range(50):
            value, slope = -1.0, 0.0
            for i in range(3):
                bottom = shift + half[i] * half[i]
                part = half[i] * q[first + i] / bottom
                value += part * part
                slope -= 2.0 * part * part / bottom
            step = -value / slope
            shift += step
            if abs(step) <= 1e-14 * (1.0 + shift):
                break
        for i in range(3):
            # A hair inside, so that the limit holds whatever the last bit does.
            q[first + i] *= (1.0 - 1e-12) * half[i] * half[i] / (shift + half[i] * half[i])


@compiled
def wrap_balls(nodes: Nodes, q: Floats) -> None:
    """Replace rotation vectors longer than pi by the shorter vector of the same rotation."""
    for n in range(nodes.parents.size):
        if nodes.kinds[n] == BALL:
            c = nodes.columns[n]
            angle = math.sqrt(q[c] ** 2 + q[c + 1] ** 2 + q[c + 2] ** 2)
            if angle > math.pi:
                factor = 1.0 - 2.0 * math.pi * math.floor(angle / (2.0 * math.pi) + 0.5) / angle
                for i in range(3):
                    q[c + i] *= factor
