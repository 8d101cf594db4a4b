"""Training of the Gaussian-process latent variable prior: the one module that needs PyTorch and gpytorch.

Latent points X, kernel and noise maximise (Lawrence 2005; Duveau et al. 2012, eq. 2-3)::

    log p(Y | X, theta) = -D/2 log |C| - 1/2 tr(C^-1 Y Y^T) - n D/2 log 2 pi,     C = K(X) + noise I

over restarts, each by L-BFGS on the exact gradient. FITC replaces C by ``Q_ff + diag(K_ff - Q_ff) + noise I``
with inducing points X_u optimised beside the rest, which costs O(n m^2) instead of O(n^3).

Back constraints make X a smooth function of Y: ``X = Phi A`` with a Gaussian kernel Phi on pose vectors. Only
the well-conditioned directions of Phi are used, ``Phi = U S V^T``, ``X = U_r Z``, ``A = V_r S_r^-1 Z``: with all
of them any X could be reached, and the constraint would bind nothing.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError, SolveError
from tracking.priors.gplvm import (
    BACK_TOLERANCE,
    JITTER,
    BackMap,
    GplvmPrior,
    Kernel,
    exact_gplvm,
    fitc_gplvm,
    squared_distances,
)
from tracking.priors.pose_chart import PoseChart
from tracking.priors.prior import checked_poses
from tracking.priors.representative_frames import representative_frames

__all__ = ["GplvmOptions", "GplvmReport", "TrainedGplvm", "require_torch", "train_gplvm"]


@dataclass(frozen=True)
class GplvmOptions:
    """How to train.

    Attributes:
        latent_dim: dimension of the latent space, 2 to 12 in practice.
        back_constraints: make latents a smooth function of the poses.
        restarts: number of starting points; the most likely result is kept.
        iterations: most L-BFGS iterations of each restart.
        inducing: number of inducing points of the FITC form; None trains the exact one.
        keep: how many training poses stay with a FITC prior; None keeps all, so that it can follow other subjects.
        back_centres: most centres of the map from poses to latents.
        target: stop a restart as soon as its log-likelihood reaches this value.
        noise_floor: least noise, as a share of the poses' variance; 0 for pure maximum likelihood. A few poses can
            be fitted with no noise at all, which makes the variance a set of spikes at the training poses.
    """

    latent_dim: int = 8
    back_constraints: bool = True
    restarts: int = 3
    iterations: int = 300
    inducing: int | None = None
    keep: int | None = 300
    back_centres: int = 300
    target: float | None = None
    noise_floor: float = 1e-3


@dataclass(frozen=True)
class GplvmReport:
    """How the training went.

    Attributes:
        log_likelihood: of the model kept, natural logarithm, all poses and entries together.
        restarts: log-likelihood of each restart.
        iterations: L-BFGS iterations of each restart.
        poses: number of training poses.
        inducing: number of inducing points, 0 for the exact form.
    """

    log_likelihood: float
    restarts: tuple[float, ...]
    iterations: tuple[int, ...]
    poses: int
    inducing: int


@dataclass(frozen=True, eq=False)
class TrainedGplvm:
    """A trained prior with the report of its training."""

    prior: GplvmPrior
    report: GplvmReport


def require_torch() -> tuple[Any, Any]:
    """Import PyTorch and gpytorch, or say in one line what to install."""
    try:
        with warnings.catch_warnings():
            # linear_operator compiles a function with torch.jit.script, which PyTorch deprecates, on import.
            warnings.simplefilter("ignore", DeprecationWarning)
            return importlib.import_module("torch"), importlib.import_module("gpytorch")
    except ModuleNotFoundError as error:
        raise InputError(
            f"training a prior needs PyTorch and gpytorch ('{error.name}' is not installed): "
            "in the clone, pip install -e '.[train]' (the CPU build of torch is enough)"
        ) from None


def train_gplvm(
    poses: Floats,
    chart: PoseChart,
    options: GplvmOptions,
    rng: np.random.Generator,
    *,
    rig_name: str,
    quad_names: Sequence[str],
    on_progress: Callable[[int, int], None] | None = None,
) -> TrainedGplvm:
    """Train a prior on pose vectors.

    The result depends on the poses, the options and the generator's state only: PyTorch runs on one thread.

    Args:
        poses: (n, D) training pose vectors, no NaN; n up to about 500 for the exact form.
        chart: chart of the pose vectors.
        options: how to train.
        rng: source of the restarts' starting points.
        rig_name: name of the quad rig.
        quad_names: names of its quads.
        on_progress: called with (iterations done, most iterations).
    """
    torch, _ = require_torch()
    poses = checked_poses(poses, options.latent_dim, chart)
    if options.inducing is not None and not 2 <= options.inducing <= len(poses):
        raise InputError(f"inducing points must number from 2 to {len(poses)} poses, got {options.inducing}")
    if options.restarts < 1 or options.iterations < 1:
        raise InputError(f"restarts and iterations must be at least 1, got {options}")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _train(poses, chart, options, rng, rig_name, tuple(quad_names), on_progress)
    finally:
        torch.set_num_threads(threads)


def _train(
    poses: Floats,
    chart: PoseChart,
    options: GplvmOptions,
    rng: np.random.Generator,
    rig_name: str,
    quad_names: tuple[str, ...],
    on_progress: Callable[[int, int], None] | None,
) -> TrainedGplvm:
    basis = _BackBasis.fit(poses, options.back_centres)
    objective = _Objective(poses, options, basis.features if options.back_constraints else None)
    total = options.restarts * options.iterations
    finals: list[tuple[float, Floats]] = []
    counts: list[int] = []
    for restart in range(options.restarts):
        start = objective.start(restart, rng)
        done = restart * options.iterations

        def progress(iteration: int, done: int = done) -> None:
            if on_progress is not None:
                on_progress(done + iteration, total)

        parameters, iterations = _maximise(objective, start, options, progress)
        finals.append((objective.log_likelihood(parameters), parameters))
        counts.append(iterations)
    likelihoods = tuple(value for value, _ in finals)
    if not np.isfinite(max(likelihoods)):
        raise SolveError("GPLVM training: no restart reached a finite likelihood", likelihoods)
    best = int(np.argmax(likelihoods))
    latents, inducing, kernel = objective.unpack(finals[best][1])
    # Latents of unit variance, so that a step in latent space means the same for every prior.
    scale = float(np.sqrt(np.mean(np.var(latents, axis=0))))
    kernel = Kernel(kernel.alpha, kernel.gamma * scale**2, kernel.noise)
    latents = latents / scale
    back_map = basis.back_map(latents)
    if inducing is None:
        prior = exact_gplvm(latents, poses, kernel, back_map, chart, rig_name=rig_name, quad_names=quad_names)
    else:
        prior = fitc_gplvm(
            latents,
            poses,
            inducing / scale,
            kernel,
            back_map,
            chart,
            rig_name=rig_name,
            quad_names=quad_names,
            keep=options.keep,
        )
    return TrainedGplvm(
        prior,
        GplvmReport(likelihoods[best], likelihoods, tuple(counts), len(poses), options.inducing or 0),
    )


@dataclass(frozen=True, eq=False)
class _BackBasis:
    """Smooth functions of the pose, evaluated at the training poses.

    Attributes:
        centres: (b, D) pose vectors the Gaussian kernel is centred on.
        gamma: inverse squared width.
        features: (n, r) orthonormal columns U_r.
        readout: (b, r) V_r S_r^-1, so that the weights of the map are ``readout @ Z``.
    """

    centres: Floats
    gamma: float
    features: Floats
    readout: Floats

    @staticmethod
    def fit(poses: Floats, most: int) -> _BackBasis:
        """Centre the kernel on the poses, or on representatives of them where they are many."""
        centres = poses if len(poses) <= most else poses[representative_frames(poses, most)]
        # Width: the median distance between poses, so that the map bends on the scale of the data.
        between = squared_distances(centres, centres)[np.triu_indices(len(centres), 1)]
        gamma = 1.0 / max(float(np.median(between)), 1e-12)
        left, singular, right = np.linalg.svd(
            np.exp(-0.5 * gamma * squared_distances(poses, centres)), full_matrices=False
        )
        rank = int(np.sum(singular > BACK_TOLERANCE * singular[0]))
        return _BackBasis(centres, gamma, left[:, :rank], right[:rank].T / singular[:rank])

    def back_map(self, latents: Floats) -> BackMap:
        """Map fitted to latents (n, d) by least squares: exact where they were back-constrained."""
        return BackMap(self.centres, self.readout @ (self.features.T @ latents), self.gamma)


class _Objective:
    """Negative log-likelihood of a flat parameter vector, with its gradient.

    The vector holds log alpha, log gamma, log noise, then X (n, d) or, back-constrained, Z (r, d), then for
    FITC the inducing points (m, d).
    """

    def __init__(self, poses: Floats, options: GplvmOptions, features: Floats | None) -> None:
        self.torch, gpytorch = require_torch()
        self.options = options
        self.count, self.outputs = poses.shape
        centred = poses - poses.mean(axis=0)
        self.power = float(np.mean(centred**2))
        # The likelihood sees Y through Y Y^T alone: fewer columns with the same product serve as well.
        left, singular, _ = np.linalg.svd(centred, full_matrices=False)
        kept = singular > 1e-12 * singular[0]
        self.y = self.torch.from_numpy(left[:, kept] * singular[kept])
        self.yyt = self.y @ self.y.T
        scores = left[:, : options.latent_dim] * singular[: options.latent_dim]
        self.scores = scores / np.sqrt(np.mean(np.var(scores, axis=0)))
        self.features = None if features is None else self.torch.from_numpy(features)
        # exp(-|a - b|^2 / 2): gamma comes in through the scale of its arguments, alpha as a factor.
        self.kernel = gpytorch.kernels.RBFKernel().double().requires_grad_(False)
        self.kernel.lengthscale = 1.0

    def start(self, restart: int, rng: np.random.Generator) -> Floats:
        """Parameters to start from: principal component scores, shaken more at each restart.

        Wide kernel and high noise first: the poses are then nearly linear in the latents, and detail comes in
        as the noise falls. Measured against narrower starts, this ends in better optima, and sooner.
        """
        latents = self.scores * np.exp(0.3 * restart * rng.normal(size=self.scores.shape[1]))
        latents = latents + 0.2 * restart * rng.normal(size=latents.shape)
        free = latents
        if self.features is not None:
            features = self.features.numpy()
            free = features.T @ latents
            latents = features @ free
        parts = [np.log([5.0 * self.power, 0.1 / latents.shape[1], 0.5 * self.power]), free.ravel()]
        if self.options.inducing is not None:
            parts.append(latents[representative_frames(latents, self.options.inducing)].ravel())
        return np.concatenate(parts)

    def bounds(self, count: int) -> list[tuple[float | None, float | None]]:
        """Bounds of the parameters: only the noise has one."""
        free: list[tuple[float | None, float | None]] = [(None, None)] * count
        if self.options.noise_floor > 0:
            free[2] = (float(np.log(self.options.noise_floor * self.power)), None)
        return free

    def log_likelihood(self, parameters: Floats) -> float:
        """Log-likelihood, without gradient; -inf where the covariance cannot be factored."""
        return -self(parameters)[0]

    def unpack(self, parameters: Floats) -> tuple[Floats, Floats | None, Kernel]:
        """Latents (n, d), inducing points (m, d) or None, and kernel of a parameter vector."""
        alpha, gamma, noise = np.exp(parameters[:3])
        free, inducing = self._split(parameters)
        latents = free if self.features is None else self.features.numpy() @ free
        return latents, inducing, Kernel(float(alpha), float(gamma), float(noise))

    def _split(self, parameters: Any) -> tuple[Any, Any]:
        d = self.options.latent_dim
        rows = self.count if self.features is None else self.features.shape[1]
        free = parameters[3 : 3 + rows * d].reshape(rows, d)
        inducing = parameters[3 + rows * d :].reshape(-1, d) if self.options.inducing is not None else None
        return free, inducing

    def __call__(self, parameters: Floats) -> tuple[float, Floats]:
        """Negative log-likelihood and its gradient with respect to the parameters."""
        try:
            value, gradient = self._exact(parameters) if self.options.inducing is None else self._fitc(parameters)
        except self.torch.linalg.LinAlgError:
            # A trial step into an unfactorable covariance: the line search must turn back.
            return np.inf, np.zeros_like(parameters)
        return value + 0.5 * self.count * self.outputs * np.log(2 * np.pi), gradient

    def _exact(self, parameters: Floats) -> tuple[float, Floats]:
        """Exact likelihood, with the gradient in closed form: autograd would take twice the time."""
        torch = self.torch
        vector = torch.from_numpy(parameters)
        alpha, gamma, noise = np.exp(parameters[:3])
        free, _ = self._split(vector)
        with torch.no_grad():
            scaled = (free if self.features is None else self.features @ free) * np.sqrt(gamma)
            signal = alpha * self.kernel.forward(scaled, scaled)
            covariance = signal.clone()
            covariance.diagonal().add_(noise)
            factor = torch.linalg.cholesky(covariance)
            inverse = torch.cholesky_inverse(factor)
            fitted = inverse @ self.yyt
            value = self.outputs * torch.log(torch.diagonal(factor)).sum() + 0.5 * torch.trace(fitted)
            # d value / dC, and through the kernel: dC_ij / dx_i = -gamma (x_i - x_j) signal_ij, twice by symmetry.
            slope = 0.5 * (self.outputs * inverse - fitted @ inverse)
            pull = slope * signal
            by_scaled = 2.0 * (pull @ scaled - pull.sum(1)[:, None] * scaled)
            by_latents = by_scaled * np.sqrt(gamma)
            by_free = by_latents if self.features is None else self.features.T @ by_latents
            head = [float(pull.sum()), 0.5 * float((by_scaled * scaled).sum()), noise * float(torch.trace(slope))]
        return float(value), np.concatenate([head, by_free.numpy().ravel()])

    def _fitc(self, parameters: Floats) -> tuple[float, Floats]:
        """FITC likelihood, with the gradient by autograd."""
        torch = self.torch
        vector = torch.from_numpy(parameters.copy()).requires_grad_(True)
        free, inducing = self._split(vector)
        latents = free if self.features is None else self.features @ free
        alpha, scale, noise = torch.exp(vector[0]), torch.exp(0.5 * vector[1]), torch.exp(vector[2])
        identity = torch.eye(len(inducing), dtype=torch.float64)
        k_uu = alpha * (self.kernel.forward(inducing * scale, inducing * scale) + JITTER * identity)
        k_uf = alpha * self.kernel.forward(inducing * scale, latents * scale)
        # With V = L_uu^-1 K_uf Lambda^-1/2: Q_ff + Lambda = Lambda^1/2 (V^T V + I) Lambda^1/2.
        whitened = torch.linalg.solve_triangular(torch.linalg.cholesky(k_uu), k_uf, upper=False)
        diagonal = torch.clamp(alpha - (whitened**2).sum(0), min=0.0) + noise
        v = whitened / torch.sqrt(diagonal)
        factor = torch.linalg.cholesky(identity + v @ v.T)
        y = self.y / torch.sqrt(diagonal)[:, None]
        explained = torch.linalg.solve_triangular(factor, v @ y, upper=False)
        log_determinant = 2 * torch.log(torch.diagonal(factor)).sum() + torch.log(diagonal).sum()
        value = 0.5 * (self.outputs * log_determinant + (y**2).sum() - (explained**2).sum())
        value.backward()
        return float(value.detach()), vector.grad.numpy().copy()


def _maximise(
    objective: _Objective, start: Floats, options: GplvmOptions, progress: Callable[[int], None]
) -> tuple[Floats, int]:
    """Run L-BFGS; return the parameters reached and the number of iterations."""
    iterations = 0

    def after(intermediate_result: Any) -> None:
        nonlocal iterations
        iterations += 1
        progress(iterations)
        if options.target is not None and -float(intermediate_result.fun) >= options.target:
            raise StopIteration

    result = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        callback=after,
        bounds=objective.bounds(len(start)),
        options={"maxiter": options.iterations, "maxfun": 2 * options.iterations, "maxcor": 20, "ftol": 1e-9},
    )
    return np.asarray(result.x), iterations
