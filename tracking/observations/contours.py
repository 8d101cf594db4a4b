"""Contours of observed silhouettes: points between the pixels, with outward normals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np
from scipy.special import ndtri

from calibration.foundation.arrays import Bools, Bytes, Floats
from tracking.observations.blurred_edges import blurred_at
from tracking.observations.marks import Marks
from tracking.observations.surface import Surface

__all__ = ["Observation", "View", "observe", "observe_view"]


@dataclass(frozen=True, eq=False)
class View:
    """One camera's silhouette in one frame, prepared for matching.

    Attributes:
        mask: 0 or 1 within ``box``.
        size: width and height of the image.
        points: (N, 2) contour samples, px; empty when the camera saw nothing.
        normals: (N, 2) unit outward normals.
        area: covered pixels.
        box: first column, first row, width and height of what holds them all.
    """

    mask: Bytes
    size: tuple[int, int]
    points: Floats
    normals: Floats
    area: int
    box: tuple[int, int, int, int]

    @classmethod
    def empty(cls, size: tuple[int, int]) -> View:
        """Return the view of a camera that saw nothing, by its image's width and height."""
        none = np.zeros((0, 2))
        return cls(np.zeros((0, 0), np.uint8), size, none, none, 0, (0, 0, 0, 0))


@dataclass(frozen=True, eq=False)
class Observation:
    """All cameras' silhouettes in one frame; a camera that saw nothing, or was dropped, has no samples.

    Attributes:
        views: one per camera.
        surface: samples of the frame's hull or mesh, for a solver that fits to it; None where there is none.
        sightings: points of the body that another program marked in the images, if any.
    """

    views: tuple[View, ...]
    surface: Surface | None = None
    sightings: Marks | None = None

    @property
    def seen(self) -> int:
        """Number of cameras with a silhouette."""
        return sum(len(view.points) > 0 for view in self.views)

    def without(self, cameras: Sequence[int]) -> Observation:
        """Return what the other cameras saw."""
        views = enumerate(self.views)
        return replace(self, views=tuple(View.empty(one.size) if k in cameras else one for k, one in views))

    def with_surface(self, surface: Surface | None) -> Observation:
        """Return the same silhouettes with the frame's hull or mesh."""
        return replace(self, surface=surface)

    @property
    def nbytes(self) -> int:
        """Memory that the views' arrays take."""
        views = sum(view.mask.nbytes + view.points.nbytes + view.normals.nbytes for view in self.views)
        return views + (0 if self.surface is None else self.surface.nbytes)


def observe(masks: list[Bools], *, samples: int = 160, used: Bools | None = None) -> Observation:
    """Prepare the silhouettes of one frame.

    Args:
        masks: one (H, W) mask per camera.
        samples: about how many contour samples per camera.
        used: (C,) False for cameras to leave out.
    """
    keep = np.ones(len(masks), bool) if used is None else used
    return Observation(
        tuple(
            observe_view(mask if use else np.zeros_like(mask), samples) for mask, use in zip(masks, keep, strict=True)
        )
    )


def observe_view(mask: Bools, samples: int = 160) -> View:
    """Find contour samples of one mask.

    The boundary between pixels is the half level of the slightly blurred mask: unbiased on a straight edge, and within
    a fifth of a pixel on curves wider than 3 px. Samples at the image border are no contour: the body goes on outside.
    """
    filled = np.ascontiguousarray(mask).view(np.uint8)
    height, width = filled.shape
    nothing = View.empty((width, height))
    column, row, across, down = cv2.boundingRect(filled)
    inside = filled[row : row + down, column : column + across].copy()
    area = int(np.count_nonzero(inside))
    if area < 9:
        return nothing
    top, left = max(row - 6, 0), max(column - 6, 0)
    crop = np.ascontiguousarray(filled[top : row + down + 6, left : column + across + 6])
    found, _ = cv2.findContours(crop, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_NONE)
    loops = [loop.reshape(-1, 2) for loop in found if len(loop) >= 12]  # a speck or a pinhole is noise, not shape
    if not loops:
        return nothing
    spacing = max(sum(len(loop) for loop in loops) / samples, 1.0)
    counts = [max(int(len(loop) / spacing), 4) for loop in loops]
    at = np.concatenate([loop[(np.arange(n) * len(loop)) // n] for loop, n in zip(loops, counts, strict=True)])
    level, gradient = blurred_at(crop, at)
    slope = np.linalg.norm(gradient, axis=1)
    where = at + np.array([left, top], float)
    inner = (where > 1.5).all(axis=1) & (where[:, 0] < width - 2.5) & (where[:, 1] < height - 2.5)
    good = inner & (slope > 0.02)
    level, gradient, slope, where = level[good], gradient[good], slope[good], where[good]
    normals = -gradient / slope[:, None]
    # Across a straight edge the blurred level is a normal distribution: its inverse says how far inside the sample is.
    shift = 1.04 * ndtri(np.clip(level, 0.3, 0.93))
    box = (int(column), int(row), int(across), int(down))
    return View(inside, (width, height), where + shift[:, None] * normals, normals, area, box)
