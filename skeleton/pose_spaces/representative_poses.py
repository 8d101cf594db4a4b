"""Poses that stand for millions: a greedy cover, read in chunks, in memory that does not grow with the database.

A pose is kept if none kept so far lies within a radius; when more are kept than wanted the radius grows and the kept
ones are thinned again. Every pose seen is then within twice the radius of a kept one, rare poses stay, and what the
database shows a thousand times is kept once. Frames are taken as they come: shuffling them is not needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError

__all__ = ["Cover", "cover_poses"]

#: Growth of the radius when too many poses are kept.
_GROWTH = 1.15
#: Poses compared at a time, which bounds the table of distances.
_BLOCK = 1000


class Cover(NamedTuple):
    """Chosen poses: ``frames`` (n,) their numbers in the order read, ``poses`` (n, D), ``radius``, frames ``seen``."""

    frames: Ints
    poses: Floats
    radius: float
    seen: int


def cover_poses(chunks: Iterable[Floats], count: int) -> Cover:
    """Choose at most ``count`` poses that cover all poses of the chunks, each (n, D); rows with NaN are left out."""
    if count < 2:
        raise InputError(f"representative poses: wanted at least 2, got {count}")
    kept: list[np.ndarray] = []
    numbers: list[Ints] = []
    held, seen, radius = 0, 0, 0.0
    for chunk in chunks:
        poses = np.asarray(chunk, dtype=np.float32)
        if poses.ndim != 2:
            raise InputError(f"representative poses: wanted chunks (n, D), got {poses.shape}")
        for begin in range(0, len(poses), _BLOCK):
            block = poses[begin : begin + _BLOCK]
            rows = np.flatnonzero(np.isfinite(block).all(axis=1))
            table = np.concatenate(kept) if kept else block[:0]
            fresh = _fresh(block[rows], table, radius)
            kept.append(block[rows][fresh])
            numbers.append(seen + begin + rows[fresh])
            held += int(fresh.sum())
            while held > count:
                table, frames = np.concatenate(kept), np.concatenate(numbers)
                radius = max(_GROWTH * radius, _nearest_gap(table))
                some = _thinned(table, radius)
                kept, numbers, held = [table[some]], [frames[some]], int(some.sum())
        seen += len(poses)
    if not held:
        raise InputError("representative poses: no pose without NaN")
    return Cover(np.concatenate(numbers), np.concatenate(kept).astype(np.float64), radius, seen)


def _squared(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray((a**2).sum(1)[:, None] + (b**2).sum(1) - 2.0 * (a @ b.T))


def _fresh(block: np.ndarray, table: np.ndarray, radius: float) -> np.ndarray:
    """Rows of a block that are farther than the radius from the table and from the rows kept before them."""
    fresh = np.ones(len(block), np.bool_)
    if radius <= 0.0:
        return fresh
    if len(table):
        fresh = _squared(block, table).min(axis=1) > radius**2
    rows = np.flatnonzero(fresh)
    near = _squared(block[rows], block[rows]) <= radius**2
    for i in range(len(rows)):
        if fresh[rows[i]]:
            fresh[rows[i + 1 :][near[i, i + 1 :]]] = False
    return fresh


def _thinned(table: np.ndarray, radius: float) -> np.ndarray:
    """Rows of the table that a greedy pass with the radius keeps."""
    keep = np.zeros(len(table), np.bool_)
    for begin in range(0, len(table), _BLOCK):
        block = table[begin : begin + _BLOCK]
        keep[begin : begin + _BLOCK] = _fresh(block, table[:begin][keep[:begin]], radius)
    return keep


def _nearest_gap(table: np.ndarray) -> float:
    """Median distance of some rows to their nearest other row: the least radius that thins at all."""
    some = table[:: max(1, len(table) // 200)]
    squares = _squared(some, table)
    squares[squares < 1e-9] = np.inf
    finite = np.sqrt(squares.min(axis=1))
    finite = finite[np.isfinite(finite)]
    return float(np.percentile(finite, 10)) if len(finite) else 1e-6
