"""The hull as a field: at each point the largest of the views' signed distances, in millimetres.

A point is inside the hull where no view has it outside its silhouette:

    f(x) = max_c  m_c |x - o_c| s_c(project_c(x))

with s_c the signed distance in the image (px, negative inside), o_c the camera's centre and m_c |x - o_c| the
size of a pixel at x. The zero level is the exact intersection of the cones over the silhouettes' edges.

With k wrong views tolerated a point is inside where at most k of the views that can tell have it outside, and at least
`least` of them have it inside: f is the (j+1)-th largest distance, j = min(k, views that can tell - least).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibration.cameras.camera_row import CENTRE_X, CENTRE_Y, CENTRE_Z
from calibration.cameras.projection import project_into, project_point, project_point_with_jacobian
from calibration.foundation.arrays import Floats, Ints, Singles
from calibration.foundation.compiled import compiled
from capture.hull.distance import RIM_PX

__all__ = ["FieldViews", "distance_in_view", "ranked", "surface_normals", "value_at"]


class FieldViews(NamedTuple):
    """What the field is made of, as the kernels take it.

    Attributes:
        rows: (C, 36) packed cameras.
        metric, gain: (C,) see `capture.hull.scales.ViewScales`.
        values, layout: the distance images, see `capture.hull.distance.PackedDistances`.
        tolerated: number of views that may be wrong at any point.
        least: number of views that must have a point inside.
    """

    rows: Floats
    metric: Floats
    gain: Floats
    values: Singles
    layout: Ints
    tolerated: int
    least: int


@compiled
def distance_in_view(values: Singles, layout: Ints, view: int, u: float, v: float) -> tuple[float, bool]:
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
    # Of a view that shows a part, the image has a rim of `RIM_PX` outside the frame: there it cannot tell.
    rim = min(min(x, width - 1 - x), min(y, height - 1 - y))
    return top + fy * (bottom - top), carves or rim >= RIM_PX - 0.5


@compiled
def _between_pixels(values: Singles, layout: Ints, view: int, u: float, v: float) -> float:
    """Return what `distance_in_view` does at a pixel that the view's distance image is known to hold."""
    x, y, width = u - layout[view, 3], v - layout[view, 4], np.uintp(layout[view, 1])
    column, row = np.uintp(x), np.uintp(y)
    fx, fy = x - column, y - row
    at = np.uintp(layout[view, 0]) + row * width + column
    below = at + width
    top = values[at] + fx * (values[at + np.uintp(1)] - values[at])
    bottom = values[below] + fx * (values[below + np.uintp(1)] - values[below])
    return float(top + fy * (bottom - top))


@compiled
def _reaches_inside(layout: Ints, view: int, u: float, v: float, step: float, by_point: Floats) -> bool:
    """Whether a view's distance image holds all pixels that a point reaches which moves along an axis by a step."""
    du = step * max(abs(by_point[0, 0]), max(abs(by_point[0, 1]), abs(by_point[0, 2])))
    dv = step * max(abs(by_point[1, 0]), max(abs(by_point[1, 1]), abs(by_point[1, 2])))
    x, y = u - layout[view, 3], v - layout[view, 4]
    # (NaN is not inside.)
    across = x - du > 0.01 and x + du < layout[view, 1] - 1.01
    return bool(across and y - dv > 0.01 and y + dv < layout[view, 2] - 1.01)


@compiled
def value_at(views: FieldViews, point: Floats, worst: Floats) -> float:
    """Return the field at one point, mm; a point that fewer than ``least`` views can tell about is outside.

    ``worst`` (``tolerated`` + 1,) is work space.
    """
    rows, metric, _, values, layout, tolerated, least = views
    for k in range(tolerated + 1):
        worst[k] = -1e9
    told = 0
    for view in range(rows.shape[0]):
        row = rows[view]
        u, v = project_point(row, point[0], point[1], point[2])
        pixels, tells = distance_in_view(values, layout, view, u, v)
        told += tells
        dx, dy, dz = point[0] - row[CENTRE_X], point[1] - row[CENTRE_Y], point[2] - row[CENTRE_Z]
        distance = pixels * metric[view] * np.sqrt(dx * dx + dy * dy + dz * dz)
        for k in range(tolerated + 1):
            if distance > worst[k]:
                worst[k], distance = distance, worst[k]
    return ranked(worst, tolerated, told, least)


@compiled
def ranked(worst: Floats, tolerated: int, told: int, least: int) -> float:
    """Return the one that decides of the ``tolerated`` + 1 largest distances, mm, of a point that ``told`` views see.

    A view that cannot tell has a negative distance: it never has a point outside.
    """
    if told < least:
        return float(max(worst[0], 1.0))
    return float(worst[min(tolerated, told - least)])


@compiled
def _deciders(views: FieldViews, points: Floats) -> Ints:
    """Return (n,) the views that decide at points (n, 3)."""
    rows, metric, _, values, layout, tolerated, least = views
    count = points.shape[0]
    worst = np.full((count, tolerated + 1), -1e9)
    which = np.zeros((count, tolerated + 1), np.int64)
    told, pixels = np.zeros(count, np.int64), np.empty((count, 2))
    for view in range(rows.shape[0]):
        row = rows[view]
        project_into(row, points, pixels)
        for n in range(count):
            away, tells = distance_in_view(values, layout, view, pixels[n, 0], pixels[n, 1])
            told[n] += tells
            dx, dy, dz = points[n, 0] - row[CENTRE_X], points[n, 1] - row[CENTRE_Y], points[n, 2] - row[CENTRE_Z]
            distance = away * metric[view] * np.sqrt(dx * dx + dy * dy + dz * dz)
            candidate = view
            for k in range(tolerated + 1):
                if distance > worst[n, k]:
                    worst[n, k], distance = distance, worst[n, k]
                    which[n, k], candidate = candidate, which[n, k]
    out = np.empty(count, np.int64)
    for n in range(count):
        out[n] = which[n, max(0, min(tolerated, told[n] - least))]
    return out


@compiled
def surface_normals(views: FieldViews, points: Floats, known: NDArray[np.int8], step: float) -> Floats:
    """Return (n, 3) unit normals of the field at surface points (n, 3): the gradient of the view that decides there.

    At an edge of the hull two views decide, one on each side; the gradient of either is clean, that of their
    maximum is not. NaN where the view's distance is flat.

    Args:
        known: (n,) the view that decides at a point, -1 where it is to be found.
        step: half the length of the differences, mm.
    """
    values, layout = views.values, views.layout
    out = np.empty(points.shape)
    found, at = _deciders(views, points[known < 0]), 0
    by_point, scratch = np.empty((2, 3)), np.empty((2, 16))
    for n in range(points.shape[0]):
        x, y, z = points[n, 0], points[n, 1], points[n, 2]
        view = int(known[n])
        if view < 0:
            view = found[at]
            at += 1
        u, v = project_point_with_jacobian(views.rows[view], x, y, z, by_point, scratch)
        inside = _reaches_inside(layout, view, u, v, step, by_point)
        length = 0.0
        for axis in range(3):
            # Within a cell the projection is as good as straight.
            du, dv = step * by_point[0, axis], step * by_point[1, axis]
            if inside:
                ahead = _between_pixels(values, layout, view, u + du, v + dv)
                behind = _between_pixels(values, layout, view, u - du, v - dv)
            else:
                ahead, _ = distance_in_view(values, layout, view, u + du, v + dv)
                behind, _ = distance_in_view(values, layout, view, u - du, v - dv)
            out[n, axis] = ahead - behind
            length += out[n, axis] ** 2
        length = np.sqrt(length)
        for axis in range(3):
            out[n, axis] /= length
    return out
