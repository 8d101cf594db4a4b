"""The hull as a field: at each point the largest of the views' signed distances, in millimetres.

A point is inside the hull where no view has it outside its silhouette:

    f(x) = max_c  m_c |x - o_c| s_c(project_c(x))        (k wrong views tolerated: the (k+1)-th largest)

with s_c the signed distance in the image (px, negative inside), o_c the camera's centre and m_c |x - o_c| the
size of a pixel at x. The zero level is the exact intersection of the cones over the silhouettes' edges.

The field is evaluated from coarse to fine. A cube of half-diagonal r around x moves in the image by at most
g_c r / (|x - o_c| - r) pixels, and s_c changes by no more than that: a cube that is surely outside one view, or
surely inside all, is decided as a whole. Only blocks of `BLOCK` cells that the surface may cross are sampled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.arrays import Floats, Ints, Singles
from calibration.compiled import compiled
from calibration.projection import project_point, project_point_with_jacobian
from capture.hull.bounds import Box

__all__ = [
    "BLOCK",
    "Grid",
    "ViewScales",
    "active_blocks",
    "dense_field",
    "field_at",
    "interpolation_error",
    "sample_blocks",
    "surface_normals",
    "view_scales",
]

#: Cells along the side of a block, the smallest cube that is decided as a whole.
BLOCK = 4
_TOP = 4  # levels of halving above the block: the search begins with cubes of BLOCK << _TOP cells


@dataclass(frozen=True, eq=False)
class ViewScales:
    """How image pixels and millimetres relate in each view of the volume.

    Attributes:
        metric: (C,) size of a pixel per distance from the camera, mm / (px mm).
        gain: (C,) upper bound of the image speed times the distance, px.
    """

    metric: Floats
    gain: Floats


@dataclass(frozen=True, eq=False)
class Grid:
    """A grid of cubic cells.

    Attributes:
        origin: (3,) first grid point, world mm.
        spacing: side of a cell, mm.
        blocks: number of blocks along each axis; there are ``BLOCK * blocks`` cells.
    """

    origin: Floats
    spacing: float
    blocks: tuple[int, int, int]

    @classmethod
    def around(cls, box: Box, spacing: float) -> Grid:
        """Return the smallest grid with at least one spare cell around the box."""
        counts = np.ceil(box.size / (spacing * BLOCK) + 2.0 / BLOCK).astype(int)
        origin = box.centre - counts * (spacing * BLOCK / 2)
        return cls(origin, float(spacing), (int(counts[0]), int(counts[1]), int(counts[2])))


def view_scales(rows: Floats, box: Box) -> ViewScales:
    """Measure the scales of views (C, ROW) over a box."""
    return ViewScales(*_scales(rows, box.low, box.high))


@compiled
def _scales(rows: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    views = rows.shape[0]
    metric, gain = np.empty(views), np.empty(views)
    by_point, scratch = np.empty((2, 3)), np.empty((2, 16))
    means = np.empty(27)
    for view in range(views):
        row = rows[view]
        seen = 0
        fastest = 0.0
        for n in range(27):
            x = low[0] + (n % 3) / 2 * (high[0] - low[0])
            y = low[1] + (n // 3 % 3) / 2 * (high[1] - low[1])
            z = low[2] + (n // 9) / 2 * (high[2] - low[2])
            u, _ = project_point_with_jacobian(row, x, y, z, by_point, scratch)
            if not np.isfinite(u):
                continue
            distance = np.sqrt((x - row[33]) ** 2 + (y - row[34]) ** 2 + (z - row[35]) ** 2)
            a = by_point[0, 0] ** 2 + by_point[0, 1] ** 2 + by_point[0, 2] ** 2
            b = by_point[0, 0] * by_point[1, 0] + by_point[0, 1] * by_point[1, 1] + by_point[0, 2] * by_point[1, 2]
            d = by_point[1, 0] ** 2 + by_point[1, 1] ** 2 + by_point[1, 2] ** 2
            # Singular values of the 2x3 Jacobian: their product is sqrt(det), the larger comes from the trace.
            root = np.sqrt(max(0.0, ((a - d) / 2) ** 2 + b * b))
            means[seen] = distance * max(a * d - b * b, 1e-24) ** 0.25
            fastest = max(fastest, distance * np.sqrt((a + d) / 2 + root))
            seen += 1
        if seen == 0:
            metric[view], gain[view] = 1e-3, 1e6
        else:
            metric[view] = 1.0 / np.median(means[:seen])
            gain[view] = 1.15 * fastest
    return metric, gain


@compiled
def _sample(values: Singles, layout: Ints, view: int, u: float, v: float) -> tuple[float, bool]:
    """Return the signed distance (px) of a view at a pixel and whether the view can tell."""
    carves = layout[view, 5] == 1
    if not (np.isfinite(u) and np.isfinite(v)):
        return (1e6, True) if carves else (-1e6, False)
    start, width, height = layout[view, 0], layout[view, 1], layout[view, 2]
    x, y = u - layout[view, 3], v - layout[view, 4]
    beyond_x = max(-x, x - (width - 1), 0.0)
    beyond_y = max(-y, y - (height - 1), 0.0)
    if beyond_x > 0.0 or beyond_y > 0.0:
        away = np.sqrt(beyond_x * beyond_x + beyond_y * beyond_y)
        if carves:
            return away + 5.5, True  # the silhouette is MARGIN_PX away from the image's rim
        return -away - 1.5, False
    column, row = min(int(x), width - 2), min(int(y), height - 2)
    fx, fy = x - column, y - row
    at = start + row * width + column
    top = values[at] + fx * (values[at + 1] - values[at])
    bottom = values[at + width] + fx * (values[at + width + 1] - values[at + width])
    return top + fy * (bottom - top), True


@compiled
def _value(
    rows: Floats,
    metric: Floats,
    values: Singles,
    layout: Ints,
    tolerated: int,
    least: int,
    point: Floats,
    worst: Floats,
) -> float:
    """Return the field at one point, mm; a point that fewer than ``least`` views can tell about is outside."""
    for k in range(tolerated + 1):
        worst[k] = -1e9
    told = 0
    for view in range(rows.shape[0]):
        row = rows[view]
        u, v = project_point(row, point[0], point[1], point[2])
        pixels, tells = _sample(values, layout, view, u, v)
        told += tells
        dx, dy, dz = point[0] - row[33], point[1] - row[34], point[2] - row[35]
        distance = pixels * metric[view] * np.sqrt(dx * dx + dy * dy + dz * dz)
        for k in range(tolerated + 1):
            if distance > worst[k]:
                worst[k], distance = distance, worst[k]
    if told < least:
        return float(max(worst[tolerated], 1.0))
    return float(worst[tolerated])


@compiled
def field_at(
    rows: Floats, metric: Floats, values: Singles, layout: Ints, tolerated: int, least: int, points: Floats
) -> Floats:
    """Return the field (n,) at points (n, 3), mm."""
    out = np.empty(points.shape[0])
    worst = np.empty(tolerated + 1)
    for i in range(points.shape[0]):
        out[i] = _value(rows, metric, values, layout, tolerated, least, points[i], worst)
    return out


@compiled
def surface_normals(
    rows: Floats, metric: Floats, values: Singles, layout: Ints, tolerated: int, points: Floats, step: float
) -> Floats:
    """Return (n, 3) unit normals of the field at surface points (n, 3): the gradient of the view that decides there.

    At an edge of the hull two views decide, one on each side; the gradient of either is clean, that of their
    maximum is not. ``step``: half the length of the differences, mm. NaN where the view's distance is flat.
    """
    out = np.empty(points.shape)
    place = np.empty(3)
    views = rows.shape[0]
    worst = np.empty(tolerated + 1)
    which = np.empty(tolerated + 1, np.int64)
    for n in range(points.shape[0]):
        worst[:] = -1e9
        which[:] = 0
        for view in range(views):
            row = rows[view]
            u, v = project_point(row, points[n, 0], points[n, 1], points[n, 2])
            pixels, _ = _sample(values, layout, view, u, v)
            dx, dy, dz = points[n, 0] - row[33], points[n, 1] - row[34], points[n, 2] - row[35]
            distance = pixels * metric[view] * np.sqrt(dx * dx + dy * dy + dz * dz)
            candidate = view
            for k in range(tolerated + 1):
                if distance > worst[k]:
                    worst[k], distance = distance, worst[k]
                    which[k], candidate = candidate, which[k]
        view = which[tolerated]
        row = rows[view]
        length = 0.0
        for axis in range(3):
            place[0], place[1], place[2] = points[n, 0], points[n, 1], points[n, 2]
            place[axis] += step
            u, v = project_point(row, place[0], place[1], place[2])
            ahead, _ = _sample(values, layout, view, u, v)
            place[axis] -= 2 * step
            u, v = project_point(row, place[0], place[1], place[2])
            behind, _ = _sample(values, layout, view, u, v)
            out[n, axis] = ahead - behind
            length += out[n, axis] ** 2
        out[n] /= np.sqrt(length)
    return out


@compiled
def _decide(
    rows: Floats, gain: Floats, values: Singles, layout: Ints, tolerated: int, least: int, centre: Floats, radius: float
) -> int:
    """Return 1 if the ball is surely outside the hull, -1 if surely inside, 0 if the surface may cross it."""
    outside = 0
    maybe_outside = 0
    may_tell = 0
    surely_tell = 0
    for view in range(rows.shape[0]):
        row = rows[view]
        dx, dy, dz = centre[0] - row[33], centre[1] - row[34], centre[2] - row[35]
        distance = np.sqrt(dx * dx + dy * dy + dz * dz)
        u, v = project_point(row, centre[0], centre[1], centre[2])
        carves = layout[view, 5] == 1
        if distance <= 1.5 * radius or not np.isfinite(u):
            maybe_outside += 1
            may_tell += 1
            surely_tell += carves
            continue
        # One pixel of slack: grid distances and their bilinear interpolation are not exactly 1-Lipschitz.
        reach = gain[view] * radius / (distance - radius) + 1.0
        pixels, tells = _sample(values, layout, view, u, v)
        if pixels > reach:
            outside += 1
        if pixels > -reach:
            maybe_outside += 1
        if carves:
            may_tell += 1
            surely_tell += 1
        else:
            inside_frame = min(
                min(u - layout[view, 3], v - layout[view, 4]),
                min(layout[view, 3] + layout[view, 1] - 1 - u, layout[view, 4] + layout[view, 2] - 1 - v),
            )
            may_tell += tells or inside_frame > -reach
            surely_tell += inside_frame > reach
    if outside > tolerated or may_tell < least:
        return 1
    if maybe_outside <= tolerated and surely_tell >= least:
        return -1
    return 0


@compiled
def active_blocks(
    rows: Floats,
    gain: Floats,
    values: Singles,
    layout: Ints,
    tolerated: int,
    least: int,
    origin: Floats,
    spacing: float,
    blocks: tuple[int, int, int],
) -> NDArray[np.int32]:
    """Return (m, 3) the blocks that the surface may cross, in a fixed order."""
    step = 1 << _TOP
    count = 0
    nodes = np.empty(
        (((blocks[0] - 1) // step + 1) * ((blocks[1] - 1) // step + 1) * ((blocks[2] - 1) // step + 1), 3), np.int32
    )
    for i in range(0, blocks[0], step):
        for j in range(0, blocks[1], step):
            for k in range(0, blocks[2], step):
                nodes[count, 0], nodes[count, 1], nodes[count, 2] = i, j, k
                count += 1
    centre = np.empty(3)
    while True:
        keep = np.empty(count, np.bool_)
        kept = 0
        side = step * BLOCK * spacing
        for n in range(count):
            rim = False
            for axis in range(3):
                centre[axis] = origin[axis] + (nodes[n, axis] + 0.5 * step) * BLOCK * spacing
                rim = rim or nodes[n, axis] == 0 or nodes[n, axis] + step >= blocks[axis]
            state = _decide(rows, gain, values, layout, tolerated, least, centre, 0.8660255 * side)
            # The grid's outermost points count as outside, so a cube at the rim is never inside as a whole.
            keep[n] = state == 0 or (state == -1 and rim)
            kept += keep[n]
        if step == 1:
            out = np.empty((kept, 3), np.int32)
            at = 0
            for n in range(count):
                if keep[n]:
                    out[at] = nodes[n]
                    at += 1
            return out
        step //= 2
        finer = np.empty((8 * kept, 3), np.int32)
        at = 0
        for n in range(count):
            if keep[n]:
                for child in range(8):
                    i = nodes[n, 0] + step * (child >> 2)
                    j = nodes[n, 1] + step * (child >> 1 & 1)
                    k = nodes[n, 2] + step * (child & 1)
                    if i < blocks[0] and j < blocks[1] and k < blocks[2]:
                        finer[at, 0], finer[at, 1], finer[at, 2] = i, j, k
                        at += 1
        nodes = finer
        count = at


@compiled
def _corner_projections(
    rows: Floats, origin: Floats, spacing: float, block: NDArray[np.int32], corners: Floats
) -> float:
    """Fill (C, 8, 3): pixel and distance from the camera of a block's corners; return the error of interpolating.

    The error is that at the block's middle, px: where it is largest. Infinite where a corner is not seen.
    """
    side = BLOCK * spacing
    x, y, z = (
        origin[0] + block[0] * BLOCK * spacing,
        origin[1] + block[1] * BLOCK * spacing,
        origin[2] + block[2] * BLOCK * spacing,
    )
    worst = 0.0
    for view in range(rows.shape[0]):
        row = rows[view]
        mean_u, mean_v = 0.0, 0.0
        for corner in range(8):
            # Written as in `sample_blocks`, so that neighbours compute the same numbers for the corners they share.
            px = origin[0] + (block[0] + (corner & 1)) * BLOCK * spacing
            py = origin[1] + (block[1] + (corner >> 1 & 1)) * BLOCK * spacing
            pz = origin[2] + (block[2] + (corner >> 2)) * BLOCK * spacing
            u, v = project_point(row, px, py, pz)
            dx, dy, dz = px - row[33], py - row[34], pz - row[35]
            corners[view, corner, 0] = u
            corners[view, corner, 1] = v
            corners[view, corner, 2] = np.sqrt(dx * dx + dy * dy + dz * dz)
            mean_u += u / 8
            mean_v += v / 8
        u, v = project_point(row, x + side / 2, y + side / 2, z + side / 2)
        error = np.sqrt((u - mean_u) ** 2 + (v - mean_v) ** 2)
        if not error <= worst:
            worst = error if np.isfinite(error) else np.inf
    return worst


@compiled
def interpolation_error(rows: Floats, origin: Floats, spacing: float, active: NDArray[np.int32]) -> float:
    """Return the largest error (px) of interpolating projections inside the blocks, tried on some of them."""
    corners = np.empty((rows.shape[0], 8, 3))
    worst = 0.0
    step = max(1, active.shape[0] // 64)
    for n in range(0, active.shape[0], step):
        worst = max(worst, _corner_projections(rows, origin, spacing, active[n], corners))
    return worst


@compiled
def sample_blocks(
    rows: Floats,
    metric: Floats,
    values: Singles,
    layout: Ints,
    tolerated: int,
    least: int,
    origin: Floats,
    spacing: float,
    blocks: tuple[int, int, int],
    active: NDArray[np.int32],
    interpolate: bool,
    enough: float,
) -> Singles:
    """Return (m, BLOCK + 1, BLOCK + 1, BLOCK + 1) the field at the grid points of the active blocks, mm.

    Args:
        interpolate: project a block's corners only and interpolate between them.
        enough: a point is not looked at further once it is found this far outside, mm. Its value is then a lower
            bound; no edge of the grid that the surface crosses ends there if this is well above the spacing.
    """
    side = BLOCK + 1
    out = np.empty((active.shape[0], side, side, side), np.float32)
    point = np.empty(3)
    worst = np.empty(tolerated + 1)
    views = rows.shape[0]
    corners = np.empty((views, 8, 3))
    on_edges = np.empty((views, 4, 3))
    on_faces = np.empty((views, 2, 3))
    order = np.arange(views)
    where = np.full(blocks, -1, np.int32)
    for n in range(active.shape[0]):
        where[active[n, 0], active[n, 1], active[n, 2]] = n
    high = (blocks[0] * BLOCK, blocks[1] * BLOCK, blocks[2] * BLOCK)
    for n in range(active.shape[0]):
        first_x, first_y, first_z = active[n, 0] * BLOCK, active[n, 1] * BLOCK, active[n, 2] * BLOCK
        if interpolate:
            _corner_projections(rows, origin, spacing, active[n], corners)
        for i in range(side):
            point[0] = origin[0] + (first_x + i) * spacing
            fx = i / BLOCK
            if interpolate:
                for view in range(views):
                    for e in range(4):
                        for c in range(3):
                            on_edges[view, e, c] = (
                                corners[view, 2 * e, c] * (1.0 - fx) + corners[view, 2 * e + 1, c] * fx
                            )
            for j in range(side):
                point[1] = origin[1] + (first_y + j) * spacing
                fy = j / BLOCK
                if interpolate:
                    for view in range(views):
                        for e in range(2):
                            for c in range(3):
                                on_faces[view, e, c] = (
                                    on_edges[view, 2 * e, c] * (1.0 - fy) + on_edges[view, 2 * e + 1, c] * fy
                                )
                for k in range(side):
                    # A point on a high face is the neighbour's own; it is copied below if that block is active.
                    if i == BLOCK or j == BLOCK or k == BLOCK:
                        a, b, c = active[n, 0] + i // BLOCK, active[n, 1] + j // BLOCK, active[n, 2] + k // BLOCK
                        if a < blocks[0] and b < blocks[1] and c < blocks[2] and where[a, b, c] >= 0:
                            continue
                    if not interpolate:
                        point[2] = origin[2] + (first_z + k) * spacing
                        f = _value(rows, metric, values, layout, tolerated, least, point, worst)
                    else:
                        fz = k / BLOCK
                        for t in range(tolerated + 1):
                            worst[t] = -1e9
                        told = 0
                        for turn in range(views):
                            view = order[turn]
                            u = on_faces[view, 0, 0] * (1.0 - fz) + on_faces[view, 1, 0] * fz
                            v = on_faces[view, 0, 1] * (1.0 - fz) + on_faces[view, 1, 1] * fz
                            away = on_faces[view, 0, 2] * (1.0 - fz) + on_faces[view, 1, 2] * fz
                            pixels, tells = _sample(values, layout, view, u, v)
                            told += tells
                            distance = pixels * metric[view] * away
                            for t in range(tolerated + 1):
                                if distance > worst[t]:
                                    worst[t], distance = distance, worst[t]
                            if worst[tolerated] > enough:
                                # The view that decided here probably decides next door: ask it first there.
                                for back in range(turn, 0, -1):
                                    order[back] = order[back - 1]
                                order[0] = view
                                told = least
                                break
                        f = worst[tolerated]
                        if told < least:
                            f = max(f, 1.0)
                    x, y, z = first_x + i, first_y + j, first_z + k
                    if x == 0 or y == 0 or z == 0 or x == high[0] or y == high[1] or z == high[2]:
                        f = max(f, 0.5 * spacing)
                    out[n, i, j, k] = f
    for n in range(active.shape[0]):
        for i in range(side):
            for j in range(side):
                for k in range(side):
                    if i == BLOCK or j == BLOCK or k == BLOCK:
                        a, b, c = active[n, 0] + i // BLOCK, active[n, 1] + j // BLOCK, active[n, 2] + k // BLOCK
                        if a < blocks[0] and b < blocks[1] and c < blocks[2] and where[a, b, c] >= 0:
                            out[n, i, j, k] = out[where[a, b, c], i % BLOCK, j % BLOCK, k % BLOCK]
    return out


@compiled
def dense_field(
    rows: Floats,
    metric: Floats,
    values: Singles,
    layout: Ints,
    tolerated: int,
    least: int,
    origin: Floats,
    spacing: float,
    blocks: tuple[int, int, int],
    active: NDArray[np.int32],
    sampled: Singles,
) -> Singles:
    """Return the field on the whole grid: sampled near the surface, interpolated between block corners elsewhere."""
    nx, ny, nz = blocks[0] * BLOCK + 1, blocks[1] * BLOCK + 1, blocks[2] * BLOCK + 1
    coarse = np.empty((blocks[0] + 1, blocks[1] + 1, blocks[2] + 1), np.float32)
    point = np.empty(3)
    worst = np.empty(tolerated + 1)
    for i in range(blocks[0] + 1):
        for j in range(blocks[1] + 1):
            for k in range(blocks[2] + 1):
                point[0] = origin[0] + i * BLOCK * spacing
                point[1] = origin[1] + j * BLOCK * spacing
                point[2] = origin[2] + k * BLOCK * spacing
                coarse[i, j, k] = _value(rows, metric, values, layout, tolerated, least, point, worst)
    out = np.empty((nx, ny, nz), np.float32)
    for i in range(nx):
        a = min(i // BLOCK, blocks[0] - 1)
        fx = np.float32((i - a * BLOCK) / BLOCK)
        for j in range(ny):
            b = min(j // BLOCK, blocks[1] - 1)
            fy = np.float32((j - b * BLOCK) / BLOCK)
            for c in range(blocks[2]):
                near = (coarse[a, b, c] * (1 - fx) + coarse[a + 1, b, c] * fx) * (1 - fy) + (
                    coarse[a, b + 1, c] * (1 - fx) + coarse[a + 1, b + 1, c] * fx
                ) * fy
                far = (coarse[a, b, c + 1] * (1 - fx) + coarse[a + 1, b, c + 1] * fx) * (1 - fy) + (
                    coarse[a, b + 1, c + 1] * (1 - fx) + coarse[a + 1, b + 1, c + 1] * fx
                ) * fy
                for k in range(BLOCK + 1):
                    out[i, j, c * BLOCK + k] = near + (far - near) * np.float32(k / BLOCK)
    side = BLOCK + 1
    for n in range(active.shape[0]):
        i, j, k = active[n, 0] * BLOCK, active[n, 1] * BLOCK, active[n, 2] * BLOCK
        out[i : i + side, j : j + side, k : k + side] = sampled[n]
    return out
