"""The edge of a silhouette before a screen: where half of a pixel is the subject.

A pixel of the rim is a mixture of the screen and of the subject's own colour there. That colour is found by climbing:
from the pixel to where, not far off, more of the same contrast to the screen is seen, and on until it does not rise
any more. So it is each part's own, however many colours the subject has, and a rim that moves or a codec blurred is
climbed as far as it goes. (`capture.silhouettes.edges.half_way` takes one mean of what lies two pixels deep.)
"""

from __future__ import annotations

import cv2
import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Singles
from calibration.foundation.compiled import compiled
from capture.mask_boxes import box_of

__all__ = ["keyed_edge"]

#: One step of the climb, px: over several pixels a slow rise stands out from noise.
_STEP_PX = 3
#: Light and colour that a pixel and its summit are told by, standard deviations of the noise.
_TOLD, _TOLD_WELL = 2.0, 4.0
#: Cosine of the angle up to which two contrasts are of one mixture: 45 degrees; a codec blurs colour more than light.
_ALIKE = 0.70710678
#: What changes less behind a pixel than this share of what it rises before it is no slope.
_PLAIN = 0.125
#: Light, and two axes of colour, of blue, green and red (ITU-R BT.601), as codecs keep them.
_LIGHT_AND_COLOUR = np.array([[0.114, 0.587, 0.299], [0.5, -0.3313, -0.1687], [-0.0813, -0.4187, 0.5]], np.float32)
#: Pixels by which a silhouette may be too small: where the key sees only what is quite unlike the screen.
_GROWN_PX = 2


def keyed_edge(mask: Bools, image: Bytes, screen: Singles, sigma: float) -> Bools:
    """Return a silhouette (H, W) with its edge at half of the subject; it may fall into pieces where that is faint.

    Args:
        mask: a silhouette.
        image: (H, W, 3) in which it was found.
        screen: (H, W, 3) what would be seen without the subject.
        sigma: noise, grey levels.
    """
    x, y, w, h = box_of(mask)
    if w == 0:
        return mask
    room = _GROWN_PX + 2
    here = (slice(max(0, y - room), y + h + room), slice(max(0, x - room), x + w + room))
    contrast = cv2.transform(image[here].astype(np.float32) - screen[here], _LIGHT_AND_COLOUR)
    size = np.sqrt((contrast * contrast).sum(axis=2))
    some = mask[here].view(np.uint8).copy()
    _grow(some, contrast, size, np.float32(sigma))
    _peel(some, contrast, size, np.float32(sigma))
    out = mask.copy()
    out[here] = some.view(np.bool_)
    return out


@compiled
def _alike(contrast: Singles, place: tuple[int, int], other: tuple[int, int], sigma: np.float32) -> bool:
    """Return whether a pixel may be a mixture of another one and the screen: told by light and colour, each by itself.

    A codec blurs colour more than light, so shares of the two need not be the same.
    """
    noise = np.float32(_TOLD) * sigma
    light, first, second = contrast[place]
    whole, third, fourth = contrast[other]
    if light * whole < np.float32(0.0) and abs(light) > noise:
        return False
    own = np.sqrt(first * first + second * second)
    alike = first * third + second * fourth
    return bool(own <= noise or alike >= np.float32(_ALIKE) * own * np.sqrt(third * third + fourth * fourth))


@compiled
def _summit(contrast: Singles, size: Singles, place: tuple[int, int], sigma: np.float32) -> tuple[int, int]:
    """Return where the climb from a pixel ends."""
    height, width = size.shape
    y, x = place
    while True:
        highest, top, left = size[y, x] + sigma, y, x
        for v in range(max(0, y - _STEP_PX), min(height, y + _STEP_PX + 1)):
            for u in range(max(0, x - _STEP_PX), min(width, x + _STEP_PX + 1)):
                rises = size[v, u] > highest and _slopes(size, (y, x), (v, u), sigma)
                if rises and _alike(contrast, place, (v, u), sigma):
                    highest, top, left = size[v, u], v, u
        if top == y and left == x:
            return y, x
        y, x = top, left


@compiled
def _slopes(size: Singles, place: tuple[int, int], other: tuple[int, int], sigma: np.float32) -> bool:
    """Return whether it is no plain from which it rises to another pixel: a part of its own colour ends at one."""
    (y, x), (v, u) = place, other
    behind = size[min(max(2 * y - v, 0), size.shape[0] - 1), min(max(2 * x - u, 0), size.shape[1] - 1)]
    least = max(np.float32(_TOLD) * sigma, np.float32(_PLAIN) * (size[v, u] - size[y, x]))
    return bool(abs(behind - size[y, x]) > least)


@compiled
def _share(contrast: Singles, place: tuple[int, int], summit: tuple[int, int], sigma: np.float32) -> np.float32:
    """Return how much of a pixel is what another one is, by its light or by its colour, whichever says more.

    A codec leaves a thin part its light, and takes colour from it.
    """
    light, first, second = contrast[place]
    whole, third, fourth = contrast[summit]
    least, colour, share = np.float32(_TOLD_WELL) * sigma, third * third + fourth * fourth, np.float32(0.0)
    if abs(whole) > least:
        share = max(share, light / whole)
    if colour > least * least:
        share = max(share, (first * third + second * fourth) / colour)
    return share


@compiled
def _grow(mask: Bytes, contrast: Singles, size: Singles, sigma: np.float32) -> None:
    """Add pixels beside a mask of which half or more is what is in it, in place."""
    height, width = mask.shape
    for _ in range(_GROWN_PX):
        before = mask.copy()
        for y in range(height):
            for x in range(width):
                if before[y, x] == 0 and _beside(before, y, x, 1):
                    summit = _summit(contrast, size, (y, x), sigma)
                    if before[summit] == 1 and _share(contrast, (y, x), summit, sigma) >= np.float32(0.5):
                        mask[y, x] = 1


@compiled
def _beside(mask: Bytes, y: int, x: int, value: int) -> bool:
    """Return whether one of a pixel's four neighbours has a value; none lies beyond the picture."""
    height, width = mask.shape
    return bool(
        (y > 0 and mask[y - 1, x] == value)
        or (y < height - 1 and mask[y + 1, x] == value)
        or (x > 0 and mask[y, x - 1] == value)
        or (x < width - 1 and mask[y, x + 1] == value)
    )


@compiled
def _peel(mask: Bytes, contrast: Singles, size: Singles, sigma: np.float32) -> None:
    """Take the pixels out of a mask of which less than half is the subject, from its rim inwards, in place."""
    height, width = mask.shape
    asked = np.zeros((height, width), np.bool_)
    waiting, count = np.empty(mask.size, np.int64), 0
    for y in range(height):
        for x in range(width):
            if mask[y, x] == 1 and _beside(mask, y, x, 0):
                asked[y, x] = True
                waiting[count] = y * width + x
                count += 1
    while count > 0:
        count -= 1
        y, x = waiting[count] // width, waiting[count] % width
        if _share(contrast, (y, x), _summit(contrast, size, (y, x), sigma), sigma) >= np.float32(0.5):
            continue
        mask[y, x] = 0
        for v, u in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
            if 0 <= v < height and 0 <= u < width and mask[v, u] == 1 and not asked[v, u]:
                asked[v, u] = True
                waiting[count] = v * width + u
                count += 1
