"""The vector a pose prior learns: all oriented quads relative to the root quad, in one chart.

For root quad r and any other quad q, with world rotations ``R`` and centres ``c``::

    t_q = R_r^T (c_q - c_r) / s                    translation in root axes, in units of the length scale s
    w_q = log(R_r^T R_q M_q^T)                     rotation vector about the quad's mean rotation M_q, rad
    y   = (t_1, w_1, t_2, w_2, ...)                quads in rig order without the root, D = 6 (Q - 1)

Logarithms about a mean do not wrap while a quad stays within 180 degrees of its mean, which Euler angles do
not promise; ``s`` brings millimetres to the size of radians, so that one noise level suits both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.compiled import compiled
from calibration.foundation.errors import InputError
from calibration.geometry.rotation_kernels import dot3, left_jacobian, mean_rotations, times3
from calibration.geometry.transforms import RigidTransform, rotation_from_vector, vector_from_rotation

__all__ = ["PoseChart", "fit_pose_chart"]


@dataclass(frozen=True, eq=False)
class PoseChart:
    """Map between posed quads and pose vectors.

    Attributes:
        mean_rotations: (Q, 3, 3) mean rotation of each quad in root axes; the root's own is the identity.
        length_scale: millimetres per unit of translation in y.
        root: index of the root (pelvis) quad.
    """

    mean_rotations: Floats
    length_scale: float
    root: int = 0

    def __post_init__(self) -> None:
        shape = np.shape(self.mean_rotations)
        if len(shape) != 3 or shape[1:] != (3, 3) or shape[0] < 2:
            raise InputError(f"pose chart: mean_rotations must be (Q >= 2, 3, 3), got {shape}")
        if not self.length_scale > 0:
            raise InputError(f"pose chart: length_scale must be above 0 mm, got {self.length_scale}")
        if not 0 <= self.root < shape[0]:
            raise InputError(f"pose chart: root {self.root} is not one of the {shape[0]} quads")

    @property
    def quads(self) -> int:
        """Number of quads Q, the root among them."""
        return len(self.mean_rotations)

    @property
    def dimension(self) -> int:
        """Length of a pose vector, D = 6 (Q - 1)."""
        return 6 * (self.quads - 1)

    @property
    def others(self) -> Sequence[int]:
        """Quad index of each block of six entries of y."""
        return [q for q in range(self.quads) if q != self.root]

    def to_vector(
        self, rotations: Floats, centres: Floats, turns: Floats | None = None
    ) -> tuple[RigidTransform, Floats]:
        """Express posed quads relative to the root quad.

        Args:
            rotations: (..., Q, 3, 3) world rotations of the quads.
            centres: (..., Q, 3) world centres, mm.
            turns: (..., Q - 1, 3) what `turns` says of the rotations, where that is known already.

        Returns:
            root: world from root quad, leading axes as given.
            y: (..., D) pose vector.
        """
        rotations, centres = np.asarray(rotations, float), np.asarray(centres, float)
        if rotations.shape[-3:] != (self.quads, 3, 3) or centres.shape[-2:] != (self.quads, 3):
            raise InputError(
                f"pose chart: wanted rotations (..., {self.quads}, 3, 3) and centres (..., {self.quads}, 3), "
                f"got {rotations.shape} and {centres.shape}; is the pose of another rig?"
            )
        root = RigidTransform(rotations[..., self.root, :, :], centres[..., self.root, :])
        to_root = np.swapaxes(root.rotation, -1, -2)[..., None, :, :]
        turns = self.turns(rotations) if turns is None else turns
        offsets = centres[..., self.others, :] - root.translation[..., None, :]
        shifts = (to_root @ offsets[..., None])[..., 0] / self.length_scale
        y = np.concatenate([shifts, turns], axis=-1)
        return root, y.reshape(*y.shape[:-2], self.dimension)

    def turns(self, rotations: Floats) -> Floats:
        """Return the rotation vectors (..., Q - 1, 3) that rotations (..., Q, 3, 3) have in a pose vector."""
        to_root = np.swapaxes(rotations[..., self.root, :, :], -1, -2)[..., None, :, :]
        relative = to_root @ rotations[..., self.others, :, :]
        means = np.asarray(self.mean_rotations)[self.others]
        return vector_from_rotation(relative @ np.swapaxes(means, -1, -2))

    def from_vector(self, root: RigidTransform, y: Floats) -> tuple[Floats, Floats]:
        """Pose the quads: inverse of `to_vector`.

        Args:
            root: world from root quad.
            y: (..., D) pose vector; leading axes broadcast against the root's.

        Returns:
            rotations: (..., Q, 3, 3) world rotations.
            centres: (..., Q, 3) world centres, mm.
        """
        shifts, turns = self.blocks(y)
        lead = np.broadcast_shapes(shifts.shape[:-2], np.shape(root.translation)[:-1])
        rotations = np.empty((*lead, self.quads, 3, 3))
        centres = np.empty((*lead, self.quads, 3))
        root_rotation = np.asarray(root.rotation)
        others = self.others
        relative = rotation_from_vector(turns) @ np.asarray(self.mean_rotations)[others]
        rotations[..., others, :, :] = root_rotation[..., None, :, :] @ relative
        rotations[..., self.root, :, :] = root_rotation
        moved = (root_rotation[..., None, :, :] @ shifts[..., None])[..., 0] * self.length_scale
        centres[..., others, :] = np.asarray(root.translation)[..., None, :] + moved
        centres[..., self.root, :] = root.translation
        return rotations, centres

    def basis(self, root: RigidTransform, y: Floats, y_jacobian: Floats) -> Floats:
        """Return the (6 Q, 6 + k) derivative of the quads of one pose by the root's six numbers and k parameters of y.

        The numbers of a quad, and the first six columns: a rotation vector applied on the left in world axes (rad), the
        displacement of the centre (mm). The root's carry all quads along.

        Args:
            root: world from root quad.
            y: (D,) pose vector.
            y_jacobian: (D, k) derivative of y by the parameters (a prior's ``mean_jacobian``).
        """
        shifts, turns = self.blocks(y)
        basis = np.zeros((self.quads, 6, 6 + y_jacobian.shape[1]))
        _fill_basis(
            np.ascontiguousarray(root.rotation, np.float64),
            self.length_scale,
            np.array(self.others),
            self.root,
            shifts,
            turns,
            np.ascontiguousarray(y_jacobian),
            basis,
        )
        return basis.reshape(6 * self.quads, -1)

    def blocks(self, y: Floats) -> tuple[Floats, Floats]:
        """Return translations, in units of the length scale, and rotation vectors (..., Q - 1, 3) of pose vectors."""
        y = np.asarray(y, float)
        if y.shape[-1:] != (self.dimension,):
            raise InputError(
                f"pose chart: a pose of {self.quads} quads has {self.dimension} entries, got {y.shape}; "
                f"is the pose or its prior of another rig?"
            )
        blocks = y.reshape(*y.shape[:-1], self.quads - 1, 6)
        return blocks[..., :3], blocks[..., 3:]


def fit_pose_chart(
    rotations: Floats, centres: Floats, *, root: int = 0, length_scale: float | None = None
) -> PoseChart:
    """Choose the chart of a set of poses: intrinsic mean rotations, and a length scale for the translations.

    The length scale says how many millimetres weigh as much as a radian. Where the size of the quads is known, take
    it from their corners (`tracking.priors.training_poses.TrainingPoses.chart`); by default it is the mean distance of
    a quad from its nearest neighbour, which is about a quad's size. A scale that balances the variances of translation
    and rotation is three times as large, and lets the surface drift for the sake of small turns.

    Args:
        rotations: (N, Q, 3, 3) world rotations of the quads in each pose.
        centres: (N, Q, 3) world centres, mm.
        root: index of the root quad.
        length_scale: millimetres per unit of translation.
    """
    rotations, centres = np.asarray(rotations, float), np.asarray(centres, float)
    if rotations.ndim != 4 or centres.shape != (*rotations.shape[:2], 3):
        raise InputError(
            f"pose chart: wanted rotations (N, Q, 3, 3) and centres (N, Q, 3), "
            f"got {rotations.shape} and {centres.shape}"
        )
    to_root = np.swapaxes(rotations[:, root], -1, -2)[:, None]
    relative = to_root @ rotations
    means = mean_rotations(relative)
    means[root] = np.eye(3)
    if length_scale is None:
        apart = np.linalg.norm(centres[:, :, None] - centres[:, None], axis=-1)
        apart[:, np.arange(apart.shape[1]), np.arange(apart.shape[1])] = np.inf
        length_scale = float(apart.min(axis=-1).mean())
    return PoseChart(means, length_scale, root)


@compiled
def _fill_basis(
    to_world: Floats,
    length_scale: float,
    others: Ints,
    root: int,
    shifts: Floats,
    turns: Floats,
    y_jacobian: Floats,
    basis: Floats,
) -> None:
    for k in range(3):
        basis[root, k, k] = basis[root, 3 + k, 3 + k] = 1.0
    arm, turned, world = np.empty(3), np.empty((3, 3)), np.empty((3, 3))
    for index in range(len(others)):
        block = basis[others[index]]
        for k in range(3):
            block[k, k] = block[3 + k, 3 + k] = 1.0
        for k in range(3):
            arm[k] = length_scale * dot3(to_world[k], shifts[index])
        block[3, 1], block[3, 2] = arm[2], -arm[1]
        block[4, 0], block[4, 2] = -arm[2], arm[0]
        block[5, 0], block[5, 1] = arm[1], -arm[0]
        # exp(w + dw) = exp(J_l(w) dw) exp(w): the mean rotation on the right does not enter.
        left_jacobian(turns[index, 0], turns[index, 1], turns[index, 2], turned)
        times3(to_world, turned, world)
        for r in range(3):
            for m in range(3):
                by_turn, by_shift = world[r, m], length_scale * to_world[r, m]
                for k in range(y_jacobian.shape[1]):
                    block[r, 6 + k] += by_turn * y_jacobian[6 * index + 3 + m, k]
                    block[3 + r, 6 + k] += by_shift * y_jacobian[6 * index + m, k]
