"""Which pixels that look like shade are lit as the floor behind them is, and which are not.

Shade on a matt floor darkens a place by the same factors whoever looks at it. So where two other views see the floor at
the end of a line of sight, and agree on how it is lit, a pixel of another ratio of image and empty scene shows
something before the floor: a bare leg before its own shadow. One of the ratio that all others have there shows shade.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import cv2
import numpy as np

from calibration.cameras.camera_row import CENTRE
from calibration.cameras.projection import project_point
from calibration.foundation.arrays import Bools, Bytes, Floats, Ints, Singles
from calibration.foundation.compiled import compiled
from capture.silhouettes.views.following import LATTICE_PX, direction
from capture.silhouettes.views.lines_of_sight import Frame, lattice_of

__all__ = ["Picture", "lit_alike", "lit_otherwise"]

#: Ratios are the same within this share, or within those of so many pixels around: calibration is not exact.
_SAME, _AROUND_PX = 0.06, 2
#: Lines of sight are followed through every so manyth pixel, as `capture.silhouettes.views.confirmation` does.
_STRIDE = 2
#: Brightness that noise and black level make of no light.
_DARK = np.float32(8.0)
#: What the other views say of a pixel: it is lit as all of them have the floor behind it; as none of them has.
_ALIKE, _OTHERWISE = 1, 2
_SQUARE = np.ones((2 * _AROUND_PX + 1, 2 * _AROUND_PX + 1), np.uint8)


class Picture(NamedTuple):
    """A window of an image and the empty scene behind it, whose ratio tells how a place is lit.

    ``image`` (h, w, C) of the window, ``ground`` (H, W, C) the whole empty scene, ``light`` (C,) gain of the image's
    light, ``corner`` (row, column) at which the window begins in the scene.
    """

    image: Bytes
    ground: Singles
    light: Singles
    corner: tuple[int, int]


class _Windows(NamedTuple):
    """What all views see: cameras (V, 36) of whole images, corners (V, 2) and sizes (V, 2) of their windows.

    ``hidden``: what the subject hides, 0 or 1, all pixels of one window after the other from ``starts`` (V,) on.
    """

    rows: Floats
    corners: Ints
    sizes: Ints
    starts: Ints
    hidden: Bytes


class _Lights(NamedTuple):
    """Least and most of the ratios around each pixel of rectangles (V, 4: rows, columns), from ``starts`` (V,) on.

    ``widths``: (V,) of the windows in which the rectangles lie.
    """

    boxes: Ints
    widths: Ints
    starts: Ints
    low: Singles
    high: Singles


Place: TypeAlias = tuple[int, int, int, int]
#: A picture with all channels of a row side by side: (h, w C) of the window, (H, W C) of the scene; light, corner.
Flat: TypeAlias = tuple[Bytes, Singles, Singles, tuple[int, int]]


def lit_otherwise(
    asked: Sequence[Bools], masks: Sequence[Bools], pictures: Sequence[Picture], frames: Sequence[Frame], height: float
) -> list[Bools]:
    """Return which of the pixels asked (h, w) of each view are not lit as the others see the floor behind them.

    Args:
        asked: (h, w) of each view.
        masks: (h, w) what is surely the subject.
        pictures: images and empty scenes.
        frames: cameras of whole images, and where (x, y) in these each view begins.
        height: z of the floor, mm.
    """
    return [told == _OTHERWISE for told in _told(asked, masks, pictures, frames, height)]


def lit_alike(
    asked: Sequence[Bools], masks: Sequence[Bools], pictures: Sequence[Picture], frames: Sequence[Frame], height: float
) -> list[Bools]:
    """Return which of the pixels asked (h, w) are lit as all others that see the floor behind them see it.

    Arguments as `lit_otherwise` has them.
    """
    return [told == _ALIKE for told in _told(asked, masks, pictures, frames, height)]


def _told(
    asked: Sequence[Bools], masks: Sequence[Bools], pictures: Sequence[Picture], frames: Sequence[Frame], height: float
) -> list[Bytes]:
    """Return (h, w) what the others say of the pixels asked of each view; 0 where they cannot tell."""
    sizes = np.array([mask.shape for mask in masks], dtype=np.int64)
    views = _Windows(
        np.array([camera.packed() for camera, _ in frames]),
        np.array([(y, x) for _, (x, y) in frames], dtype=np.int64),
        sizes,
        _starts(sizes.prod(axis=1)),
        np.concatenate([cv2.dilate(mask.view(np.uint8), _SQUARE).ravel() for mask in masks]),
    )
    boxes = np.zeros((len(frames), 4), np.int64)
    boxes[:, ::2] = sizes  # of nothing yet: rows and columns end before they begin
    seen = []
    for own, (camera, _) in enumerate(frames):
        pixels = np.ascontiguousarray(asked[own])
        seen.append(_shown(pixels, own, lattice_of(camera), height, views, boxes))
    flat = [_flat(picture) for picture in pictures]
    lights = _lights(flat, boxes, np.ascontiguousarray(sizes[:, 1]))
    return [_judged(one, *told, picture, lights) for one, told, picture in zip(asked, seen, flat, strict=True)]


def _flat(picture: Picture) -> Flat:
    """Return a picture as the loops take it."""
    image, ground = np.ascontiguousarray(picture.image), np.ascontiguousarray(picture.ground)
    (height, width, channels), (rows, columns, _) = image.shape, ground.shape
    flat = (image.reshape(height, width * channels), ground.reshape(rows, columns * channels))
    return *flat, picture.light.astype(np.float32), picture.corner


def _starts(counts: Ints) -> Ints:
    """Return (n,) where each of some stretches begins that lie one after the other."""
    return np.asarray(np.cumsum(counts) - counts, np.int64)


def _lights(pictures: Sequence[Flat], boxes: Ints, widths: Ints) -> _Lights:
    """Return how the ground is lit in the rectangle of each view that the others ask for."""
    channels = len(pictures[0][2])
    counts = np.array([max(0, b - a) * max(0, d - c) * channels for a, b, c, d in boxes.tolist()], np.int64)
    starts, whole = _starts(counts), int(counts.sum())
    low, high = np.empty(whole, np.float32), np.empty(whole, np.float32)
    for picture, (a, b, c, d), start, count in zip(pictures, boxes.tolist(), starts, counts, strict=True):
        if count > 0:
            _fill_ranges(picture, (a, b, c, d), low[start : start + count], high[start : start + count])
    return _Lights(boxes, widths, starts, low, high)


@compiled
def _shown(asked: Bools, own: int, lattice: Floats, height: float, views: _Windows, boxes: Ints) -> tuple[Ints, Ints]:
    """Return pixels (2, n) that are asked and see the floor, and (V, n) the pixels at which the others show it.

    Those are numbered row by row, -1 where a view does not show the place, free of the subject. ``boxes`` (V, 4) grow
    to hold what is shown.
    """
    count = 0
    for y in range(0, asked.shape[0], _STRIDE):
        for x in range(0, asked.shape[1], _STRIDE):
            count += asked[y, x]
    pixels, shown = np.empty((2, count), np.int64), np.empty((len(views.rows), count), np.int64)
    origin, towards, n = views.rows[own, CENTRE], np.empty(3), 0
    top, left = views.corners[own]
    for y in range(0, asked.shape[0], _STRIDE):
        for x in range(0, asked.shape[1], _STRIDE):
            if not asked[y, x]:
                continue
            direction((top + y) / LATTICE_PX, (left + x) / LATTICE_PX, lattice, towards)
            along = (height - origin[2]) / towards[2]
            if not (along > 0.0 and along < np.inf):
                continue
            pixels[0, n], pixels[1, n] = y, x
            for view in range(len(views.rows)):
                shown[view, n] = -1
                if view != own:
                    a, b, c = origin[0] + along * towards[0], origin[1] + along * towards[1], height
                    shown[view, n] = _free_pixel(views, view, project_point(views.rows[view], a, b, c), boxes[view])
            n += 1
    return pixels[:, :n], shown[:, :n]


@compiled
def _free_pixel(views: _Windows, view: int, seen: tuple[float, float], box: Ints) -> int:
    """Return the pixel of a window at which a place is ``seen`` (x, y), else -1; the box grows to hold it."""
    x, y = seen[0] - views.corners[view, 1], seen[1] - views.corners[view, 0]
    height, width = views.sizes[view]
    if not (x >= -0.5 and y >= -0.5 and x <= width - 0.5 and y <= height - 0.5):
        return -1
    row, column = int(np.rint(y)), int(np.rint(x))
    if row >= height or column >= width or views.hidden[views.starts[view] + row * width + column] != 0:
        return -1
    box[0], box[1] = min(box[0], row), max(box[1], row + 1)
    box[2], box[3] = min(box[2], column), max(box[3], column + 1)
    return int(row * width + column)


@compiled
def _fill_ranges(picture: Flat, box: Place, low: Singles, high: Singles) -> None:
    """Fill the least and the most of the ratios around each pixel of a rectangle (rows, columns)."""
    height, channels = picture[0].shape[0], len(picture[2])
    width = picture[0].shape[1] // channels
    top, bottom, left, right = box
    first, last = max(0, top - _AROUND_PX), min(height, bottom + _AROUND_PX)
    begin, end = max(0, left - _AROUND_PX), min(width, right + _AROUND_PX)
    side, gains = (right - left) * channels, _gains(picture[2], end - begin + 2)
    # Beyond the window there is nothing: room for as many pixels on both sides, which are neither least nor most.
    room = np.empty((right - left + 2 * _AROUND_PX) * channels, np.float32)
    skipped = (begin - left + _AROUND_PX) * channels
    line = room[skipped : skipped + (end - begin) * channels]
    least, most = np.empty((last - first, side), np.float32), np.empty((last - first, side), np.float32)
    for n in range(last - first):
        _fill_ratios(picture, first + n, (begin, end), gains, line)
        for out, beyond, sign in ((least[n], np.float32(np.inf), 1), (most[n], np.float32(-np.inf), -1)):
            room[:skipped] = beyond
            room[skipped + len(line) :] = beyond
            out[:] = room[:side]
            for step in range(1, 2 * _AROUND_PX + 1):
                other = room[step * channels : step * channels + side]
                if sign > 0:
                    for k in range(side):
                        out[k] = min(out[k], other[k])
                else:
                    for k in range(side):
                        out[k] = max(out[k], other[k])
    for y in range(top, bottom):
        darkest, lightest = low[(y - top) * side : (y - top + 1) * side], high[(y - top) * side : (y - top + 1) * side]
        begin, end = max(y - _AROUND_PX, first) - first, min(y + _AROUND_PX + 1, last) - first
        darkest[:], lightest[:] = least[begin], most[begin]
        for n in range(begin + 1, end):
            one, other = least[n], most[n]
            for k in range(side):
                darkest[k] = min(darkest[k], one[k])
            for k in range(side):
                lightest[k] = max(lightest[k], other[k])
        for k in range(side):
            darkest[k] *= np.float32(1.0 - _SAME)
            lightest[k] *= np.float32(1.0 + _SAME)


@compiled
def _gains(light: Singles, pixels: int) -> Singles:
    """Return the light (C,) of so many pixels side by side."""
    out = np.empty(pixels * len(light), np.float32)
    for n in range(len(out)):
        out[n] = light[n % len(light)]
    return out


@compiled
def _fill_ratios(picture: Flat, y: int, columns: tuple[int, int], gains: Singles, out: Singles) -> None:
    """Fill image over ground of a row between two columns, each the mean of nine pixels.

    Beyond the window it is as mirrored at its outermost pixels. ``gains``: light of two pixels more.
    """
    images, grounds, light, (top, left) = picture
    height, channels = images.shape[0], len(light)
    width, (first, last) = images.shape[1] // channels, columns
    begin, end = max(first - 1, 0), min(last + 1, width)
    now, then = np.zeros(len(out) + 2 * channels, np.float32), np.zeros(len(out) + 2 * channels, np.float32)
    inner = slice((begin - first + 1) * channels, (end - first + 1) * channels)
    light_sum, full_sum, count = now[inner], then[inner], (end - begin) * channels
    for dy in range(-1, 2):
        row = _mirrored(y + dy, height)
        image = images[row, begin * channels : end * channels]
        ground = grounds[top + row, (left + begin) * channels : (left + end) * channels]
        for n in range(count):
            light_sum[n] += np.float32(image[n])
        for n in range(count):
            full_sum[n] += ground[n] * gains[n]
    for c in range(channels):
        if first == 0:
            n = min(2, width) * channels + c
            now[c], then[c] = now[n], then[n]
        if last == width:
            n, beyond = (len(now) - 3 * channels if width > 1 else channels) + c, len(now) - channels + c
            now[beyond], then[beyond] = now[n], then[n]
    ninth = np.float32(1.0 / 9.0)
    for n in range(len(out)):
        part = (now[n] + now[n + channels] + now[n + 2 * channels]) * ninth
        full = (then[n] + then[n + channels] + then[n + 2 * channels]) * ninth
        out[n] = part / max(full, _DARK)


@compiled
def _mirrored(place: int, side: int) -> int:
    """Return a place along an axis, mirrored at the outermost if it lies beyond; kept inside however short the side."""
    place = abs(place)
    return max(0, place if place < side else 2 * side - 2 - place)


@compiled
def _judged(asked: Bools, pixels: Ints, shown: Ints, picture: Flat, lights: _Lights) -> Bytes:
    """Return (h, w) what the floor that the others show says of the pixels asked, with the pixels beside."""
    out, channels = np.zeros(asked.shape, np.uint8), len(picture[2])
    own, gains = np.empty(channels, np.float32), _gains(picture[2], 3)
    places = np.empty(len(shown), np.int64)
    for n in range(pixels.shape[1]):
        y, x, count, agree = pixels[0, n], pixels[1, n], 0, 0
        for view in range(len(shown)):
            if shown[view, n] >= 0:
                places[count] = _place_of(shown[view, n], view, lights, channels)
                count += 1
        if count == 0:
            continue
        _fill_ratios(picture, y, (x, x + 1), gains, own)
        for k in range(count):
            same = True
            for c in range(channels):
                same &= (own[c] <= lights.high[places[k] + c]) & (lights.low[places[k] + c] <= own[c])
            agree += same
        if agree == count:
            verdict = _ALIKE
        elif agree == 0 and _known(places[:count], lights, channels):
            verdict = _OTHERWISE
        else:
            continue
        for v in range(y, min(y + _STRIDE, asked.shape[0])):
            for u in range(x, min(x + _STRIDE, asked.shape[1])):
                if asked[v, u]:
                    out[v, u] = verdict
    return out


@compiled
def _place_of(pixel: int, view: int, lights: _Lights, channels: int) -> int:
    """Return where the ratios of a pixel of a view's window begin."""
    top, _, left, right = lights.boxes[view]
    row, column = pixel // lights.widths[view] - top, pixel % lights.widths[view] - left
    return int(lights.starts[view] + (row * (right - left) + column) * channels)


@compiled
def _known(places: Ints, lights: _Lights, channels: int) -> bool:
    """Return whether two of the views that show the floor show it in the same light."""
    for k in range(len(places)):
        for other in range(k):
            same = True
            for c in range(channels):
                a, b = places[k] + c, places[other] + c
                same &= (lights.low[a] <= lights.high[b]) & (lights.low[b] <= lights.high[a])
            if same:
                return True
    return False
