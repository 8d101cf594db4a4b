"""Signed distance of image points to a silhouette's edge, sub-pixel, ready for the field kernels.

The edge is the polyline that marching squares draws at level 0.5 through the pixel centres (of a binary mask:
half-way between an inside and an outside centre; of an alpha matte: where it crosses one half). Within
`BAND_PX` of it distances are exact to that polyline; farther out they are those of the pixel grid. Negative is
inside.

A silhouette that touches the frame's border belongs to a subject that the frame shows in part. What lies
outside the frame is then unknown, not empty: the region that such a view allows is the silhouette *and*
everything outside the frame. A silhouette clear of the border shows the whole (connected) subject, and the view
carves outside its frame as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Bytes, Floats, Ints, Singles
from calibration.foundation.compiled import compiled
from calibration.foundation.errors import InputError
from capture.mask_boxes import box_of

__all__ = ["RIM_PX", "DistanceImage", "Extent", "Outside", "PackedDistances", "distance_image", "pack_distances"]

BAND_PX = 2.0
#: Pixels before a cell that the band around an edge in it reaches, and all that it reaches along an axis.
_REACH, _PATCH = 2, 6
#: Up to here those of the pixel grid are exact, beyond they are lower bounds, right to a few pixels.
_EXACT_PX = 12
#: OpenCV's quickest distances are right to this share.
_SURE = 0.95
#: Pixels around the silhouette that its distance image covers; beyond, the distance to this frame is added.
MARGIN_PX = 6
#: Pixels around the frame that the distance image of a view covers that shows a part of the subject.
RIM_PX = 2
#: A silhouette this near to the frame's border is taken to be cut by it.
BORDER_PX = 1


class Extent(Enum):
    """What one silhouette says about the subject."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    EMPTY = "empty"
    FULL = "full"


class Outside(Enum):
    """What is assumed outside the frame of a view: by its own evidence, never carved, or always carved."""

    AUTO = "auto"
    UNKNOWN = "unknown"
    EMPTY = "empty"


@dataclass(frozen=True, eq=False)
class DistanceImage:
    """Signed distances around one silhouette.

    Attributes:
        values: (h, w) signed distance at pixel centres, px, negative inside.
        origin: (x, y) of ``values[0, 0]`` in the image, px.
        box: (x_min, y_min, x_max, y_max) of the silhouette's pixel centres, px; NaN if there is none.
        view: what the silhouette says.
        carves_outside: whether points outside ``values`` are outside the subject (else: unknown).
    """

    values: Singles
    origin: tuple[int, int]
    box: tuple[float, float, float, float]
    view: Extent
    carves_outside: bool


@compiled
def _edge_band(level: Singles, band: float, out: Singles) -> None:
    """Lower ``out`` (h, w) to the squared distance to the level-0.5 polyline of ``level`` (h, w) within ``band`` px."""
    height, width = level.shape
    crossed = np.empty(width - 1, np.bool_)
    half = np.float32(0.5)
    for row in range(height - 1):
        # The edge crosses few cells; a loop without branches finds them several at a time.
        for column in range(width - 1):
            first = level[row, column] > half
            crossed[column] = (
                (first != (level[row, column + 1] > half))
                | (first != (level[row + 1, column] > half))
                | (first != (level[row + 1, column + 1] > half))
            )
        for column in range(width - 1):
            if crossed[column]:
                a, b = level[row, column] - half, level[row, column + 1] - half
                d, c = level[row + 1, column] - half, level[row + 1, column + 1] - half
                _cell_band((a, b, c, d), row, column, band, out)


@compiled
def _cell_band(
    corners: tuple[np.float32, np.float32, np.float32, np.float32], row: int, column: int, band: float, out: Singles
) -> None:
    """Lower ``out`` (h, w) to the squared distance to the polyline through one cell, by levels at its corners."""
    height, width = out.shape
    a, b, c, d = corners
    xs, ys = np.empty(4), np.empty(4)
    count = 0
    if (a > 0) != (b > 0):
        xs[count] = column + a / (a - b)
        ys[count] = row
        count += 1
    if (b > 0) != (c > 0):
        xs[count] = column + 1
        ys[count] = row + b / (b - c)
        count += 1
    if (c > 0) != (d > 0):
        xs[count] = column + d / (d - c)
        ys[count] = row + 1
        count += 1
    if (d > 0) != (a > 0):
        xs[count] = column
        ys[count] = row + a / (a - d)
        count += 1
    # Four crossings: two inside corners on a diagonal, cut off one by one as on the faces of the cells.
    begin = 3 if count == 4 and a > 0 else 0
    for segment in range(count // 2):
        i = (2 * segment + begin) % count
        j = (i + 1) % count
        x0, y0, x1, y1 = xs[i], ys[i], xs[j], ys[j]
        dx, dy = x1 - x0, y1 - y0
        dx_unit, dy_unit = dx / (dx * dx + dy * dy + 1e-12), dy / (dx * dx + dy * dy + 1e-12)
        low_row = max(0, int(np.ceil(min(y0, y1) - band)))
        high_row = min(height - 1, int(np.floor(max(y0, y1) + band)))
        low_column = max(0, int(np.ceil(min(x0, x1) - band)))
        high_column = min(width - 1, int(np.floor(max(x0, x1) + band)))
        for r in range(low_row, high_row + 1):
            for q in range(low_column, high_column + 1):
                t = (q - x0) * dx_unit + (r - y0) * dy_unit
                t = min(1.0, max(0.0, t))
                ex = x0 + t * dx - q
                ey = y0 + t * dy - r
                square = np.float32(ex * ex + ey * ey)
                out[r, q] = square if square < out[r, q] else out[r, q]


@lru_cache(maxsize=1)
def _cell_bands() -> Singles:
    """Return (16, 6, 6) what `_cell_band` makes of the third cell of the third row, by which of its corners are set."""
    out = np.full((16, _PATCH, _PATCH), BAND_PX**2, np.float32)
    for case in range(1, 15):
        levels = [np.float32((case >> corner & 1) - 0.5) for corner in range(4)]
        _cell_band((levels[0], levels[1], levels[2], levels[3]), _REACH, _REACH, BAND_PX, out[case])
    return out


@compiled
def _mask_band(mask: Bytes, bands: Singles, out: Singles) -> None:
    """Do what `_edge_band` does for a mask (h, w) of 0 and 1: there all cells with the same corners are alike."""
    height, width = mask.shape
    cases = np.zeros(-(-(width - 1) // 8) * 8, np.uint8)
    eights = cases.view(np.uint64)
    for row in range(height - 1):
        upper, lower = mask[row], mask[row + 1]
        left, right, below, beside = upper[:-1], upper[1:], lower[:-1], lower[1:]
        for column in range(width - 1):
            case = np.uint8(left[column] | (right[column] << 1) | (beside[column] << 2) | (below[column] << 3))
            cases[column] = np.uint8(0) if case == 15 else case
        for eighth in range(len(eights)):
            if eights[eighth] == np.uint64(0):
                continue  # the edge crosses few cells
            for column in range(8 * eighth, min(8 * eighth + 8, width - 1)):
                if cases[column] == 0:
                    continue
                band = bands[cases[column]]
                first, last = max(0, _REACH - column), min(_PATCH, width + _REACH - column)
                for k in range(max(0, _REACH - row), min(_PATCH, height + _REACH - row)):
                    line, near = out[row + k - _REACH], band[k]
                    if last - first == _PATCH:
                        for n in range(_PATCH):
                            at = column - _REACH + n
                            line[at] = near[n] if near[n] < line[at] else line[at]
                    else:
                        for n in range(first, last):
                            at = column - _REACH + n
                            line[at] = near[n] if near[n] < line[at] else line[at]


def distance_image(
    silhouette: NDArray[Any], *, outside: Outside = Outside.AUTO, everywhere: bool = False
) -> DistanceImage:
    """Return the signed distances of a silhouette.

    Args:
        silhouette: (H, W) bool mask, or alpha matte in [0, 1] of floats, or in 0..255 of uint8.
        outside: what to assume outside the frame.
        everywhere: distances far from the edge are wanted, too, not lower bounds of them.
    """
    if silhouette.ndim != 2:
        raise InputError(f"a silhouette must be (H, W), got {silhouette.shape}")
    full = 255.0 if silhouette.dtype == np.uint8 else 1.0
    level_all: NDArray[Any] = silhouette.view(np.uint8) if silhouette.dtype == np.bool_ else silhouette
    inside_all = level_all if silhouette.dtype == np.bool_ else (level_all > 0.5 * full).view(np.uint8)
    height, width = inside_all.shape
    x, y, w, h = box_of(inside_all.view(np.bool_))
    if w == 0:
        nowhere = (np.nan,) * 4
        return DistanceImage(
            np.full((2, 2), 1e6, dtype=np.float32), (0, 0), nowhere, Extent.EMPTY, outside is Outside.EMPTY
        )
    box = (float(x), float(y), float(x + w - 1), float(y + h - 1))
    if w == width and h == height and cv2.countNonZero(inside_all) == width * height:
        return DistanceImage(np.full((2, 2), -1e6, dtype=np.float32), (0, 0), box, Extent.FULL, False)
    near = min(x, y, width - x - w, height - y - h) <= BORDER_PX
    view = Extent.PARTIAL if near else Extent.COMPLETE
    carves_outside = outside is Outside.EMPTY or (outside is Outside.AUTO and not near)
    if carves_outside:
        left, top = x - MARGIN_PX, y - MARGIN_PX
        right, bottom = x + w + MARGIN_PX, y + h + MARGIN_PX
        filler = 0.0
    else:
        left, top, right, bottom = -RIM_PX, -RIM_PX, width + RIM_PX, height + RIM_PX
        filler = full
    rows = slice(max(top, 0), min(bottom, height))
    columns = slice(max(left, 0), min(right, width))
    within = (slice(rows.start - top, rows.stop - top), slice(columns.start - left, columns.stop - left))
    values = np.full((bottom - top, right - left), BAND_PX**2, dtype=np.float32)
    if silhouette.dtype == np.bool_:
        inside = np.full(values.shape, filler, np.uint8)
        inside[within] = inside_all[rows, columns]
        _mask_band(inside, _cell_bands(), values)
    else:
        level = np.full(values.shape, filler, np.float32)
        level[within] = level_all[rows, columns]
        if full != 1.0:
            level /= np.float32(full)
        _edge_band(level, BAND_PX, values)
        inside = (level > 0.5).view(np.uint8)
    edge, pairs = _at_edge(values)
    if everywhere:
        grid = cv2.distanceTransform(np.uint8(1) - edge, cv2.DIST_L2, cv2.DIST_MASK_5) + np.float32(0.5)
        magnitude = np.where(values < BAND_PX**2, np.sqrt(values), np.maximum(grid, np.float32(BAND_PX)))
        return DistanceImage(np.where(inside, -magnitude, magnitude), (left, top), box, view, carves_outside)
    far = cv2.distanceTransform(pairs, cv2.DIST_L2, cv2.DIST_MASK_3)
    _signed(inside, _along_columns(edge, _EXACT_PX), far, np.float32(BAND_PX), values)
    return DistanceImage(values, (left, top), box, view, carves_outside)


@compiled
def _at_edge(squares: Singles) -> tuple[Bytes, Bytes]:
    """Return (h, w) 1 for pixels at the edge, else 0; and (h / 2, w / 2) 0 where two by two hold one, else 1."""
    height, width = squares.shape
    edge = np.empty((height, width), np.uint8)
    pairs = np.empty(((height + 1) // 2, (width + 1) // 2), np.uint8)
    line = np.zeros(2 * pairs.shape[1], np.uint8)
    for row in range(height):
        own, out = squares[row], edge[row]
        for column in range(width):
            out[column] = np.uint8(own[column] <= np.float32(0.505))
    for row in range(pairs.shape[0]):
        upper, lower = edge[2 * row], edge[min(2 * row + 1, height - 1)]
        for column in range(width):
            line[column] = upper[column] | lower[column]
        free = pairs[row]
        for column in range(len(free)):
            free[column] = np.uint8(1) - (line[2 * column] | line[2 * column + 1])
    return edge, pairs


@compiled
def _along_columns(edge: Bytes, reach: int) -> Bytes:
    """Return (h, w) the distances from pixels of an edge along columns, up to ``reach``.

    No step waits for the pixel beside it, so many are done at a time; likewise below.
    """
    height, width = edge.shape
    most, one = np.uint8(reach), np.uint8(1)
    out = np.full((height, width), most, np.uint8)
    for row in range(height):
        own, at_edge, before = out[row], edge[row], out[max(row - 1, 0)]
        for column in range(width):
            next_to = np.uint8(before[column] + one) if before[column] < most else most
            own[column] = np.uint8(0) if at_edge[column] == one else next_to
    for row in range(height - 2, -1, -1):
        own, after = out[row], out[row + 1]
        for column in range(width):
            own[column] = np.uint8(after[column] + one) if after[column] < own[column] else own[column]
    return out


@compiled
def _signed(inside: Bytes, along: Bytes, far: Singles, band: np.float32, values: Singles) -> None:
    """Turn squared distances to the edge's polyline into signed ones, those of the pixel grid where it is far.

    ``along``: those along columns, up to a limit; ``far``: distances of two by two pixels, in twos, which hold beyond.
    """
    limit, half = np.float32(_EXACT_PX), np.float32(0.5)
    sure, corner = np.float32(2.0 * _SURE), np.float32(np.sqrt(2.0))
    width = inside.shape[1]
    beyond, best = np.empty(2 * far.shape[1], np.float32), np.empty(width, np.float32)
    line = np.full(width + 2 * _EXACT_PX, limit * limit, np.float32)
    for row in range(inside.shape[0]):
        if row % 2 == 0:
            coarse = far[row // 2]
            for column in range(len(coarse)):
                # A lower bound: pixels lie within half of one along both axes of the middle of their four.
                least = sure * coarse[column] - corner
                beyond[2 * column] = beyond[2 * column + 1] = least if least > limit else limit
        own, middle = along[row], line[_EXACT_PX : _EXACT_PX + width]
        for column in range(width):
            middle[column] = np.float32(own[column]) * np.float32(own[column])
            best[column] = middle[column]
        for shift in range(1, _EXACT_PX):
            more, first = np.float32(shift * shift), _EXACT_PX - shift
            left, right = line[first : first + width], line[first + 2 * shift : first + 2 * shift + width]
            for column in range(width):
                other = left[column] if left[column] < right[column] else right[column]
                best[column] = other + more if other + more < best[column] else best[column]
        shown, out = inside[row], values[row]
        for column in range(width):
            # Pixels at the edge are half a pixel from it.
            near = np.sqrt(best[column])
            grid = (near if near < limit else beyond[column]) + half
            grid = grid if grid > band else band
            exact = np.sqrt(out[column])
            magnitude = exact if exact < band else grid
            out[column] = -magnitude if shown[column] != 0 else magnitude


@dataclass(frozen=True, eq=False)
class PackedDistances:
    """Several distance images in one buffer for compiled kernels.

    Attributes:
        values: (n,) the images' values one after the other, px.
        layout: (C, 6) start in ``values``, width, height, x and y of the first value, 1 if the view carves
            outside its image else 0.
    """

    values: Singles
    layout: Ints


def pack_distances(images: Sequence[DistanceImage]) -> PackedDistances:
    """Put the images of the used views into one buffer, in order."""
    layout = np.zeros((len(images), 6), dtype=np.int64)
    start = 0
    for index, image in enumerate(images):
        height, width = image.values.shape
        layout[index] = (start, width, height, *image.origin, int(image.carves_outside))
        start += width * height
    values = np.concatenate([image.values.ravel() for image in images]) if images else np.zeros(0, np.float32)
    return PackedDistances(values, layout)


def box_corners(image: DistanceImage) -> Floats:
    """Return (8, 2) points around the silhouette's outermost pixels (corners and middles of sides), px."""
    x0, y0, x1, y1 = image.box
    x0, y0, x1, y1 = x0 - 0.5, y0 - 0.5, x1 + 0.5, y1 + 0.5
    xm, ym = (x0 + x1) / 2, (y0 + y1) / 2
    return np.array([(x0, y0), (xm, y0), (x1, y0), (x1, ym), (x1, y1), (xm, y1), (x0, y1), (x0, ym)])
