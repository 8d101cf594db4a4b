"""A first guess of a body's joints from its mesh alone: lines through its flesh, extremities, sides, head and tail.

It knows no anatomy. Joints stand where the lines bend, or evenly along them; names say which side, which end and which
legs. It is meant to be looked at and edited.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.spatial import cKDTree

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from tracking.own_bodies.curve_skeleton import CurveSkeleton, curve_skeleton
from tracking.own_bodies.flesh import Flesh
from tracking.own_bodies.joints_file import BodyPlan
from tracking.own_bodies.mending import mended

__all__ = ["suggested_joints"]

ALIKE = 0.1
"""Ends whose mirror images lie nearer than this share of the diagonal are a pair."""
MIDDLE = 0.02
"""Ends nearer to the plane of symmetry than this share of the diagonal are on it."""
FLOOR = 0.12
"""Ends this share of the height above the lowest point stand on the floor."""
BEND = 0.018
"""A line that leaves the straight by more than this share of the diagonal has a joint there."""
CLOSE, PIECE, THIN_PIECE = 0.05, 0.24, 0.12
"""Least distance between joints of a limb, and the longest piece of it, thick or thin (a tail), without one."""
STUB = 0.2
"""An extremity that is neither head nor tail nor one of a pair is at least so long, as a share of the diagonal."""
MEET = 1.3
"""Lines that meet no further apart than so many times the depth of the flesh meet at one place."""
SPINE = 0.14
"""Longest piece of a trunk without a joint, as a share of the diagonal."""


@dataclass
class _Limb:
    """One line from a branching place to an end: its places, the node it begins at, and what it is called."""

    path: Floats
    node: int
    thin: float
    name: str = ""
    joints: Floats = field(default_factory=lambda: np.zeros((0, 3)))


def suggested_joints(vertices: Floats, faces: Ints, what: str) -> tuple[BodyPlan, str]:
    """Guess the joints of a mesh (V, 3), mm, z up; and say in a line what was seen.

    Raises:
        InputError: the mesh cannot be mended, or nothing stands out of it.
    """
    closed = mended(vertices, faces, what)
    flesh = Flesh.of(closed.vertices, closed.faces)
    lines = curve_skeleton(flesh)
    size = float(np.linalg.norm(np.ptp(closed.vertices, axis=0)))
    if len(lines.paths) < 2:
        raise InputError(
            f"{what}: {len(lines.paths)} extremities stand out of the mesh, two are needed to guess joints; write "
            "joints.toml by hand"
        )
    nodes, trunk, limbs = _branches(lines, size)
    side, middle, mirrored = _symmetry(closed.vertices, size)
    head = _named(limbs, nodes, closed.vertices, side, middle, size)
    # One ear of two that stands out a little more than the other is no limb.
    limbs = [limb for limb in limbs if not limb.name.startswith("part_") or _length(limb.path) > STUB * size]
    if head is not None:
        forward = head.path[-1] - middle
        if np.cross(np.array([0.0, 0.0, 1.0]), forward) @ side < 0:
            side = -side
            for limb in limbs:
                limb.name = _swapped(limb.name)
    for limb in limbs:
        limb.joints = _joints_along(limb.path, size, limb.thin)
    _evened(limbs, side, middle)
    plan = _planned(nodes, trunk, limbs, size)
    ends = ", ".join(limb.name for limb in limbs)
    sure = "" if mirrored else "; no plane of symmetry was found: check left and right"
    return plan, f"{len(limbs)} extremities: {ends}{sure}"


def _branches(lines: CurveSkeleton, size: float) -> tuple[Floats, list[tuple[int, int, Floats]], list[_Limb]]:
    """Nodes (N, 3) where lines meet, trunk pieces (node, node, places) between them, and limbs from them."""
    cuts: dict[int, list[tuple[int, int]]] = {index: [] for index in range(-1, len(lines.paths))}
    for path, (other, number) in enumerate(lines.joins):
        cuts[other].append((number, path))
    # Lines that meet within the depth of the flesh meet at one place.
    nodes: list[Floats] = [lines.paths[0][0]]
    where: dict[tuple[int, int], int] = {(-1, 0): 0}
    trunk: list[tuple[int, int, Floats]] = []
    limbs: list[_Limb] = []
    for path, places in enumerate(lines.paths):
        at = where[lines.joins[path]]
        begun = 0
        for number, _ in sorted(set(cuts[path])):
            key = (path, number)
            if key in where:
                continue
            near = float(np.linalg.norm(places[number] - nodes[at]))
            if near < max(MEET * float(lines.depths[path][number]), 0.07 * size):
                where[key] = at
                continue
            nodes.append(places[number])
            trunk.append((at, len(nodes) - 1, places[begun : number + 1]))
            at, begun = len(nodes) - 1, number
            where[key] = at
        depth = float(np.median(lines.depths[path][begun:]))
        limbs.append(_Limb(places[begun:], at, depth / size))
    return np.array(nodes), trunk, limbs


def _symmetry(vertices: Floats, size: float) -> tuple[Floats, Floats, bool]:
    """Side direction (3,) of the vertical plane that a mesh is most alike across, a point on it, and whether it is."""
    some = vertices[:: max(1, len(vertices) // 1500)]
    middle = 0.5 * (vertices.min(axis=0) + vertices.max(axis=0))
    middle = np.array([vertices[:, 0].mean(), vertices[:, 1].mean(), middle[2]])
    tree = cKDTree(vertices)
    best = (np.inf, np.array([0.0, 1.0, 0.0]))
    for angle in np.radians(np.arange(0.0, 180.0, 3.0)):
        side = np.array([np.cos(angle), np.sin(angle), 0.0])
        image = some - 2.0 * ((some - middle) @ side)[:, None] * side
        gap = float(np.mean(tree.query(image)[0]))
        if gap < best[0] - 1e-9:
            best = (gap, side)
    return best[1], middle, bool(best[0] < 0.02 * size)


def _named(
    limbs: list[_Limb], nodes: Floats, vertices: Floats, side: Floats, middle: Floats, size: float
) -> _Limb | None:
    """Give the limbs names by side, height and thickness; return the head."""
    ends = np.array([limb.path[-1] for limb in limbs])
    across = (ends - middle) @ side
    image = ends - 2.0 * across[:, None] * side
    gap = np.linalg.norm(ends[:, None] - image[None], axis=2)
    pairs: list[tuple[int, int]] = []
    free = set(range(len(limbs)))
    for a, b in sorted(((a, b) for a in free for b in free if a < b), key=lambda pair: gap[pair]):
        apart = across[a] * across[b] < 0 and min(abs(across[a]), abs(across[b])) > MIDDLE * size
        if {a, b} <= free and gap[a, b] < ALIKE * size and apart:
            pairs.append((a, b) if across[a] > 0 else (b, a))
            free -= {a, b}
    alone = sorted(free, key=lambda index: (-limbs[index].thin, -ends[index, 2]))
    head = limbs[alone[0]] if alone else None
    if head is not None:
        head.name = "head"
    for number, index in enumerate(sorted(alone[1:], key=lambda index: -_length(limbs[index].path))):
        limbs[index].name = "tail" if number == 0 else f"part_{number}"
    low, height = float(vertices[:, 2].min()), float(np.ptp(vertices[:, 2]))
    legs = [pair for pair in pairs if ends[list(pair), 2].max() < low + FLOOR * height]
    arms = [pair for pair in pairs if pair not in legs]
    if head is not None:
        legs.sort(key=lambda pair: float(np.linalg.norm(ends[list(pair)].mean(axis=0) - head.path[-1])))
    words = {1: ("leg",), 2: ("fore_leg", "hind_leg")}.get(
        len(legs), tuple(f"leg_{number}" for number in range(1, len(legs) + 1))
    )
    words += tuple("arm" if number == 0 else f"arm_{number + 1}" for number in range(len(arms)))
    for word, (left, right) in zip(words, legs + arms, strict=True):
        limbs[left].name, limbs[right].name = f"left_{word}", f"right_{word}"
    return head


def _swapped(name: str) -> str:
    if name.startswith("left_"):
        return "right_" + name.removeprefix("left_")
    return "left_" + name.removeprefix("right_") if name.startswith("right_") else name


def _joints_along(path: Floats, size: float, thin: float) -> Floats:
    """Joints (N, 3) of a limb: where its line bends, or evenly where it is straight; the last at its end."""
    length = _length(path)
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))]) / max(length, 1e-9)
    apart, longest = CLOSE * size / length, (THIN_PIECE if thin < 0.02 else PIECE) * size / length
    shares = [0.0, 1.0]
    for index in _bends(path, BEND * size):
        if min(abs(float(along[index]) - other) for other in shares) > apart:
            shares.append(float(along[index]))
    while True:
        shares.sort()
        gaps = np.diff(shares)
        widest = int(np.argmax(gaps))
        if gaps[widest] <= longest:
            break
        shares.append(0.5 * (shares[widest] + shares[widest + 1]))
    return np.array([_at(path, along, share) for share in shares[1:]])


def _at(path: Floats, along: Floats, share: float) -> Floats:
    return np.array([np.interp(share, along, path[:, axis]) for axis in range(3)])


def _length(path: Floats) -> float:
    return float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())


def _bends(path: Floats, tolerance: float) -> list[int]:
    """Indices where a line leaves the straight between its ends, and the parts on both sides likewise."""
    found: list[int] = []
    waiting = [(0, len(path) - 1)]
    while waiting:
        first, last = waiting.pop()
        if last - first < 3:
            continue
        way = path[last] - path[first]
        way = way / max(float(np.linalg.norm(way)), 1e-9)
        offset = path[first : last + 1] - path[first]
        away = np.linalg.norm(offset - (offset @ way)[:, None] * way, axis=1)
        worst = int(np.argmax(away))
        if away[worst] > tolerance:
            found.append(first + worst)
            waiting += [(first, first + worst), (first + worst, last)]
    return sorted(found)


def _evened(limbs: list[_Limb], side: Floats, middle: Floats) -> None:
    """Give both limbs of a pair the same joints, mirrored, each as near to its own line as it is."""
    known = {limb.name: limb for limb in limbs}
    for name, limb in known.items():
        other = known.get(_swapped(name))
        if not name.startswith("left_") or other is None:
            continue
        known_best, twin = (limb, other) if len(limb.joints) >= len(other.joints) else (other, limb)
        image = known_best.joints - 2.0 * ((known_best.joints - middle) @ side)[:, None] * side
        nearest = np.sort(np.asarray(cKDTree(twin.path).query(image)[1]))
        twin.joints = np.concatenate([twin.path[nearest[:-1]], twin.path[-1:]])


def _planned(nodes: Floats, trunk: list[tuple[int, int, Floats]], limbs: list[_Limb], size: float) -> BodyPlan:
    """Put nodes, trunk pieces and limbs together as joints with parents."""
    names, parents, places = ["root"], [-1], [nodes[0]]
    at = {0: 0}
    for before, after, path in trunk:
        parent = at[before]
        count = max(0, round(_length(path) / (SPINE * size)) - 1)
        along = np.linspace(0.0, 1.0, len(path))
        for number in range(1, count + 1):
            names.append(f"spine_{len(names)}")
            parents.append(parent)
            places.append(_at(path, along, number / (count + 1)))
            parent = len(names) - 1
        names.append(f"trunk_{after}")
        parents.append(parent)
        places.append(nodes[after])
        at[after] = len(names) - 1
    for limb in limbs:
        parent = at[limb.node]
        for number, place in enumerate(limb.joints, start=1):
            last = number == len(limb.joints)
            names.append(f"{limb.name}_end" if last else f"{limb.name}_{number}")
            parents.append(parent)
            places.append(place)
            parent = len(names) - 1
    return BodyPlan(tuple(names), np.array(parents), np.array(places), np.full(len(names), np.nan))
