"""Fit a prior to a subject of other proportions, or to other quads on the same skeleton, without training again.

What a prior has learned of joint angles holds for a longer leg too; the positions of the quads do not. The training
poses kept in the prior as segment rotations are carried again, by the subject's own skeleton and quads, and the
weights of the mean are solved anew; latents and kernel width stay, its height and noise follow the variance of the
new pose vectors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from calibration.foundation.arrays import Floats, SameNumbers
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import rotation_from_quaternion, rotation_from_vector
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
from tracking.priors.pose_chart import PoseChart, fit_pose_chart
from tracking.priors.training_poses import corner_scale
from tracking.quads.attachment import QuadAttachment, carried_centres, posed_by_rotations, quad_turns
from tracking.quads.skin_following import SkinFollowing, builtin_following

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
    known = _turned(prior, attachment.rig.quad_names, skeleton.name, _TurnedBy(attachment))
    positions = posed_by_rotations(skeleton, known.segments).positions
    centres = carried_centres(attachment, positions, known.turns)
    following = _following(skeleton.name, rig.quad_names)
    if following is not None:
        centres = centres + following.shift(rig, known.carried, known.shifts)
    chart = replace(known.chart, length_scale=corner_scale(rig))
    poses = chart.to_vector(known.rotations, centres, known.vectors)[1]
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
    return replace(rebuilt, training_segments=segments, training_roots=known.rotations[:, rig.root])


class _TurnedBy(SameNumbers):
    """An attachment, equal to others that turn their quads alike, whatever the lengths."""

    def __init__(self, attachment: QuadAttachment) -> None:
        self.attachment = attachment
        parents = np.asarray(attachment.skeleton.parents)
        super().__init__(attachment.rig.rotations, attachment.proximal, attachment.distal, attachment.share, parents)


@dataclass(frozen=True, eq=False)
class _Turned:
    """What of a prior's training poses is the same for all lengths of bones.

    Attributes:
        segments: (N, J, 3, 3) rotations of the skeleton's segments.
        turns: (N, Q, 3, 3) of the quads since rest.
        carried: (N, Q, 3, 3) rotations of the quads as the segments carry them.
        shifts: (N, Q, 3) how far the skin has them from there (`SkinFollowing.away`), mm; 0 where that is not known.
        rotations: (N, Q, 3, 3) of the quads where the skin has them.
        chart: mean rotations of these; its length scale is not the body's.
        vectors: (N, Q - 1, 3) the rotations in pose vectors.
    """

    segments: Floats
    turns: Floats
    carried: Floats
    shifts: Floats
    rotations: Floats
    chart: PoseChart
    vectors: Floats


@lru_cache(maxsize=1)
def _turned(prior: GplvmPrior, quad_names: tuple[str, ...], body: str, turned_by: _TurnedBy) -> _Turned:
    """Turn the segments and quads of an attachment as in a prior's poses: once for all shapes that a search tries."""
    attachment = turned_by.attachment
    assert prior.training_segments is not None
    segments = rotation_from_quaternion(prior.training_segments)
    turns = quad_turns(attachment, segments)
    carried = rotations = turns @ attachment.rig.rotations
    shifts = np.zeros(carried.shape[:-1])
    following = _following(body, quad_names)
    if following is not None:
        skin_turns, shifts = following.away(attachment, segments)
        rotations = carried @ rotation_from_vector(skin_turns)
    chart = fit_pose_chart(rotations, shifts, root=attachment.rig.root, length_scale=1.0)
    return _Turned(segments, turns, carried, shifts, rotations, chart, chart.turns(rotations))


def _following(body: str, quad_names: tuple[str, ...]) -> SkinFollowing | None:
    """Where the skin has the quads of a body, if that is known of it and of quads of these names."""
    following = builtin_following(body)
    return following if following is not None and following.quad_names == quad_names else None


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
