"""The steps of the bundle adjustment, compiled: Levenberg-Marquardt, and what each target alone says."""

from __future__ import annotations

import math

import numpy as np

from calibration.bundle.elimination import back_substitute, reduce
from calibration.bundle.equations import (
    CAMERA_PARAMETERS,
    CLOCK,
    SHIFT,
    TURN,
    Equations,
    Observations,
    Priors,
    State,
    Unknowns,
    add_priors,
    linearise,
)
from calibration.cameras.camera_row import FX, LENS_PARAMETERS, R00, TX
from calibration.foundation.arrays import Floats
from calibration.foundation.compiled import compiled
from calibration.geometry.small_matrices import cholesky_solve, factorise

__all__ = ["BEHIND", "CONVERGED", "DEGENERATE", "minimise", "moved", "reduced_targets", "rotate"]

#: How a minimisation ended: by itself, by the number of steps, because its start puts a board behind a camera,
#: because some parameter is not seen by the data.
CONVERGED, UNFINISHED, BEHIND, DEGENERATE = range(4)


@compiled
def rotate(vector: Floats) -> Floats:
    """Return the rotation matrix (3, 3) of a rotation vector."""
    angle = math.sqrt(vector[0] ** 2 + vector[1] ** 2 + vector[2] ** 2)
    out = np.eye(3)
    if angle < 1e-300:
        return out
    s = math.sin(angle) / angle
    c = 2.0 * math.sin(0.5 * angle) ** 2 / (angle * angle)
    x, y, z = vector[0], vector[1], vector[2]
    out[0, 0] -= c * (y * y + z * z)
    out[1, 1] -= c * (x * x + z * z)
    out[2, 2] -= c * (x * x + y * y)
    out[0, 1] += c * x * y - s * z
    out[1, 0] += c * x * y + s * z
    out[0, 2] += c * x * z + s * y
    out[2, 0] += c * x * z - s * y
    out[1, 2] += c * y * z - s * x
    out[2, 1] += c * y * z + s * x
    return out


@compiled
def moved(state: State, unknowns: Unknowns, by_global: Floats, by_target: Floats) -> State:
    """Return the state after a step of the global parameters (G,) and of the targets (T, 6)."""
    rows, rotations, translations, points, offsets = state
    index, point_index = unknowns.camera, unknowns.point
    new_rows, new_points, new_offsets = rows.copy(), points.copy(), offsets.copy()
    new_rotations, new_translations = rotations.copy(), translations.copy()
    delta = np.zeros(CAMERA_PARAMETERS)
    for c in range(rows.shape[0]):
        for k in range(CAMERA_PARAMETERS):
            delta[k] = by_global[index[c, k]] if index[c, k] >= 0 else 0.0
        for k in range(LENS_PARAMETERS):
            new_rows[c, FX + k] += delta[k]
        turn = rotate(delta[TURN:SHIFT])
        for i in range(3):
            for j in range(3):
                v = 0.0
                for k in range(3):
                    v += turn[i, k] * rows[c, R00 + 3 * k + j]
                new_rows[c, R00 + 3 * i + j] = v
            new_rows[c, TX + i] += delta[SHIFT + i]
        new_offsets[c] += delta[CLOCK]
    for t in range(rotations.shape[0]):
        turn = rotate(by_target[t, :3])
        for i in range(3):
            for j in range(3):
                v = 0.0
                for k in range(3):
                    v += rotations[t, i, k] * turn[k, j]
                new_rotations[t, i, j] = v
            new_translations[t, i] += by_target[t, 3 + i]
    for p in range(points.shape[0]):
        for k in range(3):
            if point_index[p, k] >= 0:
                new_points[p, k] += by_global[point_index[p, k]]
    return State(new_rows, new_rotations, new_translations, new_points, new_offsets)


@compiled
def minimise(
    start: State,
    seen: Observations,
    unknowns: Unknowns,
    priors: Priors,
    scale: float,
    iterations: int,
    tolerance: float,
) -> tuple[int, int, State]:
    """Levenberg-Marquardt. Return the outcome (`CONVERGED` and the like), steps, and the state reached."""
    rows, rotations, translations, points, offsets = start
    state = State(rows.copy(), rotations.copy(), translations.copy(), points.copy(), offsets.copy())
    cost, equations = _whole_cost(state, seen, unknowns, priors, scale)
    if not math.isfinite(cost):
        return BEHIND, 0, state
    damping, step = 1e-4, 0
    while step < iterations:
        step += 1
        ok, s, b, eliminated = reduce(equations, unknowns.target, damping)
        low = np.zeros((unknowns.columns, unknowns.columns))
        if not (ok and factorise(s, low)):
            if damping > 1e8:
                return DEGENERATE, step, state
            damping *= 10.0
            continue
        by_global = cholesky_solve(low, b.reshape(-1, 1))[:, 0]
        by_target = back_substitute(eliminated, by_global)
        tried = moved(state, unknowns, by_global, by_target)
        new_cost, new_equations = _whole_cost(tried, seen, unknowns, priors, scale)
        predicted = _predicted_decrease(equations, by_global, by_target)
        if new_cost <= cost:
            state, cost, equations = tried, new_cost, new_equations
            if predicted < tolerance * (cost + 1e-12):
                return CONVERGED, step, state
            damping = max(damping * 0.1, 1e-12)
        else:
            if predicted < 1e-12 * (cost + 1e-12):  # at the limit of arithmetic
                return CONVERGED, step, state
            damping *= 10.0
            if damping > 1e12:
                break
    return UNFINISHED, step, state


@compiled
def _whole_cost(
    state: State, seen: Observations, unknowns: Unknowns, priors: Priors, scale: float
) -> tuple[float, Equations]:
    """Return the cost of observations and priors together, and their normal equations."""
    equations = linearise(state, seen, unknowns, scale)
    cost = equations.cost
    if math.isfinite(cost):
        cost += add_priors(state.rows, unknowns.camera, priors, equations.h_gg, equations.g_g)
    return cost, equations


@compiled
def _predicted_decrease(equations: Equations, by_global: Floats, by_target: Floats) -> float:
    """Return minus the gradient times a step: twice what an undamped step lowers the cost by, to second order."""
    g_g, g_t = equations.g_g, equations.g_t
    predicted = 0.0
    for a in range(g_g.shape[0]):
        predicted -= g_g[a] * by_global[a]
    for t in range(g_t.shape[0]):
        for k in range(6):
            predicted -= g_t[t, k] * by_target[t, k]
    return predicted


@compiled
def reduced_targets(
    state: State, seen: Observations, unknowns: Unknowns, scale: float
) -> tuple[bool, Floats, Floats, Floats]:
    """Return what each target says of the global parameters once its own pose is eliminated: cost (T,), right side
    (T, G) and S (T, G, G), so that its cost at a step x is cost - right x + x S x / 2. Observations come target by
    target.
    """
    rows, rotations, translations, points, offsets = state
    camera, target, point, pixels, velocity = seen
    index, point_index, freedom, columns = unknowns
    count = rotations.shape[0]
    costs, right, s = np.zeros(count), np.zeros((count, columns)), np.zeros((count, columns, columns))
    one = np.zeros(camera.shape[0], np.int64)
    first = 0
    while first < camera.shape[0]:
        t, last = target[first], first
        while last < camera.shape[0] and target[last] == t:
            last += 1
        equations = linearise(
            State(rows, rotations[t : t + 1], translations[t : t + 1], points, offsets),
            Observations(
                camera[first:last], one[first:last], point[first:last], pixels[first:last], velocity[first:last]
            ),
            Unknowns(index, point_index, freedom[t : t + 1], columns),
            scale,
        )
        ok, reduced, b, eliminated = reduce(equations, freedom[t : t + 1], 0.0)
        cost = equations.cost
        if not (ok and math.isfinite(cost)):
            return False, costs, right, s
        for k in range(6):
            cost -= 0.5 * eliminated.own[0, k] * eliminated.own[0, k]
        costs[t], right[t], s[t] = cost, b, reduced
        first = last
    return True, costs, right, s
