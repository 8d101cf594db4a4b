"""A subject that knows its own poses: from meshes of it, vertex by vertex the same as its template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from tracking.fitting.mesh_keys import fit_key_poses
from tracking.priors.pose_chart import fit_pose_chart
from tracking.priors.prior import fit_linear_prior
from tracking.quads.deformation import resized
from tracking.subjects.subject import Subject, taught

__all__ = ["Taught", "teach"]

FEWEST = 3
"""Meshes without which there is no prior."""


@dataclass(frozen=True, eq=False)
class Taught:
    """A subject taught by meshes of it.

    Attributes:
        subject: with sizes of quads, spread of outlines and a linear prior of the poses.
        away: (N,) mean distance of each mesh's vertices from the template on its quads, mm.
    """

    subject: Subject
    away: Floats


def teach(subject: Subject, meshes: Sequence[Floats], *, latent: int) -> Taught:
    """Learn the poses of a subject from meshes of it.

    Args:
        subject: whose template has the meshes' vertices (made of one of them by `vivarig subject --mesh`).
        meshes: (V, 3) each, mm, z up; where they stand does not matter.
        latent: dimensions of the prior, less where there are fewer meshes.

    Raises:
        InputError: too few meshes, or they have other vertices than the template.
    """
    template = subject.template
    if len(meshes) < FEWEST:
        raise InputError(f"{len(meshes)} meshes are too few to learn poses from; give {FEWEST} and more")
    for number, mesh in enumerate(meshes):
        if mesh.shape != template.vertices.shape:
            raise InputError(
                f"mesh {number + 1} has {len(mesh)} vertices, the template of subject '{subject.name}' "
                f"{len(template.vertices)}; make the subject of one of these meshes (`vivarig subject --mesh`). Meshes "
                "without common vertices: `vivarig track --meshes`, then `vivarig train --rig SUBJECT --recording`"
            )
    if subject.sizes is not None:  # taught before: these meshes teach it anew
        subject = replace(subject, cage_rig=resized(subject.cage_rig, 1.0 / subject.sizes), sizes=None)
    size = float(np.linalg.norm(np.ptp(template.vertices, axis=0)))
    known = fit_key_poses(subject.cage_rig, template, meshes, unit=size / 2000.0)
    away = [
        float(np.linalg.norm(known.cage_rig.deform(template.binding, pose) - mesh, axis=1).mean())
        for pose, mesh in zip(known.poses, meshes, strict=True)
    ]
    rig = known.cage_rig.quads
    rotations = np.array([pose.rotations for pose in known.poses])
    centres = np.array([pose.centres for pose in known.poses])
    chart = fit_pose_chart(rotations, centres, root=rig.root)
    vectors = chart.to_vector(rotations, centres)[1]
    prior = fit_linear_prior(vectors, min(latent, len(meshes) - 1), chart, rig_name=rig.name, quad_names=rig.quad_names)
    sizes = (rig.extents / subject.cage_rig.quads.extents)[:, [0, 2]]
    return Taught(taught(subject, sizes, known.spread, prior), np.array(away))
