"""Parts that look like shade, and which of them the subject has after all.

Ears, paws and a tail before a grey floor look like shade of it. What tells them is the place (the other views see
something there, well above the floor: `capture.silhouettes.views.restoration`) and that they stand out from how the
ground around is lit. Shade is smooth: the ratio of image and background is measured around, where the subject cannot
be, and carried on inwards; how far that may be wrong is how much the ratio varies over the distance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Bools, Bytes, Floats, Singles
from calibration.foundation.compiled import compiled
from capture.backgrounds.appearance import disc
from capture.backgrounds.background import SCALE
from capture.backgrounds.evidence import Evidence
from capture.backgrounds.uncovered import filled, spread_at, variation_of
from capture.mask_boxes import box_of
from capture.silhouettes.cleanup import Cleaning, fill_holes
from capture.silhouettes.difference import PlateModel, matched_channels
from capture.silhouettes.edges.half_way import half_way_edge
from capture.silhouettes.runs import Runs, runs_of, runs_where

__all__ = ["Doubt", "doubt_of", "standing_out"]

#: Room around a silhouette in which its missing parts are looked for, share of its extent, and px.
_ROOM, _ROOM_PX = 1.0, 16
#: The same where the border cuts what is found: a share of the extent is not seen.
_ROOM_CUT = 1.5
#: Least error of the ratio that ground is lit by, share; and standard deviations that a part must stand out by.
_RATIO_ERROR = 0.03
_STANDS_OUT = 4.0
#: Ratios that ground may be lit by; pixels between silhouette and ground that are neither.
_LIT = (0.35, 1.2)
_BETWEEN_PX = 2
#: What is evident differs by so many times what is weak; holes of this radius in it are none, px.
_EVIDENT = 2
_HOLE_PX = 3
#: In windows that are larger, light is looked at in as many pixels along the longer side only.
_LARGE_PX = 80
#: Pixels along a window's rim that nothing may reach.
_RIM_PX = 3
#: Around what is asked the ratio's variation is measured, px.
_AROUND_PX = 25
#: In as many places, about.
_ENOUGH = 2000
#: Pixels around those whose edge is found by which it is.
_EDGE_PX = 10


@dataclass(frozen=True, eq=False)
class Doubt:
    """What differs from the background around a silhouette, shade or not.

    Attributes:
        window: rows and columns of the image that are looked at.
        plain: (h, w) the distance from the background, shade or not, in units of 1 / `SCALE` standard deviations.
        shaded: (h, w) the same, but 0 where it may be shade.
        low: from where on it differs, in the same units.
        image: (h, w, C) of the image.
        light: (C,) gain of its light.
    """

    window: tuple[slice, slice]
    plain: Bytes
    shaded: Bytes
    low: np.uint8
    image: Bytes
    light: Floats

    @property
    def wide(self) -> Bools:
        """(h, w) what differs."""
        return np.asarray(self.plain >= self.low)

    def around(self, mask: Bools) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
        """Return the part of the window that is needed to judge a mask (h, w) in it: in the window, in the image."""
        x, y, w, h = box_of(mask)
        rows = slice(max(0, y - _AROUND_PX), min(mask.shape[0], y + h + _AROUND_PX))
        columns = slice(max(0, x - _AROUND_PX), min(mask.shape[1], x + w + _AROUND_PX))
        top, left = self.window[0].start, self.window[1].start
        return (rows, columns), (
            slice(top + rows.start, top + rows.stop),
            slice(left + columns.start, left + columns.stop),
        )

    def evident(self, mask: Bools) -> tuple[Bools, Bools]:
        """Return (h, w) what of a silhouette evidently differs from the background, and what else does, no shade."""
        high = _high(self.low)
        x, y, w, h = box_of(mask)
        room = 2 * _HOLE_PX + 1
        here = (slice(max(0, y - room), y + h + room), slice(max(0, x - room), x + w + room))
        differs = (cv2.blur(self.plain, (3, 3))[here] >= high).view(np.uint8)
        own = np.zeros_like(mask)
        own[here] = cv2.morphologyEx(differs, cv2.MORPH_CLOSE, disc(_HOLE_PX)).view(np.bool_) & mask[here]
        return own, (cv2.blur(self.shaded, (3, 3)) >= high) & ~mask

    def whole(self, mask: Bools) -> Bools:
        """Return (h, w) a silhouette in the window with what differs and hangs together with it."""
        runs = runs_where(self.plain, self.low, mask)
        return runs.drawn(runs.holding(mask)[runs.part])


def doubt_of(
    image: Bytes,
    mask: Bools,
    model: PlateModel,
    cleaning: Cleaning,
    light: Floats | None = None,
    *,
    apart: bool = True,
    known: Evidence | None = None,
) -> Doubt | None:
    """Return what differs around a silhouette (H, W) in an image of known ``light``; None where there is none.

    The window holds the silhouette and what differs and hangs together with it, clear of its rim; where the image's own
    border cuts that, it reaches there: what lies beyond is not known, and the views must see that. ``apart``: it
    also holds what may be shade and does not hang together with the silhouette, but may be a thin part of it.
    ``known``: what was measured of the image before.
    """
    height, width = mask.shape
    x, y, w, h = box_of(mask)
    if w == 0:
        return None
    if light is None:
        light = model.light(image)
    low = np.uint8(min(255.0, cleaning.low * SCALE))
    frame = matched_channels(image, model.background)
    for share in (_ROOM, _ROOM_CUT):
        room = round(share * max(w, h)) + _ROOM_PX
        rows = slice(max(0, y - room), min(height, y + h + room))
        columns = slice(max(0, x - room), min(width, x + w + room))
        shaded, plain = model.both_in(frame, (rows, columns), light, known)
        own = mask[rows, columns]
        runs = runs_where(plain, low, own)
        found = runs.holding(own)[runs.part]
        borders = (rows.start == 0, rows.stop == height, columns.start == 0, columns.stop == width)
        cut = [border and reaches for border, reaches in zip(borders, _reaching(runs, found), strict=True)]
        if not any(cut):
            break
    if apart or any(cut):
        boxes = [runs.rectangle(np.ones_like(found))]
    else:
        evident = box_of(shaded >= _high(low))
        boxes = [runs.rectangle(found), *([evident] if evident[2] else [])]
    here = _needed(runs.shape, boxes, cut)
    shaded, plain = shaded[here].copy(), plain[here].copy()
    for image_of in (plain, shaded):
        for rim, is_cut in zip(_rims(image_of), cut, strict=True):
            if not is_cut:
                rim[:] = 0
    top, left = rows.start, columns.start
    window = (slice(top + here[0].start, top + here[0].stop), slice(left + here[1].start, left + here[1].stop))
    return Doubt(window, plain, shaded, low, frame[window].copy(), light)


def _reaching(runs: Runs, chosen: Bools) -> tuple[bool, bool, bool, bool]:
    """Return whether the runs chosen (n,) reach the upper, lower, left and right rim of their window."""
    height, width = runs.shape
    left, top, w, h = runs.rectangle(chosen)
    return top < _RIM_PX, top + h > height - _RIM_PX, left < _RIM_PX, left + w > width - _RIM_PX


def _needed(
    shape: tuple[int, int], boxes: Sequence[tuple[int, int, int, int]], cut: Sequence[bool]
) -> tuple[slice, slice]:
    """Return the part of a window (h, w) that is needed to judge what lies in boxes (left, top, width, height).

    It reaches the sides (upper, lower, left, right) that ``cut`` it.
    """
    height, width = shape
    room = _AROUND_PX + _RIM_PX
    top, bottom = min(y for _, y, _, _ in boxes), max(y + h for _, y, _, h in boxes)
    left, right = min(x for x, _, _, _ in boxes), max(x + w for x, _, w, _ in boxes)
    return (
        slice(0 if cut[0] else max(0, top - room), height if cut[1] else min(height, bottom + room)),
        slice(0 if cut[2] else max(0, left - room), width if cut[3] else min(width, right + room)),
    )


def _high(low: np.uint8) -> np.uint8:
    """Return from where on something differs evidently."""
    return np.uint8(min(255, _EVIDENT * int(low)))


def _rims(image: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Return the pixels along the upper, lower, left and right rim of an image (h, w)."""
    return image[:_RIM_PX], image[-_RIM_PX:], image[:, :_RIM_PX], image[:, -_RIM_PX:]


def standing_out(doubt: Doubt, mask: Bools, seen: Bools, model: PlateModel) -> Bools:
    """Return the silhouette (h, w) with those of the pixels ``seen`` (h, w) by others that stand out from the shade.

    Both are of the doubt's window.
    """
    asked = seen & ~mask
    if not asked.any():
        return mask
    here, window = doubt.around(seen | mask)
    own, asked, image = mask[here], asked[here], np.ascontiguousarray(doubt.image[here])
    centre, gain = model.background.centre[window], doubt.light.astype(np.float32)
    at = np.divmod(np.flatnonzero(asked), asked.shape[1])
    step = -(-max(own.shape) // _LARGE_PX)
    ratio, error = _lighting(_ratios(image, centre, gain, step), own | asked, at, step)
    picture, ground = image[at].astype(np.float32), centre[at] * gain
    spread = np.square(model.background.spread[window][at])
    spread += np.square((error + np.float32(_RATIO_ERROR)) * ground)
    found = own.copy()
    found[at] = (np.square(picture - ratio * ground) / spread).mean(axis=1) > _STANDS_OUT**2
    least = max(Cleaning.least_px, Cleaning.hole_share * float(np.count_nonzero(own)))
    found = fill_holes(_without_specks(found, own, least), least)
    x, y, w, h = box_of(found & ~own)
    if w == 0:
        return mask
    # Only what is new has an edge to be found.
    rows, columns = slice(max(0, y - _EDGE_PX), y + h + _EDGE_PX), slice(max(0, x - _EDGE_PX), x + w + _EDGE_PX)
    near = found[rows, columns], image[rows, columns], centre[rows, columns]
    out = mask.copy()
    out[here][rows, columns] |= half_way_edge(*near, doubt.light, own[rows, columns])
    return out


def _lighting(ratio: Singles, covered: Bools, at: tuple[NDArray[np.intp], ...], step: int) -> tuple[Singles, Singles]:
    """Return (n, C) the ratio that the ground is lit by at pixels under what is covered, and its error.

    Light is smooth: ``ratio`` is that of every ``step``-th pixel along both axes.
    """
    free = cv2.dilate(covered.view(np.uint8), disc(_BETWEEN_PX))[::step, ::step] == 0
    free &= (ratio.min(axis=2) > _LIT[0]) & (ratio.max(axis=2) < _LIT[1])
    at = tuple(one // step for one in at)
    if not free.any():
        return np.ones_like(ratio[at]), np.ones_like(ratio[at])
    covered = covered[::step, ::step]
    near = cv2.distanceTransform((~covered).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5) < _AROUND_PX / step
    variation = variation_of(ratio, free, near, step, _ENOUGH)
    distance = np.float32(step) * cv2.distanceTransform((~free).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5)
    return filled(ratio, free)[at], spread_at(distance[at], variation)


@compiled
def _ratios(image: Bytes, centre: Singles, gain: Singles, step: int) -> Singles:
    """Return (h, w, C) image over ground of every ``step``-th pixel along both axes, each the mean of nine pixels."""
    height, width, channels = image.shape
    out = np.empty((-(-height // step), -(-width // step), channels), np.float32)
    for row in range(out.shape[0]):
        for column in range(out.shape[1]):
            for c in range(channels):
                now, then = np.float32(0.0), np.float32(0.0)
                for dy in range(-1, 2):
                    # Beyond the picture it is as mirrored at its outermost pixels.
                    y = abs(row * step + dy)
                    y = y if y < height else max(0, 2 * height - 2 - y)
                    for dx in range(-1, 2):
                        x = abs(column * step + dx)
                        x = x if x < width else max(0, 2 * width - 2 - x)
                        now += np.float32(image[y, x, c])
                        then += centre[y, x, c]
                ground = then * gain[c] / np.float32(9.0)
                out[row, column, c] = now / np.float32(9.0) / max(ground, np.float32(8.0))
    return out


def _without_specks(mask: Bools, body: Bools, least_px: float) -> Bools:
    """Return the parts of a mask (h, w) that hold some of a body or are no specks: a tail may lose its base."""
    runs = runs_of(mask, diagonal=True)
    keep = runs.holding(body) | (runs.areas() >= least_px)
    return np.asarray(runs.drawn(keep[runs.part])) if runs.parts else mask
