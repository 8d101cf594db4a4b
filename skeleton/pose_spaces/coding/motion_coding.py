"""Motion in few bytes: pose coordinates in a metric of millimetres, transformed over time, rounded, range coded.

Directions are principal in the metric ``M = mean of sum_i w_i J_i^T J_i``, J_i the derivative of joint centre i by the
joints' logarithms: a unit of any coordinate then moves the joints equally far, one step serves all, and directions that
matter less than the step vanish by themselves. End joints weigh more, so that feet stand after decoding. Each stretch
of frames goes through a cosine transform; the root's path and turn (a quaternion, which has no singular place) with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.fft import dct, idct

from calibration.foundation.arrays import HUGE, Floats, Ints
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import (
    mean_rotation,
    quaternion_from_rotation,
    rotation_from_quaternion,
    rotation_from_vector,
    vector_from_rotation,
)
from skeleton.pose_spaces.rotation_tree import RotationTree, place_rotations
from skeleton.tree.joint_tree import Pose

__all__ = ["CodedMotion", "code_motion", "decode_motion", "end_joints", "same_sides"]

#: Frames transformed at a time.
STRETCH = 128
#: Rounding: what lies below 1 - this of a step becomes 0; shown nearer to 0 by the second, since small is likelier.
_ROUND, _SHRINK = 0.33, 0.05
#: Weight of an end joint's error beside that of others.
END_WEIGHT = 4.0


@dataclass(frozen=True, eq=False)
class CodedMotion:
    """A motion as whole numbers.

    Attributes:
        names, parents, offsets, up: the body.
        rate_hz: frames per second.
        frames: number of frames.
        step: step of the coefficients, mm.
        mean: (J, 3) rotation vectors of the mean pose.
        levels: (7 + k,) mean of root place, root quaternion and coordinates, in their units.
        scales: (2,) units of the root's place and quaternion.
        direction_steps: (k,) step of the entries of each direction.
        directions: (k, 3 J) whole numbers.
        coefficients: ((7 + k) * stretches, width) whole numbers, channel by channel.
    """

    names: tuple[str, ...]
    parents: Ints
    offsets: Floats
    up: str
    rate_hz: float
    frames: int
    step: float
    mean: Floats
    levels: Floats
    scales: Floats
    direction_steps: Floats
    directions: Ints
    coefficients: Ints

    @property
    def tree(self) -> RotationTree:
        """The body."""
        return RotationTree(self.names, self.parents, self.offsets, self.up)

    @property
    def modes(self) -> int:
        """Number of pose directions k."""
        return len(self.direction_steps)


def end_joints(tree: RotationTree) -> Ints:
    """Return the joints whose error weighs more: those without children, and their parents."""
    ends = np.array(tree.ends, dtype=np.int64)
    return np.unique(np.concatenate([ends, tree.parents[ends]]))


def same_sides(quaternions: Floats) -> Floats:
    """Return (T, 4) quaternions that do not change sign from frame to frame."""
    flips = np.sign(np.sum(quaternions[1:] * quaternions[:-1], axis=1))
    signs = np.concatenate([[1.0], np.cumprod(np.where(flips < 0, -1.0, 1.0))])
    return np.asarray(quaternions * signs[:, None])


def _metric(tree: RotationTree, pose: Pose, weights: Floats) -> Floats:
    """(3 J, 3 J) mean over frames of the weighted squared motion of joint centres per turn of the joints."""
    joints = len(tree.names)
    out = np.zeros((3 * joints, 3 * joints))
    for joint in range(1, joints):
        above: list[int] = []
        parent = int(tree.parents[joint])
        while parent > 0:
            above.append(parent)
            parent = int(tree.parents[parent])
        if not above:
            continue
        lever = pose.positions[:, joint, None] - pose.positions[:, above]
        axes = np.swapaxes(pose.rotations[:, above], -1, -2)
        moved = np.cross(axes, lever[:, :, None, :]).reshape(len(lever), -1, 3)
        columns = (3 * np.array(above)[:, None] + np.arange(3)).ravel()
        out[np.ix_(columns, columns)] += weights[joint] * np.einsum("tax,tbx->ab", moved, moved) / len(lever)
    return out


def _stretches(frames: int) -> list[tuple[int, int]]:
    """First and one past the last frame of each stretch, all nearly equally long."""
    count = max(1, round(frames / STRETCH))
    edges = np.linspace(0, frames, count + 1).round().astype(int)
    return [(int(a), int(b)) for a, b in pairwise(edges)]


def _rounded(values: Floats, step: Floats | float) -> Ints:
    return np.asarray(np.sign(values) * np.floor(np.abs(values) / step + _ROUND), dtype=np.int64)


def code_motion(
    tree: RotationTree,
    rotations: Floats,
    root: Floats,
    *,
    rate_hz: float,
    step_mm: float,
    end_weight: float = END_WEIGHT,
) -> CodedMotion:
    """Code a motion.

    Args:
        tree: the body.
        rotations: (T, J, 3, 3) parent-from-joint, the root's in the world; no NaN.
        root: (T, 3) root places, mm.
        rate_hz: frames per second.
        step_mm: coarseness; the error of a joint comes out at about a third of it.
        end_weight: weight of end joints.
    """
    frames, joints = rotations.shape[:2]
    if frames < 2 or joints != len(tree.names):
        raise InputError(
            f"coded motion: wanted 2 frames or more of {len(tree.names)} joints, got {rotations.shape[:2]}"
        )
    if not (np.isfinite(rotations).all() and np.isfinite(root).all() and step_mm > 0):
        raise InputError("coded motion: wanted rotations and root places without NaN, and a step above 0 mm")
    mean = mean_rotation(rotations)
    mean[0] = np.eye(3)
    shown_mean = np.asarray(vector_from_rotation(mean), dtype=np.float32).astype(float)
    mean = rotation_from_vector(shown_mean)
    tangents = vector_from_rotation(np.swapaxes(mean, -1, -2) @ rotations).reshape(frames, -1)
    weights = np.ones(joints)
    weights[end_joints(tree)] = end_weight
    some = slice(None, None, max(1, frames // 200))
    pose = place_rotations(tree, rotations[some], root[some])
    lever = np.sqrt((weights * ((pose.positions - pose.positions[:, :1]) ** 2).sum(2)).sum(1).mean())
    # A turn that moves no joint centre (an end's own) counts as a lever of a hundredth of the body.
    metric = _metric(tree, pose, weights) + (0.01 * lever) ** 2 * np.eye(3 * joints)
    factor = np.linalg.cholesky(metric)
    stretched = tangents[:, 3:] @ factor[3:, 3:]
    values, vectors = np.linalg.eigh(np.cov(stretched.T))
    order = np.argsort(values)[::-1]
    coordinates = stretched @ vectors[:, order]
    scales = np.array([np.sqrt(weights.sum()), 2.0 * np.sqrt(2.0 / 3.0) * lever], dtype=np.float32).astype(float)
    turn = same_sides(quaternion_from_rotation(rotations[:, 0]))
    channels = np.concatenate([scales[0] * root, scales[1] * turn, coordinates], axis=1)
    levels = channels.mean(axis=0).astype(np.float32).astype(float)
    # The step is in mm of one joint; the metric sums the squares of all.
    step = float(np.float32(step_mm))
    table, used = _transformed(channels - levels, step, frames)
    kept = used[used >= 7] - 7
    # Directions in logarithms: u = E y with E = F^-T V, as fine as their coordinates are large.
    inverse = np.linalg.solve(factor[3:, 3:].T, vectors[:, order[kept]])
    spread = np.maximum(np.sqrt(np.maximum(values[order[kept]], 0.0)), 1e-9)
    fine = 0.7 * step / spread / np.sqrt(len(kept) + 1.0)
    # In the metric the columns of V are of unit length: rounding E by s moves y by about s sqrt(mean eigenvalue).
    grain = (np.minimum(fine, 0.25) / np.sqrt(np.trace(metric) / (3 * joints))).astype(np.float32).astype(float)
    return CodedMotion(
        tree.names, tree.parents, tree.offsets, tree.up, rate_hz, frames, step, shown_mean,
        levels[np.concatenate([np.arange(7), 7 + kept])], scales, grain,
        np.asarray(np.round(inverse / grain).T, dtype=np.int64), table,
    )  # fmt: skip


def _transformed(channels: Floats, step: float, frames: int) -> tuple[Ints, Ints]:
    """Return whole coefficients ((7 + k) * stretches, width) and the channels kept: root, and all that are not 0."""
    parts = [_rounded(dct(channels[a:b], axis=0, norm="ortho"), step) for a, b in _stretches(frames)]
    used = np.flatnonzero(np.any([(part != 0).any(axis=0) for part in parts], axis=0))
    used = np.union1d(np.arange(7), used)
    width = max(1, *(int(np.flatnonzero((part[:, used] != 0).any(axis=1)).max(initial=0)) + 1 for part in parts))
    rows = [np.pad(part, ((0, max(0, width - len(part))), (0, 0)))[:width, used].T for part in parts]
    return np.stack(rows, axis=1).reshape(len(used) * len(parts), width), used


def decode_motion(coded: CodedMotion) -> tuple[Floats, Floats]:
    """Return rotations (T, J, 3, 3) parent-from-joint and root places (T, 3) of a coded motion."""
    with np.errstate(all="ignore"):  # of a damaged one: said below
        rotations, places = _decoded(coded)
    if not (np.isfinite(rotations).all() and (np.abs(places) <= HUGE).all()):
        raise InputError("coded motion: damaged, its numbers lead to infinite turns or places")
    return rotations, places


def _decoded(coded: CodedMotion) -> tuple[Floats, Floats]:
    spans = _stretches(coded.frames)
    width = coded.coefficients.shape[1]
    table = coded.coefficients.reshape(-1, len(spans), width)
    shown = (table - _SHRINK * np.sign(table)) * coded.step
    channels = np.empty((coded.frames, len(table)))
    for number, (a, b) in enumerate(spans):
        spectrum = np.zeros((b - a, len(table)))
        part = shown[:, number, : b - a].T
        spectrum[: len(part)] = part
        channels[a:b] = idct(spectrum, axis=0, norm="ortho")
    channels += coded.levels
    joints = len(coded.names)
    directions = coded.directions * coded.direction_steps[:, None]
    tangents = np.zeros((coded.frames, 3 * joints))
    tangents[:, 3:] = channels[:, 7:] @ directions
    rotations = rotation_from_vector(coded.mean) @ rotation_from_vector(tangents.reshape(-1, joints, 3))
    rotations[:, 0] = rotation_from_quaternion(channels[:, 3:7] / coded.scales[1])
    return np.asarray(rotations), np.asarray(channels[:, :3] / coded.scales[0])
