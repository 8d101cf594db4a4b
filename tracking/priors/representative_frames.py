"""Few poses that stand for many: repeated k-means over chunks of the frames, snapped to real poses.

`pose-spaces`, B1: cluster a first chunk, keep the centres, add an unseen chunk, cluster again, until all
frames were seen. The order of the frames in time is discarded on purpose. Centres are snapped to the nearest
real pose, since an average of rotation logarithms need not be a pose the subject can take.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError

__all__ = ["representative_frames"]


def representative_frames(poses: Floats, count: int, *, chunk: int = 8000, seed: int = 0, sweeps: int = 10) -> Ints:
    """Choose frames whose poses cover the set.

    Args:
        poses: (N, D) pose vectors; rows with NaN are never chosen.
        count: number of frames wanted.
        chunk: frames clustered at a time with the centres so far.
        seed: of the order in which frames are seen.
        sweeps: most k-means iterations of each chunk.

    Returns:
        (count,) sorted, distinct frame indices; all valid frames where there are not more than ``count``.
    """
    poses = np.asarray(poses, float)
    if poses.ndim != 2:
        raise InputError(f"representative frames: poses must be (N, D), got {poses.shape}")
    if count < 1:
        raise InputError(f"representative frames: wanted at least 1 frame, got {count}")
    valid = np.flatnonzero(np.isfinite(poses).all(axis=1))
    if len(valid) == 0:
        raise InputError("representative frames: every pose holds NaN")
    if len(valid) <= count:
        return np.asarray(valid, np.int64)
    order = np.random.default_rng(seed).permutation(valid)
    centres = poses[order[:0]]
    weights = np.empty(0)
    for begin in range(0, len(order), chunk):
        fresh = poses[order[begin : begin + chunk]]
        points = np.concatenate([centres, fresh])
        # A centre stands for all the frames it already absorbed.
        mass = np.concatenate([weights, np.ones(len(fresh))])
        centres, weights = _cluster(points, mass, min(count, len(points)), sweeps)
    return _snapped(poses[valid], valid, centres)


def _cluster(points: Floats, mass: Floats, count: int, sweeps: int) -> tuple[Floats, Floats]:
    """Weighted k-means from farthest-point seeds; returns centres and the mass of each."""
    centres = points[_farthest_points(points, count)]
    nearest = np.full(len(points), -1, np.int64)
    for _ in range(sweeps):
        _, now = cKDTree(centres).query(points)
        if np.array_equal(now, nearest):
            break
        nearest = np.asarray(now, np.int64)
        share = np.bincount(nearest, mass, minlength=count)
        for axis in range(points.shape[1]):
            total = np.bincount(nearest, mass * points[:, axis], minlength=count)
            centres[:, axis] = np.where(share > 0, total / np.maximum(share, 1e-300), centres[:, axis])
    return centres, np.asarray(np.bincount(nearest, mass, minlength=count), float)


def _farthest_points(points: Floats, count: int) -> Ints:
    """Greedy seeds: each is the point farthest from those before it; the first is nearest to the mean."""
    chosen = np.empty(count, np.int64)
    chosen[0] = np.argmin(np.sum((points - points.mean(axis=0)) ** 2, axis=1))
    gap = np.sum((points - points[chosen[0]]) ** 2, axis=1)
    for k in range(1, count):
        chosen[k] = np.argmax(gap)
        gap = np.minimum(gap, np.sum((points - points[chosen[k]]) ** 2, axis=1))
    return chosen


def _snapped(poses: Floats, frames: Ints, centres: Floats) -> Ints:
    """Nearest real pose of each centre, no frame twice."""
    taken = np.zeros(len(poses), bool)
    tree = cKDTree(poses)
    chosen: list[int] = []
    for centre in centres:
        width = 8
        while True:
            _, near = tree.query(centre, k=min(width, len(poses)))
            free = [int(i) for i in np.atleast_1d(near) if not taken[i]]
            if free:
                break
            width *= 4
        taken[free[0]] = True
        chosen.append(free[0])
    return np.sort(frames[np.array(chosen, np.int64)])
