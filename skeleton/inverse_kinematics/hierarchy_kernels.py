"""Compiled prioritised inverse kinematics of many frames: layers of rows, each solved in what those above leave free.

`skeleton.inverse_kinematics.deformation` is the door. Baerlocher's recursion as in `prioritised_ik`, with three kinds
of task: a point, a segment's orientation, the centre of mass. Coordinates are scaled by a metric, so that lengths
compare with angles and what is dear moves little; freedom that is left returns to the raw pose.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from calibration.foundation.arrays import Bools, Floats, Ints
from calibration.foundation.compiled import compiled
from skeleton.tree.articulation_kernels import Limits, Nodes, clamp_coordinates, place_nodes

__all__ = ["CENTRE_OF_MASS", "ORIENTATION", "POINT", "SOFT", "Masses", "Tasks", "solve_frames"]

POINT, ORIENTATION, CENTRE_OF_MASS = 0, 1, 2
SOFT = -2
"""Rank of a task that is a wish: weighed against the raw pose in the freedom that all layers leave."""
_WISH = 0.02
"""What a wish may turn for a millimetre, as its damping: a share of the longest chain."""
_RELEASES = 2
"""How often what was stopped at a limit is let go again: it may have come there on a detour of the first steps."""
_SAME = 1e-3
"""Residuals that differ by less are the same, mm."""
_CUT = 1e-9
"""Singular values below this share of the longest chain are no freedom."""


class Tasks(NamedTuple):
    """K tasks as arrays.

    ``kinds`` (K,); ``segments`` (K,) node and ``columns`` (K,) last coordinate of what each rides on; ``offsets`` (K,
    3) mm; ``allowed`` (K, D) coordinates it may use; ``weights`` (K,) against others of its layer; ``lengths`` (K,)
    unit of its rows, mm (for an orientation: mm per radian).
    """

    kinds: Ints
    segments: Ints
    columns: Ints
    offsets: Floats
    allowed: Bools
    weights: Floats
    lengths: Floats


class Masses(NamedTuple):
    """Nodes (S,), last coordinates (S,), centres (S, 3) in their frames and shares (S,) of the whole mass."""

    nodes: Ints
    columns: Ints
    centres: Floats
    shares: Floats


@compiled
def _error(
    tasks: Tasks, masses: Masses, k: int, goal: Floats, positions: Floats, rotations: Floats, out: Floats
) -> None:
    """Write how far task k is from its goal: mm, or for an orientation the rotation vector times its length."""
    if tasks.kinds[k] == ORIENTATION:
        node = tasks.segments[k]
        turn = np.zeros((3, 3))
        wanted = np.empty((3, 3))
        _exponential(goal, wanted)
        for i in range(3):
            for j in range(3):
                for m in range(3):
                    turn[i, j] += wanted[i, m] * rotations[node, j, m]
        _logarithm(turn, out)
        for i in range(3):
            out[i] *= tasks.lengths[k]
    elif tasks.kinds[k] == CENTRE_OF_MASS:
        for i in range(3):
            out[i] = goal[i]
        for s in range(masses.nodes.size):
            node = masses.nodes[s]
            for i in range(3):
                place = positions[node, i]
                for m in range(3):
                    place += rotations[node, i, m] * masses.centres[s, m]
                out[i] -= masses.shares[s] * place
    else:
        node = tasks.segments[k]
        for i in range(3):
            place = positions[node, i]
            for m in range(3):
                place += rotations[node, i, m] * tasks.offsets[k, m]
            out[i] = goal[i] - place


@compiled
def _exponential(vector: Floats, out: Floats) -> None:
    x, y, z = vector[0], vector[1], vector[2]
    square = x * x + y * y + z * z
    angle = math.sqrt(square)
    a = 1.0 if angle < 1e-8 else math.sin(angle) / angle
    b = 0.5 if angle < 1e-8 else (1.0 - math.cos(angle)) / square
    out[0, 0], out[0, 1], out[0, 2] = 1 - b * (y * y + z * z), b * x * y - a * z, b * x * z + a * y
    out[1, 0], out[1, 1], out[1, 2] = b * x * y + a * z, 1 - b * (x * x + z * z), b * y * z - a * x
    out[2, 0], out[2, 1], out[2, 2] = b * x * z - a * y, b * y * z + a * x, 1 - b * (x * x + y * y)


@compiled
def _logarithm(turn: Floats, out: Floats) -> None:
    """Write the rotation vector of a rotation by less than half a turn."""
    x, y, z = turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]
    sine = 0.5 * math.sqrt(x * x + y * y + z * z)
    cosine = 0.5 * (turn[0, 0] + turn[1, 1] + turn[2, 2] - 1.0)
    angle = math.atan2(sine, cosine)
    share = 0.5 if sine < 1e-9 else 0.5 * angle / sine
    out[0], out[1], out[2] = share * x, share * y, share * z


@compiled
def _point_rows(parents: Ints, column: int, motions: Floats, x: Floats, share: float, out: Floats) -> None:
    """Add ``share`` times the derivative of a point to rows (3, D)."""
    c = column
    while c >= 0:
        out[0, c] += share * (motions[c, 3] + motions[c, 1] * x[2] - motions[c, 2] * x[1])
        out[1, c] += share * (motions[c, 4] + motions[c, 2] * x[0] - motions[c, 0] * x[2])
        out[2, c] += share * (motions[c, 5] + motions[c, 0] * x[1] - motions[c, 1] * x[0])
        c = parents[c]


@compiled
def _rows(
    tasks: Tasks, masses: Masses, k: int, parents: Ints, positions: Floats, rotations: Floats, motions: Floats,
    out: Floats,
) -> None:  # fmt: skip
    """Write the derivative (3, D) of task k."""
    out[:] = 0.0
    x = np.empty(3)
    if tasks.kinds[k] == ORIENTATION:
        c = tasks.columns[k]
        while c >= 0:
            for i in range(3):
                out[i, c] = tasks.lengths[k] * motions[c, i]
            c = parents[c]
    elif tasks.kinds[k] == CENTRE_OF_MASS:
        for s in range(masses.nodes.size):
            node = masses.nodes[s]
            for i in range(3):
                x[i] = positions[node, i]
                for m in range(3):
                    x[i] += rotations[node, i, m] * masses.centres[s, m]
            _point_rows(parents, masses.columns[s], motions, x, masses.shares[s], out)
    else:
        node = tasks.segments[k]
        for i in range(3):
            x[i] = positions[node, i]
            for m in range(3):
                x[i] += rotations[node, i, m] * tasks.offsets[k, m]
        _point_rows(parents, tasks.columns[k], motions, x, 1.0, out)


# Thirteen parameters: a kernel that fills the system of one layer, on arrays of its caller.
@compiled
def _gather(
    tasks: Tasks, masses: Masses, goals: Floats, ranks: Ints, layer: int, parents: Ints, positions: Floats,
    rotations: Floats, motions: Floats, metric: Floats, rows: Floats, whole: Floats, wanted: Floats,
) -> float:  # fmt: skip
    """Write the rows of a layer's tasks, by what each may use and by all, and what is wanted; return the farthest."""
    own, error = np.empty((3, metric.size)), np.empty(3)
    far, place = 0.0, 0
    for k in range(tasks.kinds.size):
        if ranks[k] != layer:
            continue
        _error(tasks, masses, k, goals[k], positions, rotations, error)
        _rows(tasks, masses, k, parents, positions, rotations, motions, own)
        for i in range(3):
            far = max(far, abs(error[i]))
            wanted[place] = tasks.weights[k] * error[i]
            for c in range(metric.size):
                whole[place, c] = tasks.weights[k] * own[i, c] * metric[c]
                if tasks.allowed[k, c]:
                    rows[place, c] = whole[place, c]
            place += 1
    return far


@compiled
def _freedom(above: Floats, movable: Bools, cut: float) -> Floats:
    """Return the projector (D, D) on steps of movable coordinates that disturb no row of the layers above (N, D).

    The undamped one: a damped one breaks the hierarchy.
    """
    size = movable.size
    free = np.zeros((size, size))
    for c in range(size):
        if movable[c]:
            free[c, c] = 1.0
    if above.shape[0] > 0:
        masked = above.copy()
        for c in range(size):
            if not movable[c]:
                masked[:, c] = 0.0
        _, s, vt = np.linalg.svd(masked, False)
        for i in range(s.size):
            if s[i] > cut:
                for a in range(size):
                    for b in range(size):
                        free[a, b] -= vt[i, a] * vt[i, b]
    return free


@compiled
def _layer(rows: Floats, missing: Floats, damping: float, cut: float, free: Floats) -> Floats:
    """Return the damped step (D,) within ``free`` (D, D) that brings rows (N, D) what is missing (N,)."""
    u, s, vt = np.linalg.svd(rows @ free, False)
    along = u.T @ missing
    for i in range(s.size):
        along[i] = along[i] * s[i] / (s[i] * s[i] + damping * damping) if s[i] > cut else 0.0
    return vt.T @ along


# Over 80 lines, 13 parameters: the layers of one frame one after another, on work arrays that are made once.
@compiled
def _frame(
    nodes: Nodes, limits: Limits, parents: Ints, tasks: Tasks, masses: Masses, goals: Floats, ranks: Ints, raw: Floats,
    metric: Floats, most: int, tolerance: float, stays: bool, q: Floats,
) -> int:  # fmt: skip
    """Solve one frame in place from ``q``; goals (K, 3), ranks (K,): layer of each task, `SOFT`, or -1 while it rests.

    A coordinate that meets its limit stays there until the others have settled, or is laid back to the raw pose's.
    """
    size, count = q.size, tasks.kinds.size
    positions, rotations = np.empty((nodes.parents.size, 3)), np.empty((nodes.parents.size, 3, 3))
    motions, reference = np.empty((size, 6)), np.zeros(3)
    longest, layers = 1.0, 0
    for k in range(count):
        longest = max(longest, tasks.lengths[k])
        layers = max(layers, ranks[k] + 1)
    frozen = np.zeros(size, dtype=np.bool_)
    above = np.zeros((3 * count, size))
    used = np.zeros(size, dtype=np.bool_)
    released = 0
    for turn in range(most):
        place_nodes(nodes, q, reference, positions, rotations, motions)
        step, depth = np.zeros(size), 0
        used[:] = False
        for layer in range(layers):
            many = 0
            movable = np.zeros(size, dtype=np.bool_)
            for k in range(count):
                if ranks[k] == layer:
                    many += 1
                    for c in range(size):
                        if tasks.allowed[k, c] and metric[c] > 0.0 and not frozen[c]:
                            movable[c] = True
                            used[c] = True
            if many == 0:
                continue
            rows, wanted = np.zeros((3 * many, size)), np.zeros(3 * many)
            far = _gather(
                tasks, masses, goals, ranks, layer, parents, positions, rotations, motions, metric, rows,
                above[depth : depth + 3 * many], wanted,
            )  # fmt: skip
            # Full damping while a goal is far, less and less near it (Sugihara 2011).
            damping = 0.1 * longest * min(1.0, far / (0.2 * longest))
            free = _freedom(above[:depth], movable, _CUT * longest)
            step += _layer(rows, wanted - above[depth : depth + 3 * many] @ step, damping, _CUT * longest, free)
            depth += 3 * many
        wishes = 0
        for k in range(count):
            if ranks[k] == SOFT:
                wishes += 1
                for c in range(size):
                    if tasks.allowed[k, c] and not frozen[c]:
                        used[c] = True
        # The raw pose as seen from where the layers' step leads; what no task may use is the raw pose's own.
        back = np.zeros(size)
        for c in range(size):
            if metric[c] > 0.0 and used[c]:
                back[c] = (raw[c] - q[c]) / metric[c] - step[c]
            elif not (stays and frozen[c]):
                q[c] = raw[c]
        free = _freedom(above[:depth], used, _CUT * longest)
        step += free @ back
        if wishes > 0:
            rows, whole, wanted = np.zeros((3 * wishes, size)), np.zeros((3 * wishes, size)), np.zeros(3 * wishes)
            _gather(
                tasks, masses, goals, ranks, SOFT, parents, positions, rotations, motions, metric, rows, whole, wanted
            )
            step += _layer(rows, wanted - whole @ step, _WISH * longest, _CUT * longest, free)
        largest = 0.0
        for c in range(size):
            largest = max(largest, abs(step[c]))
        share = min(1.0, 0.5 / max(largest, 1e-12))
        before = q.copy()
        for c in range(size):
            if used[c]:
                q[c] += share * step[c] * metric[c]
        trial = q.copy()
        clamp_coordinates(limits, q)
        moved = 0.0
        for c in range(size):
            if metric[c] > 0.0:
                moved = max(moved, abs(q[c] - before[c]) / metric[c])
            # A coordinate that is pushed against its limit is left out until the others have settled.
            if q[c] != trial[c] and turn > 2:
                frozen[c] = True
        if moved * longest < tolerance:
            if released == _RELEASES or not frozen.any():
                return turn + 1
            frozen[:] = False
            released += 1
    return most


@compiled
def _better(ranks: Ints, one: Floats, other: Floats) -> bool:
    """Return whether residuals (K,) are less than others in the first layer in which they differ."""
    for layer in range(ranks.max() + 1):
        mine, theirs = 0.0, 0.0
        for k in range(ranks.size):
            if ranks[k] == layer:
                mine, theirs = max(mine, one[k]), max(theirs, other[k])
        if abs(mine - theirs) > _SAME:
            return mine < theirs
    return False


@compiled
def _missed(
    nodes: Nodes, tasks: Tasks, masses: Masses, goals: Floats, ranks: Ints, q: Floats, out: Floats
) -> float:  # fmt: skip
    """Write how far each task is missed (K,), NaN while it rests; return the farthest of those that are no wishes."""
    positions, rotations = np.empty((nodes.parents.size, 3)), np.empty((nodes.parents.size, 3, 3))
    motions, error = np.empty((q.size, 6)), np.empty(3)
    place_nodes(nodes, q, np.zeros(3), positions, rotations, motions)
    far = 0.0
    for k in range(tasks.kinds.size):
        out[k] = np.nan
        if ranks[k] != -1:
            _error(tasks, masses, k, goals[k], positions, rotations, error)
            out[k] = math.sqrt(error[0] ** 2 + error[1] ** 2 + error[2] ** 2)
            if ranks[k] >= 0:
                far = max(far, out[k])
    return far


# Eleven parameters: what is solved, and the arrays that the caller keeps.
@compiled
def solve_frames(
    nodes: Nodes, limits: Limits, parents: Ints, tasks: Tasks, masses: Masses, goals: Floats, ranks: Ints, raw: Floats,
    metric: Floats, most: int, tolerance: float,
) -> tuple[Floats, Floats, Ints]:  # fmt: skip
    """Return coordinates (T, D), residuals (T, K) and iterations (T,) for goals (T, K, 3) and ranks (T, K).

    Each frame starts from its raw pose with the correction of the frame before: poses that are close get corrections
    that are close, and a correction that is no longer asked for dies away at once.
    """
    frames, size = raw.shape
    out, residuals = np.empty((frames, size)), np.full((frames, tasks.kinds.size), np.nan)
    iterations, other = np.zeros(frames, dtype=np.int64), np.empty(tasks.kinds.size)
    for t in range(frames):
        q = raw[t].copy()
        if t > 0:
            q += out[t - 1] - raw[t - 1]
            clamp_coordinates(limits, q)
        start = q.copy()
        iterations[t] = _frame(
            nodes, limits, parents, tasks, masses, goals[t], ranks[t], raw[t], metric, most, tolerance, False, q
        )
        far = _missed(nodes, tasks, masses, goals[t], ranks[t], q, residuals[t])
        if far > _SAME:
            # Neither way of dealing with limits gets everywhere.
            iterations[t] += _frame(
                nodes, limits, parents, tasks, masses, goals[t], ranks[t], raw[t], metric, most, tolerance, True, start
            )
            _missed(nodes, tasks, masses, goals[t], ranks[t], start, other)
            if _better(ranks[t], other, residuals[t]):
                q[:], residuals[t] = start, other
        out[t] = q
    return out, residuals, iterations
