"""How well the joints of a skeleton fitted to a tracked surface are known: their sigma and their trust.

People of other builds, in motions the prior has not seen, disagree with surface and skeleton in different ways. So how
far a joint stands from where the surface carries it tells an error better than the springs do, which know of no wrong
model.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.trust import Trust
from skeleton.bodies.marker_sets import LANDMARK, MarkerSet
from skeleton.inverse_kinematics.fits import REASONS, TRUSTED, SkeletonFit
from skeleton.tree.joint_tree import Skeleton
from tracking.sequence.tracked_points import TrackedLimbs

__all__ = ["torn_from_surface", "trust_by_joint", "with_model_error"]

#: Shares of what a joint's sigma is made of, beside the doubt about its limb: of the springs' own sigma; of how far the
#: joint stands from where the surface carries it, in this frame and (root mean square) over the frames fitted together.
#: People's joints are held nearer to the surface's (`CARRIED` of `tracking.sequence.tracked_points`), and what is left
#: between them counts for more. Chosen with the strangers and eight people of `benchmarks.other_people` in sight.
SPRING_SIGMA = 0.1
TORN_NOW, TORN_OFTEN = 0.26, 0.40
HELD_NEARER = {"human": 1.5}
#: What is known beside them of parts of the body: by how much those shares are too large where bones lie near the skin
#: that tells them; and what is missed where surface and skeleton err alike, as a share of the skeleton's height: hips
#: and pelvis lie deep in flesh, a hand slides along its outline. Chosen with six people and two strangers in sight.
NEAR_THE_SKIN = {"human": (0.84, ("neck", "head", "shoulder"))}
MISSED = {"human": {"pelvis": 0.0014, "hip": 0.0023, "wrist": 0.0017}}
#: Views that those shares are for, and the power with which what they tell of the error falls with the number of views:
#: how far skeleton and surface part is a matter of the model, and hardly changes with more views.
USUAL_VIEWS, BY_VIEWS = 4.0, 0.25
#: Share of the springs' sigma where the surface carries no joints.
SPRINGS_ALONE = 0.6
#: A joint further than this from where the surface carries it is doubtful, as a share of the skeleton's height.
TORN = {"human": 0.022}


def torn_from_surface(fit: SkeletonFit, markers: MarkerSet, body: Skeleton) -> Floats | None:
    """(T, J) how far each joint stands from where the surface carries it, mm; None if it carries none.

    A joint that it does not carry has the frame's mean; a frame that was not tracked NaN.
    """
    torn = np.full((len(fit.trust), len(body.joint_names)), np.nan)
    for index, name in enumerate(fit.marker_names):
        if name.startswith(LANDMARK):
            joint = body.joint_names.index(markers.segments[markers.names.index(name)])
            torn[:, joint] = np.fmax(torn[:, joint], fit.residuals[:, index])
    carried = np.isfinite(torn).any(axis=0)
    if not carried.any():
        return None
    torn[:, ~carried] = torn[:, carried].mean(axis=1, keepdims=True)
    return torn


def with_model_error(fit: SkeletonFit, limbs: TrackedLimbs | None, torn: Floats | None, body: Skeleton) -> SkeletonFit:
    """Return the fit with what springs cannot know in its sigma: where skeleton and surface part, doubtful limbs."""
    if limbs is None:
        return fit
    if torn is None:
        own = (SPRINGS_ALONE * fit.sigma) ** 2
    else:
        share, missed = _known_of_parts(body)
        share = share * HELD_NEARER.get(body.name, 1.0)
        apart = TORN_NOW**2 * np.nan_to_num(torn) ** 2 + TORN_OFTEN**2 * np.nanmean(torn**2, axis=0)
        apart = share**2 * apart + missed**2
        views = np.clip(np.nan_to_num(limbs.views, nan=USUAL_VIEWS), 1.0, None)
        own = (SPRING_SIGMA * fit.sigma) ** 2 + apart * ((USUAL_VIEWS / views) ** (2.0 * BY_VIEWS))[:, None]
    return replace(fit, sigma=np.sqrt(own + limbs.joint_doubt**2))


def _known_of_parts(body: Skeleton) -> tuple[Floats, Floats]:
    """(J,) shares of what surface and skeleton part by, and (J,) what is missed beside it, mm."""
    less, near = NEAR_THE_SKIN.get(body.name, (1.0, ()))
    missed = MISSED.get(body.name, {})
    share = np.array([less if name.endswith(near) else 1.0 for name in body.joint_names])
    beside = [sum(part for end, part in missed.items() if name.endswith(end)) for name in body.joint_names]
    return share, np.array(beside, float) * _height(body)


def _height(body: Skeleton) -> float:
    return float(np.ptp(body.forward(body.rest()).positions[0], axis=0).max())


def trust_by_joint(
    fit: SkeletonFit, body: Skeleton, limbs: TrackedLimbs | None, torn: Floats | None
) -> dict[str, Ints]:
    """Trust of limbs and joints, for the file; a doubt of the skeleton's own is one about all joints."""
    if limbs is None:
        return {}
    own = np.where(fit.reason == len(REASONS) - 1, TRUSTED, fit.trust)
    joint = np.maximum(limbs.joint_trust, own[:, None])
    if torn is not None:
        away = torn > TORN.get(body.name, np.inf) * _height(body)
        torn_now = away.copy()  # what is torn in one frame is not right in those beside it
        away[1:] |= torn_now[:-1]
        away[:-1] |= torn_now[1:]
        joint[away] = np.maximum(joint[away], int(Trust.DOUBTFUL))
    return {
        "limb_trust": limbs.trust.astype(np.uint8),
        "limb_reason": limbs.reason.astype(np.uint8),
        "joint_trust": joint.astype(np.uint8),
    }
