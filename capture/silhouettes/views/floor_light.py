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
#: Side of the tiles in which light is measured where anything is asked, px.
_TILE_PX = 64
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


class _Asked(NamedTuple):
    """The pixels of all views whose light is asked for, and what the views that were looked at so far say of it.

    Attributes:
        owners: (n,) their views.
        points: (3, n) where they see the floor.
        ratios: (n, C) image over ground.
        open: (n,) 1 as long as no view has said what settles a pixel.
        counts: (n,) views that show the place.
        low, high: (V, n, C) least and most of the ratios around it in each of these; of open pixels alone.
    """

    owners: Ints
    points: Floats
    ratios: Singles
    open: Bytes
    counts: Ints
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
    flat = [_flat(picture) for picture in pictures]
    lattices = [lattice_of(camera) for camera, _ in frames]
    on_floor = [
        _on_floor(np.ascontiguousarray(one), corner, row[CENTRE], lattice, height)
        for one, corner, row, lattice in zip(asked, views.corners, views.rows, lattices, strict=True)
    ]
    pixels = [one for one, _ in on_floor]
    known = _all_asked(pixels, [points for _, points in on_floor], flat)
    # Memory is taken once for all views: what is new costs more than what is written to it.
    low, high = np.empty((2, max(picture[0].size for picture in flat)), np.float32)
    for view, picture in enumerate(flat):
        _ask(view, picture, views, known, alike, (low, high))
    told, ends = _settled(known, alike), np.cumsum([one.shape[1] for one in pixels])
    parts = np.split(told, ends[:-1])
    return [_drawn(np.ascontiguousarray(one), at, part) for one, at, part in zip(asked, pixels, parts, strict=True)]


def _all_asked(pixels: Sequence[Ints], points: Sequence[Floats], pictures: Sequence[Flat]) -> _Asked:
    """Return the pixels (2, n) of each view, which see the floor at points (3, n), of which no view has told yet."""
    owners = np.repeat(np.arange(len(pixels)), [one.shape[1] for one in pixels])
    ratios = np.concatenate([_ratios_at(picture, one) for one, picture in zip(pixels, pictures, strict=True)])
    count, channels = ratios.shape
    low, high = (np.empty((len(pixels), count, channels), np.float32) for _ in range(2))
    return _Asked(
        owners, np.concatenate(points, axis=1), ratios, np.ones(count, np.uint8), np.zeros(count, np.int64), low, high
    )


def _flat(picture: Picture) -> Flat:
    """Return a picture as the loops take it."""
    image, ground = np.ascontiguousarray(picture.image), np.ascontiguousarray(picture.ground)
    (height, width, channels), (rows, columns, _) = image.shape, ground.shape
    flat = (image.reshape(height, width * channels), ground.reshape(rows, columns * channels))
    return *flat, picture.light.astype(np.float32), picture.corner


def _starts(counts: Ints) -> Ints:
    """Return (n,) where each of some stretches begins that lie one after the other."""
    return np.asarray(np.cumsum(counts) - counts, np.int64)


@compiled
def _ask(view: int, picture: Flat, views: _Windows, known: _Asked, alike: bool, room: tuple[Singles, Singles]) -> None:
    """Let a view say of the open pixels of all others how it shows the floor behind them.

    Most are lit as the floor is: the first view to say so, or with ``alike`` the first to say otherwise, settles a
    pixel. So later views are asked for few, and the light is measured in those tiles alone where something is asked.
    ``room``: for the least and most of the light of a window.
    """
    (height, width), channels = views.sizes[view], known.ratios.shape[1]
    asked, count = np.empty(len(known.owners), np.int64), 0
    for n in range(len(asked)):
        if known.open[n] != 0 and known.owners[n] != view:
            asked[count] = n
            count += 1
    points = np.empty((3, count))
    for axis in range(3):
        for k in range(count):
            points[axis, k] = known.points[axis, asked[k]]
    # All places one after the other: so several are projected by one instruction.
    seen, shown = np.empty((2, count)), np.empty(count, np.int64)
    project_columns(views.rows[view], points, seen)
    _free_pixels(views, view, seen, shown)
    shape = (height, width * channels)
    low, high = room[0][: shape[0] * shape[1]].reshape(shape), room[1][: shape[0] * shape[1]].reshape(shape)
    measured = np.zeros((height // _TILE_PX + 1, width // _TILE_PX + 1), np.bool_)
    for k in range(count):
        if shown[k] < 0:
            continue
        n, y, x = asked[k], shown[k] // width, shown[k] % width
        row, column = y // _TILE_PX, x // _TILE_PX
        if not measured[row, column]:
            measured[row, column] = True
            bottom, right = min((row + 1) * _TILE_PX, height), min((column + 1) * _TILE_PX, width)
            _fill_ranges(picture, (row * _TILE_PX, bottom, column * _TILE_PX, right), low, high)
        same = True
        for c in range(channels):
            at = x * channels + c
            same &= (known.ratios[n, c] <= high[y, at]) & (low[y, at] <= known.ratios[n, c])
        place = known.counts[n]
        known.counts[n] += 1
        if same != alike:
            known.open[n] = 0
            continue
        for c in range(channels):
            known.low[place, n, c], known.high[place, n, c] = low[y, x * channels + c], high[y, x * channels + c]


@compiled
def _settled(known: _Asked, alike: bool) -> Bools:
    """Return (n,) which pixels all views show alike, or as none does where two show the floor in the same light."""
    out = np.zeros(len(known.open), np.bool_)
    for n in range(len(out)):
        if known.open[n] != 0 and known.counts[n] > 0:
            out[n] = alike or _known(known.low[:, n], known.high[:, n], known.counts[n])
    return out


@compiled
def _drawn(asked: Bools, pixels: Ints, chosen: Bools) -> Bools:
    """Return (h, w) the pixels asked at those (2, n) that are chosen (n,), and beside."""
    out = np.zeros(asked.shape, np.bool_)
    for n in range(len(chosen)):
        if chosen[n]:
            y, x = pixels[0, n], pixels[1, n]
            for v in range(y, min(y + _STRIDE, asked.shape[0])):
                for u in range(x, min(x + _STRIDE, asked.shape[1])):
                    out[v, u] = asked[v, u]
    return out


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
    return pixels[:, :n].copy(), points[:, :n].copy()


@compiled
def _free_pixels(views: _Windows, view: int, seen: Floats, out: Ints) -> None:
    """Fill the pixels of a window, row by row, at which places are ``seen`` (2, n; x and y) free of the subject.

    Others are -1.
    """
    (top, left), (height, width) = views.corners[view], views.sizes[view]
    hidden = views.hidden[views.starts[view] : views.starts[view] + height * width]
    for n in range(len(out)):  # without branches: this loop takes several places at a time
        x, y = seen[0, n] - left, seen[1, n] - top
        inside = (x >= -0.5) & (y >= -0.5) & (x <= width - 0.5) & (y <= height - 0.5)
        # In numbers of this size nothing is left behind the point: they are rounded, to the even one of two as near.
        row, column = int(((y if inside else 0.0) + _WHOLE) - _WHOLE), int(((x if inside else 0.0) + _WHOLE) - _WHOLE)
        inside &= (row < height) & (column < width)
        out[n] = row * width + column if inside else -1
    for n in range(len(out)):
        if out[n] >= 0 and hidden[out[n]] != 0:
            out[n] = -1


@compiled
def _fill_ranges(picture: Flat, box: Place, low: Singles, high: Singles) -> None:
    """Fill (h, w C) the least and the most of the ratios around each pixel of a rectangle (rows, columns)."""
    height, channels = picture[0].shape[0], len(picture[2])
    width = picture[0].shape[1] // channels
    top, bottom, left, right = box
    first, last = max(0, top - _AROUND_PX), min(height, bottom + _AROUND_PX)
    begin, end = max(0, left - _AROUND_PX), min(width, right + _AROUND_PX)
    side, gains = (right - left) * channels, _gains(picture[2], end - begin + 2)
    ratios = np.empty((last - first, (end - begin) * channels), np.float32)
    for n in range(last - first):
        _fill_ratios(picture, first + n, (begin, end), gains, ratios[n])
    # Beyond the window there is nothing: room for as many pixels on both sides, which are neither least nor most.
    least = np.full((right - left + 2 * _AROUND_PX) * channels, np.float32(np.inf), np.float32)
    most = np.full(len(least), np.float32(-np.inf), np.float32)
    skipped = (begin - left + _AROUND_PX) * channels
    inner = slice(skipped, skipped + ratios.shape[1])
    for y in range(top, bottom):
        lowest, highest = least[inner], most[inner]
        # Beyond the first and the last row these count once more, which changes neither least nor most.
        a, b, c = ratios[max(y - 2, first) - first], ratios[max(y - 1, first) - first], ratios[y - first]
        d, e = ratios[min(y + 1, last - 1) - first], ratios[min(y + 2, last - 1) - first]
        for k in range(len(lowest)):
            lowest[k] = min(min(min(a[k], b[k]), min(c[k], d[k])), e[k])
        for k in range(len(highest)):
            highest[k] = max(max(max(a[k], b[k]), max(c[k], d[k])), e[k])
        here = slice(left * channels, right * channels)
        darkest, lightest = low[y, here], high[y, here]
        one, two, three, four = channels, 2 * channels, 3 * channels, 4 * channels
        a, b, c, d, e = least[:side], least[one:], least[two:], least[three:], least[four:]
        for k in range(side):
            darkest[k] = min(min(min(a[k], b[k]), min(c[k], d[k])), e[k]) * np.float32(1.0 - _SAME)
        a, b, c, d, e = most[:side], most[one:], most[two:], most[three:], most[four:]
        for k in range(side):
            lightest[k] = max(max(max(a[k], b[k]), max(c[k], d[k])), e[k]) * np.float32(1.0 + _SAME)


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
    now, then = np.empty(len(out) + 2 * channels, np.float32), np.empty(len(out) + 2 * channels, np.float32)
    inner = slice((begin - first + 1) * channels, (end - first + 1) * channels)
    light_sum, full_sum, count = now[inner], then[inner], (end - begin) * channels
    here, there = slice(begin * channels, end * channels), slice((left + begin) * channels, (left + end) * channels)
    above, below = _mirrored(y - 1, height), _mirrored(y + 1, height)
    before, own, after = images[above, here], images[y, here], images[below, here]
    for n in range(count):
        light_sum[n] = np.float32(before[n]) + np.float32(own[n]) + np.float32(after[n])
    one, two, three = grounds[top + above, there], grounds[top + y, there], grounds[top + below, there]
    for n in range(count):
        full_sum[n] = one[n] * gains[n] + two[n] * gains[n] + three[n] * gains[n]
    for c in range(channels):
        if first == 0:
            n = min(2, width) * channels + c
            now[c], then[c] = now[n], then[n]
        if last == width:
            n, beyond = (len(now) - 3 * channels if width > 1 else channels) + c, len(now) - channels + c
            now[beyond], then[beyond] = now[n], then[n]
    ninth = np.float32(1.0 / 9.0)
    # Slices, and indices from 0: with numbers added to them the compiler would take one value at a time.
    left_now, now_here, right_now = now[: len(out)], now[channels:], now[2 * channels :]
    left_then, then_here, right_then = then[: len(out)], then[channels:], then[2 * channels :]
    for n in range(len(out)):
        part = (left_now[n] + now_here[n] + right_now[n]) * ninth
        full = (left_then[n] + then_here[n] + right_then[n]) * ninth
        out[n] = part / max(full, _DARK)


@compiled
def _mirrored(place: int, side: int) -> int:
    """Return a place along an axis, mirrored at the outermost if it lies beyond; kept inside however short the side."""
    place = abs(place)
    return max(0, place if place < side else 2 * side - 2 - place)


@compiled
def _ratios_at(picture: Flat, pixels: Ints) -> Singles:
    """Return (n, C) image over ground at pixels (2, n), which come row by row."""
    channels, count = len(picture[2]), pixels.shape[1]
    width = picture[0].shape[1] // channels
    out, line, gains = (
        np.empty((count, channels), np.float32),
        np.empty(width * channels, np.float32),
        _gains(picture[2], width + 2),
    )
    first = 0
    while first < count:
        y, last = pixels[0, first], first
        while last < count and pixels[0, last] == y:
            last += 1
        begin, end = pixels[1, first], pixels[1, last - 1] + 1
        row = line[: (end - begin) * channels]
        _fill_ratios(picture, y, (begin, end), gains, row)
        for n in range(first, last):
            for c in range(channels):
                out[n, c] = row[(pixels[1, n] - begin) * channels + c]
        first = last
    return out


@compiled
def _known(low: Singles, high: Singles, count: int) -> bool:
    """Return whether two of so many views show a place in the same light: their ranges (V, C) overlap."""
    for k in range(count):
        for other in range(k):
            same = True
            for c in range(low.shape[1]):
                same &= (low[k, c] <= high[other, c]) & (low[other, c] <= high[k, c])
            if same:
                return True
    return False
