"""Spring inverse kinematics over a window: all frames at once, held together by smoothness.

To the energy of every frame comes ``1/2 sum_t sum_d (q_{t+1} - 2 q_t + q_{t-1})_d^2 / (a_d h^2)^2``, with h the frame
period and a_d the standard deviation of the coordinate's acceleration. The Gauss-Newton matrix is banded; a window is
solved by a banded Cholesky factorisation. Long motions go in overlapping windows, so memory does not grow with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.linalg import cho_solve_banded, cholesky_banded

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from skeleton.bodies.marker_sets import MarkerSet
from skeleton.inverse_kinematics import spring_kernels as kernels
from skeleton.inverse_kinematics.fits import SkeletonFit, fit_of
from skeleton.inverse_kinematics.spring_energy import assemble, joint_sigmas
from skeleton.inverse_kinematics.spring_ik import SpringProblem, Springs, judge, robust_weights, solve, spring_problem
from skeleton.tree.articulation import Articulation
from skeleton.tree.articulation_kernels import BALL, clamp_coordinates
from skeleton.tree.joint_tree import Skeleton

__all__ = ["fit_smoothly", "unwrapped"]


# Thirteen parameters: those of `fit_skeleton`, with rate and time besides.
def fit_smoothly(
    body: Skeleton | Articulation,
    marker_names: Sequence[str],
    markers: Floats,
    sigma: Floats | None = None,
    *,
    rate_hz: float,
    time_s: float = 0.05,
    marker_set: MarkerSet | None = None,
    springs: Springs | None = None,
    start: SkeletonFit | None = None,
    window: int = 128,
    overlap: int = 16,
    rounds: int = 12,
    on_progress: Callable[[int, int], None] | None = None,
) -> SkeletonFit:
    """Fit a body to markers with smooth motion.

    Args:
        body, marker_names, markers, sigma, marker_set, springs: as in `fit_skeleton`.
        rate_hz: frames per second.
        time_s: time over which a coordinate may change its speed by its whole spread, s; larger is smoother.
        start: a frame-by-frame fit to begin with; made here if absent.
        window: frames solved at once.
        overlap: frames by which windows overlap; the middle of the overlap is the seam.
        rounds: most Gauss-Newton rounds per window.
        on_progress: called with (frames done, T).
    """
    if not (rate_hz > 0 and time_s > 0):
        raise InputError(f"smoothing: rate_hz and time_s must be above 0, got {rate_hz} Hz and {time_s} s")
    problem = spring_problem(body, marker_names, markers, sigma, marker_set=marker_set, springs=springs)
    first = solve(problem) if start is None else start
    hold = _acceleration_stiffness(problem, rate_hz, time_s)
    coordinates = _shortest(problem.body, first.coordinates)
    total = problem.frames
    low = 0
    while low < total:
        high = min(low + window, total)
        if total - high < overlap:
            high = total
        # Frames before the window are settled and act as its boundary.
        before, path = _chart(problem.body, coordinates[max(low - 2, 0) : low], coordinates[low:high])
        high = low + len(path)
        smoothed = _solve_window(problem, path, before, low, hold, rounds)
        settled = high if high == total else high - min(overlap, len(path) // 2)
        coordinates[low:high] = _shortest(problem.body, smoothed)
        if on_progress is not None:
            on_progress(settled, total)
        if high == total:
            break
        low = settled
    return _fit(problem, coordinates, first)


def _acceleration_stiffness(problem: SpringProblem, rate_hz: float, time_s: float) -> Floats:
    """(D,) weight of squared second differences: spread s changes its speed s / time within time."""
    body = problem.body
    stiff = problem.rest_stiffness
    spread = np.where(stiff > 0, 1.0 / np.sqrt(np.maximum(stiff, 1e-12)), np.where(body.is_length, 0.0, 0.8))
    # Root translation has no spring: a fifth of the body's size.
    spread = np.where(spread > 0, spread, 0.2 * problem.lever[~body.is_length].max())
    acceleration = spread / time_s**2
    return np.asarray((rate_hz**2 / acceleration) ** 2)


def _balls(body: Articulation) -> Ints:
    """Return the first of the three columns of each rotation vector."""
    return np.asarray(body.nodes.columns[body.nodes.kinds == BALL])


def _shortest(body: Articulation, coordinates: Floats) -> Floats:
    """Return coordinates (T, D) whose rotation vectors are no longer than half a turn."""
    out = np.array(coordinates)
    for column in _balls(body):
        vectors = out[:, column : column + 3]
        angle = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors *= 1.0 - 2 * np.pi * np.round(angle / (2 * np.pi)) / np.maximum(angle, 1e-9)
    return out


def unwrapped(body: Articulation, coordinates: Floats) -> Floats:
    """Return coordinates (T, D) whose rotation vectors do not jump between equal rotations."""
    out = np.array(coordinates)
    for column in _balls(body):
        vectors = out[:, column : column + 3]
        angles = np.linalg.norm(vectors, axis=1)
        turning = angles > 1e-9
        units = vectors / np.where(turning, angles, 1.0)[:, None]
        along = np.einsum("ti,ti->t", units[1:], vectors[:-1])
        jumps = np.flatnonzero(turning[1:] & (np.round((along - angles[1:]) / (2 * np.pi)) != 0))
        # From the first jump on each vector follows the one before it as that came out.
        for t in range(int(jumps[0]) + 1 if len(jumps) else len(vectors), len(vectors)):
            if turning[t]:
                turns = np.round((float(units[t] @ vectors[t - 1]) - angles[t]) / (2 * np.pi))
                vectors[t] = (angles[t] + 2 * np.pi * turns) * units[t]
    return out


def _chart(body: Articulation, before: Floats, coordinates: Floats) -> tuple[Floats, Floats]:
    """Return frames before a window and as many of its frames as go on from its first without a jump.

    A rotation vector of a whole turn is any vector of that length: nothing can be solved there. So a window ends where
    one grows longer than three quarters of a turn.
    """
    path = unwrapped(body, coordinates)
    far = np.zeros(len(path), np.bool_)
    for column in _balls(body):
        far |= np.linalg.norm(path[:, column : column + 3], axis=1) > 1.5 * np.pi
    count = int(np.argmax(far)) if far.any() else len(path)
    back = unwrapped(body, np.concatenate([path[:1], before[::-1]]))[1:]
    return back[::-1], path[:count]


def _frame_systems(problem: SpringProblem, q: Floats, low: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return normal matrices (W, D, D), gradients (W, D), energies (W,), residuals (W, M) of poses from frame low."""
    body, held = problem.body, problem.springs
    size, count = body.dimension, len(q)
    normal, gradient = np.zeros((count, size, size)), np.zeros((count, size))
    energy, residuals = np.zeros(count), np.full((count, len(problem.names)), np.nan)
    bend = np.empty((size, size))
    packed = problem.packed
    for t in range(count):
        rest = problem.rest[min(low + t, len(problem.rest) - 1)]
        energy[t] = assemble(
            packed, q[t], problem.targets[low + t], problem.stiffness[low + t], min(held.cutoff, 1e12), rest,
            problem.rest_stiffness, normal[t], bend, gradient[t], residuals[t],
        )  # fmt: skip
    return normal, gradient, energy, residuals


def _differences(q: Floats, before: Floats) -> Floats:
    """Second differences (W + b - 2, D) of a window preceded by up to two settled frames (b, D)."""
    path = np.concatenate([before, q])
    return np.asarray(path[2:] - 2.0 * path[1:-1] + path[:-2])


def _solve_window(problem: SpringProblem, start: Floats, before: Floats, low: int, hold: Floats, rounds: int) -> Floats:
    body = problem.body
    q = start.copy()
    size, count = body.dimension, len(q)
    locked = body.locked if len(body.locked) else np.zeros(size, dtype=np.bool_)

    def energy_of(pose: Floats) -> float:
        frames = _frame_systems(problem, pose, low)[2].sum()
        return float(frames + 0.5 * (_differences(pose, before) ** 2 * hold).sum())

    damping = 1e-4
    normal, gradient, energies, _ = _frame_systems(problem, q, low)
    energy = float(energies.sum() + 0.5 * (_differences(q, before) ** 2 * hold).sum())
    for _ in range(rounds):
        band, slope = _banded(normal, gradient, q, before, hold)
        band[0] += damping * np.tile(problem.lever**2 * 1e-3, count) + damping * band[0]
        band[0, np.tile(locked, count)] += 1e15
        step = -cho_solve_banded((cholesky_banded(band, lower=True, check_finite=False), True), slope.ravel())
        trial = q + step.reshape(count, size)
        for pose in trial:
            clamp_coordinates(body.limits, pose)
        new = energy_of(trial)
        if new <= energy:
            done = energy - new < 1e-5 * count
            q, energy = trial, new
            damping = max(damping * 0.1, 1e-9)
            if done:
                break
            normal, gradient, _, _ = _frame_systems(problem, q, low)
        else:
            damping = max(damping * 10.0, 1e-3)
    return q


def _banded(normal: Floats, gradient: Floats, q: Floats, before: Floats, hold: Floats) -> tuple[Floats, Floats]:
    """Return the lower band (2 D + 1, W D) of the window's matrix and its gradient (W, D)."""
    count, size = q.shape
    band = np.zeros((2 * size + 1, count * size))
    for offset in range(size):
        rows = np.arange(offset, size)
        band[offset].reshape(count, size)[:, : size - offset] = normal[:, rows, rows - offset]
    slope = gradient.copy()
    kept = len(before)
    path = np.concatenate([before, q])
    taps = (1.0, -2.0, 1.0)
    for centre in range(1, len(path) - 1):
        bend = hold * (path[centre + 1] - 2.0 * path[centre] + path[centre - 1])
        for a in range(3):
            row = centre - 1 + a - kept
            if row < 0:
                continue
            slope[row] += taps[a] * bend
            for b in range(a + 1):
                column = centre - 1 + b - kept
                if column >= 0:
                    band[(row - column) * size, column * size : (column + 1) * size] += taps[a] * taps[b] * hold
    return band, slope


def _fit(problem: SpringProblem, coordinates: Floats, first: SkeletonFit) -> SkeletonFit:
    body = problem.body
    energy, residuals = np.empty(problem.frames), np.empty((problem.frames, len(problem.names)))
    sigma = np.empty((problem.frames, len(body.segment_names)))
    packed = problem.packed
    for low in range(0, problem.frames, 256):
        part = coordinates[low : low + 256]
        normal, _, energy[low : low + 256], residuals[low : low + 256] = _frame_systems(problem, part, low)
        # Sigma of the frame alone: an upper bound, since its neighbours add to what is known.
        for t in range(len(part)):
            joint_sigmas(packed, part[t], normal[t], sigma[low + t])
    blind = ~np.isfinite(residuals).any(axis=1)
    sigma[blind] = np.inf
    status: Ints = np.where(blind, kernels.NO_MARKERS, kernels.CONVERGED).astype(np.int64)
    trust, reason = judge(problem, residuals, status)
    return fit_of(
        body, problem.names, unwrapped(body, coordinates), residuals, robust_weights(problem, residuals), sigma, trust,
        reason, np.array(first.iterations), energy,
    )  # fmt: skip
