"""A subject that hardly leaves its place: no empty picture of what is behind it exists, so its own looks must do.

An animal that sits, breathes and turns its head betrays its region by small changes. The region holds the subject
and some background, its surroundings hold background alone. Pixels are described by four looks (codes): brightness
with the evenest window nearby and how even that window is (bedding is rough, fur is smooth); with the plain
surroundings; with how far the pixel stands out as a ridge (a tail); and as a ridge with how much it changes over the
recording (the ground does not, however much it looks like fur; a tail may lie as still as the ground). With p the
share of a look in the region and q its share around, p = (1 - s) q + s f for a subject of share s and looks f, so
the odds of the subject are

    s f / ((1 - s) q) = (p / q) / (1 - s) - 1

and (1 - s) is read off the background's own looks: it is the median of p / q over the surroundings. No pixel has to
be known as the subject beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from calibration.foundation.arrays import Bools, Bytes, Singles
from capture.discs import disc

__all__ = ["AppearanceModel", "Surroundings", "look_tables", "looks", "sitting_place"]

_WINDOW = 7
_BINS = 16
_RIDGE_PX = 6
#: Least change told apart, in units of the picture's usual change; there are two steps to each doubling.
_LEAST_CHANGE = 2.0**-2.5
#: Log odds of a single look are trusted up to this.
_MOST_ODDS = 3.0
_LEAST_RATIO = 0.02
#: Rows of all images that are looked at together.
_STRIP = 64


@dataclass(frozen=True, eq=False)
class Surroundings:
    """Where a still subject lives.

    Attributes:
        corner: (row, column) of the window in the image that holds the subject with room around.
        around: (h, w) the room, in the window.
        lively: (h, w) the region of small changes.
        core: (h, w) its inner part, some of which is surely the subject.
        change: (h, w) how much each pixel changes over the recording, 0 to 15: half the doublings of the usual.
    """

    corner: tuple[int, int]
    around: Bools
    lively: Bools
    core: Bools
    change: Bytes

    @property
    def window(self) -> tuple[slice, slice]:
        """Rows and columns of the window."""
        row, column = self.corner
        height, width = self.around.shape
        return slice(row, row + height), slice(column, column + width)


@dataclass(frozen=True, eq=False)
class AppearanceModel:
    """Log odds of looks.

    Attributes:
        tables: (4, 4096) log odds of the subject per look.
        place: where it lives.
        shape: (H, W) of the image.
        sign: 1 if the subject is brighter than the ground next to it, -1 if darker, 0 if neither.
    """

    tables: Singles
    place: Surroundings
    shape: tuple[int, int]
    sign: int = 0

    def odds(self, codes: NDArray[np.int32]) -> Singles:
        """Return (h, w) the log odds of the window's looks (4, h, w): the mean of the first three, and the change's."""
        total = (self.tables[0][codes[0]] + self.tables[1][codes[1]] + self.tables[2][codes[2]]) / np.float32(3.0)
        total += self.tables[3][codes[3]]
        total[~self.place.around] = -20.0
        return np.asarray(cv2.blur(total, (3, 3)))

    def grey(self, image: Bytes) -> Bytes:
        """Return (h, w) the window of an image in grey."""
        return np.ascontiguousarray(grey_of(image)[self.place.window])

    def whole(self, mask: Bools) -> Bools:
        """Return (H, W) a mask of the window (h, w) in the whole image."""
        out = np.zeros(self.shape, dtype=bool)
        out[self.place.window] = mask
        return out


def grey_of(image: Bytes) -> Bytes:
    """Return (H, W) one channel of an image."""
    return image if image.ndim == 2 else np.asarray(image[:, :, 1])


def looks(grey: Bytes, change: Bytes) -> NDArray[np.int32]:
    """Return (4, h, w) codes below 4096: evenest of nine windows, plain surroundings, ridge, and ridge with change."""
    level = grey.astype(np.float32)
    mean = cv2.blur(level, (_WINDOW, _WINDOW))
    variance = cv2.blur(level * level, (_WINDOW, _WINDOW)) - mean * mean
    least, chosen = variance.copy(), mean.copy()
    reach = _WINDOW // 2
    for down in (-reach, 0, reach):
        for right in (-reach, 0, reach):
            moved = np.roll(variance, (down, right), (0, 1))
            better = moved < least
            least[better] = moved[better]
            chosen[better] = np.roll(mean, (down, right), (0, 1))[better]
    first = (grey >> 4).astype(np.int32) * (_BINS * _BINS)
    evenness = np.minimum(np.sqrt(np.maximum(least, 0.0)) / 1.25, _BINS - 1).astype(np.int32)
    even = first + (chosen / 16).astype(np.int32) * _BINS + evenness
    around = (cv2.GaussianBlur(level, (0, 0), 2.0) / 16).astype(np.int32)
    contrast = np.minimum(np.sqrt(np.maximum(variance, 0.0)) / 2.0, _BINS - 1).astype(np.int32)
    smooth = cv2.GaussianBlur(level, (0, 0), 1.0)
    ridge = np.clip(_ridge(smooth) / 3.0 + 6.0, 0, _BINS - 1).astype(np.int32)
    thin = first + (smooth / 16).astype(np.int32) * _BINS + ridge
    return np.stack([even, first + around * _BINS + contrast, thin, first + change.astype(np.int32) * _BINS + ridge])


def _ridge(smooth: Singles) -> Singles:
    """Return (h, w) by how much a pixel is brighter than both sides, in the best of four directions, grey levels."""
    best = np.full(smooth.shape, -255.0, dtype=np.float32)
    across = round(_RIDGE_PX / np.sqrt(2.0))
    for down, right in ((0, _RIDGE_PX), (_RIDGE_PX, 0), (across, across), (-across, across)):
        sides = np.maximum(np.roll(smooth, (down, right), (0, 1)), np.roll(smooth, (-down, -right), (0, 1)))
        np.maximum(best, smooth - sides, out=best)
    return best


def sitting_place(images: Sequence[Bytes]) -> Surroundings | None:
    """Return where a subject lives that sits in images spread over a recording; None where nothing changes.

    It is in the region of the liveliest small changes, closed and filled; the region's own extent is left around it.
    """
    stack = np.stack([grey_of(image) for image in images])
    region = _lively_region(stack)
    if not region.any():
        return None
    extent = max(cv2.boundingRect(region.view(np.uint8))[2:])
    away = cv2.distanceTransform((~region).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5)
    wide = (away <= extent).view(np.uint8)
    x, y, w, h = cv2.boundingRect(wide)
    window = (slice(y, y + h), slice(x, x + w))
    lively = np.ascontiguousarray(region[window])
    core = cv2.erode(lively.view(np.uint8), disc(4)).view(np.bool_)
    return Surroundings(
        (y, x),
        np.ascontiguousarray(wide[window]).view(np.bool_),
        lively,
        core if core.any() else lively,
        np.ascontiguousarray(_change(stack)[window]),
    )


def _lively_region(stack: Bytes) -> Bools:
    """Return (H, W) the region of the liveliest small changes of images (n, H, W), closed and filled."""
    stack = np.sort(stack, axis=0)
    skip = max(0, len(stack) // 16)
    change = cv2.blur((stack[-1 - skip] - stack[skip]).astype(np.float32), (3, 3))
    lively = change > max(6.0 * float(np.median(change)), 8.0)
    closed = cv2.morphologyEx(lively.view(np.uint8), cv2.MORPH_CLOSE, disc(round(0.01 * max(change.shape))))
    filled = closed.copy()
    outlines, _ = cv2.findContours(closed, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    cv2.drawContours(filled, outlines, -1, 1, cv2.FILLED)
    count, labels = cv2.connectedComponents(filled)
    weight = np.bincount(labels.ravel(), weights=(change * lively).ravel(), minlength=count)
    weight[0] = 0.0
    return np.asarray(labels == weight.argmax()) if count > 1 else np.zeros(change.shape, bool)


def _change(stack: Bytes) -> Bytes:
    """Return (H, W) the spread over images (n, H, W) in half doublings of the picture's median spread, 0 to 15."""
    # In strips: it would hold all images twice in single precision.
    strips = [stack[:, top : top + _STRIP].std(axis=0, dtype=np.float32) for top in range(0, stack.shape[1], _STRIP)]
    spread = cv2.blur(np.concatenate(strips), (3, 3))
    usual = max(float(np.median(spread)), 0.1)
    return np.asarray(np.clip(2.0 * np.log2(np.maximum(spread / usual, 1e-3) / _LEAST_CHANGE), 0, _BINS - 1), np.uint8)


def look_tables(codes: Sequence[NDArray[np.int32]], regions: Sequence[Bools], surroundings: Sequence[Bools]) -> Singles:
    """Return (4, 4096) the log odds of the subject per look.

    Args:
        codes: looks (4, h, w) of some images of a camera.
        regions: (h, w) for each image, where the subject is, with some background.
        surroundings: (h, w) for each image, background near the region.
    """
    tables = []
    for kind in range(len(codes[0])):
        shares = []
        for chosen in (regions, surroundings):
            total = sum(np.bincount(c[kind][m], minlength=_BINS**3) for c, m in zip(codes, chosen, strict=True))
            smooth = gaussian_filter(np.asarray(total, dtype=float).reshape(_BINS, _BINS, _BINS), 0.7).ravel()
            shares.append(smooth / max(smooth.sum(), 1.0) + 2e-6)
        ratio = shares[0] / shares[1]
        order = np.argsort(ratio, kind="stable")
        mass = np.cumsum(shares[1][order])
        background = ratio[order][np.searchsorted(mass, 0.5 * mass[-1])]
        log = np.log(np.maximum(ratio / background - 1.0, _LEAST_RATIO))
        tables.append(np.clip(log, -_MOST_ODDS, _MOST_ODDS))
    # What lies still is ground; what changes need not be the subject, only its shadow or where it was before.
    tables[-1] = np.minimum(tables[-1], 0.0)
    return np.stack(tables).astype(np.float32)
