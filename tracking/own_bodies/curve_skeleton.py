"""The curve skeleton of a mesh: lines through the middle of its flesh from the deepest place to every extremity.

The extremity that lies furthest from the lines so far, by ways through the flesh, is joined to them by the way that
keeps to the middle, as long as it stands out of the body by more than the body is deep there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from calibration.foundation.arrays import Floats, Ints
from tracking.own_bodies.flesh import Flesh

__all__ = ["CurveSkeleton", "curve_skeleton"]

MOST_ENDS = 12
STANDS_OUT = 1.7
"""An extremity is longer than so many times the depth of the flesh where it begins,"""
AT_LEAST = 0.05
"""and this share of the mesh's diagonal besides."""


@dataclass(frozen=True, eq=False)
class CurveSkeleton:
    """Lines through a body.

    Attributes:
        paths: per extremity the places (N, 3) from where its line leaves the others outwards, mm; the first path begins
            at the root.
        joins: per path the index of the path it leaves, and of the place on that; (-1, 0) for those from the root.
        depths: per path the depth (N,) of the flesh along it, mm.
    """

    paths: tuple[Floats, ...]
    joins: tuple[tuple[int, int], ...]
    depths: tuple[Floats, ...]


def curve_skeleton(flesh: Flesh) -> CurveSkeleton:
    """Find the lines of a body."""
    size = float(np.linalg.norm(np.ptp(flesh.vertices, axis=0)))
    graph = flesh.graph.tocoo()
    # A way through the middle is cheap: its price falls with the square of the depth.
    shallow = 1.0 / (np.minimum(flesh.depth[graph.row], flesh.depth[graph.col]) + 0.3 * flesh.side) ** 2
    priced = csr_matrix((graph.data * shallow, (graph.row, graph.col)), shape=graph.shape)
    root = int(np.argmax(flesh.depth))
    paths: list[Ints] = []
    joins: list[tuple[int, int]] = []
    place = {root: (-1, 0)}
    while len(paths) < MOST_ENDS:
        on = np.array(sorted(place))
        away = dijkstra(flesh.graph, directed=False, indices=on, min_only=True)
        away[~np.isfinite(away)] = -1.0
        end = int(np.argmax(away))
        cost, before, source = dijkstra(priced, directed=False, indices=on, min_only=True, return_predecessors=True)
        if not np.isfinite(cost[end]):
            break
        start = int(source[end])
        if away[end] < STANDS_OUT * flesh.depth[start] + AT_LEAST * size:
            break
        way = [end]
        while way[-1] != start:
            way.append(int(before[way[-1]]))
        path = np.array(way[::-1])
        joins.append(place[start])
        for number, cube in enumerate(path[1:].tolist(), start=1):
            place[cube] = (len(paths), number)
        paths.append(path)
    return CurveSkeleton(
        tuple(_smooth(flesh.middles[path]) for path in paths),
        tuple(joins),
        tuple(flesh.depth[path] for path in paths),
    )


def _smooth(path: Floats) -> Floats:
    """Even out the steps of a path, its ends kept."""
    for _ in range(6):
        inner = 0.25 * path[:-2] + 0.5 * path[1:-1] + 0.25 * path[2:]
        path = np.concatenate([path[:1], inner, path[-1:]]) if len(path) > 2 else path
    return path
