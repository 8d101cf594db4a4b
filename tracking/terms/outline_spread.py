"""How far outlines lie from the template's, learned where meshes in correspondence are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial import cKDTree

from calibration.foundation.arrays import Floats, Ints
from calibration.geometry.meshes import vertex_normals
from tracking.quads.deformation import CageRig
from tracking.quads.oriented_quads import QuadPose

__all__ = ["outline_spread"]


def outline_spread(
    cage_rig: CageRig,
    template: Floats,
    faces: Ints,
    binding: Floats,
    poses: Sequence[QuadPose],
    meshes: Sequence[Floats],
    *,
    radius: float,
) -> Floats:
    """Return (V,) root mean square distance along the normal between posed template and meshes, mm.

    Args:
        cage_rig: quads and cage.
        template: (V, 3) rest positions, mm.
        faces: (F, 3).
        binding: (V, 4 Q + F_cage) coordinates.
        poses: quads fitted to each mesh.
        meshes: (V, 3) true vertices of each.
        radius: squares are averaged over vertices this near at rest, mm: a few meshes say little of one vertex.
    """
    squares = np.zeros(len(template))
    for pose, mesh in zip(poses, meshes, strict=True):
        carried = cage_rig.deform(binding, pose)
        normals = vertex_normals(carried, faces)
        squares += np.sum((carried - mesh) * normals, axis=1) ** 2 / len(poses)
    near = cKDTree(template).query_ball_point(template, radius)
    return np.asarray(np.sqrt([squares[ids].mean() for ids in near]))
