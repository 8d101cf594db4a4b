"""How quads follow a skeleton: each is attached once, in the rest pose, to a segment or to a joint between two.

A quad between proximal segment a and distal segment b turns by a share w of the joint's rotation, about the
joint's centre p_b. With world rotations R (identity at rest) and rest values marked by a bar::

    R = R_a exp(w log(R_a^T R_b))        c = p_b + R (c_bar - p_b_bar)        rotation = R rotation_bar

w = 0 is rigid on a, w = 1 rigid on b, w = 1/2 the geodesic midpoint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import rotation_from_vector, vector_from_rotation
from skeleton.tree.joint_tree import Pose, Skeleton
from tracking.quads.oriented_quads import QuadPose, QuadRig

__all__ = [
    "QuadAttachment",
    "attach_alike",
    "attach_posed_quads",
    "attach_quads",
    "attach_quads_by_name",
    "carried_centres",
    "carry_quads",
    "posed_by_rotations",
    "quad_turns",
]

#: A quad this share of a bone's length (or more) from a joint belongs to the bone alone.
BLEND_REACH = 0.5
#: Share of the body's length within which a point counts as lying on the plane of symmetry.
MIDLINE = 0.01


@dataclass(frozen=True, eq=False)
class QuadAttachment:
    """Quads of one rig on the segments of one skeleton.

    Attributes:
        rig: the quads in their rest pose.
        skeleton: the skeleton, whose rest pose is the rig's.
        proximal: (Q,) joint index of the segment before the quad.
        distal: (Q,) joint index of the segment after it; its joint is the pivot.
        share: (Q,) share w of the joint's rotation, 0 to 1.
    """

    rig: QuadRig
    skeleton: Skeleton
    proximal: Ints
    distal: Ints
    share: Floats

    def describe(self) -> list[str]:
        """Return one line per quad: which segments carry it."""
        names = self.skeleton.joint_names
        lines = []
        for quad, a, b, w in zip(self.rig.quad_names, self.proximal, self.distal, self.share, strict=True):
            held = names[a] if w == 0 else names[b] if w == 1 else f"{names[a]} + {w:.2f} of {names[b]}"
            lines.append(f"{quad}: {held}")
        return lines


def attach_quads(rig: QuadRig, skeleton: Skeleton) -> QuadAttachment:
    """Attach each quad to the bone nearest to its centre in the rest pose.

    At a joint the quad takes half of its rotation, and ever less (or more) away from it along the bone.

    Args:
        rig: quads in the rest pose of ``skeleton``, mm.
        skeleton: the skeleton of the same body in the same place.
    """
    bones = _Bones.of(skeleton)
    proximal, distal, share = [], [], []
    for name, centre in zip(rig.quad_names, rig.centres, strict=True):
        bone, along = bones.nearest(centre)
        if along is None:
            raise InputError(f"rig '{rig.name}': skeleton '{skeleton.name}' has no bone to carry quad '{name}'")
        a, b, w = bones.joint_share(bone, along)
        proximal.append(a)
        distal.append(b)
        share.append(w)
    return QuadAttachment(
        rig, skeleton, np.array(proximal, np.int64), np.array(distal, np.int64), np.array(share, float)
    )


def attach_quads_by_name(rig: QuadRig, skeleton: Skeleton, segments: Mapping[str, Sequence[str]]) -> QuadAttachment:
    """Attach quads by a table: quad name to one joint name (rigid) or two (half of the rotation between them).

    Args:
        rig: quads in the rest pose of ``skeleton``.
        skeleton: the skeleton.
        segments: quad name to ``[segment]`` or ``[proximal, distal]``; a segment bears its joint's name.
    """
    missing = [name for name in rig.quad_names if name not in segments]
    if missing:
        raise InputError(f"rig '{rig.name}': quad '{missing[0]}' is attached to no segment; name one for each quad")
    proximal, distal, share = [], [], []
    for name in rig.quad_names:
        held = [skeleton.index(segment) for segment in segments[name]]
        if len(held) == 1:
            proximal.append(held[0])
            distal.append(held[0])
            share.append(0.0)
        elif len(held) == 2 and int(skeleton.parents[held[1]]) == held[0]:
            proximal.append(held[0])
            distal.append(held[1])
            share.append(0.5)
        else:
            raise InputError(
                f"quad '{name}': wanted one segment or a segment and its child, got {list(segments[name])}"
            )
    return QuadAttachment(rig, skeleton, np.array(proximal), np.array(distal), np.array(share))


def attach_posed_quads(rig: QuadRig, skeleton: Skeleton, pose: Pose) -> QuadAttachment:
    """Attach quads that were placed in a pose other than rest (a cage with limbs apart).

    Args:
        rig: quads in ``pose``, mm.
        skeleton: the skeleton.
        pose: one posed skeleton.

    Returns:
        The same quads in the rest pose, on their segments.
    """
    offsets = pose.positions[0].copy()
    for index, parent in enumerate(skeleton.parents):
        if parent >= 0:
            offsets[index] = pose.positions[0, index] - pose.positions[0, parent]
    # A skeleton that rests in that pose, with all frames along the world's axes.
    posed = replace(
        skeleton,
        joints=tuple(replace(joint, offset=offsets[index]) for index, joint in enumerate(skeleton.joints)),
        sites=tuple(
            replace(site, offset=pose.rotations[0, skeleton.index(site.segment)] @ site.offset)
            for site in skeleton.sites
        ),
    )
    return attach_alike(rig, skeleton, pose, attach_quads(rig, posed))


def attach_alike(rig: QuadRig, skeleton: Skeleton, pose: Pose, known: QuadAttachment) -> QuadAttachment:
    """Attach quads placed in a pose to the segments that carry the quads of the same names of another rig.

    Args:
        rig: quads in ``pose``, mm.
        skeleton: the skeleton, with the joints of the other attachment's.
        pose: one posed skeleton.
        known: which segments carry which quad.

    Returns:
        The same quads in the rest pose, on their segments.
    """
    if known.rig.quad_names != rig.quad_names or len(known.skeleton.joints) != len(skeleton.joints):
        raise InputError(
            f"rig '{rig.name}': its quads or skeleton are not those of rig '{known.rig.name}'; keep the quads' names "
            "and order, or make the subject again"
        )
    back = np.swapaxes(quad_turns(known, pose.rotations)[0], -1, -2)
    rest = skeleton.forward(skeleton.rest()).positions[0]
    lever = rig.centres - pose.positions[0, known.distal]
    at_rest = replace(
        rig,
        rotations=back @ rig.rotations,
        centres=rest[known.distal] + np.einsum("qij,qj->qi", back, lever),
    )
    return QuadAttachment(at_rest, skeleton, known.proximal, known.distal, known.share)


def quad_turns(attachment: QuadAttachment, rotations: Floats) -> Floats:
    """Turn (T, Q, 3, 3) of each quad since rest, from the segments' rotations (T, J, 3, 3)."""
    before, after = rotations[:, attachment.proximal], rotations[:, attachment.distal]
    bend = vector_from_rotation(np.swapaxes(before, -1, -2) @ after)
    return np.asarray(before @ rotation_from_vector(attachment.share[:, None] * bend))


def carry_quads(attachment: QuadAttachment, pose: Pose) -> QuadPose:
    """Carry the quads with posed segments.

    Args:
        attachment: quads on segments.
        pose: T posed skeletons of the same tree; segment lengths may differ (the quads then keep their rest
            offset from their joint).

    Returns:
        rotations (T, Q, 3, 3) and centres (T, Q, 3), mm.
    """
    skeleton, rig = attachment.skeleton, attachment.rig
    if pose.positions.shape[1] != len(skeleton.joints):
        raise InputError(
            f"skeleton '{skeleton.name}' has {len(skeleton.joints)} joints, the pose has {pose.positions.shape[1]}"
        )
    turns = quad_turns(attachment, pose.rotations)
    return QuadPose(turns @ rig.rotations, carried_centres(attachment, pose.positions, turns))


def carried_centres(attachment: QuadAttachment, positions: Floats, turns: Floats) -> Floats:
    """Centres (T, Q, 3) of the quads, mm, from the joints' positions (T, J, 3) and the quads' turns (T, Q, 3, 3)."""
    skeleton = attachment.skeleton
    rest = skeleton.forward(skeleton.rest()).positions[0]
    lever = attachment.rig.centres - rest[attachment.distal]
    return np.asarray(positions[:, attachment.distal] + np.einsum("tqij,qj->tqi", turns, lever))


def posed_by_rotations(skeleton: Skeleton, rotations: Floats) -> Pose:
    """Pose a skeleton by the world rotations (T, J, 3, 3) of its segments alone; its root stands at rest."""
    positions = np.empty(rotations.shape[:-1])
    for index, (joint, parent) in enumerate(zip(skeleton.joints, skeleton.parents, strict=True)):
        if parent < 0:
            positions[:, index] = joint.offset
        else:
            positions[:, index] = positions[:, parent] + rotations[:, parent] @ joint.offset
    return Pose(positions, rotations)


@dataclass(frozen=True, eq=False)
class _Bones:
    """The bones of a skeleton at rest: from each joint to each of its children and sites.

    Attributes:
        skeleton: the skeleton.
        owner: (B,) joint index of the segment.
        child: (B,) joint index at the far end, -1 for a site.
        start: (B, 3) near end, mm.
        stop: (B, 3) far end, mm.
    """

    skeleton: Skeleton
    owner: Ints
    child: Ints
    start: Floats
    stop: Floats

    @staticmethod
    def of(skeleton: Skeleton) -> _Bones:
        positions = skeleton.forward(skeleton.rest()).positions[0]
        ends = [(int(p), j, positions[j]) for j, p in enumerate(skeleton.parents) if p >= 0]
        leaves = set(range(len(skeleton.joints))) - {owner for owner, _, _ in ends}
        for site in skeleton.sites:
            joint = skeleton.index(site.segment)
            # Sites off to the side of a longer chain (ears, heels) are no bones; those at the end of one are.
            if joint in leaves:
                ends.append((joint, -1, positions[joint] + site.offset))
        owner = np.array([e[0] for e in ends], np.int64)
        return _Bones(
            skeleton, owner, np.array([e[1] for e in ends], np.int64), positions[owner], np.array([e[2] for e in ends])
        )

    def nearest(self, point: Floats) -> tuple[int, float | None]:
        """Index of the bone nearest to a point, and how far along it (0 to 1) the nearest place is.

        A point on the plane of symmetry (y = 0) belongs to the trunk: bones of limbs are left out, however near.
        """
        if len(self.owner) == 0:
            return -1, None
        size = float(np.ptp(np.concatenate([self.start, self.stop]), axis=0).max())
        off_plane = np.maximum(np.abs(self.start[:, 1]), np.abs(self.stop[:, 1])) > MIDLINE * size
        along = self.stop - self.start
        length2 = np.maximum(np.sum(along**2, axis=1), 1e-12)
        share = np.clip(np.sum((point - self.start) * along, axis=1) / length2, 0.0, 1.0)
        gap = np.linalg.norm(self.start + share[:, None] * along - point, axis=1)
        # Bones of no length (two joints in one place) carry nothing of their own.
        gap = np.where(length2 < 1e-6, np.inf, gap)
        if abs(point[1]) <= MIDLINE * size and not off_plane.all():
            gap = np.where(off_plane, np.inf, gap)
        # At a joint two bones are equally near: the child's, of which the quad is the beginning, is taken.
        best = int(np.flatnonzero(gap <= gap.min() + 1e-9)[-1])
        return best, float(share[best])

    def joint_share(self, bone: int, along: float) -> tuple[int, int, float]:
        """Proximal segment, distal segment and share for a quad ``along`` a bone."""
        owner, child = int(self.owner[bone]), int(self.child[bone])
        parent = int(self.skeleton.parents[owner])
        near_start = 0.5 * max(0.0, 1.0 - along / BLEND_REACH)
        near_stop = 0.5 * max(0.0, 1.0 - (1.0 - along) / BLEND_REACH)
        if near_stop > near_start and child >= 0:
            return owner, child, near_stop
        if parent >= 0:
            return parent, owner, 1.0 - near_start
        return owner, owner, 0.0
