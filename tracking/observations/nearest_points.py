"""Nearest neighbours among a few hundred image points of like normal: a search through all points.

Points are rows (x, y, normal x, normal y), px. Each point is compared with many queries at a time, by one instruction
for several of them: cells that are searched in rings look at fewer points, and take twice as long.
"""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.compiled import compiled

__all__ = ["nearest_alike"]

ALIKE = 0.4
"""Cosine of the largest angle between the normals of two points that may be paired."""
TOGETHER = 64
"""Queries that are compared together: those of a stretch of outline lie close, and most points lie far from all."""


@compiled
def nearest_alike(queries: Floats, limits: Floats, points: Floats) -> Ints:
    """Return (M,) which of the points (N, 4) of like normal is nearest to each query (M, 4), the first of equal ones.

    -1 where there is none within ``limits`` (M,) px. Rows may hold more numbers behind the four.
    """
    found = np.empty(len(queries), np.int64)
    rows, nearest, which = np.empty((4, TOGETHER)), np.empty(TOGETHER), np.empty(TOGETHER, np.int64)
    for first in range(0, len(queries), TOGETHER):
        count = min(TOGETHER, len(queries) - first)
        low_x, low_y, high_x, high_y = np.inf, np.inf, -np.inf, -np.inf
        for m in range(count):
            x, y, limit = queries[first + m, 0], queries[first + m, 1], limits[first + m]
            low_x, high_x = min(low_x, x - limit), max(high_x, x + limit)
            low_y, high_y = min(low_y, y - limit), max(high_y, y + limit)
            for k in range(4):
                rows[k, m] = queries[first + m, k]
            nearest[m], which[m] = limit * limit, -1
        xs, ys, us, vs = rows[0], rows[1], rows[2], rows[3]
        for i in range(len(points)):
            x, y, u, v = points[i, 0], points[i, 1], points[i, 2], points[i, 3]
            if x < low_x or x > high_x or y < low_y or y > high_y:
                continue
            for m in range(count):
                dx, dy = x - xs[m], y - ys[m]
                square = dx * dx + dy * dy
                nearer = (square < nearest[m]) & (us[m] * u + vs[m] * v >= ALIKE)
                nearest[m] = square if nearer else nearest[m]
                which[m] = i if nearer else which[m]
        for m in range(count):
            found[first + m] = which[m]
    return found
