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

from calibration.foundation.arrays import Bools, Bytes
from capture.backgrounds.background import SCALE
from capture.silhouettes.runs import Runs, runs_of

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
    return clean_mask(evidence >= low, evidence >= high, cleaning)


def clean_mask(weak: Bools, strong: Bools, cleaning: Cleaning) -> Bools:
    """Return the parts of ``weak`` (H, W) worth keeping, with small holes filled."""
    runs = runs_of(weak, diagonal=True)
    if runs.parts == 0:
        return np.zeros_like(weak)
    areas = runs.areas()
    # One strong pixel may be noise; a strong part has several.
    areas[runs.counts(strong) < np.minimum(3, 0.5 * areas + 1)] = 0
    largest = int(areas.argmax())
    if areas[largest] < cleaning.least_px:
        return np.zeros_like(weak)
    keep = areas >= max(cleaning.least_px, cleaning.part_share * float(areas[largest]))
    _, _, width, height = runs.rectangle(runs.part == largest)
    reach = cleaning.near_share * float(max(width, height))
    small = ~keep & (areas >= cleaning.least_px)
    if small.any() and reach >= 1:
        body = runs.drawn(keep[runs.part]).view(np.uint8)
        x, y, w, h = runs.rectangle(keep[runs.part])
        room = int(reach) + 2
        window = (slice(max(0, y - room), y + h + room), slice(max(0, x - room), x + w + room))
        near = np.zeros_like(weak)
        near[window] = cv2.distanceTransform(1 - body[window], cv2.DIST_L2, cv2.DIST_MASK_3) <= reach
        keep |= small & (runs.counts(near) > 0)
    kept = keep[runs.part]
    mask = runs.drawn(kept)
    # What is kept lies in one rectangle; the rest of the image need not be looked at again.
    x, y, w, h = runs.rectangle(kept)
    here = mask[y : y + h, x : x + w]
    here[:] = fill_holes(here, max(cleaning.least_px, cleaning.hole_share * float(np.count_nonzero(here))))
    return mask


def holes_of(mask: Bools, largest_px: float) -> tuple[Runs, NDArray[np.int64]]:
    """Return the runs of a mask's background, and which of its parts are holes of up to ``largest_px`` pixels."""
    runs = runs_of(mask, diagonal=False, of=False)
    height, width = mask.shape
    small = runs.areas() <= largest_px
    at_border = (runs.row == 0) | (runs.row == height - 1) | (runs.start == 0) | (runs.stop == width)
    small[runs.part[at_border]] = False
    return runs, np.flatnonzero(small)


def fill_holes(mask: Bools, largest_px: float) -> Bools:
    """Fill holes (background not connected to the border) of up to ``largest_px`` pixels."""
    runs, holes = holes_of(mask, largest_px)
    return np.asarray(mask | runs.drawn(runs.of_parts(holes))) if len(holes) else mask
