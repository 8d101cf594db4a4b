"""Tails and paws that look like shade and lie where shade is, given back where the views see them in one place.

What is thin in one view (`capture.silhouettes.edges.hats`) may be a speck of light on metal, the line of a mirror
image, a scratch that a change of light shows. Above the floor and in one place with what is thin, or in the silhouette,
in the other views it is a part of the subject. What is darker than its sides and nothing else may be the shade of a
tail, which lies on the floor: it must be above the marks that the floor has. What is red but broad all views must have.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools
from capture.mask_runs import runs_of
from capture.silhouettes.edges.hats import ThinParts
from capture.silhouettes.views.confirmation import Floor, Sights, larger_by, may_be_wrong
from capture.silhouettes.views.lines_of_sight import Frame, Scene

__all__ = ["with_thin_parts"]

#: Others count as larger by this share of the image's longer side.
_SLACK = 0.0015
#: A part hangs together with the silhouette across gaps of this many pixels.
_GAP_PX = 3
#: Pixels along a silhouette that are mixed with it and no parts of their own.
_RIM_PX = 1
#: Smaller parts are specks.
_LEAST_PX = 12


def with_thin_parts(
    masks: Sequence[Bools],
    parts: Sequence[ThinParts],
    rig: Rig,
    floor: Floor,
    side: int | None = None,
    frames: Sequence[Frame] | None = None,
) -> list[Bools]:
    """Return the silhouettes (H, W) of one frame with what is thin around them and the other views have.

    ``side``: longer side of the images, px, where masks and rig are of parts of them. ``frames``: what
    parts they are.
    """
    strong = [mask | part.thin for mask, part in zip(masks, parts, strict=True)]
    sights = Sights(strong, Scene.of(strong, rig, frames), larger_by(_SLACK, masks, side))
    out = list(masks)
    if len(sights.used) < 3:
        return out
    above = floor.marks if np.isfinite(floor.marks) else floor.height
    for place, index in enumerate(int(one) for one in sights.used):
        mask, part = masks[index], parts[index]
        found = np.zeros_like(mask)
        for kind, height, wrong in (
            (part.skin, floor.height, may_be_wrong(rig)),
            (part.dark, above, may_be_wrong(rig)),
            (part.broad, floor.height, 0),
        ):
            asked = kind & ~mask
            if asked.any():
                found |= sights.seen(place, asked, (height, floor.up * np.inf), wrong)[0]
        if found.any():
            out[index] = mask | _hanging_on(found, mask)
    return out


def _hanging_on(found: Bools, mask: Bools) -> Bools:
    """Return the parts of what was found outside a mask (h, w) that are no specks, nor its rim, and hang on to it."""
    rim = cv2.dilate(mask.view(np.uint8), np.ones((2 * _RIM_PX + 1, 2 * _RIM_PX + 1), np.uint8)).view(np.bool_)
    beyond: Bools = np.asarray(found & ~rim)
    if not beyond.any():
        return beyond
    x, y, w, h = cv2.boundingRect((found | mask).view(np.uint8))
    here = (slice(max(0, y - _GAP_PX), y + h + _GAP_PX), slice(max(0, x - _GAP_PX), x + w + _GAP_PX))
    own, some = np.ascontiguousarray(mask[here]), np.ascontiguousarray(beyond[here])
    square = np.ones((2 * _GAP_PX + 1, 2 * _GAP_PX + 1), np.uint8)
    parts = runs_of(some, diagonal=True)
    some = parts.drawn(parts.areas >= _LEAST_PX)
    part = found[here] & cv2.dilate(some.view(np.uint8), square).view(np.bool_)
    near = runs_of(cv2.dilate((part | own).view(np.uint8), square).view(np.bool_), diagonal=True)
    out = np.zeros_like(mask)
    out[here] = part & near.drawn(near.holding(own))
    return out
