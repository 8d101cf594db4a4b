"""Key poses of a subject from meshes of it in correspondence: quads, their sizes, and how far outlines stray."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.geometry.transforms import fit_rigid
from tracking.fitting.point_fit import fit_to_points
from tracking.fitting.quad_sizes import fit_sizes
from tracking.quads.deformation import CageRig
from tracking.quads.oriented_quads import QuadPose
from tracking.quads.template import Template
from tracking.terms.outline_spread import outline_spread

__all__ = ["KeyPoses", "fit_key_poses"]

POINTS = 1250
"""About so many vertices are fitted, in the end twice as many."""
RIGIDITY, LAST_RIGIDITY = 2e-3, 2e-5
"""Weight of the as-rigid term of the key poses against one vertex: what the vertices leave open stays near rest."""
ROBUST, LAST_ROBUST = 8.0, 2.0
"""A vertex that cloth took further away than this pulls a key pose by its distance, not by the square; thousandths of
the size."""
NEAR = 35.0
"""The outlines' spread is averaged over this neighbourhood, thousandths of the size."""
SAME = 1e-3
"""A mesh that lies nearer to the template, thousandths of the size, is the template: it says nothing of the spread."""


@dataclass(frozen=True, eq=False)
class KeyPoses:
    """What meshes say of a subject.

    Attributes:
        cage_rig: its quads, on the same rest cage, with the sizes that the meshes have in common.
        poses: quads of each mesh.
        spread: (V,) how far outlines lie from the template's, 1 sigma, mm.
    """

    cage_rig: CageRig
    poses: list[QuadPose]
    spread: Floats


def fit_key_poses(
    cage_rig: CageRig,
    template: Template,
    meshes: Sequence[Floats],
    *,
    unit: float,
    start: QuadPose | None = None,
    way: Sequence[Floats] = (),
) -> KeyPoses:
    """Fit quads to meshes, and what they have in common.

    Args:
        cage_rig: quads and rest cage.
        template: the mesh bound to it.
        meshes: (V, 3) each, mm, vertex by vertex the template's.
        unit: one thousandth of the subject's size, mm.
        start: quads near the first mesh; None to lay the rest pose on it.
        way: meshes on the way from there to the first, where that is far.
    """
    every = max(1, len(template.vertices) // POINTS)
    binding = template.binding
    poses = _first_poses(cage_rig, binding, meshes, every, unit, start or _laid_on(cage_rig, template, meshes[0]), way)
    rows = np.ascontiguousarray(binding[::every])
    sized, poses = fit_sizes(
        cage_rig, rows, [mesh[::every] for mesh in meshes], poses, sigma=8.0 * unit, robust=6.0 * unit
    )
    every = max(1, every // 2)
    rows = np.ascontiguousarray(binding[::every])
    for robust in (ROBUST, LAST_ROBUST):
        poses = [
            fit_to_points(sized, rows, mesh[::every], pose, robust=robust * unit, rigidity=LAST_RIGIDITY, damping=1e-2)
            for mesh, pose in zip(meshes, poses, strict=True)
        ]
    apart = [float(np.abs(mesh - template.vertices).max()) > SAME * unit for mesh in meshes]
    others = [k for k in range(len(meshes)) if apart[k]] or list(range(len(meshes)))
    spread = outline_spread(
        sized,
        template.vertices,
        template.faces,
        binding,
        [poses[k] for k in others],
        [meshes[k] for k in others],
        radius=NEAR * unit,
    )
    return KeyPoses(sized, poses, spread)


def _first_poses(
    cage_rig: CageRig,
    binding: Floats,
    meshes: Sequence[Floats],
    every: int,
    unit: float,
    start: QuadPose,
    way: Sequence[Floats],
) -> list[QuadPose]:
    """Quads of each mesh, each from the one before, with the sizes at rest."""

    def fitted(mesh: Floats, begin: QuadPose, **options: float) -> QuadPose:
        return fit_to_points(
            cage_rig, binding[::every], mesh[::every], begin, iterations=30, rigidity=RIGIDITY, **options
        )

    def away(mesh: Floats, pose: QuadPose) -> float:
        return float(np.linalg.norm(cage_rig.deform(binding, pose) - mesh, axis=1).mean())

    pose = start
    for mesh in way:
        pose = fitted(mesh, pose)
    poses = []
    for mesh in meshes:
        # Large and small first steps end in different minima; of the two the nearer one is kept.
        bold = fitted(mesh, pose)
        bold = fitted(mesh, bold, robust=ROBUST * unit)
        wary = fitted(mesh, pose, robust=ROBUST * unit, damping=100.0)
        pose = min((bold, wary), key=lambda found, mesh=mesh: away(mesh, found))  # type: ignore[misc]
        poses.append(pose)
    return poses


def _laid_on(cage_rig: CageRig, template: Template, mesh: Floats) -> QuadPose:
    """The quads at rest, moved as a whole to where a mesh is."""
    rest = cage_rig.quads.rest
    move = fit_rigid(template.vertices, mesh)
    return QuadPose(move.rotation @ rest.rotations, rest.centres @ move.rotation.T + move.translation)
