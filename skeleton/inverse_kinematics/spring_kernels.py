"""Compiled spring solver: damped Newton steps within the joint limits, frame after frame.

The energy and its derivatives are in `skeleton.inverse_kinematics.spring_energy`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from calibration.foundation.arrays import Bools, Floats, Ints
from calibration.foundation.compiled import compiled
from skeleton.inverse_kinematics.spring_energy import SpringBody, assemble, factor, joint_sigmas, solve_factored
from skeleton.tree.articulation_kernels import Limits, clamp_coordinates, wrap_balls

__all__ = ["CONVERGED", "NO_MARKERS", "STALLED", "TOO_LONG", "Equilibria", "solve_frames"]

CONVERGED, TOO_LONG, STALLED, NO_MARKERS = 0, 1, 2, 3


class Equilibria(NamedTuple):
    """Solved frames.

    Attributes:
        coordinates: (T, D) poses.
        residuals: (T, M) distances of the markers from their targets, mm, NaN where not seen.
        sigma: (T, J) standard deviation of each segment's origin, mm.
        energy: (T,).
        status: (T,) `CONVERGED` and the like.
        iterations: (T,).
    """

    coordinates: Floats
    residuals: Floats
    sigma: Floats
    energy: Floats
    status: Ints
    iterations: Ints


@compiled
def _hold_limits(
    limits: Limits, q: Floats, step: Floats, boxes: Ints, shells: Ints, normals: Floats, reaches: Floats
) -> int:
    """Mark the limits that a step would break; return how many are new.

    ``boxes`` (D,) is -1 or 1 where a coordinate is held at its lower or upper bound; ``shells`` (G,) is 1 where an
    ellipsoid is held along ``normals`` (G, 3), which the step may climb by ``reaches`` (G,).
    """
    new = 0
    half, away = np.empty(3), np.empty(3)
    for d in range(q.size):
        if boxes[d] == 0 and q[d] + step[d] < limits.lower[d]:
            boxes[d] = -1
            new += 1
        elif boxes[d] == 0 and q[d] + step[d] > limits.upper[d]:
            boxes[d] = 1
            new += 1
    for g in range(limits.starts.size):
        first = limits.starts[g]
        inside = 0.0
        for i in range(3):
            away[i] = q[first + i] + step[first + i]
            half[i] = max(limits.halves[g, i, 1] if away[i] >= 0.0 else limits.halves[g, i, 0], 1e-9)
            inside += (away[i] / half[i]) ** 2
        if shells[g] == 1 or inside <= 1.0 + 1e-9:
            continue
        # Tangent plane where the ray to the step's end leaves the ellipsoid.
        length, climb, scale = 0.0, 0.0, 1.0 / math.sqrt(inside)
        for i in range(3):
            normals[g, i] = away[i] / (half[i] * half[i])
            length += normals[g, i] ** 2
        length = math.sqrt(length)
        for i in range(3):
            normals[g, i] /= length
            climb += normals[g, i] * (away[i] * scale - q[first + i])
        reaches[g] = climb
        shells[g] = 1
        new += 1
    return new


@compiled
def _bounded_step(
    limits: Limits,
    parents: Ints,
    locked: Bools,
    q: Floats,
    gradient: Floats,
    damped: Floats,
    matrix: Floats,
    step: Floats,
) -> bool:
    """Fill ``step`` with the minimiser of the damped quadratic model within the (linearised) limits; False if it has
    none.

    An active-set method: limits that the free step breaks are held and the rest is solved again; a few rounds
    settle it.
    """
    size, groups = q.size, limits.starts.size
    boxes, shells = np.zeros(size, dtype=np.int64), np.zeros(groups, dtype=np.int64)
    normals, reaches = np.zeros((groups, 3)), np.zeros(groups)
    for _ in range(6):
        for a in range(size):
            b = a
            while b >= 0:
                matrix[a, b] = damped[a, b]
                b = parents[b]
            step[a] = -gradient[a]
        for d in range(size):
            firm = 1e7 * (damped[d, d] + 1.0)
            if locked[d]:
                matrix[d, d] += firm * 1e3
            elif boxes[d] != 0:
                matrix[d, d] += firm
                step[d] += firm * ((limits.lower[d] if boxes[d] < 0 else limits.upper[d]) - q[d])
        for g in range(groups):
            if shells[g] == 0:
                continue
            first = limits.starts[g]
            firm = 1e5 * (1.0 + damped[first, first] + damped[first + 1, first + 1] + damped[first + 2, first + 2])
            for i in range(3):
                step[first + i] += firm * reaches[g] * normals[g, i]
                for k in range(i + 1):
                    matrix[first + i, first + k] += firm * normals[g, i] * normals[g, k]
        if not factor(matrix, parents):
            return False
        solve_factored(matrix, parents, step)
        new = _hold_limits(limits, q, step, boxes, shells, normals, reaches)
        if new == 0:
            break
    return True


# Over 80 lines, 13 parameters: one damped Newton loop on work arrays of the caller, nothing allocated per frame.
@compiled
def _solve_one(
    body: SpringBody,
    limits: Limits,
    locked: Bools,
    targets: Floats,
    stiffness: Floats,
    cutoff: float,
    rest: Floats,
    rest_stiffness: Floats,
    most: int,
    tolerance: float,
    q: Floats,
    normal: Floats,
    residuals: Floats,
) -> tuple[int, int, float]:
    """Minimise the energy from ``q``, which ends at the equilibrium; return status, iterations and energy.

    Levenberg-Marquardt damped in the metric of the body's ``lever``.
    """
    parents, lever, size = body.parents, body.lever, q.size
    gradient, trial_gradient, step = np.empty(size), np.empty(size), np.empty(size)
    trial_normal, matrix, trial = np.empty((size, size)), np.empty((size, size)), np.empty(size)
    damped, trial_residuals = np.empty((size, size)), np.empty(residuals.size)
    bend, trial_bend = np.empty((size, size)), np.empty((size, size))
    clamp_coordinates(limits, q)
    energy = assemble(body, q, targets, stiffness, cutoff, rest, rest_stiffness, normal, bend, gradient, residuals)
    damping, growth = 1e-4, 2.0
    status, rounds = TOO_LONG, 0
    while rounds < most:
        rounds += 1
        for a in range(size):
            b = a
            while b >= 0:
                damped[a, b] = normal[a, b] + bend[a, b]
                b = parents[b]
            damped[a, a] += damping * (normal[a, a] + 1e-3 * lever[a] * lever[a]) + 1e-12
        if not _bounded_step(limits, parents, locked, q, gradient, damped, matrix, step):
            # Newton's matrix is not positive here: take Gauss and Newton's, which is.
            for a in range(size):
                b = a
                while b >= 0:
                    damped[a, b] -= bend[a, b]
                    bend[a, b] = 0.0
                    b = parents[b]
            _bounded_step(limits, parents, locked, q, gradient, damped, matrix, step)
        for a in range(size):
            trial[a] = q[a] if locked[a] else q[a] + step[a]
        clamp_coordinates(limits, trial)
        # What the quadratic model promises for the step as it was taken.
        promised = 0.0
        for a in range(size):
            step[a] = trial[a] - q[a]
        for a in range(size):
            promised -= step[a] * (gradient[a] + 0.5 * (normal[a, a] + bend[a, a]) * step[a])
            b = parents[a]
            while b >= 0:
                promised -= (normal[a, b] + bend[a, b]) * step[a] * step[b]
                b = parents[b]
        trial_energy = assemble(
            body, trial, targets, stiffness, cutoff, rest, rest_stiffness, trial_normal, trial_bend, trial_gradient,
            trial_residuals,
        )  # fmt: skip
        drop = energy - trial_energy
        if drop >= 0.0:
            energy = trial_energy
            for a in range(size):
                q[a] = trial[a]
                gradient[a] = trial_gradient[a]
                b = a
                while b >= 0:
                    normal[a, b] = trial_normal[a, b]
                    bend[a, b] = trial_bend[a, b]
                    b = parents[b]
            for m in range(residuals.size):
                residuals[m] = trial_residuals[m]
            if drop <= tolerance:
                status = CONVERGED
                break
            # Nielsen 1999: the better the model foretold the drop, the bolder the next step.
            gain = drop / promised if promised > 0.0 else 1.0
            damping = max(damping * max(0.1, 1.0 - (2.0 * min(gain, 1.5) - 1.0) ** 3), 1e-9)
            growth = 2.0
        else:
            if promised <= tolerance:
                status = CONVERGED
                break
            damping = max(damping * growth, 1e-5)
            growth *= 2.0
            if damping > 1e9:
                status = STALLED
                break
    return status, rounds, energy


# Over 80 lines, 14 parameters: the work arrays of all frames are made once here.
@compiled
def solve_frames(
    body: SpringBody,
    limits: Limits,
    locked: Bools,
    targets: Floats,
    stiffness: Floats,
    cutoffs: Floats,
    rest: Floats,
    rest_stiffness: Floats,
    most: int,
    tolerance: float,
    start: Floats,
    warm: bool,
    memory: Floats,
    found: Equilibria,
) -> None:
    """Solve T frames in order into ``found``; each begins at the one before (``warm``) or its ``start`` (T or 1, D).

    ``targets`` (T, M, 3), ``stiffness`` (T, M), ``rest`` (T or 1, D). ``cutoffs`` (K,) are gone through from the
    widest to the narrowest on a cold start; a warm frame uses the last one, and all where that lets markers go.
    ``memory`` (D,) is the correlation of a coordinate's deviation from rest with that of the frame before. Where
    markers are missing, the springs of a warm frame have the mean and variance that follow from that frame.
    Without markers the pose is held.
    """
    coordinates, residuals, sigma, energies, status, iterations = found
    size, markers = body.parents.size, body.marker_nodes.size
    q, normal = np.empty(size), np.empty((size, size))
    begin, again, apart = np.empty(size), np.empty((size, size)), np.empty(markers)
    towards, held, bend, gradient = np.empty(size), np.empty(size), np.empty((size, size)), np.empty(size)
    narrow = cutoffs[cutoffs.size - 1]
    for t in range(targets.shape[0]):
        cold = t == 0 or not warm
        if cold:
            q[:] = start[min(t, start.shape[0] - 1)]
        wrap_balls(body.nodes, q)
        seen = 0
        for m in range(markers):
            if targets[t, m, 0] == targets[t, m, 0] and stiffness[t, m] > 0.0:
                seen += 1
        here = rest[min(t, rest.shape[0] - 1)]
        total = 0
        code, energy = NO_MARKERS, 0.0
        if seen > 0:
            remembers = not cold and seen < markers
            before = rest[min(t - 1, rest.shape[0] - 1)]
            for d in range(size):
                begin[d] = q[d]
                share = memory[d] if remembers else 0.0
                towards[d] = here[d] + share * (q[d] - before[d])
                held[d] = rest_stiffness[d] / (1.0 - share * share)
            if not cold:
                code, total, energy = _solve_one(
                    body, limits, locked, targets[t], stiffness[t], narrow, towards, held, most, tolerance, q, normal,
                    residuals[t],
                )  # fmt: skip
                # A marker that the pose before makes look wrong may be right: where one was let go, the cutoff is
                # also narrowed in steps as on a cold start, and the lower energy wins.
                for m in range(markers):
                    if residuals[t, m] * math.sqrt(stiffness[t, m]) > narrow:
                        cold = cutoffs.size > 1
            if cold:
                annealed = 0.0
                for c in range(cutoffs.size):
                    other, rounds, annealed = _solve_one(
                        body, limits, locked, targets[t], stiffness[t], cutoffs[c], towards, held, most, tolerance,
                        begin, again, apart,
                    )  # fmt: skip
                    total += rounds
                if code == NO_MARKERS or annealed < energy:
                    code, energy = other, annealed
                    q[:] = begin
                    normal[:] = again
                    residuals[t] = apart
            if remembers:  # what is reported leaves the memory out: it is no measurement
                energy = assemble(
                    body, q, targets[t], stiffness[t], narrow, here, rest_stiffness, normal, bend, gradient,
                    residuals[t],
                )  # fmt: skip
            joint_sigmas(body, q, normal, sigma[t])
        else:
            residuals[t, :] = np.nan
            sigma[t, :] = np.inf
        coordinates[t] = q
        energies[t] = energy
        status[t] = code
        iterations[t] = total
