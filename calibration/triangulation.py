"""3D points from pixels in several views: linear, maximum-likelihood, and robust to wrong detections.

Per point: a start from the viewing rays, a choice of the views that agree, Gauss-Newton on the reprojection error
over those views, and the covariance of the result. A geometry that fixes no point gives NaN and a reason.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.arrays import Bools, Floats, Ints
from calibration.compiled import compiled, compiled_parallel, prange
from calibration.errors import InputError
from calibration.projection import project_point, project_point_with_jacobian
from calibration.rig import Rig

__all__ = ["Reason", "Triangulation", "triangulate", "triangulate_linear"]


class Reason(IntEnum):
    """Why a point has no position."""

    OK = 0
    UNSEEN = 1
    ONE_VIEW = 2
    PARALLEL_RAYS = 3
    VIEWS_DISAGREE = 4
    BEHIND_CAMERA = 5
    NOT_CONVERGED = 6

    @property
    def text(self) -> str:
        """The reason in words."""
        return {
            Reason.OK: "triangulated",
            Reason.UNSEEN: "seen by no camera",
            Reason.ONE_VIEW: "seen by one camera only",
            Reason.PARALLEL_RAYS: "the viewing rays are nearly parallel",
            Reason.VIEWS_DISAGREE: "no two views agree within the gate",
            Reason.BEHIND_CAMERA: "the rays meet behind a camera",
            Reason.NOT_CONVERGED: "the refinement did not converge",
        }[self]


@dataclass(frozen=True, eq=False)
class Triangulation:
    """Points with how well they are known.

    Attributes:
        points: (n, 3) mm, NaN where there is none.
        covariance: (n, 3, 3) mm^2, from the pixel noise given; NaN likewise.
        residual_px: (n,) root mean square reprojection error over the views used, px.
        views_used: (C, n), which detections the point rests on.
        parallax: (n,) largest angle between two rays used, rad.
        reason: (n,) codes of `Reason`.
    """

    points: Floats
    covariance: Floats
    residual_px: Floats
    views_used: Bools
    parallax: Floats
    reason: NDArray[np.uint8]


def triangulate(
    rig: Rig,
    pixels: ArrayLike,
    *,
    sigma_px: float | ArrayLike = 0.5,
    robust: bool = True,
    gate_px: float = 5.0,
    min_parallax: float = math.radians(0.5),
    min_share: float = 0.5,
    pairs: int = 66,
    seed: int = 0,
) -> Triangulation:
    """Triangulate points seen in any number of views.

    Args:
        rig: C cameras.
        pixels: (C, n, 2) detections, NaN where a camera does not see the point.
        sigma_px: standard deviation of a detection, px: one number or (C, n).
        robust: find the views that agree within ``gate_px`` and use only those.
        gate_px: largest reprojection error of a detection that counts as agreeing, px.
        min_share: share of the views that see a point which must agree; with fewer, two may agree by chance.
        min_parallax: below this angle between all its rays a point is NaN, rad.
        pairs: pairs of views tried per point; all of them up to 12 cameras, else a seeded choice.
        seed: of that choice.
    """
    p, sigma, origins, directions = _prepared(rig, pixels, sigma_px)
    chosen = _view_pairs(len(rig), pairs, seed)
    out = _solve_all(
        rig.packed(), p, sigma, origins, directions, chosen, robust, float(gate_px), math.cos(min_parallax),
        float(min_share),
    )  # fmt: skip
    points, covariance, residual, used, parallax, reason = out
    return Triangulation(points, covariance, residual, used, parallax, reason)


def triangulate_linear(rig: Rig, pixels: ArrayLike) -> Floats:
    """Return points (n, 3) mm nearest to their viewing rays, all views trusted; NaN below two views."""
    p = _checked_pixels(rig, pixels)
    return _nearest_to_rays(*_rays(rig, p))


def _checked_pixels(rig: Rig, pixels: ArrayLike) -> Floats:
    p = np.ascontiguousarray(pixels, dtype=np.float64)
    if p.ndim != 3 or p.shape[0] != len(rig) or p.shape[2] != 2:
        raise InputError(f"triangulation: pixels must be ({len(rig)}, n, 2) for this rig, got {p.shape}")
    return p


def _prepared(rig: Rig, pixels: ArrayLike, sigma_px: float | ArrayLike) -> tuple[Floats, Floats, Floats, Floats]:
    p = _checked_pixels(rig, pixels)
    sigma = np.asarray(sigma_px, dtype=np.float64)
    if sigma.shape not in ((), p.shape[:2]) or not (sigma > 0).all():
        raise InputError("triangulation: sigma_px must be positive, one number or one per camera and point")
    origins, directions = _rays(rig, p)
    return p, np.ascontiguousarray(np.broadcast_to(sigma, p.shape[:2])), origins, directions


def _rays(rig: Rig, pixels: Floats) -> tuple[Floats, Floats]:
    """Return ray origins (C, 3) and unit directions (C, n, 3), NaN where there is no detection or no inverse."""
    directions = np.stack([camera.rays(view)[1] for camera, view in zip(rig, pixels, strict=True)])
    return rig.centres, directions


def _view_pairs(cameras: int, most: int, seed: int) -> Ints:
    every = np.array(list(combinations(range(cameras), 2)), dtype=np.int64).reshape(-1, 2)
    if len(every) <= most:
        return every
    chosen = np.random.default_rng(seed).choice(len(every), most, replace=False)
    return every[np.sort(chosen)]


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
def _nearest_to_rays(origins: Floats, directions: Floats) -> Floats:
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
def _squared_errors(rows: Floats, pixels: Floats, i: int, x: Floats, seen: Bools, errors: Floats) -> None:
    """Fill the squared reprojection error (C,) of point i in every view that sees it; infinite behind a camera."""
    for c in range(rows.shape[0]):
        errors[c] = math.inf
        if seen[c]:
            u, v = project_point(rows[c], x[0], x[1], x[2])
            if math.isfinite(u):
                errors[c] = (u - pixels[c, i, 0]) ** 2 + (v - pixels[c, i, 1]) ** 2


@compiled
def _refine(
    rows: Floats, pixels: Floats, sigma: Floats, i: int, use: Bools, x: Floats, h: Floats, scratch: Floats
) -> bool:
    """Minimise the weighted reprojection error over the used views (Levenberg-Marquardt); ``h``: normal matrix."""
    jac, lens = scratch[:2, :3], scratch[2:4]
    g, step, trial = scratch[4, :3], scratch[5, :3], scratch[6, :3]
    a = scratch[7:10, :3]
    damping = 1e-9
    cost = _cost(rows, pixels, sigma, i, use, x)
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
            new = _cost(rows, pixels, sigma, i, use, trial)
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
def _cost(rows: Floats, pixels: Floats, sigma: Floats, i: int, use: Bools, x: Floats) -> float:
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
    rows: Floats,
    pixels: Floats,
    origins: Floats,
    directions: Floats,
    i: int,
    seen: Bools,
    pairs: Ints,
    gate2: float,
    cosine: float,
    use: Bools,
    x: Floats,
    work: Floats,
    errors: Floats,
) -> bool:
    """Choose in ``use`` the views that agree best: over all pairs, least sum of squared errors cut off at the gate."""
    best = math.inf
    pair = np.empty(rows.shape[0], np.bool_)
    start = np.empty(3)
    for k in range(pairs.shape[0]):
        c, d = pairs[k, 0], pairs[k, 1]
        if not (seen[c] and seen[d]):
            continue
        dc, dd = directions[c, i], directions[d, i]
        if abs(dc[0] * dd[0] + dc[1] * dd[1] + dc[2] * dd[2]) > cosine:
            continue  # nearly parallel: their crossing says nothing
        pair[:] = False
        pair[c] = pair[d] = True
        if not _ray_point(origins, directions, i, pair, start, work):
            continue
        _squared_errors(rows, pixels, i, start, seen, errors)
        if errors[c] > gate2 or errors[d] > gate2:
            continue
        score = 0.0
        for e in range(rows.shape[0]):
            if seen[e]:
                score += min(errors[e], gate2)
        if score < best:
            best = score
            x[:] = start
            for e in range(rows.shape[0]):
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
def _solve_all(
    rows: Floats,
    pixels: Floats,
    sigma: Floats,
    origins: Floats,
    directions: Floats,
    pairs: Ints,
    robust: bool,
    gate_px: float,
    cosine: float,
    min_share: float,
) -> tuple[Floats, Floats, Floats, Bools, Floats, NDArray[np.uint8]]:
    """Triangulate every point on its own, so that the order of threads changes nothing."""
    cameras, n = pixels.shape[0], pixels.shape[1]
    points = np.full((n, 3), np.nan)
    covariance = np.full((n, 3, 3), np.nan)
    residual = np.full(n, np.nan)
    parallax = np.full(n, np.nan)
    used = np.zeros((cameras, n), np.bool_)
    reason = np.zeros(n, np.uint8)
    for i in prange(n):
        seen, use = np.empty(cameras, np.bool_), np.empty(cameras, np.bool_)
        x, work, errors = np.empty(3), np.empty((4, 3)), np.empty(cameras)
        h, scratch = np.empty((3, 3)), np.empty((10, 16))
        count = 0
        for c in range(cameras):
            seen[c] = math.isfinite(directions[c, i, 0])
            use[c] = seen[c]
            count += seen[c]
        if count < 2:
            reason[i] = count + 1  # UNSEEN, ONE_VIEW
            continue
        code = _solve_one(
            rows, pixels, sigma, origins, directions, i, pairs, robust, gate_px, cosine, min_share, seen, use, x, work,
            errors, h, scratch,
        )  # fmt: skip
        reason[i] = code
        if code != 0:
            continue
        points[i] = x
        _invert3(h, covariance[i])
        _squared_errors(rows, pixels, i, x, use, errors)
        total, views = 0.0, 0
        for c in range(cameras):
            if use[c]:
                used[c, i] = True
                total += errors[c]
                views += 1
        residual[i] = math.sqrt(total / views)
        parallax[i] = math.acos(min(1.0, _widest_cosine(directions, i, use)))
    return points, covariance, residual, used, parallax, reason


@compiled
def _solve_one(
    rows: Floats,
    pixels: Floats,
    sigma: Floats,
    origins: Floats,
    directions: Floats,
    i: int,
    pairs: Ints,
    robust: bool,
    gate_px: float,
    cosine: float,
    min_share: float,
    seen: Bools,
    use: Bools,
    x: Floats,
    work: Floats,
    errors: Floats,
    h: Floats,
    scratch: Floats,
) -> int:
    """Triangulate point i: returns a `Reason` code, fills point ``x``, its views ``use`` and normal matrix ``h``."""
    cameras = rows.shape[0]
    gate2 = gate_px * gate_px
    if _widest_cosine(directions, i, use) > cosine:
        return 3
    if not _ray_point(origins, directions, i, use, x, work):
        return 3
    if robust:
        _squared_errors(rows, pixels, i, x, seen, errors)
        agree = True
        for c in range(cameras):
            if seen[c] and errors[c] > gate2:
                agree = False
        if not agree and not _agreeing_views(
            rows, pixels, origins, directions, i, seen, pairs, gate2, cosine, use, x, work, errors
        ):
            return 4
    for c in range(cameras):
        if use[c] and not math.isfinite(project_point(rows[c], x[0], x[1], x[2])[0]):
            return 5
    for _ in range(4):
        if not _refine(rows, pixels, sigma, i, use, x, h, scratch):
            return 6
        if not robust:
            break
        # the refined point may win back a view or lose one: settle the set
        _squared_errors(rows, pixels, i, x, seen, errors)
        changed, left, count = False, 0, 0
        for c in range(cameras):
            count += seen[c]
            inside = errors[c] <= gate2
            changed = changed or inside != use[c]
            use[c] = inside
            left += inside
        if left < 2 or left < min_share * count:
            return 4
        if not changed:
            break
    if _widest_cosine(directions, i, use) > cosine:
        return 3
    return 0
