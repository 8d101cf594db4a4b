"""How sharp a camera shows the subject: the blur of its edge, from how fast the edge fades when blurred further.

A step that a lens has blurred by sigma has the steepest slope A / sqrt(2 pi (sigma^2 + s^2)) after another blur by s.
The ratio of its slopes after two such blurs gives sigma, whatever the contrast A (Zhuo and Sim, *Defocus map estimation
from a single image*, Pattern Recognition 44, 2011).
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Floats

__all__ = ["edge_blur", "out_of_focus"]

_FINE, _COARSE = 1.0, 2.0
#: Edges are looked for this far from the silhouette's, px; of these the share with the strongest slopes is measured.
_REACH = 3
_STRONGEST = 0.3
_LEAST_EDGES = 20
#: A camera is out of focus if its edges are this wide, px, and so many times wider than the others'.
_BLURRED_PX = 2.0
_TIMES = 2.0


def edge_blur(image: Bytes, mask: Bools) -> float:
    """Return the blur (standard deviation, px) of the subject's edge in an image (H, W[, 3]); NaN if it has too few."""
    grey = image if image.ndim == 2 else np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY))
    x, y, width, height = cv2.boundingRect(mask.view(np.uint8))
    if width == 0:
        return float("nan")
    room = 6
    rows, columns = slice(max(y - room, 0), y + height + room), slice(max(x - room, 0), x + width + room)
    part, inside = grey[rows, columns].astype(np.float32), np.ascontiguousarray(mask[rows, columns]).view(np.uint8)
    kernel = np.ones((2 * _REACH + 1, 2 * _REACH + 1), np.uint8)
    band = cv2.dilate(inside, kernel) != cv2.erode(inside, kernel)
    fine, coarse = (_slope(part, sigma) for sigma in (_FINE, _COARSE))
    crest = fine >= cv2.dilate(fine, np.ones((3, 3), np.uint8)) * 0.98  # steepest across the edge
    edges = band & crest & (fine > 0)
    if np.count_nonzero(edges) < _LEAST_EDGES:
        return float("nan")
    strong = edges & (fine >= np.quantile(fine[edges], 1.0 - _STRONGEST))
    ratio = np.clip(fine[strong] / np.maximum(coarse[strong], 1e-6), 1.0 + 1e-3, _COARSE / _FINE)
    return float(np.median(np.sqrt(np.maximum((_COARSE**2 - ratio**2 * _FINE**2) / (ratio**2 - 1.0), 0.0))))


def _slope(image: np.ndarray, sigma: float) -> np.ndarray:
    smooth = cv2.GaussianBlur(image, (0, 0), sigma)
    across, down = (cv2.Sobel(smooth, cv2.CV_32F, dx, 1 - dx, ksize=3) for dx in (1, 0))
    return np.asarray(np.hypot(across, down))


def out_of_focus(blur: Sequence[float] | Floats) -> list[int]:
    """Return the cameras whose edges (C,), px, are much wider than those of the others."""
    values = np.asarray(blur, dtype=np.float64)
    found = []
    for index, value in enumerate(values):
        others = np.delete(values, index)
        others = others[np.isfinite(others)]
        if len(others) and value > _BLURRED_PX and value > _TIMES * float(np.median(others)):
            found.append(index)
    return found
