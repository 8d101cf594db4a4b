"""Mesh an implicit solid: marching cubes in the blocks near the surface, edge collapse, smoothing, projection."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from skimage.measure import marching_cubes

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.compiled import compiled
from calibration.geometry.meshes import vertex_normals
from skeleton.actors.shapes import field, field_and_gradient, shape_distance

__all__ = ["edges_of", "fill_grid", "mesh_solid", "mesh_volume", "project", "relax"]

BLOCK = 8


@compiled
def _fill(grid: Floats, origin: Floats, cell: float, packed: Floats) -> None:
    """Evaluate the field on a grid, block by block, with only the shapes that can matter in each block."""
    keep = np.empty(packed.shape[0], dtype=np.int64)
    distance = np.empty(packed.shape[0])
    widest = packed[:, 1].max()
    reach = 0.5 * BLOCK * cell * 1.7320508 * 1.5  # 1.5: the ellipsoid's distance is not exactly 1-Lipschitz
    for bx in range(0, grid.shape[0], BLOCK):
        for by in range(0, grid.shape[1], BLOCK):
            for bz in range(0, grid.shape[2], BLOCK):
                x = origin[0] + cell * (bx + 0.5 * BLOCK)
                y = origin[1] + cell * (by + 0.5 * BLOCK)
                z = origin[2] + cell * (bz + 0.5 * BLOCK)
                least = 1e9
                for s in range(packed.shape[0]):
                    distance[s] = shape_distance(packed[s], x, y, z)
                    least = min(least, distance[s])
                kept = 0
                for s in range(packed.shape[0]):
                    if distance[s] <= least + 2.0 * reach + widest:
                        keep[kept] = s
                        kept += 1
                for i in range(bx, min(bx + BLOCK, grid.shape[0])):
                    for j in range(by, min(by + BLOCK, grid.shape[1])):
                        for k in range(bz, min(bz + BLOCK, grid.shape[2])):
                            if least > reach + widest:
                                grid[i, j, k] = least
                                continue
                            value = 1e9
                            for n in range(kept):
                                row = packed[keep[n]]
                                d = shape_distance(
                                    row, origin[0] + cell * i, origin[1] + cell * j, origin[2] + cell * k
                                )
                                h = max(row[1] - abs(value - d), 0.0)
                                value = min(value, d) - 0.25 * h * h / row[1]
                            grid[i, j, k] = value


def fill_grid(packed: Floats, cell: float) -> tuple[Floats, Floats]:
    """Return the field of packed shapes (S, 24) on a grid of ``cell`` mm around them, and the grid's origin (3,)."""
    ends = np.concatenate([packed[:, 2:5], packed[:, 5:8]])
    reach = np.tile(np.where(packed[:, 0] == 0, packed[:, 8:10].max(1), packed[:, 8:11].max(1)), 2) + 2.5 * cell
    origin = (ends - reach[:, None]).min(0)
    count = np.ceil(((ends + reach[:, None]).max(0) - origin) / cell).astype(int) + 1
    grid = np.empty(tuple(count))
    _fill(grid, origin, cell, packed)
    return grid, origin


def mesh_solid(packed: Floats, *, cell: float, vertices: int, sizes: Floats | None = None) -> tuple[Floats, Ints]:
    """Mesh the solid of packed shapes (S, 24): closed, outward faces, about ``vertices`` vertices.

    ``sizes`` (S,) relative edge length wanted near each shape; equal everywhere if None.
    """
    grid, origin = fill_grid(packed, cell)
    points, faces, _, _ = marching_cubes(grid, 0.0)
    points = np.ascontiguousarray(points, dtype=np.float64) * cell + origin
    faces = np.ascontiguousarray(faces, dtype=np.int64)
    points, faces = _largest_part(points, faces)
    points = project(points, packed, cell)
    wanted = np.ones(len(packed)) if sizes is None else sizes
    points, faces = _collapse(points, faces, packed, wanted, vertices, cell)
    points = project(relax(points, faces, packed, cell, rounds=8), packed, cell)
    if mesh_volume(points, faces) < 0:
        faces = faces[:, ::-1].copy()
    return points, faces


def mesh_volume(points: Floats, faces: Ints) -> float:
    """Return the signed volume of a closed mesh, mm^3; positive if the faces look outward."""
    a, b, c = (points[faces[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6.0)


def edges_of(faces: Ints) -> Ints:
    """Return the undirected edges (E, 2) of a closed mesh, smaller index first, sorted."""
    a, b = faces.ravel(), np.roll(faces, -1, axis=1).ravel()
    count = int(faces.max()) + 1
    keys = np.minimum(a, b) * count + np.maximum(a, b)
    keys = np.sort(keys[a < b])  # a closed mesh meets each edge once in each direction
    return np.stack([keys // count, keys % count], axis=1)


def adjacency(edges: Ints, count: int) -> sparse.csr_array:
    """Return the symmetric 0/1 neighbour matrix of the vertices of edges (E, 2)."""
    rows, columns = np.concatenate([edges[:, 0], edges[:, 1]]), np.concatenate([edges[:, 1], edges[:, 0]])
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(count, count))


def project(points: Floats, packed: Floats, cell: float, *, steps: int = 3, near: float = 0.0) -> Floats:
    """Move points onto the surface by Newton steps along the gradient, at most half a cell each.

    A point whose step was no longer than ``near`` cells is there; 0 goes on to the last digit.
    """
    points, away = points.copy(), np.arange(len(points))
    for _ in range(steps):
        before = points[away]
        value, gradient = field_and_gradient(before, packed, 0.02 * cell)
        square = np.maximum((gradient**2).sum(1), 0.05)
        step = -value[:, None] * gradient / square[:, None]
        length = np.linalg.norm(step, axis=1, keepdims=True)
        points[away] = before + step * np.minimum(1.0, 0.5 * cell / np.maximum(length, 1e-12))
        away = away[(np.abs(points[away] - before) > near * cell).any(axis=1)]
    return points


def _largest_part(points: Floats, faces: Ints) -> tuple[Floats, Ints]:
    _, label = sparse.csgraph.connected_components(adjacency(edges_of(faces), len(points)), directed=False)
    return _without(points, faces, label == np.bincount(label).argmax())


def _without(points: Floats, faces: Ints, keep: np.ndarray) -> tuple[Floats, Ints]:
    index = np.cumsum(keep) - 1
    return points[keep], index[faces[keep[faces].all(1)]]


@compiled
def _independent(edges: Ints, starts: Ints, neighbours: Ints, wanted: int) -> Ints:
    """Pick edges in the given order whose one-rings do not touch, at most ``wanted``."""
    blocked = np.zeros(starts.size - 1, dtype=np.bool_)
    out = np.empty(edges.shape[0], dtype=np.int64)
    count = 0
    for e in range(edges.shape[0]):
        a, b = edges[e, 0], edges[e, 1]
        free = not (blocked[a] or blocked[b])
        if free:
            for i in range(starts[a], starts[a + 1]):
                free = free and not blocked[neighbours[i]]
            for i in range(starts[b], starts[b + 1]):
                free = free and not blocked[neighbours[i]]
        if free:
            for i in range(starts[a], starts[a + 1]):
                blocked[neighbours[i]] = True
            for i in range(starts[b], starts[b + 1]):
                blocked[neighbours[i]] = True
            out[count] = e
            count += 1
            if count == wanted:
                break
    return out[:count]


def _collapse(
    points: Floats, faces: Ints, packed: Floats, sizes: Floats, vertices: int, cell: float
) -> tuple[Floats, Ints]:
    """Collapse the edges that are shortest for their place until ``vertices`` remain; topology never changes."""
    size = _size_at(points, packed, sizes)
    for _ in range(60):
        if len(points) <= vertices:
            break
        edges = edges_of(faces)
        near = adjacency(edges, len(points))
        one, two = edges[:, 0], edges[:, 1]
        # Link condition: the two ends share exactly the two vertices opposite to the edge.
        common = np.asarray((near @ near)[one, two]).ravel()
        cost = np.linalg.norm(points[one] - points[two], axis=1) / (size[one] + size[two])
        legal = np.flatnonzero(common == 2)
        # Only the shorter half of the edges in one sweep, so that a long edge hardly ever goes before a short one.
        order = legal[np.argsort(cost[legal], kind="stable")][: max(1, len(legal) // 2)]
        chosen = order[
            _independent(
                edges[order], near.indptr.astype(np.int64), near.indices.astype(np.int64), len(points) - vertices
            )
        ]
        target = np.arange(len(points))
        target[two[chosen]] = one[chosen]
        points, size = points.copy(), size.copy()
        points[one[chosen]] = project(0.5 * (points[one[chosen]] + points[two[chosen]]), packed, cell, steps=1)
        size[one[chosen]] = 0.5 * (size[one[chosen]] + size[two[chosen]])
        faces = target[faces]
        faces = faces[(faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])]
        used = np.zeros(len(points), dtype=bool)
        used[faces] = True
        points, size = points[used], size[used]
        faces = (np.cumsum(used) - 1)[faces]
    return points, faces


def _size_at(points: Floats, packed: Floats, sizes: Floats) -> Floats:
    """Blend the wanted sizes of the shapes around each point."""
    weight = np.zeros(len(points))
    total = np.zeros(len(points))
    for row, size in zip(packed, sizes, strict=True):
        d = np.maximum(field(points, row[None]), 0.0)
        w = np.exp(-d / (0.5 * row[8]))
        weight += w
        total += w * size
    return np.asarray(total / np.maximum(weight, 1e-300)).clip(sizes.min(), sizes.max())


def relax(points: Floats, faces: Ints, packed: Floats | None, cell: float, *, rounds: int = 5) -> Floats:
    """Even out the triangles along the surface: half way to the neighbours' mean, tangentially, then project."""
    near = adjacency(edges_of(faces), len(points))
    degree = np.asarray(near.sum(1)).ravel()
    for _ in range(rounds):
        normals = vertex_normals(points, faces)
        pull = near @ points / degree[:, None] - points
        pull -= np.einsum("ij,ij->i", pull, normals)[:, None] * normals
        points = points + 0.5 * pull
        if packed is not None:
            points = project(points, packed, cell, steps=1)
    return points
