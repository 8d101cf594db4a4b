"""How right a silhouette is by what the image and the other views say, both ways.

One way: how much of the silhouette differs evidently from the background. The other: of what differs evidently, cannot
be shade, and is confirmed by the other views above the floor, how much the silhouette has. With the evident part e of
a silhouette m and what it misses q the agreement is

    e / (m + q)

the overlap (IoU) of the silhouette with all that is evident. Silhouettes that fill the image agree with each other, but
not with this; one that lacks a limb lacks what is evident and confirmed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Bytes, Floats
from calibration.foundation.compiled import compiled
from capture.silhouettes.views.confirmation import SLACK, Floor, Sights, larger_by, may_be_wrong
from capture.silhouettes.views.lines_of_sight import Scene

__all__ = ["two_sided"]

#: Pixels that lie next to a silhouette.
_NEXT_PX = 2


def two_sided(
    masks: Sequence[Bools],
    evident: Sequence[tuple[Bools, Bools] | None],
    rig: Rig,
    floor: Floor | None,
    side: int | None = None,
    scene: Scene | None = None,
) -> Floats:
    """Return (C,) the agreement of silhouettes (H, W) of one frame; NaN where nothing can be said.

    ``evident``: (H, W) what differs beyond doubt in a view, and what of it cannot be shade; None where not known.
    ``side``: longer side of the images, px, where masks and rig are of parts of them. ``scene``: of silhouettes that
    hold these; None: found here.
    """
    scores = np.full(len(masks), np.nan)
    heights = (-np.inf, np.inf) if floor is None else (floor.height, floor.up * np.inf)
    sights = Sights(masks, scene or Scene.of(masks, rig), larger_by(SLACK, masks, side))
    if len(sights.used) < 3:
        return scores
    for place, index in enumerate(int(one) for one in sights.used):
        known, mask = evident[index], masks[index]
        if known is None:
            continue
        missing = known[1] & ~mask
        # Right next to a silhouette the others see what they see of it; they are asked if there is more.
        if _has_more(missing.view(np.uint8), np.ascontiguousarray(mask).view(np.uint8)):
            missing = sights.seen(place, missing, heights, may_be_wrong(rig))[0]
        missed = np.count_nonzero(missing)
        area = np.count_nonzero(mask)
        if area + missed > 0:  # the others may have taken all of it
            scores[index] = (area if known[0] is mask else np.count_nonzero(mask & known[0])) / (area + missed)
    return scores


@compiled
def _has_more(missing: Bytes, mask: Bytes) -> bool:
    """Return whether something that is missing (H, W) does not lie right next to a silhouette (H, W)."""
    height, width = mask.shape
    line = np.zeros(width + 2 * _NEXT_PX, np.uint8)
    near = line[_NEXT_PX : _NEXT_PX + width]
    for y in range(height):
        row, some = missing[y], np.uint8(0)
        for x in range(width):
            some |= row[x]
        if some == 0:
            continue
        # All of a row is asked at a time, and as many columns to both sides: these loops take many pixels at once.
        near[:] = np.uint8(0)
        for v in range(max(0, y - _NEXT_PX), min(height, y + _NEXT_PX + 1)):
            beside = mask[v]
            for x in range(width):
                near[x] |= beside[x]
        some = np.uint8(0)
        for x in range(width):
            around = np.uint8(0)
            for step in range(2 * _NEXT_PX + 1):
                around |= line[x + step]
            some |= row[x] & ~around
        if some != 0:
            return True
    return False
