"""The edge of a silhouette between pixels: how much of each pixel along it the subject covers.

A pixel that the edge crosses shows a mixture, I = a F + (1 - a) B, of the subject's look F and the background's look B,
and a is its coverage. Both are measured where they are pure, in the same image and near the pixel: F inside and B
outside the silhouette, beyond a gap that blurred edges do not reach. (A shadow at the feet is then background, too.)
"""

from __future__ import annotations

import cv2
import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Singles
from capture.recordings.masks import edge_band

__all__ = ["edge_matte"]

#: Pixels between the silhouette's edge and what is taken for pure subject or background.
_GAP_PX = 2
#: Radius around a pixel in which pure pixels are looked for, px.
_REACH_PX = 5
#: Subject and background must differ by so many grey levels for a mixture to be told.
_CONTRAST = 12.0


def edge_matte(image: Bytes, mask: Bools) -> Bytes:
    """Return (m,) the coverage 0..255 of the pixels along the edge, in raster order of `edge_band` of the mask.

    Where no mixture can be told (thin parts, no contrast) the mask itself stands.

    Args:
        image: (H, W) or (H, W, 3).
        mask: (H, W) the silhouette.
    """
    x, y, w, h = cv2.boundingRect(mask.view(np.uint8))
    room = _GAP_PX + _REACH_PX + 2
    rows = slice(max(0, y - room), min(mask.shape[0], y + h + room))
    columns = slice(max(0, x - room), min(mask.shape[1], x + w + room))
    here = mask[rows, columns]
    band = edge_band(here)
    covered = here[band].astype(np.float32)
    if len(covered):
        picture = image[rows, columns].astype(np.float32).reshape(*here.shape, -1)
        kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * _GAP_PX + 1, 2 * _GAP_PX + 1))
        own = cv2.erode(here.view(np.uint8), kernel, borderValue=0).view(np.bool_)
        ground = ~cv2.dilate(here.view(np.uint8), kernel).view(np.bool_)
        (subject, some), (scene, others) = _mean_near(picture, own, band), _mean_near(picture, ground, band)
        apart = subject - scene
        contrast = (apart * apart).sum(axis=1)
        told = (some > 0) & (others > 0) & (contrast > _CONTRAST**2 * picture.shape[2])
        share = ((picture[band] - scene) * apart).sum(axis=1)[told] / contrast[told]
        covered[told] = np.clip(share, 0.0, 1.0)
    return np.asarray(np.rint(255.0 * covered), dtype=np.uint8)


def _mean_near(picture: Singles, pure: Bools, band: Bools) -> tuple[Singles, Singles]:
    """Return (m, C) the mean of the pure pixels around each pixel of the band, and (m,) their share of the window."""
    side = (2 * _REACH_PX + 1,) * 2
    weight = pure.astype(np.float32)
    share = cv2.boxFilter(weight, -1, side, borderType=cv2.BORDER_CONSTANT)[band]
    share[share < 1e-4] = 0.0
    sums = [
        cv2.boxFilter(picture[:, :, channel] * weight, -1, side, borderType=cv2.BORDER_CONSTANT)[band]
        for channel in range(picture.shape[2])
    ]
    return np.stack(sums, axis=1) / np.maximum(share, 1e-4)[:, None], share
