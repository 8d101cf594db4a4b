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
from skimage.measure import find_contours

from calibration.arrays import Floats
from calibration.cameras import Camera
from calibration.errors import InputError

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
    top, left = rows[0], columns[0]
    crop = level[top : rows[-1] + 1, left : columns[-1] + 1]
    padded = np.pad(1.0 - crop if complement else crop, 1)
    loops = find_contours(padded, 0.5, fully_connected="low")
    shift = np.array([left - 1.0, top - 1.0])
    return [loop[:-1, ::-1] + shift for loop in loops if len(loop) > 3]


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
