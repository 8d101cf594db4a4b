"""The 256 cases of marching cubes, derived instead of copied, so that the surface is closed by construction.

A cell has 8 corners (corner ``c`` lies at x = c & 1, y = c >> 1 & 1, z = c >> 2) and 12 edges. Where the field
changes sign along an edge the surface has a vertex. On each face of the cell the vertices are joined by
segments that cut the inside corners off one by one; this rule looks at the face alone, so the two cells that
share it agree and the surface has no cracks. The segments close into loops, each loop is one polygon.

A polygon is cut into triangles by diagonals that never lie in a face of the cell: such a diagonal could meet
its twin from the neighbouring cell, and four triangles at one edge are not a manifold.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["EDGE_AXIS", "EDGE_CORNER", "loop_table", "triangle_table"]

#: (12,) axis of each edge and the corner at its low end.
EDGE_AXIS: NDArray[np.int64] = np.repeat(np.arange(3), 4)
EDGE_CORNER: NDArray[np.int64] = np.array([c for axis in range(3) for c in range(8) if not c >> axis & 1])

MAX_TRIANGLES = 6
_EDGE_OF: dict[frozenset[int], int] = {
    frozenset((int(low), int(low) | 1 << int(axis))): edge
    for edge, (low, axis) in enumerate(zip(EDGE_CORNER, EDGE_AXIS, strict=True))
}
# Corners of the six faces, counter-clockwise seen from outside the cell.
_FACES = ((0, 4, 6, 2), (1, 3, 7, 5), (0, 1, 5, 4), (2, 6, 7, 3), (0, 2, 3, 1), (4, 5, 7, 6))
_EDGES_OF_FACE = tuple(
    frozenset(_EDGE_OF[frozenset((face[i], face[(i + 1) % 4]))] for i in range(4)) for face in _FACES
)


def _loops(case: int) -> list[list[int]]:
    """Return the closed polygons of one case as edge numbers, their normals pointing out of the inside."""
    follows: dict[int, int] = {}
    for face in _FACES:
        inside = [bool(case >> corner & 1) for corner in face]
        for start in range(4):
            if inside[start] and not inside[start - 1]:  # a run of inside corners begins here
                stop = start
                while inside[(stop + 1) % 4]:
                    stop += 1
                enter = _EDGE_OF[frozenset((face[start - 1], face[start]))]
                leave = _EDGE_OF[frozenset((face[stop % 4], face[(stop + 1) % 4]))]
                follows[enter] = leave
    loops = []
    while follows:
        first, following = follows.popitem()
        loop = [first]
        while following != first:
            loop.append(following)
            following = follows.pop(following)
        loops.append(loop)
    return loops


def _in_one_face(first: int, second: int) -> bool:
    return any(first in face and second in face for face in _EDGES_OF_FACE)


def _triangles(loop: list[int]) -> list[tuple[int, int, int]] | None:
    """Cut a polygon into triangles without a diagonal in a face of the cell; None if there is no such cut."""
    if len(loop) == 3:
        return [(loop[0], loop[1], loop[2])]
    # The triangle on the side (loop[0], loop[-1]) has its tip at some other vertex; both rests follow.
    for tip in range(1, len(loop) - 1):
        diagonals = [(loop[0], loop[tip])] if tip > 1 else []
        diagonals += [(loop[tip], loop[-1])] if tip < len(loop) - 2 else []
        if any(_in_one_face(first, second) for first, second in diagonals):
            continue
        left = _triangles(loop[: tip + 1]) if tip > 1 else []
        right = _triangles(loop[tip:]) if tip < len(loop) - 2 else []
        if left is not None and right is not None:
            return [(loop[0], loop[tip], loop[-1]), *left, *right]
    return None


@cache
def triangle_table() -> NDArray[np.int8]:
    """Return (256, 1 + 3 MAX_TRIANGLES): number of triangles, then their edges, normals towards the outside.

    Bit ``c`` of the case is set where the field at corner ``c`` is negative (inside).
    """
    table = np.full((256, 1 + 3 * MAX_TRIANGLES), -1, dtype=np.int8)
    for case in range(256):
        triangles: list[tuple[int, int, int]] = []
        for loop in _loops(case):
            cut = _triangles(loop)
            if cut is None:
                raise AssertionError(f"case {case}: polygon {loop} has no admissible triangulation")
            triangles += cut
        table[case, 0] = len(triangles)
        table[case, 1 : 1 + 3 * len(triangles)] = np.ravel(triangles)
    table.setflags(write=False)
    return table


@cache
def loop_table() -> NDArray[np.int8]:
    """Return (256, 17): number of polygons, their lengths (4), then their edges (12), normals towards the outside."""
    table = np.full((256, 17), -1, dtype=np.int8)
    for case in range(256):
        loops = _loops(case)
        edges = [edge for loop in loops for edge in loop]
        table[case, 0] = len(loops)
        table[case, 1 : 1 + len(loops)] = [len(loop) for loop in loops]
        table[case, 5 : 5 + len(edges)] = edges
    table.setflags(write=False)
    return table
