"""Bundle adjustment of cameras, board poses and, if asked, board shapes.

Levenberg-Marquardt on the analytic Jacobian, board poses eliminated by a Schur complement; first with a robust
(Cauchy) loss, then as plain least squares on the corners that pass the outlier rule. Nothing random, nothing
that depends on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibration import bundle_kernels as kernels
from calibration.arrays import Bools, Floats, Ints
from calibration.errors import InputError, SolveError
from calibration.projection import FISHEYE

__all__ = [
    "DISTORTIONS",
    "OUTLIER_SIGMAS",
    "Bundle",
    "BundleSolution",
    "Columns",
    "Freedom",
    "LensPrior",
    "adjust",
    "corner_noise",
    "leave_out",
    "minimise",
    "number_columns",
    "robust_sigma",
]

#: Distortion coefficients that each named model leaves free (positions in k1 k2 p1 p2 k3 k4 k5 k6 ...).
DISTORTIONS: dict[str, tuple[int, ...]] = {
    "none": (),
    "radial1": (0,),
    "radial2": (0, 1),
    "brown4": (0, 1, 2, 3),
    "brown5": (0, 1, 2, 3, 4),
    "rational": (0, 1, 2, 3, 4, 5, 6, 7),
    "fisheye0": (),
    "fisheye1": (0,),
    "fisheye2": (0, 1),
    "fisheye4": (0, 1, 2, 3),
}

#: A corner farther from its prediction than this many robust standard deviations of its camera is left out.
OUTLIER_SIGMAS = 4.0


@dataclass(frozen=True)
class Freedom:
    """What of a camera may move.

    Attributes:
        focal: 0 fixed, 1 one focal length (the ratio fx / fy stays), 2 both.
        centre: whether the principal point moves.
        distortion: a name in `DISTORTIONS`; coefficients outside it keep their value.
        pose: whether the camera moves.
        clock: whether its time offset moves.
    """

    focal: int = 2
    centre: bool = True
    distortion: str = "brown4"
    pose: bool = True
    clock: bool = False

    def __post_init__(self) -> None:
        if self.distortion not in DISTORTIONS:
            raise InputError(f"unknown distortion '{self.distortion}'; valid are {', '.join(DISTORTIONS)}")
        if self.focal not in (0, 1, 2):
            raise InputError(f"focal must be 0, 1 or 2 free lengths, got {self.focal}")

    @property
    def lens_parameters(self) -> int:
        """Number of free numbers of the lens."""
        return self.focal + 2 * self.centre + len(DISTORTIONS[self.distortion])


FIXED_LENS = Freedom(0, False, "none")


@dataclass(frozen=True, eq=False)
class Bundle:
    """A bundle problem and its current state.

    Attributes:
        rows: (c, 36) cameras as `calibration.projection` packs them.
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
        rows[:, 32] = np.where(rows[:, 0] == FISHEYE, (np.pi / 2) ** 2, np.inf)
        object.__setattr__(self, "rows", rows)
        if len(self.velocity) != len(self.camera):
            object.__setattr__(self, "velocity", np.zeros((len(self.camera), 2)))
        if len(self.offsets) != len(rows):
            object.__setattr__(self, "offsets", np.zeros(len(rows)))
        if len(self.target_freedom) != len(self.rotations):
            object.__setattr__(self, "target_freedom", np.ones((len(self.rotations), 6)))

    def residuals(self) -> Floats:
        """Projected minus observed (n, 2), px; NaN behind a camera."""
        return kernels.residuals(
            self.rows,
            self.rotations,
            self.translations,
            self.points,
            self.camera,
            self.target,
            self.point,
            self.pixels,
            self.velocity,
            self.offsets,
        )

    def only(self, mask: Bools) -> Bundle:
        """Return the problem with the observations of ``mask``; targets keep their numbers."""
        return replace(
            self,
            camera=self.camera[mask],
            target=self.target[mask],
            point=self.point[mask],
            pixels=self.pixels[mask],
            velocity=self.velocity[mask],
        )

    def at(self, other: Bundle) -> Bundle:
        """Return the problem with all its observations and the parameters of another of the same targets."""
        return replace(
            self,
            rows=other.rows,
            rotations=other.rotations,
            translations=other.translations,
            points=other.points,
            offsets=other.offsets,
        )


@dataclass(frozen=True, eq=False)
class Columns:
    """Which parameter is which column of the reduced problem: (c, 26) and (p, 3) indices, -1 where fixed."""

    camera: Ints
    point: Ints
    count: int


def number_columns(
    freedoms: tuple[Freedom, ...],
    reference: int | None,
    points: int,
    shape: Floats | None = None,
    held: tuple[tuple[int, int], ...] = (),
) -> Columns:
    """Number the free parameters.

    ``reference`` is the camera whose pose is held, to fix the frame (None: poses of all may move). ``shape``
    (p, 3) is 1 where a coordinate of a model point may move; ``held`` names (camera, number) that stay.
    """
    camera = np.full((len(freedoms), kernels.CAMERA_PARAMETERS), -1, np.int64)
    count = 0
    for c, freedom in enumerate(freedoms):
        if freedom.focal == 1:
            camera[c, 0] = camera[c, 1] = count
            count += 1
        slots = [0, 1] if freedom.focal == 2 else []
        slots += [2, 3] if freedom.centre else []
        slots += [5 + k for k in DISTORTIONS[freedom.distortion]]
        slots += list(range(19, 25)) if freedom.pose and c != reference else []
        slots += [25] if freedom.clock and c != reference else []
        for slot in (s for s in slots if (c, s) not in held):
            camera[c, slot] = count
            count += 1
    point = np.full((points, 3), -1, np.int64)
    if shape is not None:
        free = shape > 0
        point[free] = count + np.arange(int(free.sum()))
        count += int(free.sum())
    return Columns(camera, point, count)


@dataclass(frozen=True, eq=False)
class LensPrior:
    """What is known of a camera's lens beforehand: a Gaussian over some of its numbers.

    Attributes:
        camera: which camera.
        slots: (k,) which of its numbers (see `bundle_kernels`).
        mean: (k,) their values.
        information: (k, k) inverse covariance, in units of the corner noise (multiplied by its variance).
    """

    camera: int
    slots: Ints
    mean: Floats
    information: Floats


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
        """Standard deviations (26,) of one camera's numbers (see `bundle_kernels`); 0 where fixed."""
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
        rotation, t = row[20:29].reshape(3, 3), row[29:32]
        # R -> exp(w) R, t -> t + d: the centre moves by -R^T (d - w x t) = -R^T (d + [t]x w)
        cross = np.array([[0, -t[2], t[1]], [t[2], 0, -t[0]], [-t[1], t[0], 0]])
        jacobian = np.concatenate([-rotation.T @ cross, -rotation.T], axis=1)
        return np.asarray(jacobian @ self.camera_covariance(camera)[19:25, 19:25] @ jacobian.T)

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
    arguments: list[Any] = [*_arguments(bundle, columns, scale), *_packed(priors), iterations, tolerance]
    outcome, steps, rows, rotations, translations, points, offsets = kernels.minimise(*arguments)
    if outcome == kernels.BEHIND:
        raise SolveError("the bundle adjustment starts with a board behind a camera", bundle)
    if outcome == kernels.DEGENERATE:
        raise SolveError("the bundle adjustment is degenerate: some parameter is not seen by the data", bundle)
    state = replace(bundle, rows=rows, rotations=rotations, translations=translations, points=points, offsets=offsets)
    return state, steps, outcome == kernels.CONVERGED


def _arguments(bundle: Bundle, columns: Columns, scale: float) -> tuple[Any, ...]:
    """Return what `kernels.linearise` takes."""
    # a target that nothing shows stays where it is
    seen = np.bincount(bundle.target, minlength=len(bundle.rotations)) > 0
    return (
        bundle.rows,
        bundle.rotations,
        bundle.translations,
        bundle.points,
        bundle.camera,
        bundle.target,
        bundle.point,
        bundle.pixels,
        bundle.velocity,
        bundle.offsets,
        columns.camera,
        columns.point,
        bundle.target_freedom * seen[:, None],
        columns.count,
        scale,
    )


def _packed(priors: tuple[LensPrior, ...]) -> tuple[Ints, Ints, Floats, Floats]:
    """Return the priors of all cameras as one: camera, slot and mean (k,), information (k, k)."""
    sizes = [len(prior.slots) for prior in priors]
    information = np.zeros((sum(sizes), sum(sizes)))
    for prior, end in zip(priors, np.cumsum(sizes), strict=True):
        part = slice(end - len(prior.slots), end)
        information[part, part] = prior.information
    return (
        np.repeat(np.array([prior.camera for prior in priors], np.int64), sizes),
        np.concatenate([np.empty(0, np.int64), *(prior.slots for prior in priors)]),
        np.concatenate([np.empty(0), *(prior.mean for prior in priors)]),
        information,
    )


def leave_out(bundle: Bundle, columns: Columns, folds: Sequence[Ints]) -> Floats:
    """Return the mean squared distance (t,) px^2 of each target when its fold takes no part in the global parameters.

    ``bundle`` is at its minimum, its observations target by target; ``folds`` are sets of targets. With the boards'
    own poses eliminated, the cost of each target is quadratic in the global parameters near the minimum: the
    minimum without a fold, and what that fold costs there, follow from one linearisation. NaN for targets in no
    fold; infinite where the others do not determine the parameters.
    """
    ok, cost, right, s = kernels.reduced_targets(*_arguments(bundle, columns, 0.0))
    out = np.full(len(cost), np.nan)
    corners = np.bincount(bundle.target, minlength=len(cost))
    for fold in folds:
        out[fold] = np.inf
        good, low = kernels.cholesky(s.sum(0) - s[fold].sum(0)) if ok else (False, s)
        if not good:
            continue
        step = kernels.cholesky_solve(low, (right.sum(0) - right[fold].sum(0))[:, None])[:, 0]
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
    arguments = _arguments(bundle, columns, 0.0)
    freedom = arguments[12]
    cost, h_gg, h_gt, h_tt, g_g, g_t = kernels.linearise(*arguments)
    cost += kernels.add_priors(bundle.rows, columns.camera, *_packed(priors), h_gg, g_g)
    excess = 2 * len(bundle.camera) - columns.count - int(freedom.sum())
    if excess <= 0:
        raise SolveError(
            f"{2 * len(bundle.camera)} measured coordinates cannot determine {columns.count + int(freedom.sum())} "
            "unknowns; record more views of the board",
            bundle,
        )
    variance = 2 * cost / excess
    ok, s, _, _, _, _ = kernels.reduce(h_gg, h_gt, h_tt, g_g, g_t, freedom, 0.0)
    # scale to a unit diagonal first: focal lengths and coefficients differ by many orders
    d = 1 / np.sqrt(np.maximum(np.diag(s), 1e-300))
    low = np.empty((0, 0))
    if ok:
        ok, low = kernels.cholesky(s * d[:, None] * d[None])
    if not ok:
        raise SolveError("the data do not determine every free parameter; free fewer or record more views", bundle)
    inverse = kernels.cholesky_solve(low, np.eye(columns.count)) * d[:, None] * d[None]
    return variance * inverse, float(np.sqrt(variance))
