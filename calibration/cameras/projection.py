"""Compiled projection of points through any camera model, for kernels that loop over points and views.

A camera is one row of numbers, named in `calibration.cameras.camera_row`.
"""

from __future__ import annotations

import math

import numpy as np

from calibration.cameras.camera_row import (
    CX,
    CY,
    F1,
    F2,
    F3,
    F4,
    FISHEYE,
    FX,
    FY,
    K1,
    K2,
    K3,
    K4,
    K5,
    K6,
    LIMIT,
    M00,
    M01,
    M02,
    M03,
    M10,
    M11,
    M12,
    M13,
    M20,
    M21,
    M22,
    M23,
    MATRIX,
    MODEL,
    P1,
    P2,
    PINHOLE,
    R00,
    R01,
    R02,
    R10,
    R11,
    R12,
    R20,
    R21,
    R22,
    S1,
    S2,
    S3,
    S4,
    SKEW,
    TAU_X,
    TAU_Y,
    TX,
    TY,
    TZ,
)
from calibration.foundation.arrays import Floats
from calibration.foundation.compiled import compiled

__all__ = [
    "distort",
    "distort_with_jacobians",
    "project_columns",
    "project_into",
    "project_point",
    "project_point_with_jacobian",
    "project_points",
    "undistort_pixels",
]


@compiled
def _tilt(row: Floats) -> tuple[float, float, float, float, float, float, float, float, float]:
    """Return the nine entries of the tilted-sensor homography of a row (identity where both angles are 0)."""
    cx, sx = math.cos(row[TAU_X]), math.sin(row[TAU_X])
    cy, sy = math.cos(row[TAU_Y]), math.sin(row[TAU_Y])
    # R = R_y(tau_y) R_x(tau_x), then the projection along z onto the tilted plane
    r00, r01, r02 = cy, sy * sx, -sy * cx
    r10, r11, r12 = 0.0, cx, sx
    r20, r21, r22 = sy, -cy * sx, cy * cx
    return (
        r22 * r00 - r02 * r20,
        r22 * r01 - r02 * r21,
        r22 * r02 - r02 * r22,
        r22 * r10 - r12 * r20,
        r22 * r11 - r12 * r21,
        r22 * r12 - r12 * r22,
        r20,
        r21,
        r22,
    )


@compiled
def distort(row: Floats, x: float, y: float) -> tuple[float, float]:
    """Distort an ideal image point (x/z, y/z); NaN beyond the radius where the lens stops being invertible."""
    r2 = x * x + y * y
    if row[MODEL] == FISHEYE:
        r = math.sqrt(r2)
        theta = math.atan(r)
        t2 = theta * theta
        if t2 > row[LIMIT]:
            return math.nan, math.nan
        theta_d = theta * (1 + t2 * (row[F1] + t2 * (row[F2] + t2 * (row[F3] + t2 * row[F4]))))
        scale = theta_d / r if r > 1e-9 else 1.0
        return x * scale, y * scale
    if r2 > row[LIMIT]:
        return math.nan, math.nan
    upper = 1 + r2 * (row[K1] + r2 * (row[K2] + r2 * row[K3]))
    radial = upper / (1 + r2 * (row[K4] + r2 * (row[K5] + r2 * row[K6])))
    p1, p2 = row[P1], row[P2]
    xd = x * radial + 2 * p1 * x * y + p2 * (r2 + 2 * x * x) + r2 * (row[S1] + r2 * row[S2])
    yd = y * radial + p1 * (r2 + 2 * y * y) + 2 * p2 * x * y + r2 * (row[S3] + r2 * row[S4])
    if row[TAU_X] != 0.0 or row[TAU_Y] != 0.0:
        a, b, c, d, e, f, g, h, i = _tilt(row)
        w = g * xd + h * yd + i
        return (a * xd + b * yd + c) / w, (d * xd + e * yd + f) / w
    return xd, yd


@compiled
def project_point(row: Floats, x: float, y: float, z: float) -> tuple[float, float]:
    """Project one world point (mm) to pixels; NaN, NaN where it lies behind the camera or beyond its lens."""
    if row[MODEL] == MATRIX:
        u = row[M00] * x + row[M01] * y + row[M02] * z + row[M03]
        v = row[M10] * x + row[M11] * y + row[M12] * z + row[M13]
        w = row[M20] * x + row[M21] * y + row[M22] * z + row[M23]
        if w <= 0:
            return math.nan, math.nan
        return u / w, v / w
    xc = row[R00] * x + row[R01] * y + row[R02] * z + row[TX]
    yc = row[R10] * x + row[R11] * y + row[R12] * z + row[TY]
    zc = row[R20] * x + row[R21] * y + row[R22] * z + row[TZ]
    if zc <= 0:
        return math.nan, math.nan
    xd, yd = distort(row, xc / zc, yc / zc)
    return row[FX] * xd + row[SKEW] * yd + row[CX], row[FY] * yd + row[CY]


@compiled
def project_into(row: Floats, points: Floats, out: Floats) -> None:
    """Project points (n, 3) through one camera into pixels (n, 2): the same numbers as those of `project_point`.

    A few hundred points at a time are laid out coordinate by coordinate: so several are done by one instruction.
    """
    count = points.shape[0]
    room = np.empty((5, min(count, 512)))
    for first in range(0, count, 512):
        part = min(512, count - first)
        here, there = room[:3, :part], room[3:, :part]
        for i in range(part):
            here[0, i], here[1, i], here[2, i] = points[first + i, 0], points[first + i, 1], points[first + i, 2]
        project_columns(row, here, there)
        for i in range(part):
            out[first + i, 0], out[first + i, 1] = there[0, i], there[1, i]


@compiled
def project_columns(row: Floats, points: Floats, out: Floats) -> None:
    """Project points given coordinate by coordinate, (3, n), through one camera into pixels (2, n).

    What belongs to the camera is read once, and no branch is in the loop: NaN is chosen at its end.
    """
    xs, ys, zs, us, vs = points[0], points[1], points[2], out[0], out[1]
    if row[MODEL] != PINHOLE or row[TAU_X] != 0.0 or row[TAU_Y] != 0.0:
        for i in range(len(xs)):
            us[i], vs[i] = project_point(row, xs[i], ys[i], zs[i])
        return
    r00, r01, r02, tx = row[R00], row[R01], row[R02], row[TX]
    r10, r11, r12, ty = row[R10], row[R11], row[R12], row[TY]
    r20, r21, r22, tz = row[R20], row[R21], row[R22], row[TZ]
    k1, k2, k3, k4, k5, k6 = row[K1], row[K2], row[K3], row[K4], row[K5], row[K6]
    p1, p2, s1, s2, s3, s4 = row[P1], row[P2], row[S1], row[S2], row[S3], row[S4]
    fx, skew, cx, fy, cy, limit = row[FX], row[SKEW], row[CX], row[FY], row[CY], row[LIMIT]
    for i in range(len(xs)):
        px, py, pz = xs[i], ys[i], zs[i]
        xc = r00 * px + r01 * py + r02 * pz + tx
        yc = r10 * px + r11 * py + r12 * pz + ty
        zc = r20 * px + r21 * py + r22 * pz + tz
        x, y = xc / zc, yc / zc
        r2 = x * x + y * y
        radial = (1 + r2 * (k1 + r2 * (k2 + r2 * k3))) / (1 + r2 * (k4 + r2 * (k5 + r2 * k6)))
        xd = x * radial + 2 * p1 * x * y + p2 * (r2 + 2 * x * x) + r2 * (s1 + r2 * s2)
        yd = y * radial + p1 * (r2 + 2 * y * y) + 2 * p2 * x * y + r2 * (s3 + r2 * s4)
        unseen = (zc <= 0) | (r2 > limit)
        us[i] = math.nan if unseen else fx * xd + skew * yd + cx
        vs[i] = math.nan if unseen else fy * yd + cy


@compiled
def project_points(rows: Floats, points: Floats) -> Floats:
    """Project points (n, 3) through every camera row (c, ROW) to pixels (c, n, 2)."""
    out = np.empty((rows.shape[0], points.shape[0], 2))
    for c in range(rows.shape[0]):
        project_into(rows[c], points, out[c])
    return out


@compiled
def distort_with_jacobians(row: Floats, x: float, y: float, by_xy: Floats, by_k: Floats) -> tuple[float, float]:
    """Distort like `distort`, filling d(xd, yd)/d(x, y) (2, 2) and d(xd, yd)/d(14 coefficients) (2, 14).

    The latter may be (2, 0): then it is not wanted.
    """
    r2 = x * x + y * y
    wanted = by_k.shape[1] > 0
    if row[MODEL] == FISHEYE:
        for k in range(by_k.shape[1]):
            by_k[0, k] = by_k[1, k] = 0.0
        r = math.sqrt(r2)
        theta = math.atan(r)
        t2 = theta * theta
        if r < 1e-9:
            by_xy[0, 0], by_xy[0, 1], by_xy[1, 0], by_xy[1, 1] = 1.0, 0.0, 0.0, 1.0
            return x, y
        theta_d = theta * (1 + t2 * (row[F1] + t2 * (row[F2] + t2 * (row[F3] + t2 * row[F4]))))
        slope = 1 + t2 * (3 * row[F1] + t2 * (5 * row[F2] + t2 * (7 * row[F3] + t2 * 9 * row[F4])))
        scale = theta_d / r
        # d(scale)/dr, with d(theta)/dr = 1 / (1 + r^2)
        dscale = (slope / (1 + r2) - scale) / r
        by_xy[0, 0] = scale + x * x * dscale / r
        by_xy[0, 1] = x * y * dscale / r
        by_xy[1, 0] = by_xy[0, 1]
        by_xy[1, 1] = scale + y * y * dscale / r
        power = theta / r
        for k in range(4 if wanted else 0):
            power *= t2
            by_k[0, k] = x * power
            by_k[1, k] = y * power
        if t2 > row[LIMIT]:
            return math.nan, math.nan
        return x * scale, y * scale
    n = 1 + r2 * (row[K1] + r2 * (row[K2] + r2 * row[K3]))
    d = 1 + r2 * (row[K4] + r2 * (row[K5] + r2 * row[K6]))
    # divided once: this is the inner loop of the bundle adjustment
    inverse = 1.0 / d
    radial = n * inverse
    dn = row[K1] + r2 * (2 * row[K2] + r2 * 3 * row[K3])
    dd = row[K4] + r2 * (2 * row[K5] + r2 * 3 * row[K6])
    dradial = (dn - radial * dd) * inverse  # by r^2
    p1, p2 = row[P1], row[P2]
    xd = x * radial + 2 * p1 * x * y + p2 * (r2 + 2 * x * x) + r2 * (row[S1] + r2 * row[S2])
    yd = y * radial + p1 * (r2 + 2 * y * y) + 2 * p2 * x * y + r2 * (row[S3] + r2 * row[S4])
    sx = row[S1] + 2 * r2 * row[S2]
    sy = row[S3] + 2 * r2 * row[S4]
    by_xy[0, 0] = radial + 2 * x * x * dradial + 2 * p1 * y + 6 * p2 * x + 2 * x * sx
    by_xy[0, 1] = 2 * x * y * dradial + 2 * p1 * x + 2 * p2 * y + 2 * y * sx
    by_xy[1, 0] = 2 * x * y * dradial + 2 * p1 * x + 2 * p2 * y + 2 * x * sy
    by_xy[1, 1] = radial + 2 * y * y * dradial + 6 * p1 * y + 2 * p2 * x + 2 * y * sy
    if wanted:
        r4, r6 = r2 * r2, r2 * r2 * r2
        for axis in range(2):
            c = (x if axis == 0 else y) * inverse
            by_k[axis, 0], by_k[axis, 1], by_k[axis, 4] = c * r2, c * r4, c * r6
            c *= -radial
            by_k[axis, 5], by_k[axis, 6], by_k[axis, 7] = c * r2, c * r4, c * r6
        by_k[0, 2], by_k[0, 3] = 2 * x * y, r2 + 2 * x * x
        by_k[1, 2], by_k[1, 3] = r2 + 2 * y * y, 2 * x * y
        by_k[0, 8], by_k[0, 9], by_k[0, 10], by_k[0, 11] = r2, r4, 0.0, 0.0
        by_k[1, 8], by_k[1, 9], by_k[1, 10], by_k[1, 11] = 0.0, 0.0, r2, r4
    if row[TAU_X] != 0.0 or row[TAU_Y] != 0.0:
        xd, yd = _tilt_with_jacobians(row, xd, yd, by_xy, by_k)
    elif wanted:
        # at zero angles the homography's derivative reduces to these terms
        by_k[0, 12], by_k[1, 12] = xd * yd, yd * yd
        by_k[0, 13], by_k[1, 13] = -xd * xd, -xd * yd
    if r2 > row[LIMIT]:
        return math.nan, math.nan
    return xd, yd


@compiled
def _tilt_with_jacobians(row: Floats, xd: float, yd: float, by_xy: Floats, by_k: Floats) -> tuple[float, float]:
    """Apply the tilt homography and carry the Jacobians filled so far through it, adding its own two columns."""
    a, b, c, d, e, f, g, h, i = _tilt(row)
    w = g * xd + h * yd + i
    u, v = (a * xd + b * yd + c) / w, (d * xd + e * yd + f) / w
    j00, j01 = (a - u * g) / w, (b - u * h) / w
    j10, j11 = (d - v * g) / w, (e - v * h) / w
    for k in range(2):
        s, t = by_xy[0, k], by_xy[1, k]
        by_xy[0, k], by_xy[1, k] = j00 * s + j01 * t, j10 * s + j11 * t
    if by_k.shape[1] == 0:
        return u, v
    for k in range(12):
        s, t = by_k[0, k], by_k[1, k]
        by_k[0, k], by_k[1, k] = j00 * s + j01 * t, j10 * s + j11 * t
    # The homography's own derivatives: q is dR/d(tau), and each entry of `_tilt` follows by the product rule.
    cx, sx = math.cos(row[TAU_X]), math.sin(row[TAU_X])
    cy, sy = math.cos(row[TAU_Y]), math.sin(row[TAU_Y])
    r02, r12, r22 = -sy * cx, sx, cy * cx
    r00, r01, r11, r20, r21 = cy, sy * sx, cx, sy, -cy * sx
    for k in range(2):
        if k == 0:  # by tau_x
            q00, q01, q02, q11, q12, q20, q21, q22 = 0.0, sy * cx, sy * sx, -sx, cx, 0.0, -cy * cx, -cy * sx
        else:  # by tau_y
            q00, q01, q02, q11, q12 = -sy, cy * sx, -cy * cx, 0.0, 0.0
            q20, q21, q22 = cy, sy * sx, -sy * cx
        da = q22 * r00 + r22 * q00 - q02 * r20 - r02 * q20
        db = q22 * r01 + r22 * q01 - q02 * r21 - r02 * q21
        dd = -q12 * r20 - r12 * q20
        de = q22 * r11 + r22 * q11 - q12 * r21 - r12 * q21
        dw = q20 * xd + q21 * yd + q22
        by_k[0, 12 + k] = (da * xd + db * yd - u * dw) / w
        by_k[1, 12 + k] = (dd * xd + de * yd - v * dw) / w
    return u, v


@compiled
def project_point_with_jacobian(
    row: Floats, x: float, y: float, z: float, by_point: Floats, scratch: Floats
) -> tuple[float, float]:
    """Project like `project_point`, filling d(u, v)/d(x, y, z) (2, 3). ``scratch``: (2, 16) work space."""
    if row[MODEL] == MATRIX:
        w = row[M20] * x + row[M21] * y + row[M22] * z + row[M23]
        u = (row[M00] * x + row[M01] * y + row[M02] * z + row[M03]) / w
        v = (row[M10] * x + row[M11] * y + row[M12] * z + row[M13]) / w
        for k in range(3):
            by_point[0, k] = (row[M00 + k] - u * row[M20 + k]) / w
            by_point[1, k] = (row[M10 + k] - v * row[M20 + k]) / w
        if w <= 0:
            return math.nan, math.nan
        return u, v
    xc = row[R00] * x + row[R01] * y + row[R02] * z + row[TX]
    yc = row[R10] * x + row[R11] * y + row[R12] * z + row[TY]
    zc = row[R20] * x + row[R21] * y + row[R22] * z + row[TZ]
    if zc <= 0:
        return math.nan, math.nan
    xn, yn = xc / zc, yc / zc
    by_xy = scratch[:, 14:16]
    xd, yd = distort_with_jacobians(row, xn, yn, by_xy, scratch[:, :0])
    for axis in range(2):
        if axis == 0:
            gx = row[FX] * by_xy[0, 0] + row[SKEW] * by_xy[1, 0]
            gy = row[FX] * by_xy[0, 1] + row[SKEW] * by_xy[1, 1]
        else:
            gx, gy = row[FY] * by_xy[1, 0], row[FY] * by_xy[1, 1]
        for k in range(3):
            by_point[axis, k] = (gx * (row[R00 + k] - xn * row[R20 + k]) + gy * (row[R10 + k] - yn * row[R20 + k])) / zc
    return row[FX] * xd + row[SKEW] * yd + row[CX], row[FY] * yd + row[CY]


@compiled
def _radial_start(row: Floats, rd: float) -> float:
    """Solve r * radial(r^2) = rd on the invertible stretch by bisection-guarded Newton; NaN beyond its end."""
    fish = row[MODEL] == FISHEYE
    top = math.sqrt(row[LIMIT])
    if math.isinf(top):
        top = max(2.0, 2.0 * rd)
        while _radial(row, top, fish) < rd and top < 1e6:
            top *= 2.0
    if rd > _radial(row, top, fish):
        # tangential terms may still bring the point inside: start from the rim and let Newton decide
        return top
    low, high = 0.0, top
    r = min(rd, top)
    for _ in range(200):
        f = _radial(row, r, fish) - rd
        if f > 0:
            high = r
        else:
            low = r
        step = 1e-7 * max(r, 1e-3)
        slope = (_radial(row, r + step, fish) - _radial(row, r - step, fish)) / (2 * step)
        new = r - f / slope if slope > 0 else -1.0
        # Before the bracket is asked: at the root rounding puts a step on its end, and halving it would begin anew.
        if abs(new - r) < 1e-14 * max(1.0, r):
            return new
        r = new if low < new < high else 0.5 * (low + high)
    return r


@compiled
def _radial(row: Floats, r: float, fish: bool) -> float:
    s = r * r
    if fish:
        return r * float(1 + s * (row[F1] + s * (row[F2] + s * (row[F3] + s * row[F4]))))
    n = 1 + s * (row[K1] + s * (row[K2] + s * row[K3]))
    return r * float(n / (1 + s * (row[K4] + s * (row[K5] + s * row[K6]))))


@compiled
def undistort_pixels(row: Floats, pixels: Floats) -> Floats:
    """Return ideal image points (n, 2) (x/z, y/z) of pixels (n, 2), the exact inverse of the lens.

    NaN where no point of the invertible stretch projects there to 1e-12 of the focal length.
    """
    out = np.full(pixels.shape, np.nan)
    scratch = np.empty((2, 16))  # as in `project_point_with_jacobian`: the lens is compiled for one kind of array
    by_xy, by_k = scratch[:, 14:16], scratch[:, :0]  # derivatives by the lens' own coefficients are not wanted
    for i in range(pixels.shape[0]):
        yd = (pixels[i, 1] - row[CY]) / row[FY]
        xd = (pixels[i, 0] - row[CX] - row[SKEW] * yd) / row[FX]
        if not (math.isfinite(xd) and math.isfinite(yd)):
            continue
        xt, yt = xd, yd
        if row[MODEL] == PINHOLE and (row[TAU_X] != 0.0 or row[TAU_Y] != 0.0):
            a, b, c, d, e, f, g, h, k = _tilt(row)
            # undo the homography: [a-xd g, b-xd h; d-yd g, e-yd h] p = [xd k - c; yd k - f]
            m00, m01, m10, m11 = a - xd * g, b - xd * h, d - yd * g, e - yd * h
            det = m00 * m11 - m01 * m10
            s, t = xd * k - c, yd * k - f
            xt, yt = (m11 * s - m01 * t) / det, (m00 * t - m10 * s) / det
        rd = math.sqrt(xt * xt + yt * yt)
        if rd < 1e-12:
            x, y = xt, yt
        else:
            r = _radial_start(row, rd)
            if row[MODEL] == FISHEYE:
                if r >= 0.5 * math.pi or _radial(row, r, True) < rd * (1 - 1e-12):
                    continue
                r = math.tan(r)
            x, y = xt * r / rd, yt * r / rd
        for _ in range(30):
            u, v = distort_with_jacobians(row, x, y, by_xy, by_k)
            if not math.isfinite(u):
                # just past the rim: step back inside and try on
                x, y = 0.999 * x, 0.999 * y
                continue
            du, dv = xd - u, yd - v
            det = by_xy[0, 0] * by_xy[1, 1] - by_xy[0, 1] * by_xy[1, 0]
            if det <= 0:
                break
            sx = (by_xy[1, 1] * du - by_xy[0, 1] * dv) / det
            sy = (by_xy[0, 0] * dv - by_xy[1, 0] * du) / det
            x, y = x + sx, y + sy
            if sx * sx + sy * sy < 1e-30 * (1 + x * x + y * y):
                break
        u, v = distort(row, x, y)
        tolerance = 1e-12 * (1 + abs(xd) + abs(yd))
        if abs(u - xd) < tolerance and abs(v - yd) < tolerance:
            out[i, 0], out[i, 1] = x, y
    return out
