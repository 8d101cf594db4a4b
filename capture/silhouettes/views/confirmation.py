"""Which pixels of a silhouette the other views confirm, above the floor.

A line of sight through a pixel of the subject passes through the subject; there all other views have the subject, too.
A shadow or a mirror image on the floor fills a pixel whose line of sight meets nothing that the others show, or only
below the floor: a mirror image is a body under it. Such pixels are taken out. A line is followed for every eighth pixel
along both axes, and for more, up to every second, where those around it differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Bytes
from calibration.foundation.compiled import compiled
from capture.hull.bounds import Box
from capture.mask_boxes import box_of
from capture.silhouettes.views.lines_of_sight import Others, Scene, lines_that_meet

__all__ = ["SLACK", "Floor", "Sights", "confirmed", "larger_by", "may_be_wrong"]

#: Lines of sight are followed through every ``_STRIDE``-th pixel.
_STRIDE = 2
#: First every so many of these.
_COARSE = 4
#: Other views' silhouettes count as larger by this share of the image's longer side: calibration is not exact.
SLACK = 0.002
#: With this many other views one of them may be wrong at a point.
_MANY = 4
#: A silhouette of which less is confirmed is left as it is: it, or the others, must be wrong altogether.
_LEAST = 0.3
#: Unless this share of what the others have evidently differs elsewhere in its image: a door was opened, and is larger.
_ELSEWHERE = 0.5


@dataclass(frozen=True)
class Floor:
    """A horizontal plane that the subject does not go through.

    Attributes:
        height: z of the plane, world mm.
        up: +1 or -1, the side of the subject along z.
        clear: z of a plane above which lies most of the subject and no shade of the floor, world mm.
        marks: z of the marks on it that the empty scenes show, world mm; NaN if they show none.
    """

    height: float
    up: int
    clear: float = np.nan
    marks: float = np.nan


class Sights:
    """Lines of sight of the views of one frame, followed through the silhouettes (H, W) of all others.

    Attributes:
        used: (n,) the views that take part.
    """

    def __init__(self, masks: Sequence[Bools], scene: Scene, larger: int) -> None:
        """Pack silhouettes; others count as ``larger`` by so many pixels."""
        self.used = scene.used if scene.box is not None else np.zeros(0, dtype=np.int64)
        self._scene = scene
        if scene.box is not None:
            self._box, self._packed = scene.box, scene.packed(masks, larger)

    def seen(self, place: int, mask: Bools, heights: tuple[float, float], tolerated: int) -> tuple[Bools, float]:
        """Return a view's mask (H, W) where the others see something, every second pixel asked; and how much of it.

        Followed is between two ``heights`` of z, mm; so many views may be wrong at a point.
        """
        asked, corner = _grid(mask)
        count = np.count_nonzero(asked)
        if count == 0:
            return mask, 1.0
        low, high = self._box.low.copy(), self._box.high.copy()
        low[2], high[2] = max(low[2], min(heights)), min(high[2], max(heights))
        if low[2] >= high[2]:
            return np.zeros_like(mask), 0.0
        others, box, asking = Others(tolerated=tolerated, needed=2), Box(low, high), (asked, corner, _STRIDE)
        found = lines_that_meet(self._scene, place, asking, self._packed, box, others, _COARSE)
        return _kept(mask, found, corner), float(np.count_nonzero(found) / count)

    def of_view(self, index: int, mask: Bools, tolerated: int) -> Bools:
        """Return the mask (H, W) of a view of the rig where the others see something; none if it takes no part."""
        place = np.flatnonzero(self.used == index)
        return self.seen(int(place[0]), mask, (-np.inf, np.inf), tolerated)[0] if len(place) else np.zeros_like(mask)


def may_be_wrong(rig: Rig) -> int:
    """Return how many of the other views may be wrong at a point."""
    return 1 if len(rig) - 1 >= _MANY else 0


def larger_by(share: float, masks: Sequence[Bools], side: int | None) -> int:
    """Return a share of the images' longer side in pixels, 1 at least; ``side``: where masks are parts of images."""
    return max(1, round(share * (side or max(max(mask.shape) for mask in masks))))


def confirmed(
    masks: Sequence[Bools],
    rig: Rig,
    floor: Floor | None,
    side: int | None = None,
    scene: Scene | None = None,
    elsewhere: Callable[[int], Bools | None] | None = None,
) -> list[Bools]:
    """Return the silhouettes (H, W) of one frame with what the other views do not confirm taken out.

    ``side``: longer side of the images, px, where masks and rig are of parts of them. ``scene``: of silhouettes that
    hold these; None: found here. ``elsewhere``: says what else (H, W) evidently differs in a view, of which
    the subject is if nothing of its silhouette is confirmed.
    """
    heights = (-np.inf, np.inf) if floor is None else (floor.height, floor.up * np.inf)
    sights = Sights(masks, scene or Scene.of(masks, rig), larger_by(SLACK, masks, side))
    kept = list(masks)
    if len(sights.used) < 3:
        return kept
    for place, index in enumerate(sights.used):
        mask, share = sights.seen(place, masks[int(index)], heights, may_be_wrong(rig))
        other = elsewhere(int(index)) if share < _LEAST and elsewhere is not None else None
        if share >= _LEAST:
            kept[int(index)] = mask
        elif other is not None and other.any():
            there = [other if view == index else one for view, one in enumerate(masks)]
            kept[int(index)] = _as_others_have(int(index), there, rig, heights, side)
            if not kept[int(index)].any():
                kept[int(index)] = masks[int(index)]
    return kept


def _as_others_have(
    index: int, masks: Sequence[Bools], rig: Rig, heights: tuple[float, float], side: int | None
) -> Bools:
    """Return the part of a view's mask (H, W) where all others have the subject; nothing if it has too little of it."""
    sights = Sights(masks, Scene.of(masks, rig), larger_by(SLACK, masks, side))
    place = np.flatnonzero(sights.used == index)
    if len(place) == 0 or len(sights.used) < 3:
        return np.zeros_like(masks[index])
    whole = sights.seen(int(place[0]), np.ones_like(masks[index]), heights, 0)[0]
    found = masks[index] & whole
    return found if np.count_nonzero(found) > _ELSEWHERE * np.count_nonzero(whole) else np.zeros_like(found)


def _grid(mask: Bools) -> tuple[Bools, tuple[int, int]]:
    """Return (h, w) every second pixel of a silhouette and its rim, and the corner (row, column) of their grid."""
    left, top, width, height = box_of(mask)
    grid = _thinned(np.ascontiguousarray(mask).view(np.uint8), (top, left, height, width))
    return grid.view(np.bool_), (top, left)


@compiled
def _thinned(mask: Bytes, place: tuple[int, int, int, int]) -> Bytes:
    """Return every second pixel of a part of a mask (row, column, height, width) that has some of it within a pixel."""
    top, left, height, width = place
    out = np.empty((-(-height // _STRIDE), -(-width // _STRIDE)), np.uint8)
    line = np.zeros(width + 2, np.uint8)
    for row in range(out.shape[0]):
        y = top + _STRIDE * row
        own = mask[y, left : left + width]
        before = mask[max(y - 1, top), left : left + width]
        after = mask[min(y + 1, top + height - 1), left : left + width]
        near = line[1 : 1 + width]
        for x in range(width):
            near[x] = own[x] | before[x] | after[x]
        kept = out[row]
        for x in range(len(kept)):
            kept[x] = line[_STRIDE * x] | line[_STRIDE * x + 1] | line[_STRIDE * x + 2]
    return out


def _kept(mask: Bools, met: Bools, corner: tuple[int, int]) -> Bools:
    """Return the mask where it is within two pixels of one of the grid that is confirmed: its edge is the image's."""
    out = np.zeros(mask.shape, np.uint8)
    _fill(np.ascontiguousarray(mask).view(np.uint8), met.view(np.uint8), corner, out)
    return out.view(np.bool_)


@compiled
def _fill(mask: Bytes, met: Bytes, corner: tuple[int, int], out: Bytes) -> None:
    """Copy a mask (H, W) where a grid of every second pixel from a corner on is set, or one of the eight around."""
    top, left = corner
    rows, columns = met.shape
    height, width = min(mask.shape[0] - top, _STRIDE * rows), min(mask.shape[1] - left, _STRIDE * columns)
    line, near = np.zeros(columns + 2, np.uint8), np.empty(_STRIDE * columns, np.uint8)
    middle = line[1 : columns + 1]
    for row in range(rows):
        before, own, after = met[max(row - 1, 0)], met[row], met[min(row + 1, rows - 1)]
        for x in range(columns):
            middle[x] = before[x] | own[x] | after[x]
        for x in range(columns):
            near[_STRIDE * x] = near[_STRIDE * x + 1] = line[x] | line[x + 1] | line[x + 2]
        for y in range(_STRIDE * row, min(_STRIDE * row + _STRIDE, height)):
            shown, kept = mask[top + y, left : left + width], out[top + y, left : left + width]
            for x in range(width):
                kept[x] = shown[x] & near[x]
