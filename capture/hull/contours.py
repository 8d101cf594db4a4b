"""The outline of a silhouette as polygons on a plane in front of its camera, distortion taken out.

The outline is the level-0.5 polyline through the pixel centres (as in `capture.hull.distance`). It is turned into
rays *before* it is simplified, since a straight line in a distorted image is none in space. Holes are polygons
that turn the other way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.cameras.camera import Camera
from calibration.foundation.arrays import Floats, Ints, Singles
from calibration.foundation.compiled import compiled
from calibration.foundation.errors import InputError

__all__ = ["Outline", "mask_contours", "outline_of"]


@dataclass(frozen=True, eq=False)
class Outline:
    """Polygons on the plane ``centre + forward + x right + y down``.

    Attributes:
        polygons: closed, each (n, 2), in pixel-sized units: x and y are ``polygon / scale``.
        scale: pixels per unit of the plane.
        centre: (3,) camera centre, world mm.
        right, down, forward: (3,) unit axes.
        complement: whether the polygons bound what the view *excludes* (the frame without the silhouette).
    """

    polygons: list[Floats]
    scale: float
    centre: Floats
    right: Floats
    down: Floats
    forward: Floats
    complement: bool


def mask_contours(silhouette: NDArray[Any], *, complement: bool = False) -> list[Floats]:
    """Return the closed polylines (n, 2), px (x, y), around a mask or matte; or around the rest of its frame."""
    level = silhouette.astype(np.float32)
    if silhouette.dtype == np.uint8:
        level /= 255.0
    inside = ~(level > 0.5) if complement else level > 0.5
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    if len(rows) == 0:
        return []
    # One pixel more on every side: a matte's edge lies between its last inside pixel and the half-covered next one.
    top, left = max(rows[0] - 1, 0), max(columns[0] - 1, 0)
    crop = level[top : rows[-1] + 2, left : columns[-1] + 2]
    padded = np.pad(1.0 - crop if complement else crop, 1)
    points, ends = _trace(padded)
    loops = np.split(points + np.array([left - 1.0, top - 1.0]), ends[:-1])
    return [loop for loop in loops if len(loop) > 2]


@compiled
def _trace(level: Singles) -> tuple[Floats, Ints]:
    """Return the points (n, 2), px (x, y), of all closed level-0.5 polylines, and where each of them ends.

    ``level`` (h, w) is outside all along its rim. Two inside corners on a diagonal are not joined.
    """
    height, width = level.shape
    count = 0
    for row in range(height):
        for column in range(width):
            inside = level[row, column] > 0.5
            count += column + 1 < width and inside != (level[row, column + 1] > 0.5)
            count += row + 1 < height and inside != (level[row + 1, column] > 0.5)
    points, ends = np.empty((count, 2)), np.empty(count, np.int64)
    seen = np.zeros((height, width), np.bool_)  # crossings to the right of a centre; every loop has some
    at, loops = 0, 0
    for first_row in range(height):
        for first_column in range(width - 1):
            crossed = (level[first_row, first_column] > 0.5) != (level[first_row, first_column + 1] > 0.5)
            if not crossed or seen[first_row, first_column]:
                continue
            # A cell has its corners at (row, column) and one further; its sides are 0 top, 1 right, 2 bottom, 3 left.
            row, column, side = first_row, first_column, 0
            while True:
                y, x = row + (side == 2), column + (side == 1)
                across = side % 2 == 0
                a = level[y, x] - 0.5
                b = (level[y, x + 1] if across else level[y + 1, x]) - 0.5
                part = a / (a - b)
                points[at, 0], points[at, 1] = x + (part if across else 0.0), y + (0.0 if across else part)
                at += 1
                if across:
                    seen[y, x] = True
                corners = (
                    level[row, column] > 0.5,
                    level[row, column + 1] > 0.5,
                    level[row + 1, column + 1] > 0.5,
                    level[row + 1, column] > 0.5,
                )
                # Side s lies between corners s and s + 1. Around the inside corner of the side just entered lies the
                # way out, unless that corner's other side is not crossed.
                own = side if corners[side] else (side + 1) % 4
                step = 3 if own == side else 1
                out = (side + step) % 4
                while corners[out] == corners[(out + 1) % 4]:
                    out = (out + step) % 4
                row += (out == 2) - (out == 0)
                column += (out == 1) - (out == 3)
                side = (out + 2) % 4
                if row == first_row and column == first_column and side == 0:
                    break
                if (row + (side == 2), column, side % 2) == (first_row, first_column, 0):
                    break
            ends[loops] = at
            loops += 1
    return points, ends[:loops]


def outline_of(camera: Camera, contours: list[Floats], *, complement: bool = False) -> Outline:
    """Put contours (px) on the plane in front of a camera."""
    points = np.concatenate(contours)
    origins, rays = camera.rays(points)
    if not np.isfinite(rays).all():
        raise InputError(f"camera '{camera.name}': part of the silhouette lies where its lens has no inverse")
    low, high = points.min(axis=0), points.max(axis=0)
    middle = (low + high) / 2
    half = np.maximum((high - low) / 2, 1.0)
    _, cross = camera.rays(middle + np.array([[0.0, 0.0], [half[0], 0.0]]))
    forward = cross[0]
    right = cross[1] - (cross[1] @ forward) * forward
    right /= np.linalg.norm(right)
    down = np.cross(forward, right)
    along = rays @ forward
    if along.min() <= 0.05:
        raise InputError(f"camera '{camera.name}': the silhouette spans too wide an angle for the exact engine")
    plane = np.stack([(rays @ right) / along, (rays @ down) / along], axis=1)
    spread = plane.max(axis=0) - plane.min(axis=0)
    scale = float(np.max(high - low) / max(float(spread.max()), 1e-12))
    ends = np.cumsum([len(contour) for contour in contours])[:-1]
    polygons = np.split(plane * scale, ends)
    return Outline(polygons, scale, origins[0], right, down, forward, complement)
