"""The silhouette's edge where an image is half-way between the subject and the background.

A pixel of the rim is a mixture. A threshold on the difference takes it for the subject as soon as a tenth of it is, so
silhouettes are too large by some tenths of a pixel all around, which is much of a thin limb.
"""

from __future__ import annotations

import cv2
import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Floats, Singles

__all__ = ["half_way_edge"]

#: A lens and a codec blur the edge over this many pixels; the subject's own look is the mean of what lies deeper.
_DEPTH_PX = 2
#: Least share of a pixel's surroundings that must lie deeper.
_TOLD = 0.02
#: Least contrast, root mean square grey levels, at which a mixture can be told.
_CONTRAST = 16.0


def half_way_edge(mask: Bools, image: Bytes, background: Singles, light: Floats) -> Bools:
    """Return the mask (H, W) without the pixels of its rim of which less than half is the subject.

    Args:
        mask: a silhouette.
        image: (H, W, C) in which it was found.
        background: (H, W, C) the empty scene.
        light: (C,) gain of the image's light over the background's.
    """
    x, y, w, h = cv2.boundingRect(mask.view(np.uint8))
    if w == 0:
        return mask
    room = _DEPTH_PX + 2
    rows = slice(max(0, y - room), min(mask.shape[0], y + h + room))
    columns = slice(max(0, x - room), min(mask.shape[1], x + w + room))
    here = np.ascontiguousarray(mask[rows, columns]).view(np.uint8)
    picture = image[rows, columns].astype(np.float32)
    ground = background[rows, columns] * light.astype(np.float32)
    for depth in (_DEPTH_PX, 1):  # parts too thin for the first are asked by the second
        inner = _shrunk(here, depth)
        side = (2 * depth + 3, 2 * depth + 3)
        share = cv2.blur(inner.astype(np.float32), side)
        own = cv2.blur(picture * inner[:, :, None], side).reshape(picture.shape)
        for _ in range(depth):
            at = np.nonzero((here > _shrunk(here, 1)) & (share > _TOLD))
            contrast = own[at] / share[at][:, None] - ground[at]
            power = np.square(contrast).sum(axis=1)
            part = ((picture[at] - ground[at]) * contrast).sum(axis=1)
            drop = (power > picture.shape[2] * _CONTRAST**2) & (part < 0.5 * power)
            here[at[0][drop], at[1][drop]] = 0
    out = mask.copy()
    out[rows, columns] = here.view(np.bool_)
    return out


def _shrunk(mask: Bytes, pixels: int) -> Bytes:
    """Return a mask without the pixels near its edge; the image's own border is none."""
    square = np.ones((2 * pixels + 1, 2 * pixels + 1), np.uint8)
    return np.asarray(cv2.erode(mask, square, borderType=cv2.BORDER_CONSTANT, borderValue=1))
