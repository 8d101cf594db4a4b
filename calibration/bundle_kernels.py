"""Compiled arithmetic of the bundle adjustment: normal equations, Schur complement, Cholesky, updates.

Notation. Observation n sees model point X of target t in camera c:

    x_world = R_t X + t_t     x_camera = R_c x_world + t_c     r = project(x_camera) - (pixel + velocity * offset_c)

Global parameters g: for each camera 26 numbers (fx fy cx cy skew, 14 distortion coefficients, rotation,
translation, time offset in frames) and three for each model point; ``index`` maps each to a column of the reduced
problem, or to -1 where it is fixed (two that share a column are tied). Each target has six own parameters,
eliminated first:

    S = H_gg - sum_t H_gt H_tt^-1 H_tg
"""

from __future__ import annotations

import math

import numpy as np

from calibration.arrays import Floats, Ints
from calibration.compiled import compiled
from calibration.projection import distort_with_jacobians, project_point

__all__ = [
    "BEHIND",
    "CAMERA_PARAMETERS",
    "CONVERGED",
    "DEGENERATE",
    "UNFINISHED",
    "add_priors",
    "back_substitute",
    "cholesky",
    "cholesky_solve",
    "factorise",
    "linearise",
    "minimise",
    "moved",
    "reduce",
    "reduced_targets",
    "residuals",
    "rotate",
]

CAMERA_PARAMETERS = 26  # 19 of the lens, 3 of the rotation, 3 of the translation, 1 of the clock

#: How a minimisation ended: by itself, by the number of steps, because its start puts a board behind a camera,
#: because some parameter is not seen by the data.
CONVERGED, UNFINISHED, BEHIND, DEGENERATE = range(4)


@compiled
def residuals(
    rows: Floats,
    rotations: Floats,
    translations: Floats,
    points: Floats,
    camera: Ints,
    target: Ints,
    point: Ints,
    pixels: Floats,
    velocity: Floats,
    offsets: Floats,
) -> Floats:
    """Return projected minus observed (n, 2), px; NaN where a point lies behind its camera."""
    out = np.empty((camera.shape[0], 2))
    for n in range(camera.shape[0]):
        r, s, x = rotations[target[n]], translations[target[n]], points[point[n]]
        wx = r[0, 0] * x[0] + r[0, 1] * x[1] + r[0, 2] * x[2] + s[0]
        wy = r[1, 0] * x[0] + r[1, 1] * x[1] + r[1, 2] * x[2] + s[1]
        wz = r[2, 0] * x[0] + r[2, 1] * x[1] + r[2, 2] * x[2] + s[2]
        u, v = project_point(rows[camera[n]], wx, wy, wz)
        late = offsets[camera[n]]
        out[n, 0] = u - pixels[n, 0] - velocity[n, 0] * late
        out[n, 1] = v - pixels[n, 1] - velocity[n, 1] * late
    return out


@compiled
def _weight(square: float, scale: float) -> tuple[float, float]:
    """Return the cost and the reweighting of a squared residual: Cauchy of width ``scale``, or squares if 0."""
    if scale <= 0.0:
        return 0.5 * square, 1.0
    q = square / (scale * scale)
    return 0.5 * scale * scale * math.log1p(q), 1.0 / (1.0 + q)


@compiled
def _jacobian(
    row: Floats,
    rotation: Floats,
    translation: Floats,
    x: float,
    y: float,
    z: float,
    freedom: Floats,
    by_xy: Floats,
    by_k: Floats,
    full: Floats,
) -> tuple[float, float]:
    """Return the predicted pixel of a model point and fill ``full`` (2, 35) with its derivatives.

    ``by_xy`` (2, 2) and ``by_k`` (2, 14) are work space. Arrays come whole: making a view of one for
    each corner would cost as much as the arithmetic.

    Columns: 19 of the lens, 3 of the camera's rotation, 3 of its translation, 1 of its clock (left to the caller),
    6 of the target, 3 of the model point.
    """
    wx = rotation[0, 0] * x + rotation[0, 1] * y + rotation[0, 2] * z + translation[0]
    wy = rotation[1, 0] * x + rotation[1, 1] * y + rotation[1, 2] * z + translation[1]
    wz = rotation[2, 0] * x + rotation[2, 1] * y + rotation[2, 2] * z + translation[2]
    xr = row[20] * wx + row[21] * wy + row[22] * wz
    yr = row[23] * wx + row[24] * wy + row[25] * wz
    zr = row[26] * wx + row[27] * wy + row[28] * wz
    xc, yc, zc = xr + row[29], yr + row[30], zr + row[31]
    if zc < 1e-6:
        return math.nan, math.nan
    near = 1.0 / zc
    xn, yn = xc * near, yc * near
    xd, yd = distort_with_jacobians(row, xn, yn, by_xy, by_k)
    full[0, 0], full[0, 1], full[0, 2], full[0, 3], full[0, 4] = xd, 0.0, 1.0, 0.0, yd
    full[1, 0], full[1, 1], full[1, 2], full[1, 3], full[1, 4] = 0.0, yd, 0.0, 1.0, 0.0
    for k in range(14):
        full[0, 5 + k] = row[1] * by_k[0, k] + row[5] * by_k[1, k]
        full[1, 5 + k] = row[2] * by_k[1, k]
    for axis in range(2):
        if axis == 0:
            gx = row[1] * by_xy[0, 0] + row[5] * by_xy[1, 0]
            gy = row[1] * by_xy[0, 1] + row[5] * by_xy[1, 1]
        else:
            gx, gy = row[2] * by_xy[1, 0], row[2] * by_xy[1, 1]
        jx, jy, jz = gx * near, gy * near, -(gx * xn + gy * yn) * near
        # camera turned by w on the left: d x_camera = w x (R x_world)
        full[axis, 19] = jz * yr - jy * zr
        full[axis, 20] = jx * zr - jz * xr
        full[axis, 21] = jy * xr - jx * yr
        full[axis, 22], full[axis, 23], full[axis, 24] = jx, jy, jz
        # by the world point, then by the target's own turn on the right (R exp(w) X) and by the model point
        bx = jx * row[20] + jy * row[23] + jz * row[26]
        by = jx * row[21] + jy * row[24] + jz * row[27]
        bz = jx * row[22] + jy * row[25] + jz * row[28]
        mx = bx * rotation[0, 0] + by * rotation[1, 0] + bz * rotation[2, 0]
        my = bx * rotation[0, 1] + by * rotation[1, 1] + bz * rotation[2, 1]
        mz = bx * rotation[0, 2] + by * rotation[1, 2] + bz * rotation[2, 2]
        full[axis, 26] = (mz * y - my * z) * freedom[0]
        full[axis, 27] = (mx * z - mz * x) * freedom[1]
        full[axis, 28] = (my * x - mx * y) * freedom[2]
        full[axis, 29], full[axis, 30], full[axis, 31] = bx * freedom[3], by * freedom[4], bz * freedom[5]
        full[axis, 32], full[axis, 33], full[axis, 34] = mx, my, mz
    return row[1] * xd + row[5] * yd + row[3], row[2] * yd + row[4]


@compiled
def _add_view(
    block: Floats, where: Ints, used: int, t: int, h_gg: Floats, h_gt: Floats, h_tt: Floats, g_g: Floats, g_t: Floats
) -> None:
    """Add the normal equations of one camera's view of one target to the whole; ``block`` is its lower triangle.

    Its rows: ``used`` global parameters with the columns ``where``, six of the target, the residual.
    """
    for i in range(used):
        a = where[i]
        for k in range(i):
            h_gg[a, where[k]] += block[i, k]
            h_gg[where[k], a] += block[i, k]
        h_gg[a, a] += block[i, i]
        g_g[a] += block[used + 6, i]
        for k in range(6):
            h_gt[t, a, k] += block[used + k, i]
    for i in range(6):
        g_t[t, i] += block[used + 6, used + i]
        for k in range(i):
            h_tt[t, i, k] += block[used + i, used + k]
            h_tt[t, k, i] += block[used + i, used + k]
        h_tt[t, i, i] += block[used + i, used + i]


@compiled
def linearise(
    rows: Floats,
    rotations: Floats,
    translations: Floats,
    points: Floats,
    camera: Ints,
    target: Ints,
    point: Ints,
    pixels: Floats,
    velocity: Floats,
    offsets: Floats,
    index: Ints,
    point_index: Ints,
    freedom: Floats,
    columns: int,
    scale: float,
) -> tuple[float, Floats, Floats, Floats, Floats, Floats]:
    """Return cost, H_gg (G, G), H_gt (T, G, 6), H_tt (T, 6, 6), gradients (G,) and (T, 6).

    ``index`` (C, 26) and ``point_index`` (P, 3) hold columns or -1; ``freedom`` (T, 6) is 0 where a target's
    own parameter is held (a wand does not turn about its axis). The cost is infinite if a point falls behind.
    Runs of observations of one camera and target (the usual order) are summed in a small block first.
    """
    count = rotations.shape[0]
    h_gg = np.zeros((columns, columns))
    h_gt = np.zeros((count, columns, 6))
    h_tt = np.zeros((count, 6, 6))
    g_g = np.zeros(columns)
    g_t = np.zeros((count, 6))
    by_xy, by_k = np.empty((2, 2)), np.empty((2, 14))
    full = np.empty((2, CAMERA_PARAMETERS + 9))
    most = CAMERA_PARAMETERS + 7
    block, j0, j1 = np.zeros((most, most)), np.empty(most), np.empty(most)
    where = np.empty(CAMERA_PARAMETERS, np.int64)
    slots = np.empty(CAMERA_PARAMETERS, np.int64)
    cost, used, last_c, last_t = 0.0, 0, -1, -1
    row, rotation, translation, free = rows[0], np.eye(3), np.zeros(3), np.ones(6)
    for n in range(camera.shape[0]):
        c, t, p = camera[n], target[n], point[n]
        if c != last_c or t != last_t:
            if last_c >= 0:
                _add_view(block, where, used, last_t, h_gg, h_gt, h_tt, g_g, g_t)
            last_c, last_t, used = c, t, 0
            row, rotation, translation, free = rows[c], rotations[t], translations[t], freedom[t]
            for k in range(CAMERA_PARAMETERS):
                if index[c, k] >= 0:
                    where[used], slots[used] = index[c, k], k
                    used += 1
            block[: used + 7, : used + 7] = 0.0
        u, v = _jacobian(row, rotation, translation, points[p, 0], points[p, 1], points[p, 2], free, by_xy, by_k, full)
        ru = u - pixels[n, 0] - velocity[n, 0] * offsets[c]
        rv = v - pixels[n, 1] - velocity[n, 1] * offsets[c]
        if not (math.isfinite(ru) and math.isfinite(rv)):
            return math.inf, h_gg, h_gt, h_tt, g_g, g_t
        part, w = _weight(ru * ru + rv * rv, scale)
        cost += part
        full[0, 25], full[1, 25] = -velocity[n, 0], -velocity[n, 1]
        for k in range(used):
            j0[k], j1[k] = full[0, slots[k]], full[1, slots[k]]
        for k in range(6):
            j0[used + k], j1[used + k] = full[0, 26 + k], full[1, 26 + k]
        j0[used + 6], j1[used + 6] = ru, rv
        for i in range(used + 7):
            a0, a1 = w * j0[i], w * j1[i]
            for k in range(i + 1):
                block[i, k] += a0 * j0[k] + a1 * j1[k]
        for i in range(3):  # a corner that may move itself
            a = point_index[p, i]
            if a < 0:
                continue
            a0, a1 = w * full[0, 32 + i], w * full[1, 32 + i]
            g_g[a] += a0 * ru + a1 * rv
            for k in range(used):
                cross = a0 * j0[k] + a1 * j1[k]
                h_gg[a, where[k]] += cross
                h_gg[where[k], a] += cross
            for k in range(6):
                h_gt[t, a, k] += a0 * j0[used + k] + a1 * j1[used + k]
            for k in range(3):
                if point_index[p, k] >= 0:
                    h_gg[a, point_index[p, k]] += a0 * full[0, 32 + k] + a1 * full[1, 32 + k]
    if last_c >= 0:
        _add_view(block, where, used, last_t, h_gg, h_gt, h_tt, g_g, g_t)
    return cost, h_gg, h_gt, h_tt, g_g, g_t


@compiled
def factorise(matrix: Floats, low: Floats) -> bool:
    """Fill ``low`` (zeros before) with the Cholesky factor of a matrix; False if it is not positive definite."""
    n = matrix.shape[0]
    for j in range(n):
        d = matrix[j, j]
        for k in range(j):
            d -= low[j, k] * low[j, k]
        if not d > 0.0:
            return False
        low[j, j] = math.sqrt(d)
        for i in range(j + 1, n):
            v = matrix[i, j]
            for k in range(j):
                v -= low[i, k] * low[j, k]
            low[i, j] = v / low[j, j]
    return True


@compiled
def cholesky(matrix: Floats) -> tuple[bool, Floats]:
    """Return whether a symmetric matrix is positive definite and its lower Cholesky factor.

    Our own loop: the same numbers whatever the BLAS and its threads.
    """
    low = np.zeros(matrix.shape)
    return factorise(matrix, low), low


@compiled
def cholesky_solve(low: Floats, right: Floats) -> Floats:
    """Solve L L^T x = b for columns b of ``right`` (n, m)."""
    n, m = right.shape
    x = right.copy()
    for c in range(m):
        for i in range(n):
            s = x[i, c]
            for k in range(i):
                s -= low[i, k] * x[k, c]
            x[i, c] = s / low[i, i]
        for i in range(n - 1, -1, -1):
            s = x[i, c]
            for k in range(i + 1, n):
                s -= low[k, i] * x[k, c]
            x[i, c] = s / low[i, i]
    return x


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
def moved(
    rows: Floats,
    rotations: Floats,
    translations: Floats,
    points: Floats,
    offsets: Floats,
    index: Ints,
    point_index: Ints,
    by_global: Floats,
    by_target: Floats,
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return rows, target rotations and translations, model points and time offsets after a step."""
    new_rows, new_points, new_offsets = rows.copy(), points.copy(), offsets.copy()
    new_rotations, new_translations = rotations.copy(), translations.copy()
    delta = np.zeros(CAMERA_PARAMETERS)
    for c in range(rows.shape[0]):
        for k in range(CAMERA_PARAMETERS):
            delta[k] = by_global[index[c, k]] if index[c, k] >= 0 else 0.0
        for k in range(19):
            new_rows[c, 1 + k] += delta[k]
        turn = rotate(delta[19:22])
        for i in range(3):
            for j in range(3):
                v = 0.0
                for k in range(3):
                    v += turn[i, k] * rows[c, 20 + 3 * k + j]
                new_rows[c, 20 + 3 * i + j] = v
            new_rows[c, 29 + i] += delta[22 + i]
        new_offsets[c] += delta[25]
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
    return new_rows, new_rotations, new_translations, new_points, new_offsets


@compiled
def reduce(
    h_gg: Floats,
    h_gt: Floats,
    h_tt: Floats,
    g_g: Floats,
    g_t: Floats,
    freedom: Floats,
    damping: float,
) -> tuple[bool, Floats, Floats, Floats, Floats, Floats]:
    """Eliminate the targets. With L L^T = H_tt return success, S (G, G), its right side (G,), and for the way back
    the factors L (T, 6, 6), L^-1 H_tg as (T, G, 6) and L^-1 g_t (T, 6).

    Marquardt damping multiplies the diagonals by 1 + ``damping``.
    """
    columns, count = h_gg.shape[0], h_tt.shape[0]
    s = h_gg.copy()
    b = -g_g
    for a in range(columns):
        s[a, a] *= 1.0 + damping
    factors = np.zeros((count, 6, 6))
    whitened = np.zeros((count, columns, 6))
    own = np.zeros((count, 6))
    active = np.empty(columns, np.int64)
    block = np.empty((6, 6))
    for t in range(count):
        block[:, :] = h_tt[t]
        for k in range(6):
            block[k, k] *= 1.0 + damping
            if freedom[t, k] == 0.0:
                block[k, k] = 1.0
        low = factors[t]
        if not factorise(block, low):
            return False, s, b, factors, whitened, own
        _forward(low, g_t[t], own[t])
        used = 0
        for a in range(columns):
            h = h_gt[t, a]
            if h[0] != 0.0 or h[1] != 0.0 or h[2] != 0.0 or h[3] != 0.0 or h[4] != 0.0 or h[5] != 0.0:
                active[used] = a
                used += 1
                _forward(low, h, whitened[t, a])
        for i in range(used):
            a = active[i]
            x = whitened[t, a]
            x0, x1, x2, x3, x4, x5 = x[0], x[1], x[2], x[3], x[4], x[5]
            y = own[t]
            b[a] += x0 * y[0] + x1 * y[1] + x2 * y[2] + x3 * y[3] + x4 * y[4] + x5 * y[5]
            for j in range(i + 1):
                y = whitened[t, active[j]]
                s[a, active[j]] -= x0 * y[0] + x1 * y[1] + x2 * y[2] + x3 * y[3] + x4 * y[4] + x5 * y[5]
    for a in range(columns):
        for k in range(a):
            s[k, a] = s[a, k]
    return True, s, b, factors, whitened, own


@compiled
def _forward(low: Floats, right: Floats, out: Floats) -> None:
    """Solve L x = b into ``out`` for a small lower triangle."""
    for i in range(low.shape[0]):
        v = right[i]
        for k in range(i):
            v -= low[i, k] * out[k]
        out[i] = v / low[i, i]


@compiled
def back_substitute(factors: Floats, whitened: Floats, own: Floats, by_global: Floats) -> Floats:
    """Return the step of each target (T, 6), -H_tt^-1 (g_t + H_tg x), from what `reduce` left."""
    out = np.empty_like(own)
    for t in range(own.shape[0]):
        y = out[t]
        y[:] = -own[t]
        for a in range(by_global.shape[0]):
            for k in range(6):
                y[k] -= whitened[t, a, k] * by_global[a]
        low = factors[t]
        for i in range(5, -1, -1):
            v = y[i]
            for k in range(i + 1, 6):
                v -= low[k, i] * y[k]
            y[i] = v / low[i, i]
    return out


@compiled
def add_priors(
    rows: Floats, index: Ints, camera: Ints, slot: Ints, mean: Floats, information: Floats, h_gg: Floats, g_g: Floats
) -> float:
    """Add Gaussian knowledge of some lens numbers to the normal equations; return its cost."""
    cost = 0.0
    for i in range(camera.shape[0]):
        off = rows[camera[i], 1 + slot[i]] - mean[i]
        a = index[camera[i], slot[i]]
        for k in range(camera.shape[0]):
            other = rows[camera[k], 1 + slot[k]] - mean[k]
            cost += 0.5 * off * information[i, k] * other
            g_g[a] += information[i, k] * other
            h_gg[a, index[camera[k], slot[k]]] += information[i, k]
    return cost


@compiled
def minimise(
    rows: Floats,
    rotations: Floats,
    translations: Floats,
    points: Floats,
    camera: Ints,
    target: Ints,
    point: Ints,
    pixels: Floats,
    velocity: Floats,
    offsets: Floats,
    index: Ints,
    point_index: Ints,
    freedom: Floats,
    columns: int,
    scale: float,
    prior_camera: Ints,
    prior_slot: Ints,
    prior_mean: Floats,
    prior_information: Floats,
    iterations: int,
    tolerance: float,
) -> tuple[int, int, Floats, Floats, Floats, Floats, Floats]:
    """Levenberg-Marquardt. Return the outcome (`CONVERGED` and the like), steps, and the state as `moved` does."""
    rows, rotations, translations = rows.copy(), rotations.copy(), translations.copy()
    points, offsets = points.copy(), offsets.copy()
    cost, h_gg, h_gt, h_tt, g_g, g_t = linearise(
        rows, rotations, translations, points, camera, target, point, pixels, velocity, offsets,
        index, point_index, freedom, columns, scale,
    )  # fmt: skip
    if not math.isfinite(cost):
        return BEHIND, 0, rows, rotations, translations, points, offsets
    cost += add_priors(rows, index, prior_camera, prior_slot, prior_mean, prior_information, h_gg, g_g)
    damping, step = 1e-4, 0
    while step < iterations:
        step += 1
        ok, s, b, factors, whitened, own = reduce(h_gg, h_gt, h_tt, g_g, g_t, freedom, damping)
        low = np.zeros((columns, columns))
        if not (ok and factorise(s, low)):
            if damping > 1e8:
                return DEGENERATE, step, rows, rotations, translations, points, offsets
            damping *= 10.0
            continue
        by_global = cholesky_solve(low, b.reshape(-1, 1))[:, 0]
        by_target = back_substitute(factors, whitened, own, by_global)
        tried = moved(rows, rotations, translations, points, offsets, index, point_index, by_global, by_target)
        new_cost, n_gg, n_gt, n_tt, n_g, n_t = linearise(
            tried[0], tried[1], tried[2], tried[3], camera, target, point, pixels, velocity, tried[4],
            index, point_index, freedom, columns, scale,
        )  # fmt: skip
        if math.isfinite(new_cost):
            new_cost += add_priors(tried[0], index, prior_camera, prior_slot, prior_mean, prior_information, n_gg, n_g)
        predicted = 0.0
        for a in range(columns):
            predicted -= g_g[a] * by_global[a]
        for t in range(g_t.shape[0]):
            for k in range(6):
                predicted -= g_t[t, k] * by_target[t, k]
        if new_cost <= cost:
            rows, rotations, translations, points, offsets = tried
            cost, h_gg, h_gt, h_tt, g_g, g_t = new_cost, n_gg, n_gt, n_tt, n_g, n_t
            if predicted < tolerance * (cost + 1e-12):
                return CONVERGED, step, rows, rotations, translations, points, offsets
            damping = max(damping * 0.1, 1e-12)
        else:
            if predicted < 1e-12 * (cost + 1e-12):  # at the limit of arithmetic
                return CONVERGED, step, rows, rotations, translations, points, offsets
            damping *= 10.0
            if damping > 1e12:
                break
    return UNFINISHED, step, rows, rotations, translations, points, offsets


@compiled
def reduced_targets(
    rows: Floats,
    rotations: Floats,
    translations: Floats,
    points: Floats,
    camera: Ints,
    target: Ints,
    point: Ints,
    pixels: Floats,
    velocity: Floats,
    offsets: Floats,
    index: Ints,
    point_index: Ints,
    freedom: Floats,
    columns: int,
    scale: float,
) -> tuple[bool, Floats, Floats, Floats]:
    """Return what each target says of the global parameters once its own pose is eliminated: cost (T,), right side
    (T, G) and S (T, G, G), so that its cost at a step x is cost - right x + x S x / 2. Observations come target by
    target.
    """
    count = rotations.shape[0]
    costs, right, s = np.zeros(count), np.zeros((count, columns)), np.zeros((count, columns, columns))
    one = np.zeros(camera.shape[0], np.int64)
    first = 0
    while first < camera.shape[0]:
        t, last = target[first], first
        while last < camera.shape[0] and target[last] == t:
            last += 1
        cost, h_gg, h_gt, h_tt, g_g, g_t = linearise(
            rows, rotations[t : t + 1], translations[t : t + 1], points, camera[first:last], one[first:last],
            point[first:last], pixels[first:last], velocity[first:last], offsets, index, point_index,
            freedom[t : t + 1], columns, scale,
        )  # fmt: skip
        ok, reduced, b, _, _, own = reduce(h_gg, h_gt, h_tt, g_g, g_t, freedom[t : t + 1], 0.0)
        if not (ok and math.isfinite(cost)):
            return False, costs, right, s
        for k in range(6):
            cost -= 0.5 * own[0, k] * own[0, k]
        costs[t], right[t], s[t] = cost, b, reduced
        first = last
    return True, costs, right, s
