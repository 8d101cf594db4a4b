"""Training poses of a quad rig from what a laboratory has: motion files, skeleton poses, markers or beads, key poses.

All roads lead through posed skeletons: a motion file turns the body's segments (`tracking.priors.motion_mapping`),
markers pull them through springs (`skeleton.inverse_kinematics.spring_ik`), and the quads ride on the segments
(`tracking.quads.attachment`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import quaternion_from_rotation, rotation_from_quaternion
from skeleton.bodies.marker_sets import MarkerSet
from skeleton.inverse_kinematics.fits import LOST
from skeleton.inverse_kinematics.scaling import scale_body
from skeleton.inverse_kinematics.spring_ik import fit_skeleton
from skeleton.motion_files.motions import JointMotion, MarkerSeries
from skeleton.tree.joint_tree import Pose
from tracking.priors.motion_mapping import SegmentSource, pose_from_motion
from tracking.priors.pose_chart import PoseChart, fit_pose_chart
from tracking.priors.prior import Prior, project_pose
from tracking.priors.representative_frames import representative_frames
from tracking.quads.attachment import QuadAttachment, carry_quads, posed_by_rotations
from tracking.quads.oriented_quads import QuadPose, QuadRig

__all__ = [
    "ReconstructionError",
    "TrainingPoses",
    "corner_scale",
    "joined",
    "mirrored",
    "poses_from_markers",
    "poses_from_motion",
    "poses_from_skeleton",
    "reconstruction_error",
]


@dataclass(frozen=True, eq=False)
class TrainingPoses:
    """Poses of one rig, and where each comes from.

    Attributes:
        rig: the quads.
        rotations: (N, Q, 3, 3) world rotations.
        centres: (N, Q, 3) world centres, mm.
        sources: N texts such as "07_01.bvh:120".
        segments: (N, J, 4) wxyz, world from the segments of the skeleton that carried the quads; None where no
            skeleton did (key poses). They let a prior follow a subject of other lengths.
    """

    rig: QuadRig
    rotations: Floats
    centres: Floats
    sources: tuple[str, ...]
    segments: Floats | None = None

    def __post_init__(self) -> None:
        count, quads = len(self.sources), len(self.rig)
        if np.shape(self.rotations) != (count, quads, 3, 3) or np.shape(self.centres) != (count, quads, 3):
            raise InputError(
                f"training poses: {count} sources of rig '{self.rig.name}' want rotations ({count}, {quads}, 3, 3) "
                f"and centres ({count}, {quads}, 3), got {np.shape(self.rotations)} and {np.shape(self.centres)}"
            )

    def __len__(self) -> int:
        return len(self.sources)

    def subset(self, index: Ints | Sequence[int]) -> TrainingPoses:
        """Return the poses at the given indices."""
        index = np.asarray(index, np.int64)
        return TrainingPoses(
            self.rig,
            self.rotations[index],
            self.centres[index],
            tuple(self.sources[i] for i in index),
            None if self.segments is None else self.segments[index],
        )

    def chart(self, *, length_scale: float | None = None) -> PoseChart:
        """Return the chart fitted to these poses.

        The length scale defaults to that in which the squared length of a change of y is the mean squared
        displacement of the quads' corners: a rotation vector w moves corners at lever a by |w x a|, on average
        over directions 2/3 |w|^2 |a|^2. What is near in y is then near on the surface (CMU walks kept aside, 10
        latents: corners 28 mm off, against 35 mm with a scale that balances the variances).
        """
        if length_scale is None:
            length_scale = corner_scale(self.rig)
        return fit_pose_chart(self.rotations, self.centres, root=self.rig.root, length_scale=length_scale)

    def vectors(self, chart: PoseChart) -> Floats:
        """Return the (N, D) pose vectors in a chart."""
        return chart.to_vector(self.rotations, self.centres)[1]

    def representative(self, count: int) -> TrainingPoses:
        """Return at most ``count`` poses that cover all of them."""
        if len(self) <= count:
            return self
        return self.subset(representative_frames(self.vectors(self.chart()), count))


def corner_scale(rig: QuadRig) -> float:
    """Return the length scale of a chart by the corners of a rig's quads (`TrainingPoses.chart`), mm."""
    return float(np.sqrt(2.0 / 3.0 * np.mean(np.sum(rig.corners**2, axis=-1))))


def joined(sets: Sequence[TrainingPoses]) -> TrainingPoses:
    """Return several sets of one rig as one."""
    if not sets:
        raise InputError("training poses: no set to join; give at least one motion")
    names = {one.rig.name for one in sets}
    if len(names) > 1:
        raise InputError(f"training poses: the sets are of different rigs: {', '.join(sorted(names))}")
    segments = [one.segments for one in sets if one.segments is not None]
    return TrainingPoses(
        sets[0].rig,
        np.concatenate([one.rotations for one in sets]),
        np.concatenate([one.centres for one in sets]),
        tuple(source for one in sets for source in one.sources),
        np.concatenate(segments) if len(segments) == len(sets) else None,
    )


def poses_from_skeleton(
    attachment: QuadAttachment, pose: Pose, label: str, frames: Ints | None = None
) -> TrainingPoses:
    """Carry the quads with posed segments; frames with NaN are left out.

    Args:
        attachment: quads on the segments of a skeleton.
        pose: T posed skeletons.
        label: name of the motion, for `TrainingPoses.sources`.
        frames: (T,) frame numbers for the sources; 0, 1, ... if None.
    """
    numbers = np.arange(len(pose)) if frames is None else np.asarray(frames)
    seen = np.isfinite(pose.positions).all(axis=(1, 2)) & np.isfinite(pose.rotations).all(axis=(1, 2, 3))
    quads = carry_quads(attachment, Pose(pose.positions[seen], pose.rotations[seen]))
    return TrainingPoses(
        attachment.rig,
        quads.rotations,
        quads.centres,
        tuple(f"{label}:{number}" for number in numbers[seen]),
        quaternion_from_rotation(pose.rotations[seen]),
    )


def poses_from_motion(
    attachment: QuadAttachment,
    motion: JointMotion,
    segments: dict[str, SegmentSource],
    label: str,
    *,
    step: int = 1,
) -> TrainingPoses:
    """Turn the body's segments by a motion file and carry the quads, every ``step`` frames."""
    kept = np.arange(0, motion.frames, step)
    thinned = replace(motion, shifts=motion.shifts[kept], rotations=motion.rotations[kept])
    pose = pose_from_motion(thinned, attachment.skeleton, segments)
    return poses_from_skeleton(attachment, pose, label, kept)


def poses_from_markers(
    attachment: QuadAttachment,
    markers: MarkerSeries,
    label: str,
    *,
    marker_set: MarkerSet | None = None,
    step: int = 1,
    scale: bool = True,
) -> TrainingPoses:
    """Fit the skeleton to named points (markers, X-ray beads, network predictions) and carry the quads.

    With ``scale`` the body first takes the subject's lengths and its markers their places on it; the joint angles
    found are then given to the body of the attachment, whose quads they carry. Frames that the fit counts as lost
    are left out.

    Args:
        attachment: quads on the segments of a skeleton.
        markers: T frames of points, mm, z up.
        label: name of the series.
        marker_set: where the points sit on the segments; None takes the body's own set, by name.
        step: every how many frames.
        scale: fit lengths and places first.
    """
    body = attachment.skeleton
    if scale:
        scaling = scale_body(body, markers.names, markers.positions, marker_set=marker_set)
        body, marker_set = scaling.skeleton, scaling.marker_set
    kept = np.arange(0, markers.frames, step)
    fit = fit_skeleton(body, markers.names, markers.positions[kept], marker_set=marker_set)
    found = fit.trust < LOST
    return poses_from_skeleton(attachment, attachment.skeleton.forward(fit.coordinates[found]), label, kept[found])


def mirrored(attachment: QuadAttachment, poses: TrainingPoses) -> TrainingPoses:
    """Reflect poses of a skeleton left to right: what the right side did, the left side does.

    Segments are paired by name (left_ <-> right_); the skeleton's rest pose must be symmetric in y = 0.
    """
    if poses.segments is None:
        raise InputError("mirroring: the poses come from no skeleton; mirror the motion they come from")
    skeleton = attachment.skeleton
    partner = [skeleton.index(_other_side(name)) for name in skeleton.joint_names]
    # At rest all segment axes are the world's, so a reflection acts on each rotation alike.
    flip = np.diag([1.0, -1.0, 1.0])
    rotations = flip @ rotation_from_quaternion(poses.segments)[:, partner] @ flip
    turned = poses_from_skeleton(attachment, posed_by_rotations(skeleton, rotations), "")
    return replace(turned, sources=tuple(f"{source}:mirrored" for source in poses.sources))


def _other_side(name: str) -> str:
    if name.startswith("left_"):
        return "right_" + name.removeprefix("left_")
    return "left_" + name.removeprefix("right_") if name.startswith("right_") else name


@dataclass(frozen=True)
class ReconstructionError:
    """How well a prior can show poses it was not trained on.

    Attributes:
        centre_mm: root mean square distance of quad centres from their own, the root quad held.
        rotation_deg: root mean square angle between quad rotations.
        corner_mm: root mean square distance of quad corners, which is what the cage, hence the surface, sees.
    """

    centre_mm: float
    rotation_deg: float
    corner_mm: float


def reconstruction_error(prior: Prior, poses: TrainingPoses) -> ReconstructionError:
    """Project poses into the latent space and measure what is lost."""
    chart = prior.chart
    root, y = chart.to_vector(poses.rotations, poses.centres)
    found = prior.mean(np.stack([project_pose(prior, one) for one in y]))
    rotations, centres = chart.from_vector(root, found)
    trace = np.einsum("nqij,nqij->nq", rotations, poses.rotations)
    angle = np.degrees(np.arccos(np.clip(0.5 * (trace - 1.0), -1.0, 1.0)))
    truth = poses.rig.posed_corners(QuadPose(poses.rotations, poses.centres))
    corners = poses.rig.posed_corners(QuadPose(rotations, centres))

    def rms(offset: Floats) -> float:
        return float(np.sqrt(np.mean(np.sum(offset**2, axis=-1))))

    return ReconstructionError(rms(centres - poses.centres), float(np.sqrt(np.mean(angle**2))), rms(corners - truth))
