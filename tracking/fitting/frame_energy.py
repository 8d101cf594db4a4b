"""The energy of one frame around a pose of the quads: images, prior, neighbours, bones, posture.

What `tracking.fitting.solver` takes its steps on. Outline samples of the template are paired with observed ones; the
rest are terms of `tracking.terms`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np

from calibration.foundation.arrays import Bools, Floats, Ints, Singles
from calibration.foundation.compiled import compiled
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import RigidTransform
from tracking.fitting.joint_fit import MarkRows
from tracking.fitting.pale_parts import pale_vertices
from tracking.fitting.posture import posture_of
from tracking.fitting.settings import COMMON, Settings
from tracking.observations.contour_fill import MeshEdges
from tracking.observations.contours import Observation
from tracking.priors.prior import Prior, require_rig
from tracking.quads.deformation import CageRig
from tracking.quads.oriented_quads import QuadPose
from tracking.quads.template import STEP_VERTICES, Template, body_unit, coarse_template
from tracking.subjects.body_points import BodyPoints
from tracking.terms.bone_lengths import BoneLengths
from tracking.terms.energy import System, prior_term, variance_term
from tracking.terms.pair_prior import fit_pair_prior
from tracking.terms.points import PointTerm
from tracking.terms.rigidity import rigidity_term
from tracking.terms.silhouette import Matches, OutlineMatcher, PackedObservation
from tracking.terms.surface import match_surface
from tracking.terms.texture import FrameMarks, face_frames, match_marks

__all__ = ["BodyPart", "Evaluation", "FrameEnergy"]

MANY = 1000
"""More training poses than these were captured."""
MADE_UP = 0.3
"""Weight of the neighbours' Gaussians where training poses were made up: they are too alike."""
ERRING = (0.3, 2.0 * COMMON)
"""Least and most by which outlines are taken to err together."""
PALE_SCALE = 0.5
"""Share of the robust scale for a pale part beyond the silhouette (`pale_vertices`)."""
WARM_EVERY = 2
"""Of the observed samples, one of so many is paired in coarse steps of a warm fit, and in its last ones where outlines
lie close: all are when all frames are stepped together, unless there are many cameras."""
ENOUGH = 1000
"""Samples of the model's outlines in all views together that a step of all frames takes: where there are more (more
than six cameras), each view gives as many as in the last steps of a warm fit."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The energy around a pose: normal equations, outline residual (mm), the prior's variance and distance."""

    system: System
    residual: float
    variance: float
    departure: float


@dataclass(frozen=True, eq=False)
class _Rows:
    """Outline samples in a pose: pairs, derivatives (N, 6 Q) of their weighted residuals, roots (N,) of the weights."""

    matches: Matches
    jacobian: Singles
    root: Floats


@dataclass(frozen=True, eq=False)
class _Level:
    """The template at one fineness: coordinates in single precision, outlines, spread, samples per view, pale parts.

    Of the observed samples one of ``every`` is paired.
    """

    template: Template
    binding: Singles
    by_carrier: Singles
    matcher: OutlineMatcher
    spread: Floats
    samples: int
    every: int
    pale: Bools | None

    @classmethod
    def of(
        cls,
        template: Template,
        camera_rows: Floats,
        sizes: list[tuple[int, int]],
        samples: tuple[int, int],
        cage_rig: CageRig,
    ) -> _Level:
        matcher = OutlineMatcher(MeshEdges.of(template.faces), camera_rows, sizes)
        spread = np.zeros(len(template.vertices)) if template.spread is None else template.spread
        pale = pale_vertices(cage_rig.quads, template.binding)
        binding = np.ascontiguousarray(template.binding, np.float32)
        return cls(template, binding, cage_rig.by_carrier(binding), matcher, spread, *samples, pale)


@dataclass(frozen=True, eq=False)
class BodyPart:
    """Quads that move while the rest of the body stays.

    Attributes:
        quads: (K,) which.
        columns: (6 K + d,) their numbers and the latent point's in a system of all.
        vertices: (V,) which of the coarse steps' vertices are theirs: these move, and their outline is paired.
        binding: (n, 4 Q + F) coordinates of these vertices.
        by_carrier: (V, N) coordinates by the carriers of the quads (`CageRig.by_carrier_of`).
    """

    quads: Ints
    columns: Ints
    vertices: Bools
    binding: Singles
    by_carrier: Singles


class FrameEnergy:
    """The energy of one template, through one rig of cameras, under one prior (or none)."""

    # Eleven parameters: body, cameras and prior, and keywords of what else is known of the body.
    def __init__(
        self,
        cage_rig: CageRig,
        template: Template,
        camera_rows: Floats,
        sizes: list[tuple[int, int]],
        prior: Prior,
        *,
        settings: Settings | None = None,
        use_prior: bool = True,
        coarse: Template | None = None,
        points: BodyPoints | None = None,
        bones: BoneLengths | None = None,
    ) -> None:
        """Prepare a solver; ``coarse`` is the template of the coarse steps, None to thin out ``template``.

        ``points`` are those that the observations' sightings are of, ``bones`` keep their lengths.

        Raises:
            InputError: the prior is of another rig, or the template is not closed.
        """
        require_rig(prior, cage_rig.quads.name, cage_rig.quads.quad_names)
        self.cage_rig = cage_rig
        self.template = template
        self.prior = prior
        self.settings = settings or Settings()
        weight = self.settings.pair_weight
        #: Weight of the neighbours' Gaussians.
        self.pair_weight = (1.0 if len(prior.training_poses) > MANY else MADE_UP) if weight is None else weight
        self.use_prior = use_prior
        self.camera_rows = np.ascontiguousarray(camera_rows, np.float64)
        self._fine = _Level.of(template, camera_rows, sizes, (self.settings.samples, 1), cage_rig)
        small = coarse or coarse_template(cage_rig, template, vertices=STEP_VERTICES)
        self._coarse = _Level.of(small, camera_rows, sizes, (self.settings.coarse_samples, 1), cage_rig)
        self._warm = replace(self._coarse, every=WARM_EVERY)
        self._near = replace(self._fine, samples=self.settings.coarse_samples, every=WARM_EVERY)
        self._joint = self._near if len(sizes) * self.settings.samples > ENOUGH else self._fine
        self._deformed: WeakKeyDictionary[QuadPose, Floats] = WeakKeyDictionary()
        self.unit = body_unit(template)
        self.pairs = fit_pair_prior(
            cage_rig.quads,
            prior,
            shift_floor=self.settings.pair_shift * self.unit,
            turn_floor=self.settings.pair_turn,
        )
        self.posture = posture_of(cage_rig.quads)
        self.bones = bones
        corners = np.linalg.norm(cage_rig.quads.corners, axis=-1).mean(axis=1)
        metric = np.repeat(np.stack([corners**2, np.ones(len(corners))], axis=1), 3, axis=1)
        self._metric = metric.ravel() / self.unit**2
        self.points = None if points is None else PointTerm(cage_rig, points, self.camera_rows, self.unit)

    def pose_of(self, root: RigidTransform, latent: Floats) -> QuadPose:
        """Pose the quads on the manifold."""
        return QuadPose(*self.prior.chart.from_vector(root, self.prior.mean(latent)))

    def deform(self, pose: QuadPose) -> Floats:
        """Carry the template to a pose, (V, 3) mm; kept as long as the pose is, since several ask for it."""
        vertices = self._deformed.get(pose)
        if vertices is None:
            vertices = self._deformed[pose] = self.cage_rig.deform(self._fine.binding, pose)
        return vertices

    def overlap(self, observation: Observation, pose: QuadPose) -> Floats:
        """(C,) silhouette overlap of a pose per view, NaN where a view saw nothing."""
        return self._fine.matcher.overlaps(self.deform(pose), self._fine.matcher.pack(observation))

    def overlaps(self, observation: Observation, poses: Sequence[QuadPose]) -> list[float]:
        """Mean silhouette overlap of several poses of one frame, over the views that saw something.

        By the template of the coarse steps: enough to compare them with each other, for half the price.
        """
        level = self._coarse
        packed = level.matcher.pack(observation)
        # Carried together: to read the coordinates is what it costs.
        carriers = np.stack([self.cage_rig.carriers(pose) for pose in poses], axis=1)
        vertices = level.binding @ carriers.reshape(len(carriers), -1).astype(level.binding.dtype)
        bodies = np.ascontiguousarray(vertices.reshape(len(vertices), len(poses), 3).transpose(1, 0, 2), np.float64)
        return [float(np.nanmean(level.matcher.overlaps(body, packed))) for body in bodies]

    @property
    def coarse(self) -> Template:
        """The template of the coarse steps."""
        return self._coarse.template

    @property
    def coarse_binding(self) -> Singles:
        """Its coordinates in single precision."""
        return self._coarse.binding

    def part(self, quads: Ints, vertices: Bools) -> BodyPart:
        """Describe quads (K,) that move by themselves, and which vertices (V,) of the coarse template are theirs."""
        start, latent = 6 * len(self.cage_rig.quads), np.arange(self.prior.latent_dim)
        columns = np.concatenate([(6 * quads[:, None] + np.arange(6)).ravel(), start + latent])
        binding = self._coarse.binding
        return BodyPart(quads, columns, vertices, binding[vertices], self.cage_rig.by_carrier_of(binding, quads))

    def _pairs(self, level: _Level, packed: PackedObservation, pose: QuadPose, scale: float) -> tuple[Matches, Floats]:
        """Pairs of outline samples around a pose, and the roots (N,) of their weights."""
        fine = level.template is self._fine.template
        vertices = self.deform(pose) if fine else self.cage_rig.deform(level.binding, pose)
        reach = self.settings.reach * scale * self.unit
        if self.settings.hull:
            if packed.surface is None:
                raise InputError("fitting to the hull: the observation has no surface; give one, or fit to outlines")
            matches = match_surface(
                vertices, level.template.faces, packed.surface, reach=reach, one_sided=self.settings.one_sided
            )
        else:
            every = 0 if self.settings.one_sided else level.every
            matches = level.matcher.match(vertices, packed, reach=reach, model_samples=level.samples, every=every)
        return matches, self._root_weights(level, matches, scale, _rms(matches.residuals))

    def _outline_rows(self, level: _Level, packed: PackedObservation, pose: QuadPose, scale: float) -> _Rows:
        """Pairs of outline samples around a pose, and their weighted derivatives."""
        matches, root = self._pairs(level, packed, pose, scale)
        jacobian = self.cage_rig.outline_jacobian(
            level.by_carrier, matches.pairs, matches.directions, root, self.cage_rig.derivatives(pose)
        )
        return _Rows(matches, jacobian, root)

    def _root_weights(self, level: _Level, matches: Matches, scale: float, residual: float) -> Floats:
        """Roots (N,) of the pairs' weights; ``residual`` is that of the whole outline, mm."""
        # Silhouettes that err more have lost more of the feet.
        pull = 1.0 if level.pale is None else max(self.erring(residual), 1.0) / PALE_SCALE
        return _roots(
            matches.pairs,
            matches.residuals,
            matches.weights / (self.settings.contour_length * self.unit),
            level.spread,
            np.zeros(0, np.bool_) if level.pale is None else level.pale,
            pull,
            scale * self.unit,
            self.settings.contour_sigma * self.unit,
        )

    def _with_part(self, part: BodyPart, vertices: Floats, pose: QuadPose) -> Floats:
        """Vertices (V, 3) of the coarse steps with those of a part as in a pose, mm."""
        moved = vertices.copy()
        moved[part.vertices] = self.cage_rig.deform(part.binding, pose)
        return moved

    def _part_system(
        self, part: BodyPart, packed: PackedObservation, vertices: Floats, pose: QuadPose, scale: float, residual: float
    ) -> System:
        """Normal equations of the outline of a part by its own quads, at the coarse steps' level.

        By outlines also where fits lie on a surface: which start to finish is all that is asked. ``residual`` is that
        of the whole outline, mm, as it was with the part elsewhere.
        """
        level, rig = self._coarse, self.cage_rig
        matches = level.matcher.match(
            vertices,
            packed,
            reach=self.settings.reach * scale * self.unit,
            model_samples=level.samples,
            every=0 if self.settings.one_sided else level.every,
            part=part.vertices,
        )
        root = self._root_weights(level, matches, scale, residual)
        jacobian = rig.outline_jacobian(
            part.by_carrier, matches.pairs, matches.directions, root, rig.derivatives(pose).of_quads(part.quads)
        )
        weighted = root * matches.residuals
        own = part.columns[: jacobian.shape[1]]
        if self.points is not None and packed.sightings is not None and len(packed.sightings):
            more, ours = self.points.rows(packed.sightings, pose, scale)
            jacobian, weighted = np.concatenate([jacobian, more[:, own]]), np.concatenate([weighted, ours])
        system = System.empty(len(rig.quads), self.prior.latent_dim)
        system.hessian[np.ix_(own, own)] = jacobian.T @ jacobian
        system.gradient[own] = jacobian.T @ weighted.astype(np.float32)
        return system

    def _data_rows(
        self, level: _Level, packed: PackedObservation, pose: QuadPose, scale: float
    ) -> tuple[Singles, Floats, Floats]:
        """Derivatives (N, 6 Q) and weighted residuals (N,) of outlines and marked points; the outlines' own, mm."""
        rows = self._outline_rows(level, packed, pose, scale)
        jacobian, weighted = rows.jacobian, rows.root * rows.matches.residuals
        if self.points is not None and packed.sightings is not None and len(packed.sightings):
            more, ours = self.points.rows(packed.sightings, pose, scale)
            jacobian, weighted = np.concatenate([jacobian, more]), np.concatenate([weighted, ours])
        return jacobian, weighted, rows.matches.residuals

    def _data_system(
        self, level: _Level, packed: PackedObservation, pose: QuadPose, scale: float
    ) -> tuple[System, Floats]:
        """Normal equations of the images around a pose, and the outlines' residuals, mm."""
        jacobian, weighted, residuals = self._data_rows(level, packed, pose, scale)
        system = System.empty(len(self.cage_rig.quads), self.prior.latent_dim)
        size = jacobian.shape[1]
        # Of a matrix with itself one triangle is summed, half the work of another product.
        system.hessian[:size, :size] = jacobian.T @ jacobian
        system.gradient[:size] = jacobian.T @ weighted.astype(np.float32)
        return system, residuals

    def outline_matches(self, observation: Observation, pose: QuadPose) -> Matches:
        """Pairs of outline samples of the fine template in a pose, as the last steps make them."""
        packed = self._fine.matcher.pack(observation)
        reach = self.settings.reach * self.settings.robust[-1] * self.unit
        return self._fine.matcher.match(self.deform(pose), packed, reach=reach, model_samples=self._fine.samples)

    def mark_rows(self, marks: FrameMarks, pose: QuadPose) -> MarkRows:
        """Sightings of marks around a pose: how far the spots lie from the pixels where they were seen."""
        settings, unit = self.settings, self.unit
        matches = match_marks(self.cage_rig.deform(marks.binding, pose), marks, self.camera_rows)
        away = np.repeat(np.sum(matches.residuals.reshape(-1, 2) ** 2, axis=1), 2)
        robust = 1.0 / (1.0 + away / (settings.mark_robust * unit) ** 2)
        root = robust * np.sqrt(matches.weights) / (settings.mark_sigma * unit)
        by_carrier = self.cage_rig.by_carrier(marks.binding)
        jacobian = self.cage_rig.outline_jacobian(
            by_carrier, matches.pairs, matches.directions, root, self.cage_rig.derivatives(pose)
        )
        faces = self.template.faces[marks.faces]
        now, rest = face_frames(self.deform(pose), faces), face_frames(self.template.vertices, faces)
        turn = np.repeat(now @ np.linalg.inv(rest), 2, axis=0)
        spots = np.einsum("si,sij->sj", root[:, None] * matches.directions, turn)
        return MarkRows(jacobian, spots, root * matches.residuals, marks.marks)

    def _damping(self, hessian: Floats) -> Floats:
        """Single-precision rows leave errors of 1e-7 of the largest entries: the diagonal keeps a system definite."""
        damping = np.full(len(hessian), 1e-3) + 1e-5 * np.abs(np.diag(hessian))
        damping[: len(self._metric)] += 1e-3 * self._metric
        return damping

    def _evaluate(
        self, level: _Level, packed: PackedObservation, pose: QuadPose, latent: Floats, scale: float
    ) -> Evaluation:
        """Energy around a pose, but for the expectation."""
        system, residuals = self._data_system(level, packed, pose, scale)
        return self._with_terms(system, _rms(residuals), pose, latent)

    def _with_terms(self, system: System, residual: float, pose: QuadPose, latent: Floats) -> Evaluation:
        """Add to the images' system, whose outlines leave a residual, mm, what does not look at them."""
        settings, unit = self.settings, self.unit
        at = self.prior.evaluate(latent)
        # Without a prior the distance from it is still told, its pull is not added.
        departure = prior_term(
            system if self.use_prior else System.empty(len(self.cage_rig.quads), self.prior.latent_dim),
            self.prior.chart,
            at,
            pose,
            shift_sigma=settings.shift_sigma * unit,
            turn_sigma=settings.turn_sigma,
        )
        if self.use_prior:
            variance_term(system, at.variance, at.variance_gradient, settings.variance_weight)
            if self.pair_weight > 0:
                self.pairs.term(pose).add_to(system.hessian, system.gradient, self.pair_weight)
        rigidity_term(
            self.cage_rig.quads,
            pose,
            bend=settings.bend / unit,
            length=settings.length / unit,
            twist=settings.twist / unit,
        ).add_to(system.hessian, system.gradient)
        if self.bones is not None:
            self.bones.add_to(self.cage_rig, pose, system.hessian, system.gradient, settings.bone_weight)
        if self.posture is not None:
            self.posture.add_to(system, pose, self.erring(residual))
        return Evaluation(system, residual, at.variance, departure)

    def erring(self, residual: float) -> float:
        """By how much outlines err together beyond what the energy takes for one sample, told by what is left of them.

        The larger their errors, over what is expected, the longer the stretches that share one: hence the square.
        """
        expected = self.settings.contour_sigma * self.unit
        return min(max((residual / expected) ** 2, ERRING[0]), ERRING[1]) if math.isfinite(residual) else COMMON

    def _curvature(self, at: Evaluation) -> Singles:
        """(6 Q, 6 Q) curvature by the quads, the latent point eliminated."""
        quads = 6 * len(self.cage_rig.quads)
        hessian = at.system.hessian[:quads, :quads]
        if self.use_prior and self.prior.latent_dim:
            cross = at.system.hessian[:quads, quads:]
            inner = at.system.hessian[quads:, quads:] + 1e-6 * np.eye(self.prior.latent_dim)
            hessian = hessian - cross @ np.linalg.solve(inner, cross.T)
        return hessian.astype(np.float32)


# Nine parameters: a kernel over the fields of `Matches` and of a level.
@compiled
def _roots(
    pairs: Ints,
    residuals: Floats,
    weights: Floats,
    spread: Floats,
    pale: Bools,
    pull: float,
    scale: float,
    sigma: float,
) -> Floats:
    """Return the roots (N,) of the pairs' robust weights; ``pull`` scales residuals of pale parts beyond outlines."""
    roots = np.empty(len(pairs))
    for n in range(len(pairs)):
        first, second = pairs[n, 0], pairs[n, 1]
        relative = residuals[n] / scale
        if len(pale) and relative > 0.0 and pale[first]:
            relative *= pull
        wide = 0.5 * (spread[first] + spread[second])
        roots[n] = np.sqrt(weights[n] / (sigma * sigma + wide * wide)) / (1.0 + relative * relative)
    return roots


def _rms(residuals: Floats) -> float:
    """Root mean square, NaN of nothing."""
    return float(np.sqrt(np.mean(residuals**2))) if len(residuals) else float("nan")
