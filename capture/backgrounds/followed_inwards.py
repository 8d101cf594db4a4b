"""The background behind a subject that hardly leaves its place, followed from outside inwards.

A subject may stay on most of its place for most of the time: a median then *is* the subject. So each pixel keeps the
values that it had for a while (modes), and which of them is the ground is decided from outside inwards: the ground
goes on as it is around the place that changes. What no image ever showed is filled in from its surroundings, with
the spread that the ground has over that distance.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Bools, Bytes, Singles
from calibration.foundation.compiled import compiled
from capture.backgrounds.background import Background, NoiseCurve
from capture.backgrounds.uncovered import Ground, filled, near_unknown, spread_at, variation_of
from capture.discs import disc

__all__ = ["Modes", "brightest_modes", "ground_of", "temporal_modes"]

_MODES = 5
#: A value belongs to a mode within this many standard deviations of the noise.
_BELONGS = 4.0
#: A pixel is steady if one mode holds this share of the images.
_STEADY = 0.9
#: A mode must have been seen in this share of the images, and as often at least.
_LASTING, _LEAST = 0.04, 2
#: A mode is the ground's if it is within this many standard deviations of the ground around.
_GOES_ON = 3.0
#: The ground is followed inwards by this many pixels a turn.
_FRONT_PX = 6
_TURNS = 80
#: Gaps in what changes are closed up to this share of the image's longer side.
_CLOSED = 0.05
#: A thing that never changed belongs to the scene if this share of its rim is quiet.
_QUIET = 0.5


@dataclass(frozen=True, eq=False)
class Modes:
    """The values that each pixel had for a while.

    Attributes:
        means: (K, H, W, C), grey levels.
        counts: (K, H, W) images in which it was seen.
        images: number of images looked at.
    """

    means: Singles
    counts: NDArray[np.int32]
    images: int


def temporal_modes(stack: Bytes, noise: NoiseCurve, free: Bools | None = None) -> Modes:
    """Return the modes of images (n, H, W, C) under one light; where ``free`` (n, H, W) is given, only of those."""
    count, height, width, channels = stack.shape
    means = np.zeros((_MODES, height, width, channels), dtype=np.float32)
    counts = np.zeros((_MODES, height, width), dtype=np.int32)
    tolerance = np.float32(_BELONGS) * noise.at(np.arange(256, dtype=np.float32))
    everywhere = np.ones((1, 1, 1), dtype=bool) if free is None else free
    _gather(stack, everywhere, tolerance, means, counts)
    return Modes(means, counts, count)


@compiled
def _gather(stack: Bytes, free: Bools, tolerance: Singles, means: Singles, counts: NDArray[np.int32]) -> None:
    images, height, width, channels = stack.shape
    number = means.shape[0]
    chosen = free.shape[0] == images
    for y in range(height):
        for x in range(width):
            for n in range(images):
                if chosen and not free[n, y, x]:
                    continue
                for k in range(number):
                    seen = counts[k, y, x]
                    near = True
                    if seen > 0:
                        for c in range(channels):
                            value = stack[n, y, x, c]
                            if abs(np.float32(value) - means[k, y, x, c]) > tolerance[value]:
                                near = False
                                break
                    if near:
                        counts[k, y, x] = seen + 1
                        for c in range(channels):
                            means[k, y, x, c] += (np.float32(stack[n, y, x, c]) - means[k, y, x, c]) / (seen + 1)
                        break


def ground_of(modes: Modes, noise: NoiseCurve) -> Ground:
    """Return the background: of each pixel the mode that goes on from the steady ground around, or a filled value."""
    order = modes.counts.argmax(axis=0)
    centre = np.take_along_axis(modes.means, order[None, :, :, None], axis=0)[0].copy()
    largest = np.take_along_axis(modes.counts, order[None], axis=0)[0]
    unsteady = (largest < _STEADY * modes.images).astype(np.uint8)
    lively = cv2.medianBlur(unsteady, 5)
    reach = max(2, round(_CLOSED * max(lively.shape)))
    padded = np.pad(lively, reach)  # closing must not reach over the image's border
    region = cv2.morphologyEx(padded, cv2.MORPH_CLOSE, disc(reach))
    region = np.ascontiguousarray(region[reach:-reach, reach:-reach])
    outlines, _ = cv2.findContours(region, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    cv2.drawContours(region, outlines, -1, 1, cv2.FILLED)
    region = cv2.dilate(region, disc(2))
    known = region == 0
    if known.all() or not known.any():
        return Ground(Background(centre, noise.at(centre)), np.ones_like(known))
    variation = variation_of(centre, known, cv2.dilate(region, disc(reach)) > 0)
    lasting = modes.counts >= max(_LEAST, _LASTING * modes.images)
    for turn in range(_TURNS):
        expected = filled(centre, known)
        distance = cv2.distanceTransform((~known).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5)
        front = ~known & ((distance <= _FRONT_PX) | (turn == _TURNS - 1))
        rows, columns = np.nonzero(front)
        sigma = np.hypot(
            spread_at(distance[rows, columns], variation), np.float32(0.5) * noise.at(expected[rows, columns])
        )
        away = np.abs(modes.means[:, rows, columns] - expected[rows, columns]) / sigma
        likely = lasting[:, rows, columns] & (away.max(axis=2) < _GOES_ON)
        # Shadows darken: the brightest of what may be the ground is the ground in full light.
        best = np.where(likely, modes.means[:, rows, columns].sum(axis=2), np.float32(-1.0)).argmax(axis=0)
        goes_on = likely.any(axis=0)
        rows, columns, best = rows[goes_on], columns[goes_on], best[goes_on]
        centre[rows, columns] = modes.means[best, rows, columns]
        known[rows, columns] = True
        if len(rows) == 0:
            break
    known |= _furniture(~known & (lively == 0), lively)
    return _completed(centre, known, variation, noise)


def _furniture(steady: Bools, lively: Bytes) -> Bools:
    """Return the parts of what never changed but is unlike the ground around that the subject does not surround.

    A subject that keeps a place covered stirs all around it; a thing that belongs to the scene has quiet edges.
    """
    count, labels, stats, _ = cv2.connectedComponentsWithStats(steady.view(np.uint8), connectivity=4)
    stirred = cv2.dilate(lively, disc(2)) > 0
    quiet = np.zeros(count, dtype=bool)
    for part in range(1, count):
        x, y, w, h = (int(value) for value in stats[part, :4])
        window = (slice(max(0, y - 1), y + h + 1), slice(max(0, x - 1), x + w + 1))
        inside = (labels[window] == part).view(np.uint8)
        rim = (cv2.dilate(inside, np.ones((3, 3), np.uint8)) > inside) & ~stirred[window]
        around = np.count_nonzero(cv2.dilate(inside, np.ones((3, 3), np.uint8)) > inside)
        quiet[part] = np.count_nonzero(rim) > _QUIET * around
    return np.asarray(quiet[labels])


def _completed(centre: Singles, known: Bools, variation: Singles, noise: NoiseCurve) -> Ground:
    """Return the background with what is not known filled in and spread accordingly."""
    full = filled(centre, known)
    distance = cv2.distanceTransform((~known).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5)
    doubt = np.where(known[:, :, None], np.float32(0.0), spread_at(distance, variation))
    return Ground(Background(full, np.hypot(noise.at(full), doubt).astype(np.float32)), known)


def brightest_modes(modes: Modes, seen: NDArray[np.int32], noise: NoiseCurve) -> Ground:
    """Return the background from modes of what was free of the subject in ``seen`` (H, W) images.

    Shadows darken, so of the lasting modes the brightest is the ground in full light.
    """
    least = np.maximum(_LEAST, _LASTING * seen)
    bright = np.where(modes.counts >= least, modes.means.sum(axis=3), np.float32(-1.0))
    order = bright.argmax(axis=0)
    centre = np.take_along_axis(modes.means, order[None, :, :, None], axis=0)[0].copy()
    known = np.take_along_axis(bright, order[None], axis=0)[0] >= 0
    if known.all() or not known.any():
        return Ground(Background(centre, noise.at(centre)), np.ones_like(known))
    return _completed(centre, known, variation_of(centre, known, near_unknown(known)), noise)
