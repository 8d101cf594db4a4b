"""Bones that carry a surface: weights that make the skeleton in motion move the vertices as they were tracked.

``v_t = sum_j w_j B_jt B_jb^-1 v_b`` with the bones ``B`` (joint frames) at a frame t and at the binding frame b. The
weights of each vertex are least squares over frames spread through the recording, not negative, summing to one, at most
four bones of those near it; a pull to its nearest bones decides what the motion does not show.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from calibration.foundation.arrays import Floats, Ints
from skeleton.motion_files.motions import JointMotion

__all__ = ["Skin", "fit_skin"]

#: Frames that weights are fitted to.
FRAMES = 40
NEAR = 8
MOST = 4
"""Bones of a vertex that are tried, and that are kept."""
_PULL = 0.003
"""Weight of the pull to the nearest bones, as a share of the body's size that a vertex would be off for it."""


@dataclass(frozen=True, eq=False)
class Skin:
    """A surface on bones.

    Attributes:
        vertices: (V, 3) at the binding frame, mm.
        bones: (J, 4, 4) world from joint at that frame.
        joints: (V, 4) which bones carry a vertex.
        weights: (V, 4) how much, summing to 1.
        apart_mm: root mean square distance of the carried surface to the tracked one over the frames looked at.
    """

    vertices: Floats
    bones: Floats
    joints: NDArray[np.uint8]
    weights: Floats
    apart_mm: float


def fit_skin(motion: JointMotion, vertices_at: Callable[[int], Floats]) -> Skin:
    """Fit weights.

    Args:
        motion: skeleton of T frames, mm.
        vertices_at: gives the tracked vertices (V, 3) of one of these frames, mm.
    """
    places, turns = motion.poses()
    sample = np.unique(np.linspace(0, motion.frames - 1, min(FRAMES, motion.frames)).round().astype(np.int64))
    shape = places[sample] - places[sample].mean(axis=1, keepdims=True)
    bind = int(sample[np.argmin(np.linalg.norm(shape - np.median(shape, axis=0), axis=(1, 2)))])
    base = np.asarray(vertices_at(bind), dtype=np.float64)
    wanted = np.stack([np.asarray(vertices_at(int(frame)), dtype=np.float64) for frame in sample])
    local = np.einsum("jki,vjk->vji", turns[bind], base[:, None] - places[bind][None])  # (V, J, 3) in the bones
    near, share = _nearest_bones(base, places[bind], motion.parents)
    size = float(np.ptp(base, axis=0).max())
    pull = len(sample) * (_PULL * size) ** 2
    joints = np.zeros((len(base), MOST), dtype=np.uint8)
    weights = np.zeros((len(base), MOST))
    carried = np.empty_like(wanted)
    for vertex in range(len(base)):
        of = near[vertex]
        here = np.einsum("tkij,kj->tik", turns[sample][:, of], local[vertex, of]) + places[sample][:, of].swapaxes(1, 2)
        rows, goal = here.reshape(-1, len(of)), wanted[:, vertex].reshape(-1)
        best = _weights(rows, goal, share[vertex], pull)
        kept = np.argsort(best)[::-1][:MOST]
        best = _weights(rows[:, kept], goal, best[kept], pull)
        joints[vertex], weights[vertex] = of[kept], best
        carried[:, vertex] = (rows[:, kept] @ best).reshape(-1, 3)
    bones = np.tile(np.eye(4), (len(motion.names), 1, 1))
    bones[:, :3, :3], bones[:, :3, 3] = turns[bind], places[bind]
    apart = float(np.sqrt(((carried - wanted) ** 2).sum(axis=2).mean()))
    return Skin(base, bones, joints, weights, apart)


def _weights(rows: Floats, goal: Floats, start: Floats, pull: float) -> Floats:
    """Return weights (K,) of candidate places ``rows`` (3 T, K) for ``goal`` (3 T,): not negative, sum 1."""
    # Differences to the goal leave nothing but the sum free: with the sum at 1, |rows w - goal| = |(rows - goal) w|.
    apart = rows - goal[:, None]
    square = apart.T @ apart + pull * np.eye(len(start))
    root = np.linalg.cholesky(square)
    heavy = 1e3 * np.sqrt(np.trace(square))
    system = np.vstack([root.T, np.full((1, len(start)), heavy)])
    target = np.concatenate([pull * np.linalg.solve(root, start), [heavy]])
    found, _ = nnls(system, target)
    total = found.sum()
    return np.asarray(found / total) if total > 0 else np.asarray(start / start.sum())


def _nearest_bones(vertices: Floats, places: Floats, parents: tuple[int, ...]) -> tuple[Ints, Floats]:
    """Return which joints' segments lie nearest to each vertex (V, K), and shares of weight (V, K) that fall with it.

    A joint's segment goes from it to each of its children; that of a joint without children is the joint itself.
    """
    distance = np.linalg.norm(vertices[:, None] - places[None], axis=2)
    for child, parent in enumerate(parents):
        if parent < 0:
            continue
        along = places[child] - places[parent]
        length = max(float(along @ along), 1e-9)
        at = np.clip((vertices - places[parent]) @ along / length, 0.0, 1.0)
        gap = np.linalg.norm(vertices - places[parent] - at[:, None] * along, axis=1)
        distance[:, parent] = np.minimum(distance[:, parent], gap)
    near = np.argsort(distance, axis=1, kind="stable")[:, : min(NEAR, len(places))]
    close = np.take_along_axis(distance, near, axis=1)
    share = 1.0 / np.maximum(close, 1e-3 * close.max()) ** 4
    return near, share / share.sum(axis=1, keepdims=True)
