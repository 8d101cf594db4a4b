"""Camera poses from surveyed points of the scene, clicked in each image, with known lenses.

Each camera is placed by itself (PnP), then all poses and the points' true places are refined together: a click pulls
with its pixel error, a surveyed coordinate with its own error ``sd_mm``, so that cameras that see the same points hold
each other. The size of the pixel error is estimated from what is left over (variance components). A coordinate or a
click that the others contradict is looked for by leaving each out in turn: it is named, and left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np
from scipy.stats import chi2

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import Lens
from calibration.cameras.projection import undistort_pixels
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Floats
from calibration.foundation.errors import InputError, SolveError
from calibration.geometry.transforms import RigidTransform

__all__ = ["SurveySolution", "SurveyedScene", "solve_surveyed"]

LEAST_POINTS = 4
_LEAST_PX = 0.2
"""Nobody clicks better than this."""
_FALSE_ALARM = 1e-4
"""How often a sound coordinate or click may be called wrong, per scene."""
_ROUNDS = 30


@dataclass(frozen=True, eq=False)
class SurveyedScene:
    """Points of a scene and where they are seen.

    Attributes:
        names: P points.
        world: (P, 3) surveyed places, mm.
        sd_mm: (P,) standard deviation of each coordinate.
        cameras: C names.
        pixels: (C, P, 2) clicks, px; NaN where not clicked.
    """

    names: tuple[str, ...]
    world: Floats
    sd_mm: Floats
    cameras: tuple[str, ...]
    pixels: Floats


@dataclass(frozen=True, eq=False)
class SurveySolution:
    """Poses found.

    Attributes:
        rig: the cameras, world of the survey, mm.
        points: (P, 3) where the points are by all that is known, mm.
        centre_sd: (C, 3) standard deviation of each camera's centre, mm.
        sigma_px: standard deviation of a click, px.
        residuals: (C, P) distance of click and projection, px; NaN where not clicked.
        wrong_points: name of a point whose coordinates are wrong, to how far off they are, mm.
        wrong_clicks: (camera, point) whose click is wrong, to how far off it is, px.
    """

    rig: Rig
    points: Floats
    centre_sd: Floats
    sigma_px: float
    residuals: Floats
    wrong_points: Mapping[str, float]
    wrong_clicks: Mapping[tuple[str, str], float]


@dataclass(frozen=True, eq=False)
class _State:
    """Poses and points while they are refined, with what is left over."""

    cameras: tuple[LensCamera, ...]
    points: Floats
    sigma_px: float
    cost: float
    inverse: Floats


def solve_surveyed(scene: SurveyedScene, lenses: Sequence[Lens]) -> SurveySolution:
    """Place cameras of known lenses by the clicks of surveyed points.

    Args:
        scene: points and clicks.
        lenses: one per camera.
    """
    clicked = np.asarray(np.isfinite(scene.pixels).all(axis=2))
    for name, seen in zip(scene.cameras, clicked, strict=True):
        if seen.sum() < LEAST_POINTS:
            raise InputError(
                f"camera '{name}': {int(seen.sum())} surveyed points are clicked, {LEAST_POINTS} are needed, 6 or more "
                "are good"
            )
    known = np.ones(len(scene.names), dtype=np.bool_)
    state = _solve(scene, lenses, clicked, known)
    while True:
        better = _contradicted(scene, lenses, clicked, known, state)
        if better is None:
            break
        clicked, known, state = better
    return _told(scene, clicked, known, state)


def _contradicted(
    scene: SurveyedScene, lenses: Sequence[Lens], clicked: Bools, known: Bools, state: _State
) -> tuple[Bools, Bools, _State] | None:
    """Leave the one coordinate or click out whose absence explains most; None if none explains enough.

    Without a wrong one, leaving out a coordinate (3 numbers) or a click (2) lowers the cost (a sum of squares in units
    of the error that remains) by about as much as chi-squared of 3 or 2 does.
    """
    tries: list[tuple[float, Bools, Bools, _State]] = []
    options = int(known.sum() + clicked.sum())
    for point in np.flatnonzero(known):
        if clicked[:, point].sum() < 2:
            continue  # only its coordinates say where it is
        fewer = known.copy()
        fewer[point] = False
        tries += _try(scene, lenses, clicked, fewer, state, 3, options)
    for camera, point in np.argwhere(clicked):
        if clicked[camera].sum() <= LEAST_POINTS:
            continue
        fewer = clicked.copy()
        fewer[camera, point] = False
        tries += _try(scene, lenses, fewer, known, state, 2, options)
    if not tries:
        return None
    gain, clicked, known, found = max(tries, key=lambda item: item[0])
    return (clicked, known, found) if gain > 0 else None


def _try(
    scene: SurveyedScene,
    lenses: Sequence[Lens],
    clicked: Bools,
    known: Bools,
    before: _State,
    numbers: int,
    options: int,
) -> list[tuple[float, Bools, Bools, _State]]:
    try:
        found = _solve(scene, lenses, clicked, known)
    except SolveError:
        return []
    # in units of the noise that is left without it
    lower = before.cost * (before.sigma_px / found.sigma_px) ** 2 - found.cost
    limit = float(chi2.isf(_FALSE_ALARM / options, numbers))
    return [(lower - limit, clicked, known, found)]


def _solve(scene: SurveyedScene, lenses: Sequence[Lens], clicked: Bools, known: Bools) -> _State:
    """Return poses and points at the least squares of what is taken part in, with its own pixel error."""
    cameras = tuple(
        LensCamera(name, lens, _placed(scene, lens, index, clicked[index] & known))
        for index, (name, lens) in enumerate(zip(scene.cameras, lenses, strict=True))
    )
    points = np.array(scene.world)
    sigma = 1.0
    state = _State(cameras, points, sigma, np.inf, np.empty((0, 0)))
    for _ in range(3):
        state = _refined(scene, clicked, known, replace(state, sigma_px=sigma))
        sigma = state.sigma_px
    return state


def _placed(scene: SurveyedScene, lens: Lens, camera: int, use: Bools) -> RigidTransform:
    """Return the pose of one camera from its own clicks."""
    name = scene.cameras[camera]
    if use.sum() < LEAST_POINTS:
        raise SolveError(f"camera '{name}': fewer than {LEAST_POINTS} sound points")
    ideal = undistort_pixels(lens.packed(), np.ascontiguousarray(scene.pixels[camera][use]))
    if not np.isfinite(ideal).all():
        raise SolveError(f"camera '{name}': a click lies outside of what its lens can see")
    spread = np.linalg.svd(scene.world[use] - scene.world[use].mean(axis=0), compute_uv=False)
    if spread[1] < 1e-3 * max(spread[0], 1e-9):
        raise SolveError(f"camera '{name}': its points lie on one line, which leaves its pose open; add others")
    ok, turns, shifts, errors = cv2.solvePnPGeneric(
        scene.world[use], ideal, np.eye(3), np.zeros(4), flags=cv2.SOLVEPNP_SQPNP
    )
    if not ok:
        raise SolveError(f"camera '{name}': its clicks fit no pose")
    best = int(np.argmin(np.ravel(errors)))
    rotation, _ = cv2.Rodrigues(turns[best])
    return RigidTransform(np.asarray(rotation, np.float64), np.asarray(shifts[best], np.float64).reshape(3))


def _equations(scene: SurveyedScene, clicked: Bools, known: Bools, state: _State) -> tuple[Floats, Floats, int]:
    """Return Jacobian and residuals, clicks (px) before coordinates (in their own sigma), and how many are clicks."""
    count = len(scene.cameras)
    width = 6 * count + 3 * len(scene.names)
    rows, left = [], []
    for camera in range(count):
        seen = [int(point) for point in np.flatnonzero(clicked[camera])]
        view = state.cameras[camera].project_with_jacobians(state.points[seen])
        jacobian = np.zeros((len(seen), 2, width))
        jacobian[:, :, 6 * camera : 6 * camera + 6] = view.by_pose
        for at, point in enumerate(seen):
            jacobian[at, :, 6 * count + 3 * point : 6 * count + 3 * point + 3] = view.by_point[at]
        rows.append(jacobian.reshape(-1, width))
        left.append((view.pixels - scene.pixels[camera][seen]).ravel())
    clicks = sum(len(part) for part in left)
    for point in range(len(scene.names)):
        jacobian = np.zeros((3, width))
        jacobian[:, 6 * count + 3 * point : 6 * count + 3 * point + 3] = np.eye(3)
        # A coordinate that is left out still holds a point that nobody else does, hardly.
        loose = scene.sd_mm[point] if known[point] else 1e4
        rows.append(jacobian / loose)
        left.append((state.points[point] - scene.world[point]) / loose)
    return np.concatenate(rows), np.concatenate(left), clicks


def _refined(scene: SurveyedScene, clicked: Bools, known: Bools, state: _State) -> _State:
    """Levenberg-Marquardt on all poses and points; the pixel error is estimated at the end."""
    damping, count = 1e-6, len(scene.cameras)

    def weighed(at: _State) -> tuple[Floats, Floats, int]:
        jacobian, left, clicks = _equations(scene, clicked, known, at)
        weight = np.ones(len(left))
        weight[:clicks] = 1.0 / state.sigma_px
        return jacobian * weight[:, None], left * weight, clicks

    jacobian, left, clicks = weighed(state)
    cost = float(left @ left)
    for _ in range(_ROUNDS):
        square = jacobian.T @ jacobian
        step = np.asarray(
            -np.linalg.solve(square + damping * np.diag(np.diag(square) + 1e-12), jacobian.T @ left), dtype=np.float64
        )
        moved = _moved(state, step, count)
        try_jacobian, try_left, _ = weighed(moved)
        new = float(try_left @ try_left)
        if np.isfinite(new) and new <= cost:
            done = cost - new < 1e-9 * max(cost, 1.0)
            state, jacobian, left, cost = moved, try_jacobian, try_left, new
            damping = max(damping / 10, 1e-9)
            if done:
                break
        else:
            damping *= 10
            if damping > 1e6:
                break
    square = jacobian.T @ jacobian
    try:
        inverse = np.asarray(np.linalg.inv(square), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise SolveError(
            "the surveyed points leave the cameras' poses open; add points that do not lie in a line"
        ) from None
    redundancy = 1.0 - np.einsum("ij,jk,ik->i", jacobian[:clicks], inverse, jacobian[:clicks])
    spare = max(float(redundancy.sum()), 1e-6)
    sigma = state.sigma_px * np.sqrt(float(left[:clicks] @ left[:clicks]) / spare) if spare > 2 else 2.0
    return _State(state.cameras, state.points, max(sigma, _LEAST_PX), cost, inverse)


def _moved(state: _State, step: Floats, count: int) -> _State:
    cameras = []
    for index, camera in enumerate(state.cameras):
        turn, shift = step[6 * index : 6 * index + 3], step[6 * index + 3 : 6 * index + 6]
        rotation, _ = cv2.Rodrigues(turn)
        old = camera.camera_from_world
        # back to a rotation: products of many lose it by and by
        u, _, v = np.linalg.svd(np.asarray(rotation, np.float64) @ old.rotation)
        cameras.append(LensCamera(camera.name, camera.lens, RigidTransform(u @ v, old.translation + shift)))
    return replace(state, cameras=tuple(cameras), points=state.points + step[6 * count :].reshape(-1, 3))


def _told(scene: SurveyedScene, clicked: Bools, known: Bools, state: _State) -> SurveySolution:
    deviations = []
    for index, camera in enumerate(state.cameras):
        rotation, t = camera.camera_from_world.rotation, camera.camera_from_world.translation
        cross = np.array([[0, -t[2], t[1]], [t[2], 0, -t[0]], [-t[1], t[0], 0]])
        jacobian = np.concatenate([-rotation.T @ cross, -rotation.T], axis=1)
        part = slice(6 * index, 6 * index + 6)
        covariance = jacobian @ state.inverse[part, part] @ jacobian.T
        deviations.append(np.sqrt(np.diag(covariance)))
    residuals = np.full(clicked.shape, np.nan)
    every: Bools = np.asarray(np.isfinite(scene.pixels).all(axis=2))
    for index, camera in enumerate(state.cameras):
        apart = camera.project(state.points[every[index]]) - scene.pixels[index][every[index]]
        residuals[index, every[index]] = np.linalg.norm(apart, axis=1)
    return SurveySolution(
        rig=Rig(state.cameras),
        points=state.points,
        centre_sd=np.stack(deviations),
        sigma_px=state.sigma_px,
        residuals=residuals,
        wrong_points={
            scene.names[point]: float(np.linalg.norm(state.points[point] - scene.world[point]))
            for point in np.flatnonzero(~known)
        },
        wrong_clicks={
            (scene.cameras[camera], scene.names[point]): float(residuals[camera, point])
            for camera, point in np.argwhere(every & ~clicked)
        },
    )
