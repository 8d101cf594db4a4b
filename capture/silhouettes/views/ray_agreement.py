"""How much of each silhouette the other views confirm, without building a surface.

The hull of all views, drawn into one of them, never leaves that view's silhouette, so their overlap (IoU) is the share
of the silhouette's pixels whose lines of sight meet the hull. A line of sight is followed through the box of the
subject in steps of `_STEP_PX` image pixels; the depth at which its neighbour met the hull is tried first, which
settles nearly all of them at once. Silhouettes count as one pixel larger here: a line of sight along the rim touches
the hull in one point only.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from calibration.cameras.projection import project_point
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Bytes, Floats, Ints
from calibration.foundation.compiled import compiled
from capture.hull.distance import BORDER_PX, DistanceImage, Extent
from capture.hull.implicit import gather
from capture.hull.scales import view_scales

__all__ = ["outline_box", "packed_masks", "ray_agreement"]

_STEP_PX = 2.0
#: Lines of sight per view at most.
_RAYS = 500


def outline_box(mask: Bools) -> DistanceImage:
    """Return where a silhouette is and what it says, without distances."""
    height, width = mask.shape
    x, y, w, h = cv2.boundingRect(mask.view(np.uint8))
    nothing = np.zeros((2, 2), dtype=np.float32)
    if w == 0:
        return DistanceImage(nothing, (0, 0), (np.nan,) * 4, Extent.EMPTY, False)
    box = (float(x), float(y), float(x + w - 1), float(y + h - 1))
    if (w, h) == (width, height) and mask.all():
        return DistanceImage(nothing, (0, 0), box, Extent.FULL, False)
    near = min(x, y, width - x - w, height - y - h) <= BORDER_PX
    return DistanceImage(nothing, (x, y), box, Extent.PARTIAL if near else Extent.COMPLETE, not near)


def ray_agreement(masks: Sequence[Bools], rig: Rig) -> Floats:
    """Return (C,) the IoU of each mask (H, W) with the hull of all; NaN where nothing can be said, 0 for no hull."""
    images = [outline_box(mask) for mask in masks]
    scores = np.full(len(masks), np.nan)
    evidence = gather(images, rig)
    used = np.flatnonzero(evidence.used)
    if len(used) < 2:
        return scores
    if evidence.box is None:
        scores[used] = 0.0
        return scores
    rows = np.array([camera.packed() for camera in evidence.cameras])
    centres = np.array([camera.centre for camera in evidence.cameras])
    away = np.linalg.norm(centres - evidence.box.centre, axis=1)
    step = _STEP_PX * float(np.median(view_scales(rows, evidence.box).metric * away))
    grown, layout = packed_masks([masks[int(index)] for index in used], evidence.images)
    for place, index in enumerate(used):
        pixels = _chosen_pixels(masks[int(index)], evidence.images[place])
        origins, directions = evidence.cameras[place].rays(pixels)
        met = _meets(
            np.ascontiguousarray(origins),
            np.ascontiguousarray(directions),
            place,
            rows,
            grown,
            layout,
            evidence.box.low,
            evidence.box.high,
            step,
        )
        scores[index] = met / len(pixels)
    return scores


def _chosen_pixels(mask: Bools, image: DistanceImage) -> Floats:
    """Return (n, 2) pixels of a silhouette on a regular grid, row by row."""
    left, top, right, bottom = (int(side) for side in image.box)
    here = mask[top : bottom + 1, left : right + 1]
    stride = max(1, int(np.ceil(np.sqrt(np.count_nonzero(here) / _RAYS))))
    rows, columns = np.nonzero(here[stride // 2 :: stride, stride // 2 :: stride])
    if len(rows) == 0:
        rows, columns = np.nonzero(here)
        stride = 1
    first = stride // 2
    return np.stack([columns * stride + first + left, rows * stride + first + top], axis=1).astype(np.float64)


def packed_masks(masks: Sequence[Bools], images: Sequence[DistanceImage], larger: int = 1) -> tuple[Bytes, Ints]:
    """Return the masks some pixels larger in one buffer, and (C, 8) start, width, height, x, y, frame and carving."""
    parts, layout, start = [], np.zeros((len(masks), 8), dtype=np.int64), 0
    for index, (mask, image) in enumerate(zip(masks, images, strict=True)):
        height, width = mask.shape
        left, top, right, bottom = (int(side) for side in image.box)
        x0, y0 = max(left - larger, 0), max(top - larger, 0)
        x1, y1 = min(right + larger + 1, width), min(bottom + larger + 1, height)
        part = cv2.dilate(mask[y0:y1, x0:x1].view(np.uint8), np.ones((2 * larger + 1, 2 * larger + 1), np.uint8))
        layout[index] = (start, x1 - x0, y1 - y0, x0, y0, width, height, int(image.carves_outside))
        parts.append(part.ravel())
        start += part.size
    return np.concatenate(parts), layout


@compiled
def _in_all(x: float, y: float, z: float, own: int, rows: Floats, masks: Bytes, layout: Ints) -> bool:
    """Return whether no other view has a point (mm) outside its silhouette, and at least one can tell."""
    told = False
    for view in range(rows.shape[0]):
        if view == own:
            continue
        u, v = project_point(rows[view], x, y, z)
        if not np.isfinite(u):
            continue
        column, row = int(np.floor(u + 0.5)), int(np.floor(v + 0.5))
        place = layout[view]
        if column < 0 or row < 0 or column >= place[5] or row >= place[6]:
            if place[7]:
                return False
            continue
        column -= place[3]
        row -= place[4]
        if column < 0 or row < 0 or column >= place[1] or row >= place[2]:
            return False
        if masks[place[0] + row * place[1] + column] == 0:
            return False
        told = True
    return told


@compiled
def _meets(
    origins: Floats,
    directions: Floats,
    own: int,
    rows: Floats,
    masks: Bytes,
    layout: Ints,
    low: Floats,
    high: Floats,
    step: float,
) -> int:
    """Return how many lines of sight (n, 3) of view ``own`` meet the hull within the box."""
    met = 0
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
            if _in_all(o[0] + depth * d[0], o[1] + depth * d[1], o[2] + depth * d[2], own, rows, masks, layout):
                met += 1
                last = depth
                break
    return met
