"""Which pixels of a silhouette the other views confirm, above the floor.

A line of sight through a pixel of the subject passes through the subject; there all other views have the subject, too.
A shadow or a mirror image on the floor fills a pixel whose line of sight meets nothing that the others show, or only
below the floor: a mirror image is a body under it. Such pixels are taken out. Lines are followed as for the agreement
(`capture.silhouettes.views.ray_agreement`), every second pixel along both axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from calibration.cameras.projection import project_point
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Bytes, Floats, Ints
from calibration.foundation.compiled import compiled
from capture.hull.distance import DistanceImage
from capture.hull.implicit import gather
from capture.hull.scales import view_scales
from capture.silhouettes.views.ray_agreement import outline_box, packed_masks

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
    grown, layout = packed_masks(views, evidence.images, slack)
    tolerated = 1 if len(used) - 1 >= _MANY else 0
    for place, index in enumerate(used):
        mask = views[place]
        pixels, shape, corner = _grid(mask, evidence.images[place])
        if len(pixels) == 0:
            continue
        origins, directions = evidence.cameras[place].rays(pixels)
        met = np.zeros(len(pixels), dtype=bool)
        sight = (np.ascontiguousarray(origins), np.ascontiguousarray(directions))
        _follow(*sight, place, rows, grown, layout, low, high, step, tolerated, met)
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


@compiled
def _in_most(x: float, y: float, z: float, own: int, rows: Floats, masks: Bytes, layout: Ints, tolerated: int) -> bool:
    """Return whether at most ``tolerated`` other views have a point (mm) outside, and two at least inside."""
    inside, outside = 0, 0
    for view in range(rows.shape[0]):
        if view == own:
            continue
        u, v = project_point(rows[view], x, y, z)
        place = layout[view]
        # A point behind a camera, or far outside its image, has no pixel.
        if not (u > -0.5 and v > -0.5 and u < place[5] - 0.5 and v < place[6] - 0.5):
            if place[7] and np.isfinite(u):
                outside += 1
        else:
            column, row = int(np.floor(u + 0.5)) - place[3], int(np.floor(v + 0.5)) - place[4]
            if (
                column < 0
                or row < 0
                or column >= place[1]
                or row >= place[2]
                or masks[place[0] + row * place[1] + column] == 0
            ):
                outside += 1
            else:
                inside += 1
        if outside > tolerated:
            return False
    return inside >= 2


# Eleven parameters: a kernel along one line of sight, on arrays that are packed once per frame.
@compiled
def _follow(
    origins: Floats,
    directions: Floats,
    own: int,
    rows: Floats,
    masks: Bytes,
    layout: Ints,
    low: Floats,
    high: Floats,
    step: float,
    tolerated: int,
    met: Bools,
) -> None:
    """Set for each line of sight (n, 3) of view ``own`` whether it meets the others' hull within the box."""
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
            if _in_most(
                o[0] + depth * d[0], o[1] + depth * d[1], o[2] + depth * d[2], own, rows, masks, layout, tolerated
            ):
                met[n] = True
                last = depth
                break
