"""The silhouette with the least energy: odds of each pixel against the length of the edge, cheap where contrast is.

OpenCV's grabCut solves the cut. Its colour models are frozen to two Gaussians along a channel that holds the odds,
equal but for their means, so that the ratio of their likelihoods is linear in the odds; the other two channels hold
the image, whose contrast sets the price of an edge.
"""

from __future__ import annotations

import cv2
import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Floats, Singles

__all__ = ["least_cut"]

#: Odds are carried up to this size.
_MOST = 8.0
#: Weight of a unit of log odds against grabCut's own price of 50 for an edge between equal pixels.
_WEIGHT = 20.0
#: Below these log odds a pixel is not asked.
_NEVER = -15.0


def _along_odds(mean: float) -> Floats:
    """Return grabCut's (1, 65) mixture with one component: weight, mean and covariance."""
    model = np.zeros((1, 65))
    model[0, 0] = 1.0
    model[0, 5:8] = (mean, 128.0, 128.0)
    variance = 255.0 * 127.0 / (_MOST * _WEIGHT)
    model[0, 20:29] = np.diag([variance, 1e6, 1e6]).ravel()
    return model


def least_cut(odds: Singles, grey: Bytes) -> Bools:
    """Return (h, w) the subject, given log odds (h, w) and the image (h, w)."""
    likely = odds > 0
    out = np.zeros(odds.shape, dtype=bool)
    # Far from any likely pixel nothing can change: cut in the rectangle of those.
    x, y, w, h = cv2.boundingRect(likely.view(np.uint8))
    if w == 0 or likely.all():
        return likely
    room = 8
    rows = slice(max(0, y - room), min(odds.shape[0], y + h + room))
    columns = slice(max(0, x - room), min(odds.shape[1], x + w + room))
    here, picture = odds[rows, columns], grey[rows, columns]
    channel = np.clip(128.0 + 127.0 / _MOST * here, 0, 255).astype(np.uint8)
    labels = np.where(here > 0, cv2.GC_PR_FGD, cv2.GC_PR_BGD).astype(np.uint8)
    labels[here < _NEVER] = cv2.GC_BGD
    if not (labels == cv2.GC_PR_BGD).any():
        return likely
    image = np.dstack([channel, picture, picture])
    cv2.grabCut(image, labels, None, _along_odds(0.0), _along_odds(255.0), 1, cv2.GC_EVAL_FREEZE_MODEL)
    out[rows, columns] = (labels == cv2.GC_PR_FGD) | (labels == cv2.GC_FGD)
    return out
