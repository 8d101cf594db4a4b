"""Where the surface may be: a search from coarse to fine for the blocks of grid cells that it may cross.

A cube of half-diagonal r around x moves in the image of view c by at most g_c r / (|x - o_c| - r) pixels (g_c: the gain
of `ViewScales`, o_c: the camera's centre), and a signed distance changes by no more than that: a cube that is surely
outside, or surely inside, is decided as a whole. Only blocks of `BLOCK` cells that remain are sampled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibration.cameras.camera_row import CENTRE_X, CENTRE_Y, CENTRE_Z
from calibration.cameras.projection import project_point
from calibration.foundation.arrays import Floats
from calibration.foundation.compiled import compiled
from capture.hull.bounds import Box
from capture.hull.distance import RIM_PX
from capture.hull.field import FieldViews, distance_in_view

__all__ = ["BLOCK", "Grid", "active_blocks"]

#: Cells along the side of a block, the smallest cube that is decided as a whole.
BLOCK = 4
_TOP = 4  # levels of halving above the block: the search begins with cubes of BLOCK << _TOP cells


class Grid(NamedTuple):
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


@compiled
def _decide(views: FieldViews, centre: Floats, radius: float) -> int:
    """Return 1 if the ball is surely outside the hull, -1 if surely inside, 0 if the surface may cross it."""
    rows, _, gain, values, layout, tolerated, least = views
    outside, maybe_outside = 0, 0
    inside, maybe_inside = 0, 0
    for view in range(rows.shape[0]):
        row = rows[view]
        dx, dy, dz = centre[0] - row[CENTRE_X], centre[1] - row[CENTRE_Y], centre[2] - row[CENTRE_Z]
        distance = np.sqrt(dx * dx + dy * dy + dz * dz)
        u, v = project_point(row, centre[0], centre[1], centre[2])
        carves = layout[view, 5] == 1
        if distance <= 1.5 * radius or not np.isfinite(u):
            maybe_outside += 1
            maybe_inside += 1
            continue
        # One pixel of slack: grid distances and their bilinear interpolation are not exactly 1-Lipschitz.
        reach = gain[view] * radius / (distance - radius) + 1.0
        pixels, tells = distance_in_view(values, layout, view, u, v)
        if pixels > reach:
            outside += 1
            if outside > tolerated:
                return 1
        if pixels > -reach:
            maybe_outside += 1
        if carves:
            inside += pixels < -reach
            maybe_inside += pixels < reach
        else:
            inside_frame = min(
                min(u - layout[view, 3], v - layout[view, 4]),
                min(layout[view, 3] + layout[view, 1] - 1 - u, layout[view, 4] + layout[view, 2] - 1 - v),
            )
            maybe_inside += (tells or inside_frame > -reach) and pixels < reach
            inside += inside_frame > reach + RIM_PX and pixels < -reach
    if outside > tolerated or maybe_inside < least:
        return 1
    if maybe_outside <= tolerated and inside >= least:
        return -1
    return 0


@compiled
def active_blocks(views: FieldViews, grid: Grid) -> NDArray[np.int32]:
    """Return (m, 3) the blocks that the surface may cross, in a fixed order."""
    origin, spacing, blocks = grid
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
            state = _decide(views, centre, 0.8660255 * side)
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
