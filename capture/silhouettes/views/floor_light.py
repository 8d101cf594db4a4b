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
from calibration.cameras.projection import project_columns
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
#: So large that numbers of doubled precision beside it are whole.
_WHOLE = 1.5 * 2.0**52
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
    return _told(asked, masks, pictures, frames, height, alike=False)


def lit_alike(
    asked: Sequence[Bools], masks: Sequence[Bools], pictures: Sequence[Picture], frames: Sequence[Frame], height: float
) -> list[Bools]:
    """Return which of the pixels asked (h, w) are lit as all others that see the floor behind them see it.

    Arguments as `lit_otherwise` has them.
    """
    return _told(asked, masks, pictures, frames, height, alike=True)


def _told(
    asked: Sequence[Bools],
    masks: Sequence[Bools],
    pictures: Sequence[Picture],
    frames: Sequence[Frame],
    height: float,
    *,
    alike: bool,
) -> list[Bools]:
    """Return which of the pixels asked (h, w) of each view are lit as all others have the floor, or as none has it.

    ``alike``: which of the two is wanted.
    """
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
    return [_judged(one, *told, picture, lights, alike) for one, told, picture in zip(asked, seen, flat, strict=True)]


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
    pixels, points = _on_floor(asked, views.corners[own], views.rows[own, CENTRE], lattice, height)
    points = np.ascontiguousarray(points)
    shown, seen = np.empty((len(views.rows), pixels.shape[1]), np.int64), np.empty((2, pixels.shape[1]))
    for view in range(len(views.rows)):
        if view == own:
            shown[view] = -1
            continue
        # All places in one view after the other: so several are projected by one instruction.
        project_columns(views.rows[view], points, seen)
        _free_pixels(views, view, seen, boxes[view], shown[view])
    return pixels, shown


@compiled
def _on_floor(asked: Bools, corner: Ints, origin: Floats, lattice: Floats, height: float) -> tuple[Ints, Floats]:
    """Return pixels (2, n) of every second row and column that are asked, and (3, n) where they see the floor."""
    count = 0
    for y in range(0, asked.shape[0], _STRIDE):
        for x in range(0, asked.shape[1], _STRIDE):
            count += asked[y, x]
    pixels, points, towards, n = np.empty((2, count), np.int64), np.empty((3, count)), np.empty(3), 0
    top, left = corner
    for y in range(0, asked.shape[0], _STRIDE):
        for x in range(0, asked.shape[1], _STRIDE):
            if not asked[y, x]:
                continue
            direction((top + y) / LATTICE_PX, (left + x) / LATTICE_PX, lattice, towards)
            along = (height - origin[2]) / towards[2]
            if not (along > 0.0 and along < np.inf):
                continue
            pixels[0, n], pixels[1, n] = y, x
            points[0, n], points[1, n] = origin[0] + along * towards[0], origin[1] + along * towards[1]
            points[2, n] = height
            n += 1
    return pixels[:, :n], points[:, :n]


@compiled
def _free_pixels(views: _Windows, view: int, seen: Floats, box: Ints, out: Ints) -> None:
    """Fill the pixels of a window at which places are ``seen`` (2, n; x and y), else -1; the box grows to hold them."""
    (top, left), (height, width) = views.corners[view], views.sizes[view]
    hidden = views.hidden[views.starts[view] : views.starts[view] + height * width]
    rows, columns = np.empty(len(out), np.int64), np.empty(len(out), np.int64)
    for n in range(len(out)):  # without branches: this loop takes several places at a time
        x, y = seen[0, n] - left, seen[1, n] - top
        inside = (x >= -0.5) & (y >= -0.5) & (x <= width - 0.5) & (y <= height - 0.5)
        # In numbers of this size nothing is left behind the point: they are rounded, to the even one of two as near.
        row, column = int(((y if inside else 0.0) + _WHOLE) - _WHOLE), int(((x if inside else 0.0) + _WHOLE) - _WHOLE)
        inside &= (row < height) & (column < width)
        rows[n], columns[n] = row, column
        out[n] = row * width + column if inside else -1
    first, last, begin, end = box[0], box[1], box[2], box[3]
    for n in range(len(out)):
        if out[n] < 0:
            continue
        if hidden[out[n]] != 0:
            out[n] = -1
            continue
        first, last = min(first, rows[n]), max(last, rows[n] + 1)
        begin, end = min(begin, columns[n]), max(end, columns[n] + 1)
    box[0], box[1], box[2], box[3] = first, last, begin, end


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
def _judged(asked: Bools, pixels: Ints, shown: Ints, picture: Flat, lights: _Lights, alike: bool) -> Bools:
    """Return (h, w) which of the pixels asked are lit as the floor that the others show, with the pixels beside.

    As all of them show it (``alike``); or as none does, where two show it in the same light. Most are lit as it is: the
    first view to say otherwise, or else so, settles a pixel.
    """
    out, channels = np.zeros(asked.shape, np.bool_), len(picture[2])
    own, places = np.empty(channels, np.float32), np.empty(len(shown), np.int64)
    for n in range(pixels.shape[1]):
        y, x, count, holds = pixels[0, n], pixels[1, n], 0, True
        for view in range(len(shown)):
            if shown[view, n] < 0:
                continue
            if count == 0:
                for c in range(channels):
                    own[c] = _ratio_at(picture, y, x, c)
            places[count] = _place_of(shown[view, n], view, lights, channels)
            same = True
            for c in range(channels):
                same &= (own[c] <= lights.high[places[count] + c]) & (lights.low[places[count] + c] <= own[c])
            count += 1
            if same != alike:
                holds = False
                break
        if count == 0 or not holds or not (alike or _known(places[:count], lights, channels)):
            continue
        for v in range(y, min(y + _STRIDE, asked.shape[0])):
            for u in range(x, min(x + _STRIDE, asked.shape[1])):
                if asked[v, u]:
                    out[v, u] = True
    return out


@compiled
def _ratio_at(picture: Flat, y: int, x: int, c: int) -> np.float32:
    """Return what `_fill_ratios` has of one pixel and channel."""
    images, grounds, light, (top, left) = picture
    height, channels = images.shape[0], len(light)
    width = images.shape[1] // channels
    ninth, part, full = np.float32(1.0 / 9.0), np.float32(0.0), np.float32(0.0)
    for dx in range(-1, 2):
        column = _mirrored(x + dx, width)
        now, then = np.float32(0.0), np.float32(0.0)
        for dy in range(-1, 2):
            row = _mirrored(y + dy, height)
            now += np.float32(images[row, column * channels + c])
            then += grounds[top + row, (left + column) * channels + c] * light[c]
        part, full = part + now, full + then
    return np.float32(part * ninth / max(full * ninth, _DARK))


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
