"""Which of two grounds is right, place by place: contours lie on edges of the image, ghosts on edges of the ground.

A subject that was taken for ground leaves a ghost: wherever it is not, the image differs from the ground along an
outline that the image does not show and the ground does. A subject that differs from the right ground has its outline
in the image, and none in the ground. So the mean of

    |grad image| - |grad ground|    over the outlines of what differs from the ground in some images

is larger for the right one. Two grounds (cells of a few pixels, `capture.backgrounds.ground_labels`) are compared in
each place where they differ; what never changed up to the image's border is scene and not asked.
"""

from __future__ import annotations

import cv2
import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Singles
from capture.backgrounds.background import NoiseCurve
from capture.discs import disc

__all__ = ["better_places"]

#: What differs, in standard deviations of the noise, which is not taken for less than this, grey levels.
_DIFFERS = 6.0
_LEAST_SIGMA = 1.5
#: Cells over which places are one, and around a place in which outlines are looked at.
_TOGETHER = 3
_AROUND = 2


def better_places(cells: Bytes, first: Singles, second: Singles, asked: Bools, noise: NoiseCurve) -> Bools:
    """Return (h, w) where the second of two grounds (h, w, C) explains images as cells (n, h, w, C) better."""
    sigma = np.maximum(noise.at(first), np.float32(_LEAST_SIGMA))
    differ = ((np.abs(first - second) > np.float32(_DIFFERS) * sigma).any(axis=2) & asked).view(np.uint8)
    places = cv2.morphologyEx(differ, cv2.MORPH_CLOSE, disc(_TOGETHER))
    count, labels = cv2.connectedComponents(places, connectivity=8)
    sums = [_edge_sums(cells, ground, sigma, labels, count) for ground in (first, second)]
    better = sums[1] > sums[0]
    better[0] = False
    return np.asarray(better[labels])


def _outline(image: Bytes, ground: Singles, sigma: Singles) -> Bools:
    """Return (h, w) the outline of what differs from a ground."""
    channels = np.moveaxis(np.abs(image - ground) > np.float32(_DIFFERS) * sigma, 2, 0)
    differs = cv2.medianBlur(np.logical_or.reduce(list(channels)).view(np.uint8), 3)
    square = np.ones((3, 3), np.uint8)
    return np.asarray(cv2.dilate(differs, square) != cv2.erode(differs, square))


def _edges(image: Singles) -> Singles:
    """Return (h, w) the length of the gradient of (h, w, C), grey levels per cell."""
    along = [cv2.Sobel(image, cv2.CV_32F, *axis, ksize=3).reshape(image.shape) for axis in ((1, 0), (0, 1))]
    squares = sum(np.einsum("hwc,hwc->hw", one, one) for one in along)
    return np.asarray(np.sqrt(squares) / 8.0, dtype=np.float32)


def _edge_sums(cells: Bytes, ground: Singles, sigma: Singles, labels: np.ndarray, count: int) -> Singles:
    """Return (count,) the mean excess of edges along outlines near each place."""
    near = cv2.dilate(labels.astype(np.float32), disc(_AROUND)).astype(np.intp)
    total, number, own = np.zeros(count), np.zeros(count), _edges(ground)
    for image in cells:
        rim = _outline(image, ground, sigma) & (near > 0)
        if rim.any():
            excess = _edges(image.astype(np.float32))[rim] - own[rim]
            total += np.bincount(near[rim], weights=excess, minlength=count)
            number += np.bincount(near[rim], minlength=count)
    return np.asarray(total / np.maximum(number, 1.0), dtype=np.float32)
