"""Rays of a camera's pixels, between pixels too, and where inside a pixel to sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from calibration.cameras.camera import Camera
from calibration.foundation.arrays import Floats, Ints, Singles
from calibration.foundation.compiled import compiled
from capture.studio.scene.surfaces import face_normal

__all__ = ["CORNERS", "SUBPIXELS", "PixelRays", "contour_pixels", "pixel_rays"]


#: (16, 2) offsets of the samples of an edge pixel, px. Sobol's net: the first 8 are evenly spread as well.
SUBPIXELS: Floats = qmc.Sobol(2, scramble=False).random(16) + 1.0 / 32.0 - 0.5
#: (4, 2) corners of a pixel, px: a straight edge that crosses it tells them apart.
CORNERS: Floats = np.array([[-0.5, -0.5], [0.5, -0.5], [-0.5, 0.5], [0.5, 0.5]])


@dataclass(frozen=True, eq=False)
class PixelRays:
    """The ray of every pixel and its change from pixel to pixel.

    Directions between pixels are extrapolated linearly from the nearest centre; a lens bends less than 1e-3 px
    inside one pixel. Pixels that the lens cannot see have NaN directions.

    Attributes:
        origin: (3,) centre of projection, world mm.
        directions: (H, W, 3) unit vectors at the pixel centres.
        across: (H, W, 3) change per pixel to the right.
        down: (H, W, 3) change per pixel downwards.
    """

    origin: Floats
    directions: Singles
    across: Singles
    down: Singles

    def between(self, rows: Ints, columns: Ints, offsets: Floats) -> Singles:
        """Return directions (n, s, 3) at ``offsets`` (s, 2) or (n, s, 2) px (right, down) from n pixel centres."""
        shift = offsets.astype(np.float32)
        result: Singles = (
            self.directions[rows, columns][:, None]
            + shift[..., :1] * self.across[rows, columns][:, None]
            + shift[..., 1:] * self.down[rows, columns][:, None]
        )
        return result


def pixel_rays(camera: Camera, warp: Callable[[Floats], Floats] | None = None) -> PixelRays:
    """Compute the rays of all pixels; ``warp`` maps observed pixels (n, 2) to those of the ideal camera."""
    width, height = camera.size
    columns, rows = np.meshgrid(np.arange(width, dtype=np.float64), np.arange(height, dtype=np.float64))
    pixels = np.stack([columns.ravel(), rows.ravel()], axis=1)
    directions = camera.rays(pixels if warp is None else warp(pixels))[1].reshape(height, width, 3)
    down = np.asarray(np.gradient(directions, axis=0, edge_order=2))
    across = np.asarray(np.gradient(directions, axis=1, edge_order=2))
    return PixelRays(
        origin=np.asarray(camera.centre, dtype=np.float64),
        directions=directions.astype(np.float32),
        across=across.astype(np.float32),
        down=down.astype(np.float32),
    )


@compiled
def contour_pixels(
    pixels: Floats, eye: Floats, vertices: Floats, faces: Ints, edges: Ints, marked: NDArray[np.bool_]
) -> None:
    """Mark in ``marked`` (H, W) every pixel that an apparent contour of a closed mesh crosses.

    A contour edge has one face turned to the eye and one turned away. ``edges`` (E, 4) holds two vertices and
    the two faces of each edge; ``pixels`` (V, 2) the projected vertices. Nothing thinner than a pixel is missed,
    which comparing neighbouring pixel centres would.
    """
    height, width = marked.shape
    facing = np.empty(faces.shape[0], dtype=np.bool_)
    for f in range(faces.shape[0]):
        a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
        nx, ny, nz = face_normal(vertices, a, b, c)
        facing[f] = (
            nx * (eye[0] - vertices[a, 0]) + ny * (eye[1] - vertices[a, 1]) + nz * (eye[2] - vertices[a, 2]) > 0.0
        )
    for e in range(edges.shape[0]):
        if edges[e, 3] >= 0 and facing[edges[e, 2]] == facing[edges[e, 3]]:
            continue
        u0, v0 = pixels[edges[e, 0], 0], pixels[edges[e, 0], 1]
        u1, v1 = pixels[edges[e, 1], 0], pixels[edges[e, 1], 1]
        if not (np.isfinite(u0) and np.isfinite(v0) and np.isfinite(u1) and np.isfinite(v1)):
            continue
        longest = max(abs(u1 - u0), abs(v1 - v0))
        if longest > 4.0 * (height + width):  # grazes the camera plane: the neighbours carry the contour
            continue
        steps = int(longest * 2.0) + 1
        for s in range(steps + 1):
            u = u0 + (u1 - u0) * s / steps
            v = v0 + (v1 - v0) * s / steps
            # A margin of 0.3 px takes in the corners that a step of half a pixel could jump over.
            for row in range(int(np.floor(v + 0.2)), int(np.floor(v + 0.8)) + 1):
                for column in range(int(np.floor(u + 0.2)), int(np.floor(u + 0.8)) + 1):
                    if 0 <= row < height and 0 <= column < width:
                        marked[row, column] = True
