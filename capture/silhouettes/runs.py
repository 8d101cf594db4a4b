"""The connected parts of a mask as runs of pixels along its rows.

A mask is hundreds of thousands of pixels but a few hundred runs: parts are told apart, measured and drawn by their
runs, and no image of labels is made.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Bools, Ints
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

    def _summed(self, values: Ints) -> Ints:
        """Return (parts,) the sums of the runs' values (n,); whole numbers, exact in floating point."""
        return np.bincount(self.part, weights=values, minlength=self.parts).astype(np.int64)


def runs_of(mask: Bools, *, diagonal: bool) -> Runs:
    """Return the runs of a mask (H, W); ``diagonal``: whether pixels that meet in a corner hang together."""
    height, width = mask.shape
    # Where a pixel differs from the one to its left, the outside being empty: starts and stops take turns.
    turns = np.empty((height, width + 1), dtype=bool)
    turns[:, 0], turns[:, width] = mask[:, 0], mask[:, width - 1]
    np.not_equal(mask[:, 1:], mask[:, :-1], out=turns[:, 1:width])
    at = np.flatnonzero(turns)
    row = at[::2] // (width + 1)
    start, stop = at[::2] - row * (width + 1), at[1::2] - row * (width + 1)
    part, parts = _joined(row, start, stop, int(diagonal))
    return Runs((height, width), row, start, stop, part, parts)


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
