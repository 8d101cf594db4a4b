"""A mask blurred a little, and its slope, where they are asked for: at a few hundred pixels of its contours.

The blur is a Gaussian of 1 px over nine pixels, the slope Sobel's. The numbers are those of OpenCV's filters in single
precision, digit by digit: what is tracked from frame to frame depends on the last ones, and no figure moves by chance.
"""

from __future__ import annotations

import cv2
import numpy as np

from calibration.foundation.arrays import Bytes, Floats, Ints, Singles
from calibration.foundation.compiled import compiled

__all__ = ["blurred_at"]

_REACH = 4
"""Pixels to each side that the blur takes in."""
_EIGHT = 8
"""Columns that OpenCV does at a time on a processor with AVX2, a product rounded with its sum; those left over not."""
_WEIGHTS: Singles = np.asarray(cv2.getGaussianKernel(2 * _REACH + 1, 1.0, cv2.CV_32F), np.float32).ravel()


def _sums_of_rows() -> Singles:
    """(512,) the blur along a row for each pattern of nine pixels, the first of them the lowest bit."""
    pattern = np.arange(1 << len(_WEIGHTS))
    total = np.zeros(len(pattern), np.float32)
    for bit, weight in enumerate(_WEIGHTS):
        total = np.where((pattern >> bit) & 1 > 0, total + weight, total)
    return total


_ROWS = _sums_of_rows()


def blurred_at(mask: Bytes, at: Ints) -> tuple[Floats, Floats]:
    """Return the blurred mask (N,) and its slope by x and y (N, 2), per px, at pixels (N, 2) of a mask of 0 and 1."""
    level, slope = np.empty(len(at)), np.empty((len(at), 2))
    _look_up(mask, np.ascontiguousarray(at, np.int64), _ROWS, _WEIGHTS, level, slope)
    return level, slope


@compiled
def _look_up(mask: Bytes, at: Ints, rows: Singles, weights: Singles, level: Floats, slope: Floats) -> None:
    height, width = mask.shape
    along = np.empty((2 * _REACH + 3, 3), np.float32)
    soft = np.empty((3, 3), np.float32)
    sides = np.empty(2 * _REACH + 3, np.int64)
    for n in range(len(at)):
        x, y = at[n, 0], at[n, 1]
        for j in range(len(sides)):
            sides[j] = _inside(x + j - _REACH - 1, width)
        for i in range(len(along)):
            line = mask[_inside(y + i - _REACH - 1, height)]
            pattern = 0
            for j in range(len(sides)):
                pattern |= int(line[sides[j]]) << j
            for k in range(3):
                along[i, k] = rows[(pattern >> k) & 511]
        for i in range(3):
            for k in range(3):
                soft[i, k] = _down(along[i:, k], weights, x + k - 1 < width - width % _EIGHT)
        level[n] = soft[1, 1]
        across = soft[:, 2] - soft[:, 0]
        slope[n, 0] = np.float32(0.125) * (across[0] + across[2]) + np.float32(0.25) * across[1]
        above = np.float32(0.125) * (soft[0, 0] + soft[0, 2]) + np.float32(0.25) * soft[0, 1]
        below = np.float32(0.125) * (soft[2, 0] + soft[2, 2]) + np.float32(0.25) * soft[2, 1]
        slope[n, 1] = below - above


@compiled
def _down(values: Singles, weights: Singles, fused: bool) -> np.float32:
    """Blur down a column, pairs from the middle outwards; ``fused`` rounds each product with its sum."""
    total = np.float32(values[_REACH] * weights[_REACH])
    for j in range(1, _REACH + 1):
        pair, weight = np.float32(values[_REACH - j] + values[_REACH + j]), weights[_REACH + j]
        if fused:
            total = np.float32(np.float64(pair) * np.float64(weight) + np.float64(total))
        else:
            total = np.float32(total + np.float32(pair * weight))
    return total


@compiled
def _inside(place: int, size: int) -> int:
    """The pixel that stands for one beyond an edge: its mirror image, the edge's own pixel not doubled."""
    if size == 1:
        return 0
    while place < 0 or place >= size:
        place = -place if place < 0 else 2 * size - 2 - place
    return place
