"""Which pixels that look like shade are not lit as the floor behind them is.

Shade on a matt floor darkens a place by the same factors whoever looks at it. So where two other views see the floor at
the end of a line of sight, and agree on how it is lit, a pixel of another ratio of image and empty scene shows
something before the floor: a bare leg before its own shadow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from calibration.cameras.camera import Camera
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Floats, Ints, Singles

__all__ = ["lit_otherwise"]

#: Ratios are the same within this share, or within those of so many pixels around: calibration is not exact.
_SAME, _AROUND_PX = 0.06, 2
#: Lines of sight are followed through every so manyth pixel, as `capture.silhouettes.views.confirmation` does.
_STRIDE = 2
_BLOCK = np.ones((_STRIDE, _STRIDE), np.uint8)


def lit_otherwise(
    asked: Sequence[Bools], masks: Sequence[Bools], ratios: Sequence[Singles], rig: Rig, height: float
) -> list[Bools]:
    """Return which of the pixels asked (h, w) of each view are not lit as the others see the floor behind them.

    Args:
        asked: (h, w) of each view.
        masks: (h, w) what is surely the subject.
        ratios: (h, w, C) of image and empty scene.
        rig: cameras of these images.
        height: z of the floor, mm.
    """
    square = np.ones((2 * _AROUND_PX + 1, 2 * _AROUND_PX + 1), np.uint8)
    low = [_colours(cv2.erode(ratio, square) * np.float32(1.0 - _SAME)) for ratio in ratios]
    high = [_colours(cv2.dilate(ratio, square) * np.float32(1.0 + _SAME)) for ratio in ratios]
    free = [cv2.dilate(mask.view(np.uint8), square) == 0 for mask in masks]
    found = []
    for index, camera in enumerate(rig):
        out = np.zeros_like(asked[index])
        rows, columns = (_STRIDE * one for one in np.nonzero(asked[index][::_STRIDE, ::_STRIDE]))
        own = ratios[index][rows, columns]
        places = _on_the_floor(camera, rows, columns, height)
        lights = []
        for other, view in enumerate(rig):
            if other != index and len(rows):
                y, x, seen = _pixels(view, places, free[other])
                lights.append((low[other][y, x], high[other][y, x], seen))
        if lights:
            out[rows, columns] = _known(lights) & ~_agree(own, own, lights)
        found.append(cv2.dilate(out.view(np.uint8), _BLOCK, anchor=(1, 1)).view(np.bool_) & asked[index])
    return found


def _colours(image: NDArray[Any]) -> Singles:
    """Return an image (h, w, C) that lost the axis of its channel if it has one alone."""
    return np.asarray(image.reshape(*image.shape[:2], -1), np.float32)


def _on_the_floor(camera: Camera, rows: Ints, columns: Ints, height: float) -> Floats:
    """Return (n, 3) where the lines of sight through pixels meet the floor, NaN where they do not."""
    _, rays = camera.rays(np.stack([columns, rows], axis=1).astype(float))
    with np.errstate(divide="ignore", invalid="ignore"):
        along = (height - camera.centre[2]) / rays[:, 2:]
    return np.where(along > 0.0, camera.centre + along * rays, np.nan)


def _pixels(camera: Camera, places: Floats, free: Bools) -> tuple[Ints, Ints, Bools]:
    """Return (n,) rows and columns at which a view shows places (n, 3), and whether it does, free of the subject."""
    pixels = np.round(np.nan_to_num(camera.project(places), nan=-1.0)).clip(-1, 2**30).astype(np.int64)
    x, y = pixels.T
    seen = (x >= 0) & (y >= 0) & (x < free.shape[1]) & (y < free.shape[0])
    x, y = np.where(seen, x, 0), np.where(seen, y, 0)
    return y, x, np.asarray(seen & free[y, x])


Light = tuple[Singles, Singles, Bools]


def _agree(low: Singles, high: Singles, lights: Sequence[Light]) -> Bools:
    """Return (n,) where ranges of ratios (n, C) overlap those that some view sees."""
    same = [seen & (low <= most).all(axis=1) & (least <= high).all(axis=1) for least, most, seen in lights]
    return np.asarray(np.any(same, axis=0))


def _known(lights: Sequence[Light]) -> Bools:
    """Return (n,) where two views see the floor, and in the same light."""
    pairs = [seen & _agree(low, high, lights[:n]) for n, (low, high, seen) in enumerate(lights) if n]
    return np.asarray(np.any(pairs, axis=0)) if pairs else np.zeros(len(lights[0][2]), dtype=bool)
