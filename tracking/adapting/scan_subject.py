"""A subject from a scan: the built-in body is fitted to it, and its quads are handed over.

The scan is filmed by virtual cameras and the built-in body, prior and all, is fitted to its silhouettes. Where the
fitted cage went, the scan is carried back: into the pose with limbs apart in which cages are built, with the segment
lengths that the fit found. There the quads are enlarged until their cage holds the scan, which is the template. Markers
go to the nearest points of the scan, the skeleton is fitted to them, and carries the built-in prior over.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import coo_matrix, eye
from scipy.sparse.linalg import splu
from scipy.spatial import cKDTree

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from calibration.geometry.meshes import vertex_normals
from skeleton.inverse_kinematics.scaling import scale_body
from skeleton.inverse_kinematics.spring_ik import fit_skeleton
from tracking.adapting.scale_search import find_scale, make_solver
from tracking.fitting.initialisation import Finder
from tracking.fitting.solver import FrameFit
from tracking.priors.scaling import builtin_prior_for
from tracking.quads.attachment import attach_alike
from tracking.quads.body_rig import MARGIN, builtin_attachment
from tracking.quads.cage import clearance
from tracking.quads.oriented_quads import QuadPose, QuadRig
from tracking.quads.placement import Enclosure, drawn_in, enclose
from tracking.quads.template import Template
from tracking.sequence.mesh_views import MeshSequence
from tracking.subjects.mesh_files import mesh_volume, require_closed
from tracking.subjects.skeleton import SubjectSkeleton
from tracking.subjects.subject import Subject, builtin_subject, make_subject, scaled_subject

__all__ = ["ScanCheck", "ScanFit", "fit_body", "scan_subject"]

UP = np.array([0.0, 0.0, 1.0])
LEAST_OVERLAP = 0.8
"""Overlap of the fitted body's silhouettes with the scan's below which the scan is not taken for that body: people in
loose clothes and hulls reach 0.86 and more, a drawn bird as a human 0.78, a hand as a rat 0.75."""
SIZES = {"mouse": (0.4, 2.5), "rat": (0.25, 2.0), "human": (0.25, 1.45)}
"""Sizes against the built-in body, newborn to giant. Overlap alone does not tell: a hand is a human at 0.83, x 0.15."""


@dataclass(frozen=True, eq=False)
class ScanFit:
    """The built-in body fitted to a scan.

    Attributes:
        subject: the built-in subject at the scan's size.
        scale: that size against the built-in body.
        pose: its quads, in the scan's place.
        vertices: (V, 3) its template there, mm.
        overlap: mean silhouette overlap.
    """

    subject: Subject
    scale: float
    pose: QuadPose
    vertices: Floats
    overlap: float


def fit_body(vertices: Floats, faces: Ints, body: str, *, cameras: int = 16) -> ScanFit:
    """Fit a built-in body to one mesh (V, 3), mm, z up, whatever its place, size, pose and heading.

    Raises:
        InputError: the mesh does not look like that body.
    """
    views = MeshSequence(lambda _: (vertices, faces), [0], cameras=cameras)
    look = views.observe(0)
    subject = builtin_subject(body)
    # Bodies differ in size first: bring the template to the scan's before looking for the rest.
    rough = float(
        np.cbrt(mesh_volume(vertices, faces) / mesh_volume(subject.template.vertices, subject.template.faces))
    )
    least, most = SIZES[body]
    if not least < rough < most:
        raise InputError(
            f"the mesh has {rough:.3g} times the size of the built-in {body} ({least:g} to {most:g} can be one); "
            "is its unit the millimetre (--unit-mm)? Another animal, or a part of one, needs --joints instead of --body"
        )
    subject = scaled_subject(subject, rough)
    scale = find_scale(subject, views.rig, lambda _: look, [0], up=UP)
    subject = scaled_subject(subject, scale)
    solver = make_solver(subject, views.rig)
    fit: FrameFit = Finder(solver, views.rig, UP).find(look)[0]
    fit = solver.fit(look, fit.pose, fit.latent, latent_steps=False)
    if fit.agreement < LEAST_OVERLAP:
        raise InputError(
            f"the mesh does not look like a {body}: the fitted body's silhouettes overlap its own by "
            f"{fit.agreement:.2f} only ({LEAST_OVERLAP:g} wanted); check --body, --up and that it is one body alone"
        )
    pose = replace(fit.pose, centres=fit.pose.centres + views.middles[0])
    surface = subject.cage_rig.deform(subject.template.binding, pose)
    return ScanFit(subject, rough * scale, pose, surface, fit.agreement)


def scan_subject(name: str, vertices: Floats, faces: Ints, fitted: ScanFit) -> tuple[Subject, ScanCheck]:
    """Make a subject whose template is the scan.

    Args:
        name: of the subject and its rig.
        vertices: (V, 3) closed scan, mm, z up.
        faces: (F, 3).
        fitted: the built-in body on it.

    Returns:
        The subject, and how well its quads, put back where the fit had them, give the scan again.

    Raises:
        InputError: the scan is not closed, or the cage cannot be enlarged to hold it.
    """
    faces = require_closed(vertices, faces, f"subject '{name}'")
    known = fitted.subject
    rest = _stretched_rest(known.cage_rig.quads, fitted.pose)
    template = _carried_back(vertices, faces, fitted, rest)
    size = float(np.linalg.norm(np.ptp(template, axis=0)))
    rig = replace(known.cage_rig.quads, name=name, centres=rest.centres)
    enclosure = enclose(rig, template, margin=MARGIN * size, step=0.003 * size)
    template, drawn = drawn_in(template, enclosure, 0.3 * MARGIN * size, what=f"subject '{name}'")
    own = _matching(
        cKDTree(vertices),
        vertex_normals(vertices, faces),
        fitted.vertices[known.marker_vertices],
        vertex_normals(fitted.vertices, known.template.faces)[known.marker_vertices],
    )[:, 0]
    bones = _bones(known, template[own])
    joints = _inside(bones.skeleton.landmarks(bones.pose)[1][0], template, enclosure)
    attachment = attach_alike(enclosure.rig, bones.skeleton, bones.pose, builtin_attachment(known.body))
    prior = builtin_prior_for(attachment)
    subject = make_subject(name, enclosure, template, faces, prior, (known.marker_names, own), joints, bones)
    again = subject.cage_rig.deform(subject.template.binding, fitted.pose)
    return subject, ScanCheck(
        float(np.linalg.norm(again - vertices, axis=1).mean()),
        float(enclosure.grown.max()),
        len(drawn),
        float(drawn.max(initial=0.0)),
    )


@dataclass(frozen=True)
class ScanCheck:
    """Report on a subject from a scan.

    Attributes:
        again_mm: mean distance of the scan's vertices from where the fitted quads put the template's.
        grown_mm: largest growth of a side of a quad.
        drawn_in: vertices that no quad could be enlarged to hold, and were drawn into the cage; by how far at most, mm.
    """

    again_mm: float
    grown_mm: float
    drawn_in: int
    drawn_in_mm: float


def _matching(tree: cKDTree, normals: Floats, points: Floats, own: Floats, *, keep: int = 1) -> Ints:
    """Indices (P, keep) of a tree's nearest points of like normal, nearest first."""
    near = tree.query(points, k=max(24, keep))[1]
    facing = np.einsum("pki,pi->pk", normals[near], own) > 0.3
    order = np.argsort(~facing, axis=1, kind="stable")[:, :keep]
    return np.asarray(np.take_along_axis(near, order, axis=1), np.int64)


def _stretched_rest(rig: QuadRig, pose: QuadPose) -> QuadPose:
    """The rest pose with neighbours along limbs and spine as far away as in ``pose``, outwards from the root.

    Across a branching region (chest, pelvis) distances change with the pose too, and are left.
    """
    tubes = {frozenset(region.quads) for region in rig.regions if len(region.quads) == 2}
    centres = rig.centres.copy()
    done, queue = {rig.root}, [rig.root]
    while queue:
        quad = queue.pop(0)
        for a, b in rig.neighbours:
            other = int(b) if a == quad else int(a) if b == quad else -1
            if other < 0 or other in done:
                continue
            bone = rig.centres[other] - rig.centres[quad]
            apart = float(np.linalg.norm(pose.centres[other] - pose.centres[quad]))
            stretch = apart / np.linalg.norm(bone) if frozenset((quad, other)) in tubes else 1.0
            centres[other] = centres[quad] + np.clip(stretch, 0.6, 1.6) * bone
            done.add(other)
            queue.append(other)
    return QuadPose(rig.rotations, centres)


def _carried_back(vertices: Floats, faces: Ints, fitted: ScanFit, rest: QuadPose) -> Floats:
    """Carry the scan from the fitted pose to the rest pose, with the body beside which each vertex lies.

    Near a point x of the body, the cage's map of one pose onto the other is A = G_rest G_pose^-1, G being the
    derivative of the deformed point by x. A vertex goes with the mean of its nearest body points; the edges of the scan
    then keep what the maps make of them, so that places near two limbs do not tear.
    """
    subject = fitted.subject
    body = subject.outline_template
    here, there = (subject.cage_rig.deform(body.binding, pose) for pose in (fitted.pose, rest))
    maps = _gradients(subject, body, rest) @ np.linalg.inv(_gradients(subject, body, fitted.pose))
    # A cage that folds locally must not throw the scan about: keep the rotation and a bounded stretch.
    left, stretch, right = np.linalg.svd(maps)
    maps = left @ (np.clip(stretch, 0.7, 1.4)[:, :, None] * right)
    normals = vertex_normals(here, body.faces)
    near = _matching(cKDTree(here), normals, vertices, vertex_normals(vertices, faces), keep=8)
    away = np.linalg.norm(vertices[:, None] - here[near], axis=2)
    weights = 1.0 / (away + 0.25 * away.mean()) ** 2
    weights /= weights.sum(axis=1, keepdims=True)
    moved = there[near] + np.einsum("pkij,pkj->pki", maps[near], vertices[:, None] - here[near])
    guess = np.einsum("pk,pki->pi", weights, moved)
    turn = np.einsum("pk,pkij->pij", weights, maps[near])
    edges = np.unique(np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0)
    first, second = edges.T
    wanted = np.einsum("eij,ej->ei", 0.5 * (turn[first] + turn[second]), vertices[second] - vertices[first])
    rows = np.arange(len(edges))
    count = len(vertices)
    ends = coo_matrix(
        (
            np.concatenate([-np.ones(len(edges)), np.ones(len(edges))]),
            (np.tile(rows, 2), np.concatenate([first, second])),
        ),
        shape=(len(edges), count),
    ).tocsr()
    stiff = 20.0
    system = (eye(count) + stiff * ends.T @ ends).tocsc()
    return np.asarray(splu(system).solve(guess + stiff * ends.T @ wanted))


def _gradients(subject: Subject, body: Template, pose: QuadPose) -> Floats:
    """Derivative (V, 3, 3) of the deformed template by its rest place, by small differences inside the cage."""
    step = 1e-3 * MARGIN * float(np.linalg.norm(np.ptp(body.vertices, axis=0)))
    base = subject.cage_rig.deform(body.binding, pose)
    columns = []
    for axis in np.eye(3):
        shifted = subject.cage_rig.bind(body.vertices + step * axis, what="template vertices")
        columns.append((subject.cage_rig.deform(shifted, pose) - base) / step)
    return np.stack(columns, axis=-1)


def _bones(known: Subject, markers: Floats) -> SubjectSkeleton:
    """Fit lengths and pose of the skeleton to the markers (M, 3) on the scan."""
    scaling = scale_body(
        known.bones.skeleton, known.marker_names, markers[None], marker_set=known.bones.markers, frames=1
    )
    lengths = {name: known.bones.lengths[name] * factor for name, factor in scaling.factors.items()}
    fit = fit_skeleton(scaling.skeleton, known.marker_names, markers[None], marker_set=scaling.marker_set)
    return SubjectSkeleton(known.body, lengths, np.array(fit.coordinates[0]), scaling.marker_set)


def _inside(points: Floats, vertices: Floats, enclosure: Enclosure) -> Floats:
    """Bring points that fall outside the cage (tips a little too long) to the scan's nearest vertex."""
    depth = clearance(points, enclosure.cage)[0]
    points = points.copy()
    for index in np.flatnonzero(depth < 0.0):
        points[index] = vertices[int(np.argmin(np.linalg.norm(vertices - points[index], axis=1)))]
    return points
