"""The zero level of a field sampled in sparse blocks, as one closed triangle mesh.

Plain marching cubes cuts edges and corners off, by more than a voxel at the corner of a cube. Where the normals at
the vertices of a cell's polygon disagree, a vertex is put where their planes meet, the polygon becomes a fan
around it, and the fans of neighbouring cells are joined along the edge (Kobbelt et al. 2001).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Floats, Ints, Singles
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
def _inside_rows(block: Singles, rows: Ints) -> None:
    """Fill (BLOCK + 1, BLOCK + 1): bit k tells whether grid point (i, j, k) of a block is inside."""
    for i in range(BLOCK + 1):
        for j in range(BLOCK + 1):
            bits = 0
            for k in range(BLOCK + 1):
                bits |= int(block[i, j, k] < 0) << k
            rows[i, j] = bits


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
    inside, crossed = np.empty((BLOCK + 1, BLOCK + 1), np.int64), np.empty(3, np.int64)
    count = 0
    for n in range(number):
        block, views = sampled[n], decides[n]
        _inside_rows(block, inside)
        for i in range(BLOCK):
            for j in range(BLOCK):
                own = inside[i, j]
                crossed[0], crossed[1], crossed[2] = own ^ inside[i + 1, j], own ^ inside[i, j + 1], own ^ (own >> 1)
                for k in range(BLOCK):
                    for axis in range(3):
                        if crossed[axis] >> k & 1 == 0:
                            continue
                        f0 = block[i, j, k]
                        x, y, z = i + (axis == 0), j + (axis == 1), k + (axis == 2)
                        f1 = block[x, y, z]
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
def _eigen(matrix: Floats, squares: Floats, axes: Floats) -> None:
    """Fill eigenvalues (3,), ascending, and vectors (3, 3) as columns of a symmetric matrix, which is used up.

    Jacobi's turns: for three rows a tenth of the time of LAPACK's general way.
    """
    for p in range(3):
        for q in range(3):
            axes[p, q] = 1.0 if p == q else 0.0
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
    for e in range(3):
        squares[e] = matrix[e, e]
        at = e
        while at > 0 and squares[at - 1] > squares[at]:
            squares[at - 1], squares[at] = squares[at], squares[at - 1]
            for k in range(3):
                axes[k, at - 1], axes[k, at] = axes[k, at], axes[k, at - 1]
            at -= 1


@compiled
def _feature(
    ids: NDArray[np.int32],
    length: int,
    vertices: Floats,
    normals: Floats,
    low: Floats,
    spacing: float,
    out: Floats,
    space: Floats,
) -> bool:
    """Put where the tangent planes of a polygon's vertices meet into ``out`` (3,); False if it is flat.

    ``space`` (9, 3) is work space: an array made anew for each polygon costs more than what is done in it.
    """
    flattest = 1.0
    for i in range(length):
        a = normals[ids[i]]
        for j in range(i + 1, length):
            b = normals[ids[j]]
            cosine = a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
            if not abs(cosine) < np.inf:
                return False
            flattest = min(flattest, cosine)
    if flattest > _CREASE_COSINE:
        return False
    space[:] = 0.0
    middle, right, matrix, squares, axes = space[0], space[1], space[2:5], space[5], space[6:9]
    for i in range(length):
        for axis in range(3):
            middle[axis] += vertices[ids[i], axis] / length
    for i in range(length):
        normal = normals[ids[i]]
        offset = 0.0
        for axis in range(3):
            offset += normal[axis] * (vertices[ids[i], axis] - middle[axis])
        for r in range(3):
            right[r] += normal[r] * offset
            for c in range(3):
                matrix[r, c] += normal[r] * normal[c]
    _eigen(matrix, squares, axes)
    for axis in range(3):
        out[axis] = middle[axis]
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
def _same_pairs(pairs: NDArray[np.int32], highest: int) -> NDArray[np.int32]:
    """Return (n,) for each of the pairs (n, 2) one before it of the same two numbers, -1 where there is none.

    Numbers are below ``highest``. Those of a pair may stand in any order.
    """
    # The pairs of a lower number are a chain, the last of them first.
    last, before = np.full(highest, -1, np.int32), np.empty(len(pairs), np.int32)
    out = np.empty(len(pairs), np.int32)
    for n in range(len(pairs)):
        low, high = min(pairs[n, 0], pairs[n, 1]), max(pairs[n, 0], pairs[n, 1])
        other = last[low]
        while other >= 0 and max(pairs[other, 0], pairs[other, 1]) != high:
            other = before[other]
        out[n], before[n], last[low] = other, last[low], n
    return out


@compiled
def _join_fans(faces: Faces, fans: NDArray[np.int32], count: int, vertex_count: int) -> None:
    """Turn the edge between two fans' triangles so that it joins their tips; a triangle's tip is its last vertex."""
    sides = np.empty((count, 2), np.int32)
    for f in range(count):
        sides[f, 0], sides[f, 1] = faces[fans[f], 0], faces[fans[f], 1]
    other = _same_pairs(sides, vertex_count)
    joined, tips = np.empty((count, 2), np.int32), np.empty((count, 2), np.int32)
    found = 0
    for f in range(count):
        if other[f] >= 0:
            joined[found, 0], joined[found, 1] = fans[other[f]], fans[f]
            tips[found, 0], tips[found, 1] = faces[fans[other[f]], 2], faces[fans[f], 2]
            found += 1
    twice = _same_pairs(tips[:found], vertex_count)
    alone = np.full(found, True)
    for n in range(found):
        if twice[n] >= 0:
            alone[n] = alone[twice[n]] = False
    for n in range(found):
        # Two cells that meet in two segments would be joined twice: four triangles at one edge. Leave those.
        if alone[n]:
            one, two = joined[n, 0], joined[n, 1]
            a, b, tip, beyond = faces[one, 0], faces[one, 1], faces[one, 2], faces[two, 2]
            faces[one, 0], faces[one, 1], faces[one, 2] = tip, a, beyond
            faces[two, 0], faces[two, 1], faces[two, 2] = beyond, b, tip


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
    low, tip, space = np.empty(3), np.empty(3), np.empty((9, 3))
    inside = np.empty((BLOCK + 1, BLOCK + 1), np.int64)
    for n in range(number):
        _inside_rows(sampled[n], inside)
        for i in range(BLOCK):
            for j in range(BLOCK):
                for k in range(BLOCK):
                    case = 0
                    for corner in range(8):
                        case |= (inside[i + (corner & 1), j + (corner >> 1 & 1)] >> (k + (corner >> 2)) & 1) << corner
                    triangles = table[case, 0]
                    if triangles == 0:
                        continue
                    total = 0
                    for loop in range(loops[case, 0]):
                        total += loops[case, 1 + loop]
                    for e in range(total):  # the edges that the surface crosses
                        edge = loops[case, 5 + e]
                        corner = edge_corner[edge]
                        x, y, z = i + (corner & 1), j + (corner >> 1 & 1), k + (corner >> 2)
                        beyond_x, beyond_y, beyond_z = int(x == BLOCK), int(y == BLOCK), int(z == BLOCK)
                        owner = where[active[n, 0] + beyond_x, active[n, 1] + beyond_y, active[n, 2] + beyond_z]
                        if owner < 0:
                            return vertices, faces[:0], False
                        ids[e] = of_edge[edge] = vertex_of[
                            owner, x - BLOCK * beyond_x, y - BLOCK * beyond_y, z - BLOCK * beyond_z, edge_axis[edge]
                        ]
                        closed = closed and ids[e] >= 0
                    if not closed:
                        return vertices, faces[:0], False
                    creased = False
                    if sharp and loops[case, 0] == 1:  # a cell with several sheets is left as it is
                        low[0] = origin[0] + (active[n, 0] * BLOCK + i) * spacing
                        low[1] = origin[1] + (active[n, 1] * BLOCK + j) * spacing
                        low[2] = origin[2] + (active[n, 2] * BLOCK + k) * spacing
                        creased = _feature(ids, total, vertices, normals, low, spacing, tip, space)
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
