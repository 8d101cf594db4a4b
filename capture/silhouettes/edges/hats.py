"""What is thin around a silhouette: tails, paws and toes, darker or brighter than both of their sides.

Shade and the mirror image of a body change the brightness of the ground over wide patches, with edges but without thin
lines and spots. So what remains after everything that is narrower than a paw is taken out of the ratio of image and
ground (a hat transform) is no shade, though it may look like one. The silhouette itself, and its mixed edge, is left
out: a lit gap between belly and shadow is thin only because the body is dark. Skin also makes the ground redder, which
shade does not over any width; so a paw that is seen from near may be broader by that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Bools, Bytes, Floats, Singles
from calibration.foundation.compiled import compiled
from capture.backgrounds.background import Background

__all__ = ["ThinParts", "blurred", "thin_structures"]

#: Parts up to twice this share of the silhouette's size (root of its area) are thin.
_THIN = 0.055
#: And up to so many times that by their redness.
_REDDER = 2
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
#: More than any ratio, and less.
_FAR, _NEAR = np.float32(1e30), np.float32(1e-30)


@dataclass(frozen=True, eq=False)
class ThinParts:
    """What is thin around a silhouette, by what tells it.

    Attributes:
        skin: (h, w) brighter or redder than its sides, which no shade is.
        dark: (h, w) darker than its sides and nothing else: a dark tail, or the shade of a tail.
        broad: (h, w) too broad to be either, but redder than what is around.
    """

    skin: Bools
    dark: Bools
    broad: Bools

    @classmethod
    def none(cls, shape: tuple[int, ...]) -> ThinParts:
        """Return that there is nothing thin around a silhouette (h, w)."""
        nothing = np.zeros(shape, dtype=bool)
        return cls(nothing, nothing, nothing)

    @property
    def thin(self) -> Bools:
        """(h, w) all that is thin, which the broad is not."""
        return self.skin | self.dark


def thin_structures(
    image: Bytes, ground: Background, light: Floats, differs: Bools, mask: Bools, smooth: Singles | None = None
) -> ThinParts:
    """Return what ``differs`` outside a silhouette and is thin, in brightness or redness.

    Args:
        image: (h, w, C).
        ground: the empty scene, of the same window.
        light: (C,) gain of the image's light.
        differs: (h, w) pixels that differ from the ground, shade or not.
        mask: (h, w) the silhouette.
        smooth: (h, w, C) the ground's brightness as `blurred` makes it of the whole image; None: it is made here.
    """
    x, y, w, h = cv2.boundingRect(mask.view(np.uint8))
    room = round(_REACH * max(w, h))
    near = (slice(max(0, y - room), y + h + room), slice(max(0, x - room), x + w + room))
    wide = np.zeros_like(mask)
    wide[near] = differs[near] & ~mask[near]
    x, y, w, h = cv2.boundingRect(wide.view(np.uint8))
    if w == 0:
        return ThinParts.none(mask.shape)
    # What lies farther away than a hat is wide, twice, has no say.
    radius = max(3, round(_THIN * float(np.sqrt(np.count_nonzero(mask)))))
    here = _around((x, y, w, h), 2 * _REDDER * radius + _BLUR_PX + _GAP_PX, near)
    closer = _around((x, y, w, h), 2 * radius, near)
    inner = tuple(slice(a.start - b.start, a.stop - b.start) for a, b in zip(closer, here, strict=True))
    lit = blurred(ground.centre[here]) if smooth is None else smooth[here]
    ratios, noise = _ratios(image[here], lit, ground.spread[here], light)
    body = np.asarray(cv2.dilate(np.ascontiguousarray(mask[here]).view(np.uint8), _square(_MIXED_PX)))
    at = np.flatnonzero(wide[here])
    least = np.float32(_STANDS_OUT) * (noise.ravel()[at] + np.float32(_ERROR))
    # A logarithm keeps the order of values: hats are made of the ratios themselves, and it is taken where it is asked.
    channels = np.float32(image.shape[2])
    some = [np.ascontiguousarray(ratio[inner]) for ratio in ratios]
    own, there = np.ascontiguousarray(body[inner]), np.flatnonzero(wide[closer])  # the same pixels in the same order
    darker = _below(some[0], own, radius, there) > channels * least
    skin = _above(some[0], own, radius, there) > channels * least
    redder = np.zeros_like(skin)
    if len(ratios) > 1:
        skin |= _above(some[1], own, radius, there) > least
        redder = _above(ratios[1], body, _REDDER * radius, at) > least
    return _parted(wide, here, (at, skin, darker, redder))


def _around(box: tuple[int, int, int, int], room: int, near: tuple[slice, slice]) -> tuple[slice, slice]:
    """Return rows and columns of a box (left, top, width, height) with so many pixels of room, within what is near."""
    x, y, w, h = box
    return (
        slice(max(near[0].start, y - room), min(near[0].stop, y + h + room)),
        slice(max(near[1].start, x - room), min(near[1].stop, x + w + room)),
    )


def _parted(wide: Bools, here: tuple[slice, slice], found: tuple[NDArray[np.intp], Bools, Bools, Bools]) -> ThinParts:
    """Return thin parts of what is ``wide`` (h, w) with their gaps closed.

    ``found``: pixels of a window, and which of them are skin, darker, and redder.
    """
    at, *kinds = found
    skin, darker, redder = (np.zeros(wide[here].shape, np.uint8) for _ in kinds)
    for image, chosen in zip((skin, darker, redder), kinds, strict=True):
        image.ravel()[at] = chosen
    thin, more = (
        cv2.morphologyEx(one, cv2.MORPH_CLOSE, _square(_GAP_PX)).view(np.bool_) & wide[here]
        for one in (skin | darker, skin | darker | redder)
    )
    bright = cv2.dilate(skin, _square(1)).view(np.bool_)
    out = ThinParts(*(np.zeros_like(wide) for _ in kinds))
    out.skin[here], out.dark[here], out.broad[here] = thin & bright, thin & ~bright, more & ~thin
    return out


def _ratios(image: Bytes, lit: Singles, spread: Singles, light: Floats) -> tuple[list[Singles], Singles]:
    """Return the product of all channels' ratios of image and ground; of a colour image also that of red and green.

    And (h, w) what noise makes of the logarithm of a ratio.
    """
    shape = image.shape
    lit, spread = np.ascontiguousarray(lit), np.ascontiguousarray(spread)
    seen = blurred(image)
    product, redness, noise = (np.empty(shape[:2], np.float32) for _ in range(3))
    _divide(seen, lit, spread, light.astype(np.float32), product, redness, noise)
    return [product, redness] if shape[2] == 3 else [product], noise


def blurred(image: NDArray[Any]) -> Singles:
    """Return an image (h, w, C) of bytes or numbers, a little blurred: hats are not made of noise."""
    kernel = cv2.getGaussianKernel(2 * _BLUR_PX - 1, 1.0, cv2.CV_32F)
    return np.asarray(cv2.sepFilter2D(image, cv2.CV_32F, kernel, kernel)).reshape(image.shape)


@compiled
def _divide(
    seen: Singles, lit: Singles, spread: Singles, light: Singles, product: Singles, redness: Singles, noise: Singles
) -> None:
    height, width, channels = seen.shape
    gains = np.empty(width * channels, np.float32)
    for x in range(width):
        gains[x * channels : (x + 1) * channels] = light
    ratio, sigma = np.empty(width * channels, np.float32), np.empty(width * channels, np.float32)
    for y in range(height):
        # Row by row, all channels alike: each loop takes several values at a time.
        now, then, apart = seen[y].ravel(), lit[y].ravel(), spread[y].ravel()
        for n in range(width * channels):
            share = np.float32(1.0) / (then[n] * gains[n] + _DARK)
            ratio[n] = (now[n] + _DARK) * share
            sigma[n] = apart[n] * share
        if channels == 3:
            for x in range(width):
                product[y, x] = ratio[3 * x] * ratio[3 * x + 1] * ratio[3 * x + 2]
                redness[y, x] = ratio[3 * x + 2] / ratio[3 * x + 1]
                noise[y, x] = (sigma[3 * x] + sigma[3 * x + 1] + sigma[3 * x + 2]) / np.float32(3.0)
        else:
            product[y], redness[y], noise[y] = ratio[::channels], np.float32(1.0), sigma[::channels]


def _above(values: Singles, body: Bytes, radius: int, at: NDArray[np.intp]) -> Singles:
    """Return (n,) by how much logarithms are above what is left of them without thin parts, the body apart.

    They are those of values (h, w), at some of their pixels.
    """
    least = cv2.erode(_apart(values, body, _FAR), _square(radius))
    _exchange(least, _FAR, _NEAR)
    left = np.asarray(cv2.dilate(least, _square(radius)), np.float32)
    return np.asarray(np.log(values.ravel()[at]) - np.log(left.ravel()[at]))


def _below(values: Singles, body: Bytes, radius: int, at: NDArray[np.intp]) -> Singles:
    """Return (n,) by how much they are below it, as `_above` does."""
    most = cv2.dilate(_apart(values, body, _NEAR), _square(radius))
    _exchange(most, _NEAR, _FAR)
    left = np.asarray(cv2.erode(most, _square(radius)), np.float32)
    return np.asarray(np.log(left.ravel()[at]) - np.log(values.ravel()[at]))


@compiled
def _apart(values: Singles, body: Bytes, instead: np.float32) -> Singles:
    """Return values (h, w) with something ``instead`` of those of a body (h, w)."""
    out = np.empty(values.shape, np.float32)
    flat, own, given = out.ravel(), body.ravel(), values.ravel()
    for n in range(len(flat)):
        flat[n] = instead if own[n] != 0 else given[n]
    return out


@compiled
def _exchange(values: Singles, what: np.float32, instead: np.float32) -> None:
    """Put something ``instead`` of one of the values (h, w), in place."""
    flat = values.ravel()
    for n in range(len(flat)):
        flat[n] = instead if flat[n] == what else flat[n]


def _square(radius: int) -> np.ndarray:
    return np.ones((2 * radius + 1, 2 * radius + 1), np.uint8)
