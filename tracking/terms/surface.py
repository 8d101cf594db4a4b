"""The surface as data: a template against a visual hull or another mesh of the frame, both ways.

At each template vertex the surface's signed distance field is read, residual and direction (Duveau et al. 2012, eq. 4);
without a field the vertex is paired with the nearest surface sample of like normal. Two-sided, each surface sample is
also paired with the nearest template vertex of like normal, so that the template cannot shrink inside the hull. A hull
of few views is larger than the body: outlines are the better data, and this term is for comparison, for mesh sequences,
and where outlines are missing.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from calibration.foundation.arrays import Floats, Ints
from calibration.geometry.meshes import vertex_normals
from tracking.observations.surface import Surface
from tracking.terms.silhouette import Matches

__all__ = ["match_surface"]

ALIKE = 0.4
"""Cosine of the largest angle between the normals of a pair."""

NEIGHBOURS = 6
"""How many of the nearest samples are looked at for one of like normal."""


def match_surface(vertices: Floats, faces: Ints, surface: Surface, *, reach: float, one_sided: bool = False) -> Matches:
    """Pair a deformed template with a surface.

    Args:
        vertices: (V, 3) template, mm.
        faces: (F, 3).
        surface: of the frame.
        reach: pairs further apart than this are not made, mm.
        one_sided: True leaves out the pairs from surface to template.
    """
    normals = vertex_normals(vertices, faces)
    if surface.field is not None:
        distance, gradient = surface.field(vertices)
        # Where the field is flat (the middle of a limb, beyond the grid) it does not say which way to go.
        steep = np.linalg.norm(gradient, axis=1)
        vertex = np.flatnonzero((np.abs(distance) < reach) & (steep > 0.3))
        directions, residuals = gradient[vertex] / steep[vertex, None], distance[vertex]
    else:
        at = _nearest(surface.tree, surface.normals, vertices, normals, reach)
        vertex = np.flatnonzero(at >= 0)
        directions = surface.normals[at[vertex]]
        residuals = np.sum((vertices[vertex] - surface.points[at[vertex]]) * directions, axis=1)
    if not one_sided:
        back = _nearest(cKDTree(vertices), normals, surface.points, surface.normals, reach)
        theirs = np.flatnonzero(back >= 0)
        away = vertices[back[theirs]] - surface.points[theirs]
        residuals = np.concatenate([residuals, np.sum(away * surface.normals[theirs], axis=1)])
        directions = np.concatenate([directions, surface.normals[theirs]])
        vertex = np.concatenate([vertex, back[theirs]])
    edges = vertices[faces[:, 1]] - vertices[faces[:, 0]]
    # A vertex stands for its patch, as an outline sample for its stretch: the side of the patch.
    side = float(np.mean(np.linalg.norm(edges, axis=1)))
    return Matches(
        np.stack([vertex, vertex], axis=1),
        directions,
        residuals,
        np.full(len(vertex), side),
        np.zeros(len(vertex), np.int64),
    )


def _nearest(tree: cKDTree, normals: Floats, points: Floats, own: Floats, reach: float) -> Ints:
    """Index (N,) of the nearest tree point of like normal within reach; -1 where there is none."""
    distance, index = tree.query(points, k=min(NEIGHBOURS, tree.n), distance_upper_bound=reach)
    distance, index = np.reshape(distance, (len(points), -1)), np.reshape(index, (len(points), -1))
    near = np.isfinite(distance)
    safe = np.where(near, index, 0)
    alike = near & (np.einsum("nki,ni->nk", normals[safe], own) > ALIKE)
    first = np.argmax(alike, axis=1)
    rows = np.arange(len(points))
    return np.where(alike[rows, first], safe[rows, first], -1).astype(np.int64)
