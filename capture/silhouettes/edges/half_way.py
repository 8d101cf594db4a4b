"""The silhouette's edge where an image is half-way between the subject and the background.

A pixel of the rim is a mixture. A threshold on the difference takes it for the subject as soon as a tenth of it is, so
silhouettes are too large by some tenths of a pixel all around, which is much of a thin limb.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Floats, Singles
from calibration.foundation.compiled import compiled
from capture.mask_boxes import box_of

__all__ = ["Corners", "half_way_edge"]

#: A lens and a codec blur the edge over this many pixels; the subject's own look is the mean of what lies deeper.
_DEPTH_PX = 2
#: Least contrast, root mean square grey levels, at which a mixture can be told.
_CONTRAST = 16.0
_NONE = np.zeros((0, 0), np.uint8)
#: Image, empty scene and the image's light; where a part of the first two begins.
Pictures: TypeAlias = tuple[Bytes, Singles, Singles]
Corners: TypeAlias = tuple[tuple[int, int], tuple[int, int]]


def half_way_edge(
    mask: Bools,
    image: Bytes,
    background: Singles,
    light: Floats,
    settled: Bools | None = None,
    corners: Corners = ((0, 0), (0, 0)),
) -> Bools:
    """Return the mask (h, w) without the pixels of its rim of which less than half is the subject.

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
        return mask
    room = _DEPTH_PX + 2
    place = (max(0, y - room), min(mask.shape[0], y + h + room), max(0, x - room), min(mask.shape[1], x + w + room))
    stays = _NONE if settled is None else np.ascontiguousarray(settled).view(np.uint8)
    out = mask.copy()
    pictures = (np.ascontiguousarray(image), np.ascontiguousarray(background), light.astype(np.float32))
    _halve(out.view(np.uint8), place, stays, pictures, corners)
    return out


@compiled
def _halve(mask: Bytes, place: tuple[int, int, int, int], settled: Bytes, pictures: Pictures, corners: Corners) -> None:
    """Drop the rim's pixels that are ground from a part (two rows, two columns) of a mask, none that are settled."""
    top, bottom, left, right = place
    here = mask[top:bottom, left:right].copy()
    (a, b), (c, d) = corners
    moved = ((a + top, b + left), (c + top, d + left))
    once, twice, rim = np.empty_like(here), np.empty_like(here), np.empty_like(here)
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
        _drop(here, rim, twice if depth > 1 else once, depth, pictures, moved)
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
def _drop(mask: Bytes, rim: Bytes, inner: Bytes, depth: int, pictures: Pictures, corners: Corners) -> None:
    """Take the pixels of its rim out of a mask that are nearer to the ground than to what is inner.

    So many pixels deep: where one was taken, those behind it are asked next. Those asked are 2 in ``rim`` afterwards.
    """
    height, width = mask.shape
    flat = rim.ravel()
    whole = len(flat) // 8
    words = flat[: 8 * whole].view(np.uint64)
    dropped, count = np.empty(len(flat), np.int64), 0
    for eighth in range(-(-len(flat) // 8)):
        if eighth < whole and words[eighth] == 0:
            continue  # eight pixels at a time: few are of the rim
        for n in range(8 * eighth, min(len(flat), 8 * eighth + 8)):
            if flat[n] == 1:
                flat[n] = 2
                if _is_ground(n // width, n % width, inner, depth + 1, pictures, corners):
                    dropped[count] = n
                    count += 1
    first = 0
    for level in range(1, depth + 1):
        last = count
        for k in range(first, last):
            mask[dropped[k] // width, dropped[k] % width] = 0
        if level == depth:
            break
        for k in range(first, last):
            y, x = dropped[k] // width, dropped[k] % width
            for v in range(max(0, y - 1), min(height, y + 2)):
                for u in range(max(0, x - 1), min(width, x + 2)):
                    if mask[v, u] == 1 and rim[v, u] == 0:
                        rim[v, u] = 2
                        if _is_ground(v, u, inner, depth + 1, pictures, corners):
                            dropped[count] = v * width + u
                            count += 1
        first = last


@compiled
def _is_ground(y: int, x: int, inner: Bytes, reach: int, pictures: Pictures, corners: Corners) -> bool:
    """Return whether a pixel is nearer to the ground than to what is inner within ``reach``."""
    image, background, light = pictures
    (top, left), (first, start) = corners
    height, width = inner.shape
    channels = image.shape[2]
    inside = y >= reach and y < height - reach and x >= reach and x < width - reach
    power, part = np.float32(0.0), np.float32(0.0)
    for c in range(channels):
        told, total = 0, 0
        for dy in range(-reach, reach + 1):
            # Beyond the picture it is as mirrored at its outermost pixels.
            v = np.uintp(y + dy if inside else _mirrored(y + dy, height))
            for dx in range(-reach, reach + 1):
                u = np.uintp(x + dx if inside else _mirrored(x + dx, width))
                told += int(inner[v, u])
                total += int(inner[v, u]) * int(image[v + np.uintp(top), u + np.uintp(left), c])
        if told == 0:
            break
        ground = background[first + y, start + x, c] * light[c]
        contrast = np.float32(total) / np.float32(told) - ground
        power += contrast * contrast
        part += (np.float32(image[top + y, left + x, c]) - ground) * contrast
    return bool(power > channels * _CONTRAST**2 and part < np.float32(0.5) * power)


@compiled
def _mirrored(place: int, side: int) -> int:
    """Return a place along an axis, mirrored at the outermost if it lies beyond; kept inside however short the side."""
    place = -place if place < 0 else place
    place = 2 * side - 2 - place if place >= side else place
    return min(max(place, 0), side - 1)
