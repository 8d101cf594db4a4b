"""Subjects: everything the tracker must know of one animal or person.

A subject is a built-in body (mouse, rat, human), or a folder made by `vivarig subject` that holds its template
(`template.ply`), quads in the cage's pose (`cage_quads.toml`), prior (`prior.npz`), points (`points.npz`), markers on
the skeleton (`markers.toml`) and the skeleton's lengths with its pose in the cage (`subject.toml`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from calibration.foundation.arrays import Floats, Ints, shaped
from calibration.foundation.damaged_files import reading
from calibration.foundation.errors import InputError, nearest
from calibration.foundation.files import atomic_path
from calibration.foundation.names import checked_name
from calibration.foundation.npz_files import read_npz
from skeleton.actors.actor import build_actor
from skeleton.bodies import BODIES
from skeleton.bodies.marker_sets import builtin_markers
from tracking.priors.files import load_prior, save_prior
from tracking.priors.gplvm import GplvmPrior
from tracking.priors.prior import LinearPrior
from tracking.priors.scaling import builtin_prior_for
from tracking.quads.body_rig import place_body_rig, reference_coordinates
from tracking.quads.cage import build_cage
from tracking.quads.deformation import CageRig, resized, scaled_cage
from tracking.quads.oriented_quads import load_quad_rig, save_quad_rig
from tracking.quads.placement import Enclosure
from tracking.quads.template import STEP_VERTICES, Template, bound, coarse_anchored, coarse_template
from tracking.subjects.body_points import BodyPoints
from tracking.subjects.mesh_files import raw_mesh
from tracking.subjects.settled_joints import settled_rows
from tracking.subjects.shipped_templates import Mesh, shipped_extents, shipped_templates
from tracking.subjects.skeleton import SubjectSkeleton, load_subject_skeleton, save_subject_skeleton

__all__ = [
    "Subject",
    "builtin_subject",
    "load_subject",
    "make_subject",
    "save_subject",
    "scaled_subject",
    "taught",
]

_AGAIN = "make the subject again with `vivarig subject`"


@dataclass(frozen=True, eq=False)
class Subject:
    """What the tracker must know of one subject.

    Attributes:
        name: for people.
        body: built-in body it was made from, or its own name.
        cage_rig: quads and cage, in the cage's pose.
        template: mesh bound to the cage, as it is written out.
        outline_template: the same surface with fewer vertices, which the solver matches to outlines.
        prior: learned poses of the quads.
        marker_names, marker_vertices: virtual markers, as template vertices (M,).
        joint_names: points inside the body that the cage carries; joint_points: (J, 3) in the cage's pose, mm.
        joint_binding: (J, 4 Q + F) their coordinates.
        bones: the skeleton inside, in the cage's pose.
        step_template: the surface with still fewer vertices, for the solver's coarse steps.
        points: points that the recording's files of 2D points mark, None where it has none.
        anchors: (V + J, 3) places inside the cage that carry the template's vertices and the joints; None where each
            carries itself.
        sizes: (Q, 2) factors of the quads' width and height in other poses than the cage's, learned from meshes of the
            subject (`taught`); None where they are those of the cage.
    """

    name: str
    body: str
    cage_rig: CageRig
    template: Template
    outline_template: Template
    prior: LinearPrior | GplvmPrior
    marker_names: tuple[str, ...]
    marker_vertices: Ints
    joint_names: tuple[str, ...]
    joint_points: Floats
    joint_binding: Floats
    bones: SubjectSkeleton
    step_template: Template
    points: BodyPoints | None = None
    anchors: Floats | None = None
    sizes: Floats | None = None


def builtin_subject(
    body: str, *, lengths: Mapping[str, float] | float = 1.0, girth: Mapping[str, float] | float = 1.0
) -> Subject:
    """Make a subject from a built-in body, scaled.

    Args:
        body: "mouse", "rat" or "human".
        lengths: length factor of all segments, or per joint (others 1).
        girth: thickness factor, likewise.
    """
    if body not in BODIES:
        raise InputError(f"unknown subject '{body}'; {nearest(body, BODIES)}, or give a folder of `vivarig subject`")
    actor = build_actor(body, lengths=lengths, girth=girth)
    own_size = lengths == girth == 1.0
    placed = place_body_rig(actor, extents=shipped_extents(body) if own_size else None)
    # The shipped prior is one of the skeleton's poses; these quads take it over, whatever the lengths.
    prior = builtin_prior_for(placed.attachment)
    _, points = actor.skeleton.landmarks(placed.pose)
    markers = builtin_markers(body)
    segments = [actor.skeleton.index(segment) for segment in markers.segments]
    subject = make_subject(
        body,
        placed.enclosure,
        placed.vertices,
        actor.faces,
        prior,
        (actor.marker_names, actor.marker_vertices),
        points[0],
        SubjectSkeleton(
            body,
            dict(zip(actor.skeleton.joint_names, map(float, actor.length), strict=True)),
            reference_coordinates(body, actor.skeleton)[0],
            markers.with_offsets(markers.offsets * actor.length[segments][:, None]),
        ),
        thin=shipped_templates(body) if own_size else None,
    )
    joints = settled_rows(subject.cage_rig, placed.attachment, prior, subject.joint_names, subject.joint_binding)
    return replace(subject, joint_binding=joints)


def make_subject(
    name: str,
    enclosure: Enclosure,
    vertices: Floats,
    faces: Ints,
    prior: LinearPrior | GplvmPrior,
    markers: tuple[tuple[str, ...], Ints],
    joint_points: Floats,
    bones: SubjectSkeleton,
    anchors: Floats | None = None,
    thin: tuple[Mesh, Mesh] | None = None,
) -> Subject:
    """Bind a template (V, 3), its markers (names and vertices) and joints (J, 3) to a cage that holds them.

    Or that holds their ``anchors`` (V + J, 3). ``thin`` are the same mesh with fewer vertices, where known: that of
    outlines and that of coarse steps.
    """
    cage_rig = CageRig(enclosure.rig, enclosure.cage)
    count = len(vertices)
    if anchors is None:
        template = Template(vertices, faces, cage_rig.bind(vertices, what="template vertices"))
        outline = coarse_template(cage_rig, template) if thin is None else bound(cage_rig, template, *thin[0])
        step = None if thin is None else bound(cage_rig, outline, *thin[1])
        joint_binding = cage_rig.bind(joint_points, what="joints")
    else:
        rows = cage_rig.bind_through(anchors, np.concatenate([vertices, joint_points]), what="anchors of the template")
        template, joint_binding = Template(vertices, faces, rows[:count]), rows[count:]
        outline = coarse_anchored(cage_rig, template, anchors[:count])
        step = coarse_anchored(cage_rig, template, anchors[:count], vertices=STEP_VERTICES)
    return Subject(
        name,
        bones.body,
        cage_rig,
        template,
        outline,
        prior,
        markers[0],
        markers[1],
        tuple(bones.skeleton.landmark_names),
        joint_points,
        joint_binding,
        bones,
        step or coarse_template(cage_rig, outline, vertices=STEP_VERTICES),
        anchors=anchors,
    )


def taught(subject: Subject, sizes: Floats, spread: Floats, prior: LinearPrior | GplvmPrior) -> Subject:
    """Return a subject with what meshes of it taught: sizes of quads (Q, 2), spread of outlines (V,) mm, its poses."""
    tree = cKDTree(subject.template.vertices)

    def told(template: Template) -> Template:
        return replace(template, spread=spread[np.asarray(tree.query(template.vertices)[1], np.int64)])

    return replace(
        subject,
        cage_rig=resized(subject.cage_rig, sizes),
        template=replace(subject.template, spread=spread),
        outline_template=told(subject.outline_template),
        step_template=told(subject.step_template),
        prior=prior,
        sizes=sizes,
    )


def scaled_subject(subject: Subject, scale: float) -> Subject:
    """Return the subject with all lengths multiplied by one factor: the same coordinates, normals' share scaled."""
    rig = subject.cage_rig.quads
    chart = replace(subject.prior.chart, length_scale=subject.prior.chart.length_scale * scale)
    columns = np.ones(subject.template.binding.shape[1])
    columns[4 * len(rig) :] = scale
    return replace(
        subject,
        cage_rig=scaled_cage(subject.cage_rig, scale),
        template=_scaled(subject.template, scale, columns),
        outline_template=_scaled(subject.outline_template, scale, columns),
        prior=replace(subject.prior, chart=chart),
        joint_points=subject.joint_points * scale,
        joint_binding=subject.joint_binding * columns,
        bones=subject.bones.scaled(scale),
        step_template=_scaled(subject.step_template, scale, columns),
        points=None if subject.points is None else subject.points.scaled(len(rig), scale),
        anchors=None if subject.anchors is None else subject.anchors * scale,
    )


def _scaled(template: Template, scale: float, columns: Floats) -> Template:
    spread = None if template.spread is None else template.spread * scale
    return Template(template.vertices * scale, template.faces, template.binding * columns, spread, template.flesh)


def save_subject(subject: Subject, folder: Path | str) -> Path:
    """Write a subject as a folder whose quads can be edited by hand."""
    import trimesh  # a tenth of what a worker would import

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    mesh = trimesh.Trimesh(subject.template.vertices, subject.template.faces, process=False)
    with atomic_path(folder / "template.ply") as temporary:
        mesh.export(temporary, file_type="ply", encoding="binary")
    rest = subject.cage_rig if subject.sizes is None else resized(subject.cage_rig, 1.0 / subject.sizes)
    save_quad_rig(rest.quads, folder / "cage_quads.toml")
    save_prior(subject.prior, folder / "prior.npz")
    save_subject_skeleton(subject.bones, folder)
    points: dict[str, Any] = {
        "name": np.str_(subject.name),
        "body": np.str_(subject.body),
        "vertices": subject.template.vertices,
        "marker_names": np.array(subject.marker_names, dtype=np.str_),
        "marker_vertices": subject.marker_vertices,
        "joint_names": np.array(subject.joint_names, dtype=np.str_),
        "joint_points": subject.joint_points,
    }
    if subject.anchors is not None:
        points["anchors"] = subject.anchors
    if subject.sizes is not None and subject.template.spread is not None:
        points |= {"sizes": subject.sizes, "spread": subject.template.spread}
    with atomic_path(folder / "points.npz") as temporary, open(temporary, "wb") as stream:
        np.savez_compressed(stream, **points)
    return folder


def load_subject(name: str, *, base: Path | None = None) -> Subject:
    """Return a built-in subject by name, or read one from its folder (relative to ``base``, then as given)."""
    if name in BODIES:
        return builtin_subject(name)
    for folder in ([base / name] if base is not None else []) + [Path(name)]:
        if (folder / "points.npz").is_file():
            return _from_folder(folder)
    raise InputError(
        f"unknown subject '{name}': neither a built-in body ({', '.join(BODIES)}) nor a folder of `vivarig subject`"
    )


def _from_folder(folder: Path) -> Subject:
    points = read_npz(folder / "points.npz", "the points of a subject", remedy=_AGAIN)
    with reading(folder / "points.npz", "the points of a subject", remedy=_AGAIN):
        vertices = shaped(points["vertices"], (None, 3), f"{folder / 'points.npz'}: vertices").copy()
        joints = shaped(points["joint_points"], (None, 3), f"{folder / 'points.npz'}: joint_points").copy()
        markers = (tuple(str(word) for word in points["marker_names"]), points["marker_vertices"].astype(np.int64))
        if markers[1].shape != (len(markers[0]),) or not ((markers[1] >= 0) & (markers[1] < len(vertices))).all():
            raise InputError(f"{folder / 'points.npz'}: its markers name vertices that are not there; {_AGAIN}")
        name = checked_name(points["name"].item(), f"{folder / 'points.npz'}: the subject")
        anchors = None
        if "anchors" in points:
            wanted = (len(vertices) + len(joints), 3)
            anchors = shaped(points["anchors"], wanted, f"{folder / 'points.npz'}: anchors").copy()
        learned = None
        if "sizes" in points:
            sizes = shaped(points["sizes"], (None, 2), f"{folder / 'points.npz'}: sizes").copy()
            learned = sizes, shaped(points["spread"], (len(vertices),), f"{folder / 'points.npz'}: spread").copy()
            if not (np.isfinite(sizes).all() and (sizes > 0).all() and (learned[1] >= 0).all()):
                raise InputError(f"{folder / 'points.npz'}: sizes of quads and spread of outlines must be positive")
    count, faces = raw_mesh(folder / "template.ply")
    if count != len(vertices):
        raise InputError(
            f"{folder / 'template.ply'}: has {count} vertices, points.npz knows {len(vertices)}; "
            "to change the template, make the subject again with `vivarig subject --mesh`"
        )
    rig = load_quad_rig(folder / "cage_quads.toml")
    prior = load_prior(folder / "prior.npz", rig_name=rig.name, quad_names=rig.quad_names)
    bones = load_subject_skeleton(folder)
    if len(joints) != len(bones.skeleton.landmark_names):
        raise InputError(
            f"{folder / 'points.npz'}: {len(joints)} joints, the body '{bones.body}' has "
            f"{len(bones.skeleton.landmark_names)}; {_AGAIN}"
        )
    with reading(folder, "a subject whose files belong together", remedy=_AGAIN):
        cage = build_cage(rig)
        subject = make_subject(
            name, Enclosure(rig, cage, np.zeros(0), np.zeros_like(rig.extents)), vertices, faces, prior, markers,
            joints, bones, anchors,
        )  # fmt: skip
    if learned is None:
        return subject
    if len(learned[0]) != len(rig):
        raise InputError(f"{folder / 'points.npz'}: sizes of {len(learned[0])} quads, the rig has {len(rig)}; {_AGAIN}")
    return taught(subject, *learned, prior)
