"""From evidence to a clean silhouette, thin parts kept.

No opening and no median: they eat tails and paws. Instead, weak evidence counts where it hangs together with
strong evidence (hysteresis), parts are judged as wholes by size and distance from the body, and holes are filled
by size.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from calibration.arrays import Bools, Bytes
from capture.background import SCALE

__all__ = ["Cleaning", "clean_mask", "silhouette_of"]


@dataclass(frozen=True)
class Cleaning:
    """How evidence becomes a silhouette.

    Attributes:
        low: weak evidence, standard deviations.
        high: strong evidence, standard deviations; a part without any is dropped.
        part_share: parts smaller than this share of the largest are dropped, unless they are near it.
        near_share: a small part is near if closer than this share of the largest part's extent.
        least_px: parts smaller than this are always dropped.
        hole_share: holes smaller than this share of the silhouette, or than ``least_px``, are filled.
    """

    low: float = 4.0
    high: float = 9.0
    part_share: float = 0.1
    near_share: float = 0.1
    least_px: int = 12
    hole_share: float = 0.003


def silhouette_of(evidence: Bytes, cleaning: Cleaning) -> Bools:
    """Return (H, W) the silhouette in an evidence image."""
    low = np.uint8(min(255.0, cleaning.low * SCALE))
    high = np.uint8(min(255.0, cleaning.high * SCALE))
    out = np.zeros(evidence.shape, dtype=bool)
    weak_all = cv2.compare(evidence, float(low), cv2.CMP_GE)
    x, y, w, h = cv2.boundingRect(weak_all)
    if w == 0:
        return out
    window = _window(x, y, w, h)
    out[window] = clean_mask(weak_all[window] > 0, evidence[window] >= high, cleaning)
    return out


def clean_mask(weak: Bools, strong: Bools, cleaning: Cleaning) -> Bools:
    """Return the parts of ``weak`` (H, W) worth keeping, with small holes filled."""
    count, labels, stats, _ = cv2.connectedComponentsWithStats(weak.view(np.uint8), connectivity=8)
    if count <= 1:
        return np.zeros_like(weak)
    areas = stats[:, cv2.CC_STAT_AREA].copy()
    areas[0] = 0
    certain = _window(*cv2.boundingRect(strong.view(np.uint8)))
    seeds = np.bincount(labels[certain][strong[certain]], minlength=count)
    # One strong pixel may be noise; a strong part has several.
    areas[seeds < np.minimum(3, 0.5 * areas + 1)] = 0
    largest = int(areas.argmax())
    if areas[largest] < cleaning.least_px:
        return np.zeros_like(weak)
    keep = areas >= max(cleaning.least_px, cleaning.part_share * float(areas[largest]))
    reach = cleaning.near_share * float(max(stats[largest, cv2.CC_STAT_WIDTH], stats[largest, cv2.CC_STAT_HEIGHT]))
    small = [i for i in range(1, count) if not keep[i] and areas[i] >= cleaning.least_px]
    if small and reach >= 1:
        body = keep[labels].view(np.uint8)
        away = cv2.distanceTransform(1 - body, cv2.DIST_L2, cv2.DIST_MASK_3)
        near = np.unique(labels[away <= reach])
        for i in small:
            keep[i] = i in near
    keep[0] = False
    # What is kept lies in the rectangles of its parts; the rest of the image need not be looked at again.
    left, top = stats[keep, cv2.CC_STAT_LEFT], stats[keep, cv2.CC_STAT_TOP]
    right, bottom = left + stats[keep, cv2.CC_STAT_WIDTH], top + stats[keep, cv2.CC_STAT_HEIGHT]
    kept = (slice(int(top.min()), int(bottom.max())), slice(int(left.min()), int(right.max())))
    mask = keep[labels[kept]]
    out = np.zeros_like(weak)
    out[kept] = fill_holes(mask, max(cleaning.least_px, cleaning.hole_share * float(np.count_nonzero(mask))))
    return out


def _window(x: int, y: int, w: int, h: int) -> tuple[slice, slice]:
    """Return the rows and columns of a rectangle."""
    return slice(y, y + h), slice(x, x + w)


def holes_of(mask: Bools, largest_px: float) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return labels (H, W) of the background's parts, and which of them are holes of up to ``largest_px`` pixels.

    The labels are empty where there is no hole at all.
    """
    if not _has_holes(mask):
        return np.zeros((0, 0), dtype=np.int32), np.zeros(0, dtype=np.int64)
    padded = np.pad(~mask, 1, constant_values=True)
    _, labels, stats, _ = cv2.connectedComponentsWithStats(padded.view(np.uint8), connectivity=4)
    small = stats[:, cv2.CC_STAT_AREA] <= largest_px
    small[0] = False
    small[labels[0, 0]] = False
    return np.asarray(labels[1:-1, 1:-1]), np.flatnonzero(small)


def _has_holes(mask: Bools) -> bool:
    """Return whether any background is not connected to the border; quicker than labelling it."""
    _, family = cv2.findContours(mask.view(np.uint8), cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
    return family is not None and bool((family[0, :, 3] >= 0).any())


def fill_holes(mask: Bools, largest_px: float) -> Bools:
    """Fill holes (background not connected to the border) of up to ``largest_px`` pixels."""
    labels, holes = holes_of(mask, largest_px)
    if len(holes) == 0:
        return mask
    fill = np.zeros(int(labels.max()) + 1, dtype=bool)
    fill[holes] = True
    return np.asarray(mask | fill[labels])
