"""Samples of one frame's surface, a visual hull or any closed mesh, for fitting a template to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.spatial import cKDTree

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Floats, Ints
from calibration.geometry.meshes import vertex_normals
from capture.hull.implicit import hull_field, implicit_hull
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

    @classmethod
    def of_masks(
        cls, masks: Sequence[Bools], rig: Rig, *, samples: int = 1500, cells: int = 90, with_field: bool = True
    ) -> Surface | None:
        """Take the visual hull of one frame's silhouettes (H, W each) and its field; None where they have no hull.

        Args:
            masks: one per camera.
            rig: the cameras.
            samples: about how many vertices of the hull are kept.
            cells: of the field along the hull's longest side.
            with_field: False leaves the field out: samples alone.
        """
        hull = implicit_hull(masks, rig, score=False)
        if not len(hull.faces):
            return None
        surface = cls.of_mesh(hull.vertices, np.asarray(hull.faces, np.int64), samples=samples)
        if not with_field:
            return surface
        size = float(np.ptp(hull.vertices, axis=0).max())
        # A template that starts outside the hull finds its way in from a third of the hull's size.
        field = hull_field(masks, rig, voxel_mm=size / cells, margin_mm=size / 3)
        if field is None:
            return None
        return replace(surface, field=DistanceField(field.origin, field.spacing, field.values.astype(np.float64)))

    @property
    def nbytes(self) -> int:
        """Memory that the arrays take."""
        return self.points.nbytes + self.normals.nbytes + (0 if self.field is None else self.field.values.nbytes)

    @cached_property
    def tree(self) -> cKDTree:
        """The points, ready for nearest-neighbour search."""
        return cKDTree(self.points)
