"""Parts that look like shade, and which of them the subject has after all.

Ears, paws and a tail before a grey floor look like shade of it. What tells them is the place (the other views see
something there, well above the floor: `capture.silhouettes.views.restoration`) and that they stand out from how the
ground around is lit. Shade is smooth: the ratio of image and background is measured around, where the subject cannot
be, and carried on inwards; how far that may be wrong is how much the ratio varies over the distance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Floats, Singles
from capture.backgrounds.appearance import disc
from capture.backgrounds.background import SCALE, Background
from capture.backgrounds.uncovered import filled, spread_at, variation_of
from capture.silhouettes.cleanup import Cleaning, fill_holes
from capture.silhouettes.difference import PlateModel, matched_channels
from capture.silhouettes.edges.half_way import half_way_edge
from capture.silhouettes.runs import runs_of

__all__ = ["Doubt", "doubt_of", "standing_out"]

#: Room around a silhouette in which its missing parts are looked for, share of its extent, and px.
_ROOM, _ROOM_PX = 1.0, 16
#: Least error of the ratio that ground is lit by, share; and standard deviations that a part must stand out by.
_RATIO_ERROR = 0.03
_STANDS_OUT = 4.0
#: Ratios that ground may be lit by; pixels between silhouette and ground that are neither.
_LIT = (0.35, 1.2)
_BETWEEN_PX = 2
#: What is evident differs by so many times what is weak; holes of this radius in it are none, px.
_EVIDENT = 2.0
_HOLE_PX = 3
#: Around what is asked the ratio's variation is measured, px.
_AROUND_PX = 25


@dataclass(frozen=True, eq=False)
class Doubt:
    """What differs from the background around a silhouette, shade or not.

    Attributes:
        window: rows and columns of the image that are looked at.
        wide: (h, w) what differs.
        image: (h, w, C) of the image.
        light: (C,) gain of its light.
    """

    window: tuple[slice, slice]
    wide: Bools
    image: Bytes
    light: Floats

    def within(self, mask: Bools) -> Doubt:
        """Return the part of the window around a mask (H, W) that is needed to judge it."""
        x, y, w, h = cv2.boundingRect(mask[self.window].view(np.uint8))
        part = (slice(max(0, y - _AROUND_PX), y + h + _AROUND_PX), slice(max(0, x - _AROUND_PX), x + w + _AROUND_PX))
        first = [side.start + here.start for side, here in zip(self.window, part, strict=True)]
        image = self.image[part]
        window = (slice(first[0], first[0] + image.shape[0]), slice(first[1], first[1] + image.shape[1]))
        return Doubt(window, self.wide[part], np.ascontiguousarray(image), self.light)

    def evident(self, model: PlateModel, cleaning: Cleaning) -> tuple[Bools, Bools]:
        """Return (h, w) what differs beyond doubt from the background, and what of it cannot be shade."""
        here = replace(model, background=_part(model.background, self.window), states=())
        both = []
        for one in (replace(here, shadow_floor=1.0, highlight=1.0), here):
            distance = cv2.blur(one.evidence_in(self.image, None, self.light), (3, 3))
            both.append(distance >= np.uint8(min(255.0, _EVIDENT * cleaning.low * SCALE)))
        closed = cv2.morphologyEx(both[0].view(np.uint8), cv2.MORPH_CLOSE, disc(_HOLE_PX))
        return closed.view(np.bool_), both[1]

    def whole(self, mask: Bools) -> Bools:
        """Return (H, W) a silhouette with what differs and hangs together with it."""
        here = self.wide | mask[self.window]
        out = mask.copy()
        out[self.window] = _hanging_together(here, mask[self.window])
        return out


def doubt_of(image: Bytes, mask: Bools, model: PlateModel, cleaning: Cleaning) -> Doubt | None:
    """Return what differs around a silhouette (H, W) in an image; None where there is none."""
    x, y, w, h = cv2.boundingRect(mask.view(np.uint8))
    if w == 0:
        return None
    room = round(_ROOM * max(w, h)) + _ROOM_PX
    window = (slice(max(0, y - room), y + h + room), slice(max(0, x - room), x + w + room))
    light = model.light(image)
    plain = replace(model, shadow_floor=1.0, highlight=1.0).evidence_in(image, window, light)
    part = matched_channels(image, model.background)[window]
    return Doubt(window, plain >= np.uint8(min(255.0, cleaning.low * SCALE)), part.copy(), light)


def standing_out(doubt: Doubt, mask: Bools, seen: Bools, model: PlateModel) -> Bools:
    """Return the silhouette (H, W) with those of the pixels ``seen`` (H, W) by others that stand out from the shade."""
    if not (seen & ~mask).any():
        return mask
    doubt = doubt.within(seen | mask)
    own, asked = mask[doubt.window], (seen & ~mask)[doubt.window]
    ground = (model.background.centre[doubt.window] * doubt.light).astype(np.float32)
    picture: Singles = doubt.image.astype(np.float32)
    ratio, error = _lighting(picture, ground, own | asked)
    spread = np.square(model.background.spread[doubt.window]) + np.square((error + np.float32(_RATIO_ERROR)) * ground)
    away = (np.square(picture - ratio * ground) / spread).mean(axis=2)
    least = max(Cleaning.least_px, Cleaning.hole_share * float(np.count_nonzero(own)))
    found = fill_holes(_without_specks(own | (asked & (away > _STANDS_OUT**2)), own, least), least)
    out = mask.copy()
    out[doubt.window] = own | half_way_edge(found, doubt.image, model.background.centre[doubt.window], doubt.light)
    return out


def _lighting(picture: Singles, ground: Singles, covered: Bools) -> tuple[Singles, Singles]:
    """Return (h, w, C) the ratio that the ground is lit by, carried on under what is covered, and its error."""
    smooth = [cv2.blur(one, (3, 3)).reshape(one.shape) for one in (picture, ground)]
    ratio = smooth[0] / np.maximum(smooth[1], np.float32(8.0))
    free = cv2.dilate(covered.view(np.uint8), disc(_BETWEEN_PX)) == 0
    free &= (ratio.min(axis=2) > _LIT[0]) & (ratio.max(axis=2) < _LIT[1])
    if not free.any():
        return np.ones_like(ratio), np.ones_like(ratio)
    near = cv2.distanceTransform((~covered).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5) < _AROUND_PX
    variation = variation_of(ratio, free, near)
    distance = cv2.distanceTransform((~free).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5)
    return filled(ratio, free), spread_at(distance, variation)


def _part(background: Background, window: tuple[slice, slice]) -> Background:
    return Background(background.centre[window], background.spread[window])


def _without_specks(mask: Bools, body: Bools, least_px: float) -> Bools:
    """Return the parts of a mask (h, w) that hold some of a body or are no specks: a tail may lose its base."""
    runs = runs_of(mask, diagonal=True)
    keep = (runs.counts(body) > 0) | (runs.areas() >= least_px)
    return np.asarray(runs.drawn(keep[runs.part])) if runs.parts else mask


def _hanging_together(mask: Bools, body: Bools) -> Bools:
    """Return the parts of a mask (h, w) that hold some of a body."""
    runs = runs_of(mask, diagonal=True)
    return np.asarray(runs.drawn((runs.counts(body) > 0)[runs.part])) if runs.parts else mask
