"""How quads follow the skin: where they carry the template to the skinned body, given the angles of joints nearby.

A quad that takes half of a joint's rotation (`tracking.quads.attachment`) is not where the cage needs it: a human
template so carried lies 16 mm from the skinned body (mean of captured poses), shoulders, elbows and hips 30 mm from
their joints, and bones shorten in a bent limb. Quads fitted to the skin come within 6 mm. How far they lie from the
carried ones, turn and shift in the quad's own axes, is close to a quadratic function of the angles of the joints beside
the quad; its coefficients are learned once for a body (`tracking.adapting.skin_following_search`) and applied to the
poses of any prior of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.files import atomic_path
from calibration.foundation.npz_files import read_npz
from calibration.geometry.transforms import rotation_from_vector, vector_from_rotation
from skeleton.tree.joint_tree import Pose
from tracking.quads.attachment import QuadAttachment
from tracking.quads.oriented_quads import QuadPose, QuadRig

__all__ = ["SkinFollowing", "builtin_following", "fit_following", "following_path", "save_following"]

RIDGE, FAR_MM, ROUNDS = 3.0, 15.0, 6
"""Ridge of the regression; a quad that lies this far from it counts half (a turn: at 100 mm); rounds of weighing."""
_TURN_ARM = 100.0


@dataclass(frozen=True, eq=False)
class SkinFollowing:
    """Coefficients of the function, for the quads of one body.

    Attributes:
        quad_names: of the rig.
        sizes: (Q,) mean distance of a quad's corners from its centre in the body it was learned on, mm.
        reference: (J, 3) rotation vectors of the joints where the cage stands.
        joints: per quad, the joints that it depends on.
        weights: per quad, (1 + 9 n, 6) coefficients for n joints.
    """

    quad_names: tuple[str, ...]
    sizes: Floats
    reference: Floats
    joints: tuple[Ints, ...]
    weights: tuple[Floats, ...]

    def applied(self, attachment: QuadAttachment, segments: Floats, quads: QuadPose) -> QuadPose:
        """Return carried quads (T, Q) where the skin has them; ``segments`` (T, J, 3, 3) carried them."""
        turns, shifts = self.away(attachment, segments)
        return QuadPose(
            quads.rotations @ rotation_from_vector(turns),
            quads.centres + self.shift(attachment.rig, quads.rotations, shifts),
        )

    def away(self, attachment: QuadAttachment, segments: Floats) -> tuple[Floats, Floats]:
        """Turns and shifts (T, Q, 3) from the carried quads, in their axes; rad, mm of the body it was learned on."""
        angles = _angles(attachment, segments) - self.reference
        away = np.stack(
            [_features(angles[:, js]) @ weights for js, weights in zip(self.joints, self.weights, strict=True)], axis=1
        )
        return away[..., :3], away[..., 3:]

    def shift(self, rig: QuadRig, rotations: Floats, shifts: Floats) -> Floats:
        """Shifts (T, Q, 3) of `away` in world axes and a rig's size, mm; ``rotations`` (T, Q, 3, 3) are as carried."""
        grown = (_sizes(rig) / self.sizes)[None, :, None]
        return np.asarray(np.einsum("tqij,tqj->tqi", rotations, grown * shifts))


def _sizes(rig: QuadRig) -> Floats:
    return np.asarray(np.linalg.norm(rig.corners, axis=-1).mean(axis=1))


def _angles(attachment: QuadAttachment, segments: Floats) -> Floats:
    """(T, J, 3) rotation vector of each segment in its parent; 0 for the root."""
    parents = np.asarray(attachment.skeleton.parents)
    inner = np.flatnonzero(parents >= 0)
    angles = np.zeros(segments.shape[:-1])
    angles[:, inner] = vector_from_rotation(np.swapaxes(segments[:, parents[inner]], -1, -2) @ segments[:, inner])
    return angles


def _features(angles: Floats) -> Floats:
    """(T, 1 + 9 n) one, angles (T, n, 3) and their products joint by joint."""
    first, second = np.triu_indices(3)
    count = len(angles)
    products = angles[..., first] * angles[..., second]
    return np.column_stack([np.ones(count), angles.reshape(count, -1), products.reshape(count, -1)])


def _joints_beside(attachment: QuadAttachment, quad: int) -> Ints:
    """The joints whose angles may tell where the skin has a quad: its own two, and those that hang on them."""
    parents = np.asarray(attachment.skeleton.parents)
    own = {int(attachment.proximal[quad]), int(attachment.distal[quad])}
    beside = own | {int(child) for joint in own for child in np.flatnonzero(parents == joint)}
    return np.array(sorted(joint for joint in beside if parents[joint] >= 0), np.int64)


def fit_following(attachment: QuadAttachment, cage_pose: Pose, segments: Floats, away: Floats) -> SkinFollowing:
    """Fit the function to quads that were laid on the skin.

    Args:
        attachment: the quads on their skeleton.
        cage_pose: the skeleton where the cage stands.
        segments: (T, J, 3, 3) rotations of the segments in each pose.
        away: (T, Q, 6) turn, rad, and shift, mm, of each quad from the carried one, in the carried one's axes.
    """
    reference = _angles(attachment, cage_pose.rotations)[0]
    angles = _angles(attachment, segments) - reference
    joints = tuple(_joints_beside(attachment, quad) for quad in range(len(attachment.rig)))
    weights = tuple(_regressed(_features(angles[:, js]), away[:, quad]) for quad, js in enumerate(joints))
    return SkinFollowing(attachment.rig.quad_names, _sizes(attachment.rig), reference, joints, weights)


def _regressed(features: Floats, away: Floats) -> Floats:
    """Coefficients (F, 6) of turns and shifts (T, 6) by features (T, F), far ones weighed down."""
    weight = np.ones(len(features))
    weights = np.zeros((features.shape[1], 6))
    for _ in range(ROUNDS):
        weighed = features * weight[:, None]
        weights = np.asarray(
            np.linalg.solve(weighed.T @ features + RIDGE * np.eye(features.shape[1]), weighed.T @ away), float
        )
        left = (away - features @ weights) * np.repeat([_TURN_ARM, 1.0], 3)
        weight = 1.0 / (1.0 + np.sum(left**2, axis=1) / FAR_MM**2)
    return weights


def save_following(following: SkinFollowing, path: Path) -> None:
    """Write the coefficients."""
    with atomic_path(path) as temporary, open(temporary, "wb") as stream:
        np.savez_compressed(
            stream,
            quad_names=np.array(following.quad_names, dtype=np.str_),
            sizes=following.sizes,
            reference=following.reference,
            counts=np.array([len(js) for js in following.joints]),
            joints=np.concatenate(following.joints),
            weights=np.concatenate(following.weights).astype(np.float32),
        )


def following_path(body: str) -> Path:
    """Where the coefficients of a built-in body lie, if it has any."""
    return Path(__file__).parent / f"{body}_skin.npz"


@cache
def builtin_following(body: str) -> SkinFollowing | None:
    """Return how the quads of a built-in body follow its skin; None where that was not learned."""
    path = following_path(body)
    if not path.is_file():
        return None
    table = read_npz(path, "how quads follow the skin")
    ends = np.cumsum(table["counts"])[:-1]
    rows = np.cumsum(1 + 9 * table["counts"])[:-1]
    return SkinFollowing(
        tuple(str(name) for name in table["quad_names"]),
        table["sizes"],
        table["reference"],
        tuple(np.split(table["joints"], ends)),
        tuple(np.split(table["weights"].astype(np.float64), rows)),
    )
