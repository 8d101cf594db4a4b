"""Lines of sight of one view, followed until they meet what the other views' silhouettes leave of space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import cv2
import numpy as np

from calibration.cameras.projection import project_point
from calibration.foundation.arrays import Bools, Bytes, Floats, Ints
from calibration.foundation.compiled import compiled
from capture.hull.bounds import Box
from capture.hull.distance import DistanceImage

__all__ = ["ALL_OTHERS", "Others", "PackedViews", "lines_that_meet", "pack_views"]


class PackedViews(NamedTuple):
    """Cameras (C, 36), their masks in one buffer, and (C, 8) start, width, height, x, y, frame and carving of each."""

    rows: Floats
    masks: Bytes
    layout: Ints


class Others(NamedTuple):
    """When a point belongs to the others' hull: how many may have it outside, how many must have it inside."""

    tolerated: int
    needed: int


ALL_OTHERS = Others(tolerated=0, needed=1)
"""No view has the point outside its silhouette, and at least one can tell."""


def pack_views(rows: Floats, masks: Sequence[Bools], images: Sequence[DistanceImage], larger: int = 1) -> PackedViews:
    """Return cameras (C, 36) with their masks, some pixels ``larger``, or smaller where that is negative."""
    room, change = max(larger, 1), cv2.dilate if larger > 0 else cv2.erode
    square = np.ones((2 * abs(larger) + 1, 2 * abs(larger) + 1), np.uint8)
    buffers, layout, start = [], np.zeros((len(masks), 8), dtype=np.int64), 0
    for index, (mask, image) in enumerate(zip(masks, images, strict=True)):
        height, width = mask.shape
        left, top, right, bottom = (int(side) for side in image.box)
        x0, y0 = max(left - room, 0), max(top - room, 0)
        x1, y1 = min(right + room + 1, width), min(bottom + room + 1, height)
        grown = np.asarray(change(mask[y0:y1, x0:x1].view(np.uint8), square))  # the image's border is no edge
        layout[index] = (start, x1 - x0, y1 - y0, x0, y0, width, height, int(image.carves_outside))
        buffers.append(grown.ravel())
        start += grown.size
    return PackedViews(rows, np.concatenate(buffers), layout)


def lines_that_meet(
    rays: tuple[Floats, Floats], own: int, views: PackedViews, box: Box, step: float, others: Others
) -> Bools:
    """Return (n,) whether each line of sight of view ``own`` meets the others' hull within the box.

    ``rays``: origins and directions (n, 3), mm; lines are followed in steps of ``step`` mm.
    """
    origins, directions = (np.ascontiguousarray(one) for one in rays)
    return _follow(origins, directions, own, views, box.low, box.high, step, others)


@compiled
def _belongs(x: float, y: float, z: float, own: int, views: PackedViews, others: Others) -> bool:
    """Return whether a point (mm) belongs to the hull of the views other than ``own``."""
    inside, outside = 0, 0
    for view in range(views.rows.shape[0]):
        if view == own:
            continue
        u, v = project_point(views.rows[view], x, y, z)
        place = views.layout[view]
        # A point behind a camera, or far outside its image, has no pixel.
        if not (u >= -0.5 and v >= -0.5 and u < place[5] - 0.5 and v < place[6] - 0.5):
            if place[7] and np.isfinite(u):
                outside += 1
        else:
            column, row = int(np.floor(u + 0.5)) - place[3], int(np.floor(v + 0.5)) - place[4]
            if (
                column < 0
                or row < 0
                or column >= place[1]
                or row >= place[2]
                or views.masks[place[0] + row * place[1] + column] == 0
            ):
                outside += 1
            else:
                inside += 1
        if outside > others.tolerated:
            return False
    return inside >= others.needed


@compiled
def _follow(
    origins: Floats,
    directions: Floats,
    own: int,
    views: PackedViews,
    low: Floats,
    high: Floats,
    step: float,
    others: Others,
) -> Bools:
    met = np.zeros(origins.shape[0], np.bool_)
    last = -1.0
    for n in range(origins.shape[0]):
        o, d = origins[n], directions[n]
        near, far = 0.0, np.inf
        for axis in range(3):
            if abs(d[axis]) > 1e-12:
                a, b = (low[axis] - o[axis]) / d[axis], (high[axis] - o[axis]) / d[axis]
                near, far = max(near, min(a, b)), min(far, max(a, b))
            elif o[axis] < low[axis] or o[axis] > high[axis]:
                far = -1.0
        # From where the neighbour met the hull, step by step to both sides.
        middle = last if near < last < far else 0.5 * (near + far)
        for turn in range(2 * (int(max(far - near, 0.0) / step) + 1)):
            depth = middle + step * ((turn + 1) // 2) * (1 - 2 * (turn % 2))
            if depth < near or depth > far:
                continue
            if _belongs(o[0] + depth * d[0], o[1] + depth * d[1], o[2] + depth * d[2], own, views, others):
                met[n] = True
                last = depth
                break
    return met
