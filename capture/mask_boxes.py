"""Where a mask is: asked many times a frame."""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Bools, Bytes
from calibration.foundation.compiled import compiled

__all__ = ["box_of"]


def box_of(mask: Bools) -> tuple[int, int, int, int]:
    """Return left, top, width and height of what a mask (H, W) holds; four zeros if it is empty."""
    return _box(np.ascontiguousarray(mask).view(np.uint8))


@compiled
def _box(mask: Bytes) -> tuple[int, int, int, int]:
    height, width = mask.shape
    columns = np.zeros(width, np.uint8)
    first, last = -1, -1
    for y in range(height):
        row, some = mask[y], np.uint8(0)
        for x in range(width):
            some |= row[x]
        if some != 0:
            first, last = y if first < 0 else first, y
            for x in range(width):
                columns[x] |= row[x]
    if first < 0:
        return 0, 0, 0, 0
    left, right = 0, width - 1
    while columns[left] == 0:
        left += 1
    while columns[right] == 0:
        right -= 1
    return left, first, right + 1 - left, last + 1 - first
