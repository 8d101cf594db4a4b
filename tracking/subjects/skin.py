"""A subject whose skin lies elsewhere: each vertex of its outline template moved along its normal, the rest with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from calibration.foundation.arrays import Bools, Floats, Ints
from calibration.foundation.errors import InputError
from calibration.geometry.meshes import vertex_normals
from tracking.quads.anchors import anchored_moves
from tracking.quads.body_rig import MARGIN
from tracking.quads.cage import Cage, clearance
from tracking.quads.template import Template
from tracking.subjects.shape import BodyShape
from tracking.subjects.shaped import Shaper
from tracking.subjects.subject import Subject

__all__ = ["SkinMover", "loosened", "skin_moved", "subject_as_told"]

DEEPEST = 40
"""Steps, each of a fifth of the cage's margin, in which a vertex outside finds its anchor below the skin."""


class SkinMover:
    """Moves the skin of one subject; what does not depend on how far is worked out once."""

    def __init__(self, subject: Subject) -> None:
        """Prepare for a subject."""
        self.subject = subject
        self._known: dict[int, _Outward] = {}

    def moved(self, out: Floats, *, whole: bool = True) -> Subject:
        """Return the subject with its skin moved, ``out`` (V,) mm along the normals of its outline template.

        ``whole`` False leaves the mesh that is written out, and its markers, where they are, to save time.
        """
        subject = self.subject
        outline, step = (self._carried(template, out) for template in (subject.outline_template, subject.step_template))
        subject = replace(subject, outline_template=outline, step_template=step)
        if not whole:
            return subject
        template, bones = self._carried(subject.template, out), subject.bones
        which = dict(zip(subject.marker_names, subject.marker_vertices.tolist(), strict=True))
        if set(bones.markers.names) <= set(which):
            vertices = np.array([which[name] for name in bones.markers.names])
            segments = [bones.skeleton.index(name) for name in bones.markers.segments]
            shift = (template.vertices - subject.template.vertices)[vertices]
            local = np.einsum("pji,pj->pi", bones.pose.rotations[0, segments], shift)
            bones = replace(bones, markers=bones.markers.with_offsets(bones.markers.offsets + local))
        return replace(subject, template=template, bones=bones)

    def _carried(self, template: Template, out: Floats) -> Template:
        if id(template) not in self._known:
            self._known[id(template)] = _Outward.of(self.subject, template)
        return self._known[id(template)].moved(template, out)


def loosened(subject: Subject, spread: Floats) -> Subject:
    """Return a subject whose outlines lie only so near, ``spread`` (V,) mm over its outline template's vertices."""
    outline, step = subject.outline_template, subject.step_template
    near = np.asarray(cKDTree(outline.vertices).query(step.vertices)[1], np.int64)
    return replace(
        subject, outline_template=replace(outline, spread=spread), step_template=replace(step, spread=spread[near])
    )


def skin_moved(subject: Subject, out: Floats) -> Subject:
    """Return a subject with its skin moved, as `SkinMover.moved`."""
    return SkinMover(subject).moved(out)


@dataclass(frozen=True, eq=False)
class _Outward:
    """How one of a subject's meshes goes outwards.

    Attributes:
        near, shares: (V, 3) vertices of the outline template near each of its vertices, and their shares in it.
        normals: (V, 3) where it goes; 0 where the cage has no anchor for it: it stays.
        rows: (V, 4 Q + F) by how much its coordinates change with a millimetre.
    """

    near: Ints
    shares: Floats
    normals: Floats
    rows: Floats

    @classmethod
    def of(cls, subject: Subject, template: Template) -> _Outward:
        cage = subject.cage_rig.cage
        normals = vertex_normals(template.vertices, template.faces)
        anchors, held = _anchors(cage, template.vertices, normals)
        normals[~held] = 0.0
        rows = np.zeros_like(template.binding)
        rows[held] = anchored_moves(cage, anchors[held], normals[held])
        found = cKDTree(subject.outline_template.vertices).query(template.vertices, k=3)
        away, near = np.asarray(found[0], float), np.asarray(found[1], np.int64)
        shares = 1.0 / (away + 1e-6 * max(float(away.max()), 1e-9))
        return cls(near, shares / shares.sum(axis=1, keepdims=True), normals, rows)

    def moved(self, template: Template, out: Floats) -> Template:
        """Move the mesh (V, 3) as the outline template goes, ``out`` (W,) mm."""
        far = np.sum(self.shares * out[self.near], axis=1)[:, None]
        return replace(
            template, vertices=template.vertices + far * self.normals, binding=template.binding + far * self.rows
        )


def subject_as_told(builtin: Subject, table: Mapping[str, Any]) -> Subject:
    """Return the built-in body in the shape and skin that a track's file tells (`Adaptation.as_table`)."""
    subject = Shaper(builtin).make(BodyShape.told(table["body"], table["lengths"], table["girths"])).subject
    vertices = len(subject.outline_template.vertices)
    skin, spread = (_told(table, name, vertices, builtin.name) for name in ("skin", "spread"))
    if skin is not None:
        subject = skin_moved(subject, skin)
    return subject if spread is None else loosened(subject, spread)


def _told(table: Mapping[str, Any], name: str, vertices: int, body: str) -> Floats | None:
    """Return numbers of a track's file, one a vertex; None where it has none."""
    numbers = table.get(name)
    if numbers is not None and len(numbers) != vertices:
        raise InputError(
            f"the track tells a {name} of {len(numbers)} vertices, body '{body}' has {vertices}; "
            "track the recording again"
        )
    return None if numbers is None else np.array(numbers, float)


def _anchors(cage: Cage, vertices: Floats, normals: Floats) -> tuple[Floats, Bools]:
    """Places (V, 3) well inside the cage below the vertices, and whether there is one."""
    room = 0.3 * MARGIN * float(np.linalg.norm(np.ptp(cage.vertices, axis=0)))
    anchors = vertices.copy()
    low: Ints = np.arange(len(anchors))
    for _ in range(DEEPEST):
        low = low[clearance(anchors[low], cage)[0] < room]
        if not len(low):
            break
        anchors[low] -= 0.7 * room * normals[low]
    held = np.ones(len(anchors), np.bool_)
    held[low] = False
    return anchors, held
