"""Learn where a built-in body has its quads for its template to lie on its skin (`tracking.quads.skin_following`)::

python -m tracking.adapting.skin_following_search human
"""

from __future__ import annotations

import sys

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import rotation_from_quaternion, vector_from_rotation
from skeleton.actors.actor import build_actor
from skeleton.bodies import BODIES
from skeleton.tree.joint_tree import Pose
from tracking.fitting.point_fit import fit_to_points
from tracking.priors.files import builtin_prior
from tracking.quads.attachment import attach_posed_quads, carry_quads, posed_by_rotations
from tracking.quads.oriented_quads import QuadPose
from tracking.quads.skin_following import SkinFollowing, fit_following, following_path, save_following
from tracking.subjects.subject import builtin_subject

__all__ = ["learn_following"]

VERTICES = 700
"""Vertices of the template, about, that quads are fitted to the skin by."""
STEP = 5
"""Every how many of the prior's training poses are learned from."""


def learn_following(body: str, *, step: int = STEP) -> SkinFollowing:
    """Fit the quads of a built-in body to its skin in poses of its prior, and the function to what came out.

    Raises:
        InputError: the body's prior does not hold its training poses as segment rotations.
    """
    subject, actor, segments = builtin_subject(body), build_actor(body), builtin_prior(body).training_segments
    if segments is None:
        raise InputError(f"prior of '{body}' does not hold the segment rotations of its training poses")
    attachment = attach_posed_quads(subject.cage_rig.quads, subject.bones.skeleton, subject.bones.pose)
    poses = posed_by_rotations(attachment.skeleton, rotation_from_quaternion(segments[::step].astype(float)))
    carried = carry_quads(attachment, poses)
    every = max(1, len(subject.template.vertices) // VERTICES)
    binding = np.ascontiguousarray(subject.template.binding[::every])
    away: Floats = np.empty((len(poses), len(attachment.rig), 6))
    for index in range(len(poses)):
        skin = np.asarray(actor.skin(Pose(poses.positions[[index]], poses.rotations[[index]]))[0])[::every]
        start = QuadPose(carried.rotations[index], carried.centres[index])
        fitted = fit_to_points(subject.cage_rig, binding, skin, start, rigidity=2e-3, iterations=8, tolerance=0.3)
        away[index, :, :3] = vector_from_rotation(np.swapaxes(start.rotations, -1, -2) @ fitted.rotations)
        away[index, :, 3:] = np.einsum("qji,qj->qi", start.rotations, fitted.centres - start.centres)
    return fit_following(attachment, subject.bones.pose, poses.rotations, away)


def main() -> None:
    """Learn and write it for the bodies named on the command line."""
    for body in sys.argv[1:]:
        if body not in BODIES:
            raise SystemExit(f"error: unknown body '{body}'; there are {', '.join(BODIES)}")
        save_following(learn_following(body), following_path(body))


if __name__ == "__main__":
    main()
