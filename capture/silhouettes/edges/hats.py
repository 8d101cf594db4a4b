"""What is thin around a silhouette: tails, paws and toes, darker or brighter than both of their sides.

Shade and the mirror image of a body change the brightness of the ground over wide patches, with edges but without thin
lines and spots. So what remains after everything that is narrower than a paw is taken out of the ratio of image and
ground (a hat transform) is no shade, though it may look like one. The silhouette itself, and its mixed edge, is left
out: a lit gap between belly and shadow is thin only because the body is dark.
"""

from __future__ import annotations

import cv2
import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Floats, Singles
from capture.backgrounds.background import Background

__all__ = ["thin_structures"]

#: Parts up to twice this share of the silhouette's size (root of its area) are thin.
_THIN = 0.055
#: They stand out by so many times what noise makes of the ratio's logarithm, with this error of it.
_STANDS_OUT, _ERROR = 3.0, 0.02
#: Pixels around the silhouette that are mixed with it; gaps in thin parts that are none.
_MIXED_PX = 3
_GAP_PX = 2
#: How far the blur of image and ground reaches.
_BLUR_PX = 5
#: Thin parts reach no farther from the silhouette than this share of its extent.
_REACH = 1.5
#: Brightness that noise and black level make of no light.
_DARK = np.float32(8.0)
_FAR = np.float32(1e3)


def thin_structures(image: Bytes, ground: Background, light: Floats, differs: Bools, mask: Bools) -> Bools:
    """Return (h, w) what ``differs`` outside a silhouette and is thin, in brightness or redness.

    Args:
        image: (h, w, C).
        ground: the empty scene, of the same window.
        light: (C,) gain of the image's light.
        differs: (h, w) pixels that differ from the ground, shade or not.
        mask: (h, w) the silhouette.
    """
    out = np.zeros_like(mask)
    x, y, w, h = cv2.boundingRect(mask.view(np.uint8))
    room = round(_REACH * max(w, h))
    near = (slice(max(0, y - room), y + h + room), slice(max(0, x - room), x + w + room))
    wide = np.zeros_like(mask)
    wide[near] = differs[near] & ~mask[near]
    x, y, w, h = cv2.boundingRect(wide.view(np.uint8))
    if w == 0:
        return out
    # What lies farther away than a hat is wide, twice, has no say.
    radius = max(3, round(_THIN * float(np.sqrt(np.count_nonzero(mask)))))
    room = 2 * radius + _BLUR_PX + _GAP_PX
    top, left = max(near[0].start, y - room), max(near[1].start, x - room)
    here = (slice(top, min(near[0].stop, y + h + room)), slice(left, min(near[1].stop, x + w + room)))
    logs, noise = _logarithms(image[here], Background(ground.centre[here], ground.spread[here]), light)
    body = cv2.dilate(np.ascontiguousarray(mask[here]).view(np.uint8), _square(_MIXED_PX)).view(np.bool_)
    height = np.maximum(*_hats(np.asarray(sum(logs), np.float32) / np.float32(len(logs)), body, radius))
    if len(logs) == 3:
        height = np.maximum(height, _hats(logs[2] - logs[1], body, radius)[0])
    found = (height > np.float32(_STANDS_OUT) * (noise + np.float32(_ERROR))) & wide[here]
    out[here] = cv2.morphologyEx(found.view(np.uint8), cv2.MORPH_CLOSE, _square(_GAP_PX)).view(np.bool_) & wide[here]
    return out


def _logarithms(image: Bytes, ground: Background, light: Floats) -> tuple[list[Singles], Singles]:
    """Return the logarithm of the ratio of image and ground, channel by channel, and what noise makes of it."""
    shape = image.shape
    lit = cv2.GaussianBlur(ground.centre * light.astype(np.float32), (0, 0), 1.0).reshape(shape) + _DARK
    seen = cv2.GaussianBlur(image.astype(np.float32), (0, 0), 1.0).reshape(shape) + _DARK
    logs = list(cv2.split(cv2.log(seen / lit)))
    noise = cv2.split(ground.spread / lit)
    return logs, np.asarray(sum(noise), np.float32) / np.float32(len(logs))


def _hats(values: Singles, body: Bools, radius: int) -> tuple[Singles, Singles]:
    """Return (h, w) by how much values are above and below what is left of them without thin parts, the body apart."""
    square = _square(radius)
    least = cv2.erode(np.where(body, _FAR, values), square)
    above = values - cv2.dilate(np.where(least >= _FAR, -_FAR, least), square)
    most = cv2.dilate(np.where(body, -_FAR, values), square)
    below = cv2.erode(np.where(most <= -_FAR, _FAR, most), square) - values
    return above, below


def _square(radius: int) -> np.ndarray:
    return np.ones((2 * radius + 1, 2 * radius + 1), np.uint8)
