"""One look of a background that may have several: for each pixel the one that an image resembles.

A screen that blinks, or a scene that is followed through changing light, has several looks. Which of them stands behind
the subject does not show; next to it, and in shade, the nearest does. With one look for each pixel all that asks how
the ground is lit (edges, shade, what the other views give back) goes on as with a plate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Bytes, Floats, Singles
from calibration.foundation.compiled import compiled
from capture.backgrounds.background import Background
from capture.backgrounds.evidence import Evidence, ShadeRule

__all__ = ["nearest_look"]


def nearest_look(frame: Bytes, looks: Sequence[Background], gain: Floats, rule: ShadeRule, rank: int) -> Evidence:
    """Return the evidence of an image (H, W, C) against the look that each of its pixels resembles most, measured.

    Args:
        frame: the image.
        looks: what the empty scene may look like.
        gain: (C,) light of the image.
        rule: what is shade. A look in shade is nearer than any that is none.
        rank: 1; or 2 for the second nearest, so that one wrong look does not suffice.
    """
    whole = (slice(0, frame.shape[0]), slice(0, frame.shape[1]))
    each = [Evidence.of(frame, look, gain, rule) for look in looks]
    away = np.empty((len(looks), *frame.shape[:2]), np.uint16)
    for place, one in zip(away, each, strict=True):
        one.measure(whole)
        # Before looks are put together: where one ends and the next begins there are no marks of the ground.
        one.look_for_marks()
        np.multiply(one.shaded, np.uint16(256), out=place, dtype=np.uint16)
        place += one.plain
    chosen = _nearest(away, rank)
    background = Background(*(np.ascontiguousarray(one).copy() for one in (looks[0].centre, looks[0].spread)))
    out = replace(each[0], background=background)
    for number, one in enumerate(each[1:], start=1):
        look = (one.background.centre, one.background.spread, one.shaded, one.plain)
        _take(chosen, number, look, (background.centre, background.spread, out.shaded, out.plain))
    return out


@compiled
def _nearest(away: NDArray[np.uint16], rank: int) -> Bytes:
    """Return (H, W) which of distances (n, H, W) is the smallest, or the second smallest: of equal ones the first."""
    count, height, width = away.shape
    out = np.zeros((height, width), np.uint8)
    for y in range(height):
        for x in range(width):
            first, second = 0, -1
            for n in range(1, count):
                if away[n, y, x] < away[first, y, x]:
                    first, second = n, first
                elif second < 0 or away[n, y, x] < away[second, y, x]:
                    second = n
            out[y, x] = first if rank == 1 or second < 0 else second
    return out


@compiled
def _take(
    chosen: Bytes, number: int, look: tuple[Singles, Singles, Bytes, Bytes], out: tuple[Singles, Singles, Bytes, Bytes]
) -> None:
    """Write a look's brightness and spread (H, W, C) and evidence (H, W) where its number was chosen (H, W)."""
    for y in range(chosen.shape[0]):
        for x in range(chosen.shape[1]):
            if chosen[y, x] == number:
                for c in range(out[0].shape[2]):
                    out[0][y, x, c] = look[0][y, x, c]
                    out[1][y, x, c] = look[1][y, x, c]
                out[2][y, x] = look[2][y, x]
                out[3][y, x] = look[3][y, x]
