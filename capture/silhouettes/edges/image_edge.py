"""The outline of a silhouette moved to where the image has an edge.

Looks are measured in windows of some pixels. A window on the subject's edge holds the subject and the ground and
resembles neither, so odds tell where the subject is, but its edge to half a window only, and not at all where it lies
in its own shade. The image tells it to a pixel: along the outline the edge is looked for across it, in the square root
of the brightness, in which the noise of light is the same everywhere and shade takes little of an edge's height. Next
to edges of bedding or fur it is told by its side: what is brighter than the ground nearly all around is so here, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from scipy.ndimage import gaussian_filter1d

from calibration.foundation.arrays import Bools, Bytes, Floats, Ints, Singles
from calibration.foundation.compiled import compiled

__all__ = ["brighter_or_darker", "on_image_edge"]

#: Places across the outline per pixel.
_PER_PX = 2
_SMOOTH_PX = 1.0
#: Pixels along the outline over which its direction is told.
_ALONG_PX = 2.0
#: Share of the outline along which the subject is brighter than the ground, or darker, if it is so all around.
_NEARLY_ALL = 0.75
#: Edges lower than noise move nothing: what a pixel's way costs, in square roots of grey levels per pixel.
_WAY = 0.001
_NEVER = -1e3


@dataclass(frozen=True, eq=False)
class _Rim:
    """What lies across the outline of a silhouette's largest part.

    Attributes:
        pixels: (n, 2) the outline's own pixels, x and y, in order.
        offsets: (m,) how far outwards the places are, px.
        levels: (n, m) square root of the brightness there.
        nearest: (n, m) whether no other part of the outline is nearer to the place.
        filled: (h, w) the part without its holes.
        away: (h, w) distance from the outline, px.
        labels: (h, w) which pixel of the outline is the nearest.
        numbers: (n,) the labels of the outline's own pixels.
    """

    pixels: Ints
    offsets: Floats
    levels: Singles
    nearest: Bools
    filled: Bools
    away: Singles
    labels: Ints
    numbers: Ints

    @classmethod
    def of(cls, mask: Bools, grey: Bytes, reach: int) -> _Rim | None:
        """Look across the outline of a mask (h, w), as far as ``reach`` px; None where there is none to follow."""
        outlines, _ = cv2.findContours(mask.view(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
        longest = max(outlines, key=len, default=None)
        if longest is None or len(longest) < 2 * reach:
            return None
        pixels = longest[:, 0]
        filled = np.zeros(mask.shape, np.uint8)
        cv2.drawContours(filled, [longest], 0, 1, cv2.FILLED)
        outline = np.ones(mask.shape, np.uint8)
        outline[pixels[:, 1], pixels[:, 0]] = 0
        away, labels = cv2.distanceTransformWithLabels(
            outline, cv2.DIST_L2, cv2.DIST_MASK_5, labelType=cv2.DIST_LABEL_PIXEL
        )
        offsets = np.arange(-_PER_PX * (reach + 1), _PER_PX * (reach + 1) + 1) / _PER_PX
        places = pixels[:, None] + offsets[:, None] * _outwards(pixels)[:, None]
        x, y = np.moveaxis(places.astype(np.float32), 2, 0)
        level = cv2.GaussianBlur(np.sqrt(grey.astype(np.float32)), (0, 0), _SMOOTH_PX)
        levels = cv2.remap(level, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        found = cv2.remap(away, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        nearest = found >= np.abs(offsets) - 1.0
        numbers = labels[pixels[:, 1], pixels[:, 0]]
        return cls(pixels, offsets, levels, nearest, filled.view(np.bool_), away, labels, numbers)


def _outwards(pixels: Ints) -> Floats:
    """Return (n, 2) unit vectors across a closed outline (n, 2) that runs as OpenCV has it."""
    smooth = gaussian_filter1d(pixels.astype(float), _ALONG_PX, axis=0, mode="wrap")
    along = np.roll(smooth, -1, axis=0) - np.roll(smooth, 1, axis=0)
    along /= np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-9)
    # OpenCV runs counter-clockwise as y points down: the subject lies on the left.
    return np.stack([-along[:, 1], along[:, 0]], axis=1)


def brighter_or_darker(masks: Sequence[Bools], greys: Sequence[Bytes], reach: int) -> int:
    """Return 1 if a subject is brighter than the ground next to it nearly all around, -1 if darker, else 0.

    Args:
        masks: (h, w) its silhouettes in some images, good to ``reach`` px.
        greys: (h, w) the images.
        reach: how far in and out is looked, px.
    """
    brighter, count = 0, 0
    for mask, grey in zip(masks, greys, strict=True):
        rim = _Rim.of(mask, grey, reach)
        if rim is not None:
            inside, outside = rim.nearest & (rim.offsets < 0), rim.nearest & (rim.offsets > 0)
            known = inside.any(axis=1) & outside.any(axis=1)
            means = [(rim.levels * side).sum(axis=1)[known] / side.sum(axis=1)[known] for side in (inside, outside)]
            brighter += int(np.count_nonzero(means[0] > means[1]))
            count += int(np.count_nonzero(known))
    if brighter > _NEARLY_ALL * count:
        return 1
    return -1 if brighter < (1.0 - _NEARLY_ALL) * count else 0


def on_image_edge(mask: Bools, grey: Bytes, reach: int, sign: int) -> Bools:
    """Return a silhouette (h, w) whose outline has been moved to the image's edge nearby.

    Of all ways along it whose distance from the outline changes by half a pixel per pixel at most, the one is taken on
    which the image changes most. Holes and smaller parts stay. The outline does not pass another part of itself.

    Args:
        mask: (h, w) the silhouette.
        grey: (h, w) the image.
        reach: how far the outline may move, px.
        sign: of `brighter_or_darker`; with 0 nothing is moved.
    """
    rim = _Rim.of(mask, grey, reach) if sign != 0 else None
    if rim is None:
        return mask
    edge = slice(_PER_PX, -_PER_PX)
    falls = (rim.levels[:, : -2 * _PER_PX] - rim.levels[:, 2 * _PER_PX :]) / 2.0
    gains = sign * falls - _WAY * np.abs(rim.offsets[edge])
    gains[~rim.nearest[:, edge]] = _NEVER
    moved = np.full(int(rim.labels.max()) + 1, -np.inf)
    np.maximum.at(moved, rim.numbers, rim.offsets[edge][_best_way(gains.astype(np.float64))])
    out = mask.copy()
    near = rim.away <= reach + 1
    inside = np.where(rim.filled, -rim.away, rim.away)[near] <= moved[rim.labels[near]]
    holes, others = rim.filled & ~mask, mask & ~rim.filled
    out[near] = (inside & ~holes[near]) | others[near]
    return out


@compiled
def _best_way(gains: Floats) -> Ints:
    """Return (n,) the columns of a closed way through gains (n, m) that changes by one column a row at most.

    Closed by going round twice and keeping the middle, where neither end is felt.
    """
    rows, columns = gains.shape
    best, came = gains[0].copy(), np.zeros((2 * rows, columns), np.int8)
    for row in range(1, 2 * rows):
        following = np.empty(columns)
        for column in range(columns):
            most, step = best[column], 0
            if column > 0 and best[column - 1] > most:
                most, step = best[column - 1], -1
            if column < columns - 1 and best[column + 1] > most:
                most, step = best[column + 1], 1
            following[column] = most + gains[row % rows, column]
            came[row, column] = step
        best = following
    way = np.empty(rows, np.int64)
    column = int(np.argmax(best))
    for row in range(2 * rows - 1, -1, -1):
        if rows // 2 <= row < rows // 2 + rows:
            way[row % rows] = column
        column += came[row, column]
    return way
