"""Which pixels of a silhouette the other views confirm, above the floor.

A line of sight through a pixel of the subject passes through the subject; there all other views have the subject, too.
A shadow or a mirror image on the floor fills a pixel whose line of sight meets nothing that the others show, or only
below the floor: a mirror image is a body under it. Such pixels are taken out. A line is followed for every second pixel
along both axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Floats
from capture.hull.bounds import Box
from capture.hull.distance import DistanceImage
from capture.hull.implicit import gather
from capture.hull.scales import view_scales
from capture.silhouettes.views.lines_of_sight import Others, lines_that_meet, pack_views
from capture.silhouettes.views.ray_agreement import outline_box

__all__ = ["Floor", "confirmed"]

#: Lines of sight are followed in steps of this many pixels, through every ``_STRIDE``-th pixel.
_STEP_PX = 2.0
_STRIDE = 2
#: Other views' silhouettes count as larger by this share of the image's longer side: calibration is not exact.
_SLACK = 0.002
#: With this many other views one of them may be wrong at a point.
_MANY = 4
#: A silhouette of which less is confirmed is left as it is: it, or the others, must be wrong altogether.
_LEAST = 0.3


@dataclass(frozen=True)
class Floor:
    """A horizontal plane that the subject does not go through.

    Attributes:
        height: z of the plane, world mm.
        up: +1 or -1, the side of the subject along z.
    """

    height: float
    up: int


def confirmed(masks: Sequence[Bools], rig: Rig, floor: Floor | None) -> list[Bools]:
    """Return the silhouettes (H, W) of one frame with what the other views do not confirm taken out."""
    images = [outline_box(mask) for mask in masks]
    evidence = gather(images, rig)
    used = np.flatnonzero(evidence.used)
    kept = list(masks)
    if len(used) < 3 or evidence.box is None:
        return kept
    rows = np.array([camera.packed() for camera in evidence.cameras])
    centres = np.array([camera.centre for camera in evidence.cameras])
    away = np.linalg.norm(centres - evidence.box.centre, axis=1)
    step = _STEP_PX * float(np.median(view_scales(rows, evidence.box).metric * away))
    low, high = evidence.box.low.copy(), evidence.box.high.copy()
    if floor is not None:
        side = low if floor.up > 0 else high
        side[2] = max(side[2], floor.height) if floor.up > 0 else min(side[2], floor.height)
    views = [masks[int(index)] for index in used]
    slack = max(1, round(_SLACK * max(max(mask.shape) for mask in views)))
    packed = pack_views(rows, views, evidence.images, slack)
    others = Others(tolerated=1 if len(used) - 1 >= _MANY else 0, needed=2)
    for place, index in enumerate(used):
        mask = views[place]
        pixels, shape, corner = _grid(mask, evidence.images[place])
        if len(pixels) == 0:
            continue
        met = lines_that_meet(evidence.cameras[place].rays(pixels), place, packed, Box(low, high), step, others)
        if met.mean() >= _LEAST:
            kept[int(index)] = _kept(mask, pixels, met, shape, corner)
    return kept


def _grid(mask: Bools, image: DistanceImage) -> tuple[Floats, tuple[int, int], tuple[int, int]]:
    """Return (n, 2) every second pixel of a silhouette, and shape and corner (row, column) of their grid."""
    left, top, right, bottom = (int(side) for side in image.box)
    here = mask[top : bottom + 1, left : right + 1].view(np.uint8)
    near = cv2.dilate(here, np.ones((3, 3), np.uint8))[::_STRIDE, ::_STRIDE]
    rows, columns = np.nonzero(near)
    pixels = np.stack([columns * _STRIDE + left, rows * _STRIDE + top], axis=1).astype(np.float64)
    return pixels, (near.shape[0], near.shape[1]), (top, left)


def _kept(mask: Bools, pixels: Floats, met: Bools, shape: tuple[int, int], corner: tuple[int, int]) -> Bools:
    """Return the mask where it is within two pixels of one of the grid that is confirmed: its edge is the image's."""
    top, left = corner
    grid = np.zeros(shape, dtype=np.uint8)
    rows, columns = ((pixels[:, ::-1] - corner) / _STRIDE).astype(int).T
    grid[rows, columns] = met
    room = np.repeat(np.repeat(cv2.dilate(grid, np.ones((3, 3), np.uint8)), _STRIDE, 0), _STRIDE, 1)
    out = np.zeros_like(mask)
    height, width = min(room.shape[0], mask.shape[0] - top), min(room.shape[1], mask.shape[1] - left)
    window = (slice(top, top + height), slice(left, left + width))
    out[window] = mask[window] & room[:height, :width].view(np.bool_)
    return out
