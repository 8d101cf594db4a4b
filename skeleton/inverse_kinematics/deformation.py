"""Deform a motion so that it meets constraints, in order of their priority, and is else as it was.

Le Callennec (EPFL thesis 3459, 2006, chapters 3 and 5): frame by frame, layers of tasks of which a lower one never
disturbs a higher one, and what freedom they leave goes back to the raw pose; a correction is smoothed, never the
motion. Goals out of reach are not met by stretching: their residual is returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter1d

from calibration.foundation.arrays import Bools, Floats, Ints, frozen
from calibration.foundation.errors import InputError
from skeleton.inverse_kinematics.hierarchy_kernels import (
    CENTRE_OF_MASS,
    ORIENTATION,
    POINT,
    SOFT,
    Masses,
    Tasks,
    solve_frames,
)
from skeleton.tree.articulation import Articulation, articulation_of
from skeleton.tree.joint_tree import Skeleton

__all__ = ["Constraint", "Deformed", "balance_goal", "deform_motion", "limb_of"]

KINDS = {"point": POINT, "orientation": ORIENTATION, "balance": CENTRE_OF_MASS}
_ROOT_SHARE = 0.05
"""How much a root may move against what its place in the tree would let it: a foot's correction turns its own leg."""


@dataclass(frozen=True, eq=False)
class Constraint:
    """What a part of the body shall do.

    Attributes:
        name: for messages and results.
        point: joint or site; "" for the balance.
        goals: (T, 3) places, mm, or rotation vectors (world from segment) of an orientation; NaN while it rests.
        priority: (T,) whole numbers, the larger the more important.
        kind: "point", "orientation" or "balance" (the centre of mass).
        joints: whose coordinates it may use; None: all between the point and the root, and the root.
        weight: against others of the same priority.
        wish: (T,) or one for all frames: it is weighed against the raw pose in what freedom the others leave, and met
            only where that is cheap.
    """

    name: str
    point: str
    goals: Floats
    priority: Ints
    kind: str = "point"
    joints: tuple[str, ...] | None = None
    weight: float = 1.0
    wish: Bools | bool = False

    def __post_init__(self) -> None:
        goals = np.asarray(self.goals, dtype=np.float64)
        priority = np.broadcast_to(np.asarray(self.priority, dtype=np.int64), (len(goals),))
        if goals.ndim != 2 or goals.shape[1] != 3:
            raise InputError(f"constraint '{self.name}': goals must be (T, 3), got {goals.shape}")
        if self.kind not in KINDS:
            raise InputError(f"constraint '{self.name}': kind must be one of {', '.join(KINDS)}, got '{self.kind}'")
        wish = np.broadcast_to(np.asarray(self.wish, dtype=np.bool_), (len(goals),))
        object.__setattr__(self, "wish", frozen(wish))
        object.__setattr__(self, "goals", frozen(goals))
        object.__setattr__(self, "priority", frozen(priority))


@dataclass(frozen=True, eq=False)
class Deformed:
    """A motion that meets its constraints as far as the body can.

    Attributes:
        coordinates: (T, D).
        names: K constraints.
        residuals: (T, K) how far each is missed, mm (an orientation: mm at the end of its chain); NaN while it rests.
        iterations: (T,).
    """

    coordinates: Floats
    names: tuple[str, ...]
    residuals: Floats
    iterations: Ints


def deform_motion(
    skeleton: Skeleton,
    raw: Floats,
    constraints: Sequence[Constraint],
    *,
    smooth_frames: float = 0.0,
    most_iterations: int = 30,
    tolerance_mm: float = 1e-4,
) -> Deformed:
    """Return the motion (T, D) nearest to ``raw`` that meets the constraints in order of priority.

    Args:
        skeleton: the body.
        raw: (T, D).
        constraints: at least one.
        smooth_frames: 1 sigma of a low-pass on the correction; what it breaks is solved again from there. 0: none.
        most_iterations: per frame.
        tolerance_mm: a step that moves no joint's chain by more ends the frame.
    """
    body = articulation_of(skeleton)
    motion = np.ascontiguousarray(raw, dtype=np.float64)
    if motion.ndim != 2 or motion.shape[1] != body.dimension:
        raise InputError(f"{skeleton.name}: wanted coordinates (T, {body.dimension}), got {motion.shape}")
    for one in constraints:
        if len(one.goals) != len(motion):
            raise InputError(f"constraint '{one.name}' has {len(one.goals)} frames, the motion {len(motion)}")
    names = tuple(one.name for one in constraints)
    if not constraints:
        return Deformed(motion, names, np.empty((len(motion), 0)), np.zeros(len(motion), dtype=np.int64))
    tasks, metric = _packed(skeleton, body, constraints), _metric(skeleton, body)
    masses = _masses(skeleton, body)
    goals = np.ascontiguousarray(np.stack([one.goals for one in constraints], axis=1))
    ranks = _ranks(constraints)
    parents = body.coordinate_parents

    def solved(start: Floats) -> tuple[Floats, Floats, Ints]:
        return solve_frames(
            body.nodes, body.limits, parents, tasks, masses, goals, ranks, start, metric, most_iterations, tolerance_mm
        )

    out, residuals, iterations = solved(motion)
    if smooth_frames > 0:
        correction = gaussian_filter1d(out - motion, smooth_frames, axis=0, mode="nearest")
        out, residuals, more = solved(np.ascontiguousarray(motion + correction))
        iterations = iterations + more
    return Deformed(out, names, residuals, iterations)


def limb_of(skeleton: Skeleton, point: str) -> tuple[str, ...]:
    """Return the joints of a point's own limb: those of its side up to the trunk, or all but the root."""
    segment, _ = skeleton.point(point)
    chain = []
    while segment >= 0:
        chain.append(skeleton.joint_names[segment])
        segment = int(skeleton.parents[segment])
    side = next((word for word in ("left_", "right_") if chain[0].startswith(word)), None)
    limb = tuple(name for name in chain if side is not None and name.startswith(side))
    return limb or tuple(chain[:-1]) or tuple(chain)


def balance_goal(skeleton: Skeleton, raw: Floats, shifts: Floats) -> Floats:
    """Return (T, 3) where the centre of mass belongs when its support has been shifted by ``shifts`` (T, 3), mm."""
    pose = skeleton.forward(raw)
    mass = np.array([joint.mass_g for joint in skeleton.joints])
    if mass.sum() <= 0:
        raise InputError(f"skeleton '{skeleton.name}' has no masses: it cannot be balanced")
    centres = pose.points(np.arange(len(mass)), np.array([joint.centre_of_mass for joint in skeleton.joints]))
    return np.asarray(np.einsum("tji,j->ti", centres, mass / mass.sum()) + shifts)


def _ranks(constraints: Sequence[Constraint]) -> Ints:
    """(T, K) layer of each constraint in each frame, 0 the highest priority there; -1 while it rests."""
    asked = np.stack([np.isfinite(one.goals).all(axis=1) for one in constraints], axis=1)
    wishes = np.stack([np.asarray(one.wish) for one in constraints], axis=1)
    active = asked & ~wishes
    priority = np.stack([one.priority for one in constraints], axis=1)
    out = np.full(active.shape, -1, dtype=np.int64)
    levels = np.unique(priority[active])[::-1] if active.any() else np.zeros(0)
    for layer, level in enumerate(levels):
        out[active & (priority == level)] = layer
    out[asked & wishes] = SOFT
    return out


def _packed(skeleton: Skeleton, body: Articulation, constraints: Sequence[Constraint]) -> Tasks:
    count, size = len(constraints), body.dimension
    segments, offsets = np.zeros(count, dtype=np.int64), np.zeros((count, 3))
    allowed: Bools = np.ones((count, size), dtype=np.bool_)
    lengths = np.empty(count)
    rest = skeleton.forward(skeleton.rest()).positions[0]
    height = float(np.linalg.norm(np.ptp(rest, axis=0)))
    for k, one in enumerate(constraints):
        lengths[k] = height
        if one.kind != "balance":
            segments[k], offsets[k] = skeleton.point(one.point)
            lengths[k] = _chain_length(skeleton, int(segments[k]), offsets[k])
        if one.joints is not None:
            allowed[k] = False
            for name in one.joints:
                allowed[k, _columns(skeleton, name)] = True
    return Tasks(
        np.array([KINDS[one.kind] for one in constraints], dtype=np.int64),
        body.segment_nodes[segments], body.segment_coordinates[segments], offsets, allowed,
        np.array([one.weight for one in constraints], dtype=np.float64), lengths,
    )  # fmt: skip


def _columns(skeleton: Skeleton, joint: str) -> slice:
    index = skeleton.index(joint)
    start = int(skeleton.packed.starts[index])
    return slice(start, start + len(skeleton.joints[index].coordinate_names))


def _chain_length(skeleton: Skeleton, segment: int, offset: Floats) -> float:
    length = float(np.linalg.norm(offset))
    while segment >= 0 and skeleton.parents[segment] >= 0:
        length += float(np.linalg.norm(skeleton.joints[segment].offset))
        segment = int(skeleton.parents[segment])
    return max(length, 1e-3)


def _masses(skeleton: Skeleton, body: Articulation) -> Masses:
    mass = np.array([joint.mass_g for joint in skeleton.joints])
    chosen = np.flatnonzero(mass > 0)
    whole = float(mass.sum()) or 1.0
    return Masses(
        body.segment_nodes[chosen], body.segment_coordinates[chosen],
        np.array([skeleton.joints[index].centre_of_mass for index in chosen]).reshape(-1, 3), mass[chosen] / whole,
    )  # fmt: skip


def _metric(skeleton: Skeleton, body: Articulation) -> Floats:
    """(D,) how far a coordinate goes for what all weigh the same: a turn that moves all it carries by a millimetre.

    A turn moves more the more hangs on it: what the ankle can do, the hip leaves alone. A root carries everything.
    """
    reach = _reaches(skeleton)
    whole = float(reach.max())
    metric = np.full(body.dimension, np.nan)
    for index, joint in enumerate(skeleton.joints):
        metric[_columns(skeleton, joint.name)] = whole / reach[index]
        start = int(skeleton.packed.shifts[index])
        if start >= 0:
            metric[start : start + 3] = 0.5 * joint.shift_mm
        if joint.parent is None:
            metric[_columns(skeleton, joint.name)] = _ROOT_SHARE
            metric[body.is_length & np.isfinite(metric) & (metric == _ROOT_SHARE)] = _ROOT_SHARE * whole
    if len(body.locked):
        metric = np.where(body.locked, 0.0, metric)
    return np.ascontiguousarray(metric)


def _reaches(skeleton: Skeleton) -> Floats:
    """(J,) the longest chain from each joint to the end of what it carries, mm."""
    reach = np.zeros(len(skeleton.joints))
    for site in skeleton.sites:
        place = skeleton.index(site.segment)
        reach[place] = max(reach[place], float(np.linalg.norm(site.offset)))
    for index in reversed(range(len(skeleton.joints))):
        parent = int(skeleton.parents[index])
        if parent >= 0:
            own = reach[index] + float(np.linalg.norm(skeleton.joints[index].offset))
            reach[parent] = max(reach[parent], own)
    longest = float(reach.max()) or 1.0
    return np.asarray(np.maximum(reach, 0.01 * longest))
