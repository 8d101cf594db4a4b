"""Shade keeps the texture of what it falls on: where the marks of the ground are gone, something stands before it.

Trousers of the floor's colour are the floor in shade, by brightness and hue. Among the pixels that these call shade,
the image is held against the ground around each: in shade the one rises and falls with the other, by the same factor as
the mean. Where the ground has marks well above the noise and the image follows them by a small part only, it is
no shade. Ground without marks says nothing. Sums are taken over small cells, and looked at with the cells around.
"""

from __future__ import annotations

import cv2
import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Floats, Singles
from calibration.foundation.compiled import compiled

__all__ = ["give_back_what_hides_marks"]

#: Pixels of a cell along the image's longer side, one in so many; it is looked at with its eight neighbours.
_CELLS = 150
#: Share of the cells' pixels that must be called shade; how far marks in shade stand out, sigma of the noise.
_FULL, _CLEAR = 0.3, 5.0
#: The image follows the marks by less than this share of what shade would; so do this many of the pixels around.
_FOLLOWS, _MANY = 0.25, 0.5


def give_back_what_hides_marks(
    frame: Bytes,
    centre: Singles,
    spread: Singles,
    gain: Floats,
    evidence: Bytes,
    plain: Bytes,
    least: int,
    longer: int,
) -> None:
    """Change the evidence (H, W) where it is 0 by the rule of shade, but the marks of the ground are gone.

    Args:
        frame: (H, W, C) the image, or a window of it.
        centre: (H, W, C) the ground.
        spread: (H, W, C) the noise of a pixel.
        gain: (C,) light of the image.
        evidence: difference from the ground, 0 in shade; changed in place.
        plain: what it would be if there were no shade.
        least: plain evidence from which on a pixel of none is called shade.
        longer: longer side of the whole image, px.
    """
    cell = max(3, round(longer / _CELLS))
    height, width = evidence.shape
    sums = np.zeros((6, -(-height // cell), -(-width // cell)), np.float32)
    _sum_cells(frame, centre, spread, gain.astype(np.float32), evidence, plain, least, cell, sums)
    gone = _marks_are_gone(sums, cell)
    if gone.any():
        _give_back(evidence, plain, least, cell, gone)


def _marks_are_gone(sums: Singles, cell: int) -> Bools:
    """Return the cells whose shade lacks the marks of the ground, from `_sum_cells`."""

    def around(values: Singles) -> Singles:
        border = cv2.BORDER_CONSTANT
        return np.asarray(cv2.boxFilter(values, -1, (3, 3), normalize=False, borderType=border))

    pixels, now, ground, squares, products, noise = (around(one) for one in sums)
    count = np.maximum(pixels, 1.0)
    mean_now, mean_ground = now / count, ground / count
    marks = np.maximum(squares / count - mean_ground**2, 0.0)
    common = products / count - mean_now * mean_ground
    darker = mean_now / np.maximum(mean_ground, 1.0)
    clear = (pixels > _FULL * (3 * cell) ** 2) & (darker**2 * marks > _CLEAR**2 * noise / count)
    off = clear & (common < _FOLLOWS * darker * marks)
    return np.asarray(off & (around(off * sums[0]) > _MANY * pixels))


@compiled
def _sum_cells(
    frame: Bytes,
    centre: Singles,
    spread: Singles,
    gain: Singles,
    evidence: Bytes,
    plain: Bytes,
    least: int,
    cell: int,
    sums: Singles,
) -> None:
    """Sum, over the pixels of shade in each cell: 1, image, ground, its square, their product, noise squared."""
    height, width, channels = frame.shape
    share = np.float32(1.0 / channels)
    for y in range(height):
        row = y // cell
        for x in range(width):
            if evidence[y, x] == 0 and plain[y, x] >= least:
                now, ground, noise = np.float32(0.0), np.float32(0.0), np.float32(0.0)
                for c in range(channels):
                    now += np.float32(frame[y, x, c])
                    ground += centre[y, x, c] * gain[c]
                    noise += spread[y, x, c]
                now, ground, noise = now * share, ground * share, noise * share
                column = x // cell
                sums[0, row, column] += np.float32(1.0)
                sums[1, row, column] += now
                sums[2, row, column] += ground
                sums[3, row, column] += ground * ground
                sums[4, row, column] += now * ground
                sums[5, row, column] += noise * noise


@compiled
def _give_back(evidence: Bytes, plain: Bytes, least: int, cell: int, gone: Bools) -> None:
    height, width = evidence.shape
    for y in range(height):
        for x in range(width):
            if gone[y // cell, x // cell] and evidence[y, x] == 0 and plain[y, x] >= least:
                evidence[y, x] = plain[y, x]
