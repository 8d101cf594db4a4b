"""Where a mask is: asked many times a frame."""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Bools, Bytes
from calibration.foundation.compiled import compiled

__all__ = ["box_of"]


def box_of(
    mask: Bools, window: tuple[slice, slice] | None = None, without: Bools | None = None
) -> tuple[int, int, int, int]:
    """Return left, top, width and height of what a mask (H, W) holds; four zeros if it is empty.

    ``window``: rows and columns that hold all of it. ``without``: (H, W) pixels that do not count.
    """
    height, width = mask.shape
    place = (0, height, 0, width)
    if window is not None:
        place = (window[0].start, window[0].stop, window[1].start, window[1].stop)
    other = _NONE if without is None else np.ascontiguousarray(without).view(np.uint8)
    return _box(np.ascontiguousarray(mask).view(np.uint8), other, place)


_NONE = np.zeros((0, 0), np.uint8)


@compiled
def _box(mask: Bytes, without: Bytes, place: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    top, bottom, left, right = place
    columns = np.zeros(right - left, np.uint8)
    line = np.empty(right - left, np.uint8)
    first, last = -1, -1
    for y in range(top, bottom):
        row, some = mask[y, left:right], np.uint8(0)
        if without.size > 0:
            other = without[y, left:right]
            for x in range(len(line)):
                line[x] = row[x] & ~other[x]
            row = line
        for x in range(len(row)):
            some |= row[x]
        if some != 0:
            first, last = y if first < 0 else first, y
            for x in range(len(row)):
                columns[x] |= row[x]
    if first < 0:
        return 0, 0, 0, 0
    begin, end = 0, len(columns) - 1
    while columns[begin] == 0:
        begin += 1
    while columns[end] == 0:
        end -= 1
    return left + begin, first, end + 1 - begin, last + 1 - first
