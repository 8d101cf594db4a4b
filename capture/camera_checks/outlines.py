"""What other cameras can check of a silhouette: the corners of its convex hull."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from calibration.cameras.camera import Camera
from calibration.foundation.arrays import Bools, Floats, Ints
from capture.mask_boxes import box_of

__all__ = ["Outlines", "join_outlines", "outline"]


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
    x, y, width, height = box_of(mask, window)
    if width == 0:
        return np.zeros((0, 2))
    crop = np.ascontiguousarray(mask[y : y + height, x : x + width]).view(np.uint8)
    # Corners of the outline alone: between them it is straight, and a lens bends it by next to nothing.
    contours, _ = cv2.findContours(crop, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    points = np.concatenate(contours)[:, 0].astype(np.float64) + np.array([x, y])
    straight = camera.undistort_points(points)
    good = np.isfinite(straight).all(axis=1)
    if not good.any():
        return np.zeros((0, 2))
    corners = cv2.convexHull(straight[good].astype(np.float32), returnPoints=False)
    return np.asarray(points[good][np.asarray(corners).ravel()])
