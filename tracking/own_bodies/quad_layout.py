"""Where quads are wanted on a body that is given by its joints, and how large they are.

One rule for every animal. Where two bones meet, a quad halves their angle; where three or more meet, the region between
them is bounded by a quad on each; a bone that ends ends in a quad beyond the flesh. A quad takes the size of the flesh
that hangs on its own bones, whatever else the plane meets. Quads that would make the cage fold or cross itself are
turned outwards and drawn in: flesh that stands out of the cage then is carried along with it (`anchors`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from calibration.foundation.arrays import Bools, Floats, Ints
from tracking.own_bodies.flesh import Flesh
from tracking.own_bodies.joints_file import BodyPlan
from tracking.quads.oriented_quads import QuadRig, Region

__all__ = ["Layout", "Spot", "lay_out", "shrunk", "trunk_bones", "turned"]

LONG = 2.5
"""A bone from a branching joint that is longer than so many times the flesh is deep there gets a quad on its way."""

AROUND = 1.5
"""What lies further from the middle of the trunk than so many times its depth there is no trunk."""


@dataclass(frozen=True, eq=False)
class Spot:
    """A quad that is wanted.

    Attributes:
        name: of the quad.
        at: (3,) on the bones, mm. normal: (3,) along them, away from the root.
        bones: indices of the bones whose flesh it spans.
        joint: the joint it stands at; -1 for one that stands on a bone.
        carrier: the joint whose segment carries it; at a joint, that before it.
        end: whether the body ends here.
        spare: whether the body could do without it.
    """

    name: str
    at: Floats
    normal: Floats
    bones: tuple[int, ...]
    joint: int
    carrier: int
    end: bool = False
    spare: bool = False


@dataclass(frozen=True, eq=False)
class Layout:
    """Quads of a body before its cage is built.

    Attributes:
        spots: where and why each quad stands.
        rig: the quads.
    """

    spots: tuple[Spot, ...]
    rig: QuadRig


def lay_out(
    plan: BodyPlan, flesh: Flesh, faces: Ints, name: str, *, room: float, without: frozenset[str] = frozenset()
) -> Layout:
    """Place the quads of a body.

    Args:
        plan: joints in the mesh, mm.
        flesh: of the mesh.
        faces: (F, 3) triangles of the mesh.
        name: of the rig.
        room: between flesh and quad, mm.
        without: names of quads on long bones that are left out.
    """
    spots, chains = _spots(plan, flesh, without)
    regions = _regions(plan, spots, chains)
    owner = flesh.vertex_owners(plan.places[plan.bones[:, 0]], plan.places[plan.bones[:, 1]])
    trunk = trunk_bones(plan)
    rotations, centres, extents = [], [], []
    for spot in spots:
        axes = _axes(spot.normal)
        own = np.isin(owner, spot.bones)
        box = _end_box if spot.end else _trunk_box if trunk[list(spot.bones)].any() else _box
        centre, sides = box(spot, axes, flesh, faces, own, room)
        rotations.append(axes)
        centres.append(centre)
        extents.append(sides)
    names = tuple(spot.name for spot in spots)
    rig = QuadRig(name, names, np.array(rotations), np.array(centres), np.array(extents), regions, _root(plan, spots))
    return Layout(tuple(spots), rig)


def _spots(plan: BodyPlan, flesh: Flesh, without: frozenset[str]) -> tuple[list[Spot], dict[int, list[int]]]:
    """The quads that are wanted, and per bone those on it, from parent to child; a joint's is on both its bones."""
    depth = flesh.depth[flesh.cubes(plan.places)]
    spots: list[Spot] = []
    chains: dict[int, list[int]] = {bone: [] for bone in range(len(plan.bones))}
    at_joint: dict[int, int] = {}
    for joint in range(len(plan)):
        if plan.degree[joint] > 2:
            continue
        bones = tuple(map(int, np.flatnonzero((plan.bones == joint).any(axis=1))))
        parent = int(plan.parents[joint])
        ways = [_way(plan, bone) for bone in bones]
        if parent < 0 and len(bones) == 2:  # a root between two bones: its quad looks along the second
            ways[0] = -ways[0]
        if parent < 0 and len(bones) == 1:
            ways[0] = -ways[0]
        normal = _unit(np.sum(ways, axis=0), ways[-1])
        end = len(bones) == 1
        at_joint[joint] = len(spots)
        carrier = joint if parent < 0 else parent
        spots.append(Spot(plan.names[joint], plan.places[joint], normal, bones, joint, carrier, end))
    for bone, (parent, child) in enumerate(map(tuple, plan.bones.tolist())):
        between = _between(plan, bone, depth)
        first = [at_joint[parent]] if parent in at_joint else []
        last = [at_joint[child]] if child in at_joint else []
        middle = []
        name = f"{plan.names[child]}_base"
        spare = not (plan.degree[[parent, child]] > 2).all() and plan.degree[child] > 1 and plan.degree[parent] > 1
        for share in between if name not in without or not spare else ():
            place = (1 - share) * plan.places[parent] + share * plan.places[child]
            middle.append(len(spots))
            spots.append(Spot(name, place, _way(plan, bone), (bone,), -1, parent, spare=spare))
        chains[bone] = first + middle + last
    return spots, chains


def _between(plan: BodyPlan, bone: int, depth: Floats) -> list[float]:
    """Shares of a bone's length at which it wants a quad besides those at its ends."""
    ends = plan.bones[bone]
    branching = plan.degree[ends] > 2
    length = float(np.linalg.norm(plan.places[ends[1]] - plan.places[ends[0]]))
    if branching.all():
        reach = depth[ends] + 1e-9
        return [float(np.clip(reach[0] / reach.sum(), 0.3, 0.7))]
    if not branching.any():
        return []
    near = int(np.argmax(branching))
    ends_here = plan.degree[ends[1 - near]] == 1
    if not ends_here and length < LONG * depth[ends[near]]:
        return []
    share = float(np.clip(depth[ends[near]] / max(length, 1e-9), 0.25, 0.6))
    return [share if near == 0 else 1.0 - share]


def _regions(plan: BodyPlan, spots: list[Spot], chains: dict[int, list[int]]) -> tuple[Region, ...]:
    regions = []
    for joint in np.flatnonzero(plan.degree > 2):
        quads = []
        for bone in np.flatnonzero((plan.bones == joint).any(axis=1)):
            on = chains[int(bone)]
            quads.append(on[0] if plan.bones[bone, 0] == joint else on[-1])
        regions.append(Region(plan.names[joint], tuple(quads)))
    for on in chains.values():
        for before, after in pairwise(on):
            regions.append(Region(f"{spots[before].name} to {spots[after].name}", (before, after)))
    return tuple(regions)


def _root(plan: BodyPlan, spots: list[Spot]) -> int:
    """The quad that poses are told from: of those that the root's segment carries, the one with most flesh around."""
    best = [index for index, spot in enumerate(spots) if spot.joint == 0]
    if best:
        return best[0]
    on = [i for i, spot in enumerate(spots) if not spot.end and any(0 in plan.bones[bone] for bone in spot.bones)]
    on = on or list(range(len(spots)))
    # The bone that leads on to most of the body is the trunk's.
    return max(on, key=lambda index: (max(_behind(plan, bone) for bone in spots[index].bones), -index))


def trunk_bones(plan: BodyPlan) -> Bools:
    """(B,) which bones lie between branching joints."""
    branching = plan.degree > 2
    beyond = np.zeros(len(plan.bones), np.bool_)
    for bone in range(len(plan.bones)):
        waiting = [int(plan.bones[bone, 1])]
        while waiting and not beyond[bone]:
            joint = waiting.pop()
            beyond[bone] = branching[joint]
            waiting += plan.children[joint]
    # And before: a branching joint on the root's side.
    before = np.zeros(len(plan.bones), np.bool_)
    for bone, (_, child) in enumerate(plan.bones.tolist()):
        side = {child}
        waiting = [child]
        while waiting:
            found = plan.children[waiting.pop()]
            side |= set(found)
            waiting += found
        before[bone] = any(branching[joint] for joint in range(len(plan)) if joint not in side)
    return np.asarray(beyond & before)


def _behind(plan: BodyPlan, bone: int) -> int:
    """How many joints lie beyond a bone."""
    waiting, count = [int(plan.bones[bone, 1])], 0
    while waiting:
        count += 1
        waiting += plan.children[waiting.pop()]
    return count


def _way(plan: BodyPlan, bone: int) -> Floats:
    parent, child = plan.bones[bone]
    return _unit(plan.places[child] - plan.places[parent], np.array([1.0, 0.0, 0.0]))


def _unit(vector: Floats, otherwise: Floats) -> Floats:
    length = float(np.linalg.norm(vector))
    return np.asarray(vector / length if length > 1e-6 else otherwise)


def _axes(normal: Floats) -> Floats:
    """Width, height and normal (3, 3) of a quad: its width to the side, or forward where the body goes sideways."""
    side = np.array([0.0, 1.0, 0.0]) if abs(normal[1]) < 0.8 else np.array([1.0, 0.0, 0.0])
    width = _unit(side - normal * (normal @ side), side)
    return np.stack([width, np.cross(normal, width), normal], axis=1)


def turned(axes: Floats, normal: Floats) -> Floats:
    """Return the axes (3, 3) of a quad with another normal, turned as little as need be."""
    width = _unit(axes[:, 0] - normal * (normal @ axes[:, 0]), axes[:, 1])
    return np.stack([width, np.cross(normal, width), normal], axis=1)


def _box(spot: Spot, axes: Floats, flesh: Flesh, faces: Ints, own: Bools, room: float) -> tuple[Floats, Floats]:
    """Centre and sides of the box around the flesh of a spot's own bones in its plane."""
    vertices = flesh.vertices
    height = (vertices - spot.at) @ spot.normal
    edges = faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    edges = edges[(height[edges[:, 0]] > 0) != (height[edges[:, 1]] > 0)]
    edges = edges[own[edges].any(axis=1)]
    if len(edges) < 4:
        reach = max(float(flesh.depth[flesh.cubes(spot.at[None])[0]]), 0.5 * flesh.side) + room
        return spot.at, np.full(4, reach)
    share = height[edges[:, 0]] / (height[edges[:, 0]] - height[edges[:, 1]])
    points = vertices[edges[:, 0]] + share[:, None] * (vertices[edges[:, 1]] - vertices[edges[:, 0]])
    flat = (points - spot.at) @ axes[:, :2]
    low, high = flat.min(axis=0), flat.max(axis=0)
    return _boxed(spot.at, axes, low - room, high + room)


def _trunk_box(spot: Spot, axes: Floats, flesh: Flesh, faces: Ints, own: Bools, room: float) -> tuple[Floats, Floats]:
    """Centre and sides of the box around the trunk: the deepest place of its plane, and what lies around that.

    Which flesh of a trunk hangs on a limb is anybody's guess; thighs that lie at its sides are left out.
    """
    offset = flesh.middles - spot.at
    near = np.abs(offset @ spot.normal) < flesh.side
    away = np.linalg.norm(offset, axis=1)
    near &= away < 2.5 * max(float(flesh.depth[near & (away < np.median(away[near]))].max(initial=0.0)), flesh.side)
    if not near.any():
        return _box(spot, axes, flesh, faces, own, room)
    deepest = int(np.flatnonzero(near)[np.argmax(flesh.depth[near])])
    radius = float(flesh.depth[deepest])
    middle = flesh.middles[deepest] - spot.normal * (spot.normal @ offset[deepest])
    inside = np.abs(offset @ spot.normal) < flesh.side
    flat = (flesh.middles[inside] - middle) @ axes[:, :2]
    reach = AROUND * radius
    flat = flat[(np.abs(flat) < reach).all(axis=1)]
    low = np.maximum(flat.min(axis=0) - 0.5 * flesh.side, -reach)
    high = np.minimum(flat.max(axis=0) + 0.5 * flesh.side, reach)
    return _boxed(middle, axes, low - room, high + room)


def _end_box(spot: Spot, axes: Floats, flesh: Flesh, faces: Ints, own: Bools, room: float) -> tuple[Floats, Floats]:
    """Centre and sides of the quad just beyond the last point of the body, as wide as its last part."""
    away = flesh.vertices[own] - spot.at
    if not len(away):
        return spot.at + room * spot.normal, np.full(4, 0.5 * flesh.side + room)
    along = away @ spot.normal
    reach = max(float(along.max()), 0.0)
    last = away[along > reach - max(0.3 * float(np.ptp(along)), 1e-9)]
    flat = last @ axes[:, :2]
    return _boxed(spot.at + (reach + room) * spot.normal, axes, flat.min(axis=0) - room, flat.max(axis=0) + room)


def _boxed(at: Floats, axes: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    half = 0.5 * (high - low)
    centre = at + axes[:, :2] @ (0.5 * (low + high))
    return centre, np.array([half[0], half[0], half[1], half[1]])


def shrunk(rig: QuadRig, quads: Ints, factor: float) -> QuadRig:
    """Return a rig with some quads drawn in towards their centres."""
    extents = rig.extents.copy()
    extents[quads] *= factor
    return replace(rig, extents=extents)
