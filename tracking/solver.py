"""One frame: quads and latent point that put the template's outlines on the observed silhouettes.

Gauss-Newton with damping in a metric of millimetres and radians (damping by the diagonal of the Hessian alone stalls
along directions that no outline sees). Pairs of outline samples are made anew before each step, and the robust scale
shrinks from step to step, coarse to fine.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from calibration.arrays import Floats, Ints
from calibration.transforms import RigidTransform, rotation_from_vector
from tracking.contours import Observation
from tracking.deformation import CageRig
from tracking.energy import System, latent_basis, prediction_term, prior_term, variance_term
from tracking.pair_prior import fit_pair_prior
from tracking.point_fit import moved
from tracking.prior import Prior, require_rig
from tracking.quads import QuadPose
from tracking.rigidity import rigidity_term
from tracking.silhouette_term import Matches, Outline, OutlineMatcher, PackedObservation

__all__ = ["FrameFit", "FrameSolver", "Settings", "Template"]


@dataclass(frozen=True)
class Settings:
    """How the terms weigh against each other. Lengths are in thousandths of the subject's size (mm for a person).

    Attributes:
        contour_sigma: 1 sigma of an outline sample.
        contour_length: length of outline whose errors are one and the same.
        robust: robust scales of the local steps, first to last; a residual of this size counts a quarter.
        latent_robust: robust scales of the latent steps.
        samples: outline samples per view.
        reach: pairs further apart are not made, as a multiple of the robust scale.
        shift_sigma, turn_sigma: how far a quad lies from the prior's, rad for the turn.
        variance_weight: weight of log sigma^2(x).
        pair_weight: weight of the neighbours' Gaussians learned from the training poses.
        pair_shift, pair_turn: their floors, thousandths and rad.
        bend, length, twist: weights of the rigidity term, 1 / (sigma in thousandths).
        predict_shift, predict_turn: how far the next frame lies from the prediction.
        latent_only: leave the quads on the manifold (for ablation).
        one_sided: leave out the pairs from observed to model outline (for ablation).
        descent: plain gradient descent of this many steps instead of Gauss-Newton (for ablation); 0 is off.
    """

    contour_sigma: float = 8.0
    contour_length: float = 25.0
    robust: tuple[float, ...] = (60.0, 45.0, 32.0, 24.0, 20.0, 20.0)
    latent_robust: tuple[float, ...] = (120.0, 90.0, 70.0)
    samples: int = 160
    reach: float = 4.0
    shift_sigma: float = 10.0
    turn_sigma: float = 0.07
    variance_weight: float = 1.0
    pair_weight: float = 1.0
    pair_shift: float = 4.0
    pair_turn: float = 0.04
    bend: float = 0.05
    length: float = 0.1
    twist: float = 0.02
    predict_shift: float = 200.0
    predict_turn: float = 1.5
    latent_only: bool = False
    one_sided: bool = False
    descent: int = 0


@dataclass(frozen=True, eq=False)
class Template:
    """A mesh bound to a cage.

    Attributes:
        vertices: (V, 3) rest positions, mm.
        faces: (F, 3).
        binding: (V, 4 Q + F_cage) Green coordinates.
    """

    vertices: Floats
    faces: Ints
    binding: Floats


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
    """

    pose: QuadPose
    latent: Floats
    overlap: Floats
    residual: float
    variance: float
    departure: float
    hessian: Floats = field(repr=False)

    @property
    def agreement(self) -> float:
        """Mean overlap over the views that saw something; NaN when none did."""
        seen = self.overlap[np.isfinite(self.overlap)]
        return float(seen.mean()) if len(seen) else float("nan")


class FrameSolver:
    """Fits one template, through one rig of cameras, under one prior (or none)."""

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
    ) -> None:
        """Prepare a solver.

        Raises:
            InputError: the prior is of another rig, or the template is not closed.
        """
        require_rig(prior, cage_rig.rig.name, cage_rig.rig.quad_names)
        self.cage_rig = cage_rig
        self.template = template
        self.prior = prior
        self.settings = settings or Settings()
        self.use_prior = use_prior
        self.matcher = OutlineMatcher(Outline.of(template.faces), camera_rows, sizes)
        low, high = template.vertices.min(axis=0), template.vertices.max(axis=0)
        #: One thousandth of the subject's size: 1 mm for a person of 2 m, 0.08 mm for a mouse with its tail.
        self.unit = float(np.linalg.norm(high - low)) / 2000.0
        self.pairs = fit_pair_prior(
            cage_rig.rig,
            prior,
            shift_floor=self.settings.pair_shift * self.unit,
            turn_floor=self.settings.pair_turn,
        )
        self._binding = np.ascontiguousarray(template.binding, np.float32)
        corners = np.linalg.norm(cage_rig.rig.corners, axis=-1).mean(axis=1)
        metric = np.repeat(np.stack([corners**2, np.ones(len(corners))], axis=1), 3, axis=1)
        self._metric = metric.ravel() / self.unit**2

    def pose_of(self, root: RigidTransform, latent: Floats) -> QuadPose:
        """Pose the quads on the manifold."""
        return QuadPose(*self.prior.chart.from_vector(root, self.prior.mean(latent)))

    def deform(self, pose: QuadPose) -> Floats:
        """Carry the template to a pose, (V, 3) mm."""
        return self.cage_rig.deform(self._binding, pose)

    def fit(
        self,
        observation: Observation,
        start: QuadPose,
        latent: Floats,
        *,
        predicted: QuadPose | None = None,
        latent_steps: bool = True,
        local_steps: bool = True,
        latent_rounds: int = 1,
        last_steps: int | None = None,
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
            latent_rounds: how often the latent steps are gone through.
            last_steps: only this many of the local steps, the finest; None for all.
            predict_shift, predict_turn: trust in the prediction, None for the settings' own.
        """
        packed = self.matcher.pack(observation)
        pose = start
        if latent_steps and self.use_prior:
            root = RigidTransform(pose.rotations[self.prior.chart.root], pose.centres[self.prior.chart.root])
            pose = self.pose_of(root, latent)
            for scale in self.settings.latent_robust * latent_rounds:
                pose, latent = self._latent_step(packed, pose, latent, scale)
        if local_steps and not self.settings.latent_only:
            scales = self.settings.robust if last_steps is None else self.settings.robust[-last_steps:]
            expected = None
            if predicted is not None:
                expected = Expectation(
                    predicted,
                    (predict_shift or self.settings.predict_shift) * self.unit,
                    predict_turn or self.settings.predict_turn,
                )
            for scale in scales:
                pose, latent = self._local_step(packed, pose, latent, expected, scale)
        return self._report(packed, pose, latent)

    def _matches(self, packed: PackedObservation, pose: QuadPose, scale: float) -> Matches:
        return self.matcher.match(
            self.deform(pose),
            packed,
            reach=self.settings.reach * scale * self.unit,
            model_samples=self.settings.samples,
            one_sided=self.settings.one_sided,
        )

    def _data_system(self, matches: Matches, pose: QuadPose, scale: float) -> System:
        system = System.empty(len(self.cage_rig.rig), self.prior.latent_dim)
        rows = np.float32(0.5) * (self._binding[matches.first] + self._binding[matches.second])
        jacobian = self.cage_rig.directional_jacobian(rows, matches.directions, self.cage_rig.derivatives(pose))
        robust = 1.0 / (1.0 + (matches.residuals / (scale * self.unit)) ** 2) ** 2
        sigma = self.settings.contour_sigma * self.unit
        weights = robust * matches.weights / (self.settings.contour_length * self.unit) / sigma**2
        jacobian *= np.sqrt(weights).astype(np.float32)[:, None]
        size = jacobian.shape[1]
        system.hessian[:size, :size] = jacobian.T @ jacobian
        system.gradient[:size] = jacobian.T @ (np.sqrt(weights) * matches.residuals).astype(np.float32)
        system.cost = float(np.sum(weights * matches.residuals**2))
        return system

    def _latent_step(
        self, packed: PackedObservation, pose: QuadPose, latent: Floats, scale: float
    ) -> tuple[QuadPose, Floats]:
        matches = self._matches(packed, pose, scale)
        quads = 6 * len(self.cage_rig.rig)
        system = self._data_system(matches, pose, scale)
        basis = latent_basis(self.prior, pose, latent)
        hessian = basis.T @ system.hessian[:quads, :quads] @ basis
        gradient = basis.T @ system.gradient[:quads]
        small = System(hessian, gradient)
        at = self.prior.evaluate(latent)
        variance_term(small, at.variance, at.variance_gradient, self.settings.variance_weight)
        metric = np.einsum("ij,i,ij->j", basis, self._metric, basis)
        damping = 1e-3 * np.trace(hessian) / np.sum(metric) + 1e-6
        step = np.linalg.solve(small.hessian + damping * np.diag(metric), -small.gradient)
        step *= min(1.0, 1.0 / max(np.abs(step[:3]).max() / 0.4, np.abs(step[6:]).max() / 1.0, 1e-9))
        root = self.prior.chart.root
        moved_root = RigidTransform(
            rotation_from_vector(step[:3]) @ pose.rotations[root], pose.centres[root] + step[3:6]
        )
        latent = latent + step[6:]
        return self.pose_of(moved_root, latent), latent

    def _local_step(
        self, packed: PackedObservation, pose: QuadPose, latent: Floats, expected: Expectation | None, scale: float
    ) -> tuple[QuadPose, Floats]:
        system = self._full_system(self._matches(packed, pose, scale), pose, latent, expected, scale)
        size = len(system.gradient)
        latent_start = 6 * len(self.cage_rig.rig)
        # Single-precision rows leave errors of 1e-7 of the largest entries: the diagonal keeps the system definite.
        damping = np.full(size, 1e-3) + 1e-5 * np.abs(np.diag(system.hessian))
        damping[:latent_start] += 1e-3 * self._metric
        factor = cho_factor(system.hessian + np.diag(damping))
        step = cho_solve(factor, -system.gradient)
        by_quad = step[:latent_start].reshape(-1, 6)
        step *= min(1.0, 0.5 / max(float(np.abs(by_quad[:, :3]).max()), 1e-9))
        return moved(pose, step[:latent_start]), latent + step[latent_start:]

    def _full_system(
        self, matches: Matches, pose: QuadPose, latent: Floats, expected: Expectation | None, scale: float
    ) -> System:
        settings, unit = self.settings, self.unit
        system = self._data_system(matches, pose, scale)
        if self.use_prior:
            prior_term(
                system,
                self.prior,
                pose,
                latent,
                shift_sigma=settings.shift_sigma * unit,
                turn_sigma=settings.turn_sigma,
                variance_weight=settings.variance_weight,
            )
            if settings.pair_weight > 0:
                residual, jacobian = self.pairs.term(pose)
                system.add(jacobian, residual, settings.pair_weight)
        residual, jacobian = rigidity_term(
            self.cage_rig.rig,
            pose,
            bend=settings.bend / unit,
            length=settings.length / unit,
            twist=settings.twist / unit,
        )
        system.add(jacobian, residual)
        if expected is not None:
            prediction_term(
                system, pose, expected.pose, shift_sigma=expected.shift_sigma, turn_sigma=expected.turn_sigma
            )
        return system

    def _report(self, packed: PackedObservation, pose: QuadPose, latent: Floats) -> FrameFit:
        scale = self.settings.robust[-1]
        matches = self._matches(packed, pose, scale)
        system = self._full_system(matches, pose, latent, None, scale)
        quads = 6 * len(self.cage_rig.rig)
        hessian = system.hessian[:quads, :quads]
        if self.use_prior and self.prior.latent_dim:
            cross = system.hessian[:quads, quads:]
            inner = system.hessian[quads:, quads:] + 1e-6 * np.eye(self.prior.latent_dim)
            hessian = hessian - cross @ np.linalg.solve(inner, cross.T)
        _, y = self.prior.chart.to_vector(pose.rotations, pose.centres)
        units = np.tile(
            np.repeat(
                [
                    self.prior.chart.length_scale / (self.settings.shift_sigma * self.unit),
                    1.0 / self.settings.turn_sigma,
                ],
                3,
            ),
            self.prior.chart.quads - 1,
        )
        departure = float(np.sqrt(np.mean((units * (y - self.prior.mean(latent))) ** 2)))
        residual = float(np.sqrt(np.mean(matches.residuals**2))) if len(matches.residuals) else float("nan")
        return FrameFit(pose, latent, matches.overlap, residual, float(self.prior.variance(latent)), departure, hessian)
