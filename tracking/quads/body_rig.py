"""Quads of the built-in bodies, placed by one table of cuts on an actor of any lengths and girths.

The cage is built in a pose of its own, limbs apart, in which it does not touch itself; the same quads seen in the
skeleton's rest pose are what motions are attached to (`tracking.quads.attachment`).
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from skeleton.actors.actor import Actor, build_actor
from skeleton.bodies import load_body
from skeleton.tree.joint_tree import Pose, Skeleton
from tracking.quads.attachment import QuadAttachment, attach_posed_quads, attach_quads
from tracking.quads.cage import build_cage, clearance
from tracking.quads.oriented_quads import QuadRig, load_quad_rig
from tracking.quads.placement import Cut, Enclosure, drawn_in, enclose, quads_at_cuts

__all__ = ["CUTS", "MARGIN", "BodyRig", "builtin_attachment", "place_body_rig", "reference_coordinates"]

MARGIN = 0.003
"""Least room between template and cage, as a share of the template's diagonal."""

CUTS = Path(__file__).parents[1] / "subjects"


@dataclass(frozen=True, eq=False)
class BodyRig:
    """Quads of a built-in body.

    Attributes:
        vertices: (V, 3) template in the cage's pose, mm.
        enclosure: rig and cage in that pose.
        pose: the skeleton's pose there.
        attachment: the same quads in the skeleton's rest pose, on its segments.
    """

    vertices: Floats
    enclosure: Enclosure
    pose: Pose
    attachment: QuadAttachment


def reference_coordinates(body: str, skeleton: Skeleton) -> Floats:
    """Return the coordinates (1, D) in which a built-in body's cage is made."""
    q = skeleton.rest()
    for joint, degrees in _table(body)["pose"].items():
        q[0, skeleton.columns(joint)] = np.radians(degrees)
    return q


def builtin_attachment(body: str) -> QuadAttachment:
    """Return the quads of a built-in body of its own size, in the rest pose, on its segments."""
    return attach_quads(load_quad_rig(CUTS / body / "quads.toml"), load_body(body))


def place_body_rig(actor: Actor, *, extents: Floats | None = None) -> BodyRig:
    """Place the quads of a built-in body on an actor of it.

    Args:
        actor: of the body.
        extents: (Q, 4) sides of the quads whose cage is known to hold it, mm; None to let the cage grow.

    Raises:
        InputError: the body has no table of cuts, or its cage cannot hold the actor.
    """
    table = _table(actor.body)
    pose = actor.skeleton.forward(reference_coordinates(actor.body, actor.skeleton))
    vertices = np.asarray(actor.skin(pose)[0])
    size = float(np.linalg.norm(vertices.max(axis=0) - vertices.min(axis=0)))
    try:
        enclosure = _cut_cage(actor, table, pose, vertices, size, extents)
    except InputError:
        # A stout body buries its limbs' quads: place them on a slim one of the same lengths, and let the cage grow.
        slim = build_actor(
            actor.body, lengths=dict(zip(actor.skeleton.joint_names, map(float, actor.length), strict=True))
        )
        if np.allclose(actor.girth, slim.girth):
            raise
        rig = _cut_cage(slim, table, pose, np.asarray(slim.skin(pose)[0]), size, None).rig
        enclosure = enclose(rig, vertices, margin=MARGIN * size, step=0.003 * size)
        vertices, _ = drawn_in(vertices, enclosure, 0.3 * MARGIN * size, what=f"body '{actor.body}'")
    return BodyRig(vertices, enclosure, pose, attach_posed_quads(enclosure.rig, actor.skeleton, pose))


def _cut_cage(
    actor: Actor, table: dict[str, Any], pose: Pose, vertices: Floats, size: float, extents: Floats | None
) -> Enclosure:
    """Cut an actor's skin where the table says, and grow the cage around it, unless its ``extents`` are known."""
    cuts = _cuts(table, actor, pose, vertices, MARGIN * size)
    regions: list[tuple[str, list[str]]] = []
    for name, quads in table["regions"].items():
        regions.append((name, quads))
        if name.startswith("left_"):
            regions.append((_mirrored(name), [_mirrored(quad) for quad in quads]))
    rig = quads_at_cuts(
        table["name"], vertices, actor.faces, cuts, regions, root=table["root"], margin=1.6 * MARGIN * size
    )
    rig = _grown_before(rig, actor.body, size) if extents is None else replace(rig, extents=extents)
    cage = build_cage(rig)
    depth = clearance(vertices, cage)[0]
    if extents is not None or depth.min() >= 0.5 * MARGIN * size:
        return Enclosure(rig, cage, depth, np.zeros_like(rig.extents))
    enclosure = enclose(rig, vertices, margin=MARGIN * size, step=0.003 * size)
    if enclosure.depth.min() < 0.3 * MARGIN * size:
        raise InputError(
            f"body '{actor.body}': its cage leaves {int((enclosure.depth < 0).sum())} template vertices outside "
            f"(worst {-enclosure.depth.min():.2f} mm); keep lengths and girths nearer to the built-in body's"
        )
    return enclosure


def _grown_before(rig: QuadRig, body: str, size: float) -> QuadRig:
    """Start from the sizes that held the built-in body, which leaves little to grow."""
    path = CUTS / body / "quads.toml"
    if not path.is_file():
        return rig
    known = load_quad_rig(path)
    if known.quad_names != rig.quad_names:
        return rig
    scale = size / float(_table(body)["size"])
    candidate = replace(rig, extents=np.maximum(rig.extents, scale * known.extents))
    try:
        build_cage(candidate)
    except InputError:
        return rig
    return candidate


@cache  # asked for by every shape that is tried on
def _table(body: str) -> dict[str, Any]:
    path = CUTS / body / "cuts.toml"
    if not path.is_file():
        raise InputError(f"body '{body}' has no table of cuts; built-in bodies are mouse, rat and human")
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _mirrored(name: str) -> str:
    return f"right_{name.removeprefix('left_')}" if name.startswith("left_") else name


def _cuts(table: dict[str, Any], actor: Actor, pose: Pose, vertices: Floats, room: float) -> list[Cut]:
    cuts = []
    for entry in table["cut"]:
        sides = (False, True) if entry["name"].startswith("left_") else (False,)
        cuts += [_cut(entry, side, actor, pose, vertices, room) for side in sides]
    return cuts


def _cut(entry: dict[str, Any], mirror: bool, actor: Actor, pose: Pose, vertices: Floats, room: float) -> Cut:
    flip = np.array([1.0, -1.0, 1.0]) if mirror else np.ones(3)

    def point(name: str) -> Floats:
        segment, offset = actor.skeleton.point(_mirrored(name) if mirror else name)
        return np.asarray(pose.points(np.array([segment]), offset[None])[0, 0])

    at = entry["at"]
    centre = point(at[0]) if len(at) == 1 else (1 - at[2]) * point(at[0]) + at[2] * point(at[1])
    centre = centre + flip * np.asarray(entry.get("offset", [0.0, 0.0, 0.0]), float)
    normal = np.zeros(3)
    parts = entry["normal"]
    if not isinstance(parts[0], list):
        parts = [parts]
    for part in parts:
        way = point(part[1]) - point(part[0]) if isinstance(part[0], str) else flip * np.asarray(part, float)
        normal += way / np.linalg.norm(way)
    if entry.get("level"):
        normal[2] = 0.0
    normal /= np.linalg.norm(normal)
    width = np.asarray(entry["width"], float)
    name = _mirrored(entry["name"]) if mirror else entry["name"]
    if "end" not in entry:
        grow = np.asarray(entry.get("grow", [0.0] * 4), float)
        return Cut(name, centre, normal, width, grow=grow)
    # The body ends here: the quad stands just beyond its last point, as wide as its last third.
    away = vertices - centre
    near = (np.linalg.norm(away, axis=1) < entry["end"]) & (away @ normal > 0)
    reach = float((away[near] @ normal).max()) if near.any() else 0.0
    last = away[near & (away @ normal > 0.7 * reach)]
    across = width - normal * (normal @ width)
    axes = np.stack([across / np.linalg.norm(across), np.cross(normal, across / np.linalg.norm(across))])
    flat = last @ axes.T
    low, high = flat.min(axis=0) - room, flat.max(axis=0) + room
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    tip = centre + (reach + 1.6 * room) * normal + middle @ axes
    return Cut(name, tip, normal, width, np.array([half[0], half[0], half[1], half[1]]))
