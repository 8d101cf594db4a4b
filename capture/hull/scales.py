"""How image pixels and millimetres relate in each view of a volume."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.cameras.camera_row import CENTRE_X, CENTRE_Y, CENTRE_Z
from calibration.cameras.projection import project_point_with_jacobian
from calibration.foundation.arrays import Floats
from calibration.foundation.compiled import compiled
from capture.hull.bounds import Box

__all__ = ["ViewScales", "view_scales"]


@dataclass(frozen=True, eq=False)
class ViewScales:
    """How image pixels and millimetres relate in each view of the volume.

    Attributes:
        metric: (C,) size of a pixel per distance from the camera, mm / (px mm).
        gain: (C,) upper bound of the image speed times the distance, px.
    """

    metric: Floats
    gain: Floats


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
            distance = np.sqrt((x - row[CENTRE_X]) ** 2 + (y - row[CENTRE_Y]) ** 2 + (z - row[CENTRE_Z]) ** 2)
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
