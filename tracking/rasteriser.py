"""Silhouettes of a mesh by filling its projected triangles: no depth, no shading, only covered or not."""

from __future__ import annotations

import numpy as np

from calibration.arrays import Bools, Bytes, Floats, Ints
from calibration.compiled import compiled
from calibration.rig import Rig

__all__ = ["cast_masks", "fill_triangles"]


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
    """Set ``mask`` to ``value`` at every pixel centre covered by a projected triangle, edges included."""
    height, width = mask.shape
    for f in range(len(faces)):
        ax, ay = pixels[faces[f, 0], 0], pixels[faces[f, 0], 1]
        bx, by = pixels[faces[f, 1], 0], pixels[faces[f, 1], 1]
        cx, cy = pixels[faces[f, 2], 0], pixels[faces[f, 2], 1]
        if not (np.isfinite(ax + ay) and np.isfinite(bx + by) and np.isfinite(cx + cy)):
            continue
        top = max(int(np.ceil(min(ay, by, cy))), 0)
        bottom = min(int(np.floor(max(ay, by, cy))), height - 1)
        for row in range(top, bottom + 1):
            # The scan line meets two or three sides: cover from the leftmost to the rightmost crossing.
            left, right = np.inf, -np.inf
            for side in range(3):
                if side == 0:
                    px, py, qx, qy = ax, ay, bx, by
                elif side == 1:
                    px, py, qx, qy = bx, by, cx, cy
                else:
                    px, py, qx, qy = cx, cy, ax, ay
                low, high = (py, qy) if py < qy else (qy, py)
                if row < low or row > high:
                    continue
                if py == qy:
                    left, right = min(left, px, qx), max(right, px, qx)
                else:
                    x = px + (row - py) * (qx - px) / (qy - py)
                    left, right = min(left, x), max(right, x)
            first = max(int(np.ceil(left)), 0) if left < width else width
            last = min(int(np.floor(right)), width - 1) if right >= 0 else -1
            for column in range(first, last + 1):
                mask[row, column] = value
