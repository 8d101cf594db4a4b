"""Path lengths of rays inside closed meshes and spheres, for X-ray pictures.

The length inside a closed surface is the sum over its crossings of the distance, counted positive where the ray
leaves and negative where it enters, in any order: no sorting, and bodies may overlap. Each crossing test decides by
the sign of edge functions that both faces of an edge compute from the same numbers, so that a ray through an edge
or corner is counted exactly once (a list of intersections from a general ray caster may count it twice or never,
which leaves a streak as bright as the whole distance to the source).
"""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Floats, Ints, Singles
from calibration.foundation.compiled import compiled

__all__ = ["add_mesh_lengths", "add_sphere_lengths"]


@compiled
def _edge(d: Floats, p: Floats, q: Floats) -> float:
    """Return the volume d . (p x q): which side of the edge p q, seen from the origin, the ray d passes."""
    x, y, z = p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], p[0] * q[1] - p[1] * q[0]
    volume: float = d[0] * x + d[1] * y + d[2] * z
    return volume


@compiled
def add_mesh_lengths(
    origin: Floats,
    directions: Floats,
    vertices: Floats,
    faces: Ints,
    pixels: Floats,
    weight: float,
    lengths: Floats,
) -> None:
    """Add to ``lengths`` (H, W) weight times the length of each pixel's ray inside a closed mesh, mm.

    ``directions`` (H, W, 3) are unit vectors; ``pixels`` (V, 2) are the vertices' images, which only bound the search.
    """
    height, width = lengths.shape
    corner = np.empty((3, 3))
    for f in range(faces.shape[0]):
        u0, u1, v0, v1 = 1e18, -1e18, 1e18, -1e18
        for k in range(3):
            n = faces[f, k]
            u0, u1 = min(u0, pixels[n, 0]), max(u1, pixels[n, 0])
            v0, v1 = min(v0, pixels[n, 1]), max(v1, pixels[n, 1])
            for axis in range(3):
                corner[k, axis] = vertices[n, axis] - origin[axis]
        if not (u0 <= u1 and v0 <= v1):  # NaN: behind the source
            continue
        first_row, last_row = max(int(np.floor(v0)) - 1, 0), min(int(np.ceil(v1)) + 1, height - 1)
        first_column, last_column = max(int(np.floor(u0)) - 1, 0), min(int(np.ceil(u1)) + 1, width - 1)
        if first_row > last_row or first_column > last_column:
            continue
        ax, ay, az = corner[0, 0], corner[0, 1], corner[0, 2]
        bx, by, bz = corner[1, 0] - ax, corner[1, 1] - ay, corner[1, 2] - az
        cx, cy, cz = corner[2, 0] - ax, corner[2, 1] - ay, corner[2, 2] - az
        nx, ny, nz = by * cz - bz * cy, bz * cx - bx * cz, bx * cy - by * cx
        plane = ax * nx + ay * ny + az * nz
        for row in range(first_row, last_row + 1):
            for column in range(first_column, last_column + 1):
                d = directions[row, column]
                inside = True
                side = 0
                for k in range(3):
                    p, q = faces[f, k], faces[f, (k + 1) % 3]
                    # Both faces of an edge see the same number: computed from its lower to its higher vertex.
                    if p < q:
                        turn = _edge(d, corner[k], corner[(k + 1) % 3]) >= 0.0
                    else:
                        turn = not _edge(d, corner[(k + 1) % 3], corner[k]) >= 0.0
                    sign = 1 if turn else -1
                    if k > 0 and sign != side:
                        inside = False
                        break
                    side = sign
                if not inside:
                    continue
                slope = d[0] * nx + d[1] * ny + d[2] * nz
                # `side` is the exact sense of crossing; the distance of a face seen edge-on is any of its corners'.
                if abs(slope) > 1e-12 * (abs(nx) + abs(ny) + abs(nz)):
                    distance = plane / slope
                else:
                    distance = d[0] * ax + d[1] * ay + d[2] * az
                lengths[row, column] += weight * distance if side > 0 else -weight * distance


# Eleven parameters: a kernel over pixels and spheres, on arrays of its caller.
@compiled
def add_sphere_lengths(
    origin: Floats,
    directions: Floats,
    across: Singles,
    down: Singles,
    centres: Floats,
    radii: Floats,
    pixels: Floats,
    reach: Floats,
    weight: float,
    samples: int,
    lengths: Floats,
) -> None:
    """Add weight times the mean chord of spheres (n, 3) over each pixel, from samples x samples rays, mm.

    ``pixels`` (n, 2) are the centres' images and ``reach`` (n,) bounds their images' radius, px.
    """
    height, width = lengths.shape
    ray = np.empty(3)
    for n in range(centres.shape[0]):
        if not (np.isfinite(pixels[n, 0]) and np.isfinite(pixels[n, 1])):
            continue
        first_row = max(int(np.floor(pixels[n, 1] - reach[n])) - 1, 0)
        last_row = min(int(np.ceil(pixels[n, 1] + reach[n])) + 1, height - 1)
        first_column = max(int(np.floor(pixels[n, 0] - reach[n])) - 1, 0)
        last_column = min(int(np.ceil(pixels[n, 0] + reach[n])) + 1, width - 1)
        x, y, z = centres[n, 0] - origin[0], centres[n, 1] - origin[1], centres[n, 2] - origin[2]
        squared = radii[n] * radii[n]
        for row in range(first_row, last_row + 1):
            for column in range(first_column, last_column + 1):
                total = 0.0
                for i in range(samples):
                    for j in range(samples):
                        du, dv = (i + 0.5) / samples - 0.5, (j + 0.5) / samples - 0.5
                        norm = 0.0
                        for axis in range(3):
                            ray[axis] = (
                                directions[row, column, axis]
                                + du * across[row, column, axis]
                                + dv * down[row, column, axis]
                            )
                            norm += ray[axis] * ray[axis]
                        norm = np.sqrt(norm)
                        # squared distance of the centre from the ray, by the cross product: exact for long rays
                        cx = (y * ray[2] - z * ray[1]) / norm
                        cy = (z * ray[0] - x * ray[2]) / norm
                        cz = (x * ray[1] - y * ray[0]) / norm
                        rest = squared - (cx * cx + cy * cy + cz * cz)
                        if rest > 0.0:
                            total += 2.0 * np.sqrt(rest)
                lengths[row, column] += weight * total / (samples * samples)
