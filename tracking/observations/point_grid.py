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
def fill_grid(points: Floats) -> tuple[Floats, Ints, Ints, Floats]:
    """Sort points (N, 4), or with more numbers behind these, into cells.

    Returns:
        points: (N, 4) in the order of cells.
        places: (N,) which of the points given each of them is.
        cells: where each cell starts among them, and the end of the last.
        frame: (4,) x and y of the grid's corner, px, and how many cells it is wide and high.
    """
    low_x, low_y, high_x, high_y = points[0, 0], points[0, 1], points[0, 0], points[0, 1]
    for i in range(len(points)):
        low_x, high_x = min(low_x, points[i, 0]), max(high_x, points[i, 0])
        low_y, high_y = min(low_y, points[i, 1]), max(high_y, points[i, 1])
    wide, high = int((high_x - low_x) / CELL) + 1, int((high_y - low_y) / CELL) + 1
    # Counted two cells ahead: after the last loop, in which each grows to its end, all lie one ahead.
    cells = np.zeros(wide * high + 2, np.int64)
    where = np.empty(len(points), np.int64)
    for i in range(len(points)):
        where[i] = int((points[i, 1] - low_y) / CELL) * wide + int((points[i, 0] - low_x) / CELL)
        cells[where[i] + 2] += 1
    for k in range(1, wide * high + 1):
        cells[k + 1] += cells[k]
    places, sorted_points = np.empty(len(points), np.int64), np.empty((len(points), 4))
    for i in range(len(points)):
        at = cells[where[i] + 1]
        cells[where[i] + 1] += 1
        places[at] = i
        for k in range(4):
            sorted_points[at, k] = points[i, k]
    return sorted_points, places, cells[:-1], np.array([low_x, low_y, float(wide), float(high)])


@compiled
def nearest_alike(query: Floats, limit: float, points: Floats, places: Ints, cells: Ints, frame: Floats) -> int:
    """Return the point of like normal nearest to a query (4,), -1 where there is none within ``limit`` px.

    The rest are what `fill_grid` returned.
    """
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
                    dx, dy = points[k, 0] - x, points[k, 1] - y
                    square = dx * dx + dy * dy
                    # One question for most: each that is asked of itself is guessed wrong by the processor at times.
                    if (square <= best) & (nx * points[k, 2] + ny * points[k, 3] >= ALIKE):
                        place = places[k]
                        if square < best or place < at:
                            best, at = square, place
        ring += 1
    return at
