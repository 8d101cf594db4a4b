"""How well a mesh explains the silhouettes: its own silhouette drawn in each view, and the overlap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.cameras.camera import Camera
from calibration.cameras.projection import project_into
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Floats
from calibration.foundation.compiled import compiled

__all__ = ["mesh_silhouette", "mesh_silhouettes", "overlap", "silhouette_agreement"]

#: Pixels of a row that are looked at at a time.
_TOGETHER = 32


@compiled
def _edges(faces: NDArray[np.int32], vertices: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the ends (E, 2) of a mesh's edges, the lower vertex first, and (F, 3) which edge each side is."""
    sides = np.empty(faces.shape, np.int32)
    ends = np.empty((3 * faces.shape[0], 2), np.int32)
    # The edges of a vertex as their lower end are a chain.
    first, following = np.full(vertices, -1, np.int32), np.empty(3 * faces.shape[0], np.int32)
    count = 0
    for f in range(faces.shape[0]):
        for side in range(3):
            p, q = faces[f, side], faces[f, (side + 1) % 3]
            low, high = min(p, q), max(p, q)
            edge = first[low]
            while edge >= 0 and ends[edge, 1] != high:
                edge = following[edge]
            if edge < 0:
                edge = count
                ends[edge, 0], ends[edge, 1] = low, high
                following[edge], first[low] = first[low], edge
                count += 1
            sides[f, side] = edge
    return ends[:count], sides


@compiled
def _changes(
    row: Floats,
    vertices: Floats,
    faces: NDArray[np.int32],
    ends: NDArray[np.int32],
    sides: NDArray[np.int32],
    size: tuple[int, int],
) -> tuple[NDArray[np.int32], int, int]:
    """Return how the number of front triangles over a pixel changes along rows, and the first column and row of that.

    Where a row crosses an edge, the number changes by the triangles on either side. Between two front triangles it
    stays, so only the outlines are followed. ``size``: width and height of the image.
    """
    width, height = size
    pixels = np.empty((vertices.shape[0], 2))
    low_x, low_y, high_x, high_y = np.inf, np.inf, -np.inf, -np.inf
    project_into(row, vertices, pixels)
    for i in range(vertices.shape[0]):
        u, v = pixels[i, 0], pixels[i, 1]
        low_x, high_x = (u if u < low_x else low_x), (u if u > high_x else high_x)
        low_y, high_y = (v if v < low_y else low_y), (v if v > high_y else high_y)
    # Pixels that the mesh may cover. Clamped before they become whole numbers: a point near the camera's plane may be
    # anywhere.
    left, right = int(min(max(low_x, 0.0), float(width))), int(min(max(high_x + 2.0, 0.0), float(width)))
    top, bottom = int(min(max(low_y, 0.0), float(height))), int(min(max(high_y + 2.0, 0.0), float(height)))
    if right <= left or bottom <= top:
        return np.zeros((0, 1), np.int32), 0, 0
    net = np.zeros(ends.shape[0], np.int32)  # front triangles that run along each edge upwards in vertex numbers
    for f in range(faces.shape[0]):
        a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
        ax, ay = pixels[a, 0], pixels[a, 1]
        # A triangle that reaches behind the camera has no outline; one that is seen is drawn whole by its own three.
        if not np.isfinite(ax + ay + pixels[b, 0] + pixels[b, 1] + pixels[c, 0] + pixels[c, 1]):
            continue
        area = (pixels[b, 0] - ax) * (pixels[c, 1] - ay) - (pixels[b, 1] - ay) * (pixels[c, 0] - ax)
        # Seen with y down, front faces turn clockwise: negative area. (A bare matrix may belong to a left-handed world:
        # there this is the back, which covers the same pixels.)
        if area < 0.0:
            net[sides[f, 0]] += 1 if a < b else -1
            net[sides[f, 1]] += 1 if b < c else -1
            net[sides[f, 2]] += 1 if c < a else -1
    change = np.zeros((bottom - top, right - left + 1), np.int32)
    for edge in range(ends.shape[0]):
        if net[edge] == 0:
            continue
        px, py = pixels[ends[edge, 0], 0], pixels[ends[edge, 0], 1]
        qx, qy = pixels[ends[edge, 1], 0], pixels[ends[edge, 1], 1]
        more = net[edge] if py < qy else -net[edge]  # a front triangle has its left side run down
        first = int(np.ceil(min(max(min(py, qy), float(top)), float(bottom))))
        last = int(np.ceil(min(max(max(py, qy), float(top)), float(bottom)))) - 1
        for y in range(first, last + 1):
            x = min(max(px + (y - py) / (qy - py) * (qx - px), left - 1.0), right + 1.0)
            column = int(np.ceil(x)) if more > 0 else int(np.floor(x)) + 1
            change[y - top, min(max(column, left), right) - left] += more
    return change, left, top


@compiled
def _draw(change: NDArray[np.int32], left: int, top: int, out: NDArray[np.bool_]) -> None:
    """Set the pixels (H, W) that a front triangle covers."""
    for y in range(change.shape[0]):
        covering = 0
        for x in range(change.shape[1] - 1):
            covering += change[y, x]
            out[top + y, left + x] = covering > 0


@compiled
def _count(change: NDArray[np.int32], left: int, top: int, mask: NDArray[np.bool_]) -> tuple[int, int]:
    """Return how many pixels a front triangle covers, and how many of them are in a mask (H, W)."""
    drawn, common, width = 0, 0, change.shape[1] - 1
    for y in range(change.shape[0]):
        line, own, covering = change[y, :width], mask[top + y, left : left + width], np.int32(0)
        for first in range(0, width, _TOGETHER):
            here, there = line[first : first + _TOGETHER], own[first : first + _TOGETHER]
            # Most of a row lies between two outlines: there all pixels are alike, and counted at once.
            changes, some = np.int32(0), np.int32(0)
            for x in range(len(here)):
                changes |= here[x]
                some += np.int32(there[x])
            if changes == 0:
                drawn += len(here) if covering > 0 else 0
                common += int(some) if covering > 0 else 0
                continue
            for x in range(len(here)):
                covering += here[x]
                drawn += covering > 0
                common += (covering > 0) & there[x]
    return drawn, common


def mesh_silhouette(camera: Camera, vertices: Floats, faces: NDArray[np.int32]) -> Bools:
    """Return (H, W) the silhouette of a closed mesh with outward normals in a camera."""
    return _silhouette(camera, vertices, faces, *_edges(faces, len(vertices)))


def mesh_silhouettes(cameras: Rig | Sequence[Camera], vertices: Floats, faces: NDArray[np.int32]) -> list[Bools]:
    """Return (H, W) the silhouettes of a closed mesh with outward normals in several cameras."""
    edges = _edges(faces, len(vertices))
    return [_silhouette(camera, vertices, faces, *edges) for camera in cameras]


def _silhouette(
    camera: Camera,
    vertices: Floats,
    faces: NDArray[np.int32],
    ends: NDArray[np.int32],
    sides: NDArray[np.int32],
) -> Bools:
    out = np.zeros(camera.size[::-1], dtype=bool)
    _draw(*_changes(camera.packed(), vertices, faces, ends, sides, camera.size), out)
    return out


def overlap(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Return the intersection of two masks over their union; NaN if both are empty."""
    union = int(np.count_nonzero(first | second))
    return int(np.count_nonzero(first & second)) / union if union else float("nan")


def silhouette_agreement(
    rig: Rig | Sequence[Camera], masks: Sequence[Bools | None], vertices: Floats, faces: NDArray[np.int32]
) -> Floats:
    """Return (C,) IoU of the mesh's silhouettes with the given ones; NaN where a mask is None."""
    edges = _edges(faces, len(vertices))
    scores = np.full(len(masks), np.nan)
    for index, (camera, mask) in enumerate(zip(rig, masks, strict=True)):
        if mask is not None:
            drawn, common = _count(*_changes(camera.packed(), vertices, faces, *edges, camera.size), mask)
            union = drawn + int(np.count_nonzero(mask)) - common
            scores[index] = common / union if union else np.nan
    return scores
