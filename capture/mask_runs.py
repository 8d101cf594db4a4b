"""The connected parts of a mask as runs of pixels along its rows.

A mask is hundreds of thousands of pixels but a few hundred runs: parts are told apart, measured and drawn by their
runs, and no image of labels is made. What lies between some runs follows from them without a look at the pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Ints
from calibration.foundation.compiled import compiled

__all__ = ["Runs", "runs_of", "runs_where"]

Window: TypeAlias = tuple[slice, slice]
#: Words of eight pixels that are looked at at a time.
_WORDS = 8


@dataclass(frozen=True, eq=False)
class Runs:
    """The runs of the set pixels of a mask, row by row from left to right.

    Attributes:
        shape: (H, W) of the mask.
        table: (4, n) row of each run, its first column, the column after its last, and which connected part it belongs
            to; parts are numbered in the order of their first runs.
        areas: (parts,) the pixels of each part.
    """

    shape: tuple[int, int]
    table: Ints
    areas: Ints

    def counts(self, mask: Bools) -> Ints:
        """Return (parts,) how many pixels of each part are set in another mask (H, W)."""
        bytes_of = np.ascontiguousarray(mask).view(np.uint8)
        return self.counts_from(bytes_of, np.uint8(1))

    def counts_from(self, values: Bytes, low: np.uint8) -> Ints:
        """Return (parts,) how many pixels of each part have a value (H, W) of ``low`` at least."""
        return _counts(np.ascontiguousarray(values), low, self.table, len(self.areas))

    def holding(self, mask: Bools, corner: tuple[int, int] = (0, 0)) -> Bools:
        """Return (parts,) which parts have some pixel of another mask (H, W).

        ``corner``: row and column in that mask at which the runs' own begins, if it is of a larger image.
        """
        return _holding(np.ascontiguousarray(mask).view(np.uint8), corner, self.table, len(self.areas))

    def all(self) -> Bools:
        """Return (parts,) the choice of all parts."""
        return np.ones(len(self.areas), dtype=bool)

    def rectangle(self, chosen: Bools) -> tuple[int, int, int, int]:
        """Return left, top, width and height of the parts chosen (parts,), one at least."""
        left, top, right, bottom = _rectangle(self.table, chosen)
        return left, top, right - left, bottom - top

    def drawn(self, chosen: Bools, out: Bools | None = None) -> Bools:
        """Return (H, W) the pixels of the parts chosen (parts,), set in ``out`` where one is given."""
        image = np.zeros(self.shape, dtype=bool) if out is None else out
        _draw(self.table, chosen, image)
        return image

    def only(self, chosen: Bools, shape: tuple[int, int], corner: tuple[int, int]) -> Runs:
        """Return the runs of the parts chosen (parts,), counted in a mask of that shape.

        ``corner``: row and column in it at which the runs' own begins; all of them must lie inside.
        """
        table, areas = _only(self.table, self.areas, chosen, corner)
        return Runs(shape, table, areas)

    def between(self, chosen: Bools) -> tuple[Runs, Bools]:
        """Return the runs of what is not set in the rectangle of the parts chosen (parts,), one at least.

        Their parts do not hang together in corners. Also (parts,) which of them do not touch the rectangle's rim.
        """
        table, areas, inner = _between(self.table, chosen)
        return Runs(self.shape, table, areas), inner


_NOTHING = np.zeros((0, 0), np.uint8)


def runs_of(mask: Bools, *, diagonal: bool) -> Runs:
    """Return the runs of the set pixels of a mask (H, W); ``diagonal``: pixels that meet in a corner hang together."""
    height, width = mask.shape
    table, areas = _found(np.ascontiguousarray(mask).view(np.uint8), int(diagonal))
    return Runs((height, width), table, areas)


def runs_where(values: Bytes, low: np.uint8, own: Bools | None = None, window: Window | None = None) -> Runs:
    """Return the runs of the pixels (H, W) whose value is ``low`` at least, or that are set in ``own``.

    Pixels that meet in a corner hang together. ``window``: rows and columns alone that are looked at, and counted from.
    """
    height, width = values.shape
    place = (0, height, 0, width)
    if window is not None:
        place = (window[0].start, window[0].stop, window[1].start, window[1].stop)
    also = _NOTHING if own is None else np.ascontiguousarray(own).view(np.uint8)
    table, areas = _found_where(np.ascontiguousarray(values), low, also, place)
    return Runs((place[1] - place[0], place[3] - place[2]), table, areas)


@compiled
def _found_where(values: Bytes, low: np.uint8, own: Bytes, place: tuple[int, int, int, int]) -> tuple[Ints, Ints]:
    """Return runs and areas of parts of what is ``low`` at least or set in ``own``, if that has a size."""
    top, bottom, left, right = place
    mask = np.empty((bottom - top, right - left), np.uint8)
    for y in range(bottom - top):
        one, out = values[top + y, left:right], mask[y]
        if own.size == 0:
            for x in range(len(out)):
                out[x] = np.uint8(one[x] >= low)
        else:
            other = own[top + y, left:right]
            for x in range(len(out)):
                out[x] = np.uint8(one[x] >= low) | other[x]
    return _found(mask, 1)


@compiled
def _found(mask: Bytes, reach: int) -> tuple[Ints, Ints]:
    """Return the runs (4, n) of a mask (H, W) of 0 and 1 and the areas of their parts, as `Runs` has them."""
    height, width = mask.shape
    turns = _turns(mask.ravel())
    # Rows lie one after the other: a run that goes on in the next row is several.
    table, count = np.empty((4, len(turns) // 2 + height), np.int64), 0
    for k in range(0, len(turns), 2):
        first, last = turns[k], turns[k + 1]
        y = first // width
        while first < last:
            end = min(last, (y + 1) * width)
            table[0, count], table[1, count], table[2, count] = y, first - y * width, end - y * width
            first, y, count = end, y + 1, count + 1
    return _joined(table, count, reach)


@compiled
def _turns(line: Bytes) -> Ints:
    """Return where runs of 1 in a line (n,) of 0 and 1 start and stop in turn."""
    ones, places = np.uint64(0x0101010101010101), np.uint64(0x0001020304050607)
    turns, n = np.empty(4096, np.int64), 0
    same = np.uint64(0)  # eight pixels of what lies here
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
        if (line[x] == 1) == (n % 2 == 0):
            turns[n] = x
            n += 1
    if n % 2 == 1:
        turns[n] = len(line)
        n += 1
    return turns[:n]


@compiled
def _joined(room: Ints, count: int, reach: int) -> tuple[Ints, Ints]:
    """Return the first ``count`` runs of a table (4, most) with their parts, and the areas (parts,) of these.

    Runs of neighbouring rows that meet within ``reach`` hang together.
    """
    table = room[:, :count].copy()
    row, start, stop, part = table[0], table[1], table[2], table[3]
    parent = np.arange(count)
    above = 0
    for n in range(count):
        while row[above] < row[n] - 1 or (row[above] == row[n] - 1 and stop[above] + reach <= start[n]):
            above += 1
        other = above
        while row[other] == row[n] - 1 and start[other] < stop[n] + reach:
            a, b = _root(parent, n), _root(parent, other)
            parent[max(a, b)] = min(a, b)
            other += 1
    areas, parts = np.zeros(count, np.int64), 0
    for n in range(count):
        root = _root(parent, n)
        if root == n:
            part[n] = parts
            parts += 1
        else:
            part[n] = part[root]  # the root of a part is its first run, which has its number by now
        areas[part[n]] += stop[n] - start[n]
    return table, areas[:parts].copy()


@compiled
def _root(parent: Ints, n: int) -> int:
    while parent[n] != n:
        parent[n] = parent[parent[n]]
        n = parent[n]
    return n


@compiled
def _counts(values: Bytes, low: np.uint8, table: Ints, parts: int) -> Ints:
    out = np.zeros(parts, np.int64)
    for n in range(table.shape[1]):
        line, count = values[table[0, n], table[1, n] : table[2, n]], np.int32(0)
        for x in range(len(line)):
            count += np.int32(line[x] >= low)
        out[table[3, n]] += count
    return out


@compiled
def _holding(mask: Bytes, corner: tuple[int, int], table: Ints, parts: int) -> Bools:
    top, left = corner
    out = np.zeros(parts, np.bool_)
    for n in range(table.shape[1]):
        if not out[table[3, n]]:
            line, some = mask[top + table[0, n], left + table[1, n] : left + table[2, n]], np.uint8(0)
            for x in range(len(line)):
                some |= line[x]
            out[table[3, n]] = some != 0
    return out


@compiled
def _rectangle(table: Ints, chosen: Bools) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom of the parts chosen, the last two excluded."""
    left, right, top, bottom = 1 << 62, -1, 1 << 62, -1
    for n in range(table.shape[1]):
        if chosen[table[3, n]]:
            left, right = min(left, int(table[1, n])), max(right, int(table[2, n]))
            top, bottom = min(top, int(table[0, n])), max(bottom, int(table[0, n]) + 1)
    return left, top, right, bottom


@compiled
def _between(table: Ints, chosen: Bools) -> tuple[Ints, Ints, Bools]:
    """Return runs and areas of parts of what lies between the parts chosen in their rectangle, and which are inner."""
    left, top, right, bottom = _rectangle(table, chosen)
    count, n = 0, 0
    out = np.empty((4, table.shape[1] + bottom - top), np.int64)
    for y in range(top, bottom):
        at = left
        while n < table.shape[1] and table[0, n] <= y:
            if table[0, n] == y and chosen[table[3, n]]:
                if table[1, n] > at:
                    out[0, count], out[1, count], out[2, count] = y, at, table[1, n]
                    count += 1
                at = table[2, n]
            n += 1
        if at < right:
            out[0, count], out[1, count], out[2, count] = y, at, right
            count += 1
    rest, areas = _joined(out, count, 0)
    inner = np.ones(len(areas), np.bool_)
    for k in range(count):
        y, first, last = rest[0, k], rest[1, k], rest[2, k]
        if y in (top, bottom - 1) or first == left or last == right:
            inner[rest[3, k]] = False
    return rest, areas, inner


@compiled
def _only(table: Ints, areas: Ints, chosen: Bools, corner: tuple[int, int]) -> tuple[Ints, Ints]:
    """Return runs and areas of the parts chosen, moved by rows and columns and numbered anew."""
    number, parts, count = np.empty(len(areas), np.int64), 0, 0
    for part in range(len(areas)):
        number[part] = parts
        parts += int(chosen[part])
    out = np.empty((4, table.shape[1]), np.int64)
    for n in range(table.shape[1]):
        if chosen[table[3, n]]:
            out[0, count], out[3, count] = table[0, n] + corner[0], number[table[3, n]]
            out[1, count], out[2, count] = table[1, n] + corner[1], table[2, n] + corner[1]
            count += 1
    return out[:, :count].copy(), areas[chosen]


@compiled
def _draw(table: Ints, chosen: Bools, out: Bools) -> None:
    for n in range(table.shape[1]):
        if chosen[table[3, n]]:
            out[table[0, n], table[1, n] : table[2, n]] = True
