"""The box that holds the subject, found from the silhouettes' boxes.

Each complete silhouette lies in a rectangle of its image, so the subject lies in the pyramid over it: four
half-spaces and the one in front of the camera. The box of the intersection of all pyramids is read off its
corners, found exactly: the line shared by two planes is clipped by all others, and its ends are corners.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from calibration.cameras.camera import Camera
from calibration.foundation.arrays import Bools, Floats
from calibration.foundation.compiled import compiled
from capture.hull.distance import DistanceImage, Extent, box_corners

__all__ = ["Box", "bounding_box", "box_of_half_spaces"]

#: A box whose corners lie farther than this many camera distances away is taken for unbounded.
_FAR = 50.0


@dataclass(frozen=True, eq=False)
class Box:
    """An axis-aligned box.

    Attributes:
        low: (3,) lowest corner, world mm.
        high: (3,) highest corner, world mm.
    """

    low: Floats
    high: Floats

    @property
    def size(self) -> Floats:
        """(3,) side lengths, mm."""
        return np.asarray(self.high - self.low)

    @property
    def centre(self) -> Floats:
        """(3,) middle of the box, world mm."""
        return np.asarray((self.low + self.high) / 2)

    def grown(self, margin_mm: float) -> Box:
        """Return the box with ``margin_mm`` added on every side."""
        return Box(self.low - margin_mm, self.high + margin_mm)


@compiled
def box_of_half_spaces(planes: Floats, reach: float) -> Floats:
    """Return (2, 3) lowest and highest coordinates of ``planes[:, :3] @ x + planes[:, 3] <= 0``.

    NaN where the intersection is empty; infinite where it reaches beyond ``reach`` from the origin.
    """
    box = np.full((2, 3), np.nan)
    count = planes.shape[0]
    direction = np.empty(3)
    point = np.empty(3)
    for i in range(count):
        for j in range(i + 1, count):
            a, b = planes[i], planes[j]
            direction[0] = a[1] * b[2] - a[2] * b[1]
            direction[1] = a[2] * b[0] - a[0] * b[2]
            direction[2] = a[0] * b[1] - a[1] * b[0]
            square = direction[0] ** 2 + direction[1] ** 2 + direction[2] ** 2
            if square < 1e-14:
                continue
            # Point on both planes nearest to the origin: ((b3 a - a3 b) x direction) / |direction|^2, signs folded.
            m0 = b[3] * a[0] - a[3] * b[0]
            m1 = b[3] * a[1] - a[3] * b[1]
            m2 = b[3] * a[2] - a[3] * b[2]
            point[0] = (m1 * direction[2] - m2 * direction[1]) / square
            point[1] = (m2 * direction[0] - m0 * direction[2]) / square
            point[2] = (m0 * direction[1] - m1 * direction[0]) / square
            length = np.sqrt(square)
            low, high = -reach, reach
            for k in range(count):
                if k in (i, j):
                    continue
                slope = (
                    planes[k, 0] * direction[0] + planes[k, 1] * direction[1] + planes[k, 2] * direction[2]
                ) / length
                value = planes[k, 0] * point[0] + planes[k, 1] * point[1] + planes[k, 2] * point[2] + planes[k, 3]
                if abs(slope) < 1e-12:
                    if value > 1e-9 * reach:
                        low, high = 1.0, 0.0
                        break
                elif slope > 0:
                    high = min(high, -value / slope)
                else:
                    low = max(low, -value / slope)
                if low > high:
                    break
            if low > high:
                continue
            for axis in range(3):
                for end in range(2):
                    t = low if end == 0 else high
                    coordinate = point[axis] + t * direction[axis] / length
                    if abs(t) >= reach:
                        coordinate = np.inf * np.sign(t * direction[axis])
                        if direction[axis] == 0.0:
                            coordinate = point[axis]
                    if not coordinate >= box[0, axis]:
                        box[0, axis] = coordinate
                    if not coordinate <= box[1, axis]:
                        box[1, axis] = coordinate
    return box


def pyramid(camera: Camera, image: DistanceImage, *, margin: float = 0.01) -> Floats | None:
    """Return (5, 4) half-spaces ``n . x + d <= 0`` around a silhouette's rectangle, or None if it says nothing.

    A partial silhouette is opened by its own frame's size on the sides where it touches the border.
    """
    if image.view in (Extent.EMPTY, Extent.FULL):
        return None
    corners = box_corners(image)
    if image.view is Extent.PARTIAL:
        width, height = camera.size
        low, high = corners.min(axis=0), corners.max(axis=0)
        opened_low = np.where(low <= 2, low - np.array([width, height]), low)
        opened_high = np.where(high >= np.array([width, height]) - 3, high + np.array([width, height]), high)
        corners = opened_low + (corners - low) / (high - low) * (opened_high - opened_low)
    origins, rays = camera.rays(corners)
    seen = np.isfinite(rays).all(axis=1)
    if not seen.any():
        return None
    return _pyramid(np.ascontiguousarray(rays), np.asarray(seen), origins[0], margin)


@compiled
def _pyramid(rays: Floats, seen: Bools, origin: Floats, margin: float) -> Floats:
    """Return (5, 4) the half-spaces around rays (8, 3), clockwise from a corner; (1, 4) if not all are ``seen``.

    Each frame of a recording asks this of all views, twice.
    """
    # number by number: expressions of arrays take numba ten times as long
    forward, right, down = np.zeros(3), np.empty(3), np.empty(3)
    seen_all = True
    for n in range(len(rays)):
        if seen[n]:
            for i in range(3):
                forward[i] += rays[n, i]
        else:
            seen_all = False
    _to_unit(forward)
    least = np.inf
    for n in range(len(rays)):
        if seen[n]:
            least = min(least, _dot(rays[n], forward))
    planes = np.empty((5 if seen_all and least >= 0.1 else 1, 4))
    for i in range(3):
        planes[0, i] = -forward[i]
    if len(planes) == 1:
        planes[0, 3] = _dot(forward, origin)
        return planes
    for i in range(3):
        right[i] = rays[3, i] - rays[7, i]
    aside = _dot(right, forward)
    for i in range(3):
        right[i] -= aside * forward[i]
    _to_unit(right)
    down[0] = forward[1] * right[2] - forward[2] * right[1]
    down[1] = forward[2] * right[0] - forward[0] * right[2]
    down[2] = forward[0] * right[1] - forward[1] * right[0]
    for k in range(2):
        axis = right if k == 0 else down
        low, high = np.inf, -np.inf
        for n in range(len(rays)):
            tangent = _dot(rays[n], axis) / _dot(rays[n], forward)
            low, high = min(low, tangent), max(high, tangent)
        grow = margin * (high - low)
        for i in range(3):
            planes[1 + 2 * k, i] = axis[i] - (high + grow) * forward[i]
            planes[2 + 2 * k, i] = (low - grow) * forward[i] - axis[i]
    for k in range(5):
        _to_unit(planes[k])
        planes[k, 3] = -_dot(planes[k], origin)
    return planes


@compiled
def _dot(a: Floats, b: Floats) -> float:
    return float(a[0] * b[0] + a[1] * b[1] + a[2] * b[2])


@compiled
def _to_unit(vector: Floats) -> None:
    """Give the first three numbers the length one."""
    length = np.sqrt(_dot(vector, vector))
    for i in range(3):
        vector[i] /= length


def bounding_box(
    cameras: Sequence[Camera], images: Sequence[DistanceImage], *, tolerated: int = 0
) -> tuple[Box | None, bool]:
    """Return the box of the subject and whether it is certain.

    It is certain when complete silhouettes alone bound it; else partial ones help, opened on the sides they
    touch. With ``tolerated`` wrong views the box holds the hulls of all subsets that leave that many views out, of two
    views at least: no single view is believed.
    None: the silhouettes' rectangles contradict each other, or no finite box follows from them.
    """
    centres = np.array([camera.centre for camera in cameras])
    middle = centres.mean(axis=0)
    scale = float(np.linalg.norm(centres - middle, axis=1).max())
    reach = _FAR * max(scale, 1.0)
    pyramids: list[tuple[Floats, bool]] = []
    for camera, image in zip(cameras, images, strict=True):
        planes = pyramid(camera, image)
        if planes is not None:
            moved = planes.copy()
            moved[:, 3] += planes[:, :3] @ middle  # coordinates from the middle of the rig: better conditioned
            pyramids.append((moved, image.view is Extent.COMPLETE))
    for certain in (True, False):
        chosen = [planes for planes, complete in pyramids if complete or not certain]
        size = len(chosen) - tolerated
        if len(chosen) < 2 or (size < 2 and len(chosen) < len(pyramids)):
            continue  # a point may be confirmed by partial views
        box = np.full((2, 3), np.nan)
        for kept in combinations(range(len(chosen)), max(size, 2)):
            part = box_of_half_spaces(np.concatenate([chosen[i] for i in kept]), reach)
            box[0] = np.fmin(box[0], part[0])
            box[1] = np.fmax(box[1], part[1])
        if np.isnan(box).any():
            return None, certain
        if np.isfinite(box).all():
            return Box(box[0] + middle, box[1] + middle), certain
    return None, False
