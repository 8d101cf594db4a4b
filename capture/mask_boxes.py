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
    line, columns = np.empty(right - left, np.uint8), np.zeros(right - left, np.uint8)
    first, last = top, bottom - 1
    while first <= last and not _any(_row(mask, without, first, place, line)):
        first += 1
    if first > last:
        return 0, 0, 0, 0
    while not _any(_row(mask, without, last, place, line)):
        last -= 1
    for y in range(first, last + 1):
        row = _row(mask, without, y, place, line)
        for x in range(len(columns)):
            columns[x] |= row[x]
    begin, end = 0, len(columns) - 1
    while columns[begin] == 0:
        begin += 1
    while columns[end] == 0:
        end -= 1
    return left + begin, first, end + 1 - begin, last + 1 - first


@compiled
def _row(mask: Bytes, without: Bytes, y: int, place: tuple[int, int, int, int], line: Bytes) -> Bytes:
    """Return what counts of a row of the place: the mask's own, or what ``line`` is filled with."""
    row = mask[y, place[2] : place[3]]
    if without.size == 0:
        return row
    other = without[y, place[2] : place[3]]
    for x in range(len(line)):
        line[x] = row[x] & ~other[x]
    return line


@compiled
def _any(line: Bytes) -> bool:
    some = np.uint8(0)
    for x in range(len(line)):
        some |= line[x]
    return bool(some != 0)


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
