"""The silhouette's edge where an image is half-way between the subject and the background.

A pixel of the rim is a mixture. A threshold on the difference takes it for the subject as soon as a tenth of it is, so
silhouettes are too large by some tenths of a pixel all around, which is much of a thin limb.
"""

from __future__ import annotations

import cv2
import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Floats, Singles
from calibration.foundation.compiled import compiled
from capture.mask_boxes import box_of

__all__ = ["half_way_edge"]

#: A lens and a codec blur the edge over this many pixels; the subject's own look is the mean of what lies deeper.
_DEPTH_PX = 2
#: Least contrast, root mean square grey levels, at which a mixture can be told.
_CONTRAST = 16.0


def half_way_edge(mask: Bools, image: Bytes, background: Singles, light: Floats, settled: Bools | None = None) -> Bools:
    """Return the mask (H, W) without the pixels of its rim of which less than half is the subject.

    Args:
        mask: a silhouette.
        image: (H, W, C) in which it was found.
        background: (H, W, C) the empty scene.
        light: (C,) gain of the image's light over the background's.
        settled: (H, W) pixels that stay whatever they are; None: none.
    """
    x, y, w, h = box_of(mask)
    if w == 0:
        return mask
    room = _DEPTH_PX + 2
    rows = slice(max(0, y - room), min(mask.shape[0], y + h + room))
    columns = slice(max(0, x - room), min(mask.shape[1], x + w + room))
    here = mask[rows, columns].view(np.uint8).copy()
    stays = None if settled is None else settled[rows, columns]
    picture, ground, gain = image[rows, columns], background[rows, columns], light.astype(np.float32)
    for depth in (_DEPTH_PX, 1):  # parts too thin for the first are asked by the second
        inner = _shrunk(here, depth)
        rim = here - (_shrunk(here, 1) if depth > 1 else inner)
        if stays is not None:
            rim[stays] = 0
        _drop(here, rim, inner, depth, picture, ground, gain)
    out = mask.copy()
    out[rows, columns] = here.view(np.bool_)
    return out if settled is None else out | (mask & settled)


@compiled
def _drop(mask: Bytes, rim: Bytes, inner: Bytes, depth: int, image: Bytes, background: Singles, light: Singles) -> None:
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
                if _is_ground(n // width, n % width, inner, depth + 1, image, background, light):
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
                        if _is_ground(v, u, inner, depth + 1, image, background, light):
                            dropped[count] = v * width + u
                            count += 1
        first = last


@compiled
def _is_ground(y: int, x: int, inner: Bytes, reach: int, image: Bytes, background: Singles, light: Singles) -> bool:
    """Return whether a pixel is nearer to the ground than to what is inner within ``reach``."""
    height, width, channels = image.shape
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
                total += int(inner[v, u]) * int(image[v, u, c])
        if told == 0:
            break
        ground = background[y, x, c] * light[c]
        contrast = np.float32(total) / np.float32(told) - ground
        power += contrast * contrast
        part += (np.float32(image[y, x, c]) - ground) * contrast
    return bool(power > channels * _CONTRAST**2 and part < np.float32(0.5) * power)


@compiled
def _mirrored(place: int, side: int) -> int:
    """Return a place along an axis, mirrored at the outermost if it lies beyond; kept inside however short the side."""
    place = -place if place < 0 else place
    place = 2 * side - 2 - place if place >= side else place
    return min(max(place, 0), side - 1)


def _shrunk(mask: Bytes, pixels: int) -> Bytes:
    """Return a mask without the pixels near its edge; the image's own border is none."""
    square = np.ones((2 * pixels + 1, 2 * pixels + 1), np.uint8)
    return np.asarray(cv2.erode(mask, square, borderType=cv2.BORDER_CONSTANT, borderValue=1))
