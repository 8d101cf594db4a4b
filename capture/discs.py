"""Masks grown by discs: the cost goes with the radius, not with its square."""

from __future__ import annotations

from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Bools, Bytes, Ints
from calibration.foundation.compiled import compiled

__all__ = ["disc", "grown"]

Words: TypeAlias = NDArray[np.int16]

#: Farther than a disc may reach.
_FAR = 32_000


def disc(radius: int) -> Bytes:
    """Return a disc for growing and shrinking masks by ``radius`` px."""
    return np.asarray(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1)))


def grown(mask: Bools, radius: int) -> Bools:
    """Return a mask (h, w) with all pixels that a disc around one of its own covers, as OpenCV's dilate has it."""
    # Each row of a disc reaches as far to the left as to the right.
    reach = np.asarray((np.count_nonzero(disc(radius), axis=1) - 1) // 2, np.int64)
    return _grow(np.ascontiguousarray(mask).view(np.uint8), reach).view(np.bool_)


@compiled
def _grow(mask: Bytes, reach: Ints) -> Bytes:
    """Return a mask (h, w) of 0 and 1 grown by a shape whose rows, the middle one at its centre, reach so far aside."""
    height, width = mask.shape
    radius = len(reach) // 2
    away, some = np.empty((height, width), np.int16), np.zeros(height, np.bool_)
    for y in range(height):
        own, found = mask[y], np.uint8(0)
        for x in range(width):
            found |= own[x]
        some[y] = found != 0
        if some[y]:
            _away_in_row(own, away[y])
    out = np.zeros((height, width), np.uint8)
    for y in range(height):
        kept = out[y]
        for row in range(max(0, y - radius), min(height, y + radius + 1)):
            if some[row]:
                near, most = away[row], np.int16(reach[row - y + radius])
                for x in range(width):
                    kept[x] |= np.uint8(near[x] <= most)
    return out


@compiled
def _away_in_row(row: Bytes, away: Words) -> None:
    """Fill how far each pixel of a row is from one that is set, `_FAR` at most."""
    distance = _FAR
    for x in range(len(row)):
        distance = 0 if row[x] != 0 else min(distance + 1, _FAR)
        away[x] = distance
    distance = _FAR
    for x in range(len(row) - 1, -1, -1):
        distance = 0 if row[x] != 0 else min(distance + 1, _FAR)
        away[x] = min(distance, int(away[x]))
