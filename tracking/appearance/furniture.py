"""Things that stand still where the empty scene lacks them: a chair that was brought in, a box, bedding.

Silhouettes hold them, and no colour or shape is asked here: such a thing looks the same in most frames, while the
subject moves. A subject that hardly moves looks so, too; whoever uses this must find out which of the two it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from calibration.foundation.arrays import Bools, Bytes
from tracking.appearance.ground import sort_images

__all__ = ["FEWEST", "Furniture", "find_furniture"]

FEWEST = 6
"""Frames without which nothing is called still."""
MOSTLY = 0.5
"""Share of the frames in which a still thing shows: the subject hides it in the others."""
PIECE, WORTH, SUBJECT = 0.02, 0.1, 0.6
"""Smallest piece that is a thing, share of the silhouette; share of all of them that is worth it, as cloth of one
colour may stay, too, where the subject hardly moves; and from which on it is the subject that stands still."""
_NOISE = 4.0
"""How many times the median difference of bare ground between images still things may differ; shadows fall on some of
it, so that its largest differences say nothing."""
_SMOOTH_PX = 1.5
_SPECK = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (5, 5))


@dataclass(frozen=True, eq=False)
class Furniture:
    """What stands still in one view.

    Attributes:
        still: (H, W) where it is.
        colour: (H, W, 3) that it has there.
        noise: how far the same thing differs between images, grey levels.
    """

    still: Bools
    colour: Bytes
    noise: float

    def cleared(self, image: Bytes, mask: Bools) -> Bools:
        """Return a silhouette (H, W) less what stands still in it; what hides that stays."""
        kept = mask & ~(self.still & (_apart(_smoothed(image), self.colour) <= self.noise))
        near = cv2.dilate(self.still.view(np.uint8), _SPECK).view(np.bool_)
        # Its rim differs a little from image to image: what is as thin as that goes with it.
        opened = cv2.morphologyEx(kept.view(np.uint8), cv2.MORPH_OPEN, _SPECK).view(np.bool_)
        return np.asarray(np.where(near, opened, kept))


def find_furniture(images: Sequence[Bytes], masks: Sequence[Bools]) -> Furniture | None:
    """Find what stands still in the silhouettes (H, W) of one camera's images (H, W, 3); None where nothing does."""
    if len(images) < FEWEST:
        return None
    smooth, inside = [_smoothed(image) for image in images], np.stack(masks)
    ground = ~inside.any(axis=0)
    colour = _middle(smooth)  # of what is seen in most of them
    apart = np.stack([_apart(image, colour) for image in smooth])
    noise = _NOISE * max(float(np.median(apart[:, ground])), 1.0) if ground.any() else 0.0
    area = float(inside.sum(axis=(1, 2)).mean())
    still = _pieces(((apart <= noise) & inside).mean(axis=0) >= MOSTLY, PIECE * area)
    return Furniture(still, colour, noise) if WORTH * area < still.sum() < SUBJECT * area else None


def _pieces(where: Bools, least: float) -> Bools:
    """Return the pieces of a mask (H, W) that have so many pixels."""
    _, pieces, figures, _ = cv2.connectedComponentsWithStats(where.view(np.uint8), connectivity=8)
    large = figures[:, cv2.CC_STAT_AREA] >= least
    large[0] = False
    return np.asarray(large[pieces])


def _middle(images: Sequence[Bytes]) -> Bytes:
    """Return the median of images, rounded down."""
    ordered = np.stack(images)
    sort_images(ordered)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return np.asarray((low.astype(np.uint16) + high) // 2, np.uint8)


def _smoothed(image: Bytes) -> Bytes:
    return np.asarray(cv2.GaussianBlur(image, (0, 0), _SMOOTH_PX))


def _apart(image: Bytes, other: Bytes) -> Bytes:
    """Return (H, W) how far two images are apart in the channel that differs most."""
    blue, green, red = cv2.split(cv2.absdiff(image, other))
    return np.asarray(cv2.max(cv2.max(blue, green), red))
