"""Prioritised inverse kinematics: layers of point tasks, of which a lower one never disturbs a higher one.

Baerlocher 2001, in Le Callennec's thesis (EPFL 3459, 2006), section 3. Per iteration, from the highest layer
p = 1 down,

    ``J~_p = J_p P_{p-1}``,  ``dq_p = dq_{p-1} + J~_p^{+lambda} (dx_p - J_p dq_{p-1})``,  ``P_p = P_{p-1} -
    J~_p^+ J~_p``

with a damped inverse for the step and the *undamped* one in the projector (the damped one there breaks the hierarchy).
What freedom is left pulls to a reference posture. The damping has the unit of length: a tenth of the chain's length,
less as the goal comes near. Joint limits: clamp, freeze, solve again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Bools, Floats, Ints
from calibration.foundation.errors import InputError
from skeleton.inverse_kinematics.fits import DOUBTFUL, LOST, TRUSTED, SkeletonFit, fit_of
from skeleton.inverse_kinematics.prioritised_tasks import Layer, PackedLayer, check_recruiting, pack_layer
from skeleton.inverse_kinematics.spring_energy import assemble, joint_sigmas, spring_body
from skeleton.inverse_kinematics.spring_ik import Springs, rest_stiffness_of, steps_metric
from skeleton.tree.articulation import Articulation, articulation_of
from skeleton.tree.articulation_kernels import clamp_coordinates, wrap_balls
from skeleton.tree.joint_tree import Skeleton

__all__ = ["Layer", "PrioritisedOptions", "check_recruiting", "fit_prioritised", "solve_pose"]

#: Share of the chain's length within which a goal counts as near: the damping falls with the distance from
# there.
NEAR = 0.05


@dataclass(frozen=True, eq=False)
class PrioritisedOptions:
    """How to iterate.

    Attributes:
        damping: lambda as a share of the chain's length.
        most_iterations: per frame.
        tolerance_mm: an iteration that turns no joint by more, at the end of the longest chain, ends the
            solve.
        goal_mm: stop as soon as every layer is within this distance of its goals, mm.
        reference: (D,) or (T, D) posture that the remaining freedom is pulled to; None: the rest pose.
        pull: gain of that pull per iteration, 0 for none.
        longest_step: a goal is approached by at most this share of the chain's length per iteration.
    """

    damping: float = 0.1
    most_iterations: int = 200
    tolerance_mm: float = 1e-3
    goal_mm: float = 0.0
    reference: Floats | None = None
    pull: float = 0.3
    longest_step: float = 0.5


def _limit(vectors: Floats, longest: float) -> Floats:
    """Shorten vectors (M, 3) to at most ``longest``."""
    size = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors * np.minimum(1.0, longest / np.maximum(size, 1e-300)))


def _walls(body: Articulation, q: Floats, metric: Floats) -> Floats:
    """Return (W, D) unit outward normals of the limits that a pose touches, in scaled coordinates."""
    limits = body.limits
    rows = []
    for sign, touched in ((-1.0, q <= limits.lower + 1e-10), (1.0, q >= limits.upper - 1e-10)):
        for column in np.flatnonzero(touched):
            row = np.zeros(body.dimension)
            row[column] = sign
            rows.append(row)
    for start, halves in zip(limits.starts, limits.halves, strict=True):
        values = q[start : start + 3]
        half = np.maximum(np.where(values >= 0, halves[:, 1], halves[:, 0]), 1e-9)
        if ((values / half) ** 2).sum() >= 1.0 - 1e-9:
            row = np.zeros(body.dimension)
            row[start : start + 3] = values / half**2 / metric[start : start + 3]
            rows.append(row / np.linalg.norm(row))
    return np.array(rows).reshape(-1, body.dimension)


def _without(projector: Floats, direction: Floats) -> Floats:
    """Return the projector less one direction."""
    part = projector @ direction
    size = float(part @ part)
    return projector if size < 1e-16 else np.asarray(projector - np.outer(part, part) / size)


def _within_walls(
    increment: Callable[[Floats], Floats], step: Floats, projector: Floats, walls: Floats
) -> tuple[Floats, Floats]:
    """Return the step with one more increment, and the projector it was free in, not pushing through any
    wall.

    A wall only binds the layer that would break it and those below: higher layers keep their way off it.
    """
    total = step + increment(projector)
    for _ in range(len(walls)):
        broken = walls @ total > 1e-12
        broken &= np.linalg.norm(walls @ projector, axis=1) > 1e-8
        if not broken.any():
            break
        projector = _without(projector, walls[int(np.argmax(np.where(broken, walls @ total, -np.inf)))])
        total = step + increment(projector)
    return total, projector


def _step(
    body: Articulation,
    layers: Sequence[PackedLayer],
    goals: Sequence[Floats],
    q: Floats,
    reference: Floats,
    movable: Bools,
    metric: Floats,
    caution: Floats,
    options: PrioritisedOptions,
) -> Floats:
    """Return one step of all layers; coordinates that are not ``movable`` stay.

    Lengths among the coordinates are divided by ``metric``, so that they compare with angles.
    """
    size = body.dimension
    step, projector = np.zeros(size), np.diag(movable.astype(np.float64))
    walls = _walls(body, q, metric)
    for layer, goal, more in zip(layers, goals, caution, strict=False):
        seen = np.flatnonzero(np.isfinite(goal).all(axis=1))
        if not len(seen):
            continue
        points, derivative = body.jacobian(q, layer.segments[seen], layer.offsets[seen])
        derivative = derivative * (layer.allowed[seen][:, None, :] * metric)
        error = _limit(goal[seen] - points, options.longest_step * layer.length)
        rows = (derivative * layer.weights[seen, None, None]).reshape(-1, size)
        wanted = (error * layer.weights[seen, None]).reshape(-1)
        # Full damping while the goal is far, less and less near it (Sugihara 2011): stable far off, fast at
        # the end.
        near = float(np.abs(error).max()) / (NEAR * layer.length)
        damping = options.damping * layer.length * float(more) * min(1.0, near + 1e-6)

        def increment(
            free: Floats, rows: Floats = rows, rest: Floats = wanted - rows @ step, d: float = damping
        ) -> Floats:
            u, s, vt = np.linalg.svd(rows @ free, full_matrices=False)
            return np.asarray(vt.T @ (s / (s**2 + d**2) * (u.T @ rest)))

        step, projector = _within_walls(increment, step, projector, walls)
        _, s, vt = np.linalg.svd(rows @ projector, full_matrices=False)
        basis = vt[s > 1e-9 * layer.length]
        projector = projector - basis.T @ basis
    if options.pull > 0:
        pull = options.pull / float(caution[-1]) * (reference - q) / metric
        step, projector = _within_walls(lambda free: np.asarray(free @ pull), step, projector, walls)
    return np.asarray(step * metric)


def _reach(body: Articulation, q: Floats, step: Floats) -> float:
    """Return the share of a step, up to 1, that can be taken before a limit which the pose does not touch yet."""

    def valid(share: float) -> bool:
        trial = q + share * step
        clamped = trial.copy()
        clamp_coordinates(body.limits, clamped)
        # Sliding along an ellipsoid leaves it by the square of the step: that is put back, not avoided.
        return bool(np.abs(clamped - trial).max() <= 1e-9 + 0.3 * np.abs(share * step).max() ** 2)

    if valid(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if valid(middle) else (low, middle)
    return low


def solve_pose(
    body: Articulation,
    layers: Sequence[Layer],
    frame: int,
    start: Floats,
    options: PrioritisedOptions | None = None,
) -> tuple[Floats, int, bool]:
    """Solve one frame from a start pose; return the pose (D,), the iterations and whether they settled."""
    chosen = PrioritisedOptions() if options is None else options
    packed = [pack_layer(body, layer) for layer in layers]
    return _solve(
        body, packed, [layer.goals[frame] for layer in layers], start, _reference(body, chosen, frame), chosen
    )


def _reference(body: Articulation, options: PrioritisedOptions, frame: int) -> Floats:
    if options.reference is None:
        return body.rest
    rows = np.atleast_2d(np.asarray(options.reference, dtype=np.float64))
    return np.asarray(rows[min(frame, len(rows) - 1)])


def _solve(
    body: Articulation,
    layers: Sequence[PackedLayer],
    goals: Sequence[Floats],
    start: Floats,
    reference: Floats,
    options: PrioritisedOptions,
) -> tuple[Floats, int, bool]:
    longest = max((layer.length for layer in layers), default=1.0)
    metric = np.where(body.is_length, 0.3 * longest, 1.0)
    q = np.array(start, dtype=np.float64)
    wrap_balls(body.nodes, q)
    clamp_coordinates(body.limits, q)
    movable = ~body.locked if len(body.locked) else np.ones(body.dimension, dtype=np.bool_)
    # The pull to the reference leaves out what places the whole body: a posture has no place.
    placed = rest_stiffness_of(body, Springs()) == 0
    caution = np.ones(len(layers) + 1)
    before = _residuals(body, layers, goals, q)
    for turn in range(1, options.most_iterations + 1):
        step = _step(body, layers, goals, q, np.where(placed, q, reference), movable, metric, caution, options)
        # A turn beyond a radian outruns the linearisation.
        step *= min(1.0, 1.0 / max(float(np.abs(step[~body.is_length]).max(initial=0.0)), 1e-12))
        trial = q + _reach(body, q, step) * step
        clamp_coordinates(body.limits, trial)
        moved = float(np.abs((trial - q) / metric).max()) * longest
        after = _residuals(body, layers, goals, trial)
        # Lower layers disturb higher ones by the square of their step. That is let pass at first, less and
        # less later,
        # and what goes beyond it is answered with more damping from the disturbed layer down.
        worse = _first_worse(before, after, longest * (0.01 * 0.95**turn + 1e-10))
        if worse >= 0:
            caution[worse:] *= 3.0
            if moved < options.tolerance_mm:
                return q, turn, True
            continue
        caution = np.maximum(1.0, 0.6 * caution)
        q, before = trial, after
        wrap_balls(body.nodes, q)
        if moved < options.tolerance_mm or after.max(initial=0.0) < options.goal_mm:
            return q, turn, True
    return q, options.most_iterations, False


def _residuals(body: Articulation, layers: Sequence[PackedLayer], goals: Sequence[Floats], q: Floats) -> Floats:
    """Return (L,) the weighted distance of each layer from its goals, mm."""
    out = np.zeros(len(layers))
    for index, (layer, goal) in enumerate(zip(layers, goals, strict=True)):
        off = (body.points(q[None], layer.segments, layer.offsets)[0] - goal) * layer.weights[:, None]
        out[index] = np.sqrt(np.nansum(off**2))
    return out


def _first_worse(before: Floats, after: Floats, slack: float) -> int:
    """Return the highest layer that got worse while none above it got better; -1 if there is none."""
    for index in range(len(before)):
        if after[index] > before[index] + slack:
            return index
        if after[index] < before[index] - slack:
            return -1
    return -1


def fit_prioritised(
    skeleton: Skeleton | Articulation,
    layers: Sequence[Layer],
    *,
    start: Floats | None = None,
    options: PrioritisedOptions | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> SkeletonFit:
    """Fit a body to layers of tasks, highest first, frame by frame from the frame before.

    Args:
        skeleton: a `Skeleton` or any `Articulation`.
        layers: contacts over beads over surface markers, say; at least one.
        start: (D,) or (T, D) pose to begin with (a spring fit is a good one); by default the rest pose.
        options: how to iterate; its ``reference`` is the prior's pose.
        on_progress: called with (frames done, T).
    """
    if not layers:
        raise InputError("prioritised inverse kinematics: no layers")
    body = articulation_of(skeleton) if isinstance(skeleton, Skeleton) else skeleton
    chosen = PrioritisedOptions() if options is None else options
    frames = len(layers[0].goals)
    for layer in layers:
        if len(layer.goals) != frames:
            raise InputError(
                f"layer '{layer.name}' has {len(layer.goals)} frames, '{layers[0].name}' {frames}: are their "
                "rates equal?"
            )
    check_recruiting(body, layers)
    packed = [pack_layer(body, layer) for layer in layers]
    begin = np.atleast_2d(body.rest if start is None else np.asarray(start, dtype=np.float64))
    coordinates = np.empty((frames, body.dimension))
    iterations = np.empty(frames, dtype=np.int64)
    settled = np.empty(frames, dtype=np.bool_)
    q = begin[0]
    for frame in range(frames):
        goals = [layer.goals[frame] for layer in layers]
        q = begin[frame] if len(begin) == frames else q
        q, iterations[frame], settled[frame] = _solve(body, packed, goals, q, _reference(body, chosen, frame), chosen)
        coordinates[frame] = q
        if on_progress is not None:
            on_progress(frame + 1, frames)
    return _as_fit(body, layers, packed, coordinates, iterations, settled)


def _as_fit(
    body: Articulation,
    layers: Sequence[Layer],
    packed: Sequence[PackedLayer],
    coordinates: Floats,
    iterations: Ints,
    settled: Bools,
) -> SkeletonFit:
    goals = np.concatenate([layer.goals for layer in layers], axis=1)
    segments = np.concatenate([layer.segments for layer in packed])
    offsets = np.ascontiguousarray(np.concatenate([layer.offsets for layer in packed]))
    spread = np.concatenate([layer.markers.sd_mm for layer in layers])
    points = body.points(coordinates, segments, offsets)
    residuals = np.linalg.norm(points - goals, axis=2)
    seen = np.isfinite(residuals)
    sigma = np.empty((len(coordinates), len(body.segment_names)))
    size = body.dimension
    normal, bend, gradient = np.zeros((size, size)), np.zeros((size, size)), np.zeros(size)
    stiffness = 1.0 / spread**2
    attached = spring_body(body, segments, offsets, steps_metric(body))
    joints = rest_stiffness_of(body, Springs())
    for t, q in enumerate(coordinates):
        target = np.ascontiguousarray(np.where(seen[t, :, None], goals[t], np.nan))
        apart = np.empty(len(segments))
        assemble(attached, q, target, stiffness, 1e12, body.rest, joints, normal, bend, gradient, apart)
        joint_sigmas(attached, q, normal, sigma[t])
    few = seen.sum(axis=1)
    trust = np.where(few < 3, LOST, np.where(settled, TRUSTED, DOUBTFUL)).astype(np.int64)
    reason = np.where(few < 3, 1, np.where(settled, 0, 4)).astype(np.int64)
    names = tuple(name for layer in layers for name in layer.markers.names)
    energy = 0.5 * np.nansum(residuals**2 * stiffness, axis=1)
    return fit_of(
        body, names, coordinates, residuals, seen.astype(np.float64), sigma, trust, reason, iterations, energy
    )
