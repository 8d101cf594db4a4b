"""Fit a prior to a subject of other proportions, or to other quads on the same skeleton, without training again.

What a prior has learned of joint angles holds for a longer leg too; the positions of the quads do not. The training
poses kept in the prior as segment rotations are carried again, by the subject's own skeleton and quads, and the
weights of the mean are solved anew; latents and kernel width stay, its height and noise follow the variance of the
new pose vectors.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import rotation_from_quaternion
from tracking.priors.files import builtin_prior
from tracking.priors.gplvm import (
    BACK_TOLERANCE,
    BackMap,
    GplvmPrior,
    Kernel,
    exact_gplvm,
    fitc_gplvm,
    squared_distances,
)
from tracking.priors.training_poses import TrainingPoses, poses_from_skeleton
from tracking.quads.attachment import QuadAttachment, posed_by_rotations
from tracking.quads.oriented_quads import QuadPose
from tracking.quads.skin_following import builtin_following

__all__ = ["builtin_prior_for", "prior_for_subject"]

#: Most poses that the map from poses to latents is fitted to.
BACK_CENTRES = 200


def builtin_prior_for(attachment: QuadAttachment) -> GplvmPrior:
    """Return the built-in prior of a body (mouse, rat or human), for these quads on this skeleton of it."""
    return prior_for_subject(builtin_prior(attachment.skeleton.name), attachment)


def prior_for_subject(prior: GplvmPrior, attachment: QuadAttachment) -> GplvmPrior:
    """Return the prior of a subject whose skeleton has other lengths, or that has other quads.

    Args:
        prior: a prior that holds all its training poses as segment rotations (the built-in ones do).
        attachment: the subject's quads on the subject's skeleton, which has the joints of the prior's.
    """
    rig, skeleton = attachment.rig, attachment.skeleton
    segments = prior.training_segments
    if segments is None or len(segments) != len(prior.training_latents):
        raise InputError(
            f"prior of rig '{prior.rig_name}': it cannot follow another subject (it does not hold the segment "
            "rotations of all its training poses); train it on the subject's own rig with `vivarig train`"
        )
    if segments.shape[1] != len(skeleton.joints):
        raise InputError(
            f"prior of rig '{prior.rig_name}': it was trained on {segments.shape[1]} segments, "
            f"skeleton '{skeleton.name}' has {len(skeleton.joints)}"
        )
    posed = _on_skin(
        attachment,
        poses_from_skeleton(attachment, posed_by_rotations(skeleton, rotation_from_quaternion(segments)), ""),
    )
    chart = posed.chart()
    poses = posed.vectors(chart)
    louder = _power(poses) / _power(prior.training_poses)
    kernel = Kernel(prior.kernel.alpha * louder, prior.kernel.gamma, prior.kernel.noise * louder)
    latents = prior.training_latents
    back_map = _fitted_back_map(poses, latents)
    if prior.centres is latents:
        rebuilt = exact_gplvm(latents, poses, kernel, back_map, chart, rig_name=rig.name, quad_names=rig.quad_names)
    else:
        rebuilt = fitc_gplvm(
            latents,
            poses,
            prior.centres,
            kernel,
            back_map,
            chart,
            rig_name=rig.name,
            quad_names=rig.quad_names,
            keep=None,
        )
    return replace(rebuilt, training_segments=segments, training_roots=posed.rotations[:, rig.root])


def _on_skin(attachment: QuadAttachment, poses: TrainingPoses) -> TrainingPoses:
    """Return carried poses where the skin has them, if that is known of the body and its quads."""
    following = builtin_following(attachment.skeleton.name)
    if following is None or following.quad_names != attachment.rig.quad_names or poses.segments is None:
        return poses
    quads = QuadPose(poses.rotations, poses.centres)
    laid = following.applied(attachment, rotation_from_quaternion(poses.segments), quads)
    return replace(poses, rotations=laid.rotations, centres=laid.centres)


def _power(poses: Floats) -> float:
    return float(np.mean(np.var(poses, axis=0)))


def _fitted_back_map(poses: Floats, latents: Floats) -> BackMap:
    """A map from poses to latents as training makes it: width of the median distance, weak directions left out."""
    if len(poses) > BACK_CENTRES:
        spread = np.linspace(0, len(poses) - 1, BACK_CENTRES).round().astype(np.int64)
        poses, latents = poses[spread], latents[spread]
    squared = squared_distances(poses, poses)
    gamma = 1.0 / max(float(np.median(squared[np.triu_indices(len(poses), 1)])), 1e-12)
    weights = np.linalg.lstsq(np.exp(-0.5 * gamma * squared), latents, rcond=BACK_TOLERANCE)[0]
    return BackMap(poses, np.asarray(weights, float), gamma)
