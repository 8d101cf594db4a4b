"""Sizes of quads fitted to meshes in correspondence, one size for all of them.

Quads take the size of the body's outline in the rest pose. A body that bends differs from its rest shape in girth
(cloth hangs wider, a bent elbow is thicker), and a cage of wrong girth slides along the body to make up for it. Each
quad's width and height in other poses are therefore scaled by what all key poses have in common; the rest cage, to
which the template is bound, stays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibration.foundation.arrays import Floats
from tracking.fitting.point_fit import fit_to_points
from tracking.quads.deformation import CageRig, resized
from tracking.quads.oriented_quads import QuadPose

__all__ = ["fit_sizes"]

STEP = 1e-3
"""Relative change of a size by which derivatives are taken; carriers are smooth, and computed to 1e-13 of it."""
LONGEST = 0.1
"""Most a size changes in one round, relative."""


def fit_sizes(
    cage_rig: CageRig,
    binding: Floats,
    targets: Sequence[Floats],
    starts: Sequence[QuadPose],
    *,
    sigma: float = 8.0,
    independent: int = 200,
    spread: float = 0.15,
    robust: float = 6.0,
    rigidity: float = 1e-4,
    rounds: int = 6,
) -> tuple[CageRig, list[QuadPose]]:
    """Fit the sizes of quads, shared, and their poses, one for each mesh, by turns.

    In each round every pose is fitted with the sizes as they are, then the sizes take a Gauss-Newton step in which all
    poses follow (they are eliminated from the normal equations).

    Args:
        cage_rig: quads and rest cage.
        binding: (P, 4 Q + F) coordinates of points.
        targets: for each mesh, (P, 3) where they are, mm.
        starts: for each mesh, a first guess of the pose.
        sigma: 1 sigma of a point that cloth or folds take away, mm.
        independent: how many points of a mesh have errors of their own.
        spread: how far sizes lie from those at rest, 1 sigma, relative.
        robust, rigidity: of `fit_to_points`.
        rounds: how often sizes are improved.

    Returns:
        The quads with fitted sizes, and the poses.
    """
    logs = np.zeros(2 * len(cage_rig.quads))
    poses = list(starts)
    # One point counts as a share of an independent one.
    share = independent / (len(binding) * sigma**2)
    for _ in range(rounds):
        sized = resized(cage_rig, np.exp(logs).reshape(-1, 2))
        hessian, gradient = np.eye(len(logs)) / spread**2, logs / spread**2
        for index, target in enumerate(targets):
            poses[index] = fit_to_points(
                sized, binding, target, poses[index], rigidity=rigidity, robust=robust, damping=1e-2, iterations=6
            )
            curve, slope = _reduced(sized, binding, target, poses[index], robust)
            hessian, gradient = hessian + share * curve, gradient + share * slope
        logs = logs + np.clip(np.linalg.solve(hessian, -gradient), -LONGEST, LONGEST)
    return resized(cage_rig, np.exp(logs).reshape(-1, 2)), poses


def _reduced(
    cage_rig: CageRig, binding: Floats, target: Floats, pose: QuadPose, robust: float
) -> tuple[Floats, Floats]:
    """Normal equations of one mesh in the logarithms of the sizes, its pose eliminated."""
    away = cage_rig.deform(binding, pose) - target
    weights = np.repeat((1.0 + np.sum(away**2, axis=1) / robust**2) ** -0.25, 3)
    residual = weights * away.ravel()
    by_pose = weights[:, None] * cage_rig.point_jacobian(binding, cage_rig.derivatives(pose)).reshape(len(residual), -1)
    by_size = weights[:, None] * _size_jacobian(cage_rig, binding, pose)
    cross = by_pose.T @ by_size
    inner = by_pose.T @ by_pose + 0.1 * np.eye(by_pose.shape[1])
    solved = np.linalg.solve(inner, np.column_stack([cross, by_pose.T @ residual]))
    return by_size.T @ by_size - cross.T @ solved[:, :-1], by_size.T @ residual - cross.T @ solved[:, -1]


def _size_jacobian(cage_rig: CageRig, binding: Floats, pose: QuadPose) -> Floats:
    """(3 P, 2 Q) derivative of bound points by the logarithms of width and height, by differences of the carriers."""
    base = cage_rig.carriers(pose)
    count = 2 * len(cage_rig.quads)
    columns = np.empty((count, *base.shape))
    for index in range(count):
        scales = np.ones(count)
        scales[index] += STEP
        columns[index] = (resized(cage_rig, scales.reshape(-1, 2)).carriers(pose) - base) / STEP
    return np.asarray((binding @ columns).transpose(1, 2, 0).reshape(3 * len(binding), count))
