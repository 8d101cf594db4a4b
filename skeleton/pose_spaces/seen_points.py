"""Points that are still seen inside a gap as conditions on its motion.

The channels of all frames of the gap have the Gaussian process's mean and covariance; points seen in a frame pull that
frame through forward kinematics. The most likely motion is found by Gauss-Newton over the whole gap.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import left_jacobian
from skeleton.pose_spaces.gap_filling import GapProcess
from skeleton.pose_spaces.posing import HandleSet
from skeleton.pose_spaces.rotation_tree import RotationTree, place_rotations
from skeleton.pose_spaces.time_kernels import Conditioned

__all__ = ["with_seen_points"]

#: Pose coordinates that points may move; the others keep what the process says.
_MOST_MODES = 30
#: Frames solved together; longer gaps are solved at every so many frames and the rest conditioned on them.
_MOST_FRAMES = 48


def with_seen_points(
    process: GapProcess, tree: RotationTree, handles: HandleSet, points: Floats, sigma: Floats, *, rounds: int = 6
) -> GapProcess:
    """Return the process conditioned also on points seen inside the gap.

    Args:
        process: a gap's process of g frames.
        tree: the body.
        handles: which points of the body they are.
        points: (g, H, 3) where they were seen, mm; NaN where not.
        sigma: (H,) or (g, H) how exactly, mm.
    """
    frames = len(process.levels)
    if points.shape != (frames, len(handles.joints), 3):
        raise InputError(f"seen points: wanted ({frames}, {len(handles.joints)}, 3), got {points.shape}")
    seen = np.asarray(np.isfinite(points).all(axis=2))
    if not seen.any():
        return process
    modes = process.model.space.modes
    chosen = np.arange(0, frames, max(1, int(np.ceil(frames / _MOST_FRAMES))))
    some = np.concatenate([np.arange(min(modes, _MOST_MODES)), modes + np.arange(6)])
    channels = process.mean
    precision, count = _precision(process, chosen, some), len(chosen)
    weights = np.where(seen, np.broadcast_to(np.asarray(sigma, float), seen.shape) ** -2.0, 0.0)[chosen]
    prior = channels[np.ix_(chosen, some)]
    x = prior.copy()
    covariance: Floats = np.empty((0, 0))
    for _ in range(rounds):
        full = channels[chosen].copy()
        full[:, some] = x
        shown, slopes = _points_and_slopes(process, tree, handles, full, some)
        apart = np.where(seen[chosen][..., None], shown - points[chosen], 0.0)
        normal = precision.copy()
        gradient = (precision @ (x - prior).ravel()).reshape(count, -1)
        for t in range(count):
            rows = slopes[t].reshape(-1, len(some))
            w = np.repeat(weights[t], 3)
            block = slice(t * len(some), (t + 1) * len(some))
            normal[block, block] += rows.T @ (w[:, None] * rows)
            gradient[t] += rows.T @ (w * apart[t].ravel())
        covariance = np.asarray(np.linalg.inv(normal), np.float64)
        step = -(covariance @ gradient.ravel()).reshape(count, -1)
        x = x + step
        if np.abs(step).max() < 1e-6:
            break
    return _updated(process, chosen, some, x - prior, covariance)


def _precision(process: GapProcess, chosen: np.ndarray, some: np.ndarray) -> Floats:
    """Inverse prior covariance of the chosen frames and channels, frame by frame."""
    count, width = len(chosen), len(some)
    out = np.zeros((count, width, count, width))
    start = 0
    for part in process.parts:
        shape = part.shape[np.ix_(chosen, chosen)]
        inverse = np.linalg.inv(shape + 1e-9 * max(float(np.trace(shape)) / count, 1e-12) * np.eye(count))
        for column in range(len(part.scale)):
            place = np.flatnonzero(some == start + column)
            if len(place):
                out[:, place[0], :, place[0]] = inverse / part.scale[column]
        start += len(part.scale)
    return out.reshape(count * width, count * width)


def _points_and_slopes(
    process: GapProcess, tree: RotationTree, handles: HandleSet, channels: Floats, some: np.ndarray
) -> tuple[Floats, Floats]:
    """Points (n, H, 3) of channels (n, modes + 6) and their derivatives (n, H, 3, some)."""
    space = process.model.space
    modes = space.modes
    motion = process.motion(channels)
    pose = place_rotations(tree, motion.rotations, motion.root)
    points = pose.points(handles.joints, handles.offsets)
    tangents = (channels[:, :modes] @ space.directions.T).reshape(len(channels), -1, 3)
    few = some[some < modes]
    directions = space.directions[:, few].reshape(-1, 3, len(few))
    # World angular velocity of each used joint, and of the root, per unit of a channel.
    spins = pose.rotations[:, space.used] @ (left_jacobian(-tangents) @ directions)
    turning = pose.rotations[:, 0] @ left_jacobian(-channels[:, modes + 3 :])
    out = np.zeros((*points.shape, len(some)))
    number = {int(joint): i for i, joint in enumerate(space.used)}
    for h, joint in enumerate(handles.joints):
        above = int(joint)
        while above > 0:
            if above in number:
                lever = points[:, h] - pose.positions[:, above]
                out[:, h, :, : len(few)] += np.cross(spins[:, number[above]], lever[:, :, None], axis=1)
            above = int(tree.parents[above])
        lever = points[:, h] - pose.positions[:, 0]
        out[:, h, :, len(few) : len(few) + 3] = np.eye(3)
        out[:, h, :, len(few) + 3 :] = np.cross(turning, lever[:, :, None], axis=1)
    return points, out


def _updated(
    process: GapProcess, chosen: np.ndarray, some: np.ndarray, moved: Floats, covariance: Floats
) -> GapProcess:
    """The process whose chosen frames moved; frames between follow by the process's own covariance."""
    count, width = moved.shape
    table = covariance.reshape(count, width, count, width)
    parts = []
    start = 0
    for part in process.parts:
        shape = part.shape[np.ix_(chosen, chosen)]
        gain = part.shape[:, chosen] @ np.linalg.inv(
            shape + 1e-9 * max(float(np.trace(shape)) / count, 1e-12) * np.eye(count)
        )
        mean = part.mean.copy()
        for column in range(len(part.scale)):
            place = np.flatnonzero(some == start + column)
            if len(place):
                mean[:, column] += gain @ moved[:, place[0]]
        parts.append(_narrowed(part, mean, gain, table, some, start, chosen))
        start += len(part.scale)
    return replace(process, parts=tuple(parts))


def _narrowed(
    part: Conditioned, mean: Floats, gain: Floats, table: Floats, some: np.ndarray, start: int, chosen: np.ndarray
) -> Conditioned:
    """A part with its covariance narrowed: ``S - G (S_cc - P) G^T``, P the mean posterior of its columns."""
    places = [int(np.flatnonzero(some == start + c)[0]) for c in range(len(part.scale)) if (some == start + c).any()]
    if not places:
        return Conditioned(mean, part.shape, part.scale)
    columns = [c for c in range(len(part.scale)) if (some == start + c).any()]
    posterior = np.mean([table[:, p, :, p] / part.scale[c] for p, c in zip(places, columns, strict=True)], axis=0)
    shape = part.shape - gain @ (part.shape[np.ix_(chosen, chosen)] - posterior) @ gain.T
    # Each column its own scale, so that its marginal variance comes out right on average over the gap.
    scale = part.scale.copy()
    middle = max(float(np.trace(posterior)), 1e-18)
    for p, c in zip(places, columns, strict=True):
        scale[c] = float(np.trace(table[:, p, :, p])) / middle
    return Conditioned(mean, np.asarray(0.5 * (shape + shape.T)), scale)
