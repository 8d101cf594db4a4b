"""The limbs of a pose drawn small into one view, one bit each, beside the silhouette that was seen there."""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np

from calibration.cameras.projection import project_columns, project_into
from calibration.foundation.arrays import Bytes, Floats, Ints, Singles
from calibration.foundation.compiled import compiled
from tracking.observations.contours import View
from tracking.observations.rasteriser import Layers, fill_layers

__all__ = ["Canvas", "ViewDrawing", "carried", "drawn", "judged", "point_values", "projected", "unexplained"]

SMALL = 220
"""Pixels across the drawing of a view, at most."""
ROOM = 0.05
"""What is left free around the silhouette and the model, as a share of their size."""

SWING = 2.0
"""How much further than a limb's skin the outline of clothes may lie from where they are drawn."""
RIM = 0.05
"""Silhouette that no limb covers, as a share of the limbs, up to which it may all lie at their rims."""


@dataclass(frozen=True, eq=False)
class Canvas:
    """Part of a view, small.

    Attributes:
        mask: (h, w) observed silhouette.
        emptiness: (h, w) how far outside the silhouette each pixel lies, small pixels.
        left, top, step: full pixel = (left, top) + step x small pixel.
    """

    mask: Bytes
    emptiness: Singles
    left: float
    top: float
    step: int

    @classmethod
    def of(cls, view: View, low: Floats, high: Floats) -> Canvas:
        """Cut out what lies between two corners (2,) of the full image."""
        step = max(1, -(-int((high - low).max()) // SMALL))
        width, height = (max(int(size), 1) for size in -(-(high - low) // step))
        mask = np.zeros((height, width), np.uint8)
        # The pixel in the middle of each small one stands for it.
        (to_x, of_x), (to_y, of_y) = (
            _sampled(int(low[k]) + step // 2 - view.box[k], step, size, view.box[2 + k])
            for k, size in enumerate((width, height))
        )
        mask[to_y, to_x] = view.mask[of_y, of_x]
        emptiness = np.asarray(cv2.distanceTransform(1 - mask, cv2.DIST_L2, 5), np.float32)
        return cls(mask, emptiness, float(low[0]), float(low[1]), step)

    @classmethod
    def around(cls, view: View) -> Canvas:
        """Cut out the silhouette with some room."""
        box = np.array([view.box[0], view.box[1], view.box[0] + view.box[2], view.box[1] + view.box[3]], float)
        room = 2 * ROOM * float((box[2:] - box[:2]).max()) + 2
        return cls.of(view, *_within(view, box, room))

    def holding(self, view: View, pixels: Floats) -> Canvas:
        """Return a canvas that holds the model's pixels (N, 2) too, as far as the image does: this one if it does."""
        bounds = _bounds(pixels)
        left, top, right, bottom = bounds.tolist()
        if not math.isfinite(left + top + right + bottom):
            return self
        height, width = self.mask.shape
        end_x, end_y = self.left + self.step * width, self.top + self.step * height
        fits = max(left, 0.0) >= self.left and max(top, 0.0) >= self.top
        if fits and min(right, view.size[0]) <= end_x and min(bottom, view.size[1]) <= end_y:
            return self
        box = np.array([self.left, self.top, end_x, end_y])
        least, most = np.maximum(bounds[:2], 0), np.minimum(bounds[2:], view.size)
        box[:2], box[2:] = np.minimum(box[:2], least), np.maximum(box[2:], most)
        return Canvas.of(view, *_within(view, box, ROOM * float((box[2:] - box[:2]).max()) + 2))


def _sampled(first: int, step: int, size: int, there: int) -> tuple[slice, slice]:
    """Which of ``size`` samples, ``first`` and every ``step`` on, fall on an axis of ``there`` pixels, and on which."""
    begin = max(0, -(first // step))
    end = max(begin, min(size, -(-(there - first) // step)))
    return slice(begin, end), slice(first + begin * step, max(first + end * step, 0), step)


def _within(view: View, box: Floats, room: float) -> tuple[Floats, Floats]:
    """Corners of a box grown by some room, within the image."""
    return np.maximum(np.floor(box[:2] - room), 0), np.minimum(np.ceil(box[2:] + room), view.size)


@dataclass(frozen=True, eq=False)
class ViewDrawing:
    """One view drawn small.

    Attributes:
        canvas: what was seen.
        limbs: (h, w) one bit for each limb that covers a pixel.
        feet: (h, w) the bits of `tracking.limbs.feet_apart`, drawn with the same stroke.
        rate: small pixels per mm at the body.
    """

    canvas: Canvas
    limbs: Layers
    feet: Layers
    rate: float


def drawn(canvas: Canvas, pixels: Floats, faces: Ints, layers: Layers, count: int, spread: float) -> ViewDrawing:
    """Draw a projected mesh (V, 2) whose faces have bits of their own (F,): the lowest ``count`` of them are limbs'.

    ``spread`` is that of the body across a view, mm: the root of the sum of two variances.
    """
    small = (pixels - np.array([canvas.left, canvas.top]) - canvas.step // 2) / canvas.step
    image = np.zeros(canvas.mask.shape, np.uint32)
    fill_layers(small, faces, layers, image)
    across = _across(small, spread)
    limbs, feet = image & np.uint32((1 << count) - 1), image >> np.uint32(count)
    return ViewDrawing(canvas, limbs, feet, across / max(spread, 1e-9))


def judged(drawing: ViewDrawing, count: int, tolerance: float, *, covered: int = 0) -> tuple[Floats, Floats, Floats]:
    """Shares (L,) of each of ``count`` limbs: in empty air, missing beside it, and covered by no other limb.

    Args:
        drawing: of one view.
        count: limbs.
        tolerance: how far outlines may lie from each other, mm.
        covered: bits of the limbs below clothes, whose own bit is that after the last limb's; 0 for a bare body.

    Returns:
        outside, missing, apart: NaN where a limb is not drawn; missing is silhouette that no limb explains, put down to
        the limb nearest in the image, as a share of that limb's drawn size. What lies beside clothes, well beyond what
        they swing by, is put down to the nearest of the limbs below: a foot under the hem.
    """
    near = tolerance * drawing.rate
    # What is nearest to a pixel lies with it between the ends of model and silhouette: the room around is left out.
    top, bottom, left, right = _extent(drawing.limbs, drawing.canvas.mask)
    within = slice(top, bottom), slice(left, right)
    limbs, mask = drawing.limbs[within], drawing.canvas.mask[within]
    areas, outside, apart = np.zeros(count), np.zeros(count), np.zeros(count)
    _tally(limbs, drawing.canvas.emptiness[within], near, areas, outside, apart)
    missing = np.zeros(count)
    bare = (limbs == 0).astype(np.uint8)
    seen = bare & mask
    # Few bare pixels lie at the rim, most likely: then a quicker distance tells that none is far from the model.
    unsure = int(cv2.countNonZero(seen)) < RIM * areas.sum()
    if areas.any() and (not unsure or _any_far(bare, seen, near)):
        # The label of a pixel is that of the nearest pixel of the model; the outermost limb there owns it.
        away, labels = cv2.distanceTransformWithLabels(bare, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)
        under = labels
        if covered and not (below := (limbs & covered == 0).astype(np.uint8)).all():
            under = cv2.distanceTransformWithLabels(below, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)[1]
        _put_down(limbs, mask, away, labels, under, covered, near, missing)
    size = np.where(areas > 0, areas, np.nan)
    return outside / size, missing / size, apart / size


def _any_far(bare: Bytes, seen: Bytes, near: float) -> bool:
    """Whether silhouette that no limb covers, ``seen``, lies further from what is not ``bare`` than ``near``."""
    x, y, width, height = cv2.boundingRect(seen)
    if not width:
        return False
    room = int(near) + 2  # what is nearer lies within
    part = slice(max(y - room, 0), y + height + room), slice(max(x - room, 0), x + width + room)
    away = cv2.distanceTransform(bare[part], cv2.DIST_L2, 5)
    return bool(((away > near) & (seen[part] > 0)).any())


def unexplained(drawing: ViewDrawing, tolerance: float) -> tuple[Floats, Ints]:
    """Return the full pixels (n, 2) of silhouette that no limb explains, and the limb (n,) that each is put down to."""
    canvas = drawing.canvas
    bare = (drawing.limbs == 0).astype(np.uint8)
    if bare.all():
        return np.zeros((0, 2)), np.zeros(0, np.int64)
    away, labels = cv2.distanceTransformWithLabels(bare, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)
    rows, columns = np.nonzero((canvas.mask > 0) & (away > tolerance * drawing.rate))
    owner = np.zeros(bare.size + 1, np.int64)
    drawn_at = np.nonzero(drawing.limbs)
    owner[labels[drawn_at]] = np.log2(drawing.limbs[drawn_at]).astype(np.int64)  # the outermost limb: the highest bit
    pixels = np.stack([canvas.left + canvas.step * (columns + 0.5), canvas.top + canvas.step * (rows + 0.5)], axis=1)
    return pixels, owner[labels[rows, columns]]


@compiled
def _bounds(pixels: Floats) -> Floats:
    """Least and greatest x and y (4,) of those of the points (N, 2) that are finite; infinite where none is."""
    bounds = np.array([np.inf, np.inf, -np.inf, -np.inf])
    for i in range(len(pixels)):
        x, y = pixels[i, 0], pixels[i, 1]
        if np.isfinite(x + y):
            bounds[0], bounds[1] = min(bounds[0], x), min(bounds[1], y)
            bounds[2], bounds[3] = max(bounds[2], x), max(bounds[3], y)
    return bounds


@compiled
def _across(pixels: Floats, unknown: float) -> float:
    """Root of the sum of the variances of points (N, 2), those that are finite; of fewer than three ``unknown``."""
    count, mean_x, mean_y = 0, 0.0, 0.0
    for i in range(len(pixels)):
        if np.isfinite(pixels[i, 0] + pixels[i, 1]):
            count += 1
            mean_x += pixels[i, 0]
            mean_y += pixels[i, 1]
    if count < 3:
        return unknown
    mean_x, mean_y, total = mean_x / count, mean_y / count, 0.0
    for i in range(len(pixels)):
        if np.isfinite(pixels[i, 0] + pixels[i, 1]):
            total += (pixels[i, 0] - mean_x) ** 2 + (pixels[i, 1] - mean_y) ** 2
    return float(np.sqrt(total / count))


@compiled
def _extent(limbs: Layers, mask: Bytes) -> tuple[int, int, int, int]:
    """First row and the one after the last, and the same of columns, that hold all drawn and silhouette pixels."""
    height, width = limbs.shape
    there = np.zeros(width, np.uint32)
    top, bottom, left, right = height, 0, 0, width
    for row in range(height):
        drawn_there, seen_there, any_there = limbs[row], mask[row], np.uint32(0)
        for column in range(width):
            bits = drawn_there[column] | np.uint32(seen_there[column])
            there[column] |= bits
            any_there |= bits
        if any_there:
            top, bottom = min(top, row), row + 1
    top = min(top, bottom)
    while left < right and not there[left]:
        left += 1
    while right > left and not there[right - 1]:
        right -= 1
    return top, bottom, left, right


@compiled
def _tally(limbs: Layers, emptiness: Singles, near: float, areas: Floats, outside: Floats, apart: Floats) -> None:
    """Count each limb's pixels, those far outside, and those that no other limb covers."""
    # Pixels with the same limbs are counted together: there are few such sets, clothes' bit among them.
    count, sets = len(areas), 1 << (len(areas) + 1)
    pixels = np.zeros((2, sets), np.int64)
    for row in range(limbs.shape[0]):
        for column in range(limbs.shape[1]):
            pixels[int(emptiness[row, column] > near), limbs[row, column] & (sets - 1)] += 1
    for bits in range(1, sets):
        every = pixels[0, bits] + pixels[1, bits]
        for limb in range(count):
            if every and (bits >> limb) & 1:
                areas[limb] += every
                outside[limb] += pixels[1, bits]
                if bits == 1 << limb:
                    apart[limb] += every


# Eight parameters: a kernel over the fields of a drawing and its distances.
@compiled
def _put_down(
    limbs: Layers, mask: Bytes, away: Singles, labels: Ints, under: Ints, covered: int, near: float, missing: Floats
) -> None:
    """Count silhouette further than ``near`` from the model for the limb that is nearest to each pixel.

    ``labels`` name the nearest pixel of the model, ``under`` that of the limbs below clothes.
    """
    count = len(missing)
    outermost = _highest(1 << (count + 1))
    owner = np.zeros(limbs.size + 1, np.uint8)
    below = np.full(limbs.size + 1 if covered else 1, np.uint8(count))
    for row in range(mask.shape[0]):
        for column in range(mask.shape[1]):
            bits = limbs[row, column] & (len(outermost) - 1)
            if bits:
                owner[labels[row, column]] = outermost[bits]
                if bits & covered:
                    below[under[row, column]] = outermost[bits & covered]
    for row in range(mask.shape[0]):
        for column in range(mask.shape[1]):
            if mask[row, column] and away[row, column] > near:
                limb = owner[labels[row, column]]
                if covered and limb == count and away[row, column] > SWING * near:
                    limb = below[under[row, column]]
                if limb < count:
                    missing[limb] += 1


@compiled
def _highest(sets: int) -> Bytes:
    """Highest bit of each number below ``sets``, 0 for 0."""
    highest = np.zeros(sets, np.uint8)
    for bits in range(2, sets):
        highest[bits] = highest[bits >> 1] + 1
    return highest


def point_values(drawing: ViewDrawing, camera: Floats, points: Floats, limb: int, empty: float, totals: Floats) -> None:
    """Add to each pose's total (N,) the mean value of a limb's points (3, N, P) in one view.

    A point is worth 1 on silhouette that no other limb explains, 0 behind the body, down to -1 where it lies ``empty``
    mm or more in empty air.
    """
    canvas = drawing.canvas
    values = np.empty(canvas.mask.size + 1, np.float32)
    values[-1] = -1.0
    worth = values[:-1].reshape(canvas.mask.shape)
    _worth(drawing.limbs, canvas.mask, canvas.emptiness, 1 << limb, empty * drawing.rate, worth)
    _add_values(points, camera, values, canvas.mask.shape, (canvas.left, canvas.top), canvas.step, totals)


@compiled
def _worth(limbs: Layers, mask: Bytes, emptiness: Singles, own: int, empty: float, values: Singles) -> None:
    """Write what a point of the limb with the bit ``own`` is worth in each pixel."""
    others, share = np.uint32(~own & 0xFFFFFFFF), np.float32(1.0 / empty)
    for row in range(limbs.shape[0]):
        for column in range(limbs.shape[1]):
            free = mask[row, column] != 0 and (limbs[row, column] & others) == 0
            value = np.float32(1.0) if free else np.float32(0.0)
            values[row, column] = value - min(emptiness[row, column] * share, np.float32(1.0))


# Seven parameters: a kernel over the fields of a drawing.
@compiled
def _add_values(
    points: Floats,
    camera: Floats,
    values: Singles,
    shape: tuple[int, int],
    corner: tuple[float, float],
    step: int,
    totals: Floats,
) -> None:
    """Add what points are worth in pixels of a drawing of a shape; the last of ``values`` (h w + 1,) is that beside."""
    (height, width), (left, top), each, share = shape, corner, points.shape[2], 1.0 / step
    # Points of several poses at a time, coordinate by coordinate and without a branch: so several of them are
    # projected and looked up by one instruction.
    together = max(480 // max(each, 1), 1)
    size = together * each
    flat, room, pixels = points.reshape(3, -1), np.zeros((3, size)), np.empty((2, size))
    places, worth = np.empty(size, np.uint32), np.empty(size, np.float32)
    for first in range(0, points.shape[1], together):
        begin, count = first * each, min(together, points.shape[1] - first) * each
        for k in range(3):
            for i in range(count):
                room[k, i] = flat[k, begin + i]
        project_columns(camera, room, pixels)
        columns, rows = pixels[0], pixels[1]
        for i in range(count):
            x, y = (columns[i] - left) * share, (rows[i] - top) * share
            inside = (x >= 0.0) & (y >= 0.0) & (x < width) & (y < height)
            places[i] = np.uint32(int(y) * width + int(x)) if inside else np.uint32(height * width)
        for i in range(count):
            worth[i] = values[places[i]]
        for n in range(count // each):
            total = 0.0
            for p in range(n * each, (n + 1) * each):
                total += worth[p]
            totals[first + n] += total / each


@compiled
def carried(rotations: Floats, centres: Floats, owner: Ints, local: Floats) -> Floats:
    """(3, N, P) points (P, 3) in the axes of their quads (P,), carried by N poses of the quads (N, K, ...)."""
    points = np.empty((3, len(rotations), len(owner)))
    for n in range(len(rotations)):
        for p in range(len(owner)):
            for i in range(3):
                total = centres[n, owner[p], i]
                for j in range(3):
                    total += rotations[n, owner[p], i, j] * local[p, j]
                points[i, n, p] = total
    return points


@compiled
def projected(vertices: Floats, camera: Floats) -> Floats:
    """(N, 2) pixels of points in one camera."""
    pixels = np.empty((len(vertices), 2))
    project_into(camera, vertices, pixels)
    return pixels
