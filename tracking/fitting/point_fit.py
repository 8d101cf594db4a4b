"""Quads fitted to known positions of bound points: key poses from meshes in correspondence, and the limit of a rig."""

from __future__ import annotations

import math

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.compiled import compiled
from tracking.quads.deformation import CageRig
from tracking.quads.oriented_quads import QuadPose
from tracking.terms.rigidity import rigidity_term

__all__ = ["fit_to_points", "moved"]


def moved(pose: QuadPose, step: Floats) -> QuadPose:
    """Apply a (6 Q,) step: per quad a left rotation vector (rad), then a displacement (mm)."""
    steps = np.ascontiguousarray(step.reshape(-1, 6), np.float64)
    return QuadPose(_turned(np.array(pose.rotations), steps), pose.centres + steps[:, 3:])


@compiled
def _turned(rotations: Floats, steps: Floats) -> Floats:
    """Turn rotations (Q, 3, 3) by the rotation vectors that steps (Q, 6) begin with (Rodrigues)."""
    result = np.empty(rotations.shape)
    for q in range(len(steps)):
        x, y, z = steps[q, 0], steps[q, 1], steps[q, 2]
        square = x * x + y * y + z * z
        angle = math.sqrt(square)
        if angle < 1e-4:  # the series are exact to the last bit there
            first, second = 1.0 - square / 6.0, 0.5 - square / 24.0
        else:
            first, second = math.sin(angle) / angle, 2.0 * math.sin(0.5 * angle) ** 2 / square
        for j in range(3):
            a, b, c = rotations[q, 0, j], rotations[q, 1, j], rotations[q, 2, j]
            # v x r, and v x (v x r)
            u, v, w = y * c - z * b, z * a - x * c, x * b - y * a
            result[q, 0, j] = a + first * u + second * (y * w - z * v)
            result[q, 1, j] = b + first * v + second * (z * u - x * w)
            result[q, 2, j] = c + first * w + second * (x * v - y * u)
    return result


def fit_to_points(
    cage_rig: CageRig,
    binding: Floats,
    target: Floats,
    start: QuadPose,
    *,
    rigidity: float = 1e-3,
    robust: float = np.inf,
    damping: float = 1e-4,
    iterations: int = 20,
    tolerance: float = 1e-3,
) -> QuadPose:
    """Pose the quads so that bound points reach their targets, in the least-squares sense or a robust one.

    Args:
        cage_rig: quads and cage.
        binding: (P, 4 Q + F) coordinates of the points.
        target: (P, 3) where they should be, mm; NaN rows are not used.
        start: first guess.
        rigidity: weight of neighbours keeping their rest places relative to each other, against one point.
        robust: distances well beyond this count by their length, not by its square, mm (pseudo-Huber).
        damping: of the first step; a large one takes small steps at first, and finds better poses far from the start.
        iterations: most Gauss-Newton steps.
        tolerance: stop when no quad's centre moves by more, mm.
    """
    seen = np.isfinite(target).all(axis=1)
    rows, target = np.ascontiguousarray(binding[seen], np.float64), target[seen]
    pose = start
    size = float(np.mean(np.linalg.norm(cage_rig.quads.corners, axis=-1)))
    metric = np.tile(np.repeat([size**2, 1.0], 3), len(cage_rig.quads))
    cost = _cost(cage_rig, rows, target, pose, rigidity, robust)
    for _ in range(iterations):
        jacobian = cage_rig.point_jacobian(rows, cage_rig.derivatives(pose)).reshape(3 * len(rows), -1)
        residual = cage_rig.deform(rows, pose) - target
        weights = np.repeat(1.0 / np.sqrt(1.0 + np.sum(residual**2, axis=1) / robust**2), 3)
        weighted = jacobian * weights[:, None]
        hessian, gradient = weighted.T @ jacobian, weighted.T @ residual.ravel()
        rigidity_term(cage_rig.quads, pose).add_to(hessian, gradient, len(rows) / len(cage_rig.quads) * rigidity)
        while True:
            step: Floats = np.linalg.solve(
                hessian + damping * len(rows) / len(metric) * np.diag(metric), -gradient
            ).astype(np.float64)
            candidate = moved(pose, step)
            new_cost = _cost(cage_rig, rows, target, candidate, rigidity, robust)
            if new_cost <= cost or damping > 1e6:
                break
            damping *= 10
        if new_cost > cost:
            break
        pose, cost, damping = candidate, new_cost, max(damping / (5 if damping < 1e-2 else 2), 1e-6)
        if np.abs(step.reshape(-1, 6)[:, 3:]).max() < tolerance:
            break
    return pose


def _cost(cage_rig: CageRig, rows: Floats, target: Floats, pose: QuadPose, rigidity: float, robust: float) -> float:
    squares = np.sum((cage_rig.deform(rows, pose) - target) ** 2, axis=1)
    # 2 s^2 (sqrt(1 + d^2 / s^2) - 1), written so that it becomes d^2 where s is infinite
    fit = float(np.sum(2.0 * squares / (1.0 + np.sqrt(1.0 + squares / robust**2))))
    rigid = rigidity_term(cage_rig.quads, pose).cost
    return fit + len(rows) / len(cage_rig.quads) * rigidity * rigid
