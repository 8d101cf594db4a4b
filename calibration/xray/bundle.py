"""Bundle adjustment of X-ray and light views on a bead cube, in raw pixels: the distortion maps are inside it.

Unknowns: per X-ray camera the focal lengths and principal point (the lens of a light camera is known), the pose of
each camera, and the pose of the cube in each position but the first, whose frame is the world's.
Residuals are distances in the images as brought, so noise stays what the detector made of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.foundation.arrays import Bools, Floats, Ints
from calibration.foundation.errors import InputError, SolveError
from calibration.geometry.transforms import RigidTransform, cross_matrix, rotation_from_vector
from calibration.xray.undistortion import DistortionMap

__all__ = ["BundleResult", "CubeObservations", "adjust_bundle"]

#: Unknowns of a lens: fx, fy, cx, cy.
LENS = 4
MAX_STEPS = 200


@dataclass(frozen=True, eq=False)
class CubeObservations:
    """Beads seen, one row each.

    Attributes:
        camera, position, bead: (n,) numbers.
        pixels: (n, 2) raw, px.
        sigma: (n,) expected standard deviation of a coordinate, px, up to a common factor.
    """

    camera: Ints
    position: Ints
    bead: Ints
    pixels: Floats
    sigma: Floats


@dataclass(frozen=True, eq=False)
class BundleResult:
    """Cameras fitted to a cube.

    Attributes:
        cameras: in the frame of the cube's first position, mm; X-ray ones see ideal (undistorted) pixels.
        cube_poses: world from cube, one per position.
        residual: (n, 2) raw px, observed minus projected.
        used: (n,) rows that were not found to be outliers.
        sigma_px: standard deviation of a coordinate, from the residuals and the degrees of freedom.
        rms_px: root mean square of the coordinates' residuals of the rows used.
        centre_covariance: (C, 3, 3) of the camera centres, mm^2.
        lens_sigma: (C, 4) standard deviation of fx, fy, cx, cy, px (0: held).
        steps: iterations.
    """

    cameras: tuple[LensCamera, ...]
    cube_poses: tuple[RigidTransform, ...]
    residual: Floats
    used: Bools
    sigma_px: float
    rms_px: float
    centre_covariance: Floats
    lens_sigma: Floats
    steps: int


def adjust_bundle(
    cameras: Sequence[LensCamera],
    cube_poses: Sequence[RigidTransform],
    cube: Floats,
    seen: CubeObservations,
    *,
    maps: Mapping[str, DistortionMap] | None = None,
    square_pixels: bool = False,
) -> BundleResult:
    """Fit all cameras and cube positions to the beads seen, by damped least squares.

    A bead farther from its place than 4.5 robust sigmas is left out, and the fit repeated.

    Args:
        cameras: starting values, in the frame of cube position 0.
        cube_poses: starting world-from-cube poses; the first must be the identity and stays.
        cube: (n, 3) beads, mm.
        maps: distortion map per camera name; cameras without one see raw pixels through their own lens.
        square_pixels: one focal length per X-ray camera instead of two.
    """
    problem = _Problem(list(cameras), list(cube_poses), cube, seen, dict(maps or {}), square_pixels)
    used = np.ones(len(seen.bead), dtype=bool)
    problem.check(used)
    steps = 0
    for _ in range(6):
        steps += problem.solve(used)
        residual = problem.residual()
        scaled = np.linalg.norm(residual, axis=1) / seen.sigma
        # 4.5 robust sigmas of a 2D distance (median of a Rayleigh distribution: 1.177 sigma).
        limit = 4.5 * max(float(np.median(scaled[used])) / 1.177, 1e-9)
        again = scaled < limit
        if np.array_equal(again, used):
            break
        used = again
        problem.check(used)
    return problem.result(used, steps)


class _Problem:
    """The normal equations of one adjustment; the current estimate lives in ``cameras`` and ``poses``."""

    def __init__(
        self,
        cameras: list[LensCamera],
        poses: list[RigidTransform],
        cube: Floats,
        seen: CubeObservations,
        maps: dict[str, DistortionMap],
        square_pixels: bool,
    ) -> None:
        for camera in cameras:
            if not isinstance(camera.lens, PinholeLens):
                raise InputError(f"camera '{camera.name}': cube calibration wants a pinhole lens")
        self.cameras, self.poses, self.cube, self.seen, self.maps = cameras, poses, cube, seen, maps
        self.square = square_pixels
        self.rows = [np.flatnonzero(seen.camera == c) for c in range(len(cameras))]
        columns = 0
        self.lens_at: list[int] = []
        self.pose_at: list[int] = []
        for camera in cameras:
            self.lens_at.append(columns if camera.kind == "xray" else -1)
            columns += (LENS - int(square_pixels)) if camera.kind == "xray" else 0
            self.pose_at.append(columns)
            columns += 6
        self.cube_at = [-1] + [columns + 6 * k for k in range(len(poses) - 1)]
        self.columns = columns + 6 * (len(poses) - 1)

    def check(self, used: Bools) -> None:
        """Raise where the beads seen cannot fix a camera or a cube position."""
        for c, camera in enumerate(self.cameras):
            count = int(used[self.rows[c]].sum())
            wanted = 6 if camera.kind == "xray" else 4
            if count < wanted:
                raise SolveError(f"camera '{camera.name}': {count} cube beads, wanted at least {wanted}", used)
        if 2 * int(used.sum()) <= self.columns:
            raise SolveError(f"cube calibration: {2 * int(used.sum())} numbers for {self.columns} unknowns", used)

    def residual(self) -> Floats:
        """Return (n, 2) observed minus projected, raw px."""
        return self._linearise(jacobian=False)[0]

    def _linearise(self, *, jacobian: bool = True) -> tuple[Floats, Floats]:
        """Return the residuals (n, 2) and their derivative (n, 2, columns) by the unknowns."""
        n = len(self.seen.bead)
        residual = np.full((n, 2), np.nan)
        derivative = np.zeros((n, 2, self.columns if jacobian else 0))
        for c, camera in enumerate(self.cameras):
            rows = self.rows[c]
            if not len(rows):
                continue
            position = self.seen.position[rows]
            local = self.cube[self.seen.bead[rows]]
            rotation = np.stack([self.poses[k].rotation for k in range(len(self.poses))])[position]
            shift = np.stack([self.poses[k].translation for k in range(len(self.poses))])[position]
            turned = np.einsum("nij,nj->ni", rotation, local)
            projected = camera.project_with_jacobians(turned + shift)
            pixels, by_ideal = projected.pixels, np.broadcast_to(np.eye(2), (len(rows), 2, 2))
            if camera.name in self.maps:
                pixels, by_ideal = self.maps[camera.name].distort_with_jacobian(projected.pixels)
            residual[rows] = self.seen.pixels[rows] - pixels
            if not jacobian:
                continue
            if self.lens_at[c] >= 0:
                by_lens = by_ideal @ projected.by_lens[..., :LENS]
                if self.square:
                    by_lens = np.concatenate([by_lens[..., :1] + by_lens[..., 1:2], by_lens[..., 2:]], axis=-1)
                derivative[rows, :, self.lens_at[c] : self.lens_at[c] + by_lens.shape[-1]] = by_lens
            derivative[rows, :, self.pose_at[c] : self.pose_at[c] + 6] = by_ideal @ projected.by_pose
            by_point = by_ideal @ projected.by_point
            by_cube = np.concatenate([by_point @ -cross_matrix(turned), by_point], axis=-1)
            for k in range(1, len(self.poses)):
                at = rows[position == k]
                derivative[at, :, self.cube_at[k] : self.cube_at[k] + 6] = by_cube[position == k]
        return residual, derivative

    def solve(self, used: Bools) -> int:
        """Run damped least squares to convergence over the rows used; return the steps taken."""
        damping = 1e-3
        residual, derivative = self._linearise()
        cost = self._cost(residual, used)
        for step in range(MAX_STEPS):
            normal, gradient = self._normal(residual, derivative, used)
            moved = False
            for _ in range(12):
                damped = normal + damping * np.diag(np.diag(normal) + 1e-12)
                delta: Floats = np.asarray(np.linalg.solve(damped, gradient), dtype=np.float64)
                before = (list(self.cameras), list(self.poses))
                self._move(delta)
                trial, trial_derivative = self._linearise()
                new = self._cost(trial, used)
                if np.isfinite(new) and new < cost:
                    gain = (cost - new) / cost
                    cost, residual, derivative = new, trial, trial_derivative
                    damping = max(damping * 0.15, 1e-12)
                    moved = True
                    break
                self.cameras, self.poses = before
                damping *= 6.0
            if not moved or gain < 1e-8:
                return step + 1
        raise SolveError(f"cube calibration did not converge in {MAX_STEPS} steps", residual)

    def _cost(self, residual: Floats, used: Bools) -> float:
        """Return the plain weighted sum of squares of the rows used (infinite where a point left the image)."""
        value = np.sum((residual[used] / self.seen.sigma[used, None]) ** 2)
        return float(value) if np.isfinite(value) else float("inf")

    def _normal(self, residual: Floats, derivative: Floats, used: Bools) -> tuple[Floats, Floats]:
        rows = derivative[used] / self.seen.sigma[used, None, None]
        flat = rows.reshape(-1, self.columns)
        right = (residual[used] / self.seen.sigma[used, None]).reshape(-1)
        return flat.T @ flat, flat.T @ right

    def _move(self, delta: Floats) -> None:
        """Apply one step to all unknowns."""
        cameras: list[LensCamera] = []
        for c, camera in enumerate(self.cameras):
            lens = camera.lens
            at = self.lens_at[c]
            if at >= 0:
                k = lens.intrinsics.copy()
                d = delta[at : at + LENS - int(self.square)]
                d = np.array([d[0], d[0], d[1], d[2]]) if self.square else d
                k[0, 0], k[1, 1] = max(k[0, 0] + d[0], 1.0), max(k[1, 1] + d[1], 1.0)
                k[0, 2] += d[2]
                k[1, 2] += d[3]
                lens = replace(lens, intrinsics=k)
            turn = delta[self.pose_at[c] : self.pose_at[c] + 6]
            pose = camera.camera_from_world
            moved = RigidTransform(rotation_from_vector(turn[:3]) @ pose.rotation, pose.translation + turn[3:])
            cameras.append(replace(camera, lens=lens, camera_from_world=moved))
        self.cameras = cameras
        poses = [self.poses[0]]
        for position in range(1, len(self.poses)):
            turn = delta[self.cube_at[position] : self.cube_at[position] + 6]
            pose = self.poses[position]
            poses.append(RigidTransform(rotation_from_vector(turn[:3]) @ pose.rotation, pose.translation + turn[3:]))
        self.poses = poses

    def result(self, used: Bools, steps: int) -> BundleResult:
        """Return the estimate with its covariance."""
        residual, derivative = self._linearise()
        normal, _ = self._normal(residual, derivative, used)
        freedom = 2 * int(used.sum()) - self.columns
        sigma2 = float(np.sum((residual[used] / self.seen.sigma[used, None]) ** 2)) / freedom
        try:
            covariance = sigma2 * np.linalg.inv(normal)
        except np.linalg.LinAlgError:
            raise SolveError("cube calibration is degenerate: the beads do not fix the cameras", residual) from None
        centres = np.empty((len(self.cameras), 3, 3))
        lens_sigma = np.zeros((len(self.cameras), LENS))
        for c, camera in enumerate(self.cameras):
            r, t = camera.camera_from_world.rotation, camera.camera_from_world.translation
            # centre = -R^T t; R' = exp(w) R, t' = t + d gives d centre = -R^T d - R^T [t]x w
            by_pose = np.concatenate([-r.T @ cross_matrix(t), -r.T], axis=1)
            at = self.pose_at[c]
            centres[c] = by_pose @ covariance[at : at + 6, at : at + 6] @ by_pose.T
            if self.lens_at[c] >= 0:
                spread = np.sqrt(np.diag(covariance)[self.lens_at[c] : self.lens_at[c] + LENS - int(self.square)])
                lens_sigma[c] = spread[[0, 0, 1, 2]] if self.square else spread
        typical = float(np.sqrt(sigma2 * np.mean(self.seen.sigma[used] ** 2)))
        rms = float(np.sqrt(np.mean(residual[used] ** 2)))
        return BundleResult(
            tuple(self.cameras), tuple(self.poses), residual, used, typical, rms, centres, lens_sigma, steps
        )
