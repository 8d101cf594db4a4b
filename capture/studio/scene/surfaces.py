"""The moving surface that the studio films: a closed triangle mesh over time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import trimesh
from numpy.typing import ArrayLike

from calibration.foundation.arrays import Floats, Ints, Singles, shaped
from calibration.foundation.compiled import compiled
from calibration.foundation.errors import InputError

__all__ = ["MovingSurface", "face_normal", "icosphere", "mesh_edges", "shading_normals"]


@compiled
def face_normal(vertices: Floats, a: int, b: int, c: int) -> tuple[float, float, float]:
    """Return the outward normal of the triangle of vertices a, b, c, as long as twice its area."""
    ux, uy, uz = (
        vertices[b, 0] - vertices[a, 0],
        vertices[b, 1] - vertices[a, 1],
        vertices[b, 2] - vertices[a, 2],
    )
    wx, wy, wz = (
        vertices[c, 0] - vertices[a, 0],
        vertices[c, 1] - vertices[a, 1],
        vertices[c, 2] - vertices[a, 2],
    )
    return uy * wz - uz * wy, uz * wx - ux * wz, ux * wy - uy * wx


@compiled
def shading_normals(vertices: Floats, faces: Ints) -> Floats:
    """Return unit normals (V, 3), faces weighted by area; zero where a vertex has no area."""
    normals = np.zeros_like(vertices)
    for f in range(faces.shape[0]):
        a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
        n0, n1, n2 = face_normal(vertices, a, b, c)
        for corner in (a, b, c):
            normals[corner, 0] += n0
            normals[corner, 1] += n1
            normals[corner, 2] += n2
    for v in range(vertices.shape[0]):
        length = np.sqrt(normals[v, 0] ** 2 + normals[v, 1] ** 2 + normals[v, 2] ** 2)
        if length > 0.0:
            normals[v] /= length
    return normals


def mesh_edges(faces: Ints) -> Ints:
    """Return (E, 4): two vertices and the two faces of every edge; face -1 where the mesh is open."""
    count = len(faces)
    pairs = np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
    owner = np.tile(np.arange(count), 3)
    order = np.lexsort((owner, pairs[:, 1], pairs[:, 0]))
    pairs, owner = pairs[order], owner[order]
    first = np.ones(len(pairs), dtype=np.bool_)
    first[1:] = (pairs[1:] != pairs[:-1]).any(axis=1)
    start = np.flatnonzero(first)
    shared = np.diff(np.append(start, len(pairs))) >= 2
    other = np.where(shared, owner[np.minimum(start + 1, len(owner) - 1)], -1)
    return np.column_stack([pairs[start], owner[start], other]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class MovingSurface:
    """A closed mesh at T equally spaced instants, its paint fixed to the skin.

    Attributes:
        frames: (T, V, 3) vertices, mm.
        faces: (F, 3) vertex indices, outward.
        rate_hz: instants per second.
        rest: (V, 3) vertices in the rest pose, mm: the coordinates of the skin's pattern.
        colours: (V, 3) reflectance of red, green, blue, 0 to 1.
    """

    frames: Singles | Floats
    faces: Ints
    rate_hz: float
    rest: Floats
    colours: Floats

    def __post_init__(self) -> None:
        if self.frames.ndim != 3 or self.frames.shape[2] != 3 or not len(self.frames):
            raise InputError(f"moving surface: frames must be (T, V, 3), got {self.frames.shape}")
        count = self.frames.shape[1]
        object.__setattr__(self, "rest", shaped(self.rest, (count, 3), "moving surface: rest"))
        object.__setattr__(self, "colours", shaped(self.colours, (count, 3), "moving surface: colours"))
        faces = np.ascontiguousarray(self.faces, dtype=np.int64)
        if faces.ndim != 2 or faces.shape[1] != 3 or (len(faces) and faces.max() >= count):
            raise InputError(f"moving surface: faces must be (F, 3) indices below {count}")
        object.__setattr__(self, "faces", faces)

    @classmethod
    def still(cls, vertices: ArrayLike, faces: ArrayLike, *, reflectance: float = 0.3) -> MovingSurface:
        """Wrap one mesh that does not move, painted evenly."""
        points = np.asarray(vertices, dtype=np.float64)
        return cls(points[None], np.asarray(faces), 1.0, points, np.full_like(points, reflectance))

    def __len__(self) -> int:
        return len(self.frames)

    @cached_property
    def edges(self) -> Ints:
        """(E, 4) as `mesh_edges` gives them."""
        return mesh_edges(self.faces)

    @cached_property
    def extent(self) -> float:
        """Largest side of the rest pose's box, mm: the scale of patterns and lamps."""
        return float(np.ptp(self.rest, axis=0).max())

    def at(self, frame: float) -> Floats:
        """Return the vertices (V, 3) at a frame number, between frames too (cubic, exact at whole frames)."""
        last = len(self.frames) - 1
        position = min(max(frame, 0.0), float(last))
        k = min(int(position), max(last - 1, 0))
        s = position - k
        if s == 0.0:
            return np.asarray(self.frames[k], dtype=np.float64)
        p1, p2 = self.frames[k].astype(np.float64), self.frames[k + 1].astype(np.float64)
        p0 = self.frames[k - 1].astype(np.float64) if k > 0 else 2.0 * p1 - p2
        p3 = self.frames[k + 2].astype(np.float64) if k + 2 <= last else 2.0 * p2 - p1
        # Catmull-Rom: passes through the frames with continuous velocity.
        result: Floats = p1 + 0.5 * s * (
            p2 - p0 + s * (2.0 * p0 - 5.0 * p1 + 4.0 * p2 - p3 + s * (3.0 * (p1 - p2) + p3 - p0))
        )
        return result


def icosphere(radius: float, centre: ArrayLike = (0.0, 0.0, 0.0), *, subdivisions: int = 3) -> tuple[Floats, Ints]:
    """Return vertices and outward faces of a sphere of 20 * 4^subdivisions triangles."""
    ball = trimesh.creation.icosphere(subdivisions=subdivisions, radius=radius)
    vertices = np.asarray(ball.vertices, dtype=np.float64) + np.asarray(centre, dtype=np.float64)
    return vertices, np.asarray(ball.faces, dtype=np.int64)
