"""The scene behind the subject: each pixel as most of the images show it in which no silhouette is near."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Bools, Bytes
from capture.discs import disc

__all__ = ["extent", "ground_of", "grown", "sort_images"]

_ROOM = 0.12
"""What silhouettes lack around them (feet, the darkest shade), share of their extent."""
_ROWS = 64
"""Rows of the images that are sorted at a time: memory."""


def extent(mask: Bools) -> float:
    """Return how large a silhouette (H, W) is: the side of a square of its area, px."""
    return float(np.sqrt(max(int(np.count_nonzero(mask)), 1)))


def grown(mask: Bools, share: float = _ROOM) -> Bools:
    """Return a silhouette (H, W) with what lies within a share of its extent."""
    wide = cv2.dilate(mask.view(np.uint8), disc(max(1, round(share * extent(mask)))))
    return np.asarray(wide.view(np.bool_))


def ground_of(images: Sequence[Bytes], masks: Sequence[Bools]) -> Bytes:
    """Return (H, W, 3) the median of images (H, W, 3) where their silhouettes (H, W) are not; of all where all are."""
    covered = np.stack([grown(mask) for mask in masks])
    ground = np.empty_like(images[0])
    for first in range(0, ground.shape[0], _ROWS):
        rows = slice(first, first + _ROWS)
        values = np.stack([image[rows] for image in images]).astype(np.int16)
        hidden = covered[:, rows] & ~covered[:, rows].all(axis=0)
        values[hidden] = 256  # sorted behind all others
        sort_images(values)
        free = (~hidden).sum(axis=0)
        middle = np.broadcast_to((free // 2)[None, :, :, None], (1, *values.shape[1:]))
        ground[rows] = np.take_along_axis(values, middle, axis=0)[0]
    return ground


def sort_images(values: NDArray[Any]) -> None:
    """Sort (N, H, W, ...) along the first axis in place: whole images two at a time, which is quick for some tens."""
    count = len(values)
    for turn in range(count):
        for k in range(turn % 2, count - 1, 2):
            low = cv2.min(values[k], values[k + 1])
            cv2.max(values[k], values[k + 1], dst=values[k + 1])
            values[k] = low
