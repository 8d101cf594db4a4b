"""Silhouettes of a mesh by filling its projected triangles: no depth, no shading, only covered or not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Bytes, Floats, Ints
from calibration.foundation.compiled import compiled

__all__ = ["Layers", "cast_masks", "fill_layers", "fill_triangles"]

Layers = NDArray[np.uint32]
"""Images of up to 32 layers, one bit each."""


def cast_masks(rig: Rig, vertices: Floats, faces: Ints) -> list[Bools]:
    """Cast the silhouettes of a mesh into every camera of a rig.

    Args:
        rig: cameras.
        vertices: (V, 3) mm.
        faces: (F, 3).

    Returns:
        One (H, W) mask per camera: True where the pixel's centre is covered. Triangles with a vertex behind the
        camera are left out.
    """
    masks = []
    for camera in rig.cameras:
        width, height = camera.size
        mask = np.zeros((height, width), np.uint8)
        fill_triangles(camera.project(vertices), faces, 1, mask)
        masks.append(mask.astype(bool))
    return masks


@compiled
def fill_triangles(pixels: Floats, faces: Ints, value: int, mask: Bytes) -> None:
    """Set the bits of ``value`` at every pixel centre of ``mask`` covered by a projected triangle, edges included."""
    for f in range(len(faces)):
        _fill_triangle(pixels[faces[f, 0]], pixels[faces[f, 1]], pixels[faces[f, 2]], value, mask)


@compiled
def fill_layers(pixels: Floats, faces: Ints, values: Layers, image: Layers) -> None:
    """Set the bits of each triangle's own value (F,) at every pixel centre that it covers, edges included."""
    for f in range(len(faces)):
        _fill_triangle(pixels[faces[f, 0]], pixels[faces[f, 1]], pixels[faces[f, 2]], values[f], image)


@compiled
def _fill_triangle(a: Floats, b: Floats, c: Floats, value: int, mask: Bytes | Layers) -> None:
    """Set the bits of ``value`` at every pixel centre covered by one triangle of three pixels (2,), edges included."""
    (height, width), nothing = mask.shape, value ^ value
    ax, ay, bx, by, cx, cy = a[0], a[1], b[0], b[1], c[0], c[1]
    if not np.isfinite(ax + ay + bx + by + cx + cy):
        return
    if by < ay:
        ax, ay, bx, by = bx, by, ax, ay
    if cy < by:
        bx, by, cx, cy = cx, cy, bx, by
        if by < ay:
            ax, ay, bx, by = bx, by, ax, ay
    # Bounded before they become whole numbers: a point far outside has none, and would index anywhere.
    top, bottom = int(min(max(np.ceil(ay), 0.0), float(height))), int(max(min(np.floor(cy), height - 1.0), -1.0))
    if top > bottom:
        return
    if cy == ay:  # all on one scan line
        first = int(min(max(np.ceil(min(ax, bx, cx)), 0.0), float(width)))
        last = int(max(min(np.floor(max(ax, bx, cx)), width - 1.0), -1.0))
        for column in range(first, last + 1):
            mask[top, column] |= value
        return
    # a is the topmost corner, c the lowest: a scan line runs between side ac and one of the two others.
    along = (cx - ax) / (cy - ay)
    upper = (bx - ax) / (by - ay) if by > ay else 0.0
    lower = (cx - bx) / (cy - by) if cy > by else 0.0
    for row in range(top, bottom + 1):
        left = ax + (row - ay) * along
        right = ax + (row - ay) * upper if row < by else bx + (row - by) * lower
        if left > right:
            left, right = right, left
        if not (right >= 0.0 and left <= width - 1):
            continue
        first, last = int(max(np.ceil(left), 0.0)), int(min(np.floor(right), width - 1.0))
        # Most triangles are a pixel or two wide: three are written in any case, which is guessed right.
        second, third = min(first + 1, width - 1), min(first + 2, width - 1)
        mask[row, first] |= value if first <= last else nothing
        mask[row, second] |= value if second <= last else nothing
        mask[row, third] |= value if third <= last else nothing
        for column in range(first + 3, last + 1):
            mask[row, column] |= value
