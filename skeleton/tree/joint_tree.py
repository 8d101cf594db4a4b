"""Articulated skeletons: a tree of joints, its forward kinematics, Jacobians and limits.

At rest all joint frames are aligned with the world (x forward, y left, z up) and all coordinates are zero.
Each joint carries the segment distal to it, so "segment j" is the body that turns with joint j.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError, nearest
from skeleton.tree import kinematics as kernels
from skeleton.tree.joints import ANGLES, KINDS, Joint, Site
from skeleton.tree.limits import project_to_ellipsoid

__all__ = ["Joint", "LimitViolation", "Pose", "Site", "Skeleton"]


@dataclass(frozen=True, eq=False)
class Pose:
    """Where the segments are.

    Attributes:
        positions: (T, J, 3) joint positions, mm.
        rotations: (T, J, 3, 3) world from segment.
    """

    positions: Floats
    rotations: Floats

    def points(self, segments: Ints, offsets: Floats) -> Floats:
        """Return world points (T, P, 3) of offsets (P, 3) on segments (P,)."""
        turned = np.einsum("tpij,pj->tpi", self.rotations[:, segments], offsets)
        return np.asarray(self.positions[:, segments] + turned)

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, frames: slice) -> Pose:
        return Pose(self.positions[frames], self.rotations[frames])


class LimitViolation(NamedTuple):
    """How far coordinates are outside the limits: ``angle`` (T, J) rad, ``shift`` (T, J) mm."""

    angle: Floats
    shift: Floats


class Packed(NamedTuple):
    """The tree as plain arrays for compiled kernels (`skeleton.tree.kinematics` says their meaning)."""

    parents: Ints
    kinds: Ints
    offsets: Floats
    axes: Floats
    starts: Ints
    shifts: Ints
    counts: Ints


@dataclass(frozen=True, eq=False)
class Skeleton:
    """A tree of joints, parents before children, with named points.

    Attributes:
        name: what it is.
        joints: all joints.
        sites: named points that are not joints.
        landmark_points: landmark name to the joint or site that defines it, in order.
        floor_points: names of the sites or joints that stand on the floor, grouped by foot.
        source: where the anatomy comes from.
    """

    name: str
    joints: tuple[Joint, ...]
    sites: tuple[Site, ...] = ()
    landmark_points: Mapping[str, str] = field(default_factory=dict)
    floor_points: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    source: str = ""

    def __post_init__(self) -> None:
        who = f"skeleton '{self.name}'"
        object.__setattr__(self, "joints", _ordered(self.joints, who))
        names = [joint.name for joint in self.joints]
        known = set(names)
        for site in self.sites:
            if site.segment not in known:
                raise InputError(
                    f"{who}: site '{site.name}' sits on unknown joint '{site.segment}'; {nearest(site.segment, names)}"
                )
        every = names + [site.name for site in self.sites]
        for name in every:
            if every.count(name) > 1:
                raise InputError(f"{who}: the name '{name}' is used twice; joint and site names must be unique")
        used = [(key, point) for key, point in self.landmark_points.items()]
        used += [(foot, point) for foot, points in self.floor_points.items() for point in points]
        for key, point in used:
            if point not in every:
                raise InputError(f"{who}: '{key}' names unknown point '{point}'; {nearest(point, every)}")

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        return tuple(joint.name for joint in self.joints)

    @cached_property
    def parents(self) -> Ints:
        """(J,) index of each joint's parent, -1 for a root."""
        index = {name: i for i, name in enumerate(self.joint_names)}
        return np.array([-1 if j.parent is None else index[j.parent] for j in self.joints], dtype=np.int64)

    @cached_property
    def packed(self) -> Packed:
        axes = np.zeros((len(self.joints), 2, 3))
        starts = np.zeros(len(self.joints), dtype=np.int64)
        shifts = np.full(len(self.joints), -1, dtype=np.int64)
        column = 0
        for i, joint in enumerate(self.joints):
            axes[i, : len(joint.axes)] = joint.axes
            starts[i] = column
            column += len(joint.coordinate_names)
            if joint.shift_mm > 0:
                shifts[i] = column - 3
        return Packed(
            self.parents,
            np.array([KINDS[joint.kind] for joint in self.joints], dtype=np.int64),
            np.array([joint.offset for joint in self.joints]).reshape(-1, 3),
            axes,
            starts,
            shifts,
            np.array([ANGLES[joint.kind] for joint in self.joints], dtype=np.int64),
        )

    @cached_property
    def coordinate_names(self) -> tuple[str, ...]:
        return tuple(name for joint in self.joints for name in joint.coordinate_names)

    @property
    def dimension(self) -> int:
        """Number of coordinates, D."""
        return len(self.coordinate_names)

    def index(self, name: str) -> int:
        """Return the index of a joint."""
        if name not in self.joint_names:
            raise InputError(f"skeleton '{self.name}': unknown joint '{name}'; {nearest(name, self.joint_names)}")
        return self.joint_names.index(name)

    def columns(self, name: str) -> slice:
        """Return the rotation columns of a joint in the coordinates (without translation and shift)."""
        i = self.index(name)
        start = int(self.packed.starts[i]) + (3 if self.joints[i].kind == "free" else 0)
        return slice(start, start + int(self.packed.counts[i]))

    def point(self, name: str) -> tuple[int, Floats]:
        """Return segment index and local offset (3,) of a named joint or site."""
        for site in self.sites:
            if site.name == name:
                return self.index(site.segment), site.offset
        if name not in self.joint_names:
            every = [*self.joint_names, *(site.name for site in self.sites)]
            raise InputError(f"skeleton '{self.name}': unknown point '{name}'; {nearest(name, every)}")
        return self.index(name), np.zeros(3)

    def points(self, names: Sequence[str]) -> tuple[Ints, Floats]:
        """Return segments (P,) and local offsets (P, 3) of named joints or sites."""
        found = [self.point(name) for name in names]
        return np.array([f[0] for f in found], dtype=np.int64), np.array([f[1] for f in found]).reshape(-1, 3)

    def rest(self, frames: int = 1) -> Floats:
        """Return the rest coordinates (T, D): zeros."""
        return np.zeros((frames, self.dimension))

    def _checked(self, coordinates: Floats) -> Floats:
        array = np.array(coordinates, dtype=np.float64, order="C")
        if array.ndim == 1:
            array = array[None]
        if array.ndim != 2 or array.shape[1] != self.dimension:
            raise InputError(
                f"skeleton '{self.name}' has {self.dimension} coordinates; wanted (T, {self.dimension}), "
                f"got {np.shape(coordinates)}: is this the motion of another skeleton?"
            )
        return array

    def forward(self, coordinates: Floats) -> Pose:
        """Place the segments: coordinates (T, D) or (D,) to a `Pose` of T frames. NaN stays NaN."""
        array = self._checked(coordinates)
        shape = (len(array), len(self.joints))
        positions, rotations = np.empty((*shape, 3)), np.empty((*shape, 3, 3))
        p = self.packed
        kernels.forward(array, p.parents, p.kinds, p.offsets, p.axes, p.starts, p.shifts, positions, rotations)
        return Pose(positions, rotations)

    def jacobian(self, coordinates: Floats, segments: Ints, offsets: Floats) -> tuple[Floats, Floats]:
        """Return attached points (T, P, 3) and their derivative (T, P, 3, D) by the coordinates.

        ``segments`` (P,) are joint indices, ``offsets`` (P, 3) positions in those segments' frames, mm.
        """
        array = self._checked(coordinates)
        segments = np.asarray(segments, dtype=np.int64)
        pose = self.forward(array)
        points = pose.points(segments, np.asarray(offsets, dtype=np.float64))
        p = self.packed
        world_axes = np.empty((len(array), self.dimension, 3))
        kernels.coordinate_axes(array, pose.rotations, p.parents, p.kinds, p.axes, p.starts, p.shifts, world_axes)
        out = np.zeros((*points.shape, self.dimension))
        kernels.point_jacobian(
            points, segments, pose.positions, world_axes, p.parents, p.kinds, p.starts, p.shifts, p.counts, out
        )
        return points, out

    @cached_property
    def landmark_names(self) -> tuple[str, ...]:
        return tuple(self.landmark_points)

    def landmarks(self, pose: Pose) -> tuple[tuple[str, ...], Floats]:
        """Return the landmark names and their world positions (T, K, 3)."""
        return self.landmark_names, pose.points(*self.points(list(self.landmark_points.values())))

    def clamp(self, coordinates: Floats) -> Floats:
        """Return the closest coordinates (T, D) within all limits (ellipsoids: closest point on the surface)."""
        out = self._checked(coordinates)
        for i, joint in enumerate(self.joints):
            columns = self.columns(joint.name)
            lower, upper = joint.bounds[:, 0], joint.bounds[:, 1]
            if joint.ellipsoidal:
                out[:, columns] = project_to_ellipsoid(out[:, columns], lower, upper)
            else:
                out[:, columns] = np.clip(out[:, columns], lower, upper)
            if joint.shift_mm > 0:
                start = int(self.packed.shifts[i])
                shift = out[:, start : start + 3]
                length = np.linalg.norm(shift, axis=1, keepdims=True)
                shift *= np.minimum(1.0, joint.shift_mm / np.maximum(length, 1e-12))
        return out

    def limit_violation(self, coordinates: Floats) -> LimitViolation:
        """Return how far each joint is from its nearest valid state; zero where the limits hold."""
        array = self._checked(coordinates)
        moved = self.clamp(array) - array
        # An ellipsoid may be nearer to the other vector of the same rotation: that turn by 2 pi is no violation.
        angle = np.zeros((len(array), len(self.joints)))
        shift = np.zeros_like(angle)
        for i, joint in enumerate(self.joints):
            columns = self.columns(joint.name)
            if joint.ellipsoidal:
                length = np.linalg.norm(array[:, columns], axis=1, keepdims=True)
                other = array[:, columns] * (2 * np.pi / np.maximum(length, 1e-12))
                near = np.linalg.norm(moved[:, columns], axis=1)
                angle[:, i] = np.minimum(near, np.linalg.norm(moved[:, columns] + other, axis=1))
            else:
                angle[:, i] = np.linalg.norm(moved[:, columns], axis=1)
            start = int(self.packed.shifts[i])
            if start >= 0:
                shift[:, i] = np.linalg.norm(moved[:, start : start + 3], axis=1)
        return LimitViolation(angle, shift)

    def continuous(self, coordinates: Floats) -> Floats:
        """Return the same rotations with rotation vectors that do not jump from frame to frame.

        ``v`` and ``v (1 - 2 pi k / |v|)`` are one rotation; each frame takes the one nearest to the frame before,
        up to 1.75 pi: at 2 pi the map is singular (a small tilt is a large step there), so a body that turns on and
        on goes back by one turn before it.
        """
        out = self._checked(coordinates)
        for joint in self.joints:
            # Within ellipsoidal limits there is one vector per rotation already.
            if joint.kind not in ("ball", "free") or joint.ellipsoidal:
                continue
            vectors = out[:, self.columns(joint.name)]
            for t in range(1, len(vectors)):
                angle = float(np.linalg.norm(vectors[t]))
                if angle > 1e-9:
                    unit = vectors[t] / angle
                    turns = np.round((float(unit @ vectors[t - 1]) - angle) / (2 * np.pi))
                    length = angle + 2 * np.pi * turns
                    if abs(length) > 1.75 * np.pi:
                        length = angle - 2 * np.pi * np.round(angle / (2 * np.pi))
                    vectors[t] = length * unit
        return out

    def scaled(self, lengths: Mapping[str, float] | float) -> Skeleton:
        """Return the skeleton with segments stretched by factors: one for all, or per joint name (others 1).

        A segment's factor scales all it carries: the offsets of its children and sites and its centre of mass;
        its mass grows as the cube. The root moves so that the lowest point of the rest pose keeps its height.
        """
        if isinstance(lengths, Mapping):
            for name in lengths:
                self.index(name)
            factor = {name: float(lengths.get(name, 1.0)) for name in self.joint_names}
        else:
            factor = dict.fromkeys(self.joint_names, float(lengths))
        for name, value in factor.items():
            if not (np.isfinite(value) and value > 0):
                raise InputError(f"skeleton '{self.name}': length factor of '{name}' must be above 0, got {value}")
        joints = tuple(
            replace(
                j,
                offset=j.offset * (1.0 if j.parent is None else factor[j.parent]),
                shift_mm=j.shift_mm * factor[j.name],
                mass_g=j.mass_g * factor[j.name] ** 3,
                centre_of_mass=j.centre_of_mass * factor[j.name],
            )
            for j in self.joints
        )
        sites = tuple(replace(s, offset=s.offset * factor[s.segment]) for s in self.sites)
        grown = replace(self, joints=joints, sites=sites)
        drop = np.array([0.0, 0.0, self._lowest() - grown._lowest()])
        moved = tuple(replace(j, offset=j.offset + drop) if j.parent is None else j for j in grown.joints)
        return replace(grown, joints=moved)

    def _lowest(self) -> float:
        names = [*self.joint_names, *(site.name for site in self.sites)]
        return float(self.forward(self.rest()).points(*self.points(names))[0, :, 2].min())

    @property
    def mass_g(self) -> float:
        """Total mass, g."""
        return float(sum(joint.mass_g for joint in self.joints))


def _ordered(joints: Sequence[Joint], who: str) -> tuple[Joint, ...]:
    """Return the joints with parents before children, in the given order otherwise."""
    names = [joint.name for joint in joints]
    if not names:
        raise InputError(f"{who}: no joints")
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{who}: the name '{name}' is used twice; joint and site names must be unique")
    for joint in joints:
        if joint.parent is not None and joint.parent not in names:
            raise InputError(
                f"{who}: joint '{joint.name}' has unknown parent '{joint.parent}'; {nearest(joint.parent, names)}"
            )
    done: list[Joint] = []
    placed: set[str | None] = {None}
    waiting = list(joints)
    while waiting:
        ready = [joint for joint in waiting if joint.parent in placed]
        if not ready:
            loop = ", ".join(joint.name for joint in waiting)
            raise InputError(f"{who}: the joints {loop} form a cycle; a tree needs a root with no parent")
        first = ready[0]
        done.append(first)
        placed.add(first.name)
        waiting.remove(first)
    return tuple(done)
