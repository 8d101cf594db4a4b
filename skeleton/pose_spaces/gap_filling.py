"""Gaps in a motion filled with the most likely motion, and how sure it is: Gaussian processes in the pose space.

Channels are the coordinates of a pose space learnt from the known frames, and the root's place and turn. Modes of alike
size share a kernel (`skeleton.pose_spaces.time_kernels`), found by likelihood around the gaps; every known frame near
a gap is a condition, and so is what of the body is still seen inside it (`skeleton.pose_spaces.seen_points`). Kriging
after Courty 2013; the mean is what to show, samples are motions that might have been. Where simple interpolation of a
joint does better in gaps made on purpose, the mean is drawn to it (`skeleton.pose_spaces.gap_mixing`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from calibration.foundation.arrays import Bools, Floats, Ints
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import rotation_from_vector, vector_from_rotation
from skeleton.pose_spaces.gap_mixing import can_be_mixed, learn_mixture, mixed_rotations
from skeleton.pose_spaces.principal_geodesics import PoseSpace, learn_pose_space
from skeleton.pose_spaces.time_kernels import (
    Conditioned,
    Stretch,
    TimeKernel,
    condition,
    find_period,
    fit_time_kernel,
    near_and_far,
)

__all__ = ["FilledMotion", "GapModel", "Motion", "fill_gaps", "gaps_of", "learn_gap_model"]

#: Pose coordinates are grouped for their kernels: the first ones, the next, the rest.
_GROUPS = (4, 12)
#: Known frames beside a gap, s, that are conditions, and about how many of them are used.
_REACH_S, _MOST = 3.4, 220
#: Standard deviations against those of the likeliest kernel, which fast stretches set: with 1, 77 to 87 % of the errors
#: are within 1 sigma. Chosen on CMU subjects 02, 05 and 09; no clip that is scored is of them.
_CALM = 0.75
#: Gaps around which kernels are learnt, and lengths of gaps for which mixtures are.
_LOOKS, _LENGTHS = 4, 3


class Motion(NamedTuple):
    """Rotations (T, J, 3, 3) parent-from-joint, the root's in the world, and root places (T, 3), mm."""

    rotations: Floats
    root: Floats


class GapModel(NamedTuple):
    """What is learnt from the known frames.

    Attributes:
        space: pose space of the known frames, all modes.
        groups: columns of each group of pose coordinates; the last group is the root's six numbers.
        kernels: a kernel for each group.
        rate_hz: frames per second.
        mixtures: weights (J, 3) of the processes' mean and of two interpolations, by the length of the gap.
    """

    space: PoseSpace
    groups: tuple[Ints, ...]
    kernels: tuple[TimeKernel, ...]
    rate_hz: float
    mixtures: dict[int, Floats]


@dataclass(frozen=True, eq=False)
class FilledMotion:
    """A motion without gaps.

    Attributes:
        rotations: (T, J, 3, 3) parent-from-joint, the root's in the world; frames that were known are untouched.
        root: (T, 3) root places, mm.
        filled: (T,) frames that were made up.
        rotation_sigma: (T, J, 3) standard deviation of each joint's turn about its own axes, rad; 0 where known.
        root_sigma: (T, 3) of the root's place, mm; 0 where known.
        samples: possible motions, each as long as this one.
    """

    rotations: Floats
    root: Floats
    filled: Bools
    rotation_sigma: Floats
    root_sigma: Floats
    samples: tuple[Motion, ...]


def gaps_of(known: Bools, most: int) -> list[tuple[int, int]]:
    """Return first and one past the last frame of each gap of at most ``most`` frames, known frames on both sides."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], ~known, [False]]).astype(int)))
    pairs = [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    return [(a, b) for a, b in pairs if a > 0 and b < len(known) and b - a <= most]


def learn_gap_model(
    motion: Motion, known: Bools, names: Sequence[str], *, body: str, rate_hz: float, gaps: Sequence[tuple[int, int]]
) -> GapModel:
    """Learn pose space and kernels from the known frames, the kernels around the gaps."""
    if known.sum() < 16:
        raise InputError(f"gaps: wanted at least 16 known frames to learn from, got {int(known.sum())}")
    every = np.flatnonzero(known)
    some = every[:: max(1, len(every) // 4000)]
    space = learn_pose_space(motion.rotations[some], names, body=body)
    kept = space.modes_for(0.99)
    edges = [0, *(edge for edge in _GROUPS if edge < kept), space.modes]
    groups = [np.arange(a, b) for a, b in pairwise(edges)]
    coordinates = np.zeros((len(known), space.modes))
    coordinates[known] = space.coordinates(motion.rotations[known])
    looks = [gaps[i] for i in np.unique(np.linspace(0, len(gaps) - 1, min(_LOOKS, len(gaps))).round().astype(int))]
    period = find_period(coordinates[:, :4], known, rate_hz)
    kernels = []
    for group in groups:
        columns = group[group < max(kept, group[0] + 1)]
        kernels.append(_likeliest(coordinates[:, columns], known, rate_hz, looks, period))
    stretches = []
    for look in looks:
        near = _near(known, look, rate_hz)
        channels, _ = _root_channels(motion, near, look)
        values = np.zeros((len(known), 6))
        values[near] = channels
        stretches.append(values)
    kernels.append(_likeliest(stretches[0], known, rate_hz, looks[:1], period))
    plain = GapModel(space, (*groups, np.arange(6)), tuple(kernels), rate_hz, {})
    return plain._replace(mixtures=_mixtures(plain, motion, known, gaps))


def _mixtures(model: GapModel, motion: Motion, known: Bools, gaps: Sequence[tuple[int, int]]) -> dict[int, Floats]:
    """Learn the mixtures for the shortest, a middle and the longest gap."""

    def predict(hidden: Bools, gap: tuple[int, int]) -> Floats:
        return gap_process(model, motion, hidden, gap).shown()[0]

    lengths = sorted({stop - first for first, stop in gaps})
    some = {lengths[i] for i in np.linspace(0, len(lengths) - 1, _LENGTHS).round().astype(int)}
    return {
        length: learn_mixture(
            predict, motion.rotations, known, [gap for gap in gaps if gap[1] - gap[0] == length], model.rate_hz
        )
        for length in sorted(some)
    }


def _near(known: Bools, gap: tuple[int, int], rate_hz: float) -> Ints:
    """Known frames within reach of a gap."""
    first, stop = gap
    reach = max(int(_REACH_S * rate_hz), 2 * (stop - first), 12)
    low = max(0, first - reach)
    return np.flatnonzero(known[low : stop + reach]) + low


def _likeliest(
    values: Floats, known: Bools, rate_hz: float, looks: Sequence[tuple[int, int]], period_s: float | None
) -> TimeKernel:
    """Fit a kernel at two rates: coarse over all that is within reach of the gaps, fine beside them."""
    stretches = []
    for first, stop in looks:
        near = _near(known, (first, stop), rate_hz)
        coarse = near[:: max(1, round(len(near) / 110))]
        beside = [np.arange(first - 64, first), np.arange(stop, stop + 64)]
        fine = [f[(f >= 0) & (f < len(known))] for f in beside]
        fine = [f[known[f]] for f in fine]
        for frames in [coarse, *(f for f in fine if len(f) >= 24)]:
            stretches.append(Stretch(frames / rate_hz, values[frames] - values[near].mean(axis=0)))
    plain, cost = fit_time_kernel(stretches, 1.0 / rate_hz)
    if period_s is None:
        return plain
    cyclic, other = fit_time_kernel(stretches, 1.0 / rate_hz, period_s=period_s)
    return cyclic if other < cost else plain


def _root_channels(motion: Motion, frames: Ints, gap: tuple[int, int]) -> tuple[Floats, tuple[Floats, Floats]]:
    """Place and turn (n, 6) of the root against a straight, evenly turning way; and that way (2, 6), by frame."""
    base = motion.rotations[gap[0] - 1, 0]
    turns = vector_from_rotation(base.T @ motion.rotations[frames, 0])
    # A body that turns round and round: the vector that goes on from the one before, seen from the gap outwards.
    channels = np.concatenate([motion.root[frames], turns], axis=1)
    line = np.stack([np.ones(len(frames)), frames.astype(float)], axis=1)
    way = np.linalg.lstsq(line, channels, rcond=None)[0]
    return channels - line @ way, (base, way)


def fill_gaps(
    motion: Motion,
    known: Bools,
    names: Sequence[str],
    *,
    body: str,
    rate_hz: float,
    most_s: float,
    samples: int = 0,
    seed: int = 0,
    model: GapModel | None = None,
) -> FilledMotion:
    """Fill gaps of at most ``most_s`` seconds.

    Args:
        motion: rotations and root places; what stands in unknown frames is not read.
        known: (T,) frames that are conditions.
        names: J joint names.
        body: name of the skeleton.
        rate_hz: frames per second.
        most_s: longest gap to fill; longer ones, and those at the ends, stay as they are.
        samples: possible motions to draw.
        seed: of the samples.
        model: what `learn_gap_model` learnt; learnt here by default.
    """
    known = np.asarray(known, np.bool_)
    if motion.rotations.shape[:2] != (len(known), len(names)) or motion.root.shape != (len(known), 3):
        raise InputError(f"gaps: wanted rotations ({len(known)}, {len(names)}, 3, 3), got {motion.rotations.shape}")
    if not (most_s > 0 and rate_hz > 0):
        raise InputError(f"gaps: wanted a longest gap above 0 s and a rate above 0 Hz, got {most_s} s, {rate_hz} Hz")
    gaps = gaps_of(known, round(most_s * rate_hz))
    out = Motion(np.array(motion.rotations), np.array(motion.root))
    drawn = tuple(Motion(np.array(motion.rotations), np.array(motion.root)) for _ in range(samples))
    filled = np.zeros(len(known), np.bool_)
    sigma, root_sigma = np.zeros((*motion.rotations.shape[:2], 3)), np.zeros_like(out.root)
    if gaps:
        learnt = model or learn_gap_model(motion, known, names, body=body, rate_hz=rate_hz, gaps=gaps)
        rng = np.random.default_rng(seed)
        for gap in gaps:
            frames = slice(*gap)
            process = gap_process(learnt, motion, known, gap)
            rotations, root, sigma[frames], root_sigma[frames] = process.shown()
            out.rotations[frames], out.root[frames], filled[frames] = rotations, root, True
            for one in drawn:
                one.rotations[frames], one.root[frames] = process.motion(process.draw(rng))
    return FilledMotion(out.rotations, out.root, filled, sigma, root_sigma, drawn)


@dataclass(frozen=True, eq=False)
class GapProcess:
    """The conditioned channels of one gap of g frames.

    Attributes:
        model: what was learnt.
        parts: per group, mean (g, c), shape (g, g) and scale (c,); values are against ``levels``.
        levels: (g, modes + 6) what the channels are taken against.
        base: (3, 3) turn that the root's turns are taken from.
    """

    model: GapModel
    parts: tuple[Conditioned, ...]
    levels: Floats
    base: Floats

    @property
    def mean(self) -> Floats:
        """(g, modes + 6) most likely channels."""
        return np.asarray(self.levels + np.concatenate([part.mean for part in self.parts], axis=1))

    @property
    def deviations(self) -> Floats:
        """(g, modes + 6) their standard deviations."""
        return np.concatenate(
            [np.sqrt(np.maximum(np.diag(part.shape), 0.0))[:, None] * np.sqrt(part.scale) for part in self.parts],
            axis=1,
        )

    def draw(self, rng: np.random.Generator) -> Floats:
        """Return (g, modes + 6) channels that might have been."""
        columns = []
        for part in self.parts:
            values, vectors = np.linalg.eigh(part.shape)
            spread = vectors * np.sqrt(np.maximum(values, 0.0))
            noise = rng.normal(size=part.mean.shape)
            columns.append(part.mean + (spread @ noise) * np.sqrt(part.scale))
        return np.asarray(self.levels + np.concatenate(columns, axis=1))

    def motion(self, channels: Floats) -> Motion:
        """Return rotations (g, J, 3, 3) and root places (g, 3) of channels."""
        modes = self.model.space.modes
        rotations = self.model.space.rotations(channels[:, :modes])
        rotations[:, 0] = self.base @ rotation_from_vector(channels[:, modes + 3 :])
        return Motion(rotations, channels[:, modes : modes + 3])

    def shown(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Return rotations, root places, rotation sigmas (g, J, 3) and root sigmas (g, 3) of the mean."""
        space, deviations = self.model.space, self.deviations
        rotations, root = self.motion(self.mean)
        sigma = np.zeros((len(root), len(space.names), 3))
        spread = np.sqrt(deviations[:, : space.modes] ** 2 @ (space.directions**2).T)
        sigma[:, space.used] = spread.reshape(len(root), -1, 3)
        sigma[:, 0] = deviations[:, space.modes + 3 :]
        return rotations, root, sigma, deviations[:, space.modes : space.modes + 3]


def gap_process(model: GapModel, motion: Motion, known: Bools, gap: tuple[int, int]) -> GapProcess:
    """Condition the channels of one gap on the known frames near it."""
    rate, space = model.rate_hz, model.space
    first, stop = gap
    frames = near_and_far(_near(known, gap, rate), first, stop, near=14, most=_MOST)
    wanted = np.arange(first, stop)
    coordinates = space.coordinates(motion.rotations[frames])
    middle = coordinates.mean(axis=0)
    rest, (base, way) = _root_channels(motion, frames, gap)
    values = np.concatenate([coordinates - middle, rest], axis=1)
    line = np.stack([np.ones(len(wanted)), wanted.astype(float)], axis=1) @ way
    levels = np.concatenate([np.repeat(middle[None], len(wanted), axis=0), line], axis=1)
    parts = []
    for number, (group, kernel) in enumerate(zip(model.groups, model.kernels, strict=True)):
        columns = group if number < len(model.groups) - 1 else space.modes + group
        part = condition(kernel, frames / rate, values[:, columns], wanted / rate)
        parts.append(part._replace(scale=_CALM**2 * part.scale))
    process = GapProcess(model, tuple(parts), levels, base)
    # Frames that are known after all are met, not mixed.
    if model.mixtures and can_be_mixed(known, gap) and not known[first:stop].any():
        return _mixed(process, motion, gap)
    return process


def _mixed(process: GapProcess, motion: Motion, gap: tuple[int, int]) -> GapProcess:
    """Draw the means of the pose coordinates to the mixture for gaps of this length; the root stays."""
    model = process.model
    length = min(model.mixtures, key=lambda other: abs(other - (gap[1] - gap[0])))
    rotations = mixed_rotations(process.shown()[0], motion.rotations, gap, model.mixtures[length])
    coordinates = model.space.coordinates(rotations) - process.levels[:, : model.space.modes]
    poses = [
        part._replace(mean=coordinates[:, group])
        for part, group in zip(process.parts[:-1], model.groups[:-1], strict=True)
    ]
    return replace(process, parts=(*poses, process.parts[-1]))
