"""The protocol's joints on a body of other vertices.

"A joint is the mean of the listed vertices of the tracked template": rings of skin and cloth, not points inside. So
each listed vertex of the captured mesh is given the nearest vertex of the tracked surface that faces the same way, in
one frame; a joint is the mean of those, and what lies between it and the true one there goes along, turned as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from calibration.foundation.arrays import Floats, Ints
from calibration.geometry.meshes import vertex_normals
from calibration.geometry.transforms import fit_rigid
from tracking.quads.deformation import CageRig
from tracking.quads.oriented_quads import QuadPose
from tracking.quads.template import Template

__all__ = ["ListedJoints", "attach_joints"]

NEAREST = 60
"""Vertices among which one that faces the same way is looked for."""
FACING = 0.3
"""Least cosine between the normals."""


@dataclass(frozen=True, eq=False)
class ListedJoints:
    """Joints as means of vertices of a caged surface.

    Attributes:
        cage_rig: quads and cage.
        rows: per joint, (n, 4 Q + F) coordinates of its vertices.
        places: per joint, (n, 3) where they were when the joints were attached, mm.
        offsets: (J, 3) from their mean to the joint there, mm.
    """

    cage_rig: CageRig
    rows: tuple[Floats, ...]
    places: tuple[Floats, ...]
    offsets: Floats

    def carried(self, pose: QuadPose) -> Floats:
        """(J, 3) the joints in a pose, mm."""
        found = []
        for rows, places, offset in zip(self.rows, self.places, self.offsets, strict=True):
            now = self.cage_rig.deform(rows, pose)
            found.append(now.mean(axis=0) + fit_rigid(places, now).rotation @ offset)
        return np.array(found)


def attach_joints(
    cage_rig: CageRig, template: Template, pose: QuadPose, mesh: Floats, faces: Ints, joint_sets: Sequence[Ints]
) -> ListedJoints:
    """Give each listed vertex of a mesh (V, 3) its vertex of the template, which stands in a pose."""
    surface = cage_rig.deform(template.binding, pose)
    own, theirs = vertex_normals(surface, template.faces), vertex_normals(mesh, faces)
    tree = cKDTree(surface)
    every, places, offsets = [], [], []
    for ids in joint_sets:
        away, near = tree.query(mesh[ids], k=NEAREST)
        away[np.einsum("nki,ni->nk", own[near], theirs[ids]) < FACING] += 1e6
        chosen = np.take_along_axis(near, away.argmin(axis=1)[:, None], axis=1)[:, 0]
        every.append(template.binding[chosen])
        places.append(surface[chosen])
        offsets.append(mesh[ids].mean(axis=0) - surface[chosen].mean(axis=0))
    return ListedJoints(cage_rig, tuple(every), tuple(places), np.array(offsets))
