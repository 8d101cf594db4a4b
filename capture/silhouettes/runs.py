"""The connected parts of a mask as runs of pixels along its rows.

A mask is hundreds of thousands of pixels but a few hundred runs: parts are told apart, measured and drawn by their
runs, and no image of labels is made.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Ints
from calibration.foundation.compiled import compiled

__all__ = ["Runs", "runs_of"]


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
        return self._summed(self.stop - self.start)

    def counts(self, mask: Bools) -> Ints:
        """Return (parts,) how many pixels of each part are set in another mask (H, W)."""
        return self._summed(_set_in_runs(np.ascontiguousarray(mask), self.row, self.start, self.stop))

    def rectangle(self, chosen: Bools) -> tuple[int, int, int, int]:
        """Return left, top, width and height of the runs chosen (n,), one at least."""
        left, top = int(self.start[chosen].min()), int(self.row[chosen].min())
        return left, top, int(self.stop[chosen].max()) - left, int(self.row[chosen].max()) + 1 - top

    def drawn(self, chosen: Bools) -> Bools:
        """Return (H, W) the pixels of the runs chosen (n,)."""
        out = np.zeros(self.shape, dtype=bool)
        _draw(self.row[chosen], self.start[chosen], self.stop[chosen], out)
        return out

    def of_parts(self, parts: Ints) -> Bools:
        """Return (n,) which runs belong to some parts (m,)."""
        chosen = np.zeros(self.parts, dtype=bool)
        chosen[parts] = True
        return np.asarray(chosen[self.part])

    def _summed(self, values: Ints) -> Ints:
        """Return (parts,) the sums of the runs' values (n,); whole numbers, exact in floating point."""
        return np.bincount(self.part, weights=values, minlength=self.parts).astype(np.int64)


def runs_of(mask: Bools, *, diagonal: bool, of: bool = True) -> Runs:
    """Return the runs of the pixels ``of`` one kind of a mask (H, W), set or not.

    ``diagonal``: whether pixels that meet in a corner hang together.
    """
    height, width = mask.shape
    row, start, stop = _found(np.ascontiguousarray(mask).view(np.uint8), int(of))
    part, parts = _joined(row, start, stop, int(diagonal))
    return Runs((height, width), row, start, stop, part, parts)


@compiled
def _found(mask: Bytes, kind: int) -> tuple[Ints, Ints, Ints]:
    """Return row, first column and the column after the last of all runs of 0 or 1 in a mask (H, W)."""
    height, width = mask.shape
    turns = np.empty(width + 2, np.int64)
    size, count = 1024, 0
    found = np.empty((3, size), np.int64)
    for y in range(height):
        n = _turns(mask[y], kind, turns)
        if count + n // 2 > size:
            size = 2 * size + width
            larger = np.empty((3, size), np.int64)
            larger[:, :count] = found[:, :count]
            found = larger
        for k in range(n // 2):
            found[0, count + k], found[1, count + k], found[2, count + k] = y, turns[2 * k], turns[2 * k + 1]
        count += n // 2
    return found[0, :count].copy(), found[1, :count].copy(), found[2, :count].copy()


@compiled
def _turns(line: Bytes, kind: int, turns: Ints) -> int:
    """Fill where runs of one kind in a row (W,) start and stop in turn; return how many these are."""
    words = line[: len(line) // 8 * 8].view(np.uint64)
    ones = np.uint64(0x0101010101010101)
    n, inside = 0, False
    for word in range(len(words)):
        # Eight pixels at a time: where none differs, no run starts or stops.
        same = ones if inside == (kind == 1) else np.uint64(0)
        if words[word] != same:
            for x in range(8 * word, 8 * word + 8):
                if (line[x] == kind) != inside:
                    turns[n] = x
                    n, inside = n + 1, not inside
    for x in range(8 * len(words), len(line)):
        if (line[x] == kind) != inside:
            turns[n] = x
            n, inside = n + 1, not inside
    if inside:
        turns[n] = len(line)
        n += 1
    return n


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
def _set_in_runs(mask: Bools, row: Ints, start: Ints, stop: Ints) -> Ints:
    out = np.zeros(len(row), np.int64)
    for n in range(len(row)):
        for x in range(start[n], stop[n]):
            out[n] += mask[row[n], x]
    return out


@compiled
def _draw(row: Ints, start: Ints, stop: Ints, out: Bools) -> None:
    for n in range(len(row)):
        out[row[n], start[n] : stop[n]] = True
