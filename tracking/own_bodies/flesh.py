"""The inside of a closed mesh as small cubes: how thick the body is where, and which bone each place hangs on.

Straight-line distance would hang a hand on the thigh beside it; ways through the flesh do not (Dionne and de Lasa 2013,
"Geodesic voxel binding").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import binary_fill_holes, distance_transform_edt
from scipy.sparse import coo_matrix, csr_matrix
from scipy.sparse.csgraph import dijkstra

from calibration.foundation.arrays import Bools, Floats, Ints

__all__ = ["Flesh", "on_skin", "piece_distances"]

ACROSS = 150
"""Cubes along the longest side of the mesh, about."""
_STEPS = np.array([(i, j, k) for i in (-1, 0, 1) for j in (-1, 0, 1) for k in (-1, 0, 1) if (i, j, k) > (0, 0, 0)])


@dataclass(frozen=True, eq=False)
class Flesh:
    """The cubes inside a mesh, those that its skin passes through included.

    Attributes:
        low: (3,) corner of the grid, mm. side: of a cube, mm.
        number: (X, Y, Z) index of each cube of flesh, -1 elsewhere.
        middles: (N, 3) of the cubes of flesh, mm.
        depth: (N,) distance of the middles from the cubes of the skin, mm; 0 in those.
        vertices: (V, 3) the mesh. cube_of_vertex: (V,) the cube each vertex lies in.
        graph: (N, N) lengths of the ways between neighbouring cubes.
    """

    low: Floats
    side: float
    number: Ints
    middles: Floats
    depth: Floats
    vertices: Floats
    cube_of_vertex: Ints
    graph: csr_matrix

    @classmethod
    def of(cls, vertices: Floats, faces: Ints) -> Flesh:
        """Cut the inside of a closed mesh into cubes."""
        side = float(np.ptp(vertices, axis=0).max()) / ACROSS
        low = vertices.min(axis=0) - 1.5 * side
        counts = np.ceil((vertices.max(axis=0) + 1.5 * side - low) / side).astype(int)
        skin = np.zeros(tuple(counts), np.bool_)
        skin[tuple(_cells(on_skin(vertices, faces, 0.5 * side), low, side).T)] = True
        held: Bools = binary_fill_holes(skin)
        number = np.full(tuple(counts), -1, np.int64)
        number[held] = np.arange(int(held.sum()))
        depth = side * distance_transform_edt(held & ~skin)[held]
        middles = low + side * (np.argwhere(held) + 0.5)
        cubes = number[tuple(_cells(vertices, low, side).T)]
        return cls(low, side, number, middles, depth, vertices, cubes, _graph(number, side))

    def cubes(self, points: Floats) -> Ints:
        """Return the cube (P,) of each point, the nearest one for points outside."""
        cells = np.clip(_cells(points, self.low, self.side), 0, np.array(self.number.shape) - 1)
        found = self.number[tuple(cells.T)]
        for index in np.flatnonzero(found < 0):
            found[index] = int(np.argmin(np.sum((self.middles - points[index]) ** 2, axis=1)))
        return np.asarray(found, np.int64)

    def owners(self, starts: Floats, ends: Floats) -> tuple[Ints, Floats]:
        """Which of S straight pieces each cube of flesh hangs on, (N,), and how long the way to it is, (N,) mm.

        Args:
            starts, ends: (S, 3) ends of the pieces, mm.
        """
        seeds, owner = [], []
        for piece, (start, end) in enumerate(zip(starts, ends, strict=True)):
            count = max(2, int(np.linalg.norm(end - start) / (0.5 * self.side)) + 1)
            at = start + np.linspace(0.0, 1.0, count)[:, None] * (end - start)
            cubes = np.unique(self.cubes(at))
            seeds.append(cubes)
            owner.append(np.full(len(cubes), piece))
        flat, whose = np.concatenate(seeds), np.concatenate(owner)
        first, where = np.unique(flat, return_index=True)
        # Where two pieces pass through one cube, the nearer line has it.
        whose = whose[where]
        double = [cube for cube in first if np.sum(flat == cube) > 1]
        for cube in double:
            gap = piece_distances(self.middles[cube][None], starts, ends)[0]
            whose[np.searchsorted(first, cube)] = int(np.argmin(gap))
        away, _, source = dijkstra(self.graph, directed=False, indices=first, min_only=True, return_predecessors=True)
        piece_of = np.full(len(self.middles), -1, np.int64)
        piece_of[first] = whose
        reached = source >= 0
        result = np.full(len(self.middles), -1, np.int64)
        result[reached] = piece_of[source[reached]]
        lost = ~reached
        if lost.any():
            gap = piece_distances(self.middles[lost], starts, ends)
            result[lost], away[lost] = np.argmin(gap, axis=1), gap.min(axis=1)
        return result, away

    def vertex_owners(self, starts: Floats, ends: Floats) -> Ints:
        """Which of S straight pieces each vertex of the mesh hangs on, (V,)."""
        return self.owners(starts, ends)[0][self.cube_of_vertex]


def piece_distances(points: Floats, starts: Floats, ends: Floats) -> Floats:
    """Distance (P, S) of points from straight pieces, mm."""
    along = ends - starts
    length2 = np.maximum(np.sum(along**2, axis=1), 1e-12)
    share = np.clip(np.einsum("psi,si->ps", points[:, None] - starts[None], along) / length2, 0.0, 1.0)
    return np.asarray(np.linalg.norm(starts[None] + share[..., None] * along[None] - points[:, None], axis=2))


def _cells(points: Floats, low: Floats, side: float) -> Ints:
    return np.asarray(np.floor((points - low) / side), np.int64)


def on_skin(vertices: Floats, faces: Ints, step: float) -> Floats:
    """Points on all triangles, no further apart than ``step`` mm, vertices included."""
    points = [vertices]
    corner = vertices[faces]
    longest = np.linalg.norm(corner - np.roll(corner, 1, axis=1), axis=2).max(axis=1)
    cuts = np.minimum(np.ceil(longest / step).astype(int), 64)
    for cut in np.unique(cuts):
        if cut < 2:
            continue
        here = corner[cuts == cut]
        for i in range(cut + 1):
            for j in range(cut + 1 - i):
                weights = np.array([i, j, cut - i - j]) / cut
                points.append(np.einsum("k,fki->fi", weights, here))
    return np.concatenate(points)


def _graph(number: Ints, side: float) -> csr_matrix:
    rows, columns, lengths = [], [], []
    shape = np.array(number.shape)
    for step in _STEPS:
        here = tuple(slice(max(0, -s), shape[k] - max(0, s)) for k, s in enumerate(step))
        there = tuple(slice(max(0, s), shape[k] - max(0, -s)) for k, s in enumerate(step))
        both = (number[here] >= 0) & (number[there] >= 0)
        rows.append(number[here][both])
        columns.append(number[there][both])
        lengths.append(np.full(int(both.sum()), side * float(np.linalg.norm(step))))
    count = int(number.max()) + 1
    return coo_matrix(
        (np.concatenate(lengths), (np.concatenate(rows), np.concatenate(columns))), shape=(count, count)
    ).tocsr()
