"""Where a mask is, and which pixels it holds: asked many times a frame."""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Ints
from calibration.foundation.compiled import compiled

__all__ = ["box_of", "pixels_of"]


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
    # All rows in one line, by numbers without a sign: a slice of an array for each row would cost more than the row.
    own, other, side, count = mask.ravel(), without.ravel(), mask.shape[1], np.uintp(right - left)
    line, columns = np.empty(right - left, np.uint8), np.zeros(right - left, np.uint8)
    first, last = bottom, top - 1
    for y in range(top, bottom):
        at, some = np.uintp(y * side + left), np.uint8(0)
        if other.size == 0:
            for x in range(count):
                some |= own[at + x]
        else:
            for x in range(count):
                line[x] = own[at + x] & ~other[at + x]
                some |= line[x]
        if some == 0:
            continue
        first, last = min(first, y), y
        if other.size == 0:
            for x in range(count):
                columns[x] |= own[at + x]
        else:
            for x in range(count):
                columns[x] |= line[x]
    if last < first:
        return 0, 0, 0, 0
    begin, end = 0, len(columns) - 1
    while columns[begin] == 0:
        begin += 1
    while columns[end] == 0:
        end -= 1
    return left + begin, first, end + 1 - begin, last + 1 - first


def pixels_of(mask: Bools, *, without: Bools) -> Ints:
    """Return (2, n) rows and columns of what a mask (H, W) holds ``without`` another (H, W), row by row."""
    return _pixels(np.ascontiguousarray(mask).view(np.uint8), np.ascontiguousarray(without).view(np.uint8))


@compiled
def _pixels(mask: Bytes, without: Bytes) -> Ints:
    height, width = mask.shape
    line = np.zeros(-(-width // 8) * 8, np.uint8)
    eights = line.view(np.uint64)
    out, count = np.empty((2, 1024), np.int64), 0
    for y in range(height):
        row, other = mask[y], without[y]
        for x in range(width):
            line[x] = row[x] & ~other[x]
        if count + width > out.shape[1]:
            larger = np.empty((2, 2 * out.shape[1] + width), np.int64)
            larger[:, :count] = out[:, :count]
            out = larger
        for eighth in range(len(eights)):
            if eights[eighth] == np.uint64(0):
                continue  # eight pixels at a time: few are set
            for x in range(8 * eighth, min(8 * eighth + 8, width)):
                if line[x] != 0:
                    out[0, count], out[1, count] = y, x
                    count += 1
    return out[:, :count].copy()
