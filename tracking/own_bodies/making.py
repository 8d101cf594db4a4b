"""A subject from a mesh and a list of joints, step by step; what was made is kept when a later step fails."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import trimesh

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from calibration.foundation.files import atomic_path
from capture.raycasting import SurfaceScene
from skeleton.bodies import BODIES
from skeleton.bodies.marker_sets import MarkerSet
from tracking.own_bodies.anchoring import anchors_of, axis_pieces, inward
from tracking.own_bodies.caging import Caged, CageFailure, laid_and_caged
from tracking.own_bodies.flesh import Flesh
from tracking.own_bodies.joint_ranges import attachment_of, default_prior, skeleton_of
from tracking.own_bodies.joints_file import BodyPlan
from tracking.own_bodies.mending import Mended, mended
from tracking.own_bodies.picture import draw_body
from tracking.own_bodies.quad_layout import Layout, lay_out
from tracking.quads.body_rig import MARGIN
from tracking.quads.cage import clearance
from tracking.quads.oriented_quads import save_quad_rig
from tracking.quads.placement import Enclosure
from tracking.quads.template import thinned
from tracking.subjects.skeleton import SubjectSkeleton
from tracking.subjects.subject import Subject, make_subject

__all__ = ["PICTURE", "OwnBodyCheck", "own_subject"]

PICTURE = "body.png"
NEAR, TIP_NEAR = 0.015, 0.04
"""How far outside the mesh a joint, or an end of the body, may be given, as a share of the mesh's diagonal."""
IN_AIR = 0.4
"""Share of a bone's length outside the mesh from which on the joints do not belong to it."""
FAR = 0.3
"""Flesh whose way to the nearest bone is longer than this share of the diagonal has no joint of its own."""
FEET = 0.05
"""Ends of the body this share of the height above the lowest one stand on the floor."""
MOST_VERTICES = 12_000
"""A mesh of more is thinned out: the tracker matches 2,500 of them, and each is written in every frame."""
MARKERS = 4
"""Virtual markers per bone."""
MARKER_SD = 0.006
"""How far a marker wanders about its bone, as a share of the diagonal."""


@dataclass(frozen=True, eq=False)
class OwnBodyCheck:
    """How a body came out.

    Attributes:
        notes: what was mended or moved, in words.
        outside: share of the vertices that stand out of the cage and hang on it by anchors; outside_mm: the furthest.
        smallest: name of the quad that had to be drawn in most, and to what share of its size.
    """

    notes: tuple[str, ...]
    outside: float
    outside_mm: float
    smallest: tuple[str, float]


def own_subject(folder: Path, vertices: Floats, faces: Ints, plan: BodyPlan, what: str) -> tuple[Subject, OwnBodyCheck]:
    """Make a subject whose template is a mesh and whose joints are given.

    Args:
        folder: of the subject, named after it; a picture is left there, and on failure what was made.
        vertices: (V, 3) mesh, mm, z up. faces: (F, 3).
        plan: joints in it, mm.
        what: name of the mesh's file, for errors.

    Raises:
        InputError: the mesh cannot be mended, joints lie outside it, or no cage can be built.
    """
    name = folder.resolve().name
    closed = _thinned(mended(vertices, faces, what), what)
    turn, shift = _upright_frame(closed.vertices, plan)
    points = closed.vertices @ turn.T + shift
    plan = plan.moved(plan.places @ turn.T + shift)
    notes = list(closed.notes)
    size = float(np.linalg.norm(np.ptp(points, axis=0)))
    folder.mkdir(parents=True, exist_ok=True)
    picture = folder / PICTURE
    flesh = Flesh.of(points, closed.faces)
    plan, moved = _joints_inside(plan, flesh, closed.faces, size, picture, what)
    notes += moved
    notes += _far_flesh(plan, flesh, size)
    try:
        layout, found = laid_and_caged(
            lambda without: lay_out(plan, flesh, closed.faces, name, room=1.6 * MARGIN * size, without=without)
        )
    except CageFailure as failure:
        _leave(folder, points, closed.faces)
        save_quad_rig(failure.rig, folder / "cage_quads.toml")
        draw_body(
            picture, points, closed.faces, plan=plan, rig=failure.rig, wrong=list(failure.rig.centres[failure.quads]),
            title=str(failure),
        )  # fmt: skip
        raise InputError(f"{failure}; see {picture}") from None
    subject, outside = _assembled(name, points, closed.faces, plan, flesh, layout, found, size)
    draw_body(picture, points, closed.faces, plan=plan, rig=found.rig, title=name)
    least = int(np.argmin(found.drawn))
    check = OwnBodyCheck(
        tuple(notes),
        float((outside > 0).mean()),
        float(outside.max(initial=0.0)),
        (found.rig.quad_names[least], float(found.drawn[least])),
    )
    return subject, check


def _thinned(closed: Mended, what: str) -> Mended:
    """Thin out a mesh with more vertices than details."""
    if len(closed.vertices) <= MOST_VERTICES:
        return closed
    points, faces = thinned(closed.vertices, closed.faces, MOST_VERTICES)
    note = f"thinned out from {len(closed.vertices)} to {len(points)} vertices"
    again = mended(points, faces, what)
    return replace(again, notes=(*closed.notes, note, *again.notes))


def _assembled(
    name: str, points: Floats, faces: Ints, plan: BodyPlan, flesh: Flesh, layout: Layout, found: Caged, size: float
) -> tuple[Subject, Floats]:
    """Bind the mesh, hang the quads on the skeleton, and say how far each vertex stands out of the cage (V,), mm."""
    room = 0.3 * MARGIN * size
    anchors = anchors_of(found.rig, found.cage, flesh, faces, room=room)
    # A subject may be called like a built-in body; its skeleton is another.
    body = f"{name} (own)" if name in BODIES else name
    skeleton = skeleton_of(plan, body, feet=FEET * float(np.ptp(points[:, 2])))
    prior = default_prior(attachment_of(layout, found.rig, plan, skeleton), plan)
    joints = skeleton.landmarks(skeleton.forward(skeleton.rest()))[1][0]
    starts, ends = axis_pieces(found.rig)
    piece = flesh.owners(starts, ends)[0][flesh.cubes(joints)]
    held = inward(joints, starts[piece], ends[piece], found.cage, room)
    names, which, markers = _markers(plan, flesh, MARKER_SD * size)
    bones = SubjectSkeleton(body, dict.fromkeys(skeleton.joint_names, 1.0), skeleton.rest()[0], markers, skeleton)
    enclosure = Enclosure(found.rig, found.cage, clearance(points, found.cage)[0], np.zeros_like(found.rig.extents))
    subject = make_subject(
        name, enclosure, points, faces, prior, (names, which), joints, bones, np.concatenate([anchors, held])
    )
    return subject, np.maximum(-enclosure.depth, 0.0)


def _upright_frame(vertices: Floats, plan: BodyPlan) -> tuple[Floats, Floats]:
    """Turn (3, 3) about the vertical and shift (3,) that bring a body to x forward, y left, feet on the floor."""
    side = np.zeros(3)
    for index, name in enumerate(plan.names):
        if "left" in name and (other := name.replace("left", "right")) in plan.names:
            side += plan.places[index] - plan.places[plan.names.index(other)]
    side[2] = 0.0
    if np.linalg.norm(side) < 1e-6:  # no sides: along its longest level direction
        level = vertices[:, :2] - vertices[:, :2].mean(axis=0)
        forward = np.linalg.svd(level, full_matrices=False)[2][0]
        side = np.array([-forward[1], forward[0], 0.0])
    side /= np.linalg.norm(side)
    forward = np.array([side[1], -side[0], 0.0])
    turn = np.stack([forward, side, np.array([0.0, 0.0, 1.0])])
    root = turn @ plan.places[0]
    return turn, np.array([-root[0], -root[1], -float((vertices @ turn.T)[:, 2].min())])


def _joints_inside(
    plan: BodyPlan, flesh: Flesh, faces: Ints, size: float, picture: Path, what: str
) -> tuple[BodyPlan, list[str]]:
    """Draw joints that lie just outside into the mesh; refuse those that lie far outside, and bones in the air."""
    vertices = flesh.vertices
    scene = SurfaceScene([(vertices, faces)])
    away = scene.signed_distances(plan.places)
    ends = np.array([not children for children in plan.children])
    bad = np.flatnonzero(away > np.where(ends, TIP_NEAR, NEAR) * size)
    message = ""
    if len(bad):
        told = ", ".join(f"{plan.names[joint]} ({away[joint]:.1f} mm off)" for joint in bad[:4])
        more = f" and {len(bad) - 4} more" if len(bad) > 4 else ""
        message = (
            f"{what}: {len(bad)} of {len(plan)} joints lie outside the mesh: {told}{more}; places in joints.toml are "
            "in the units and axes of the mesh file"
        )
    else:
        for parent, child in plan.bones:
            on = plan.places[parent] + np.linspace(0, 1, 21)[:, None] * (plan.places[child] - plan.places[parent])
            if (scene.signed_distances(on) > NEAR * size).mean() > IN_AIR:
                bad = np.array([parent, child])
                message = (
                    f"{what}: the bone from {plan.names[parent]} to {plan.names[child]} runs outside the mesh; is that "
                    "its parent? are the joints those of this mesh?"
                )
                break
    if message:
        draw_body(picture, vertices, faces, plan=plan, wrong=list(plan.places[bad]), title=message)
        raise InputError(f"{message}; see {picture}")
    outside = np.flatnonzero(away > 0)
    places = plan.places.copy()
    if len(outside):
        places[outside] = flesh.middles[flesh.cubes(places[outside])]
    told_of = outside[away[outside] > 0.005 * size]
    notes = [f"{plan.names[joint]} lay {away[joint]:.1f} mm outside and was drawn in" for joint in told_of]
    return plan.moved(places), notes


def _far_flesh(plan: BodyPlan, flesh: Flesh, size: float) -> list[str]:
    """Say where flesh hangs on no bone of its own."""
    _, way = flesh.owners(plan.places[plan.bones[:, 0]], plan.places[plan.bones[:, 1]])
    worst = int(np.argmax(way))
    if way[worst] < FAR * size:
        return []
    at = np.round(flesh.middles[worst]).tolist()
    return [f"flesh at {at} mm lies {way[worst]:.0f} mm from the nearest bone and will follow it stiffly: add a joint?"]


def _markers(plan: BodyPlan, flesh: Flesh, sd_mm: float) -> tuple[tuple[str, ...], Ints, MarkerSet]:
    """Spread virtual markers over the skin of each bone, the first at its far end."""
    owner = flesh.vertex_owners(plan.places[plan.bones[:, 0]], plan.places[plan.bones[:, 1]])
    names, which, segments = [], [], []
    for bone, (parent, child) in enumerate(plan.bones):
        own = np.flatnonzero(owner == bone)
        if not len(own):
            continue
        places = flesh.vertices[own]
        along = places @ (plan.places[child] - plan.places[parent])
        chosen = [int(np.argmax(along))]
        apart = np.linalg.norm(places - places[chosen[0]], axis=1)
        while len(chosen) < min(MARKERS, len(own)) and apart.max() > 0:
            chosen.append(int(np.argmax(apart)))
            apart = np.minimum(apart, np.linalg.norm(places - places[chosen[-1]], axis=1))
        for number, index in enumerate(chosen, start=1):
            names.append(f"{plan.names[child]}_{number}")
            which.append(int(own[index]))
            segments.append(int(parent))
    offsets = flesh.vertices[which] - plan.places[segments]
    held = MarkerSet(
        tuple(names), tuple(plan.names[segment] for segment in segments), offsets, np.full(len(names), sd_mm)
    )
    return tuple(names), np.array(which, np.int64), held


def _leave(folder: Path, vertices: Floats, faces: Ints) -> None:
    """Leave the mended mesh in the folder of a subject that could not be made."""
    with atomic_path(folder / "template.ply") as temporary:
        trimesh.Trimesh(vertices, faces, process=False).export(temporary, file_type="ply", encoding="binary")
