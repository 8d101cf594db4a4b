"""Poses from handles: joints that shall be somewhere, or turned somehow, each as exactly as its sigma says.

The unknowns are the root (place and turn) and the coordinates x of a linear model of the joints' logarithms,
``R_j = base_j exp((centre + directions x)_j)`` with x normally distributed: a pose space, a Gaussian prior of all
joints, or a model of a neighbourhood (`skeleton.pose_spaces.pose_library`). The most likely pose is found by
Gauss-Newton, and its covariance gives every joint a sigma, also those that no handle speaks of.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from calibration.foundation.arrays import Bools, Floats, Ints
from calibration.foundation.errors import InputError, SolveError
from calibration.geometry.transforms import fit_rigid
from skeleton.pose_spaces import pose_kernels as kernels
from skeleton.pose_spaces.principal_geodesics import PoseSpace
from skeleton.pose_spaces.rotation_tree import RotationTree
from skeleton.tree.joint_tree import Pose

__all__ = ["HandleSet", "PosedFrames", "TangentModel", "follow_handles", "free_model", "pose_one", "space_model"]

#: Most Gauss-Newton rounds of one pose.
MOST_ROUNDS = 40


@dataclass(frozen=True, eq=False)
class HandleSet:
    """Handles of one body: which joints, and where on their segments.

    Attributes:
        joints: (H,) joint indices.
        offsets: (H, 3) place on the joint's segment, mm.
    """

    joints: Ints
    offsets: Floats

    @staticmethod
    def at(tree: RotationTree, names: Sequence[str]) -> HandleSet:
        """Return handles at the centres of named joints."""
        if not names:
            raise InputError("handles: none given; name at least one joint")
        return HandleSet(tree.indices(names), np.zeros((len(names), 3)))


@dataclass(frozen=True, eq=False)
class TangentModel:
    """A linear model of joint logarithms with normally distributed coordinates.

    Attributes:
        bases: (J, 3, 3) rotation each logarithm is taken from.
        centre: (3 J,) logarithms at x = 0.
        directions: (3 J, k) their change per unit of x.
        stiffness: (k,) inverse variance of x.
        upright: axis of the world about which the root turns freely while its tilt belongs to the model; -1: the
            root turns in any way.
    """

    bases: Floats
    centre: Floats
    directions: Floats
    stiffness: Floats
    upright: int = -1


@dataclass(frozen=True, eq=False)
class PosedFrames:
    """Solved poses.

    Attributes:
        coordinates: (T, k) model coordinates.
        pose: joint places and world rotations.
        sigma: (T, J) standard deviation of each joint's place per axis, mm.
        energy: (T,) half the weighted squares left.
    """

    coordinates: Floats
    pose: Pose
    sigma: Floats
    energy: Floats


def space_model(space: PoseSpace) -> TangentModel:
    """Return the model of a pose space: coordinates in units of their standard deviation."""
    size = 3 * len(space.names)
    directions = np.zeros((size, space.modes))
    columns = (3 * space.used[:, None] + np.arange(3)).ravel()
    directions[columns] = space.directions * space.deviations
    return TangentModel(space.mean, np.zeros(size), directions, np.ones(space.modes))


def free_model(bases: Floats, spread: float) -> TangentModel:
    """Return the model of plain inverse kinematics: every joint about its base with one spread, rad."""
    size = 3 * len(bases)
    return TangentModel(bases, np.zeros(size), np.eye(size)[:, 3:], np.full(size - 3, spread**-2))


def packed(tree: RotationTree, model: TangentModel) -> kernels.PackedTree:
    """Return tree and bases as the kernels take them."""
    if len(model.bases) != len(tree.names):
        raise InputError(f"pose model of {len(model.bases)} joints, body of {len(tree.names)}: another skeleton?")
    # Copies: arrays that may be written and those that may not would be compiled for apart.
    return kernels.PackedTree(
        np.array(tree.parents), np.array(tree.offsets, order="C"), np.array(model.bases, order="C")
    )


def lay_down(
    tree: RotationTree, model: TangentModel, handles: HandleSet, targets: Floats, x: Floats
) -> tuple[Floats, Floats]:
    """Return root place (3,) and turn (3, 3) that bring the model's pose at x nearest to the targets (H, 3)."""
    joints = len(tree.names)
    tangents = (model.centre + model.directions @ x).reshape(joints, 3)
    centres, world = np.empty((joints, 3)), np.empty((joints, 3, 3))
    kernels.place(packed(tree, model), tangents, np.zeros(3), np.eye(3), centres, world)
    own = centres[handles.joints] + np.einsum("hij,hj->hi", world[handles.joints], handles.offsets)
    seen = np.isfinite(targets).all(axis=1)
    if not seen.any():
        return np.zeros(3), np.eye(3)
    turn = np.eye(3)
    if model.upright >= 0:
        turn = turn_about(model.upright, own[seen], targets[seen])
    elif seen.sum() >= 3:
        with suppress(SolveError):  # points on one line leave the turn open: any will do to begin with
            turn = fit_rigid(own[seen], targets[seen]).rotation
    return np.asarray(targets[seen].mean(axis=0) - turn @ own[seen].mean(axis=0)), np.asarray(turn)


def turn_about(axis: int, own: Floats, targets: Floats) -> Floats:
    """Return the turn (3, 3) about an axis of the world that brings points (H, 3) nearest to targets (H, 3)."""
    b, c = (axis + 1) % 3, (axis + 2) % 3
    p, q = own - own.mean(axis=0), targets - targets.mean(axis=0)
    angle = np.arctan2((p[:, b] * q[:, c] - p[:, c] * q[:, b]).sum(), (p[:, b] * q[:, b] + p[:, c] * q[:, c]).sum())
    out = np.zeros((3, 3))
    out[axis, axis] = 1.0
    out[b, b] = out[c, c] = np.cos(angle)
    out[b, c], out[c, b] = -np.sin(angle), np.sin(angle)
    return out


def pose_one(
    tree: RotationTree,
    model: TangentModel,
    handles: HandleSet,
    targets: Floats,
    sigma: Floats,
    *,
    turns: Floats | None = None,
    turn_sigma: Floats | None = None,
    start: tuple[Floats, Floats, Floats] | None = None,
    rest: Floats | None = None,
) -> PosedFrames:
    """Find the most likely pose that meets handles.

    Args:
        tree: the body.
        model: what poses are likely.
        handles: which points.
        targets: (H, 3) where they are to be, mm; NaN for none.
        sigma: (H,) how exactly, mm.
        turns: (H, 3, 3) world rotations that the handles' segments are to have; NaN for none.
        turn_sigma: (H,) how exactly, rad.
        start: root place (3,), root turn (3, 3), x (k,) to begin with; by default the model's centre laid down.
        rest: (k,) coordinates that the stiffness holds to; zero by default.
    """
    count, joints, size = len(handles.joints), len(tree.names), len(model.stiffness)
    targets, sigma = np.asarray(targets, float), np.broadcast_to(np.asarray(sigma, float), (count,))
    if targets.shape != (count, 3) or not (sigma > 0).all():
        raise InputError(f"handles: wanted targets ({count}, 3) and sigmas above 0, got {targets.shape} and {sigma}")
    seen = np.isfinite(targets).all(axis=1)
    turned = np.zeros(count, np.bool_) if turns is None else np.isfinite(turns).all(axis=(1, 2))
    if not (seen.any() or turned.any()):
        raise InputError("handles: every target is NaN; give one position or turn at least")
    turn_weights = np.zeros(count)
    if turns is not None:
        if turn_sigma is None:
            raise InputError("handles: turns are given without turn_sigma; give one in rad")
        turn_weights = np.where(turned, np.broadcast_to(np.asarray(turn_sigma, float), (count,)) ** -2.0, 0.0)
    begin = np.zeros(size)
    if start is None:
        root, turn = lay_down(tree, model, handles, targets, begin)
    else:
        root, turn, begin = (np.array(value, dtype=np.float64) for value in start)
    wanted = np.zeros((count, 3, 3)) if turns is None else np.array(turns, dtype=np.float64, order="C")
    places = np.array(targets, dtype=np.float64, order="C")
    weights = np.where(seen, sigma**-2.0, 0.0)
    offsets = np.array(handles.offsets, dtype=np.float64, order="C")
    frames = kernels.Handles(np.array(handles.joints), offsets, places, weights, wanted, turn_weights)
    body, directions = packed(tree, model), np.array(model.directions, order="C")
    centres, world = np.empty((joints, 3)), np.empty((joints, 3, 3))
    normal, held = np.empty((6 + size, 6 + size)), np.zeros(size) if rest is None else np.array(rest, dtype=np.float64)
    root, turn = np.array(root), np.array(turn)
    energy, _ = kernels.solve_pose(
        body, np.array(model.centre), directions, frames, held, np.array(model.stiffness), MOST_ROUNDS, model.upright,
        root, turn, begin, centres, world, normal,
    )  # fmt: skip
    sigmas = np.empty(joints)
    spins = np.empty((joints, 3, size))
    kernels.spins_of(body, (model.centre + directions @ begin).reshape(joints, 3), directions, world, spins)
    # What nothing measures gets some 30 m, not infinity.
    normal[np.arange(6), np.arange(6)] += 1e-9
    if model.upright >= 0:
        others = [3 + a for a in range(3) if a != model.upright]
        normal[others, others] += 1e12
    kernels.joint_sigmas(body, spins, centres, np.asarray(np.linalg.inv(normal), np.float64), sigmas)
    return PosedFrames(begin[None], Pose(centres[None], world[None]), sigmas[None], np.array([energy]))


def follow_handles(
    tree: RotationTree,
    model: TangentModel,
    handles: HandleSet,
    targets: Floats,
    sigma: Floats,
    *,
    damping: float = 1.0,
) -> PosedFrames:
    """Follow handles (T, H, 3) from frame to frame.

    ``damping`` holds each frame's coordinates to those of the frame before, in units of the model's own stiffness
    (Tournier et al. 2009 take 1); 0 solves each frame for itself. A frame without handles keeps the pose before it.
    """
    targets = np.asarray(targets, float)
    if targets.ndim != 3 or targets.shape[1:] != (len(handles.joints), 3):
        raise InputError(f"handles: wanted targets (T, {len(handles.joints)}, 3), got {targets.shape}")
    sigmas = np.broadcast_to(np.asarray(sigma, float), targets.shape[:2])
    known: Bools = np.asarray(np.isfinite(targets).all(axis=2).max(axis=1), np.bool_)
    if not known.any():
        raise InputError("handles: every target is NaN in every frame")
    held = replace(model, stiffness=model.stiffness * (1.0 + damping))
    found: list[PosedFrames] = []
    before: tuple[Floats, Floats, Floats] | None = None
    for frame in [int(np.argmax(known)), *range(len(targets))]:
        if not known[frame] and before is not None and found:
            found.append(replace(found[-1], sigma=np.full_like(found[-1].sigma, np.inf)))
            continue
        first = before is None
        one = pose_one(
            tree, model if first else held, handles, targets[frame], sigmas[frame], start=before,
            rest=None if first or before is None else damping / (1.0 + damping) * before[2],
        )  # fmt: skip
        # Handles left farther off than 3 sigma: the way from the pose before may have been a wrong one.
        if not first and one.energy[0] > 4.5 * 3.0 * len(handles.joints):
            fresh = pose_one(tree, model, handles, targets[frame], sigmas[frame])
            one = fresh if fresh.energy[0] < one.energy[0] else one
        before = (one.pose.positions[0, 0], one.pose.rotations[0, 0], one.coordinates[0])
        found.append(one)
    found = found[1:]  # the first was only to begin with
    return PosedFrames(
        np.concatenate([one.coordinates for one in found]),
        Pose(
            np.concatenate([one.pose.positions for one in found]), np.concatenate([one.pose.rotations for one in found])
        ),
        np.concatenate([one.sigma for one in found]),
        np.concatenate([one.energy for one in found]),
    )
