"""How well a mesh explains the silhouettes: its own silhouette drawn in each view, and the overlap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.arrays import Bools, Floats
from calibration.cameras import Camera
from calibration.compiled import compiled
from calibration.projection import MATRIX, project_point
from calibration.rig import Rig

__all__ = ["mesh_silhouette", "overlap", "silhouette_agreement"]


@compiled
def _draw(row: Floats, vertices: Floats, faces: NDArray[np.int32], out: NDArray[np.bool_]) -> None:
    """Set the pixels (H, W) whose centres lie in the projection of any triangle."""
    height, width = out.shape
    pixels = np.empty((vertices.shape[0], 2))
    for i in range(vertices.shape[0]):
        pixels[i, 0], pixels[i, 1] = project_point(row, vertices[i, 0], vertices[i, 1], vertices[i, 2])
    for f in range(faces.shape[0]):
        ax, ay = pixels[faces[f, 0], 0], pixels[faces[f, 0], 1]
        bx, by = pixels[faces[f, 1], 0], pixels[faces[f, 1], 1]
        cx, cy = pixels[faces[f, 2], 0], pixels[faces[f, 2], 1]
        area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
        # Of a closed surface the front is enough. Seen with y down, front faces turn clockwise: negative area.
        # (A bare matrix may belong to a left-handed world: there both sides are drawn.)
        if not (area < 0.0 or (area > 0.0 and row[0] == MATRIX)):
            continue
        low_y, high_y = min(ay, by, cy), max(ay, by, cy)
        first, last = max(0, int(np.ceil(low_y))), min(height - 1, int(np.floor(high_y)))
        for y in range(first, last + 1):
            left, right = np.inf, -np.inf
            for side in range(3):
                if side == 0:
                    px, py, qx, qy = ax, ay, bx, by
                elif side == 1:
                    px, py, qx, qy = bx, by, cx, cy
                else:
                    px, py, qx, qy = cx, cy, ax, ay
                if (py <= y and qy >= y) or (qy <= y and py >= y):
                    if py == qy:
                        left, right = min(left, px, qx), max(right, px, qx)
                    else:
                        x = px + np.divide(y - py, qy - py) * (qx - px)
                        left, right = min(left, x), max(right, x)
            if left <= right:
                for x in range(max(0, int(np.ceil(left))), min(width - 1, int(np.floor(right))) + 1):
                    out[y, x] = True


def mesh_silhouette(camera: Camera, vertices: Floats, faces: NDArray[np.int32]) -> Bools:
    """Return (H, W) the silhouette of a closed mesh with outward normals in a camera."""
    width, height = camera.size
    out = np.zeros((height, width), dtype=bool)
    _draw(camera.packed(), vertices, faces, out)
    return out


def overlap(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Return the intersection of two masks over their union; NaN if both are empty."""
    union = int(np.count_nonzero(first | second))
    return int(np.count_nonzero(first & second)) / union if union else float("nan")


def silhouette_agreement(
    rig: Rig | Sequence[Camera], masks: Sequence[Bools | None], vertices: Floats, faces: NDArray[np.int32]
) -> Floats:
    """Return (C,) IoU of the mesh's silhouettes with the given ones; NaN where a mask is None."""
    scores = [
        np.nan if mask is None else overlap(mesh_silhouette(camera, vertices, faces), mask)
        for camera, mask in zip(rig, masks, strict=True)
    ]
    return np.array(scores)
