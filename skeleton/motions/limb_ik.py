"""Limbs to targets: damped Gauss-Newton on all frames at once.

Minimises ``sum w |x(q) - target|^2 + stay^2 |q - q_ref|^2 + barrier`` over the coordinates of some joints, then
closes the hard targets exactly with minimum-norm steps. All frames start from their reference, so that smooth
targets give smooth joints. The barrier pulls back from 90 % of a joint's limits; joints never leave them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import SolveError
from skeleton.tree.joint_tree import Skeleton
from skeleton.tree.limits import project_to_ellipsoid

__all__ = ["Goal", "reach"]


@dataclass(frozen=True, eq=False)
class Goal:
    """A named joint or site that should be at ``target`` (T, 3), mm, with ``weight`` (T,); hard: to be met exactly."""

    point: str
    target: Floats
    weight: Floats | float = 1.0
    hard: bool = True


def reach(
    skeleton: Skeleton,
    coordinates: Floats,
    joints: Sequence[str],
    goals: Sequence[Goal],
    *,
    size: float,
    stay: float | Sequence[float] = 0.05,
    rounds: int = 24,
    tolerance_mm: float | None = None,
) -> Floats:
    """Return coordinates (T, D) in which the rotations of ``joints`` bring the goals' points to their targets.

    ``size`` (mm) makes lengths comparable with angles; ``stay``, one for all or one per joint, weighs the reference
    pose ``coordinates``. With ``tolerance_mm`` a hard goal missed by more raises SolveError.
    """
    q = np.array(coordinates, dtype=np.float64)
    reference = q.copy()
    spans = [np.arange(skeleton.columns(j).start, skeleton.columns(j).stop) for j in joints]
    columns = np.concatenate(spans)
    weights = [stay] * len(joints) if isinstance(stay, float | int) else list(stay)
    keep = np.concatenate([np.full(len(span), float(w)) for span, w in zip(spans, weights, strict=True)]) ** 2
    segments, offsets = skeleton.points([goal.point for goal in goals])
    target = np.stack([goal.target for goal in goals], axis=1)
    weight = np.stack([np.broadcast_to(goal.weight, len(q)) for goal in goals], axis=1) / size
    hard = np.array([goal.hard for goal in goals])
    count = len(columns)

    def missed() -> tuple[Floats, Floats]:
        points, jacobian = skeleton.jacobian(q, segments, offsets)
        return target - points, jacobian[..., columns]

    for _ in range(rounds):
        residual, jacobian = missed()
        rows = (jacobian * weight[:, :, None, None]).reshape(len(q), -1, count)
        gap = (residual * weight[:, :, None]).reshape(len(q), -1)
        inner = q.copy()
        _limited(skeleton, inner, joints, 0.9)
        back = inner[:, columns] - q[:, columns]
        outside = (np.abs(back) > 1e-9).astype(np.float64) * 0.5
        normal = np.einsum("tri,trj->tij", rows, rows)
        diagonal = keep + outside**2 + 1e-5
        normal[:, np.arange(count), np.arange(count)] += diagonal
        pull = np.einsum("tri,tr->ti", rows, gap)
        pull += keep * (reference[:, columns] - q[:, columns]) + outside**2 * back
        step = np.linalg.solve(normal, pull[..., None])[..., 0]
        largest = np.abs(step).max(axis=1, keepdims=True)
        q[:, columns] += step * np.minimum(1.0, 0.5 / np.maximum(largest, 1e-12))
        _limited(skeleton, q, joints)
    for _ in range(8):
        residual, jacobian = missed()
        rows = jacobian[:, hard].reshape(len(q), -1, count) / size
        gap = residual[:, hard].reshape(len(q), -1) / size
        square = np.einsum("tri,tsi->trs", rows, rows)
        square[:, np.arange(rows.shape[1]), np.arange(rows.shape[1])] += 1e-10
        step = np.einsum("tri,tr->ti", rows, np.linalg.solve(square, gap[..., None])[..., 0])
        q[:, columns] += np.clip(step, -0.3, 0.3)
        _limited(skeleton, q, joints)
    if tolerance_mm is not None and hard.any():
        worst = np.linalg.norm(missed()[0][:, hard], axis=2)
        if worst.max() > tolerance_mm:
            frame, which = np.unravel_index(worst.argmax(), worst.shape)
            name = [goal.point for goal in goals if goal.hard][int(which)]
            raise SolveError(
                f"'{name}' misses its place by {worst.max():.2f} mm at frame {frame}: out of reach or beyond a limit",
                worst,
            )
    return q


def _limited(skeleton: Skeleton, q: Floats, joints: Sequence[str], share: float = 1.0) -> None:
    """Bring the rotations of ``joints`` within a ``share`` of their limits, in place."""
    for name in joints:
        joint, columns = skeleton.joints[skeleton.index(name)], skeleton.columns(name)
        lower, upper = share * joint.bounds[:, 0], share * joint.bounds[:, 1]
        if joint.ellipsoidal:
            q[:, columns] = project_to_ellipsoid(np.ascontiguousarray(q[:, columns]), lower, upper)
        else:
            q[:, columns] = np.clip(q[:, columns], lower, upper)
