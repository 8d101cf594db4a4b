"""Signed distance to a closed surface on a grid: interpolated at any point, with its gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import map_coordinates
from scipy.spatial import cKDTree

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from calibration.geometry.meshes import vertex_normals

__all__ = ["DistanceField"]

PAD = 6
"""Voxels around the surface."""
LARGEST = 2_000_000
"""Most voxels of a field; a finer one is not worth its memory."""


@dataclass(frozen=True, eq=False)
class DistanceField:
    """Signed distances on a grid, negative inside.

    Attributes:
        origin: (3,) place of the first voxel's centre, mm.
        voxel: their spacing, mm.
        values: (X, Y, Z) mm.
    """

    origin: Floats
    voxel: float
    values: Floats

    @classmethod
    def of_mesh(cls, vertices: Floats, faces: Ints, voxel: float) -> DistanceField:
        """Sample the distance to a closed mesh whose vertices lie about as close as the voxels.

        A voxel is inside where it lies behind the nearest vertex's tangent plane; near the surface its distance is
        that from this plane, since vertices have gaps between them.
        """
        vertices = np.asarray(vertices, float)
        low = vertices.min(axis=0) - PAD * voxel
        shape = np.ceil((np.ptp(vertices, axis=0)) / voxel).astype(int) + 2 * PAD + 1
        if np.prod(shape) > LARGEST:
            raise InputError(f"distance field: {np.prod(shape)} voxels of {voxel:g} mm are too many; take larger ones")
        axes = [low[axis] + voxel * np.arange(shape[axis]) for axis in range(3)]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
        distance, near = cKDTree(vertices).query(points)
        along = np.einsum("ni,ni->n", points - vertices[near], vertex_normals(vertices, faces)[near])
        signed = np.where(distance < 2 * voxel, along, np.where(along < 0, -distance, distance))
        return cls(low, voxel, signed.reshape(shape))

    def __call__(self, points: Floats) -> tuple[Floats, Floats]:
        """Distance (N,) at points (N, 3) and its gradient (N, 3); beyond the grid those of its edge."""
        at = (np.asarray(points, float) - self.origin) / self.voxel
        half = 0.5
        value = self._at(at)
        gradient = np.stack(
            [(self._at(at + half * axis) - self._at(at - half * axis)) / (2 * half * self.voxel) for axis in np.eye(3)],
            axis=1,
        )
        return value, gradient

    def _at(self, at: Floats) -> Floats:
        return np.asarray(map_coordinates(self.values, at.T, order=1, mode="nearest"))
