"""Bundle adjustment of cameras, board poses and, if asked, board shapes.

Levenberg-Marquardt on the analytic Jacobian, board poses eliminated by a Schur complement; first with a robust
(Cauchy) loss, then as plain least squares on the corners that pass the outlier rule. Nothing random, nothing
that depends on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from calibration.bundle import steps as bundle_steps
from calibration.bundle.elimination import reduce
from calibration.bundle.equations import CLOCK, TURN, Observations, State, Unknowns, add_priors, linearise, residuals
from calibration.bundle.parameters import Columns, Freedom, LensPrior, number_columns, pack_priors
from calibration.cameras.camera_row import FISHEYE, LIMIT, MODEL, ROTATION, TRANSLATION
from calibration.foundation.arrays import Bools, Floats, Ints
from calibration.foundation.errors import SolveError
from calibration.geometry.small_matrices import cholesky, cholesky_solve

__all__ = [
    "OUTLIER_SIGMAS",
    "Bundle",
    "BundleSolution",
    "adjust",
    "corner_noise",
    "leave_out",
    "minimise",
    "robust_sigma",
]

#: A corner farther from its prediction than this many robust standard deviations of its camera is left out.
OUTLIER_SIGMAS = 4.0


@dataclass(frozen=True, eq=False)
class Bundle:
    """A bundle problem and its current state.

    Attributes:
        rows: (c, 36) cameras as `calibration.cameras.camera_row` names them.
        rotations, translations: (t, 3, 3), (t, 3) world_from_target poses, mm.
        points: (p, 3) model points of all boards, each in its board's frame, mm.
        camera, target, point: (n,) what each observation shows.
        pixels: (n, 2) observed, px.
        velocity: (n, 2) how fast each observed corner moves in its image, px per frame; 0 where unknown.
        offsets: (c,) how late each camera is, frames: corners are moved on by velocity * offset before they are
            compared.
        target_freedom: (t, 6) 1 where a target's own rotation (about its axes) or translation may move.
    """

    rows: Floats
    rotations: Floats
    translations: Floats
    points: Floats
    camera: Ints
    target: Ints
    point: Ints
    pixels: Floats
    velocity: Floats = field(default_factory=lambda: np.empty((0, 2)))
    offsets: Floats = field(default_factory=lambda: np.empty(0))
    target_freedom: Floats = field(default_factory=lambda: np.empty((0, 6)))

    def __post_init__(self) -> None:
        rows = self.rows.copy()
        # the limits of invertibility describe a lens at rest; while it moves, every point must project
        rows[:, LIMIT] = np.where(rows[:, MODEL] == FISHEYE, (np.pi / 2) ** 2, np.inf)
        object.__setattr__(self, "rows", rows)
        if len(self.velocity) != len(self.camera):
            object.__setattr__(self, "velocity", np.zeros((len(self.camera), 2)))
        if len(self.offsets) != len(rows):
            object.__setattr__(self, "offsets", np.zeros(len(rows)))
        if len(self.target_freedom) != len(self.rotations):
            object.__setattr__(self, "target_freedom", np.ones((len(self.rotations), 6)))

    @property
    def state(self) -> State:
        """What the adjustment may move."""
        return State(self.rows, self.rotations, self.translations, self.points, self.offsets)

    @property
    def observations(self) -> Observations:
        """What is seen."""
        return Observations(self.camera, self.target, self.point, self.pixels, self.velocity)

    def residuals(self) -> Floats:
        """Projected minus observed (n, 2), px; NaN behind a camera."""
        return residuals(self.state, self.observations)

    def only(self, mask: Bools) -> Bundle:
        """Return the problem with the observations of ``mask``; targets keep their numbers."""
        return replace(self, **{name: values[mask] for name, values in self.observations._asdict().items()})

    def at(self, other: Bundle) -> Bundle:
        """Return the problem with all its observations and the parameters of another of the same targets."""
        return replace(self, **other.state._asdict())


@dataclass(frozen=True, eq=False)
class BundleSolution:
    """A bundle at its minimum.

    Attributes:
        bundle: the solved state, with all observations, outliers included.
        inlier: (n,) observations that took part in the last least squares.
        columns: numbering of the parameters in ``covariance``.
        covariance: (g, g) of the free parameters, the reference camera held; px, mm, rad. It takes the corner
            errors for independent and of equal size ``sigma_px``.
        sigma_px: standard deviation of one coordinate of a corner, px.
        iterations: Levenberg-Marquardt steps, all rounds.
        converged: whether the last round ended by itself.
    """

    bundle: Bundle
    inlier: Bools
    columns: Columns
    covariance: Floats
    sigma_px: float
    iterations: int
    converged: bool

    def camera_sd(self, camera: int) -> Floats:
        """Standard deviations (26,) of one camera's numbers (see `calibration.bundle.equations`); 0 where fixed."""
        index = self.columns.camera[camera]
        sd = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        return np.where(index >= 0, sd[np.maximum(index, 0)] if len(sd) else 0.0, 0.0)

    def camera_covariance(self, camera: int) -> Floats:
        """Covariance (26, 26) of one camera's numbers; 0 where fixed."""
        index = self.columns.camera[camera]
        out = np.zeros((len(index), len(index)))
        free = np.flatnonzero(index >= 0)
        out[np.ix_(free, free)] = self.covariance[np.ix_(index[free], index[free])]
        return out

    def centre_covariance(self, camera: int) -> Floats:
        """Covariance (3, 3) of a camera's centre -R^T t, mm^2, in the frame of the reference camera."""
        row = self.bundle.rows[camera]
        rotation, t = row[ROTATION].reshape(3, 3), row[TRANSLATION]
        # R -> exp(w) R, t -> t + d: the centre moves by -R^T (d - w x t) = -R^T (d + [t]x w)
        cross = np.array([[0, -t[2], t[1]], [t[2], 0, -t[0]], [-t[1], t[0], 0]])
        jacobian = np.concatenate([-rotation.T @ cross, -rotation.T], axis=1)
        return np.asarray(jacobian @ self.camera_covariance(camera)[TURN:CLOCK, TURN:CLOCK] @ jacobian.T)

    def rms_px(self, camera: int | None = None) -> float:
        """Root mean square distance of inlier corners from their prediction, px (2D distance)."""
        chosen = self.inlier if camera is None else self.inlier & (self.bundle.camera == camera)
        if not chosen.any():
            return float("nan")
        return float(np.sqrt((self.bundle.residuals()[chosen] ** 2).sum(1).mean()))


def minimise(
    bundle: Bundle,
    columns: Columns,
    *,
    scale: float = 0.0,
    iterations: int = 60,
    tolerance: float = 1e-9,
    priors: tuple[LensPrior, ...] = (),
) -> tuple[Bundle, int, bool]:
    """Minimise by Levenberg-Marquardt. Return the new state, the steps taken and whether it converged.

    ``scale`` is the width of the Cauchy loss, px; 0 means plain squares. Converged: the predicted relative
    decrease of the cost is below ``tolerance``.
    """
    outcome, steps, state = bundle_steps.minimise(
        bundle.state,
        bundle.observations,
        _unknowns(bundle, columns),
        pack_priors(priors),
        scale,
        iterations,
        tolerance,
    )
    if outcome == bundle_steps.BEHIND:
        raise SolveError("the bundle adjustment starts with a board behind a camera", bundle)
    if outcome == bundle_steps.DEGENERATE:
        raise SolveError("the bundle adjustment is degenerate: some parameter is not seen by the data", bundle)
    return replace(bundle, **state._asdict()), steps, outcome == bundle_steps.CONVERGED


def _unknowns(bundle: Bundle, columns: Columns) -> Unknowns:
    """Return the free parameters; a target that nothing shows stays where it is."""
    seen = np.bincount(bundle.target, minlength=len(bundle.rotations)) > 0
    return Unknowns(columns.camera, columns.point, bundle.target_freedom * seen[:, None], columns.count)


def leave_out(bundle: Bundle, columns: Columns, folds: Sequence[Ints]) -> Floats:
    """Return the mean squared distance (t,) px^2 of each target when its fold takes no part in the global parameters.

    ``bundle`` is at its minimum, its observations target by target; ``folds`` are sets of targets. With the boards'
    own poses eliminated, the cost of each target is quadratic in the global parameters near the minimum: the
    minimum without a fold, and what that fold costs there, follow from one linearisation. NaN for targets in no
    fold; infinite where the others do not determine the parameters.
    """
    ok, cost, right, s = bundle_steps.reduced_targets(
        bundle.state, bundle.observations, _unknowns(bundle, columns), 0.0
    )
    out = np.full(len(cost), np.nan)
    corners = np.bincount(bundle.target, minlength=len(cost))
    for fold in folds:
        out[fold] = np.inf
        good, low = cholesky(s.sum(0) - s[fold].sum(0)) if ok else (False, s)
        if not good:
            continue
        step = cholesky_solve(low, (right.sum(0) - right[fold].sum(0))[:, None])[:, 0]
        left = cost[fold] - right[fold] @ step + 0.5 * np.einsum("i,tij,j->t", step, s[fold], step)
        out[fold] = 2 * left / np.maximum(corners[fold], 1)
    return out


def robust_sigma(distance: Floats) -> float:
    """Return the standard deviation of one coordinate from 2D distances, by their median (Rayleigh: 1.1774 sigma)."""
    return float(np.median(distance) / np.sqrt(2 * np.log(2))) if len(distance) else float("nan")


def adjust(
    bundle: Bundle,
    freedoms: tuple[Freedom, ...],
    *,
    reference: int | None = 0,
    shape: Floats | None = None,
    held: tuple[tuple[int, int], ...] = (),
    priors: tuple[LensPrior, ...] = (),
    outlier_sigmas: float = OUTLIER_SIGMAS,
    rounds: int = 6,
    start_px: float | None = 2.0,
    least_points: int = 4,
) -> BundleSolution:
    """Solve a bundle: robust first, then least squares without outliers until their set no longer changes.

    The rule: with sigma the robust standard deviation of a camera's corners (median distance / 1.1774), a
    corner farther than ``outlier_sigmas`` x sigma from its prediction is left out; what comes back inside is
    taken in again. A board pose that fewer than ``least_points`` corners support is left out as a whole.
    ``start_px`` is the width of the first robust loss; None says that the start is a solution already.
    """
    columns = number_columns(freedoms, reference, len(bundle.points), shape, held)
    steps = 0
    state = bundle
    if start_px is not None:
        for scale in (start_px, 0.0):
            width = scale or max(2.0 * robust_sigma(np.linalg.norm(state.residuals(), axis=1)), 1e-3)
            state, used, _ = minimise(state, columns, scale=width, iterations=40, tolerance=1e-4, priors=priors)
            steps += used
    inlier = np.zeros(len(bundle.camera), np.bool_)
    for _ in range(rounds):
        new = _inliers(state, outlier_sigmas, least_points)
        if (new == inlier).all():
            break
        inlier = new
        solved, used, _ = minimise(state.only(inlier), columns, priors=priors, tolerance=1e-5)
        steps += used
        state = state.at(solved)
    solved, used, converged = minimise(state.only(inlier), columns, priors=priors)
    steps += used
    state = state.at(solved)
    covariance, sigma = _covariance(state.only(inlier), columns, priors)
    return BundleSolution(state, inlier, columns, covariance, sigma, steps, converged)


def corner_noise(bundle: Bundle) -> float:
    """Return the standard deviation of one coordinate of the corners that pass the outlier rule where they are, px."""
    inlier = _inliers(bundle, OUTLIER_SIGMAS, 4)
    return float(np.sqrt((bundle.residuals()[inlier] ** 2).mean())) if inlier.any() else float("nan")


def _inliers(bundle: Bundle, sigmas: float, least: int) -> Bools:
    distance = np.linalg.norm(bundle.residuals(), axis=1)
    keep = np.zeros(len(distance), np.bool_)
    for c in range(len(bundle.rows)):
        mine = bundle.camera == c
        if mine.any():
            # 0.02 px: rounding of noiseless data must not be taken for outliers
            keep[mine] = distance[mine] <= max(sigmas * robust_sigma(distance[mine]), 0.02)
    # a camera's view of which half is outlying is a wrong view (slipped order, reflection): none of it counts
    views = bundle.target * len(bundle.rows) + bundle.camera
    total = np.bincount(views, minlength=views.max(initial=0) + 1)
    good = np.bincount(views[keep], minlength=len(total))
    keep &= (2 * good >= total)[views]
    support = np.bincount(bundle.target[keep], minlength=len(bundle.rotations))
    return keep & (support >= least)[bundle.target]


def _covariance(bundle: Bundle, columns: Columns, priors: tuple[LensPrior, ...]) -> tuple[Floats, float]:
    """Return the covariance of the free global parameters and the corner noise, from the Schur complement."""
    unknowns = _unknowns(bundle, columns)
    equations = linearise(bundle.state, bundle.observations, unknowns, 0.0)
    known = add_priors(bundle.rows, columns.camera, pack_priors(priors), equations.h_gg, equations.g_g)
    measured, wanted = 2 * len(bundle.camera), columns.count + int(unknowns.target.sum())
    if measured <= wanted:
        raise SolveError(
            f"{measured} measured coordinates cannot determine {wanted} unknowns; record more views of the board",
            bundle,
        )
    variance = 2 * (equations.cost + known) / (measured - wanted)
    ok, s, _, _ = reduce(equations, unknowns.target, 0.0)
    # scale to a unit diagonal first: focal lengths and coefficients differ by many orders
    d = 1 / np.sqrt(np.maximum(np.diag(s), 1e-300))
    low = np.empty((0, 0))
    if ok:
        ok, low = cholesky(s * d[:, None] * d[None])
    if not ok:
        raise SolveError("the data do not determine every free parameter; free fewer or record more views", bundle)
    inverse = cholesky_solve(low, np.eye(columns.count)) * d[:, None] * d[None]
    return variance * inverse, float(np.sqrt(variance))
