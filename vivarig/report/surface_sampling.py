"""A coarse copy of a moving surface: some of its vertices, and triangles between them, that follow it in any frame."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from calibration.foundation.arrays import Floats, Ints

__all__ = ["coarse_surface"]


def coarse_surface(vertices: Floats, faces: NDArray[np.int32], count: int) -> tuple[Ints, Ints]:
    """Return which vertices (n,) to keep, ``count`` at most, and triangles (m, 3) between them.

    The kept ones are spread evenly (farthest point first); each other vertex belongs to the one that is nearest along
    the surface, and a triangle whose corners belong to three of them makes one of theirs.
    """
    if len(vertices) <= count:
        return np.arange(len(vertices)), np.asarray(faces, dtype=np.int64)
    kept = _spread(vertices, count)
    ends = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    lengths = np.linalg.norm(vertices[ends[:, 0]] - vertices[ends[:, 1]], axis=1)
    edges = coo_array((np.maximum(lengths, 1e-9), (ends[:, 0], ends[:, 1])), shape=(len(vertices),) * 2).tocsr()
    _, _, source = dijkstra(edges, directed=False, indices=kept, min_only=True, return_predecessors=True)
    number = np.full(len(vertices) + 1, -1)
    number[kept] = np.arange(len(kept))
    owner = number[source]  # -9999, a vertex of no face, gives -1
    corners = owner[faces]
    whole = (corners >= 0).all(axis=1)
    whole &= (corners[:, 0] != corners[:, 1]) & (corners[:, 1] != corners[:, 2]) & (corners[:, 2] != corners[:, 0])
    turned = np.array([np.roll(row, -int(row.argmin())) for row in corners[whole]]).reshape(-1, 3)
    return kept, np.unique(turned, axis=0).astype(np.int64)


def _spread(points: Floats, count: int) -> Ints:
    chosen = np.empty(count, np.int64)
    chosen[0] = int(np.argmax(np.linalg.norm(points - points.mean(axis=0), axis=1)))
    away = np.full(len(points), np.inf)
    for k in range(1, count):
        away = np.minimum(away, np.square(points - points[chosen[k - 1]]).sum(axis=1))
        chosen[k] = int(away.argmax())
    return chosen
