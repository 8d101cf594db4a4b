"""Shade keeps the texture of what it falls on: where the marks of the ground are gone, something stands before it.

Trousers of the floor's colour are the floor in shade, by brightness and hue. Among the pixels that these call shade,
the image is held against the ground around each: in shade the one rises and falls with the other, by the same factor as
the mean. Where the ground has marks well above the noise and the image follows them by a small part only, it is
no shade. Ground without marks says nothing. Sums are taken over small cells, and looked at with the cells around.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Singles
from calibration.foundation.compiled import compiled
from capture.backgrounds.background import SCALE

__all__ = ["ShadeCells"]

#: Pixels of a cell along the image's longer side, one in so many; it is looked at with its eight neighbours.
_CELLS = 150
#: Standard deviations from which on shade is asked whether it keeps the marks of the ground.
_DIFFERS = 4.0
#: Share of the cells' pixels that must be called shade; how far marks in shade stand out, sigma of the noise.
_FULL, _CLEAR = 0.3, 5.0
#: The image follows the marks by less than this share of what shade would; so do this many of the pixels around.
_FOLLOWS, _MANY = 0.25, 0.5
#: Evidence of no shade from which on a pixel of none is called shade.
_LEAST = round(_DIFFERS * SCALE)


@dataclass(frozen=True, eq=False)
class ShadeCells:
    """What is known of the shade in each cell of an image.

    Attributes:
        side: pixels along a cell.
        sums: (h, w, 6) over its pixels of shade: 1, image, ground, its square, their product, noise squared.
    """

    side: int
    sums: Singles

    @classmethod
    def of(cls, shape: tuple[int, int]) -> ShadeCells:
        """Begin with the cells of an image (H, W)."""
        side = max(3, round(max(shape) / _CELLS))
        return cls(side, np.zeros((-(-shape[0] // side), -(-shape[1] // side), 6), np.float32))

    def add(
        self,
        images: tuple[Bytes, Singles, Singles, Singles],
        shaded: Bytes,
        plain: Bytes,
        place: tuple[int, int, int, int],
    ) -> None:
        """Add the pixels between two rows and columns.

        Args:
            images: (H, W C) image, ground and noise of a pixel, and (C,) the image's light.
            shaded: (H, W) difference from the ground, 0 in shade.
            plain: (H, W) what it would be if there were no shade.
            place: first row, the one after the last, and columns likewise.
        """
        _add(*images, shaded, plain, place, self.side, self.sums)

    def give_back(self, shaded: Bytes, plain: Bytes, window: tuple[slice, slice]) -> None:
        """Change the difference where it is 0 by the rule of shade, but the ground's marks are gone.

        That is in a rectangle to which pixels were added, and in the cells around, which are looked at with it.
        """
        rows, columns = window
        height, width = shaded.shape
        top, bottom = max(0, rows.start // self.side - 2), min(self.sums.shape[0] - 1, (rows.stop - 1) // self.side + 2)
        left = max(0, columns.start // self.side - 2)
        right = min(self.sums.shape[1] - 1, (columns.stop - 1) // self.side + 2)
        gone = _marks_are_gone(self.sums, self.side, (top, bottom, left, right))
        if gone.any():
            sides = (top * self.side, (bottom + 1) * self.side, left * self.side, (right + 1) * self.side)
            place = (sides[0], min(sides[1], height), sides[2], min(sides[3], width))
            _give_back(shaded, plain, place, self.side, gone)


@compiled
def _add(
    frame: Bytes,
    centre: Singles,
    spread: Singles,
    gain: Singles,
    shaded: Bytes,
    plain: Bytes,
    place: tuple[int, int, int, int],
    side: int,
    sums: Singles,
) -> None:
    channels = len(gain)
    share = np.float32(1.0 / channels)
    top, bottom, left, right = place
    count, least = right - left, np.uint8(_LEAST)
    asked, cell_of = np.zeros(-(-count // 8) * 8, np.uint8), np.empty(count, np.uintp)
    eights = asked.view(np.uint64)
    for x in range(count):
        cell_of[x] = (left + x) // side
    for y in range(top, bottom):
        # Written down first: this loop takes many pixels at a time, and most eights of them have no shade.
        out, bare = shaded[y, left:right], plain[y, left:right]
        for x in range(count):
            asked[x] = np.uint8((out[x] == 0) & (bare[x] >= least))
        here, cells = slice(left * channels, right * channels), sums[y // side]
        image, empty, sigma = frame[y, here], centre[y, here], spread[y, here]
        for eighth in range(len(eights)):
            if eights[eighth] == np.uint64(0):
                continue
            for x in range(8 * eighth, min(8 * eighth + 8, count)):
                if asked[x] == 0:
                    continue
                now, ground, noise = np.float32(0.0), np.float32(0.0), np.float32(0.0)
                for c in range(channels):
                    n = x * channels + c
                    now += np.float32(image[n])
                    ground += empty[n] * gain[c]
                    noise += sigma[n]
                now, ground, noise = now * share, ground * share, noise * share
                cell = cells[cell_of[x]]
                cell[0] += np.float32(1.0)
                cell[1] += now
                cell[2] += ground
                cell[3] += ground * ground
                cell[4] += now * ground
                cell[5] += noise * noise


@compiled
def _marks_are_gone(sums: Singles, side: int, cells: tuple[int, int, int, int]) -> Bools:
    """Return (h, w) the cells whose shade lacks the marks of the ground, from one row and column to another."""
    rows, columns = sums.shape[:2]
    off, gone = np.zeros((rows, columns), np.bool_), np.zeros((rows, columns), np.bool_)
    (top, bottom, left, right), full = cells, _FULL * (3 * side) ** 2
    for y in range(max(0, top - 1), min(rows, bottom + 2)):
        for x in range(max(0, left - 1), min(columns, right + 2)):
            if sums[y, x, 0] == 0:
                continue  # no shade: whatever it is, it does not count
            around = sums[max(0, y - 1) : y + 2, max(0, x - 1) : x + 2]
            count = np.float32(0.0)
            for v in range(around.shape[0]):
                for u in range(around.shape[1]):
                    count += around[v, u, 0]
            if not count > full:  # with so little shade nothing else is asked
                continue
            now = ground = square = common = noise = np.float32(0.0)
            for v in range(around.shape[0]):
                for u in range(around.shape[1]):
                    cell = around[v, u]
                    now, ground, square = now + cell[1], ground + cell[2], square + cell[3]
                    common, noise = common + cell[4], noise + cell[5]
            now, ground = now / count, ground / count
            marks = max(square / count - ground * ground, np.float32(0.0))
            common = common / count - now * ground
            darker = now / max(ground, np.float32(1.0))
            if darker * darker * marks > _CLEAR**2 * noise / count:
                off[y, x] = common < _FOLLOWS * darker * marks
    for y in range(top, bottom + 1):
        for x in range(left, right + 1):
            if off[y, x]:
                part, count = np.float32(0.0), np.float32(0.0)
                for v in range(max(0, y - 1), min(rows, y + 2)):
                    for u in range(max(0, x - 1), min(columns, x + 2)):
                        count += sums[v, u, 0]
                        part += sums[v, u, 0] if off[v, u] else np.float32(0.0)
                gone[y, x] = part > _MANY * count
    return gone


@compiled
def _give_back(shaded: Bytes, plain: Bytes, place: tuple[int, int, int, int], side: int, gone: Bools) -> None:
    top, bottom, left, right = place
    for row in range(top // side, -(-bottom // side)):
        for column in range(left // side, -(-right // side)):
            if not gone[row, column]:  # cell by cell: few are
                continue
            for y in range(max(top, row * side), min(bottom, (row + 1) * side)):
                for x in range(max(left, column * side), min(right, (column + 1) * side)):
                    if shaded[y, x] == 0 and plain[y, x] >= _LEAST:
                        shaded[y, x] = plain[y, x]
