"""One frame: quads and latent point that put the template's outlines on the observed silhouettes.

Gauss-Newton with damping in a metric of millimetres and radians (damping by the diagonal of the Hessian alone stalls
along directions that no outline sees). Pairs of outline samples are made anew before each step, and the robust scale
shrinks from step to step, coarse to fine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import ssyrk

from calibration.foundation.arrays import Bools, Floats, Ints, Singles
from calibration.foundation.compiled import compiled
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import RigidTransform, rotation_from_vector
from tracking.fitting.joint_fit import FrameBlock, MarkRows
from tracking.fitting.pale_parts import pale_vertices
from tracking.fitting.point_fit import moved
from tracking.fitting.posture import posture_of
from tracking.fitting.settings import COMMON, Settings
from tracking.observations.contour_fill import MeshEdges
from tracking.observations.contours import Observation
from tracking.priors.prior import Prior, require_rig
from tracking.quads.deformation import CageRig
from tracking.quads.oriented_quads import QuadPose
from tracking.quads.template import STEP_VERTICES, Template, coarse_template
from tracking.subjects.body_points import BodyPoints
from tracking.terms.bone_lengths import BoneLengths
from tracking.terms.energy import System, latent_basis, prediction_term, prior_term, variance_term
from tracking.terms.pair_prior import fit_pair_prior
from tracking.terms.points import PointTerm
from tracking.terms.rigidity import rigidity_term
from tracking.terms.silhouette import Matches, OutlineMatcher, PackedObservation
from tracking.terms.surface import match_surface
from tracking.terms.texture import FrameMarks, face_frames, match_marks

__all__ = ["Evaluation", "Expectation", "FrameFit", "FrameSolver", "body_unit"]

MANY = 1000
"""More training poses than these were captured."""
MADE_UP = 0.3
"""Weight of the neighbours' Gaussians where training poses were made up: they are too alike."""
ERRING = (0.3, 2.0 * COMMON)
"""Least and most by which outlines are taken to err together."""
PALE_SCALE = 0.5
"""Share of the robust scale for a pale part beyond the silhouette (`pale_vertices`)."""
WARM_SETTLED = 3.0
"""How much longer the last step of a warm fit may be: all frames are stepped together in the end."""
WARM_EVERY = 2
"""Of the observed samples, one of so many is paired in coarse steps of a warm fit."""
POINT_COST = 0.01
"""Overlap that one marked point elsewhere is worth; an arm in the wrong place costs 0.03 to 0.05."""


@dataclass(frozen=True, eq=False)
class Expectation:
    """Where the quads are expected, and how far from there they may be: mm and rad, 1 sigma."""

    pose: QuadPose
    shift_sigma: float
    turn_sigma: float


@dataclass(frozen=True, eq=False)
class FrameFit:
    """One frame's result.

    Attributes:
        pose: quads.
        latent: (d,) latent point.
        overlap: (C,) silhouette overlap per view, NaN where a view saw nothing.
        residual: root mean square of the outline residuals within reach, mm.
        variance: prior variance at the latent point, relative to the noise of the training poses.
        departure: root mean square distance of the quads from the prior's pose, in its sigmas.
        hessian: (6 Q, 6 Q) curvature of the energy by the quads, the latent point eliminated.
        points_off: how many of the points that several cameras marked are elsewhere.
        strain: of the posture, in units of overlap (`tracking.fitting.posture`).
    """

    pose: QuadPose
    latent: Floats
    overlap: Floats
    residual: float
    variance: float
    departure: float
    hessian: Singles = field(repr=False)
    points_off: float = 0.0
    strain: float = 0.0

    @property
    def agreement(self) -> float:
        """Mean overlap over the views that saw something; NaN when none did."""
        seen = self.overlap[np.isfinite(self.overlap)]
        return float(seen.mean()) if len(seen) else float("nan")

    @property
    def score(self) -> float:
        """The overlap, less what the prior, the posture and marked points make it pay: what fits are compared by."""
        paid = 0.01 * max(self.departure - 1.0, 0.0) + self.strain + POINT_COST * self.points_off
        return self.agreement - paid


@dataclass(frozen=True, eq=False)
class RoughFit:
    """Quads on the manifold, latent point (d,), and mean overlap over the views that saw something."""

    pose: QuadPose
    latent: Floats
    agreement: float


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


def body_unit(template: Template) -> float:
    """One thousandth of a subject's size, mm: 1 mm for a person of 2 m, 0.08 mm for a mouse with its tail."""
    low, high = template.vertices.min(axis=0), template.vertices.max(axis=0)
    return float(np.linalg.norm(high - low)) / 2000.0


class FrameSolver:
    """Fits one template, through one rig of cameras, under one prior (or none)."""

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
        """Carry the template to a pose, (V, 3) mm."""
        return self.cage_rig.deform(self._fine.binding, pose)

    def overlap(self, observation: Observation, pose: QuadPose) -> Floats:
        """(C,) silhouette overlap of a pose per view, NaN where a view saw nothing."""
        return self._fine.matcher.overlaps(self.deform(pose), self._fine.matcher.pack(observation))

    def overlaps(self, observation: Observation, poses: Sequence[QuadPose]) -> list[float]:
        """Mean silhouette overlap of several poses of one frame, over the views that saw something.

        By the template of the coarse steps: enough to compare them with each other, for half the price.
        """
        level = self._coarse
        packed = level.matcher.pack(observation)
        return [
            float(np.nanmean(level.matcher.overlaps(self.cage_rig.deform(level.binding, pose), packed)))
            for pose in poses
        ]

    @property
    def coarse(self) -> Template:
        """The template of the coarse steps."""
        return self._coarse.template

    @property
    def coarse_binding(self) -> Singles:
        """Its coordinates in single precision."""
        return self._coarse.binding

    # Eleven parameters: a frame, a start, and keywords of what else is known of it.
    def fit(
        self,
        observation: Observation,
        start: QuadPose,
        latent: Floats,
        *,
        predicted: QuadPose | None = None,
        latent_steps: bool = True,
        local_steps: bool = True,
        last_steps: int | None = None,
        warm: bool = False,
        predict_shift: float | None = None,
        predict_turn: float | None = None,
    ) -> FrameFit:
        """Fit one frame from a start.

        Args:
            observation: silhouettes.
            start: first guess of the quads.
            latent: first guess of the latent point.
            predicted: where the quads are expected, None for no expectation.
            latent_steps: move along the manifold first.
            local_steps: then let the quads leave it.
            last_steps: only this many of the local steps, the finest; None for all.
            warm: the start is near, that of a frame beside: coarse steps are taken only where the first one is long.
            predict_shift, predict_turn: trust in the prediction, None for the settings' own.
        """
        packed = self._fine.matcher.pack(observation)
        pose = start
        last: Evaluation | None = None
        if latent_steps and self.use_prior:
            pose, latent = self._latent_steps(packed, pose, latent, 1)
        if local_steps:
            scales = self.settings.robust if last_steps is None else self.settings.robust[-last_steps:]
            expected = None
            if predicted is not None:
                expected = Expectation(
                    predicted,
                    (predict_shift or self.settings.predict_shift) * self.unit,
                    predict_turn or self.settings.predict_turn,
                )
            pose, latent, last = self.off_manifold(packed, pose, latent, expected, scales, warm=warm)
        return self._report(packed, pose, latent, last)

    def roughly(self, observation: Observation, start: QuadPose, latent: Floats, *, rounds: int) -> RoughFit:
        """Go along the manifold alone, so many rounds: enough to tell which of many starts to fit."""
        packed = self._fine.matcher.pack(observation)
        pose = start
        if self.use_prior:
            pose, latent = self._latent_steps(packed, pose, latent, rounds)
        overlap = self._fine.matcher.overlaps(self.deform(pose), packed)
        return RoughFit(pose, latent, float(np.nanmean(overlap)))

    def _latent_steps(
        self, packed: PackedObservation, pose: QuadPose, latent: Floats, rounds: int
    ) -> tuple[QuadPose, Floats]:
        """Put the quads on the manifold where their root is, and go along it, from coarse to fine."""
        chart = self.prior.chart
        pose = self.pose_of(RigidTransform(pose.rotations[chart.root], pose.centres[chart.root]), latent)
        for scale in self.settings.latent_robust * rounds:
            pose, latent = self.along_manifold(packed, pose, latent, scale)
        return pose, latent

    def sketch(
        self, observation: Observation, start: QuadPose, latent: Floats, back: Callable[[QuadPose], bool] | None = None
    ) -> FrameFit | None:
        """The coarse steps of a fit alone: enough to tell the better of several starts, for half its price.

        None where a pose on the way is one that is known: ``back`` tells.
        """
        packed = self._fine.matcher.pack(observation)
        scales = [scale for scale in self.settings.robust if scale > self.settings.robust[-1]]
        last: Evaluation | None = None
        pose = start
        for scale in scales:
            last = self._evaluate(self._coarse, packed, pose, latent, scale)
            pose, latent, _ = self._local_step(last, pose, latent, None)
            if back is not None and back(pose):
                return None
        return self._report(packed, pose, latent, last)

    def shape_system(
        self, observation: Observation, fit: FrameFit, fields: Floats, moves: Floats
    ) -> tuple[Floats, Floats]:
        """Normal equations of K numbers of shape around a fit, its pose and latent point eliminated.

        Args:
            observation: silhouettes.
            fit: of this frame.
            fields: (K, V, 3) how each number moves the template's vertices while the quads stay, mm.
            moves: (6 Q, K) how it moves the quads, at no cost to the prior (a longer limb is expected longer).

        Returns:
            hessian (K, K) and gradient (K,).
        """
        packed = self._fine.matcher.pack(observation)
        scale = self.settings.robust[-1]
        system = self._evaluate(self._fine, packed, fit.pose, fit.latent, scale).system
        rows = self._outline_rows(self._fine, packed, fit.pose, scale)
        middles = 0.5 * (fields[:, rows.matches.pairs[:, 0]] + fields[:, rows.matches.pairs[:, 1]])
        by_shape = rows.root[:, None] * np.einsum("kni,ni->nk", middles, rows.matches.directions)
        by_shape += rows.jacobian @ moves
        cross = np.zeros((len(system.gradient), len(fields)))
        cross[: rows.jacobian.shape[1]] = rows.jacobian.T @ by_shape
        size = len(system.gradient)
        damped = system.hessian + np.diag(np.full(size, 1e-3) + 1e-5 * np.abs(np.diag(system.hessian)))
        solved = np.linalg.solve(damped, np.column_stack([cross, system.gradient]))
        hessian = by_shape.T @ by_shape - cross.T @ solved[:, :-1]
        gradient = by_shape.T @ (rows.root * rows.matches.residuals) - cross.T @ solved[:, -1]
        return hessian, gradient

    def _outline_rows(self, level: _Level, packed: PackedObservation, pose: QuadPose, scale: float) -> _Rows:
        """Pairs of outline samples around a pose, and their weighted derivatives."""
        vertices = self.cage_rig.deform(level.binding, pose)
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
        pull = 1.0
        if level.pale is not None:
            # Silhouettes that err more have lost more of the feet.
            pull = max(self._erring(_rms(matches.residuals)), 1.0) / PALE_SCALE
        root = _roots(
            matches.pairs,
            matches.residuals,
            matches.weights / (self.settings.contour_length * self.unit),
            level.spread,
            np.zeros(0, np.bool_) if level.pale is None else level.pale,
            pull,
            scale * self.unit,
            self.settings.contour_sigma * self.unit,
        )
        jacobian = self.cage_rig.outline_jacobian(
            level.by_carrier, matches.pairs, matches.directions, root, self.cage_rig.derivatives(pose)
        )
        return _Rows(matches, jacobian, root)

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
        # One triangle is summed, half the work of a whole product.
        _mirror(ssyrk(1.0, jacobian.T), system.hessian)
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

    def block(
        self, observation: Observation, fit: FrameFit, marks: FrameMarks, bend: Floats | None
    ) -> tuple[FrameBlock, FrameFit]:
        """The energy of a frame around its fit, for a step of all frames at once (`tracking.fitting.joint_fit`).

        Args:
            observation: silhouettes.
            fit: of this frame.
            marks: that it saw.
            bend: (6 Q,) how far the quads lie from the middle of the frames beside, None where one is missing.

        Returns:
            The energy, and the fit described by it.
        """
        packed = self._fine.matcher.pack(observation)
        at = self._evaluate(self._fine, packed, fit.pose, fit.latent, self.settings.robust[-1])
        hessian = at.system.hessian.copy()
        hessian[np.arange(len(hessian)), np.arange(len(hessian))] += self._damping(hessian)
        curvature = self._curvature(at)
        told = replace(fit, residual=at.residual, variance=at.variance, departure=at.departure, hessian=curvature)
        return FrameBlock(hessian.astype(np.float32), at.system.gradient, self.mark_rows(marks, fit.pose), bend), told

    def stepped(self, observation: Observation, fit: FrameFit, step: Floats) -> FrameFit:
        """Take a step (n,) of `tracking.fitting.joint_fit` from a fit, as `block` returned it."""
        size = 6 * len(self.cage_rig.quads)
        far = float(np.abs(step[:size].reshape(-1, 6)[:, :3]).max())
        step = step * min(1.0, 0.5 / max(far, 1e-9))
        pose = moved(fit.pose, step[:size])
        return replace(fit, pose=pose, latent=fit.latent + step[size:], overlap=self.overlap(observation, pose))

    def _damping(self, hessian: Floats) -> Floats:
        """Single-precision rows leave errors of 1e-7 of the largest entries: the diagonal keeps a system definite."""
        damping = np.full(len(hessian), 1e-3) + 1e-5 * np.abs(np.diag(hessian))
        damping[: len(self._metric)] += 1e-3 * self._metric
        return damping

    def along_manifold(
        self, packed: PackedObservation, pose: QuadPose, latent: Floats, scale: float
    ) -> tuple[QuadPose, Floats]:
        """Step along the manifold at one robust scale."""
        return self._latent_step(packed, pose, latent, scale, slice(None))

    def off_manifold(
        self,
        packed: PackedObservation,
        pose: QuadPose,
        latent: Floats,
        expected: Expectation | None,
        scales: tuple[float, ...],
        *,
        warm: bool = False,
    ) -> tuple[QuadPose, Floats, Evaluation | None]:
        """Let the quads leave the manifold, from the coarsest robust scale to the finest; ``warm`` as in `fit`."""
        last: Evaluation | None = None
        index = next((k for k, scale in enumerate(scales) if warm and scale <= self.settings.warm), 0)
        first = index if warm else -1
        while index < len(scales):
            coarse = self._warm if warm else self._coarse
            level = self._fine if scales[index] == scales[-1] else coarse
            last = self._evaluate(level, packed, pose, latent, scales[index])
            pose, latent, far = self._local_step(last, pose, latent, expected)
            if scales[index] == scales[-1] and far < (WARM_SETTLED if warm else 1.0) * self.settings.settled:
                break
            # A small step needs no coarse scale any more: the next is the first of its size. A warm fit whose first
            # step is long goes back to coarser ones.
            coarsest = max((0.5 if index == first else 1.0) * self.settings.calm * far, scales[-1])
            index, first = (0 if index == first else index + 1), -1
            while index < len(scales) and scales[index] > coarsest:
                index += 1
        return pose, latent, last

    def _latent_step(
        self, packed: PackedObservation, pose: QuadPose, latent: Floats, scale: float, part: slice
    ) -> tuple[QuadPose, Floats]:
        """Step the root's six numbers and the latent point along the manifold, or a part of these numbers."""
        by_quads, weighted, _ = self._data_rows(self._coarse, packed, pose, scale)
        basis = latent_basis(self.prior, pose, latent)
        jacobian = (by_quads @ basis.astype(np.float32)).astype(np.float64)
        hessian = jacobian.T @ jacobian
        small = System(hessian, jacobian.T @ weighted)
        at = self.prior.evaluate(latent)
        variance_term(small, at.variance, at.variance_gradient, self.settings.variance_weight)
        metric = np.einsum("ij,i,ij->j", basis, self._metric, basis)
        damping = 1e-3 * np.trace(hessian) / np.sum(metric) + 1e-6
        step = np.zeros(len(metric))
        step[part] = np.linalg.solve((small.hessian + damping * np.diag(metric))[part, part], -small.gradient[part])
        step *= min(1.0, 1.0 / max(np.abs(step[:3]).max() / 0.4, np.abs(step[6:]).max() / 1.0, 1e-9))
        root = self.prior.chart.root
        moved_root = RigidTransform(
            rotation_from_vector(step[:3]) @ pose.rotations[root], pose.centres[root] + step[3:6]
        )
        latent = latent + step[6:]
        return self.pose_of(moved_root, latent), latent

    def _local_step(
        self, at: Evaluation, pose: QuadPose, latent: Floats, expected: Expectation | None
    ) -> tuple[QuadPose, Floats, float]:
        """Step all quads and the latent point; return them, and how far the furthest quad went, in thousandths."""
        hessian, gradient = at.system.hessian.copy(), at.system.gradient.copy()
        if expected is not None:
            prediction_term(
                System(hessian, gradient),
                pose,
                expected.pose,
                shift_sigma=expected.shift_sigma,
                turn_sigma=expected.turn_sigma,
            )
        size = len(gradient)
        latent_start = 6 * len(self.cage_rig.quads)
        hessian[np.arange(size), np.arange(size)] += self._damping(hessian)
        factor = cho_factor(hessian, overwrite_a=True, check_finite=False)
        step = cho_solve(factor, -gradient, check_finite=False)
        by_quad = step[:latent_start].reshape(-1, 6)
        step *= min(1.0, 0.5 / max(float(np.abs(by_quad[:, :3]).max()), 1e-9))
        far = float(np.sqrt((self._metric * step[:latent_start] ** 2).reshape(-1, 3).sum(axis=1).max()))
        return moved(pose, step[:latent_start]), latent + step[latent_start:], far

    def _evaluate(
        self, level: _Level, packed: PackedObservation, pose: QuadPose, latent: Floats, scale: float
    ) -> Evaluation:
        """Energy around a pose, but for the expectation."""
        settings, unit = self.settings, self.unit
        system, residuals = self._data_system(level, packed, pose, scale)
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
        residual = _rms(residuals)
        if self.posture is not None:
            self.posture.add_to(system, pose, self._erring(residual))
        return Evaluation(system, residual, at.variance, departure)

    def _erring(self, residual: float) -> float:
        """By how much outlines err together beyond what the energy takes for one sample, told by what is left of them.

        The larger their errors, over what is expected, the longer the stretches that share one: hence the square.
        """
        expected = self.settings.contour_sigma * self.unit
        return float(np.clip((residual / expected) ** 2, *ERRING)) if np.isfinite(residual) else COMMON

    def _report(self, packed: PackedObservation, pose: QuadPose, latent: Floats, last: Evaluation | None) -> FrameFit:
        """Describe a fit by its overlap where it ended and the energy where its last step began."""
        if last is None:
            last = self._evaluate(self._fine, packed, pose, latent, self.settings.robust[-1])
        overlap = self._fine.matcher.overlaps(self.deform(pose), packed)
        off = 0.0 if self.points is None else self.points.off(packed.sightings, pose)
        strain = 0.0 if self.posture is None else self.posture.of(pose)
        curvature = self._curvature(last)
        return FrameFit(pose, latent, overlap, last.residual, last.variance, last.departure, curvature, off, strain)

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


@compiled
def _mirror(half: Singles, whole: Floats) -> None:
    """Write a symmetric matrix (n, n) of which the upper triangle is given into the corner of a larger one."""
    for i in range(len(half)):
        for j in range(i + 1):
            whole[i, j] = whole[j, i] = half[j, i]


def _rms(residuals: Floats) -> float:
    """Root mean square, NaN of nothing."""
    return float(np.sqrt(np.mean(residuals**2))) if len(residuals) else float("nan")
