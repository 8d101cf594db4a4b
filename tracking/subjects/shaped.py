"""A built-in body with other lengths and girths, without cutting a new cage.

The quads go along with the lengthened skeleton, and the cage of the built-in body with them. Where that carries the
built-in template is inside the new cage and has Green coordinates there; the flesh of the new body may lie outside. So
a vertex is bound through its place inside (`tracking.quads.anchors`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial import cKDTree

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from skeleton.actors.actor import Actor, build_actor, thickened
from skeleton.bodies import load_body
from skeleton.tree.joint_tree import Pose, Skeleton
from tracking.priors.scaling import builtin_prior_for
from tracking.quads.anchors import anchored_rows, anchored_slopes
from tracking.quads.attachment import attach_alike, attach_posed_quads
from tracking.quads.body_rig import MARGIN, reference_coordinates
from tracking.quads.cage import Cage, clearance
from tracking.quads.deformation import CageRig, scaled_cage
from tracking.quads.oriented_quads import QuadRig
from tracking.quads.placement import Enclosure, drawn_in
from tracking.quads.template import Template
from tracking.subjects.ears import EARS, with_ears
from tracking.subjects.shape import BodyShape
from tracking.subjects.skeleton import SubjectSkeleton
from tracking.subjects.subject import Subject

__all__ = ["Shaped", "Shaper"]

NEAR = 1e-4
"""How near to the surface of its flesh the skin of a shape comes, in cells of its mesh: outlines tell much less."""


@dataclass(frozen=True, eq=False)
class Shaped:
    """A built-in body in another shape.

    Attributes:
        shape: its lengths and girths.
        subject: what the tracker needs of it.
        gradients: (3, V, 4 Q + F) derivative of the rows of the outline template by the places of its vertices, 1 / mm.
    """

    shape: BodyShape
    subject: Subject
    gradients: Floats


class Shaper:
    """Gives one built-in body other lengths and girths."""

    def __init__(self, builtin: Subject) -> None:
        """Prepare what all shapes share."""
        self.builtin = builtin
        self._attachment = attach_posed_quads(builtin.cage_rig.quads, builtin.bones.skeleton, builtin.bones.pose)
        #: Where the cage has the joints by themselves, and what brings them to where the skeleton has them.
        self._joints = builtin.cage_rig.bind(builtin.joint_points)
        self._settled = builtin.joint_binding - self._joints
        self._thinned = {
            id(template): _nearest(builtin.template.vertices, template.vertices)
            for template in (builtin.outline_template, builtin.step_template)
        }
        self._last: tuple[BodyShape, Actor] | None = None
        self._fields: tuple[BodyShape, Floats] | None = None

    def make(self, shape: BodyShape, *, whole: bool = True) -> Shaped:
        """Return the body in a shape.

        Args:
            shape: lengths and girths.
            whole: False leaves out the whole mesh and its markers (the outline template stands in), to save time.

        Raises:
            InputError: the subject is no built-in body, or the shape is too far from it for its cage.
        """
        builtin = self.builtin
        if builtin.name != shape.body:
            raise InputError(f"subject '{builtin.name}' is not the built-in {shape.body}: only that takes a shape")
        actor = self._actor(shape)
        skeleton = actor.skeleton
        skin, pose = _posed_skin(actor, shape)
        scaled = scaled_cage(builtin.cage_rig, shape.scale)
        rig = replace(scaled.quads, centres=self._centres(shape, skeleton, pose))
        cage_rig = CageRig(rig, Cage(rig.posed_corners(rig.rest).reshape(-1, 3), scaled.cage.faces))
        stretch = _Stretch(scaled, shape.scale, cage_rig)
        _, landmarks = skeleton.landmarks(pose)
        places = stretch.places(builtin.template.binding)
        anchors, points = self._carried(builtin.outline_template, stretch, skin - places)
        rows, gradients = anchored_slopes(cage_rig.cage, anchors, points)
        outline = Template(points, builtin.outline_template.faces, rows)
        anchors, points = self._carried(builtin.step_template, stretch, skin - places)
        small = Template(points, builtin.step_template.faces, anchored_rows(cage_rig.cage, anchors, points))
        subject = replace(
            builtin,
            cage_rig=cage_rig,
            template=outline,
            outline_template=outline,
            step_template=small,
            prior=builtin_prior_for(attach_alike(rig, skeleton, pose, self._attachment)),
            joint_points=landmarks[0],
            joint_binding=anchored_rows(cage_rig.cage, stretch.anchors(stretch.places(self._joints)), landmarks[0])
            + stretch.grown(self._settled),
            bones=self._bones(shape, skeleton, pose, skin),
            # The quads carry them; how far they lie from the new flesh the recording tells later.
            points=None if builtin.points is None else builtin.points.scaled(len(rig), shape.scale),
        )
        if whole:
            rows = anchored_rows(cage_rig.cage, stretch.anchors(places), skin)
            subject = replace(subject, template=Template(skin, builtin.template.faces, rows))
        return Shaped(shape, subject, gradients)

    def _actor(self, shape: BodyShape) -> Actor:
        """The actor of a shape; the last one is kept, since a search asks twice for its first shape."""
        if self._last is None or self._last[0] != shape:
            self._last = (
                shape,
                build_actor(shape.body, lengths=shape.joint_lengths(), girth=shape.joint_girths(), near=NEAR),
            )
        return self._last[1]

    def girth_fields(self, shape: BodyShape) -> Floats:
        """Return how the outline template moves at rest with the logarithm of each part's girth, (K, V, 3) mm.

        The last ones are kept, since a second search begins with the same shape.
        """
        if self._fields is None or self._fields[0] != shape:
            self._fields = shape, self._grown(shape)
        return self._fields[1]

    def _grown(self, shape: BodyShape, step: float = 0.05) -> Floats:
        """The same, by a growth of the logarithm by ``step``."""
        actor = self._actor(shape)
        rest, pose = _posed_skin(actor, shape)
        near, weights = self._thinned[id(self.builtin.outline_template)]
        stouter = [
            replace(shape, girths=shape.girths | {part: factor * float(np.exp(step))})
            for part, factor in shape.girths.items()
        ]
        fields = []
        for thick, other in zip(stouter, thickened(actor, [one.joint_girths() for one in stouter]), strict=True):
            moved = (_posed_skin(other, thick, pose)[0] - rest) / step
            fields.append(np.einsum("pk,pki->pi", weights, moved[near]))
        return np.array(fields)

    def lengthened(self, shaped: Shaped, part: str, *, step: float) -> QuadRig:
        """Return the quads of a shape at rest after the logarithm of one part's length grew by ``step``."""
        shape = shaped.shape
        longer = replace(shape, lengths=shape.lengths | {part: shape.lengths[part] * float(np.exp(step))})
        skeleton, pose = _posed(longer)
        return replace(shaped.subject.cage_rig.quads, centres=self._centres(longer, skeleton, pose))

    def _centres(self, shape: BodyShape, skeleton: Skeleton, pose: Pose) -> Floats:
        """Centres (Q, 3) of the quads in the cage's pose: as far from their joints as the segment is longer, mm."""
        known, rest = self._attachment, self.builtin.bones.pose
        factors = shape.joint_lengths()
        length = np.array([factors[name] for name in skeleton.joint_names])
        # A quad before its joint lies on the segment before, one behind it on the segment after.
        along = np.where(known.share < 0.5, length[known.proximal], length[known.distal])
        lever = self.builtin.cage_rig.quads.centres - rest.positions[0, known.distal]
        return np.asarray(pose.positions[0, known.distal] + along[:, None] * lever)

    def _carried(self, template: Template, stretch: _Stretch, offsets: Floats) -> tuple[Floats, Floats]:
        """Carry a thinned template: anchors (V, 3), which its vertices (V, 3) leave as the whole mesh nearby does."""
        near, weights = self._thinned[id(template)]
        places = stretch.places(template.binding)
        return stretch.anchors(places), places + np.einsum("pk,pki->pi", weights, offsets[near])

    def _bones(self, shape: BodyShape, skeleton: Skeleton, pose: Pose, skin: Floats) -> SubjectSkeleton:
        """The skeleton inside; its markers go along with the skin."""
        builtin = self.builtin
        markers, factors = builtin.bones.markers, shape.joint_lengths()
        which = np.array([builtin.marker_vertices[builtin.marker_names.index(name)] for name in markers.names])
        segments = np.array([skeleton.index(name) for name in markers.segments])
        before = _local(builtin.template.vertices[which], builtin.bones.pose, segments)
        moved = _local(skin[which], pose, segments) - before
        return SubjectSkeleton(
            shape.body,
            factors,
            reference_coordinates(shape.body, skeleton)[0],
            markers.with_offsets(markers.offsets + moved),
        )


@dataclass(frozen=True, eq=False)
class _Stretch:
    """The built-in cage and the same with its quads moved.

    Attributes:
        scaled: the built-in cage, scaled; factor: by how much.
        cage_rig: the moved quads and their cage.
    """

    scaled: CageRig
    factor: float
    cage_rig: CageRig

    def places(self, binding: Floats) -> Floats:
        """Carry points bound to the built-in cage, rows (P, 4 Q + F), with the quads, (P, 3) mm."""
        return self.scaled.deform(self.grown(binding), self.cage_rig.quads.rest)

    def grown(self, rows: Floats) -> Floats:
        """Coordinates (P, 4 Q + F) in the built-in cage as those in the scaled one: normals have no length."""
        columns = np.ones(rows.shape[1])
        columns[4 * len(self.cage_rig.quads) :] = self.factor
        return rows * columns

    def anchors(self, places: Floats) -> Floats:
        """Draw places (P, 3) well into the cage."""
        rig, cage = self.cage_rig.quads, self.cage_rig.cage
        room = 0.3 * MARGIN * float(np.linalg.norm(np.ptp(cage.vertices, axis=0)))
        enclosure = Enclosure(rig, cage, clearance(places, cage)[0], np.zeros_like(rig.extents))
        return drawn_in(places, enclosure, room, what=f"body '{rig.name}'")[0]


def _posed(shape: BodyShape) -> tuple[Skeleton, Pose]:
    """The skeleton of a shape, in the cage's pose."""
    skeleton = load_body(shape.body).scaled(shape.joint_lengths())
    return skeleton, skeleton.forward(reference_coordinates(shape.body, skeleton))


def _posed_skin(actor: Actor, shape: BodyShape, pose: Pose | None = None) -> tuple[Floats, Pose]:
    """The skin (V, 3) of an actor in the cage's pose, mm, and that pose."""
    if pose is None:
        pose = actor.skeleton.forward(reference_coordinates(actor.body, actor.skeleton))
    skin = np.asarray(actor.skin(pose)[0])
    return (with_ears(actor, skin, pose, shape.ears) if EARS in shape.girths else skin), pose


def _local(points: Floats, pose: Pose, segments: Ints) -> Floats:
    """Points (P, 3) in the frames of their segments, mm."""
    away = points - pose.positions[0, segments]
    return np.asarray(np.einsum("pji,pj->pi", pose.rotations[0, segments], away))


def _nearest(vertices: Floats, points: Floats) -> tuple[Ints, Floats]:
    """Three vertices near each point (P, 3), and their shares in it."""
    near = np.asarray(cKDTree(vertices).query(points, k=3)[1], np.int64)
    away = np.linalg.norm(vertices[near] - points[:, None], axis=2)
    weights = 1.0 / (away + 1e-3 * away.max())
    return near, weights / weights.sum(axis=1, keepdims=True)
