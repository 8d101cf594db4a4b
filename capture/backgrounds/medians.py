"""Median and robust spread of each pixel over many images, for a strip of neighbouring pixels at a time.

The k-th smallest of some whole numbers is found bit by bit, from the highest on: a bit of it is set if no more than k
of them lie below the number with that bit. Sorting looks at one pixel after the other, in places far apart in memory;
this asks the same of all pixels of a strip, which the processor does many at a time.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Bools, Bytes, Singles
from calibration.foundation.compiled import compiled

__all__ = ["median_and_spread"]

Words: TypeAlias = NDArray[np.int16]

#: Share of the normal distribution: sigma = 1.4826 median |x - median|.
_MAD = 1.4826
#: Values of a row that are looked at together: what is known of them stays at hand.
_STRIP = 512
#: Larger than any distance from a median, which is counted in half grey levels.
_SHUT = 511


def median_and_spread(stack: Bytes, free: Bools | None = None, *, least: int = 1) -> tuple[Singles, Singles, Bools]:
    """Return (H, W, C) median and scaled median absolute deviation of images (n, H, W, C), and (H, W) where known.

    ``free`` (n, h, w) says in which cells of the image each of them counts; a pixel is known where at least ``least``
    do, and 0 elsewhere.
    """
    _, height, width, channels = stack.shape
    counts = np.ones((len(stack), 1, 1), dtype=bool) if free is None else free
    centre = np.zeros((height, width, channels), np.float32)
    spread = np.zeros((height, width, channels), np.float32)
    known = np.zeros((height, width), dtype=bool)
    if len(stack):
        _fill(np.ascontiguousarray(stack), counts, least, centre, spread, known)
    return centre, spread, known


@compiled
def _fill(stack: Bytes, free: Bools, least: int, centre: Singles, spread: Singles, known: Bools) -> None:
    images, height, width, channels = stack.shape
    rows = free.shape[1]
    flat, middle, away = (
        stack.reshape(images, height, width * channels),
        centre.reshape(height, width * channels),
        spread.reshape(height, width * channels),
    )
    shut = np.empty((images, width * channels), np.int16)
    count = np.empty(width * channels, np.int16)
    room = np.empty((images, _STRIP), np.int16)
    lower, upper, limit, below = (
        np.empty(_STRIP, np.int16), np.empty(_STRIP, np.int16), np.empty(_STRIP, np.int16), np.empty(_STRIP, np.int16)
    )  # fmt: skip
    before = -1
    for y in range(height):
        row = min(rows - 1, y * rows // height)
        if row != before:
            before = row
            _open_in(free[:, row], channels, shut, count)
        for x in range(width):
            known[y, x] = count[x * channels] >= least
        for first in range(0, width * channels, _STRIP):
            here = slice(first, min(first + _STRIP, width * channels))
            own, centres, spreads = count[here], middle[y, here], away[y, here]
            for n in range(images):
                _masked(flat[n, y, here], shut[n, here], room[n])
            _middle_two(room, own, lower, upper, limit, below)
            for k in range(len(own)):
                limit[k] = lower[k] + upper[k]
                if own[k] >= least:
                    centres[k] = np.float32(0.5 * limit[k])
            for n in range(images):
                _from_twice(limit, shut[n, here], room[n])
            _middle_two(room, own, lower, upper, limit, below)
            for k in range(len(own)):
                if own[k] >= least:
                    spreads[k] = np.float32(_MAD * (0.25 * (lower[k] + upper[k])))


@compiled
def _masked(values: Bytes, shut: Words, out: Words) -> None:
    """Fill the values of an image that count, `_SHUT` for the others."""
    for k in range(len(values)):
        out[k] = np.int16(values[k]) | shut[k]


@compiled
def _from_twice(middle: Words, shut: Words, values: Words) -> None:
    """Turn values into twice their distances from medians, which are given twice; what does not count stays so."""
    for k in range(len(shut)):
        values[k] = abs(np.int16(np.int16(2) * values[k] - middle[k])) | shut[k]


@compiled
def _open_in(free: Bools, channels: int, shut: Words, count: Words) -> None:
    """Fill which of the images of a row of cells (n, w) do not count for each value of its pixels, and how many do."""
    images, columns = free.shape
    width = len(count) // channels
    count[:] = 0
    for n in range(images):
        for x in range(width):
            is_open = free[n, min(columns - 1, x * columns // width)]
            for c in range(channels):
                shut[n, x * channels + c] = 0 if is_open else _SHUT
                count[x * channels + c] += is_open


@compiled
def _middle_two(values: Words, count: Words, lower: Words, upper: Words, limit: Words, below: Words) -> None:
    """Fill the two middle ones of the ``count`` (m,) smallest of values (n, m or more), alike where that is odd."""
    images, wide = len(values), len(count)
    _ends(values, wide, lower, upper)
    most = 0
    for k in range(wide):
        most = max(most, upper[k] - lower[k])
    step = np.int16(1)
    while step <= most:
        step *= np.int16(2)
    while step > 1:
        step //= np.int16(2)
        for k in range(wide):
            limit[k] = lower[k] + step
            below[k] = 0
        for n in range(images):
            for k in range(wide):
                below[k] += values[n, k] < limit[k]
        for k in range(wide):
            if below[k] <= (count[k] - 1) // 2:
                lower[k] = limit[k]
    for k in range(wide):
        limit[k] = _SHUT
        below[k] = 0
    for n in range(images):
        for k in range(wide):
            below[k] += values[n, k] <= lower[k]
            limit[k] = min(limit[k], values[n, k] if values[n, k] > lower[k] else np.int16(_SHUT))
    for k in range(wide):
        upper[k] = lower[k] if below[k] > count[k] // 2 else limit[k]


@compiled
def _ends(values: Words, wide: int, least: Words, most: Words) -> None:
    """Fill the smallest and the largest of the first values (n, m) of each row that count."""
    least[:] = _SHUT
    most[:] = 0
    for n in range(len(values)):
        for k in range(wide):
            least[k] = min(least[k], values[n, k])
            most[k] = max(most[k], values[n, k] if values[n, k] < _SHUT else np.int16(0))
