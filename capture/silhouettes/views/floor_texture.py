"""The height of the floor, told by its marks: only there do the empty scenes of all cameras show them in one place.

The empty scenes are drawn onto horizontal planes of many heights; on the floor itself scratches, grain, dirt and the
edges of mats fall together. Mirror images and shade, which make a subject's hull reach under the floor, are in no empty
scene.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from calibration.cameras.camera import Camera
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Floats, Singles
from capture.hull.bounds import Box

__all__ = ["pixel_at", "textured_height"]

#: Cells along each side of the plane that is looked at; marks are told from what lies within so many cells.
_CELLS = 160
_AROUND = 21
#: Contrast (of the logarithm of brightness) below which there are no marks.
_FAINT = 0.015
#: The height stands out from the others by this many times their spread, and is this correlation at least.
_STANDS_OUT, _LEAST = 6.0, 0.02
#: Heights that are tried on each side, at most.
_HEIGHTS = 60


def textured_height(scenes: Sequence[Singles], rig: Rig, area: Box, reach: float) -> float | None:
    """Return the z at which empty scenes (H, W, C) of all cameras show the same marks; None if none stands out.

    Args:
        scenes: of the rig's cameras.
        rig: where these are, mm.
        area: where the subject goes about; the middle of its z is where heights are tried around.
        reach: how far from there, mm.
    """
    size = pixel_at(rig, area)
    step = max(size, reach / _HEIGHTS)
    middle, half = area.centre, max(0.5 * float((area.high - area.low)[:2].max()), _CELLS * size)
    along = np.linspace(-half, half, _CELLS)
    places = np.stack([*np.meshgrid(middle[0] + along, middle[1] + along), np.zeros((_CELLS, _CELLS))], axis=-1)
    heights = middle[2] + step * np.arange(-round(reach / step), round(reach / step) + 1)
    smooth = [_brightness(scene, along[1] - along[0], size) for scene in scenes]
    scores = np.array([_likeness(smooth, rig, places + np.array([0.0, 0.0, z])) for z in heights])
    best, usual = int(scores.argmax()), float(np.median(scores))
    spread = 1.4826 * float(np.median(np.abs(scores - usual)))
    if not 0 < best < len(scores) - 1 or scores[best] < max(_LEAST, usual + _STANDS_OUT * spread):
        return None
    before, at, after = scores[best - 1 : best + 2]
    return float(heights[best] + 0.5 * step * (before - after) / (before - 2.0 * at + after))


def pixel_at(rig: Rig, area: Box) -> float:
    """Return the size of a pixel in the middle of an area, mm, as the cameras see it in the median."""
    sizes = []
    for camera in rig:
        near = camera.project(np.stack([area.centre, *(area.centre + np.eye(3))]))
        # The shift of the image is largest for a step across the line of sight.
        moved = np.linalg.norm(near[1:] - near[0], axis=1)
        sizes.append(1.0 / max(1e-9, float(np.nanmax(moved))))
    return float(np.median(sizes))


def _brightness(scene: Singles, cell: float, size: float) -> Singles:
    """Return the logarithm of a scene's brightness, blurred to cells of the plane, mm; ``size`` of a pixel, mm."""
    logs: Singles = np.log(scene.mean(axis=2) + np.float32(8.0)).astype(np.float32)
    return np.asarray(cv2.GaussianBlur(logs, (0, 0), max(0.8, 0.5 * cell / size)), np.float32)


def _likeness(smooth: Sequence[Singles], rig: Rig, places: Floats) -> float:
    """Return the mean correlation of all pairs of scenes at places (n, n, 3) of a plane."""
    total, squares, views = (np.zeros(places.shape[:2], np.float32) for _ in range(3))
    for image, camera in zip(smooth, rig, strict=True):
        marks, seen = _marks(image, camera, places)
        total += marks
        squares += np.square(marks)
        views += seen
    pairs = float((views * (views - 1.0)).sum())
    return float((np.square(total) - squares).sum()) / pairs if pairs > 0 else 0.0


def _marks(image: Singles, camera: Camera, places: Floats) -> tuple[Singles, Bools]:
    """Return (n, n) how a scene looks at places, in units of its contrast around each; and which are in the picture."""
    across, down = camera.project(places.reshape(-1, 3)).astype(np.float32).T.reshape(2, *places.shape[:2])
    height, width = image.shape
    seen = (across >= 1.0) & (across <= width - 2.0) & (down >= 1.0) & (down <= height - 2.0)
    drawn = cv2.remap(image, across, down, cv2.INTER_LINEAR)
    high = drawn - cv2.blur(drawn, (_AROUND, _AROUND))
    power = cv2.blur(np.square(high), (_AROUND, _AROUND))
    marks = high / np.sqrt(np.maximum(power, np.float32(0.0)) + np.float32(_FAINT**2))
    return np.where(seen, marks, np.float32(0.0)), np.asarray(seen)
