"""The zero level of a field sampled in sparse blocks, as one closed triangle mesh.

Plain marching cubes cuts edges and corners off, by more than a voxel at the corner of a cube. Where the normals at
the vertices of a cell's polygon disagree, a vertex is put where their planes meet, the polygon becomes a fan
around it, and the fans of neighbouring cells are joined along the edge (Kobbelt et al. 2001).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Floats, Singles
from calibration.foundation.compiled import compiled
from calibration.foundation.errors import SolveError
from capture.hull.blocks import BLOCK
from capture.hull.marching_tables import EDGE_AXIS, EDGE_CORNER, loop_table, triangle_table

__all__ = ["Faces", "enclosed_volume", "extent_of", "march"]

#: Normals of one polygon that differ by more than this make an edge.
_CREASE_COSINE = 0.85

Faces = NDArray[np.int32]


def march(
    active: NDArray[np.int32],
    sampled: Singles,
    origin: Floats,
    spacing: float,
    blocks: tuple[int, int, int],
    *,
    decides: NDArray[np.int8] | None = None,
    normals_at: Callable[[Floats, NDArray[np.int8]], Floats] | None = None,
) -> tuple[Floats, Faces]:
    """Return vertices (V, 3), mm, and faces (F, 3), normals outward, of the level 0 of a block-sampled field.

    Args:
        active: (m, 3) blocks; every block that the surface crosses must be among them.
        sampled: (m, BLOCK + 1, ...) field at the blocks' grid points, negative inside.
        decides: (m, BLOCK + 1, ...) which view decides at the grid points, -1 where that is not known.
        normals_at: gives unit normals (n, 3) of the surface at points (n, 3) where such views decide (n,), with it
            edges stay sharp.
    """
    if decides is None:
        decides = np.full(sampled.shape, -1, np.int8)
    vertices, vertex_of, known = _vertices(active, sampled, decides, origin, spacing)
    normals = np.zeros((0, 3)) if normals_at is None else normals_at(vertices, known)
    vertices, faces, closed = _faces(
        active,
        sampled,
        origin,
        spacing,
        blocks,
        vertices,
        vertex_of,
        normals,
        triangle_table(),
        loop_table(),
        EDGE_AXIS,
        EDGE_CORNER,
    )
    if not closed:
        raise SolveError("hull: the surface crosses a block that was not sampled; the bound on the image speed failed")
    return vertices, faces


@compiled
def _vertices(
    active: NDArray[np.int32], sampled: Singles, decides: NDArray[np.int8], origin: Floats, spacing: float
) -> tuple[Floats, NDArray[np.int32], NDArray[np.int8]]:
    """Return the surface's crossings of grid edges, per block and own grid point and axis their numbers, their views.

    Where the same view decides at both ends of an edge it does so between them; -1 elsewhere.
    """
    number = active.shape[0]
    # Each grid edge belongs to the block that holds its low end as one of its BLOCK^3 own points.
    vertex_of = np.full((number, BLOCK, BLOCK, BLOCK, 3), -1, np.int32)
    vertices = np.empty((4 * BLOCK * BLOCK * number + 16, 3))
    known = np.empty(vertices.shape[0], np.int8)
    count = 0
    for n in range(number):
        block, views = sampled[n], decides[n]
        for i in range(BLOCK):
            for j in range(BLOCK):
                for k in range(BLOCK):
                    f0 = block[i, j, k]
                    for axis in range(3):
                        x, y, z = i + (axis == 0), j + (axis == 1), k + (axis == 2)
                        f1 = block[x, y, z]
                        if (f0 < 0) == (f1 < 0):
                            continue
                        if count == vertices.shape[0]:
                            longer = np.empty((2 * count, 3))
                            longer[:count] = vertices
                            vertices = longer
                            more = np.empty(2 * count, np.int8)
                            more[:count] = known
                            known = more
                        # Kept off the grid points, so that no triangle collapses.
                        t = min(max(f0 / (f0 - f1), 1e-3), 1.0 - 1e-3)
                        vertices[count, 0] = origin[0] + (active[n, 0] * BLOCK + i) * spacing
                        vertices[count, 1] = origin[1] + (active[n, 1] * BLOCK + j) * spacing
                        vertices[count, 2] = origin[2] + (active[n, 2] * BLOCK + k) * spacing
                        vertices[count, axis] += t * spacing
                        known[count] = views[i, j, k] if views[i, j, k] == views[x, y, z] else -1
                        vertex_of[n, i, j, k, axis] = count
                        count += 1
    return vertices[:count].copy(), vertex_of, known[:count].copy()


@compiled
def _eigen(matrix: Floats) -> tuple[Floats, Floats]:
    """Return eigenvalues (3,), ascending, and vectors (3, 3) as columns of a symmetric matrix, which is used up.

    Jacobi's turns: for three rows a tenth of the time of LAPACK's general way.
    """
    axes = np.eye(3)
    for _ in range(12):
        beside = matrix[0, 1] ** 2 + matrix[0, 2] ** 2 + matrix[1, 2] ** 2
        if beside <= 1e-30 * (matrix[0, 0] ** 2 + matrix[1, 1] ** 2 + matrix[2, 2] ** 2):
            break
        for p in range(2):
            for q in range(p + 1, 3):
                if matrix[p, q] == 0.0:
                    continue
                ratio = (matrix[q, q] - matrix[p, p]) / (2.0 * matrix[p, q])
                tangent = (1.0 if ratio >= 0.0 else -1.0) / (abs(ratio) + np.sqrt(1.0 + ratio * ratio))
                cosine = 1.0 / np.sqrt(1.0 + tangent * tangent)
                sine = tangent * cosine
                for k in range(3):
                    a, b = matrix[k, p], matrix[k, q]
                    matrix[k, p], matrix[k, q] = cosine * a - sine * b, sine * a + cosine * b
                for k in range(3):
                    a, b = matrix[p, k], matrix[q, k]
                    matrix[p, k], matrix[q, k] = cosine * a - sine * b, sine * a + cosine * b
                    a, b = axes[k, p], axes[k, q]
                    axes[k, p], axes[k, q] = cosine * a - sine * b, sine * a + cosine * b
    squares = np.array([matrix[0, 0], matrix[1, 1], matrix[2, 2]])
    order = np.argsort(squares)
    return squares[order], axes[:, order]


@compiled
def _feature(
    ids: NDArray[np.int32],
    first: int,
    length: int,
    vertices: Floats,
    normals: Floats,
    low: Floats,
    spacing: float,
    out: Floats,
) -> bool:
    """Put where the tangent planes of a polygon's vertices meet into ``out`` (3,); False if it is flat."""
    flattest = 1.0
    for i in range(first, first + length):
        for j in range(i + 1, first + length):
            a, b = normals[ids[i]], normals[ids[j]]
            cosine = a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
            if not np.isfinite(cosine):
                return False
            flattest = min(flattest, cosine)
    if flattest > _CREASE_COSINE:
        return False
    middle = np.zeros(3)
    for i in range(first, first + length):
        middle += vertices[ids[i]] / length
    matrix = np.zeros((3, 3))
    right = np.zeros(3)
    for i in range(first, first + length):
        normal = normals[ids[i]]
        offset = 0.0
        for axis in range(3):
            offset += normal[axis] * (vertices[ids[i], axis] - middle[axis])
        for r in range(3):
            right[r] += normal[r] * offset
            for c in range(3):
                matrix[r, c] += normal[r] * normal[c]
    squares, axes = _eigen(matrix)
    out[:] = middle
    for e in range(3):
        # Along an edge of the hull nothing holds the point: it stays at the polygon's middle there.
        if squares[e] > 0.08 * squares[2]:
            amount = (axes[0, e] * right[0] + axes[1, e] * right[1] + axes[2, e] * right[2]) / squares[e]
            for axis in range(3):
                out[axis] += amount * axes[axis, e]
    for axis in range(3):
        out[axis] = min(max(out[axis], low[axis]), low[axis] + spacing)
    return True


@compiled
def _join_fans(faces: Faces, fans: NDArray[np.int32], count: int, vertex_count: int) -> None:
    """Turn the edge between two fans' triangles so that it joins their tips; a triangle's tip is its last vertex."""
    keys = np.empty(count, np.int64)
    for f in range(count):
        a, b = np.int64(faces[fans[f], 0]), np.int64(faces[fans[f], 1])
        keys[f] = min(a, b) * vertex_count + max(a, b)
    order = np.argsort(keys)
    pairs = np.empty(count, np.int64)
    firsts = np.empty((count, 2), np.int32)
    found = 0
    for i in range(count - 1):
        if keys[order[i]] == keys[order[i + 1]]:
            one, two = fans[order[i]], fans[order[i + 1]]
            a, b = np.int64(faces[one, 2]), np.int64(faces[two, 2])
            pairs[found] = min(a, b) * vertex_count + max(a, b)
            firsts[found, 0], firsts[found, 1] = one, two
            found += 1
    turn = np.argsort(pairs[:found])
    for i in range(found):
        here = pairs[turn[i]]
        # Two cells that meet in two segments would be joined twice: four triangles at one edge. Leave those.
        if (i > 0 and pairs[turn[i - 1]] == here) or (i + 1 < found and pairs[turn[i + 1]] == here):
            continue
        one, two = firsts[turn[i], 0], firsts[turn[i], 1]
        a, b, tip, other = faces[one, 0], faces[one, 1], faces[one, 2], faces[two, 2]
        faces[one, 0], faces[one, 1], faces[one, 2] = tip, a, other
        faces[two, 0], faces[two, 1], faces[two, 2] = other, b, tip


# Over 80 lines, 12 parameters: one sweep over all cells; the arrays it fills grow together.
@compiled
def _faces(
    active: NDArray[np.int32],
    sampled: Singles,
    origin: Floats,
    spacing: float,
    blocks: tuple[int, int, int],
    vertices: Floats,
    vertex_of: NDArray[np.int32],
    normals: Floats,
    table: NDArray[np.int8],
    loops: NDArray[np.int8],
    edge_axis: NDArray[np.int64],
    edge_corner: NDArray[np.int64],
) -> tuple[Floats, Faces, bool]:
    number = active.shape[0]
    where = np.full(blocks, -1, np.int32)
    for n in range(number):
        where[active[n, 0], active[n, 1], active[n, 2]] = n
    sharp = normals.shape[0] == vertices.shape[0] and normals.shape[0] > 0
    crossings = vertices.shape[0]
    # A crossing takes part in four polygons; a polygon of n vertices makes n triangles at most.
    faces = np.empty((4 * crossings + 16, 3), np.int32)
    fans = np.empty(4 * crossings + 16 if sharp else 1, np.int32)
    tips = np.empty((4 * crossings // 3 + 16 if sharp else 1, 3))
    face_count, fan_count, tip_count = 0, 0, 0
    closed = True
    of_edge = np.empty(12, np.int32)
    ids = np.empty(12, np.int32)
    low = np.empty(3)
    tip = np.empty(3)
    for n in range(number):
        block = sampled[n]
        for i in range(BLOCK):
            for j in range(BLOCK):
                for k in range(BLOCK):
                    case = 0
                    for corner in range(8):
                        if block[i + (corner & 1), j + (corner >> 1 & 1), k + (corner >> 2)] < 0:
                            case |= 1 << corner
                    triangles = table[case, 0]
                    if triangles == 0:
                        continue
                    for edge in range(12):
                        corner = edge_corner[edge]
                        other = corner | (1 << edge_axis[edge])
                        if (case >> corner & 1) == (case >> other & 1):
                            continue
                        x, y, z = i + (corner & 1), j + (corner >> 1 & 1), k + (corner >> 2)
                        owner = n
                        if x == BLOCK or y == BLOCK or z == BLOCK:
                            owner = where[
                                active[n, 0] + x // BLOCK, active[n, 1] + y // BLOCK, active[n, 2] + z // BLOCK
                            ]
                        of_edge[edge] = (
                            -1 if owner < 0 else vertex_of[owner, x % BLOCK, y % BLOCK, z % BLOCK, edge_axis[edge]]
                        )
                        closed = closed and of_edge[edge] >= 0
                    if not closed:
                        return vertices, faces[:0], False
                    creased = False
                    if sharp:
                        low[0] = origin[0] + (active[n, 0] * BLOCK + i) * spacing
                        low[1] = origin[1] + (active[n, 1] * BLOCK + j) * spacing
                        low[2] = origin[2] + (active[n, 2] * BLOCK + k) * spacing
                        total = 0
                        for loop in range(loops[case, 0]):
                            total += loops[case, 1 + loop]
                        for e in range(total):
                            ids[e] = of_edge[loops[case, 5 + e]]
                        if loops[case, 0] == 1:  # a cell with several sheets is left as it is
                            creased = _feature(ids, 0, total, vertices, normals, low, spacing, tip)
                    if creased:
                        tips[tip_count] = tip
                        for e in range(total):
                            faces[face_count, 0] = ids[e]
                            faces[face_count, 1] = ids[(e + 1) % total]
                            faces[face_count, 2] = crossings + tip_count
                            fans[fan_count] = face_count
                            fan_count += 1
                            face_count += 1
                        tip_count += 1
                        continue
                    for triangle in range(triangles):
                        for side in range(3):
                            faces[face_count, side] = of_edge[table[case, 1 + 3 * triangle + side]]
                        face_count += 1
    if tip_count == 0:
        return vertices, faces[:face_count].copy(), closed
    _join_fans(faces, fans, fan_count, crossings + tip_count)
    return np.concatenate((vertices, tips[:tip_count])), faces[:face_count].copy(), closed


@compiled
def enclosed_volume(vertices: Floats, faces: Faces) -> float:
    """Return the volume (mm^3) enclosed by a closed mesh with outward normals."""
    total = 0.0
    if faces.shape[0] == 0:
        return total
    x, y, z = vertices[faces[0, 0], 0], vertices[faces[0, 0], 1], vertices[faces[0, 0], 2]
    for f in range(faces.shape[0]):
        a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
        ax, ay, az = vertices[a, 0] - x, vertices[a, 1] - y, vertices[a, 2] - z
        bx, by, bz = vertices[b, 0] - x, vertices[b, 1] - y, vertices[b, 2] - z
        cx, cy, cz = vertices[c, 0] - x, vertices[c, 1] - y, vertices[c, 2] - z
        total += ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx)
    return total / 6.0


@compiled
def extent_of(vertices: Floats) -> tuple[Floats, Floats]:
    """Return (3,) the least and the largest coordinates of vertices (V, 3), one at least."""
    low, high = vertices[0].copy(), vertices[0].copy()
    for n in range(vertices.shape[0]):
        for axis in range(3):
            value = vertices[n, axis]
            low[axis] = value if value < low[axis] else low[axis]
            high[axis] = value if value > high[axis] else high[axis]
    return low, high
