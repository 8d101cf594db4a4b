"""Nearest neighbours among a few hundred image points of like normal: square cells, searched in rings.

Points are rows (x, y, normal x, normal y), px. The answer is that of a search through all points, ties to the first.
"""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.compiled import compiled

__all__ = ["fill_grid", "nearest_alike"]

ALIKE = 0.4
"""Cosine of the largest angle between the normals of two points that may be paired."""

CELL = 16.0
"""Side of a cell, px."""


@compiled
def fill_grid(points: Floats) -> tuple[Ints, Ints, Floats]:
    """Sort points (N, 4) into cells: where each cell starts, the points in the order of cells, and the grid's frame."""
    low_x, low_y, high_x, high_y = points[0, 0], points[0, 1], points[0, 0], points[0, 1]
    for i in range(len(points)):
        low_x, high_x = min(low_x, points[i, 0]), max(high_x, points[i, 0])
        low_y, high_y = min(low_y, points[i, 1]), max(high_y, points[i, 1])
    wide, high = int((high_x - low_x) / CELL) + 1, int((high_y - low_y) / CELL) + 1
    cells = np.zeros(wide * high + 1, np.int64)
    where = np.empty(len(points), np.int64)
    for i in range(len(points)):
        where[i] = int((points[i, 1] - low_y) / CELL) * wide + int((points[i, 0] - low_x) / CELL)
        cells[where[i] + 1] += 1
    for k in range(wide * high):
        cells[k + 1] += cells[k]
    order = np.empty(len(points), np.int64)
    filled = np.zeros(wide * high, np.int64)
    for i in range(len(points)):
        order[cells[where[i]] + filled[where[i]]] = i
        filled[where[i]] += 1
    return cells, order, np.array([low_x, low_y, float(wide), float(high)])


@compiled
def nearest_alike(query: Floats, limit: float, points: Floats, cells: Ints, order: Ints, frame: Floats) -> int:
    """Return the point of like normal nearest to a query (4,), -1 where there is none within ``limit`` px."""
    x, y, nx, ny = query[0], query[1], query[2], query[3]
    wide, high = int(frame[2]), int(frame[3])
    column, row = int(np.floor((x - frame[0]) / CELL)), int(np.floor((y - frame[1]) / CELL))
    # How far the query's cell goes on at least, around it: negative outside the grid's own cells.
    left, above = x - frame[0] - column * CELL, y - frame[1] - row * CELL
    border = min(left, CELL - left, above, CELL - above)
    best, at = limit * limit, -1
    # Rings that miss the grid altogether are skipped; those beyond its far side do not exist.
    ring = max(0, -column, column - wide + 1, -row, row - high + 1)
    last = max(column, wide - 1 - column, row, high - 1 - row)
    while ring <= last:
        near = (ring - 1) * CELL + border  # nothing in this ring is nearer
        if ring > 0 and near * near > best:
            break
        for j in range(max(row - ring, 0), min(row + ring, high - 1) + 1):
            step = 1 if (j == row - ring or j == row + ring or ring == 0) else 2 * ring
            for i in range(column - ring, column + ring + 1, step):
                if i < 0 or i >= wide:
                    continue
                for k in range(cells[j * wide + i], cells[j * wide + i + 1]):
                    p = order[k]
                    if nx * points[p, 2] + ny * points[p, 3] < ALIKE:
                        continue
                    dx, dy = points[p, 0] - x, points[p, 1] - y
                    square = dx * dx + dy * dy
                    if square < best or (square == best and p < at):
                        best, at = square, p
        ring += 1
    return at
