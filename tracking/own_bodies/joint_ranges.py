"""The skeleton of a body that is not built in, and what poses it is likely to take: springs and ranges, no more.

Nobody filmed this animal yet. Each joint is taken to bend freely within its range, the trunk less than the limbs, and
hardly to twist about its bone. Poses drawn so make a linear prior: it holds lengths and twists and keeps quads of one
limb together; it knows no gait. A prior of the animal's own motion (`vivarig train`) takes its place.
"""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.geometry.transforms import rotation_from_vector
from skeleton.tree.joint_tree import Joint, Pose, Site, Skeleton
from tracking.own_bodies.joints_file import BodyPlan
from tracking.own_bodies.quad_layout import Layout, trunk_bones
from tracking.priors.prior import LinearPrior, fit_linear_prior
from tracking.priors.training_poses import poses_from_skeleton
from tracking.quads.attachment import QuadAttachment, posed_by_rotations
from tracking.quads.oriented_quads import QuadRig

__all__ = ["attachment_of", "default_prior", "skeleton_of"]

TRUNK_RANGE, LIMB_RANGE = np.radians(25.0), np.radians(60.0)
"""How far joints bend about an axis across their bone, where joints.toml does not say."""
TWIST = 0.35
"""Share of its range that a joint twists about its bone."""
POSES = 500
LATENT = 30
EXPLAINED = 0.97
"""Share of the drawn poses' variance that the latent dimensions explain, if so many are enough."""


def ranges_of(plan: BodyPlan) -> Floats:
    """(J,) how far each joint bends, rad: as joints.toml says, or by its place in the body."""
    trunk = trunk_bones(plan)
    result = plan.ranges.copy()
    for joint in np.flatnonzero(np.isnan(result)):
        mine = (plan.bones == joint).any(axis=1)
        inner = plan.degree[joint] > 2 or (mine & trunk).any()
        result[joint] = TRUNK_RANGE if inner else LIMB_RANGE
    return result


def skeleton_of(plan: BodyPlan, name: str, *, feet: float) -> Skeleton:
    """Make the joint tree of a body: ball joints where bones meet, sites where they end.

    Args:
        plan: joints, mm, z up.
        name: of the body.
        feet: ends of the body no higher than this above the lowest one stand on the floor, mm.
    """
    reach = ranges_of(plan)
    joints, sites = [], []
    for index, joint in enumerate(plan.names):
        parent = int(plan.parents[index])
        if parent < 0:
            joints.append(Joint(joint, None, "free", plan.places[index]))
            continue
        offset = plan.places[index] - plan.places[parent]
        if not plan.children[index]:
            sites.append(Site(joint, plan.names[parent], offset))
            continue
        limits = np.tile([-reach[index], reach[index]], (3, 1))
        joints.append(Joint(joint, plan.names[parent], "ball", offset, limits=limits, ellipsoidal=True))
    ends = [index for index in range(1, len(plan)) if not plan.children[index]]
    lowest = float(plan.places[ends, 2].min())
    floor = [plan.names[end] for end in ends if plan.places[end, 2] <= lowest + feet]
    sided = [name for name in floor if "left" in name or "right" in name]
    floor = sided or floor  # a tail that lies on the floor is no foot
    return Skeleton(
        name,
        tuple(joints),
        tuple(sites),
        {point: point for point in plan.names},
        {foot: (foot,) for foot in floor} if len(floor) >= 2 else {},
        "joints given by the user; ranges are defaults unless given",
    )


def attachment_of(layout: Layout, rig: QuadRig, plan: BodyPlan, skeleton: Skeleton) -> QuadAttachment:
    """Hang each quad on the segments it was placed for; the skeleton rests in the cage's pose."""
    proximal, distal, share = [], [], []
    for spot in layout.spots:
        carrier = skeleton.index(plan.names[spot.carrier])
        proximal.append(carrier)
        bends = spot.joint > 0 and not spot.end
        distal.append(skeleton.index(plan.names[spot.joint]) if bends else carrier)
        share.append(0.5 if bends else 0.0)
    return QuadAttachment(rig, skeleton, _whole(proximal), _whole(distal), np.array(share))


def _whole(values: list[int]) -> Ints:
    return np.array(values, np.int64)


def default_prior(attachment: QuadAttachment, plan: BodyPlan, *, seed: int = 0) -> LinearPrior:
    """Make the prior of a body of which no motion is known."""
    pose = _drawn(attachment.skeleton, plan, np.random.default_rng(seed))
    poses = poses_from_skeleton(attachment, pose, "range")
    chart = poses.chart()
    vectors = poses.vectors(chart)
    power = np.linalg.svd(vectors - vectors.mean(axis=0), compute_uv=False) ** 2
    enough = int(np.searchsorted(np.cumsum(power) / power.sum(), EXPLAINED)) + 1
    rig = attachment.rig
    return fit_linear_prior(
        vectors, min(enough, LATENT, len(power) - 1), chart, rig_name=rig.name, quad_names=rig.quad_names
    )


def _drawn(skeleton: Skeleton, plan: BodyPlan, rng: np.random.Generator) -> Pose:
    """Poses drawn within the ranges, the first at rest, every second one with half the bends."""
    reach = ranges_of(plan)
    rotations = np.empty((POSES, len(skeleton.joints), 3, 3))
    strength = np.where(np.arange(POSES) % 2 == 0, 1.0, 0.5)
    strength[0] = 0.0
    for index, (joint, parent) in enumerate(zip(skeleton.joints, skeleton.parents, strict=True)):
        own = plan.names.index(joint.name)
        bend = rng.normal(size=(POSES, 3)) * (0.45 * reach[own])
        ways = plan.places[list(plan.children[own])] - plan.places[own]
        if len(ways) == 1:
            along = ways[0] / max(float(np.linalg.norm(ways[0])), 1e-9)
            bend -= (1.0 - TWIST) * (bend @ along)[:, None] * along
        length = np.linalg.norm(bend, axis=1, keepdims=True)
        bend *= np.minimum(1.0, reach[own] / np.maximum(length, 1e-12))
        turn = rotation_from_vector(strength[:, None] * bend)
        rotations[:, index] = turn if parent < 0 else rotations[:, parent] @ turn
    rotations = np.swapaxes(rotations[:, :1], -1, -2) @ rotations  # the root stands; its own turns are not learned
    return posed_by_rotations(skeleton, rotations)
