"""The silhouette's edge where an image is half-way between the subject and the background.

A pixel of the rim is a mixture. A threshold on the difference takes it for the subject as soon as a tenth of it is, so
silhouettes are too large by some tenths of a pixel all around, which is much of a thin limb.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Bools, Bytes, Floats, Ints, Singles
from calibration.foundation.compiled import compiled
from capture.mask_boxes import box_of

__all__ = ["Corners", "drop_ground"]

#: A lens and a codec blur the edge over this many pixels; the subject's own look is the mean of what lies deeper.
_DEPTH_PX = 2
#: Least contrast, root mean square grey levels, at which a mixture can be told.
_CONTRAST = 16.0
_NONE = np.zeros((0, 0), np.uint8)
#: Pixels that are summed up at a time, bytes of one word.
_WORD = 8
#: Image, empty scene and the image's light; where a part of the first two begins.
Pictures: TypeAlias = tuple[Bytes, Singles, Singles]
#: Words of eight pixels of rows: (h, n) of what is inner, (C, h, n) of the image's channels.
Words: TypeAlias = tuple[NDArray[np.uint64], NDArray[np.uint64]]
Corners: TypeAlias = tuple[tuple[int, int], tuple[int, int]]


def drop_ground(
    mask: Bools,
    image: Bytes,
    background: Singles,
    light: Floats,
    settled: Bools | None = None,
    corners: Corners = ((0, 0), (0, 0)),
) -> None:
    """Take the pixels of its rim of which less than half is the subject out of a mask (h, w), in place.

    Args:
        mask: a silhouette.
        image: (H, W, C) in which it was found.
        background: (H, W, C) the empty scene.
        light: (C,) gain of the image's light over the background's.
        settled: (h, w) pixels that stay whatever they are; None: none.
        corners: (row, column) of the image and of the background at which the mask begins.
    """
    x, y, w, h = box_of(mask)
    if w == 0:
        return
    room = _DEPTH_PX + 2
    place = (max(0, y - room), min(mask.shape[0], y + h + room), max(0, x - room), min(mask.shape[1], x + w + room))
    stays = _NONE if settled is None else np.ascontiguousarray(settled).view(np.uint8)
    pictures = (np.ascontiguousarray(image), np.ascontiguousarray(background), light.astype(np.float32))
    _halve(mask.view(np.uint8), place, stays, pictures, corners)


@compiled
def _halve(mask: Bytes, place: tuple[int, int, int, int], settled: Bytes, pictures: Pictures, corners: Corners) -> None:
    """Drop the rim's pixels that are ground from a part (two rows, two columns) of a mask, none that are settled."""
    top, bottom, left, right = place
    here = mask[top:bottom, left:right].copy()
    (a, b), (c, d) = corners
    moved = ((a + top, b + left), (c + top, d + left))
    once, twice, rim = np.empty_like(here), np.empty_like(here), np.empty_like(here)
    planes = _planes(pictures[0], moved[0], here.shape)
    for depth in (_DEPTH_PX, 1):  # parts too thin for the first are asked by the second
        _shrink(here, once)
        if depth > 1:
            _shrink(once, twice)
        for y in range(here.shape[0]):
            whole, less, out = here[y], once[y], rim[y]
            for x in range(len(out)):
                out[x] = whole[x] & ~less[x]
            if settled.size > 0:
                stays = settled[top + y, left:right]
                for x in range(len(out)):
                    out[x] &= ~stays[x]
        inner = twice if depth > 1 else once
        _drop(here, rim, inner, (_words(inner), planes), depth, pictures, moved)
    for y in range(here.shape[0]):
        before, now = mask[top + y, left:right], here[y]
        if settled.size > 0:
            stays = settled[top + y, left:right]
            for x in range(len(now)):
                before[x] = now[x] | (before[x] & stays[x])
        else:
            for x in range(len(now)):
                before[x] = now[x]


@compiled
def _shrink(mask: Bytes, out: Bytes) -> None:
    """Fill a mask (h, w) of 0 and 1 without the pixels that have one of none beside them; its border is no edge."""
    height, width = mask.shape
    line = np.ones(width + 2, np.uint8)
    near, before, after = line[1 : width + 1], line[:width], line[2:]
    for y in range(height):
        upper, own, lower, kept = mask[max(y - 1, 0)], mask[y], mask[min(y + 1, height - 1)], out[y]
        for x in range(width):
            near[x] = upper[x] & own[x] & lower[x]
        for x in range(width):
            kept[x] = before[x] & near[x] & after[x]


@compiled
def _words(mask: Bytes) -> NDArray[np.uint64]:
    """Return the rows of a mask (h, w) as words of eight pixels, one more than they need."""
    height, width = mask.shape
    out = np.zeros((height, (-(-width // _WORD) + 1) * _WORD), np.uint8)
    for y in range(height):
        row, kept = mask[y], out[y]
        for x in range(width):
            kept[x] = row[x]
    return out.view(np.uint64)


@compiled
def _planes(image: Bytes, corner: tuple[int, int], shape: tuple[int, int]) -> NDArray[np.uint64]:
    """Return the channels of a part of an image as words of eight pixels (C, h, n), one more than rows need."""
    (top, left), (height, width), channels = corner, shape, image.shape[2]
    out = np.zeros((channels, height, (-(-width // _WORD) + 1) * _WORD), np.uint8)
    for y in range(height):
        for c in range(channels):
            row, kept = image[top + y, left : left + width, c], out[c, y]
            for x in range(width):
                kept[x] = row[x]
    return out.view(np.uint64)


@compiled
def _drop(
    mask: Bytes, rim: Bytes, inner: Bytes, words: Words, depth: int, pictures: Pictures, corners: Corners
) -> None:
    """Take the pixels of its rim out of a mask that are nearer to the ground than to what is inner.

    So many pixels deep: where one was taken, those behind it are asked next. Those asked are 2 in ``rim`` afterwards.
    ``words``: what is inner and the image, word by word.
    """
    height, width = mask.shape
    flat = rim.ravel()
    whole = len(flat) // 8
    eights = flat[: 8 * whole].view(np.uint64)
    asked, count = np.empty(len(flat), np.int64), 0
    for eighth in range(-(-len(flat) // 8)):
        if eighth < whole and eights[eighth] == 0:
            continue  # eight pixels at a time: few are of the rim
        for n in range(8 * eighth, min(len(flat), 8 * eighth + 8)):
            if flat[n] == 1:
                flat[n] = 2
                asked[count] = n
                count += 1
    for level in range(depth):
        found = _ground_among(asked[:count], inner, words, depth + 1, pictures, corners)
        for n in found:
            mask[n // width, n % width] = 0
        if level == depth - 1:
            break
        count = 0
        for n in found:
            y, x = n // width, n % width
            for v in range(max(0, y - 1), min(height, y + 2)):
                for u in range(max(0, x - 1), min(width, x + 2)):
                    if mask[v, u] == 1 and rim[v, u] == 0:
                        rim[v, u] = 2
                        asked[count] = v * width + u
                        count += 1


@compiled
def _ground_among(asked: Ints, inner: Bytes, words: Words, reach: int, pictures: Pictures, corners: Corners) -> Ints:
    """Return which of the pixels asked (n,) are nearer to the ground than to what is inner within ``reach``."""
    image, background, light = pictures
    (top, left), (first, start) = corners
    height, width = inner.shape
    channels, some, planes = image.shape[2], words[0], words[1]
    out, count = np.empty(len(asked), np.int64), 0
    for n in asked:
        y, x = n // width, n % width
        inside = y >= reach and y < height - reach and x >= reach and x < width - reach
        power, part = np.float32(0.0), np.float32(0.0)
        for c in range(channels):
            if inside:
                told, total = _summed(some, planes[c], y, x, reach)
            else:
                told, total = _summed_at_rim(inner, image[top:, left:, c], y, x, reach)
            if told == 0:
                break
            ground = background[first + y, start + x, c] * light[c]
            contrast = np.float32(total) / np.float32(told) - ground
            power += contrast * contrast
            part += (np.float32(image[top + y, left + x, c]) - ground) * contrast
        if power > channels * _CONTRAST**2 and part < np.float32(0.5) * power:
            out[count] = n
            count += 1
    return out[:count]


@compiled
def _summed_at_rim(inner: Bytes, shown: Bytes, y: int, x: int, reach: int) -> tuple[int, int]:
    """Return what `_summed` does where a pixel has less room: beyond the picture it is as mirrored at its outermost."""
    told, total = 0, 0
    for dy in range(-reach, reach + 1):
        v = _mirrored(y + dy, inner.shape[0])
        for dx in range(-reach, reach + 1):
            u = _mirrored(x + dx, inner.shape[1])
            told += int(inner[v, u])
            total += int(inner[v, u]) * int(shown[v, u])
    return told, total


@compiled
def _summed(inner: NDArray[np.uint64], plane: NDArray[np.uint64], y: int, x: int, reach: int) -> tuple[int, int]:
    """Return how many pixels around one are inner, and the sum of what a plane shows there; 3 px around it at most.

    Eight pixels of a row at a time, of which as many count as lie within ``reach``.
    """
    ones, fours = np.uint64(0x0101010101010101), np.uint64(0x0001000100010001)
    pairs, side = np.uint64(0x00FF00FF00FF00FF), np.uint64(8 * (2 * reach + 1))
    among = (np.uint64(1) << side) - np.uint64(1)
    at, shift = (x - reach) // _WORD, np.uint64(8 * ((x - reach) % _WORD))
    # The word beside is moved in two steps: by all of 64 bits at once it would not be moved.
    back, byte = np.uint64(56) - shift, np.uint64(8)
    counts, sums = np.uint64(0), np.uint64(0)
    for v in range(y - reach, y + reach + 1):
        some = ((inner[v, at] >> shift) | ((inner[v, at + 1] << byte) << back)) & among
        if some == np.uint64(0):
            continue
        # A byte of 1 becomes one of 255; sums of bytes two by two fit into 16 bits.
        shown = ((plane[v, at] >> shift) | ((plane[v, at + 1] << byte) << back)) & (some * np.uint64(255))
        counts += some
        sums += (shown & pairs) + ((shown >> byte) & pairs)
    return int((counts * ones) >> np.uint64(56)), int((sums * fours) >> np.uint64(48))


@compiled
def _mirrored(place: int, side: int) -> int:
    """Return a place along an axis, mirrored at the outermost if it lies beyond; kept inside however short the side."""
    place = -place if place < 0 else place
    place = 2 * side - 2 - place if place >= side else place
    return min(max(place, 0), side - 1)
