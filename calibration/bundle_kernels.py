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
from calibration.projection import distort_with_jacobians

__all__ = ["CAMERA_PARAMETERS", "cholesky", "cholesky_solve", "linearise", "residuals", "rotate"]

CAMERA_PARAMETERS = 26  # 19 of the lens, 3 of the rotation, 3 of the translation, 1 of the clock


@compiled
def _observe(
    row: Floats, rotation: Floats, translation: Floats, point: Floats, work: Floats
) -> tuple[float, float, float, float, float, float]:
    """Return pixel, distorted ideal point (xd, yd) and rotated point's depth data; fill ``work`` with Jacobians."""
    wx = rotation[0, 0] * point[0] + rotation[0, 1] * point[1] + rotation[0, 2] * point[2] + translation[0]
    wy = rotation[1, 0] * point[0] + rotation[1, 1] * point[1] + rotation[1, 2] * point[2] + translation[1]
    wz = rotation[2, 0] * point[0] + rotation[2, 1] * point[1] + rotation[2, 2] * point[2] + translation[2]
    xr = row[20] * wx + row[21] * wy + row[22] * wz
    yr = row[23] * wx + row[24] * wy + row[25] * wz
    zr = row[26] * wx + row[27] * wy + row[28] * wz
    xc, yc, zc = xr + row[29], yr + row[30], zr + row[31]
    if zc < 1e-6:
        return math.nan, math.nan, 0.0, 0.0, 0.0, 0.0
    xn, yn = xc / zc, yc / zc
    by_xy, by_k = work[:, 14:16], work[:, :14]
    xd, yd = distort_with_jacobians(row, xn, yn, by_xy, by_k)
    # d(u, v)/d(x_camera) in work[:, 16:19]
    for axis in range(2):
        if axis == 0:
            gx = row[1] * by_xy[0, 0] + row[5] * by_xy[1, 0]
            gy = row[1] * by_xy[0, 1] + row[5] * by_xy[1, 1]
        else:
            gx, gy = row[2] * by_xy[1, 0], row[2] * by_xy[1, 1]
        work[axis, 16] = gx / zc
        work[axis, 17] = gy / zc
        work[axis, 18] = -(gx * xn + gy * yn) / zc
    return row[1] * xd + row[5] * yd + row[3], row[2] * yd + row[4], xd, yd, xr, yr


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
    work = np.empty((2, 19))
    for n in range(camera.shape[0]):
        t = target[n]
        u, v, _, _, _, _ = _observe(rows[camera[n]], rotations[t], translations[t], points[point[n]], work)
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
    """
    count = rotations.shape[0]
    h_gg = np.zeros((columns, columns))
    h_gt = np.zeros((count, columns, 6))
    h_tt = np.zeros((count, 6, 6))
    g_g = np.zeros(columns)
    g_t = np.zeros((count, 6))
    work = np.empty((2, 19))
    full = np.empty((2, CAMERA_PARAMETERS + 3))
    own = np.empty((2, 6))
    where = np.empty(CAMERA_PARAMETERS + 3, np.int64)
    slots = np.empty(CAMERA_PARAMETERS + 3, np.int64)
    cost = 0.0
    for n in range(camera.shape[0]):
        c, t, p = camera[n], target[n], point[n]
        row, rotation, model = rows[c], rotations[t], points[p]
        u, v, xd, yd, xr, yr = _observe(row, rotation, translations[t], model, work)
        ru = u - pixels[n, 0] - velocity[n, 0] * offsets[c]
        rv = v - pixels[n, 1] - velocity[n, 1] * offsets[c]
        if not (math.isfinite(ru) and math.isfinite(rv)):
            return math.inf, h_gg, h_gt, h_tt, g_g, g_t
        part, w = _weight(ru * ru + rv * rv, scale)
        cost += part
        # rotated depth, from the same products as in _observe
        wx = rotation[0, 0] * model[0] + rotation[0, 1] * model[1] + rotation[0, 2] * model[2] + translations[t, 0]
        wy = rotation[1, 0] * model[0] + rotation[1, 1] * model[1] + rotation[1, 2] * model[2] + translations[t, 1]
        wz = rotation[2, 0] * model[0] + rotation[2, 1] * model[1] + rotation[2, 2] * model[2] + translations[t, 2]
        zr = row[26] * wx + row[27] * wy + row[28] * wz
        for axis in range(2):
            jx, jy, jz = work[axis, 16], work[axis, 17], work[axis, 18]
            # lens: focal lengths, centre, skew, coefficients
            full[axis, 0] = xd if axis == 0 else 0.0
            full[axis, 1] = 0.0 if axis == 0 else yd
            full[axis, 2] = 1.0 if axis == 0 else 0.0
            full[axis, 3] = 0.0 if axis == 0 else 1.0
            full[axis, 4] = yd if axis == 0 else 0.0
            for k in range(14):
                if axis == 0:
                    full[axis, 5 + k] = row[1] * work[0, k] + row[5] * work[1, k]
                else:
                    full[axis, 5 + k] = row[2] * work[1, k]
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
            own[axis, 0] = (mz * model[1] - my * model[2]) * freedom[t, 0]
            own[axis, 1] = (mx * model[2] - mz * model[0]) * freedom[t, 1]
            own[axis, 2] = (my * model[0] - mx * model[1]) * freedom[t, 2]
            own[axis, 3], own[axis, 4], own[axis, 5] = bx * freedom[t, 3], by * freedom[t, 4], bz * freedom[t, 5]
            full[axis, 25] = -velocity[n, axis]
            full[axis, 26], full[axis, 27], full[axis, 28] = mx, my, mz
        used = 0
        for k in range(CAMERA_PARAMETERS):
            if index[c, k] >= 0:
                where[used], slots[used] = index[c, k], k
                used += 1
        for k in range(3):
            if point_index[p, k] >= 0:
                where[used], slots[used] = point_index[p, k], CAMERA_PARAMETERS + k
                used += 1
        for i in range(used):
            a, s = where[i], slots[i]
            j0, j1 = w * full[0, s], w * full[1, s]
            g_g[a] += j0 * ru + j1 * rv
            for k in range(used):
                h_gg[a, where[k]] += j0 * full[0, slots[k]] + j1 * full[1, slots[k]]
            for k in range(6):
                h_gt[t, a, k] += j0 * own[0, k] + j1 * own[1, k]
        for i in range(6):
            j0, j1 = w * own[0, i], w * own[1, i]
            g_t[t, i] += j0 * ru + j1 * rv
            for k in range(6):
                h_tt[t, i, k] += j0 * own[0, k] + j1 * own[1, k]
    return cost, h_gg, h_gt, h_tt, g_g, g_t


@compiled
def cholesky(matrix: Floats) -> tuple[bool, Floats]:
    """Return whether a symmetric matrix is positive definite and its lower Cholesky factor.

    Our own loop: the same numbers whatever the BLAS and its threads.
    """
    n = matrix.shape[0]
    low = np.zeros((n, n))
    for j in range(n):
        d = matrix[j, j]
        for k in range(j):
            d -= low[j, k] * low[j, k]
        if not d > 0.0:
            return False, low
        low[j, j] = math.sqrt(d)
        for i in range(j + 1, n):
            s = matrix[i, j]
            for k in range(j):
                s -= low[i, k] * low[j, k]
            low[i, j] = s / low[j, j]
    return True, low


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
def reduce(
    h_gg: Floats,
    h_gt: Floats,
    h_tt: Floats,
    g_g: Floats,
    g_t: Floats,
    freedom: Floats,
    damping: float,
) -> tuple[bool, Floats, Floats, Floats, Floats]:
    """Eliminate the targets. Return success, S (G, G), its right side (G,), H_tt^-1 H_tg (T, 6, G), H_tt^-1 g_t.

    Marquardt damping multiplies the diagonals by 1 + ``damping``.
    """
    columns, count = h_gg.shape[0], h_tt.shape[0]
    s = h_gg.copy()
    b = -g_g
    for a in range(columns):
        s[a, a] *= 1.0 + damping
    gain = np.zeros((count, 6, columns))
    step = np.zeros((count, 6))
    right = np.empty((6, columns + 1))
    active = np.empty(columns, np.int64)
    for t in range(count):
        block = h_tt[t].copy()
        for k in range(6):
            block[k, k] *= 1.0 + damping
            if freedom[t, k] == 0.0:
                block[k, k] = 1.0
        ok, low = cholesky(block)
        if not ok:
            return False, s, b, gain, step
        used = 0
        for a in range(columns):
            seen = False
            for k in range(6):
                right[k, a] = h_gt[t, a, k]
                if h_gt[t, a, k] != 0.0:
                    seen = True
            if seen:
                active[used] = a
                used += 1
        compact = np.empty((6, used + 1))
        for i in range(used):
            for k in range(6):
                compact[k, i] = right[k, active[i]]
        for k in range(6):
            compact[k, used] = g_t[t, k]
        solved = cholesky_solve(low, compact)
        for k in range(6):
            step[t, k] = solved[k, used]
            for i in range(used):
                gain[t, k, active[i]] = solved[k, i]
        for i in range(used):
            a = active[i]
            for k in range(6):
                left = h_gt[t, a, k]
                b[a] += left * step[t, k]
                for j in range(used):
                    s[a, active[j]] -= left * solved[k, j]
    return True, s, b, gain, step


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
