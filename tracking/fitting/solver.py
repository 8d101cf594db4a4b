"""One frame: quads and latent point that put the template's outlines on the observed silhouettes.

Gauss-Newton with damping in a metric of millimetres and radians (damping by the diagonal of the Hessian alone stalls
along directions that no outline sees). Pairs of outline samples are made anew before each step, and the robust scale
shrinks from step to step, coarse to fine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dposv

from calibration.foundation.arrays import Floats, Ints, Singles
from calibration.foundation.errors import SolveError
from calibration.geometry.transforms import RigidTransform, rotation_from_vector
from tracking.fitting.frame_energy import BodyPart, Evaluation, FrameEnergy
from tracking.fitting.joint_fit import FrameBlock
from tracking.fitting.point_fit import moved
from tracking.observations.contours import Observation
from tracking.quads.oriented_quads import QuadPose
from tracking.terms.energy import System, prediction_term, variance_term
from tracking.terms.silhouette import PackedObservation
from tracking.terms.texture import FrameMarks

__all__ = ["Expectation", "FrameFit", "FrameSolver", "RoughFit", "Sketch"]

WARM_SETTLED, CLOSE_SETTLED = 3.0, 6.0
"""How much longer the last step of a warm fit may be: all frames are stepped together in the end. The second where
outlines lie no further off than is expected of them; where they err by more, as a real animal's, fits go on."""
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

    @cached_property
    def agreement(self) -> float:
        """Mean overlap over the views that saw something; NaN when none did."""
        seen = self.overlap[np.isfinite(self.overlap)]
        return float(seen.mean()) if len(seen) else float("nan")

    @property
    def score(self) -> float:
        """The overlap, less what the prior, the posture and marked points make it pay: what fits are compared by."""
        return self.agreement - _paid(self.departure, self.strain, self.points_off)


def _paid(departure: float, strain: float, points_off: float) -> float:
    """What prior, posture and marked points cost a fit, in units of overlap."""
    return 0.01 * max(departure - 1.0, 0.0) + strain + POINT_COST * points_off


@dataclass(frozen=True, eq=False)
class Sketch:
    """A part of the body elsewhere, the rest as it was: quads, latent point (d,), and a score as a `FrameFit` has."""

    pose: QuadPose
    latent: Floats
    score: float


@dataclass(frozen=True, eq=False)
class RoughFit:
    """Quads on the manifold, latent point (d,), and mean overlap over the views that saw something."""

    pose: QuadPose
    latent: Floats
    agreement: float


class FrameSolver(FrameEnergy):
    """Fits one template, through one rig of cameras, under one prior (or none)."""

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

    def lies_close(self, fit: FrameFit) -> bool:
        """Whether the outlines of a fit lie no further off than is expected of them."""
        return fit.residual < self.settings.contour_sigma * self.unit

    def glance(self, observation: Observation, start: QuadPose, latent: Floats) -> FrameFit | None:
        """Step from where the frame beside leads until a step is short, None where two of them do not do.

        Outlines that lie close are paired with the right ones from the start, and all frames are stepped together in
        the end: another step here would bring no more than noise. Short is no longer than the finest robust scale. It
        does not do either where outlines lie further off than is expected.
        """
        packed = self._fine.matcher.pack(observation)
        pose, scale = start, self.settings.robust[-1]
        for _ in range(2):
            at = self._evaluate(self._near, packed, pose, latent, scale)
            pose, latent, steps = self._local_step(at, pose, latent, None)
            if steps.max() <= scale:
                fit = self._report(packed, pose, latent, at)
                return fit if self.lies_close(fit) else None
        return None

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

    def sketches(
        self,
        observation: Observation,
        part: BodyPart,
        fit: FrameFit,
        starts: Sequence[tuple[QuadPose, Floats]],
        met: Callable[[QuadPose, list[QuadPose]], bool],
    ) -> list[Sketch]:
        """A few coarse steps of a part alone from several starts side by side: enough to tell which one to finish.

        Args:
            observation: silhouettes.
            part: what moves.
            fit: how the rest stays.
            starts: quads and latent points that differ from it in the part.
            met: whether a pose on the way is one that is known, or one of some others: it is not gone on with.
        """
        packed = self._fine.matcher.pack(observation)
        rest = self.cage_rig.deform(self._coarse.binding, fit.pose)
        going = [(pose, latent, 0.0) for pose, latent in starts]
        for scale in self.settings.sketch:
            before, going = going, []
            for pose, latent, _ in before:
                vertices = self._with_part(part, rest, pose)
                system = self._part_system(part, packed, vertices, pose, scale, fit.residual)
                at = self._with_terms(system, fit.residual, pose, latent)
                pose, latent, _ = self._part_step(at, pose, latent, part.columns)
                if not met(pose, [other for other, _, _ in going]):
                    going.append((pose, latent, at.departure))
        # The coarse template tells by how much the overlap changes, for half the price.
        overlaps = self._coarse.matcher.overlaps
        level = fit.agreement - float(np.nanmean(overlaps(rest, packed))) if going else 0.0
        sketches = []
        for pose, latent, departure in going:
            reached = level + float(np.nanmean(overlaps(self._with_part(part, rest, pose), packed)))
            off, strain = self._off_and_strain(packed, pose)
            sketches.append(Sketch(pose, latent, reached - _paid(departure, strain, off)))
        return sketches

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
        at = self._evaluate(self._joint, packed, fit.pose, fit.latent, self.settings.robust[-1])
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
            close = warm and last is not None and last.residual < self.settings.contour_sigma * self.unit
            # Half the samples hold a rodent as well on the way: all frames are stepped with all of them in the end.
            near = close or (warm and self.posture is not None)
            coarse, fine = self._warm if warm else self._coarse, self._near if near else self._fine
            level = fine if scales[index] == scales[-1] else coarse
            last = self._evaluate(level, packed, pose, latent, scales[index])
            pose, latent, steps = self._local_step(last, pose, latent, expected)
            far = float(steps.max())
            longer = CLOSE_SETTLED if close else WARM_SETTLED if warm else 1.0
            if scales[index] == scales[-1] and far < longer * self.settings.settled:
                break
            # A small step needs no coarse scale any more: the next is the first of its size. A warm fit whose first
            # step is long goes back to coarser ones. Of a rodent that is the body's step, not that of a foot which
            # outlines hardly hold; a person's arm that boxes needs them.
            if index == first:
                far, index = 0.5 * (far if self.posture is None else float(np.sqrt(np.mean(steps**2)))), -1
            coarsest = max(self.settings.calm * far, scales[-1])
            index, first = index + 1, -1
            while index < len(scales) and scales[index] > coarsest:
                index += 1
        return pose, latent, last

    def _latent_step(
        self, packed: PackedObservation, pose: QuadPose, latent: Floats, scale: float, part: slice
    ) -> tuple[QuadPose, Floats]:
        """Step the root's six numbers and the latent point along the manifold, or a part of these numbers."""
        at, chart = self.prior.evaluate(latent), self.prior.chart
        root = chart.root
        basis = chart.basis(RigidTransform(pose.rotations[root], pose.centres[root]), at.mean, at.mean_jacobian)
        jacobian, weighted = self._rows_along(packed, pose, scale, basis)
        hessian = jacobian.T @ jacobian
        small = System(hessian, jacobian.T @ weighted)
        variance_term(small, at.variance, at.variance_gradient, self.settings.variance_weight)
        metric = np.einsum("ij,i,ij->j", basis, self._metric, basis)
        damping = 1e-3 * np.trace(hessian) / np.sum(metric) + 1e-6
        step = np.zeros(len(metric))
        step[part] = np.linalg.solve((small.hessian + damping * np.diag(metric))[part, part], -small.gradient[part])
        step *= min(1.0, 1.0 / max(np.abs(step[:3]).max() / 0.4, np.abs(step[6:]).max() / 1.0, 1e-9))
        moved_root = RigidTransform(
            rotation_from_vector(step[:3]) @ pose.rotations[root], pose.centres[root] + step[3:6]
        )
        latent = latent + step[6:]
        return self.pose_of(moved_root, latent), latent

    def _rows_along(
        self, packed: PackedObservation, pose: QuadPose, scale: float, basis: Floats
    ) -> tuple[Floats, Floats]:
        """Derivatives (N, K) of outlines and marked points by K numbers (basis (6 Q, K)), weighted residuals (N,)."""
        matches, root = self._pairs(self._coarse, packed, pose, scale)
        jacobian = self.cage_rig.outline_jacobian_along(
            self.coarse_binding, matches.pairs, matches.directions, root, self.cage_rig.derivatives(pose), basis
        )
        weighted = root * matches.residuals
        if self.points is not None and packed.sightings is not None and len(packed.sightings):
            more, ours = self.points.rows(packed.sightings, pose, scale)
            jacobian, weighted = np.concatenate([jacobian, more @ basis]), np.concatenate([weighted, ours])
        return jacobian, weighted

    def _local_step(
        self, at: Evaluation, pose: QuadPose, latent: Floats, expected: Expectation | None
    ) -> tuple[QuadPose, Floats, Floats]:
        """Step all quads and the latent point; return them, and how far each quad went (Q,), in thousandths."""
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
        hessian[np.arange(size), np.arange(size)] += self._damping(hessian)
        return self._taken(_solved(hessian, gradient), pose, latent)

    def _part_step(
        self, at: Evaluation, pose: QuadPose, latent: Floats, columns: Ints
    ) -> tuple[QuadPose, Floats, Floats]:
        """The same for some of the numbers (n,), the rest held."""
        hessian = at.system.hessian[np.ix_(columns, columns)]
        size = len(columns)
        hessian[np.arange(size), np.arange(size)] += self._damping(at.system.hessian)[columns]
        step = np.zeros(len(at.system.gradient))
        step[columns] = _solved(hessian, at.system.gradient[columns])
        return self._taken(step, pose, latent)

    def _taken(self, step: Floats, pose: QuadPose, latent: Floats) -> tuple[QuadPose, Floats, Floats]:
        """Take a step, at most half a radian of any quad."""
        latent_start = 6 * len(self.cage_rig.quads)
        by_quad = step[:latent_start].reshape(-1, 6)
        step *= min(1.0, 0.5 / max(float(np.abs(by_quad[:, :3]).max()), 1e-9))
        squares = (self._metric * step[:latent_start] ** 2).reshape(-1, 2, 3).sum(axis=2)
        return moved(pose, step[:latent_start]), latent + step[latent_start:], np.sqrt(squares.max(axis=1))

    def _off_and_strain(self, packed: PackedObservation, pose: QuadPose) -> tuple[float, float]:
        """How many marked points are elsewhere in a pose, and how strained it is."""
        off = 0.0 if self.points is None else self.points.off(packed.sightings, pose)
        return off, 0.0 if self.posture is None else self.posture.of(pose)

    def _report(self, packed: PackedObservation, pose: QuadPose, latent: Floats, last: Evaluation | None) -> FrameFit:
        """Describe a fit by its overlap where it ended and the energy where its last step began."""
        if last is None:
            last = self._evaluate(self._fine, packed, pose, latent, self.settings.robust[-1])
        overlap = self._fine.matcher.overlaps(self.deform(pose), packed)
        off, strain = self._off_and_strain(packed, pose)
        curvature = self._curvature(last)
        return FrameFit(pose, latent, overlap, last.residual, last.variance, last.departure, curvature, off, strain)


def _solved(hessian: Floats, gradient: Floats) -> Floats:
    """Return the step of a damped system, whose matrix is overwritten."""
    # Symmetric: its transpose is laid out as LAPACK has it, and is not copied.
    _, step, failed = dposv(hessian.T, -gradient, overwrite_a=True, overwrite_b=True)
    if failed:
        raise SolveError(f"a step of a frame: the curvature is not positive definite (row {failed})")
    return np.asarray(step)
