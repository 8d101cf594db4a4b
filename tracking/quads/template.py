"""A template: a closed mesh bound to a cage, and the same surface with fewer vertices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from calibration.foundation.arrays import Floats, Ints
from capture.raycasting import open3d
from tracking.quads.cage import clearance
from tracking.quads.deformation import CageRig

__all__ = [
    "OUTLINE_VERTICES", "STEP_VERTICES", "Template", "bare", "body_unit", "bound", "coarse_anchored", "coarse_template",
    "thinned",
]  # fmt: skip

OUTLINE_VERTICES = 2500
"""Vertices of the template whose outlines are drawn."""
STEP_VERTICES = 1000
"""Vertices of the template of the solver's coarse steps."""


@dataclass(frozen=True, eq=False)
class Template:
    """A mesh bound to a cage.

    Attributes:
        vertices: (V, 3) rest positions, mm.
        faces: (F, 3).
        binding: (V, 4 Q + F_cage) Green coordinates.
        spread: (V,) how far a filmed outline lies from the template's there, 1 sigma, mm: loose cloth and bending
            joints depart from any cage, hands and feet do not. None where it is not known.
        flesh: how many of the vertices are the body's own; those after are of clothes. None where all are.
    """

    vertices: Floats
    faces: Ints
    binding: Floats
    spread: Floats | None = None
    flesh: int | None = None


def body_unit(template: Template) -> float:
    """One thousandth of a subject's size, mm: 1 mm for a person of 2 m, 0.08 mm for a mouse with its tail."""
    low, high = template.vertices.min(axis=0), template.vertices.max(axis=0)
    return float(np.linalg.norm(high - low)) / 2000.0


def bare(template: Template) -> Template:
    """Return a template without the clothes that it wears."""
    count = template.flesh
    if count is None:
        return template
    faces = template.faces[(template.faces < count).all(axis=1)]
    spread = None if template.spread is None else template.spread[:count]
    return Template(template.vertices[:count], faces, template.binding[:count], spread)


def coarse_template(cage_rig: CageRig, template: Template, *, vertices: int = OUTLINE_VERTICES) -> Template:
    """Return a template of the same surface with about this many vertices (or the same one, if it has no more)."""
    if len(template.vertices) <= vertices:
        return template
    return bound(cage_rig, template, *thinned(template.vertices, template.faces, vertices))


def bound(cage_rig: CageRig, template: Template, points: Floats, faces: Ints) -> Template:
    """Bind a thinned mesh of a template (V, 3), or return the template where its cage does not hold that."""
    depth = clearance(points, cage_rig.cage)[0]
    if depth.min() <= 0:  # the optimal point of a sharp edge may fall outside the cage: keep the full mesh then
        return template
    spread = None if template.spread is None else template.spread[cKDTree(template.vertices).query(points)[1]]
    return Template(points, faces, cage_rig.bind(points, what="template vertices"), spread)


def coarse_anchored(
    cage_rig: CageRig, template: Template, anchors: Floats, *, vertices: int = OUTLINE_VERTICES
) -> Template:
    """Return a template that hangs on anchors (V, 3) with about this many vertices, anchored as those nearby are."""
    if len(template.vertices) <= vertices:
        return template
    points, faces = thinned(template.vertices, template.faces, vertices)
    near = np.asarray(cKDTree(template.vertices).query(points)[1], np.int64)
    moved = points - (template.vertices - anchors)[near]
    outside = clearance(moved, cage_rig.cage)[0] <= 0.2 * clearance(anchors[near], cage_rig.cage)[0]
    moved[outside] = anchors[near[outside]]
    return Template(points, faces, cage_rig.bind_through(moved, points, what="anchors of the template"))


def thinned(points: Floats, faces: Ints, vertices: int) -> tuple[Floats, Ints]:
    """Return a closed mesh with about this many vertices, by quadric decimation; the same if it has no more."""
    if len(points) <= vertices:
        return points, faces
    library = open3d()
    mesh = library.geometry.TriangleMesh(
        library.utility.Vector3dVector(points), library.utility.Vector3iVector(faces.astype(np.int32))
    )
    simple = mesh.simplify_quadric_decimation(2 * vertices - 4)
    return np.asarray(simple.vertices, dtype=np.float64), np.asarray(simple.triangles, dtype=np.int64)
