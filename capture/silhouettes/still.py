"""Parts that differ from the background but never move: the scene changed, the subject is not there.

A background plate is shot before the recording; a tripod or a board that was moved in between differs from it in
every frame. Such a part stays exactly as it is for the whole recording, while a subject moves at least a little.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import cv2
import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Singles

__all__ = ["activity", "still_parts"]

#: A pixel moves if its brightness varies by this many standard deviations of the noise, and grey levels, at least.
_MOVES = 8.0
_MOVES_LEVELS = 24.0
#: A part is still if fewer than this share of its pixels move, or than a quarter of the share of the liveliest part.
_SHARE = 0.02
#: Parts nearer to the liveliest part than this share of its extent belong to it.
_NEAR = 0.15
#: Share of the images that a still part is found in.
_OFTEN = 0.75


def activity(images: Sequence[Bytes], sigma: Singles | float) -> Bools:
    """Return (H, W) where the images of one camera differ among each other beyond noise and coding artefacts."""
    grey = [image if image.ndim == 2 else _brightest(image) for image in images]
    low, high = _ends(grey)
    # Of several the second extremes: a single frame's artefact is no movement.
    which = 1 if len(grey) >= 6 else 0
    spread = high[which] - low[which]
    # Artefacts are speckled, movement is not.
    smooth = cv2.medianBlur(spread, 5).astype(np.float32)
    return np.asarray((smooth > _MOVES * sigma) & (smooth > _MOVES_LEVELS))


def _brightest(image: Bytes) -> Bytes:
    """Return (H, W) the largest of an image's channels (H, W, C)."""
    return np.asarray(functools.reduce(np.maximum, np.moveaxis(image, 2, 0)))


def _ends(images: Sequence[Bytes]) -> tuple[tuple[Bytes, Bytes], tuple[Bytes, Bytes]]:
    """Return the smallest and the second smallest value (H, W) of each pixel over images, the largest and the second.

    With one image, the second is no value of it.
    """
    least, most = images[0].copy(), images[0].copy()
    next_least, next_most = np.full_like(least, 255), np.zeros_like(most)
    for image in images[1:]:
        np.minimum(next_least, np.maximum(least, image), out=next_least)
        np.maximum(next_most, np.minimum(most, image), out=next_most)
        np.minimum(least, image, out=least)
        np.maximum(most, image, out=most)
    return (least, next_least), (most, next_most)


def still_parts(masks: Sequence[Bools], moves: Bools) -> Bools:
    """Return (H, W) the pixels of parts that lie still in all masks of one camera, while another part moves."""
    union = np.logical_or.reduce(list(masks))
    count, labels, stats, _ = cv2.connectedComponentsWithStats(union.view(np.uint8), connectivity=8)
    moving = np.bincount(labels[moves], minlength=count).astype(float)
    moving[0] = 0.0
    liveliest = int(moving.argmax())
    share = moving / np.maximum(stats[:, cv2.CC_STAT_AREA], 1)
    if count <= 2 or share[liveliest] < _SHARE:
        return np.zeros_like(union)
    away = cv2.distanceTransform((labels != liveliest).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_3)
    extent = max(stats[liveliest, cv2.CC_STAT_WIDTH], stats[liveliest, cv2.CC_STAT_HEIGHT])
    near = np.unique(labels[away < _NEAR * extent])
    still = share < max(_SHARE, share[liveliest] / 4)
    still[near] = False
    still[0] = False
    # A place that the subject came to once is none: what does not move is there in most images.
    often = np.mean(masks, axis=0) >= _OFTEN
    return np.asarray(still[labels] & often)
