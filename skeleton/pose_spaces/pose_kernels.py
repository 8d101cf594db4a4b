"""Compiled kinematics of a tree of rotations and the Gauss-Newton solver of poses from handles.

Joint ``j`` with parent ``p`` turns by ``base_j exp(u_j)`` where ``u = centre + directions x`` (3 numbers per joint):

    ``W_j = W_p base_j exp(u_j)``,  ``c_j = c_p + W_p offset_j``

A point y on segment s moves with x as ``dy = sum_a (W_a J_r(u_a) du_a) x (y - c_a)`` over s and its ancestors, where
``J_r`` is the right Jacobian of the exponential. The root's own joint has its place and turn as six free numbers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.compiled import compiled
from skeleton.tree.kinematics import left_jacobian_of_vector, rotate_by_vector

__all__ = ["Handles", "PackedTree", "joint_sigmas", "place", "point_jacobian", "solve_pose", "spins_of"]


class PackedTree(NamedTuple):
    """A tree of rotations for kernels: parents (J,), offsets (J, 3) mm, base rotations (J, 3, 3)."""

    parents: Ints
    offsets: Floats
    bases: Floats


class Handles(NamedTuple):
    """What a pose is to meet.

    Attributes:
        segments: (H,) joint that carries each handle.
        offsets: (H, 3) place of the handle on its segment, mm.
        targets: (H, 3) where it is to be, mm; NaN where only the turn is wanted.
        weights: (H,) 1 / sigma^2 of the place, 1/mm^2.
        turns: (H, 3, 3) wanted world rotation of the segment; NaN where only the place is wanted.
        turn_weights: (H,) 1 / sigma^2 of the turn, 1/rad^2.
    """

    segments: Ints
    offsets: Floats
    targets: Floats
    weights: Floats
    turns: Floats
    turn_weights: Floats


@compiled
def place(tree: PackedTree, tangents: Floats, root: Floats, turn: Floats, centres: Floats, world: Floats) -> None:
    """Fill joint centres (J, 3) and world rotations (J, 3, 3) of tangents (J, 3), root place (3,) and turn (3, 3)."""
    local, both = np.empty((3, 3)), np.empty((3, 3))
    for j in range(tree.parents.size):
        p = tree.parents[j]
        if p < 0:
            for a in range(3):
                centres[j, a] = root[a]
                for b in range(3):
                    world[j, a, b] = turn[a, b]
            continue
        rotate_by_vector(tangents[j, 0], tangents[j, 1], tangents[j, 2], local)
        base = tree.bases[j]
        for a in range(3):
            total = centres[p, a]
            for b in range(3):
                total += world[p, a, b] * tree.offsets[j, b]
                both[a, b] = base[a, 0] * local[0, b] + base[a, 1] * local[1, b] + base[a, 2] * local[2, b]
            centres[j, a] = total
        for a in range(3):
            for b in range(3):
                world[j, a, b] = world[p, a, 0] * both[0, b] + world[p, a, 1] * both[1, b] + world[p, a, 2] * both[2, b]


@compiled
def spins_of(tree: PackedTree, tangents: Floats, directions: Floats, world: Floats, spins: Floats) -> None:
    """Fill spins (J, 3, K): world angular velocity that each joint adds per unit of each pose coordinate."""
    right, turned = np.empty((3, 3)), np.empty((3, 3))
    for j in range(tree.parents.size):
        if tree.parents[j] < 0:
            for a in range(3):
                for k in range(directions.shape[1]):
                    spins[j, a, k] = 0.0
            continue
        left_jacobian_of_vector(-tangents[j, 0], -tangents[j, 1], -tangents[j, 2], right)
        for a in range(3):
            for b in range(3):
                turned[a, b] = (
                    world[j, a, 0] * right[0, b] + world[j, a, 1] * right[1, b] + world[j, a, 2] * right[2, b]
                )
        for a in range(3):
            for k in range(directions.shape[1]):
                spins[j, a, k] = (
                    turned[a, 0] * directions[3 * j, k]
                    + turned[a, 1] * directions[3 * j + 1, k]
                    + turned[a, 2] * directions[3 * j + 2, k]
                )


@compiled
def point_jacobian(
    tree: PackedTree, spins: Floats, centres: Floats, segment: int, point: Floats, out: Floats, turning: Floats
) -> None:
    """Fill derivatives (3, 6 + K) of one point and of its segment's turn by root place, root turn and coordinates."""
    size = spins.shape[2]
    out[:] = 0.0
    turning[:] = 0.0
    for a in range(3):
        out[a, a] = 1.0
        turning[a, 3 + a] = 1.0
    j = segment
    while tree.parents[j] >= 0:
        x, y, z = point[0] - centres[j, 0], point[1] - centres[j, 1], point[2] - centres[j, 2]
        for k in range(size):
            a, b, c = spins[j, 0, k], spins[j, 1, k], spins[j, 2, k]
            out[0, 6 + k] += b * z - c * y
            out[1, 6 + k] += c * x - a * z
            out[2, 6 + k] += a * y - b * x
            turning[0, 6 + k] += a
            turning[1, 6 + k] += b
            turning[2, 6 + k] += c
        j = tree.parents[j]
    x, y, z = point[0] - centres[j, 0], point[1] - centres[j, 1], point[2] - centres[j, 2]
    out[1, 3], out[2, 3] = -z, y
    out[0, 4], out[2, 4] = z, -x
    out[0, 5], out[1, 5] = -y, x


@compiled
def joint_sigmas(tree: PackedTree, spins: Floats, centres: Floats, covariance: Floats, out: Floats) -> None:
    """Fill (J,) root mean square over the axes of each joint centre's standard deviation, of (6 + K, 6 + K)."""
    size = covariance.shape[0]
    by_place, by_turn = np.empty((3, size)), np.empty((3, size))
    for j in range(tree.parents.size):
        point_jacobian(tree, spins, centres, j, centres[j], by_place, by_turn)
        spread = np.dot(by_place, covariance)
        total = 0.0
        for a in range(3):
            for i in range(size):
                total += spread[a, i] * by_place[a, i]
        out[j] = math.sqrt(max(total, 0.0) / 3.0)


@compiled
def _log(rotation: Floats, out: Floats) -> None:
    """Write the rotation vector of a matrix, exact near 0 and well behaved up to pi."""
    x = rotation[2, 1] - rotation[1, 2]
    y = rotation[0, 2] - rotation[2, 0]
    z = rotation[1, 0] - rotation[0, 1]
    sine = 0.5 * math.sqrt(x * x + y * y + z * z)
    cosine = 0.5 * (rotation[0, 0] + rotation[1, 1] + rotation[2, 2] - 1.0)
    angle = math.atan2(sine, cosine)
    share = 0.5 if sine < 1e-9 else 0.5 * angle / sine
    out[0], out[1], out[2] = share * x, share * y, share * z


@compiled
def _point(handles: Handles, h: int, centres: Floats, world: Floats, out: Floats) -> None:
    s = handles.segments[h]
    for a in range(3):
        out[a] = centres[s, a]
        for b in range(3):
            out[a] += world[s, a, b] * handles.offsets[h, b]


@compiled
def _turn_error(wanted: Floats, got: Floats, out: Floats) -> None:
    """Write the world rotation vector that takes the wanted turn to the one got."""
    apart = np.empty((3, 3))
    for a in range(3):
        for b in range(3):
            apart[a, b] = got[a, 0] * wanted[b, 0] + got[a, 1] * wanted[b, 1] + got[a, 2] * wanted[b, 2]
    _log(apart, out)


@compiled
def _energy(handles: Handles, centres: Floats, world: Floats, x: Floats, rest: Floats, stiffness: Floats) -> float:
    point, twist, total = np.empty(3), np.empty(3), 0.0
    for h in range(handles.segments.size):
        if handles.weights[h] > 0.0:
            _point(handles, h, centres, world, point)
            for a in range(3):
                total += handles.weights[h] * (point[a] - handles.targets[h, a]) ** 2
        if handles.turn_weights[h] > 0.0:
            _turn_error(handles.turns[h], world[handles.segments[h]], twist)
            for a in range(3):
                total += handles.turn_weights[h] * twist[a] ** 2
    for k in range(x.size):
        total += stiffness[k] * (x[k] - rest[k]) ** 2
    return 0.5 * total


# Over 80 lines, 14 parameters: one damped Newton loop on arrays of its caller, nothing allocated per pose.
@compiled
def solve_pose(
    tree: PackedTree,
    centre: Floats,
    directions: Floats,
    handles: Handles,
    rest: Floats,
    stiffness: Floats,
    most: int,
    upright: int,
    root: Floats,
    turn: Floats,
    x: Floats,
    centres: Floats,
    world: Floats,
    normal: Floats,
) -> tuple[float, int]:
    """Move root, turn and x (K,) in place to the least energy; fill the pose and the normal matrix (6 + K, 6 + K).

    ``E = 1/2 sum |handle - target|^2 / sigma^2 + 1/2 sum stiffness_k (x_k - rest_k)^2``, Levenberg and Marquardt.
    With ``upright`` 0, 1 or 2 the root turns about that axis of the world alone; with -1 it turns freely.
    Returns the energy and the number of iterations.
    """
    size, joints = x.size, tree.parents.size
    full = 6 + size
    spins, tangents = np.empty((joints, 3, size)), np.empty((joints, 3))
    by_place, by_turn = np.empty((3, full)), np.empty((3, full))
    slope, damped = np.empty(full), np.empty((full, full))
    point, twist, spin = np.empty(3), np.empty(3), np.empty((3, 3))
    trial_x, trial_root, trial_turn = np.empty(size), np.empty(3), np.empty((3, 3))
    for i in range(3 * joints):
        tangents[i // 3, i % 3] = centre[i] + np.dot(directions[i], x)
    place(tree, tangents, root, turn, centres, world)
    energy = _energy(handles, centres, world, x, rest, stiffness)
    damping, rounds = 1e-3, 0
    while rounds < most:
        rounds += 1
        spins_of(tree, tangents, directions, world, spins)
        normal[:] = 0.0
        slope[:] = 0.0
        for h in range(handles.segments.size):
            _point(handles, h, centres, world, point)
            point_jacobian(tree, spins, centres, handles.segments[h], point, by_place, by_turn)
            if handles.weights[h] > 0.0:
                normal += handles.weights[h] * np.dot(by_place.T, by_place)
                for a in range(3):
                    slope += handles.weights[h] * (point[a] - handles.targets[h, a]) * by_place[a]
            if handles.turn_weights[h] > 0.0:
                _turn_error(handles.turns[h], world[handles.segments[h]], twist)
                normal += handles.turn_weights[h] * np.dot(by_turn.T, by_turn)
                for a in range(3):
                    slope += handles.turn_weights[h] * twist[a] * by_turn[a]
        for k in range(size):
            normal[6 + k, 6 + k] += stiffness[k]
            slope[6 + k] += stiffness[k] * (x[k] - rest[k])
        fell = False
        for _ in range(8):
            damped[:] = normal
            for i in range(full):
                damped[i, i] += damping * normal[i, i] + 1e-12
            if upright >= 0:
                for a in range(3):
                    if a != upright:
                        damped[3 + a, 3 + a] += 1e12
            step = np.linalg.solve(damped, -slope)
            for a in range(3):
                trial_root[a] = root[a] + step[a]
            rotate_by_vector(step[3], step[4], step[5], spin)
            for a in range(3):
                for b in range(3):
                    trial_turn[a, b] = spin[a, 0] * turn[0, b] + spin[a, 1] * turn[1, b] + spin[a, 2] * turn[2, b]
            for k in range(size):
                trial_x[k] = x[k] + step[6 + k]
            for i in range(3 * joints):
                tangents[i // 3, i % 3] = centre[i] + np.dot(directions[i], trial_x)
            place(tree, tangents, trial_root, trial_turn, centres, world)
            trial = _energy(handles, centres, world, trial_x, rest, stiffness)
            if trial <= energy:
                fell = True
                break
            damping = max(10.0 * damping, 1e-6)
        if not fell:
            for i in range(3 * joints):
                tangents[i // 3, i % 3] = centre[i] + np.dot(directions[i], x)
            place(tree, tangents, root, turn, centres, world)
            break
        drop = energy - trial
        energy = trial
        root[:] = trial_root
        turn[:] = trial_turn
        x[:] = trial_x
        damping = max(0.1 * damping, 1e-9)
        if drop < 1e-6 * (1.0 + energy):
            break
    return energy, rounds
