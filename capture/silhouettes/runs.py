"""The connected parts of a mask as runs of pixels along its rows.

A mask is hundreds of thousands of pixels but a few hundred runs: parts are told apart, measured and drawn by their
runs, and no image of labels is made. What lies between some runs follows from them without a look at the pixels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Ints
from calibration.foundation.compiled import compiled

__all__ = ["Runs", "runs_of", "runs_where"]

#: Words of eight pixels that are looked at at a time.
_WORDS = 8


@dataclass(frozen=True, eq=False)
class Runs:
    """The runs of the set pixels of a mask, row by row from left to right.

    Attributes:
        shape: (H, W) of the mask.
        row: (n,) row of each run.
        start: (n,) its first column.
        stop: (n,) the column after its last.
        part: (n,) which connected part it belongs to; parts are numbered in the order of their first runs.
        parts: how many there are.
    """

    shape: tuple[int, int]
    row: Ints
    start: Ints
    stop: Ints
    part: Ints
    parts: int

    def areas(self) -> Ints:
        """Return (parts,) the pixels of each part."""
        return _areas(self.start, self.stop, self.part, self.parts)

    def counts(self, mask: Bools) -> Ints:
        """Return (parts,) how many pixels of each part are set in another mask (H, W)."""
        bytes_of = np.ascontiguousarray(mask).view(np.uint8)
        return self.counts_from(bytes_of, np.uint8(1))

    def counts_from(self, values: Bytes, low: np.uint8) -> Ints:
        """Return (parts,) how many pixels of each part have a value (H, W) of ``low`` at least."""
        return _counts(np.ascontiguousarray(values), low, self.row, self.start, self.stop, self.part, self.parts)

    def holding(self, mask: Bools) -> Bools:
        """Return (parts,) which parts have some pixel of another mask (H, W)."""
        return _holding(
            np.ascontiguousarray(mask).view(np.uint8), self.row, self.start, self.stop, self.part, self.parts
        )

    def rectangle(self, chosen: Bools) -> tuple[int, int, int, int]:
        """Return left, top, width and height of the runs chosen (n,), one at least."""
        left, top, right, bottom = _rectangle(self.row, self.start, self.stop, chosen)
        return left, top, right - left, bottom - top

    def drawn(self, chosen: Bools, out: Bools | None = None) -> Bools:
        """Return (H, W) the pixels of the runs chosen (n,), set in ``out`` where one is given."""
        image = np.zeros(self.shape, dtype=bool) if out is None else out
        _draw(self.row, self.start, self.stop, chosen, image)
        return image

    def of_parts(self, parts: Ints) -> Bools:
        """Return (n,) which runs belong to some parts (m,)."""
        chosen = np.zeros(self.parts, dtype=bool)
        chosen[parts] = True
        return np.asarray(chosen[self.part])

    def between(self, chosen: Bools) -> Runs:
        """Return the runs of what is not set in the rectangle of the runs chosen (n,), one at least.

        Their parts do not hang together in corners.
        """
        rectangle = _rectangle(self.row, self.start, self.stop, chosen)
        row, start, stop = _between(self.row, self.start, self.stop, chosen, rectangle)
        part, parts = _joined(row, start, stop, 0)
        return Runs(self.shape, row, start, stop, part, parts)

    def enclosed(self, rectangle: tuple[int, int, int, int]) -> Bools:
        """Return (parts,) which parts do not touch the rim of a rectangle (left, top, width, height)."""
        left, top, width, height = rectangle
        inner = np.ones(self.parts, dtype=bool)
        at_rim = (self.row == top) | (self.row == top + height - 1) | (self.start == left) | (self.stop == left + width)
        inner[self.part[at_rim]] = False
        return inner


def runs_of(mask: Bools, *, diagonal: bool, of: bool = True) -> Runs:
    """Return the runs of the pixels ``of`` one kind of a mask (H, W), set or not.

    ``diagonal``: whether pixels that meet in a corner hang together.
    """
    height, width = mask.shape
    row, start, stop = _found(np.ascontiguousarray(mask).view(np.uint8), int(of))
    part, parts = _joined(row, start, stop, int(diagonal))
    return Runs((height, width), row, start, stop, part, parts)


def runs_where(values: Bytes, low: np.uint8, own: Bools | None = None) -> Runs:
    """Return the runs of the pixels (H, W) whose value is ``low`` at least, or that are set in ``own``.

    Pixels that meet in a corner hang together.
    """
    height, width = values.shape
    values = np.ascontiguousarray(values)
    also = values if own is None else np.ascontiguousarray(own).view(np.uint8)
    row, start, stop = _found(_set_where(values, low, also, low if own is None else np.uint8(1)), 1)
    part, parts = _joined(row, start, stop, 1)
    return Runs((height, width), row, start, stop, part, parts)


@compiled
def _set_where(values: Bytes, low: np.uint8, own: Bytes, least: np.uint8) -> Bytes:
    """Return (H, W) 1 where a value is ``low`` at least, or the other one ``least``, else 0."""
    out = np.empty(values.shape, np.uint8)
    one, other, flat = values.ravel(), own.ravel(), out.ravel()
    for n in range(len(flat)):
        flat[n] = np.uint8((one[n] >= low) | (other[n] >= least))
    return out


@compiled
def _found(mask: Bytes, kind: int) -> tuple[Ints, Ints, Ints]:
    """Return row, first column and the column after the last of all runs of 0 or 1 in a mask (H, W)."""
    height, width = mask.shape
    turns = _turns(mask.ravel(), kind)
    # Rows lie one after the other: a run that goes on in the next row is several.
    most = len(turns) // 2 + height
    row, start, stop, count = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64), 0
    for k in range(0, len(turns), 2):
        first, last = turns[k], turns[k + 1]
        y = first // width
        while first < last:
            end = min(last, (y + 1) * width)
            row[count], start[count], stop[count] = y, first - y * width, end - y * width
            first, y, count = end, y + 1, count + 1
    return row[:count].copy(), start[:count].copy(), stop[:count].copy()


@compiled
def _turns(line: Bytes, kind: int) -> Ints:
    """Return where runs of one kind in a line (n,) of 0 and 1 start and stop in turn."""
    ones, places = np.uint64(0x0101010101010101), np.uint64(0x0001020304050607)
    turns, n = np.empty(4096, np.int64), 0
    same = np.uint64(0) if kind == 1 else ones  # eight pixels of what lies here
    side = 8 * _WORDS
    whole = len(line) // side * side
    words = line[:whole].view(np.uint64).reshape((-1, _WORDS))
    for block in range(words.shape[0]):
        differs = np.uint64(0)
        for k in range(_WORDS):
            differs |= words[block, k] ^ same
        if differs == np.uint64(0):
            continue  # no run starts or stops
        if n + side + 1 > len(turns):
            turns = np.concatenate((turns, np.empty_like(turns)))
        for k in range(_WORDS):
            left = words[block, k] ^ same
            while left != np.uint64(0):
                first = left & (~left + np.uint64(1))  # its lowest bit, that of the first pixel that differs
                turns[n] = block * side + 8 * k + np.int64((first * places) >> np.uint64(56))
                n, same = n + 1, same ^ ones
                left = (words[block, k] ^ same) & ~(first - np.uint64(1))
    if n + side + 1 > len(turns):
        turns = np.concatenate((turns, np.empty_like(turns)))
    for x in range(whole, len(line)):
        if (line[x] == kind) == (n % 2 == 0):
            turns[n] = x
            n += 1
    if n % 2 == 1:
        turns[n] = len(line)
        n += 1
    return turns[:n]


@compiled
def _joined(row: Ints, start: Ints, stop: Ints, reach: int) -> tuple[Ints, int]:
    """Return the part of each run and the number of parts: runs of neighbouring rows that meet within ``reach``."""
    count = len(row)
    parent = np.arange(count, dtype=np.int64)
    above = 0
    for n in range(count):
        while row[above] < row[n] - 1 or (row[above] == row[n] - 1 and stop[above] + reach <= start[n]):
            above += 1
        other = above
        while row[other] == row[n] - 1 and start[other] < stop[n] + reach:
            a, b = _root(parent, n), _root(parent, other)
            parent[max(a, b)] = min(a, b)
            other += 1
    parts = 0
    part = np.empty(count, np.int64)
    for n in range(count):
        root = _root(parent, n)
        if root == n:
            part[n] = parts
            parts += 1
        else:
            part[n] = part[root]  # the root of a part is its first run, which has its number by now
    return part, parts


@compiled
def _root(parent: Ints, n: int) -> int:
    while parent[n] != n:
        parent[n] = parent[parent[n]]
        n = parent[n]
    return n


@compiled
def _areas(start: Ints, stop: Ints, part: Ints, parts: int) -> Ints:
    out = np.zeros(parts, np.int64)
    for n in range(len(part)):
        out[part[n]] += stop[n] - start[n]
    return out


@compiled
def _counts(values: Bytes, low: np.uint8, row: Ints, start: Ints, stop: Ints, part: Ints, parts: int) -> Ints:
    out = np.zeros(parts, np.int64)
    for n in range(len(row)):
        line, count = values[row[n], start[n] : stop[n]], np.int32(0)
        for x in range(len(line)):
            count += np.int32(line[x] >= low)
        out[part[n]] += count
    return out


@compiled
def _holding(mask: Bytes, row: Ints, start: Ints, stop: Ints, part: Ints, parts: int) -> Bools:
    out = np.zeros(parts, np.bool_)
    for n in range(len(row)):
        if not out[part[n]]:
            line, some = mask[row[n], start[n] : stop[n]], np.uint8(0)
            for x in range(len(line)):
                some |= line[x]
            out[part[n]] = some != 0
    return out


@compiled
def _rectangle(row: Ints, start: Ints, stop: Ints, chosen: Bools) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom of the runs chosen, the last two excluded."""
    left, right, top, bottom = 1 << 62, -1, 1 << 62, -1
    for n in range(len(row)):
        if chosen[n]:
            left, right = min(left, int(start[n])), max(right, int(stop[n]))
            top, bottom = min(top, int(row[n])), max(bottom, int(row[n]) + 1)
    return left, top, right, bottom


@compiled
def _between(
    row: Ints, start: Ints, stop: Ints, chosen: Bools, rectangle: tuple[int, int, int, int]
) -> tuple[Ints, Ints, Ints]:
    """Return row, first column and the column after the last of what lies between the runs chosen in a rectangle."""
    left, top, right, bottom = rectangle
    most = len(row) + bottom - top
    out, count, n = np.empty((3, most), np.int64), 0, 0
    for y in range(top, bottom):
        at = left
        while n < len(row) and row[n] <= y:
            if row[n] == y and chosen[n]:
                if start[n] > at:
                    out[0, count], out[1, count], out[2, count] = y, at, start[n]
                    count += 1
                at = stop[n]
            n += 1
        if at < right:
            out[0, count], out[1, count], out[2, count] = y, at, right
            count += 1
    return out[0, :count].copy(), out[1, :count].copy(), out[2, :count].copy()


@compiled
def _draw(row: Ints, start: Ints, stop: Ints, chosen: Bools, out: Bools) -> None:
    for n in range(len(row)):
        if chosen[n]:
            out[row[n], start[n] : stop[n]] = True
