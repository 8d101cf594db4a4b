"""The field at the grid points of the blocks that the surface may cross, and on a whole grid for the tracker."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibration.cameras.camera_row import CENTRE_X, CENTRE_Y, CENTRE_Z
from calibration.cameras.projection import project_into, project_point
from calibration.foundation.arrays import Floats, Ints, Singles
from calibration.foundation.compiled import compiled
from capture.hull.blocks import BLOCK, Grid
from capture.hull.distance import RIM_PX
from capture.hull.field import FieldViews, distance_in_view, ranked, value_at

__all__ = ["Corners", "dense_field", "interpolation_error", "project_corners", "sample_blocks"]


class Corners(NamedTuple):
    """The corners of blocks in the views.

    Attributes:
        numbers: (m, 8) which of the corners are those of each block; several share one.
        places: (n, C, 3) pixel of each corner and its distance from the camera; NaN where it is not seen.
    """

    numbers: NDArray[np.int32]
    places: Floats


@compiled
def _number_corners(active: NDArray[np.int32], blocks: tuple[int, int, int]) -> tuple[NDArray[np.int32], Ints]:
    """Return (m, 8) the numbers of the blocks' corners, those that several share once, and (n, 3) where these are."""
    at = np.full((blocks[0] + 1, blocks[1] + 1, blocks[2] + 1), -1, np.int32)
    numbers = np.empty((active.shape[0], 8), np.int32)
    where = np.empty((8 * active.shape[0], 3), np.int64)
    count = 0
    for n in range(active.shape[0]):
        for c in range(8):
            i, j, k = active[n, 0] + (c & 1), active[n, 1] + (c >> 1 & 1), active[n, 2] + (c >> 2)
            if at[i, j, k] < 0:
                at[i, j, k] = count
                where[count, 0], where[count, 1], where[count, 2] = i, j, k
                count += 1
            numbers[n, c] = at[i, j, k]
    return numbers, where[:count]


@compiled
def project_corners(rows: Floats, grid: Grid, active: NDArray[np.int32]) -> Corners:
    """Project the corners of blocks (m, 3) into views (C, ROW)."""
    numbers, where = _number_corners(active, grid.blocks)
    points, pixels = np.empty(where.shape), np.empty((where.shape[0], 2))
    for n in range(where.shape[0]):
        for axis in range(3):
            points[n, axis] = grid.origin[axis] + where[n, axis] * BLOCK * grid.spacing
    places = np.empty((where.shape[0], rows.shape[0], 3))
    for view in range(rows.shape[0]):
        row = rows[view]
        project_into(row, points, pixels)
        for n in range(where.shape[0]):
            dx, dy, dz = points[n, 0] - row[CENTRE_X], points[n, 1] - row[CENTRE_Y], points[n, 2] - row[CENTRE_Z]
            places[n, view, 0], places[n, view, 1] = pixels[n, 0], pixels[n, 1]
            places[n, view, 2] = np.sqrt(dx * dx + dy * dy + dz * dz)
    return Corners(numbers, places)


@compiled
def interpolation_error(rows: Floats, grid: Grid, active: NDArray[np.int32], corners: Corners) -> float:
    """Return the largest error (px) of interpolating projections inside the blocks, tried on some of them.

    The error is that at a block's middle: where it is largest. Infinite where a corner is not seen.
    """
    half = BLOCK * grid.spacing / 2
    worst = 0.0
    step = max(1, active.shape[0] // 64)
    for n in range(0, active.shape[0], step):
        i, j, k = active[n, 0], active[n, 1], active[n, 2]
        for view in range(rows.shape[0]):
            mean_u, mean_v = 0.0, 0.0
            for c in range(8):
                corner = corners.places[corners.numbers[n, c], view]
                mean_u += corner[0] / 8
                mean_v += corner[1] / 8
            u, v = project_point(
                rows[view],
                grid.origin[0] + (2 * i + 1) * half,
                grid.origin[1] + (2 * j + 1) * half,
                grid.origin[2] + (2 * k + 1) * half,
            )
            error = np.sqrt((u - mean_u) ** 2 + (v - mean_v) ** 2)
            if not error <= worst:
                worst = error if np.isfinite(error) else np.inf
    return worst


def _shares() -> Singles:
    """Return (8, points) by how much the corners of a block count at its grid points."""
    along = np.arange(BLOCK + 1) / BLOCK
    ends = np.stack([1.0 - along, along])
    corners = [np.einsum("i,j,k->ijk", ends[c & 1], ends[c >> 1 & 1], ends[c >> 2]).ravel() for c in range(8)]
    return np.array(corners, dtype=np.float32)


def _owners() -> NDArray[np.int64]:
    """Return (points,) to which block a grid point belongs: 0 its own, else by axes one farther (1 x, 2 y, 4 z)."""
    i, j, k = np.indices((BLOCK + 1,) * 3).reshape(3, -1) // BLOCK
    return np.asarray(i + 2 * j + 4 * k)


_SHARES, _OWNERS = _shares(), _owners()


@compiled
def _interpolate(corners: Floats, numbers: NDArray[np.int32], view: int, out: Singles) -> None:
    """Fill (3, points) pixel and distance of a view at the grid points of a block, from those at its corners."""
    at, shares = np.empty(8, np.float32), _SHARES
    for c in range(3):
        # Beyond the first corner, in single precision: right to 1e-4 of a pixel, and many points are done at a time.
        first = np.float32(corners[numbers[0], view, c])
        for n in range(1, 8):
            at[n] = np.float32(corners[numbers[n], view, c] - corners[numbers[0], view, c])
        row, b, d, e, f, g, h, k = out[c], at[1], at[2], at[3], at[4], at[5], at[6], at[7]
        for n in range(out.shape[1]):
            row[n] = (
                first
                + (shares[1, n] * b + shares[2, n] * d)
                + (shares[3, n] * e + shares[4, n] * f)
                + (shares[5, n] * g + shares[6, n] * h)
                + shares[7, n] * k
            )


# Nine parameters: the work space of a block.
@compiled
def _raise_by_view(
    views: FieldViews,
    view: int,
    places: Singles,
    best: Singles,
    which: NDArray[np.int8],
    silent: Ints,
    asked: NDArray[np.uintp],
    count: int,
    enough: float,
) -> tuple[int, float]:
    """Raise the field ``best`` (points,) of a block to a view's distances, noting ``which`` (points,) view decides.

    ``places`` (3, points) are pixel and distance of the grid points in the view; ``silent`` (points,) counts the views
    that cannot tell. Only the first ``count`` points of ``asked`` are looked at, and those among them that are
    ``enough`` outside are taken off it. Returns how many are left, and the smallest value.
    """
    values, layout = views.values, views.layout
    start, width, height = layout[view, 0], layout[view, 1], layout[view, 2]
    left, top = np.float32(layout[view, 3]), np.float32(layout[view, 4])
    # Beyond the rim of a view that shows a part it cannot tell.
    edge = 0.01 if layout[view, 5] == 1 else float(RIM_PX)
    within = True
    for corner in range(8):
        # Points between corners that the image holds are in it too: no need to ask each.
        at = ((corner & 1) * (BLOCK + 1) + (corner >> 1 & 1)) * (BLOCK + 1) * BLOCK + (corner >> 2) * BLOCK
        x, y = places[0, at] - left, places[1, at] - top
        within = within and x > edge and y > edge and x < width - 1 - edge and y < height - 1 - edge
    across, down, away, line = places[0], places[1], places[2], np.uintp(width)
    metric, limit = np.float32(views.metric[view]), np.float32(enough)
    remain, smallest, own = np.uintp(0), np.float32(np.inf), np.int8(view)
    for turn in range(np.uintp(count)):
        n = asked[turn]
        if within:
            x, y = across[n] - left, down[n] - top
            column, row = np.int32(x), np.int32(y)
            fx, fy = x - np.float32(column), y - np.float32(row)
            # Never negative: no need to ask whether it counts from the end.
            above = np.uintp(start) + np.uintp(row) * line + np.uintp(column)
            below = above + line
            upper = values[above] + fx * (values[above + np.uintp(1)] - values[above])
            lower = values[below] + fx * (values[below + np.uintp(1)] - values[below])
            pixels = upper + fy * (lower - upper)
        else:
            exact, tells = distance_in_view(values, layout, view, across[n], down[n])
            pixels = np.float32(exact)
            silent[n] += not tells
        # Without branches: which way they go changes from point to point.
        distance, before = pixels * metric * away[n], best[n]
        value = distance if distance > before else before
        which[n] = own if distance > before else which[n]
        best[n] = value
        smallest = value if value < smallest else smallest
        asked[remain] = n
        remain += np.uintp(value <= limit)
    return int(remain), float(smallest)


@compiled
def _order_views(
    views: FieldViews, grid: Grid, corners: Floats, numbers: NDArray[np.int32], order: Ints, most: Floats
) -> int:
    """Fill the views (C,), those first that have a block's middle farthest outside, and bounds (C,) in the block, mm.

    Returns 1 if the block is surely outside the hull, -1 if surely inside, else 0. A signed distance changes by no more
    than a point moves in the image, and in a block none is farther from the middle than a corner; one pixel of slack as
    in `capture.hull.blocks`. There is no bound of a view that shows a part of the subject: whether it can tell about a
    point is not known beforehand.
    """
    radius = 0.8660255 * BLOCK * grid.spacing
    middle = np.empty(order.shape[0])
    outside, inside = False, True
    for view in range(order.shape[0]):
        u, v, away = 0.0, 0.0, 0.0
        for c in range(8):
            corner = corners[numbers[c], view]
            u, v, away = u + corner[0] / 8, v + corner[1] / 8, away + corner[2] / 8
        pixels, _ = distance_in_view(views.values, views.layout, view, u, v)
        middle[view] = pixels * views.metric[view] * away
        most[view] = np.inf
        if views.layout[view, 5] == 1 and away > 1.5 * radius and np.isfinite(u):
            farthest = 0.0
            for c in range(8):
                corner = corners[numbers[c], view]
                farthest = max(farthest, (corner[0] - u) ** 2 + (corner[1] - v) ** 2)
            reach = np.sqrt(farthest) + 1.0
            outside = outside or pixels > reach
            high = pixels + reach
            most[view] = high * views.metric[view] * (away + radius if high > 0 else away - radius)
        inside = inside and most[view] < 0.0
        at = view
        while at > 0 and middle[order[at - 1]] < middle[view]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = view
    return int(outside) - int(inside)


@compiled
def _crossed_blocks(
    views: FieldViews, grid: Grid, active: NDArray[np.int32], corners: Corners
) -> tuple[Ints, NDArray[np.int32], Ints, Floats]:
    """Return which of the blocks the surface may cross (m,), all blocks as a map of these, and what is known of each.

    The map has the number of a block among these, -1 for others, and -1 all around its high ends. Known are the order
    of the views (m, C) and their bounds (m, C), see `_order_views`.
    """
    size = (active.shape[0], views.rows.shape[0])
    kept, order, most = np.empty(size[0], np.int64), np.empty(size, np.int64), np.empty(size)
    where = np.full((grid.blocks[0] + 1, grid.blocks[1] + 1, grid.blocks[2] + 1), -1, np.int32)
    number = 0
    for n in range(active.shape[0]):
        state = _order_views(views, grid, corners.places, corners.numbers[n], order[number], most[number])
        rim = False
        for axis in range(3):
            rim = rim or active[n, axis] == 0 or active[n, axis] + 1 == grid.blocks[axis]
        if state == 0 or (state == -1 and rim):
            where[active[n, 0], active[n, 1], active[n, 2]] = number
            kept[number] = n
            number += 1
    return kept[:number], where, order, most


@compiled
def _largest_distances(
    views: FieldViews, grid: Grid, active: NDArray[np.int32], corners: Corners, enough: float
) -> tuple[NDArray[np.int32], Singles, NDArray[np.int8]]:
    """Return blocks, field and deciding views as `sample_blocks` does where no view may be wrong: the largest decides.

    A view that cannot be the largest anywhere in a block is not looked at, and blocks that the surface surely does not
    cross are left out. Points that a block shares with others are left to the one that they belong to.
    """
    side = BLOCK + 1
    points, owners = side * side * side, _OWNERS
    kept, where, order, most = _crossed_blocks(views, grid, active, corners)
    out = np.empty((kept.shape[0], side, side, side), np.float32)
    decides = np.full((kept.shape[0], side, side, side), -1, np.int8)
    places, best = np.empty((3, points), np.float32), np.empty(points, np.float32)
    silent, asked = np.empty(points, np.int64), np.empty(points, np.uintp)
    missing = np.empty(8, np.bool_)
    for number in range(kept.shape[0]):
        n = kept[number]
        i, j, k = active[n, 0], active[n, 1], active[n, 2]
        for near in range(8):
            missing[near] = near == 0 or where[i + (near & 1), j + (near >> 1 & 1), k + (near >> 2)] < 0
        left = 0
        for at in range(points):
            asked[left] = at
            left += missing[owners[at]]
        which = decides[number].reshape(-1)
        best[:] = np.float32(-1e9)
        silent[:] = 0
        smallest = -1e9
        for turn in range(views.rows.shape[0]):
            view = order[number, turn]
            if most[number, view] < smallest:
                continue
            _interpolate(corners.places, corners.numbers[n], view, places)
            left, smallest = _raise_by_view(views, view, places, best, which, silent, asked, left, enough)
            if left == 0:
                break
        block = out[number].reshape(-1)
        for at in range(points):
            told = views.rows.shape[0] - silent[at]
            block[at] = max(best[at], 1.0) if told < views.least else best[at]
    return active[kept], out, decides


@compiled
def sample_blocks(
    views: FieldViews, grid: Grid, active: NDArray[np.int32], corners: Corners, interpolate: bool, enough: float
) -> tuple[NDArray[np.int32], Singles, NDArray[np.int8]]:
    """Return (m, 3) those of the active blocks that matter, the field at their grid points, mm, and who decides there.

    Field and deciding view (-1: not known) are (m, BLOCK + 1, BLOCK + 1, BLOCK + 1).

    Args:
        corners: those of the blocks, see `project_corners`.
        interpolate: do not project more than these and interpolate between them.
        enough: a point is not looked at further once it is found this far outside, mm. Its value is then a lower
            bound; no edge of the grid that the surface crosses ends there if this is above the spacing.
    """
    origin, spacing, _ = grid
    if interpolate and views.tolerated == 0:
        active, out, decides = _largest_distances(views, grid, active, corners, enough)
        _join_blocks(grid, active, out, decides)
        return active, out, decides
    side = BLOCK + 1
    out = np.empty((active.shape[0], side, side, side), np.float32)
    decides = np.full((active.shape[0], side, side, side), -1, np.int8)
    worst = np.empty(views.tolerated + 1)
    if interpolate:
        places = np.empty((views.rows.shape[0], 3, side * side * side), np.float32)
        for n in range(active.shape[0]):
            for view in range(views.rows.shape[0]):
                _interpolate(corners.places, corners.numbers[n], view, places[view])
            block = out[n].reshape(-1)
            for at in range(side * side * side):
                block[at] = _ranked_at(views, places, at, worst)
    else:
        point = np.empty(3)
        for n in range(active.shape[0]):
            for i in range(side):
                for j in range(side):
                    for k in range(side):
                        point[0] = origin[0] + (active[n, 0] * BLOCK + i) * spacing
                        point[1] = origin[1] + (active[n, 1] * BLOCK + j) * spacing
                        point[2] = origin[2] + (active[n, 2] * BLOCK + k) * spacing
                        out[n, i, j, k] = value_at(views, point, worst)
    _join_blocks(grid, active, out, decides)
    return active, out, decides


@compiled
def _ranked_at(views: FieldViews, places: Singles, at: int, worst: Floats) -> float:
    """Return the field at a grid point whose places (C, 3, points) in the views are known, mm."""
    worst[:] = -1e9
    told = 0
    for view in range(places.shape[0]):
        pixels, tells = distance_in_view(views.values, views.layout, view, places[view, 0, at], places[view, 1, at])
        told += tells
        distance = pixels * views.metric[view] * places[view, 2, at]
        for t in range(views.tolerated + 1):
            if distance > worst[t]:
                worst[t], distance = distance, worst[t]
    return ranked(worst, views.tolerated, told, views.least)


@compiled
def _join_blocks(grid: Grid, active: NDArray[np.int32], out: Singles, decides: NDArray[np.int8]) -> None:
    """Let blocks have the same values where they meet, and the grid's outermost points be outside."""
    blocks = grid.blocks
    side = BLOCK + 1
    where = np.full(blocks, -1, np.int32)
    for n in range(active.shape[0]):
        where[active[n, 0], active[n, 1], active[n, 2]] = n
    rim = np.float32(0.5 * grid.spacing)
    for n in range(active.shape[0]):
        for axis in range(3):
            for high in range(2):
                if active[n, axis] + high == (blocks[axis] if high else 0):
                    at = BLOCK * high
                    if axis == 0:
                        out[n, at] = np.maximum(out[n, at], rim)
                    elif axis == 1:
                        out[n, :, at] = np.maximum(out[n, :, at], rim)
                    else:
                        out[n, :, :, at] = np.maximum(out[n, :, :, at], rim)
    # A point on a high face is the neighbour's own.
    for n in range(active.shape[0]):
        for near in range(1, 8):
            x, y, z = near & 1, near >> 1 & 1, near >> 2
            a, b, c = active[n, 0] + x, active[n, 1] + y, active[n, 2] + z
            if a == blocks[0] or b == blocks[1] or c == blocks[2] or where[a, b, c] < 0:
                continue
            other = where[a, b, c]
            for i in range(BLOCK * x, side if x else BLOCK):
                for j in range(BLOCK * y, side if y else BLOCK):
                    for k in range(BLOCK * z, side if z else BLOCK):
                        out[n, i, j, k] = out[other, i % BLOCK, j % BLOCK, k % BLOCK]
                        decides[n, i, j, k] = decides[other, i % BLOCK, j % BLOCK, k % BLOCK]


@compiled
def dense_field(views: FieldViews, grid: Grid, active: NDArray[np.int32], sampled: Singles) -> Singles:
    """Return the field on the whole grid: sampled near the surface, interpolated between block corners elsewhere."""
    origin, spacing, blocks = grid
    nx, ny, nz = blocks[0] * BLOCK + 1, blocks[1] * BLOCK + 1, blocks[2] * BLOCK + 1
    coarse = np.empty((blocks[0] + 1, blocks[1] + 1, blocks[2] + 1), np.float32)
    point = np.empty(3)
    worst = np.empty(views.tolerated + 1)
    for i in range(blocks[0] + 1):
        for j in range(blocks[1] + 1):
            for k in range(blocks[2] + 1):
                point[0] = origin[0] + i * BLOCK * spacing
                point[1] = origin[1] + j * BLOCK * spacing
                point[2] = origin[2] + k * BLOCK * spacing
                coarse[i, j, k] = value_at(views, point, worst)
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
