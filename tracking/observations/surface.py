"""Samples of one frame's surface, a visual hull or any closed mesh, for fitting a template to it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial import cKDTree

from calibration.foundation.arrays import Floats, Ints
from calibration.geometry.meshes import vertex_normals
from tracking.observations.distance_field import DistanceField

__all__ = ["Surface"]


@dataclass(frozen=True, eq=False)
class Surface:
    """Samples of one frame's surface.

    Attributes:
        points: (N, 3) mm.
        normals: (N, 3) unit outward normals.
        field: signed distance to it, or None.
    """

    points: Floats
    normals: Floats
    field: DistanceField | None = None

    @classmethod
    def of_mesh(cls, vertices: Floats, faces: Ints, *, samples: int = 1500, voxel: float | None = None) -> Surface:
        """Take about this many vertices of a closed mesh, evenly by index; with ``voxel`` (mm) its distance field."""
        chosen = np.unique(np.linspace(0, len(vertices) - 1, min(samples, len(vertices))).astype(int))
        field = None if voxel is None else DistanceField.of_mesh(vertices, faces, voxel)
        return cls(np.asarray(vertices, float)[chosen], vertex_normals(vertices, faces)[chosen], field)

    @cached_property
    def tree(self) -> cKDTree:
        """The points, ready for nearest-neighbour search."""
        return cKDTree(self.points)
