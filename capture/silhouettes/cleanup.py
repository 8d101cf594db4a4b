"""From evidence to a clean silhouette, thin parts kept.

No opening and no median: they eat tails and paws. Instead, weak evidence counts where it hangs together with
strong evidence (hysteresis), parts are judged as wholes by size and distance from the body, and holes are filled
by size.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Ints
from calibration.foundation.compiled import compiled
from capture.backgrounds.background import SCALE
from capture.mask_runs import Runs, runs_of, runs_where

__all__ = [
    "Cleaning",
    "Holes",
    "clean_mask",
    "clean_mask_and_holes",
    "fill_holes",
    "holes_between",
    "holes_of",
    "silhouette_and_holes",
    "silhouette_of",
]


@dataclass(frozen=True)
class Cleaning:
    """How evidence becomes a silhouette.

    Attributes:
        low: weak evidence, standard deviations.
        high: strong evidence, standard deviations; a part without any is dropped.
        part_share: parts smaller than this share of the largest are dropped, unless they are near it.
        near_share: a small part is near if closer than this share of the largest part's extent.
        hanging_share: the same where all between them differs from the background, if only as shade does: a foot
            below a shank of the floor's colour.
        least_px: parts smaller than this are always dropped.
        hole_share: holes smaller than this share of the silhouette, or than ``least_px``, are filled.
    """

    low: float = 4.0
    high: float = 9.0
    part_share: float = 0.1
    near_share: float = 0.1
    hanging_share: float = 0.3
    least_px: int = 12
    hole_share: float = 0.003


@dataclass(frozen=True, eq=False)
class Holes:
    """The holes of a mask: background that does not hang together with the border.

    Attributes:
        runs: all that is not set in the mask's rectangle.
        part: (n,) which of its parts are holes.
        areas: (n,) their pixels.
    """

    runs: Runs
    part: Ints
    areas: Ints

    def counts(self, mask: Bools) -> Ints:
        """Return (n,) how many pixels of each are set in another mask (H, W)."""
        return np.asarray(self.runs.counts(mask)[self.part])

    def fill(self, mask: Bools, chosen: Bools) -> None:
        """Set the holes chosen (n,) in a mask (H, W), in place."""
        if chosen.any():
            self.runs.drawn(self.parts(chosen), mask)

    def parts(self, chosen: Bools) -> Bools:
        """Return (parts,) which parts of the runs are the holes chosen (n,)."""
        out = np.zeros(len(self.runs.areas), dtype=bool)
        out[self.part[chosen]] = True
        return out

    def only(self, chosen: Bools) -> Holes:
        """Return the holes chosen (n,) alone."""
        return Holes(self.runs, self.part[chosen], self.areas[chosen])


def silhouette_of(evidence: Bytes, cleaning: Cleaning) -> Bools:
    """Return (H, W) the silhouette in an evidence image."""
    return silhouette_and_holes(evidence, cleaning)[0]


def silhouette_and_holes(evidence: Bytes, cleaning: Cleaning, plain: Bytes | None = None) -> tuple[Bools, Holes]:
    """Return (H, W) the silhouette in an evidence image, and the holes that it has.

    ``plain``: (H, W) the evidence without a rule of shade, where parts may hang on to the body by what looks like it.
    """
    low, high = (np.uint8(min(255.0, sigma * SCALE)) for sigma in (cleaning.low, cleaning.high))
    runs = runs_where(evidence, low)
    return _cleaned(runs, runs.counts_from(evidence, high), cleaning, plain)


def clean_mask(mask: Bools, cleaning: Cleaning, plain: Bytes | None = None) -> Bools:
    """Return the parts of a mask (H, W) worth keeping, with small holes filled; ``plain``: as above."""
    return clean_mask_and_holes(mask, cleaning, plain)[0]


def clean_mask_and_holes(mask: Bools, cleaning: Cleaning, plain: Bytes | None = None) -> tuple[Bools, Holes]:
    """Return a mask (H, W) as `clean_mask` does, and the holes that it has."""
    runs = runs_of(mask, diagonal=True)
    return _cleaned(runs, runs.areas, cleaning, plain)


def _cleaned(runs: Runs, strong: Ints, cleaning: Cleaning, plain: Bytes | None) -> tuple[Bools, Holes]:
    """Return the parts worth keeping and their holes; ``strong``: (parts,) how many strong pixels each has."""
    areas, keep, small = _large_parts(runs.areas, strong, cleaning.least_px, cleaning.part_share)
    if not keep.any():
        nothing = np.zeros(0, np.int64)
        return np.zeros(runs.shape, dtype=bool), Holes(runs, nothing, nothing)
    if small.any():
        keep = _with_near_parts(runs, int(areas.argmax()), keep, small, cleaning, plain)
    mask = runs.drawn(keep)
    holes = holes_between(runs, keep)
    filled = holes.areas <= max(cleaning.least_px, cleaning.hole_share * float(areas[keep].sum()))
    holes.fill(mask, filled)
    return mask, holes.only(~filled)


@compiled
def _large_parts(areas: Ints, strong: Ints, least: int, share: float) -> tuple[Ints, Bools, Bools]:
    """Return (parts,) areas, 0 if not strong, which are large, and which are not but are no specks."""
    out, largest = areas.copy(), 0
    for n in range(len(areas)):
        # One strong pixel may be noise; a strong part has several.
        if strong[n] < min(3.0, 0.5 * areas[n] + 1.0):
            out[n] = 0
        largest = max(largest, out[n])
    large = out >= max(float(least), share * largest)
    return out, large, (out >= least) & ~large


def _with_near_parts(
    runs: Runs, largest: int, large: Bools, small: Bools, cleaning: Cleaning, plain: Bytes | None
) -> Bools:
    """Return (parts,) which parts are large, or small and near what is large, or hang on to it across shade."""
    _, _, width, height = runs.rectangle(np.arange(len(large)) == largest)
    extent = float(max(width, height))
    keep = large | (small & _close_to(runs, large, cleaning.near_share * extent))
    if plain is not None and (small & ~keep).any():
        low = np.uint8(min(255.0, cleaning.low * SCALE))
        differs = runs_where(plain, low, runs.drawn(runs.all()))
        reached = differs.drawn(differs.holding(runs.drawn(large)))
        keep |= small & _close_to(runs, large, cleaning.hanging_share * extent) & runs.holding(reached)
    return np.asarray(keep)


def _close_to(runs: Runs, chosen: Bools, reach: float) -> Bools:
    """Return (parts,) which parts are within ``reach`` px of those chosen (parts,)."""
    if reach < 1:
        return chosen
    body = runs.drawn(chosen).view(np.uint8)
    x, y, w, h = runs.rectangle(chosen)
    room = int(reach) + 2
    window = (slice(max(0, y - room), y + h + room), slice(max(0, x - room), x + w + room))
    near = np.zeros(runs.shape, dtype=bool)
    near[window] = cv2.distanceTransform(1 - body[window], cv2.DIST_L2, cv2.DIST_MASK_3) <= reach
    return runs.holding(near)


def holes_of(mask: Bools) -> Holes:
    """Return the holes of a mask (H, W)."""
    runs = runs_of(mask, diagonal=True)
    return holes_between(runs, runs.all())


def holes_between(runs: Runs, chosen: Bools) -> Holes:
    """Return the holes between the parts chosen (parts,)."""
    if not chosen.any():
        return Holes(runs, np.zeros(0, np.int64), np.zeros(0, np.int64))
    rest, inner = runs.between(chosen)
    part = np.flatnonzero(inner)
    return Holes(rest, part, rest.areas[part])


def fill_holes(mask: Bools, largest_px: float) -> Bools:
    """Fill holes (background not connected to the border) of up to ``largest_px`` pixels."""
    holes = holes_of(mask)
    small = holes.areas <= largest_px
    if not small.any():
        return mask
    out = mask.copy()
    holes.fill(out, small)
    return out
