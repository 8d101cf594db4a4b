"""The human prior of captured motion: which poses of the CMU database it is trained on, and how it is measured.

The hands of the database are bent by some 45 degrees against the forearm on average, walking people's too, each
subject's nearly alike: that is where its skeleton has its zero, not how people hold their hands. They are laid so that
they are straight on average (`straight_hands`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.geometry.rotation_kernels import mean_rotations
from calibration.geometry.transforms import rotation_from_quaternion
from skeleton.tree.joint_tree import Skeleton
from tracking.priors.cmu import COPIES, HELD_OUT, CmuTable
from tracking.priors.gplvm import GplvmPrior
from tracking.priors.gplvm_training import GplvmOptions, train_gplvm
from tracking.priors.motion_mapping import HUMAN_SEGMENTS, pose_from_motion
from tracking.priors.prior import fit_linear_prior
from tracking.priors.training_poses import (
    TrainingPoses,
    joined,
    mirrored,
    poses_from_skeleton,
    reconstruction_error,
)
from tracking.quads.attachment import QuadAttachment, posed_by_rotations

__all__ = [
    "WALKS",
    "captured_poses",
    "hands_zero",
    "held_out_poses",
    "held_out_walks",
    "straight_hands",
    "train_captured",
    "training_set",
]

#: Training poses, half of them mirror images; inducing points; latent dimensions.
POSES, INDUCING, LATENT_DIM, ITERATIONS = 2000, 250, 24, 100
#: Every fourth pose of the table (15 Hz) is looked at.
STEP = 4
#: Clips of the held-out walkers that are walks (the others of subject 35 are runs).
WALKS = frozenset(
    [f"07_{i:02d}" for i in range(1, 13)]
    + [f"08_{i:02d}" for i in range(1, 12)]
    + [f"35_{i:02d}" for i in (*range(1, 17), *range(28, 35))]
)
#: Poses that measure a prior: of all walks together, and of each held-out subject.
TEST_WALKS, TEST_EACH = 125, 10


@dataclass(frozen=True)
class _Error:
    """What a prior and principal components of its dimension lose of poses: mm and degrees."""

    prior: tuple[float, float]
    linear: tuple[float, float]

    def __str__(self) -> str:
        (mm, deg), (flat_mm, flat_deg) = self.prior, self.linear
        return f"{mm:.1f} mm, {deg:.1f} deg off (principal components {flat_mm:.1f} mm, {flat_deg:.1f} deg)"


def captured_poses(
    table: CmuTable, attachment: QuadAttachment, wanted: Callable[[str, str], bool], *, step: int = STEP
) -> TrainingPoses:
    """Carry the quads through every ``step``-th pose of the clips whose subject and name are wanted."""
    clips = []
    for clip, (subject, name) in enumerate(zip(table.subjects, table.clips, strict=True)):
        if wanted(subject, name):
            pose = pose_from_motion(table.motion(clip, step=step), attachment.skeleton, HUMAN_SEGMENTS)
            clips.append(poses_from_skeleton(attachment, pose, name))
    return joined(clips)


def hands_zero(poses: TrainingPoses, skeleton: Skeleton) -> Floats:
    """Return how the left hand is turned against its forearm on average, (3, 3), right hands mirrored."""
    rotations, flip = _segments(poses), np.diag([1.0, -1.0, 1.0])
    left, right = (_bend(rotations, skeleton, side) for side in ("left", "right"))
    return np.asarray(mean_rotations(np.concatenate([left, flip @ right @ flip])[:, None])[0])


def straight_hands(poses: TrainingPoses, attachment: QuadAttachment, zero: Floats) -> TrainingPoses:
    """Return the poses with the hands turned back by ``zero`` (3, 3), that of `hands_zero`."""
    rotations, flip, skeleton = _segments(poses), np.diag([1.0, -1.0, 1.0]), attachment.skeleton
    for side, turn in (("left", zero), ("right", flip @ zero @ flip)):
        hand = skeleton.index(f"{side}_wrist")
        rotations[:, hand] = rotations[:, hand] @ turn.T
    straight = poses_from_skeleton(attachment, posed_by_rotations(skeleton, rotations), "")
    return replace(straight, sources=poses.sources)


def _segments(poses: TrainingPoses) -> Floats:
    """Rotations (N, J, 3, 3) of the segments that carried the quads."""
    assert poses.segments is not None
    return rotation_from_quaternion(np.asarray(poses.segments, float))


def _bend(rotations: Floats, skeleton: Skeleton, side: str) -> Floats:
    """Rotation (N, 3, 3) of a hand against its forearm."""
    hand = skeleton.index(f"{side}_wrist")
    return np.asarray(np.swapaxes(rotations[:, int(skeleton.parents[hand])], -1, -2) @ rotations[:, hand])


def training_set(every: TrainingPoses, attachment: QuadAttachment, count: int) -> TrainingPoses:
    """Draw the poses to train on, half of them mirror images of the others.

    Drawn as they come, what is common is dense: k-means representatives, most of which stand for what is rare, show
    held-out walks a third worse and all held-out motions a seventh better, and a tracker starts worse from them.
    """
    drawn = np.random.default_rng(1).choice(len(every), min(count // 2, len(every)), replace=False)
    chosen = every.subset(np.sort(drawn))
    return joined([chosen, mirrored(attachment, chosen)])


def held_out_walks(table: CmuTable, attachment: QuadAttachment) -> TrainingPoses:
    """Poses spread over the walks of the held-out walkers."""
    walks = captured_poses(table, attachment, lambda _, clip: clip in WALKS, step=1)
    return walks.subset(np.linspace(0, len(walks) - 1, TEST_WALKS).astype(np.int64))


def held_out_poses(table: CmuTable, attachment: QuadAttachment) -> TrainingPoses:
    """Poses spread over all that each held-out subject does, as many of each."""
    found = []
    for number in HELD_OUT:
        own = captured_poses(table, attachment, lambda subject, _, number=number: subject == number)  # type: ignore[misc]
        found.append(own.subset(np.linspace(0, len(own) - 1, TEST_EACH).astype(np.int64)))
    return joined(found)


def train_captured(table: CmuTable, attachment: QuadAttachment) -> tuple[GplvmPrior, str]:
    """Train the human prior on captured motion; returns it with one line on its quality."""
    left_out = {*HELD_OUT, *COPIES}
    every = captured_poses(table, attachment, lambda subject, _: subject not in left_out)
    zero = hands_zero(every, attachment.skeleton)
    chosen = training_set(straight_hands(every, attachment, zero), attachment, POSES)
    chart = chosen.chart()
    vectors = chosen.vectors(chart)
    rig = attachment.rig
    options = GplvmOptions(
        latent_dim=LATENT_DIM, restarts=1, iterations=ITERATIONS, inducing=INDUCING, keep=None, back_centres=200
    )
    trained = train_gplvm(
        vectors, chart, options, np.random.default_rng(0), rig_name=rig.name, quad_names=rig.quad_names
    )
    prior = replace(trained.prior, training_segments=chosen.segments)
    flat = fit_linear_prior(vectors, LATENT_DIM, chart, rig_name=rig.name, quad_names=rig.quad_names)

    def lost(poses: TrainingPoses) -> _Error:
        poses = straight_hands(poses, attachment, zero)
        both = [reconstruction_error(one, poses) for one in (prior, flat)]
        return _Error(*((error.centre_mm, error.rotation_deg) for error in both))

    quality = (
        f"{rig.name}: {len(chosen)} of {2 * len(every)} poses, {len(rig)} quads, {LATENT_DIM} dimensions, "
        f"{INDUCING} inducing points, log-likelihood {trained.report.log_likelihood:.0f}; held-out walkers: quads "
        f"{lost(held_out_walks(table, attachment))}; held-out subjects, all motions: "
        f"{lost(held_out_poses(table, attachment))}"
    )
    return prior, quality
