"""Geometric constraints of a rigid part against a frame: where it is fixed, turns about a line, or about a point.

Le Callennec (EPFL thesis 3459, 2006, chapter 6). From poses W_i of the part in a frame (the floor, a belt, another
segment), the step ``D_i = W_i^-1 W_(i+1)`` in the part's own frame says what it does: *space* if it neither turns nor
moves, *line* if it turns and does not slip along its axis, *point* if successive axes meet. Thresholds are what
templates show, by least median of squares, and change with time between them. Without templates the part's slow,
recurring intervals are taken for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.ndimage import median_filter

from calibration.foundation.arrays import Bools, Floats, frozen
from calibration.foundation.errors import InputError
from skeleton.analysis.stances import least_median, otsu_split, runs_of

__all__ = ["GeometricConstraint", "Template", "find_constraints", "instant_motion"]

KINDS = ("space", "line", "point")
_JITTER = 2.6
"""Greatest of a thousand lengths of noise against their median (Maxwell): a template of few steps may miss it."""


@dataclass(frozen=True)
class Template:
    """Frames ``first`` to ``last`` in which the part is known to be constrained; kind "space" or "line"."""

    kind: str
    first: int
    last: int


@dataclass(frozen=True, eq=False)
class GeometricConstraint:
    """What a part does over some frames.

    Attributes:
        kind: "space", "line" or "point".
        first, last: frames, both in it.
        place: (3,) in the frame: mean of the part's origin (space), a point of the axis (line), the point.
        axis: (3,) unit vector of a line, NaN otherwise.
        spread_mm: how far the place wanders, root mean square.
        confidence: 0 to 1: how far the steps lie below their thresholds.
    """

    kind: str
    first: int
    last: int
    place: Floats
    axis: Floats
    spread_mm: float
    confidence: float


@dataclass(frozen=True, eq=False)
class InstantMotion:
    """Per step: ``turn`` (N,) 2 sin(angle / 2), ``shift`` (N,) of the origin and ``slip`` (N,) along the axis, mm;
    ``places`` (N, 3) of the axis nearest the origin and ``axes`` (N, 3), in the frame."""

    turn: Floats
    shift: Floats
    slip: Floats
    places: Floats
    axes: Floats


def instant_motion(poses: Floats, *, local: bool = True) -> InstantMotion:
    """Return what a part does from frame to frame; poses (T, 4, 4).

    ``local`` False takes the step in the frame instead (``W_(i+1) W_i^-1``), whose translation grows with the distance
    from the frame's origin: kept to show why it is not used.
    """
    inverse = np.linalg.inv(poses)
    steps = inverse[:-1] @ poses[1:] if local else poses[1:] @ inverse[:-1]
    rotation, shift = steps[:, :3, :3], steps[:, :3, 3]
    vector = 0.5 * np.stack(
        [
            rotation[:, 2, 1] - rotation[:, 1, 2],
            rotation[:, 0, 2] - rotation[:, 2, 0],
            rotation[:, 1, 0] - rotation[:, 0, 1],
        ],
        axis=1,
    )
    sine = np.linalg.norm(vector, axis=1)
    angle = np.arctan2(sine, 0.5 * (np.trace(rotation, axis1=1, axis2=2) - 1.0))
    axes = vector / np.maximum(sine, 1e-12)[:, None]
    slip = np.abs((shift * axes).sum(axis=1))
    # The axis' point nearest the origin: p = (t_ + cot(angle / 2) a x t_) / 2, t_ the step across the axis.
    across = shift - (shift * axes).sum(axis=1)[:, None] * axes
    half = 1.0 / np.tan(np.maximum(0.5 * angle, 1e-9))
    places = 0.5 * (across + half[:, None] * np.cross(axes, across))
    if local:
        places = np.einsum("nij,nj->ni", poses[:-1, :3, :3], places) + poses[:-1, :3, 3]
        axes = np.einsum("nij,nj->ni", poses[:-1, :3, :3], axes)
    return InstantMotion(2.0 * np.sin(0.5 * angle), np.linalg.norm(shift, axis=1), slip, places, axes)


def find_constraints(
    poses: Floats,
    rate_hz: float,
    *,
    templates: Sequence[Template] = (),
    robust: bool = True,
    local: bool = True,
    size_mm: float = 100.0,
    least_s: float = 0.08,
) -> list[GeometricConstraint]:
    """Return the constraints of a part, in the order of time, none overlapping another.

    Args:
        poses: (T, 4, 4) part in the frame, mm.
        rate_hz: frames per second.
        templates: frames that are known; none: the slow, recurring ones.
        robust: thresholds by least median of squares; False takes the templates' plain maximum.
        local: see `instant_motion`.
        size_mm: of the part: what turns are compared with shifts by, and how near places are alike.
        least_s: shorter constraints are dropped.
    """
    poses = np.asarray(poses, dtype=np.float64)
    if poses.ndim != 3 or poses.shape[1:] != (4, 4) or len(poses) < 4 or not np.isfinite(poses).all():
        raise InputError(f"constraints: wanted finite poses (T, 4, 4) of 4 frames or more, got {poses.shape}")
    for one in templates:
        if one.kind not in KINDS[:2] or not 0 <= one.first < one.last < len(poses):
            raise InputError(f"template {one}: wanted space or line, and frames of 0 to {len(poses) - 1} in order")
    motion = instant_motion(poses, local=local)
    chosen = list(templates) or _slow_intervals(motion, size_mm, max(2, round(least_s * rate_hz)))
    if not chosen:
        return []
    frames = np.arange(len(motion.turn), dtype=np.float64)
    space = [one for one in chosen if one.kind == "space"]
    line = [one for one in chosen if one.kind == "line"]
    still = np.zeros(len(frames), dtype=np.bool_)
    if space:
        # A median of three keeps the ends and forgives a single step.
        turns, shifts = (
            _threshold(values, space, frames, robust=robust, pooled=not templates)
            for values in (motion.turn, motion.shift)
        )
        # What moves the part's far end no more than its origin may move is no turn, and the other way round.
        turns, shifts = np.maximum(turns, shifts / size_mm), np.maximum(shifts, size_mm * turns)
        still = (median_filter(motion.turn, 3) <= turns) & (median_filter(motion.shift, 3) <= shifts)
    turning = np.zeros(len(frames), dtype=np.bool_)
    if line:
        turning = (
            ~still
            & (motion.slip <= _threshold(motion.slip, line, frames, robust=robust, pooled=False))
            & (motion.turn > 1e-6)
        )
    least = max(2, round(least_s * rate_hz))
    found = _spaces(poses, motion, still, size_mm, least)
    found += _lines(motion, turning, found, size_mm, least)
    return sorted(found, key=lambda one: one.first)


def _slow_intervals(motion: InstantMotion, size_mm: float, least: int) -> list[Template]:
    """Return the recurring slow intervals as templates: the slow class of the part's whole motion."""
    speed = motion.shift + size_mm * motion.turn
    floor = max(1e-6, 1e-4 * float(speed.max()))
    split, explained = otsu_split(np.log(np.maximum(speed, floor)))
    if explained < 0.6:
        return [Template("space", 0, len(speed) - 1)] if float(speed.max()) < 0.02 * size_mm else []
    return [
        Template("space", start, min(stop, len(speed)) - 1)
        for start, stop in runs_of(np.asarray(np.log(np.maximum(speed, floor)) < split, dtype=np.bool_))
        if stop - start >= least
    ]


def _threshold(values: Floats, templates: Sequence[Template], frames: Floats, *, robust: bool, pooled: bool) -> Floats:
    """(N,) the threshold at each step: what templates show at their ends, smooth between them, constant beyond."""
    limits: list[float] = []
    for one in templates:
        own = values[one.first : one.last]
        limit = float(own.max())
        if robust and len(own) >= 3:
            middle, sigma = least_median(own)
            kept = own[(own - middle) ** 2 < max((2.5 * sigma) ** 2, 1e-18)]
            # The greatest that is kept, or the bound it is kept by: another stance may be a little less still.
            limit = max(float(kept.max()), middle + 2.5 * sigma) if len(kept) else limit
            limit = max(limit, _JITTER * float(np.median(kept if len(kept) else own)))
        limits.append(limit)
    if pooled and len(limits) > 2:
        # Intervals found here, a few steps each: one is no stiller than those before and after it.
        limits = np.maximum(limits, median_filter(limits, 3, mode="nearest")).tolist()
    knots = {float(at): limit for one, limit in zip(templates, limits, strict=True) for at in (one.first, one.last)}
    at = np.array(sorted(knots))
    if len(at) < 2:
        return np.full(len(frames), next(iter(knots.values())))
    curve = PchipInterpolator(at, np.array([knots[key] for key in at]))
    return np.asarray(curve(np.clip(frames, at[0], at[-1])) * (1.0 + 1e-9))


def _connected(gap: int, apart_mm: float, size_mm: float) -> bool:
    """Return whether two intervals are one: they may be the farther apart in time the nearer they are in space."""
    if apart_mm >= size_mm:
        return False
    return gap <= math.floor(10.0 * math.exp(-apart_mm * math.log(10.0) / size_mm))


def _spaces(
    poses: Floats, motion: InstantMotion, still: Bools, size_mm: float, least: int
) -> list[GeometricConstraint]:
    """Return the intervals in which the part is fixed; near ones at one place are one."""
    out: list[GeometricConstraint] = []
    for start, stop in runs_of(still):
        one = _space(poses, motion, start, stop)
        if out and _connected(start - out[-1].last, float(np.linalg.norm(one.place - out[-1].place)), 0.1 * size_mm):
            one = _space(poses, motion, out.pop().first, stop)
        out.append(one)
    return [one for one in out if one.last - one.first + 1 >= least]


def _space(poses: Floats, motion: InstantMotion, start: int, stop: int) -> GeometricConstraint:
    places = poses[start : stop + 1, :3, 3]
    middle = places.mean(axis=0)
    spread = float(np.sqrt(((places - middle) ** 2).sum(axis=1).mean()))
    usual = float(np.median(motion.shift)) or 1.0
    sure = 1.0 - min(1.0, float(np.median(motion.shift[start:stop])) / usual) if stop > start else 0.0
    return GeometricConstraint("space", start, stop, frozen(middle), frozen(np.full(3, np.nan)), spread, sure)


def _lines(
    motion: InstantMotion, turning: Bools, spaces: Sequence[GeometricConstraint], size_mm: float, least: int
) -> list[GeometricConstraint]:
    """Return the intervals in which the part turns about one line, or about one point where lines meet."""
    free = turning.copy()
    for one in spaces:
        free[one.first : one.last] = False
    out: list[GeometricConstraint] = []
    for start, stop in runs_of(free):
        first = start
        for step in range(start + 1, stop + 1):
            alike = step < stop and _alike(motion, first, step, size_mm)
            if not alike:
                if step - first >= least:
                    out.append(_line(motion, first, step, size_mm))
                first = step
    return out


def _alike(motion: InstantMotion, first: int, step: int, size_mm: float) -> bool:
    """Return whether a step's axis passes near the places of those since ``first``."""
    place = motion.places[first:step].mean(axis=0)
    away = motion.places[step] - place
    axis = motion.axes[step]
    return float(np.linalg.norm(away - (away @ axis) * axis)) < 0.2 * size_mm


def _line(motion: InstantMotion, start: int, stop: int, size_mm: float) -> GeometricConstraint:
    axes, places = motion.axes[start:stop], motion.places[start:stop]
    signs = np.sign(axes @ axes[len(axes) // 2])
    axes = axes * np.where(signs == 0, 1.0, signs)[:, None]
    mean = axes.mean(axis=0)
    steady = float(np.linalg.norm(mean))
    axis = mean / max(steady, 1e-12)
    # The point nearest to all axes: sum (1 - a a^T)(p - x) = 0.
    across = np.eye(3) - axes[:, :, None] * axes[:, None, :]
    middle = places.mean(axis=0)
    normal = across.sum(axis=0) + 1e-6 * np.eye(3)
    point = middle + np.linalg.solve(normal, np.einsum("nij,nj->i", across, places - middle))
    apart = np.einsum("nij,nj->ni", across, places - point)
    spread = float(np.sqrt((apart**2).sum(axis=1).mean()))
    kind = "line" if steady > math.cos(math.radians(20.0)) else "point"
    sure = max(0.0, 1.0 - spread / (0.2 * size_mm))
    line = GeometricConstraint(kind, start, stop, frozen(point), frozen(axis), spread, sure)
    return line if kind == "line" else replace(line, axis=frozen(np.full(3, np.nan)))
