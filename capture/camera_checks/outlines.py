"""What other cameras can check of a silhouette: the corners of its convex hull."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from calibration.cameras.camera import Camera
from calibration.foundation.arrays import Bools, Bytes, Floats, Ints
from calibration.foundation.compiled import compiled

__all__ = ["Outlines", "join_outlines", "outline"]

#: What a lens does is known for every so many pixels, and interpolated between.
_LATTICE_PX = 16


@dataclass(frozen=True, eq=False)
class Outlines:
    """The outlines of one camera.

    Attributes:
        pixels: (N, 2) px, the corners of all frames one after another.
        starts: (T + 1,) where each frame's corners begin; a frame without silhouette has none.
    """

    pixels: Floats
    starts: Ints

    def __len__(self) -> int:
        return len(self.starts) - 1

    def take(self, rows: Sequence[int] | Ints) -> Outlines:
        """Return the outlines of some rows, in the order given."""
        return join_outlines([self.pixels[self.starts[row] : self.starts[row + 1]] for row in rows])


def join_outlines(corners: Sequence[Floats]) -> Outlines:
    """Return the outlines of successive frames, each (n, 2) px."""
    starts = np.concatenate([[0], np.cumsum([len(one) for one in corners])]).astype(np.int64)
    return Outlines(np.concatenate([np.zeros((0, 2)), *corners]), starts)


def outline(mask: Bools, camera: Camera, window: tuple[slice, slice] | None = None) -> Floats:
    """Return (n, 2) px the corners of the convex hull of a silhouette (H, W), convex as without distortion.

    ``window``: rows and columns that hold all of it.
    """
    height, width = mask.shape
    rows, columns = (slice(0, height), slice(0, width)) if window is None else window
    place = (rows.start, rows.stop, columns.start, columns.stop)
    return _corners(np.ascontiguousarray(mask).view(np.uint8), place, _straight(camera))


@lru_cache(maxsize=64)
def _straight(camera: Camera) -> Floats:
    """Return (h, w, 2) where every `_LATTICE_PX`-th pixel would be without distortion: lenses are smooth between."""
    across, down = (np.arange(0.0, side + _LATTICE_PX, _LATTICE_PX) for side in camera.size)
    pixels = np.stack(np.broadcast_arrays(across[None, :], down[:, None]), axis=-1)
    return np.ascontiguousarray(camera.undistort_points(pixels))


@compiled
def _corners(mask: Bytes, place: tuple[int, int, int, int], straight: Floats) -> Floats:
    """Return (n, 2) the corners of the hull of what a mask shows between two rows and two columns."""
    top, bottom, left, right = place
    # Only the outermost pixels of a row can be corners: between them it is straight, and a lens hardly bends it.
    at, to = np.empty((2 * (bottom - top), 2)), np.empty((2 * (bottom - top), 2))
    count = 0
    for y in range(top, bottom):
        first, last = _ends(mask[y, left:right])
        for x in (first, last):
            if x < 0 or (x == last and last == first and count > 0 and at[count - 1, 1] == y):
                continue
            at[count, 0], at[count, 1] = left + x, y
            _moved(at[count], straight, to[count])
            count += np.isfinite(to[count, 0]) and np.isfinite(to[count, 1])
    order = _by_row(to, count)
    kept, n = np.empty(2 * count + 1, np.int64), 0
    for side in range(2):  # down one side of the hull, and up the other
        begin = n
        for k in range(count):
            one = order[k] if side == 0 else order[count - 1 - k]
            while n - begin >= 2 and _turn(to[kept[n - 2]], to[kept[n - 1]], to[one]) <= 0.0:
                n -= 1
            kept[n] = one
            n += 1
        n -= n - begin > 1  # where one side ends the other begins
    out = np.empty((n if count > 1 else count, 2))
    for k in range(len(out)):
        out[k, 0], out[k, 1] = at[kept[k], 0], at[kept[k], 1]
    return out


@compiled
def _ends(row: Bytes) -> tuple[int, int]:
    """Return the first and the last pixel of a row that are set; -1 where none is."""
    some = np.uint8(0)
    for x in range(len(row)):
        some |= row[x]
    if some == 0:
        return -1, -1
    first, last = 0, len(row) - 1
    while row[first] == 0:
        first += 1
    while row[last] == 0:
        last -= 1
    return first, last


@compiled
def _moved(pixel: Floats, straight: Floats, out: Floats) -> None:
    """Fill where a pixel would be without distortion, between those of a lattice."""
    p, q = pixel[1] / _LATTICE_PX, pixel[0] / _LATTICE_PX
    i, j = min(int(p), straight.shape[0] - 2), min(int(q), straight.shape[1] - 2)
    p, q = p - i, q - j
    for axis in range(2):
        upper = (1 - q) * straight[i, j, axis] + q * straight[i, j + 1, axis]
        lower = (1 - q) * straight[i + 1, j, axis] + q * straight[i + 1, j + 1, axis]
        out[axis] = (1 - p) * upper + p * lower


@compiled
def _by_row(points: Floats, count: int) -> Ints:
    """Return the order of points (n, 2) by their second number, then their first; they nearly are in it."""
    order = np.arange(count)
    for k in range(1, count):
        one, n = order[k], k
        while n > 0 and (
            points[order[n - 1], 1] > points[one, 1]
            or (points[order[n - 1], 1] == points[one, 1] and points[order[n - 1], 0] > points[one, 0])
        ):
            order[n] = order[n - 1]
            n -= 1
        order[n] = one
    return order


@compiled
def _turn(a: Floats, b: Floats, c: Floats) -> float:
    """Return twice the area of a triangle, positive if it turns from x towards y."""
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))
