"""A mesh as it came made one closed surface: seams joined, crumbs dropped, small holes filled, triangles turned out."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import binary_fill_holes, gaussian_filter
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from skimage.measure import marching_cubes

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from tracking.own_bodies.flesh import on_skin
from tracking.subjects.mesh_files import require_closed

__all__ = ["Mended", "mended"]

CRUMB = 0.05
"""Parts whose bounding box has a diagonal below this share of the largest part's are eyes, teeth and noise: dropped."""
TOUCHING = 0.02
"""Parts whose skins come nearer than this share of the larger one's diagonal belong together."""
WRAP = 220
"""Cubes along the longest side of parts that are wrapped."""
MOST_FINS = 0.01
"""Share of edges with more than two triangles up to which they are cut out."""
SMALL_HOLE = 0.15
"""Longest way across a hole that is filled, as a share of the mesh's diagonal."""


@dataclass(frozen=True, eq=False)
class Mended:
    """A closed mesh.

    Attributes:
        vertices: (V, 3) mm. faces: (F, 3), turned outwards.
        kept: (V,) where each vertex stood in the mesh that came; -1 for the middle of a filled hole.
        notes: what was done, in words; empty where nothing was.
    """

    vertices: Floats
    faces: Ints
    kept: Ints
    notes: tuple[str, ...]


def mended(vertices: Floats, faces: Ints, what: str) -> Mended:
    """Close a mesh.

    Raises:
        InputError: it holds two bodies, a large hole, or edges with more than two faces; the place is named.
    """
    came = len(vertices)
    vertices, faces, notes = _one_body(vertices, faces, what)
    faces, fins = _without_fins(vertices, _without_doubles(faces), what)
    if fins:
        notes.append(f"{fins} edges with more than two triangles cut out")
    used, inverse = np.unique(faces, return_inverse=True)
    points, triangles = vertices[used], np.asarray(inverse.reshape(-1, 3), np.int64)
    kept = np.asarray(used, np.int64) if len(vertices) == came else np.full(len(used), -1)
    triangles = _turned_alike(triangles)
    points, triangles, holes = _filled(points, triangles, what)
    if holes:
        notes.append(f"{len(holes)} holes filled, the largest {max(holes):.1f} mm across")
    kept = np.concatenate([kept, np.full(len(points) - len(kept), -1)])
    return Mended(points, require_closed(points, triangles, what), kept, tuple(notes))


def _edges(faces: Ints) -> Ints:
    """(3 F, 2) directed edges."""
    return np.asarray(faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2))


def _parts(vertices: Floats, faces: Ints) -> list[Ints]:
    """Faces of each part that hangs together, the largest first."""
    ends = _edges(faces)
    graph = coo_matrix((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(vertices),) * 2)
    label = connected_components(graph, directed=False)[1][faces[:, 0]]
    parts = [faces[label == name] for name in np.unique(label)]
    return sorted(parts, key=lambda part: -_reach(vertices, part))


def _reach(vertices: Floats, part: Ints) -> float:
    return float(np.linalg.norm(np.ptp(vertices[part].reshape(-1, 3), axis=0)))


def _one_body(vertices: Floats, faces: Ints, what: str) -> tuple[Floats, Ints, list[str]]:
    """One part of those that came: crumbs dropped, parts that overlap wrapped by one skin."""
    first, *others = _parts(vertices, faces)
    size = _reach(vertices, first)
    large = [part for part in others if _reach(vertices, part) > CRUMB * size]
    notes = [f"{len(others) - len(large)} loose crumbs dropped"] if len(others) > len(large) else []
    if not large:
        return vertices, first, notes
    tree = cKDTree(vertices[np.unique(first)])
    for part in large:
        gap = float(np.min(tree.query(vertices[np.unique(part)])[0]))
        if gap > TOUCHING * size:
            middle = np.round(vertices[part].reshape(-1, 3).mean(axis=0), 1).tolist()
            raise InputError(
                f"{what}: holds two bodies, one of {size:.0f} mm and {gap:.0f} mm beside it one of "
                f"{_reach(vertices, part):.0f} mm around {middle} mm; give one body alone"
            )
    points, triangles = _wrapped(vertices, np.concatenate([first, *large]))
    notes.append(f"{1 + len(large)} parts that touch were wrapped by one skin of {len(points)} vertices")
    return points, triangles, notes


def _wrapped(vertices: Floats, faces: Ints) -> tuple[Floats, Ints]:
    """One skin around all parts: what cannot be reached from outside is body."""
    used = np.unique(faces)
    side = float(np.ptp(vertices[used], axis=0).max()) / WRAP
    low = vertices[used].min(axis=0) - 3 * side
    counts = np.ceil((vertices[used].max(axis=0) + 3 * side - low) / side).astype(int)
    solid = np.zeros(tuple(counts), np.bool_)
    solid[tuple(np.floor((on_skin(vertices, faces, 0.5 * side) - low) / side).astype(int).T)] = True
    field = gaussian_filter(binary_fill_holes(solid).astype(np.float32), 0.8)
    points, triangles, _, _ = marching_cubes(field, 0.6)
    points = low + side * (points.astype(np.float64) + 0.5)
    return _only_largest(points, np.asarray(triangles[:, ::-1], np.int64))


def _only_largest(vertices: Floats, faces: Ints) -> tuple[Floats, Ints]:
    return vertices, _parts(vertices, faces)[0]


def _without_doubles(faces: Ints) -> Ints:
    """Leave out triangles that stand twice in the same place."""
    first = np.unique(np.sort(faces, axis=1), axis=0, return_index=True)[1]
    return faces[np.sort(first)]


def _turned_alike(faces: Ints) -> Ints:
    """Turn triangles over so that neighbours run along their common edge in opposite ways."""
    beside: dict[tuple[int, int], list[int]] = defaultdict(list)
    for index, (a, b) in enumerate(np.sort(_edges(faces), axis=1).tolist()):
        beside[a, b].append(index // 3)
    rows = faces.tolist()
    done = [False] * len(rows)
    for start in range(len(rows)):
        if done[start]:
            continue
        done[start] = True
        queue = [start]
        while queue:
            face = rows[queue.pop()]
            for k in range(3):
                a, b = face[k], face[(k + 1) % 3]
                owners = beside[min(a, b), max(a, b)]
                for other in owners:
                    if done[other] or len(owners) != 2:
                        continue
                    theirs = rows[other]
                    if theirs[(theirs.index(a) + 1) % 3] == b:
                        rows[other] = theirs[::-1]
                    done[other] = True
                    queue.append(other)
    return np.array(rows, np.int64)


def _without_fins(vertices: Floats, faces: Ints, what: str) -> tuple[Ints, int]:
    """Cut out the triangles around edges that have more than two, leaving holes; and how many such edges there were."""
    count = 0
    for _ in range(20):
        edges, uses = np.unique(np.sort(_edges(faces), axis=1), axis=0, return_counts=True)
        fins = uses > 2
        if not fins.any():
            return faces, count
        count += int(fins.sum())
        if fins.sum() > MOST_FINS * len(edges):
            at = np.round(vertices[edges[fins]].mean(axis=(0, 1)), 1).tolist()
            raise InputError(
                f"{what}: {int(fins.sum())} edges have more than two triangles, around {at} mm; a body is one skin: "
                "remove inner walls and doubled sheets there (MeshLab: select non manifold edges)"
            )
        bad = np.unique(edges[fins])
        faces = faces[~np.isin(faces, bad).any(axis=1)]
        faces = _parts(vertices, faces)[0]
    raise InputError(f"{what}: edges with more than two triangles cannot be mended; remove inner walls first")


def _filled(vertices: Floats, faces: Ints, what: str) -> tuple[Floats, Ints, list[float]]:
    """Fill holes by a fan around their middle; refuse large ones."""
    edges = _edges(faces)
    have = {(a, b) for a, b in edges.tolist()}
    after: dict[int, list[int]] = defaultdict(list)
    for a, b in edges.tolist():
        if (b, a) not in have:
            after[b].append(a)  # the hole runs the other way round
    size = float(np.linalg.norm(np.ptp(vertices, axis=0)))
    points, triangles, widths = [vertices], [faces], []
    count = len(vertices)
    for start in sorted(after):
        while after[start]:
            loop = [start]
            while True:
                onward = after[loop[-1]]
                if not onward:
                    raise InputError(f"{what}: its rim at {np.round(vertices[loop[-1]], 1).tolist()} mm does not close")
                loop.append(onward.pop())
                if loop[-1] == start:
                    break
            ring = np.array(loop[:-1])
            across = float(np.linalg.norm(np.ptp(vertices[ring], axis=0)))
            if across > SMALL_HOLE * size:
                at = np.round(vertices[ring].mean(axis=0), 1).tolist()
                raise InputError(
                    f"{what}: has a hole {across:.0f} mm across at {at} mm, too large to be filled by guess; close it "
                    "(MeshLab: close holes), then try again"
                )
            widths.append(across)
            if len(ring) == 3:
                triangles.append(ring[None])
                continue
            points.append(vertices[ring].mean(axis=0)[None])
            triangles.append(np.stack([ring, np.roll(ring, -1), np.full(len(ring), count)], axis=1))
            count += 1
    return np.concatenate(points), np.concatenate(triangles), widths
