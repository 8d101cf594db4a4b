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

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Floats
from capture.hull.distance import BORDER_PX, DistanceImage, Extent
from capture.hull.implicit import gather
from capture.hull.scales import view_scales
from capture.silhouettes.views.lines_of_sight import ALL_OTHERS, lines_that_meet, pack_views

__all__ = ["outline_box", "ray_agreement"]

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
    views = pack_views(rows, [masks[int(index)] for index in used], evidence.images)
    for place, index in enumerate(used):
        pixels = _chosen_pixels(masks[int(index)], evidence.images[place])
        met = lines_that_meet(evidence.cameras[place].rays(pixels), place, views, evidence.box, step, ALL_OTHERS)
        scores[index] = np.count_nonzero(met) / len(pixels)
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
