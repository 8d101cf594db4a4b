"""The field at the grid points of the blocks that the surface may cross, and on a whole grid for the tracker."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibration.cameras.camera_row import CENTRE_X, CENTRE_Y, CENTRE_Z
from calibration.cameras.projection import project_point
from calibration.foundation.arrays import Floats, Singles
from calibration.foundation.compiled import compiled
from capture.hull.blocks import BLOCK, Grid
from capture.hull.field import FieldViews, distance_in_view, ranked, value_at

__all__ = ["dense_field", "interpolation_error", "sample_blocks"]


@compiled
def _corner_projections(rows: Floats, grid: Grid, block: NDArray[np.int32], corners: Floats) -> float:
    """Fill (C, 8, 3): pixel and distance from the camera of a block's corners; return the error of interpolating.

    The error is that at the block's middle, px: where it is largest. Infinite where a corner is not seen.
    """
    origin, spacing = grid.origin, grid.spacing
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
            dx, dy, dz = px - row[CENTRE_X], py - row[CENTRE_Y], pz - row[CENTRE_Z]
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
def interpolation_error(rows: Floats, grid: Grid, active: NDArray[np.int32]) -> float:
    """Return the largest error (px) of interpolating projections inside the blocks, tried on some of them."""
    corners = np.empty((rows.shape[0], 8, 3))
    worst = 0.0
    step = max(1, active.shape[0] // 64)
    for n in range(0, active.shape[0], step):
        worst = max(worst, _corner_projections(rows, grid, active[n], corners))
    return worst


# Over 80 lines: a call per grid point instead of the inner loops made hulls 10 % slower (measured).
@compiled
def sample_blocks(
    views: FieldViews, grid: Grid, active: NDArray[np.int32], interpolate: bool, enough: float
) -> Singles:
    """Return (m, BLOCK + 1, BLOCK + 1, BLOCK + 1) the field at the grid points of the active blocks, mm.

    Args:
        interpolate: project a block's corners only and interpolate between them.
        enough: a point is not looked at further once it is found this far outside, mm. Its value is then a lower
            bound; no edge of the grid that the surface crosses ends there if this is well above the spacing.
    """
    rows, metric, _, values, layout, tolerated, least = views
    origin, spacing, blocks = grid
    side = BLOCK + 1
    out = np.empty((active.shape[0], side, side, side), np.float32)
    point = np.empty(3)
    worst = np.empty(tolerated + 1)
    count = rows.shape[0]
    corners = np.empty((count, 8, 3))
    on_edges = np.empty((count, 4, 3))
    on_faces = np.empty((count, 2, 3))
    order = np.arange(count)
    where = np.full(blocks, -1, np.int32)
    for n in range(active.shape[0]):
        where[active[n, 0], active[n, 1], active[n, 2]] = n
    high = (blocks[0] * BLOCK, blocks[1] * BLOCK, blocks[2] * BLOCK)
    for n in range(active.shape[0]):
        first_x, first_y, first_z = active[n, 0] * BLOCK, active[n, 1] * BLOCK, active[n, 2] * BLOCK
        if interpolate:
            _corner_projections(rows, grid, active[n], corners)
        for i in range(side):
            point[0] = origin[0] + (first_x + i) * spacing
            fx = i / BLOCK
            if interpolate:
                for view in range(count):
                    for e in range(4):
                        for c in range(3):
                            on_edges[view, e, c] = (
                                corners[view, 2 * e, c] * (1.0 - fx) + corners[view, 2 * e + 1, c] * fx
                            )
            for j in range(side):
                point[1] = origin[1] + (first_y + j) * spacing
                fy = j / BLOCK
                if interpolate:
                    for view in range(count):
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
                        f = value_at(views, point, worst)
                    else:
                        fz = k / BLOCK
                        for t in range(tolerated + 1):
                            worst[t] = -1e9
                        told = 0
                        for turn in range(count):
                            view = order[turn]
                            u = on_faces[view, 0, 0] * (1.0 - fz) + on_faces[view, 1, 0] * fz
                            v = on_faces[view, 0, 1] * (1.0 - fz) + on_faces[view, 1, 1] * fz
                            away = on_faces[view, 0, 2] * (1.0 - fz) + on_faces[view, 1, 2] * fz
                            pixels, tells = distance_in_view(values, layout, view, u, v)
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
                        f = ranked(worst, tolerated, told, least)
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
