"""Compiled arithmetic of the triangulation: the rays, agreeing views, refinement and covariance of each point."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibration.cameras.projection import project_point, project_point_with_jacobian
from calibration.foundation.arrays import Bools, Floats, Ints
from calibration.foundation.compiled import compiled, compiled_parallel, prange

__all__ = [
    "BEHIND_CAMERA",
    "NOT_CONVERGED",
    "OK",
    "ONE_VIEW",
    "PARALLEL_RAYS",
    "UNSEEN",
    "VIEWS_DISAGREE",
    "Detections",
    "Rules",
    "nearest_to_rays",
    "solve_all",
]

#: How the triangulation of a point ended.
OK, UNSEEN, ONE_VIEW, PARALLEL_RAYS, VIEWS_DISAGREE, BEHIND_CAMERA, NOT_CONVERGED = range(7)


class Detections(NamedTuple):
    """Points seen: packed cameras (C, 36), pixels (C, n, 2) and their deviation (C, n), px, and the same as rays:
    origins (C, 3) and unit directions (C, n, 3), NaN where a camera does not see the point.
    """

    rows: Floats
    pixels: Floats
    sigma: Floats
    origins: Floats
    directions: Floats


class Rules(NamedTuple):
    """Pairs of views to try (k, 2), whether views must agree and within how many pixels, the cosine above which rays
    are parallel, and the share of the views of a point that must agree.
    """

    pairs: Ints
    robust: bool
    gate_px: float
    cosine: float
    min_share: float


class Workspace(NamedTuple):
    """Arrays that the solution of one point writes over: (4, 3) for its rays, (C,) errors, (10, 16) for its steps."""

    rays: Floats
    errors: Floats
    steps: Floats


@compiled
def _solve3(a: Floats, b: Floats, x: Floats) -> bool:
    """Solve a symmetric positive definite 3x3 system by Cholesky; False where it is singular."""
    if a[0, 0] <= 0:
        return False
    l00 = math.sqrt(a[0, 0])
    l10, l20 = a[1, 0] / l00, a[2, 0] / l00
    d1 = a[1, 1] - l10 * l10
    if d1 <= 1e-14 * a[1, 1]:
        return False
    l11 = math.sqrt(d1)
    l21 = (a[2, 1] - l20 * l10) / l11
    d2 = a[2, 2] - l20 * l20 - l21 * l21
    if d2 <= 1e-14 * a[2, 2]:
        return False
    l22 = math.sqrt(d2)
    y0 = b[0] / l00
    y1 = (b[1] - l10 * y0) / l11
    y2 = (b[2] - l20 * y0 - l21 * y1) / l22
    x[2] = y2 / l22
    x[1] = (y1 - l21 * x[2]) / l11
    x[0] = (y0 - l10 * x[1] - l20 * x[2]) / l00
    return True


@compiled
def _ray_point(origins: Floats, directions: Floats, i: int, use: Bools, x: Floats, work: Floats) -> bool:
    """Find the point nearest to the chosen rays of point i, twice: the second time weighted by 1/depth^2.

    A pixel's error grows with depth on the way to millimetres, so the weight makes the squares nearly pixels.
    """
    a, b = work[:3], work[3]
    for turn in range(2):
        a[:, :] = 0.0
        b[:] = 0.0
        for c in range(origins.shape[0]):
            if not use[c]:
                continue
            d = directions[c, i]
            o = origins[c]
            w = 1.0
            if turn == 1:
                depth = (x[0] - o[0]) * d[0] + (x[1] - o[1]) * d[1] + (x[2] - o[2]) * d[2]
                w = 1.0 / max(depth * depth, 1e-12)
            od = o[0] * d[0] + o[1] * d[1] + o[2] * d[2]
            for r in range(3):
                b[r] += w * (o[r] - d[r] * od)
                for s in range(3):
                    a[r, s] += w * ((1.0 if r == s else 0.0) - d[r] * d[s])
        if not _solve3(a, b, x):
            return False
    return True


@compiled_parallel
def nearest_to_rays(origins: Floats, directions: Floats) -> Floats:
    """Return the points (n, 3) nearest to their rays, NaN below two."""
    cameras, n = directions.shape[0], directions.shape[1]
    out = np.full((n, 3), np.nan)
    for i in prange(n):
        use = np.empty(cameras, np.bool_)
        seen = 0
        for c in range(cameras):
            use[c] = math.isfinite(directions[c, i, 0])
            seen += use[c]
        if seen >= 2:
            x, work = np.empty(3), np.empty((4, 3))
            if _ray_point(origins, directions, i, use, x, work):
                out[i] = x
    return out


@compiled
def _squared_errors(detections: Detections, i: int, x: Floats, seen: Bools, errors: Floats) -> None:
    """Fill the squared reprojection error (C,) of point i in every view that sees it; infinite behind a camera."""
    rows, pixels = detections.rows, detections.pixels
    for c in range(rows.shape[0]):
        errors[c] = math.inf
        if seen[c]:
            u, v = project_point(rows[c], x[0], x[1], x[2])
            if math.isfinite(u):
                errors[c] = (u - pixels[c, i, 0]) ** 2 + (v - pixels[c, i, 1]) ** 2


@compiled
def _refine(detections: Detections, i: int, use: Bools, x: Floats, h: Floats, scratch: Floats) -> bool:
    """Minimise the weighted reprojection error over the used views (Levenberg-Marquardt); ``h``: normal matrix."""
    rows, pixels, sigma = detections.rows, detections.pixels, detections.sigma
    jac, lens = scratch[:2, :3], scratch[2:4]
    g, step, trial = scratch[4, :3], scratch[5, :3], scratch[6, :3]
    a = scratch[7:10, :3]
    damping = 1e-9
    cost = _cost(detections, i, use, x)
    for _ in range(30):
        h[:, :] = 0.0
        g[:] = 0.0
        for c in range(rows.shape[0]):
            if not use[c]:
                continue
            u, v = project_point_with_jacobian(rows[c], x[0], x[1], x[2], jac, lens)
            if not math.isfinite(u):
                return False
            w = 1.0 / sigma[c, i] ** 2
            du, dv = pixels[c, i, 0] - u, pixels[c, i, 1] - v
            for r in range(3):
                g[r] += w * (jac[0, r] * du + jac[1, r] * dv)
                for s in range(3):
                    h[r, s] += w * (jac[0, r] * jac[0, s] + jac[1, r] * jac[1, s])
        for _ in range(12):
            a[:, :] = h
            for r in range(3):
                a[r, r] += damping * h[r, r]
            if not _solve3(a, g, step):
                return False
            trial[:] = x + step
            new = _cost(detections, i, use, trial)
            if new <= cost:
                break
            damping *= 10.0
        if not new <= cost:
            return True  # no step lowers the cost any more: at the bottom, to rounding
        small = step[0] ** 2 + step[1] ** 2 + step[2] ** 2 < 1e-20 * (1.0 + x[0] ** 2 + x[1] ** 2 + x[2] ** 2)
        flat = cost - new <= 1e-13 * cost
        x[:] = trial
        cost = new
        damping = max(0.1 * damping, 1e-12)
        if small or flat:
            return True
    return False


@compiled
def _cost(detections: Detections, i: int, use: Bools, x: Floats) -> float:
    """Return the weighted sum of squared reprojection errors over the used views; infinite behind one."""
    rows, pixels, sigma = detections.rows, detections.pixels, detections.sigma
    total = 0.0
    for c in range(rows.shape[0]):
        if use[c]:
            u, v = project_point(rows[c], x[0], x[1], x[2])
            if not math.isfinite(u):
                return math.inf
            total += ((u - pixels[c, i, 0]) ** 2 + (v - pixels[c, i, 1]) ** 2) / sigma[c, i] ** 2
    return total


@compiled
def _agreeing_views(
    detections: Detections, rules: Rules, i: int, seen: Bools, use: Bools, x: Floats, work: Workspace
) -> bool:
    """Choose in ``use`` the views that agree best: over all pairs, least sum of squared errors cut off at the gate."""
    origins, directions, pairs, errors = detections.origins, detections.directions, rules.pairs, work.errors
    cameras, gate2 = origins.shape[0], rules.gate_px * rules.gate_px
    best = math.inf
    pair = np.empty(cameras, np.bool_)
    start = np.empty(3)
    for k in range(pairs.shape[0]):
        c, d = pairs[k, 0], pairs[k, 1]
        if not (seen[c] and seen[d]):
            continue
        dc, dd = directions[c, i], directions[d, i]
        if abs(dc[0] * dd[0] + dc[1] * dd[1] + dc[2] * dd[2]) > rules.cosine:
            continue  # nearly parallel: their crossing says nothing
        pair[:] = False
        pair[c] = pair[d] = True
        if not _ray_point(origins, directions, i, pair, start, work.rays):
            continue
        _squared_errors(detections, i, start, seen, errors)
        if errors[c] > gate2 or errors[d] > gate2:
            continue
        score = 0.0
        for e in range(cameras):
            if seen[e]:
                score += min(errors[e], gate2)
        if score < best:
            best = score
            x[:] = start
            for e in range(cameras):
                use[e] = errors[e] <= gate2
    return math.isfinite(best)


@compiled
def _invert3(h: Floats, out: Floats) -> None:
    """Invert a symmetric 3x3 matrix by cofactors."""
    c00 = h[1, 1] * h[2, 2] - h[1, 2] * h[2, 1]
    c01 = h[0, 2] * h[2, 1] - h[0, 1] * h[2, 2]
    c02 = h[0, 1] * h[1, 2] - h[0, 2] * h[1, 1]
    det = h[0, 0] * c00 + h[1, 0] * c01 + h[2, 0] * c02
    out[0, 0], out[0, 1], out[0, 2] = c00 / det, c01 / det, c02 / det
    out[1, 0], out[2, 0] = out[0, 1], out[0, 2]
    out[1, 1] = (h[0, 0] * h[2, 2] - h[0, 2] * h[2, 0]) / det
    out[1, 2] = out[2, 1] = (h[0, 2] * h[1, 0] - h[0, 0] * h[1, 2]) / det
    out[2, 2] = (h[0, 0] * h[1, 1] - h[0, 1] * h[1, 0]) / det


@compiled
def _widest_cosine(directions: Floats, i: int, use: Bools) -> float:
    """Return the least |cosine| between two used rays: that of the widest parallax, folded to 90 degrees."""
    least = 1.0
    for c in range(directions.shape[0]):
        if not use[c]:
            continue
        for d in range(c):
            if use[d]:
                dot = 0.0
                for k in range(3):
                    dot += directions[c, i, k] * directions[d, i, k]
                least = min(least, abs(dot))
    return least


@compiled_parallel
def solve_all(detections: Detections, rules: Rules) -> tuple[Floats, Floats, Floats, Bools, Floats, NDArray[np.uint8]]:
    """Triangulate every point on its own, so that the order of threads changes nothing."""
    directions = detections.directions
    cameras, n = directions.shape[0], directions.shape[1]
    points = np.full((n, 3), np.nan)
    covariance = np.full((n, 3, 3), np.nan)
    residual = np.full(n, np.nan)
    parallax = np.full(n, np.nan)
    used = np.zeros((cameras, n), np.bool_)
    reason = np.zeros(n, np.uint8)
    for i in prange(n):
        seen, use = np.empty(cameras, np.bool_), np.empty(cameras, np.bool_)
        x, h = np.empty(3), np.empty((3, 3))
        work = Workspace(np.empty((4, 3)), np.empty(cameras), np.empty((10, 16)))
        count = 0
        for c in range(cameras):
            seen[c] = math.isfinite(directions[c, i, 0])
            use[c] = seen[c]
            count += seen[c]
        if count < 2:
            reason[i] = UNSEEN if count == 0 else ONE_VIEW
            continue
        code = _solve_one(detections, rules, i, seen, use, x, h, work)
        reason[i] = code
        if code != OK:
            continue
        points[i] = x
        _invert3(h, covariance[i])
        _squared_errors(detections, i, x, use, work.errors)
        total, views = 0.0, 0
        for c in range(cameras):
            if use[c]:
                used[c, i] = True
                total += work.errors[c]
                views += 1
        residual[i] = math.sqrt(total / views)
        parallax[i] = math.acos(min(1.0, _widest_cosine(directions, i, use)))
    return points, covariance, residual, used, parallax, reason


@compiled
def _solve_one(
    detections: Detections, rules: Rules, i: int, seen: Bools, use: Bools, x: Floats, h: Floats, work: Workspace
) -> int:
    """Triangulate point i: returns a `Reason` code, fills point ``x``, its views ``use`` and normal matrix ``h``."""
    rows, directions, errors = detections.rows, detections.directions, work.errors
    cameras = rows.shape[0]
    gate2 = rules.gate_px * rules.gate_px
    if _widest_cosine(directions, i, use) > rules.cosine:
        return PARALLEL_RAYS
    if not _ray_point(detections.origins, directions, i, use, x, work.rays):
        return PARALLEL_RAYS
    if rules.robust:
        _squared_errors(detections, i, x, seen, errors)
        agree = True
        for c in range(cameras):
            if seen[c] and errors[c] > gate2:
                agree = False
        if not agree and not _agreeing_views(detections, rules, i, seen, use, x, work):
            return VIEWS_DISAGREE
    for c in range(cameras):
        if use[c] and not math.isfinite(project_point(rows[c], x[0], x[1], x[2])[0]):
            return BEHIND_CAMERA
    for _ in range(4):
        if not _refine(detections, i, use, x, h, work.steps):
            return NOT_CONVERGED
        if not rules.robust:
            break
        # the refined point may win back a view or lose one: settle the set
        _squared_errors(detections, i, x, seen, errors)
        changed, left, count = False, 0, 0
        for c in range(cameras):
            count += seen[c]
            inside = errors[c] <= gate2
            changed = changed or inside != use[c]
            use[c] = inside
            left += inside
        if left < 2 or left < rules.min_share * count:
            return VIEWS_DISAGREE
        if not changed:
            break
    if _widest_cosine(directions, i, use) > rules.cosine:
        return PARALLEL_RAYS
    return OK
