"""Residuals of the bundle adjustment and its normal equations, compiled.

Notation. Observation n sees model point X of target t in camera c:

    x_world = R_t X + t_t     x_camera = R_c x_world + t_c     r = project(x_camera) - (pixel + velocity * offset_c)

Global parameters g: for each camera 26 numbers (fx fy cx cy skew, 14 distortion coefficients, rotation,
translation, time offset in frames) and three for each model point. Each target has six own parameters.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from calibration.cameras.camera_row import (
    CX,
    CY,
    FX,
    FY,
    K1,
    LENS_PARAMETERS,
    R00,
    R01,
    R02,
    R10,
    R11,
    R12,
    R20,
    R21,
    R22,
    SKEW,
    TX,
    TY,
    TZ,
)
from calibration.cameras.projection import distort_with_jacobians, project_point
from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.compiled import compiled

__all__ = [
    "CAMERA_PARAMETERS",
    "Equations",
    "Observations",
    "Priors",
    "State",
    "Unknowns",
    "add_priors",
    "linearise",
    "residuals",
]

#: Where a camera's numbers begin: those of the lens come first, from `camera_row.FX` on.
TURN, SHIFT, CLOCK = LENS_PARAMETERS, LENS_PARAMETERS + 3, LENS_PARAMETERS + 6
CAMERA_PARAMETERS = CLOCK + 1
# Behind them in a row of derivatives: the target's turn and shift, the model point.
TARGET, POINT = CAMERA_PARAMETERS, CAMERA_PARAMETERS + 6


class State(NamedTuple):
    """What a bundle adjustment moves: packed cameras (C, 36), world_from_target poses (T, 3, 3) and (T, 3), model
    points (P, 3), and how late each camera is (C,), frames.
    """

    rows: Floats
    rotations: Floats
    translations: Floats
    points: Floats
    offsets: Floats


class Observations(NamedTuple):
    """What each observation shows (n,), where it is seen (n, 2), px, and how fast it moves there, px per frame."""

    camera: Ints
    target: Ints
    point: Ints
    pixels: Floats
    velocity: Floats


class Unknowns(NamedTuple):
    """Which parameters may move: ``camera`` (C, 26) and ``point`` (P, 3) hold the column of each of the ``columns``
    global ones, or -1 where it is fixed (two that share a column are tied); ``target`` (T, 6) is 0 where a target's
    own parameter is held (a wand does not turn about its axis), else 1.
    """

    camera: Ints
    point: Ints
    target: Floats
    columns: int


class Priors(NamedTuple):
    """Gaussian knowledge of some lens numbers: whose (k,), which of them (k,), mean (k,), information (k, k)."""

    camera: Ints
    slot: Ints
    mean: Floats
    information: Floats


class Equations(NamedTuple):
    """Cost and normal equations: H_gg (G, G), H_gt (T, G, 6), H_tt (T, 6, 6), gradients (G,) and (T, 6).

    The cost is infinite if a point falls behind its camera.
    """

    cost: float
    h_gg: Floats
    h_gt: Floats
    h_tt: Floats
    g_g: Floats
    g_t: Floats


@compiled
def residuals(state: State, seen: Observations) -> Floats:
    """Return projected minus observed (n, 2), px; NaN where a point lies behind its camera."""
    rows, rotations, translations, points, offsets = state
    camera, target, point, pixels, velocity = seen
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
    xr = row[R00] * wx + row[R01] * wy + row[R02] * wz
    yr = row[R10] * wx + row[R11] * wy + row[R12] * wz
    zr = row[R20] * wx + row[R21] * wy + row[R22] * wz
    xc, yc, zc = xr + row[TX], yr + row[TY], zr + row[TZ]
    if zc < 1e-6:
        return math.nan, math.nan
    near = 1.0 / zc
    xn, yn = xc * near, yc * near
    xd, yd = distort_with_jacobians(row, xn, yn, by_xy, by_k)
    full[0, 0], full[0, 1], full[0, 2], full[0, 3], full[0, 4] = xd, 0.0, 1.0, 0.0, yd
    full[1, 0], full[1, 1], full[1, 2], full[1, 3], full[1, 4] = 0.0, yd, 0.0, 1.0, 0.0
    for k in range(14):
        full[0, K1 - FX + k] = row[FX] * by_k[0, k] + row[SKEW] * by_k[1, k]
        full[1, K1 - FX + k] = row[FY] * by_k[1, k]
    for axis in range(2):
        if axis == 0:
            gx = row[FX] * by_xy[0, 0] + row[SKEW] * by_xy[1, 0]
            gy = row[FX] * by_xy[0, 1] + row[SKEW] * by_xy[1, 1]
        else:
            gx, gy = row[FY] * by_xy[1, 0], row[FY] * by_xy[1, 1]
        jx, jy, jz = gx * near, gy * near, -(gx * xn + gy * yn) * near
        # camera turned by w on the left: d x_camera = w x (R x_world)
        full[axis, TURN] = jz * yr - jy * zr
        full[axis, TURN + 1] = jx * zr - jz * xr
        full[axis, TURN + 2] = jy * xr - jx * yr
        full[axis, SHIFT], full[axis, SHIFT + 1], full[axis, SHIFT + 2] = jx, jy, jz
        # by the world point, then by the target's own turn on the right (R exp(w) X) and by the model point
        bx = jx * row[R00] + jy * row[R10] + jz * row[R20]
        by = jx * row[R01] + jy * row[R11] + jz * row[R21]
        bz = jx * row[R02] + jy * row[R12] + jz * row[R22]
        mx = bx * rotation[0, 0] + by * rotation[1, 0] + bz * rotation[2, 0]
        my = bx * rotation[0, 1] + by * rotation[1, 1] + bz * rotation[2, 1]
        mz = bx * rotation[0, 2] + by * rotation[1, 2] + bz * rotation[2, 2]
        full[axis, TARGET] = (mz * y - my * z) * freedom[0]
        full[axis, TARGET + 1] = (mx * z - mz * x) * freedom[1]
        full[axis, TARGET + 2] = (my * x - mx * y) * freedom[2]
        full[axis, TARGET + 3], full[axis, TARGET + 4] = bx * freedom[3], by * freedom[4]
        full[axis, TARGET + 5] = bz * freedom[5]
        full[axis, POINT], full[axis, POINT + 1], full[axis, POINT + 2] = mx, my, mz
    return row[FX] * xd + row[SKEW] * yd + row[CX], row[FY] * yd + row[CY]


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
def linearise(state: State, seen: Observations, unknowns: Unknowns, scale: float) -> Equations:
    """Return the normal equations at a state, each observation weighted by the loss of width ``scale`` (see `_weight`).

    Runs of observations of one camera and target (the usual order) are summed in a small block first.
    """
    rows, rotations, translations, points, offsets = state
    camera, target, point, pixels, velocity = seen
    index, point_index, freedom, columns = unknowns
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
            return Equations(math.inf, h_gg, h_gt, h_tt, g_g, g_t)
        part, w = _weight(ru * ru + rv * rv, scale)
        cost += part
        full[0, CLOCK], full[1, CLOCK] = -velocity[n, 0], -velocity[n, 1]
        for k in range(used):
            j0[k], j1[k] = full[0, slots[k]], full[1, slots[k]]
        for k in range(6):
            j0[used + k], j1[used + k] = full[0, TARGET + k], full[1, TARGET + k]
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
    return Equations(cost, h_gg, h_gt, h_tt, g_g, g_t)


@compiled
def add_priors(rows: Floats, index: Ints, priors: Priors, h_gg: Floats, g_g: Floats) -> float:
    """Add what is known of the lenses of cameras ``rows`` to the normal equations; return its cost."""
    camera, slot, mean, information = priors
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
