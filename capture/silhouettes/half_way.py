"""The silhouette's edge where an image is half-way between the subject and the background.

A pixel of the rim is a mixture. A threshold on the difference takes it for the subject as soon as a tenth of it is, so
silhouettes are too large by some tenths of a pixel all around, which is much of a thin limb.
"""

from __future__ import annotations

import cv2
import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Floats, Singles

__all__ = ["half_way_edge"]

#: The subject's own look is the mean of what lies within this many pixels and not on the rim.
_NEAR_PX = 2
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
    room = _NEAR_PX + 1
    rows = slice(max(0, y - room), min(mask.shape[0], y + h + room))
    columns = slice(max(0, x - room), min(mask.shape[1], x + w + room))
    here = np.ascontiguousarray(mask[rows, columns]).view(np.uint8)
    inner = cv2.erode(here, np.ones((3, 3), np.uint8), borderType=cv2.BORDER_CONSTANT, borderValue=1)
    rim_rows, rim_columns = np.nonzero(here > inner)
    side = (2 * _NEAR_PX + 1, 2 * _NEAR_PX + 1)
    share = cv2.blur(inner.astype(np.float32), side)
    picture = image[rows, columns].astype(np.float32)
    picture = picture[:, :, None] if picture.ndim == 2 else picture
    inside = cv2.blur(picture * inner[:, :, None], side).reshape(picture.shape)
    at = (rim_rows, rim_columns)
    own = inside[at] / np.maximum(share[at], np.float32(1e-3))[:, None]
    ground = background[rows, columns][at] * light.astype(np.float32)
    contrast = own - ground
    power = np.square(contrast).sum(axis=1)
    part = ((picture[at] - ground) * contrast).sum(axis=1)
    told = (share[at] > 0.02) & (power > picture.shape[2] * _CONTRAST**2)
    drop = told & (part < 0.5 * power)
    out = mask.copy()
    out[rows, columns][rim_rows[drop], rim_columns[drop]] = False
    return out
