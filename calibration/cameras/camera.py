"""Camera models behind one interface: a lens with a pose, or a bare projection matrix.

OpenCV axes: x right, y down, z forward; the centre of the top-left pixel is (0, 0).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from calibration.cameras.camera_row import (
    CENTRE,
    CX,
    CY,
    FX,
    FY,
    K1,
    LENS_PARAMETERS,
    LIMIT,
    MATRIX,
    MATRIX_ENTRIES,
    MODEL,
    R00,
    R01,
    R02,
    R10,
    R11,
    R12,
    R20,
    R21,
    R22,
    ROTATION,
    ROW,
    SKEW,
    TRANSLATION,
    TX,
    TY,
    TZ,
)
from calibration.cameras.lens import Lens, checked_size
from calibration.cameras.projection import (
    distort_with_jacobians,
    project_points,
    undistort_pixels,
)
from calibration.foundation.arrays import Floats, shaped
from calibration.foundation.compiled import compiled
from calibration.foundation.errors import InputError
from calibration.foundation.names import checked_name
from calibration.geometry.transforms import RigidTransform

__all__ = [
    "Camera",
    "Kind",
    "LensCamera",
    "MatrixCamera",
    "ProjectionJacobians",
]

Kind: TypeAlias = Literal["light", "xray"]
KINDS: tuple[Kind, ...] = ("light", "xray")


@dataclass(frozen=True, eq=False)
class ProjectionJacobians:
    """Pixels and how they move, for points (..., 3).

    Attributes:
        pixels: (..., 2) px.
        by_point: (..., 2, 3) px/mm, by the world point.
        by_pose: (..., 2, 6), by (w, d) where the pose becomes ``exp(w) rotation, translation + d``: px/rad,
            px/mm. (..., 2, 0) for a bare matrix.
        by_lens: (..., 2, k), by fx fy cx cy skew and the model's distortion coefficients in order; for a bare
            matrix by its 12 entries.
    """

    pixels: Floats
    by_point: Floats
    by_pose: Floats
    by_lens: Floats


class Camera(ABC):
    """One calibrated view: projects world points (mm) to pixels and turns pixels into world rays."""

    name: str
    kind: Kind

    @property
    @abstractmethod
    def size(self) -> tuple[int, int]:
        """(width, height) px."""

    @property
    @abstractmethod
    def centre(self) -> Floats:
        """(3,) centre of projection, world mm."""

    @abstractmethod
    def packed(self) -> Floats:
        """Return the camera as one row of numbers for compiled kernels (see `calibration.cameras.camera_row`)."""

    @abstractmethod
    def rays(self, pixels: ArrayLike) -> tuple[Floats, Floats]:
        """Return origins and unit directions (..., 3), world mm, of pixels (..., 2); NaN where there is no inverse."""

    @abstractmethod
    def project_with_jacobians(self, points: ArrayLike) -> ProjectionJacobians:
        """Project points (..., 3) with derivatives; NaN as in `project`."""

    @abstractmethod
    def undistort_points(self, pixels: ArrayLike) -> Floats:
        """Return the pixels (..., 2) at which the same camera without distortion would see them."""

    def project(self, points: ArrayLike) -> Floats:
        """Project world points (..., 3) to pixels (..., 2); NaN behind the camera or beyond the lens."""
        p = np.asarray(points, dtype=np.float64)
        flat = np.ascontiguousarray(p.reshape(-1, 3))
        return np.asarray(project_points(self.packed()[None], flat)[0].reshape(*p.shape[:-1], 2))


@dataclass(frozen=True, eq=False)
class LensCamera(Camera):
    """A lens with a pose: ``x_cam = rotation @ x_world + translation``.

    Attributes:
        name: as in the rig's file.
        lens: pinhole or fisheye.
        camera_from_world: pose, mm.
        kind: "light" or "xray".
    """

    name: str
    lens: Lens
    camera_from_world: RigidTransform
    kind: Kind = "light"

    def __post_init__(self) -> None:
        who = f"camera '{checked_name(self.name, 'a camera')}'"
        r = shaped(self.camera_from_world.rotation, (3, 3), f"{who}: rotation")
        t = shaped(self.camera_from_world.translation, (3,), f"{who}: translation")
        if np.abs(r @ r.T - np.eye(3)).max() > 1e-5 or np.linalg.det(r) < 0:
            raise InputError(f"{who}: rotation must be a proper rotation matrix (it mirrors or stretches)")
        if np.abs(r @ r.T - np.eye(3)).max() > 1e-14:  # printed with few digits: take the nearest rotation
            u, _, vt = np.linalg.svd(r)
            r = u @ vt
        object.__setattr__(self, "camera_from_world", RigidTransform(r, t))
        if self.kind not in KINDS:
            raise InputError(f"{who}: kind must be 'light' or 'xray', got {self.kind!r}")

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) px."""
        return self.lens.size

    @cached_property
    def centre(self) -> Floats:
        """(3,) centre of projection, world mm."""
        return self.camera_from_world.inverse().translation

    def packed(self) -> Floats:
        """Return the camera as one row of numbers for compiled kernels."""
        row = self.lens.packed()
        row[ROTATION] = self.camera_from_world.rotation.ravel()
        row[TRANSLATION] = self.camera_from_world.translation
        row[CENTRE] = self.centre
        return row

    def rays(self, pixels: ArrayLike) -> tuple[Floats, Floats]:
        """Return origins and unit directions (..., 3), world mm; NaN where the lens has no inverse."""
        p = np.asarray(pixels, dtype=np.float64)
        ideal = undistort_pixels(self.lens.packed(), np.ascontiguousarray(p.reshape(-1, 2)))
        local = np.concatenate([ideal, np.ones((len(ideal), 1))], axis=1)
        directions = local @ self.camera_from_world.rotation
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        directions = directions.reshape(*p.shape[:-1], 3)
        return np.broadcast_to(self.centre, directions.shape), directions

    def undistort_points(self, pixels: ArrayLike) -> Floats:
        """Return the pixels (..., 2) at which the same camera without distortion would see them."""
        p = np.asarray(pixels, dtype=np.float64)
        ideal = undistort_pixels(self.lens.packed(), np.ascontiguousarray(p.reshape(-1, 2)))
        k = self.lens.intrinsics
        return np.asarray((ideal @ k[:2, :2].T + k[:2, 2]).reshape(p.shape))

    def undistortion_maps(self) -> tuple[Floats, Floats]:
        """Return x and y maps (h, w) for cv2.remap: where in the distorted image each undistorted pixel lies."""
        w, h = self.size
        grid = np.stack(np.meshgrid(np.arange(w, dtype=float), np.arange(h, dtype=float)), axis=-1)
        ideal = (grid - self.lens.intrinsics[:2, 2]) @ np.linalg.inv(self.lens.intrinsics[:2, :2]).T
        points = np.concatenate([ideal, np.ones((h, w, 1))], axis=-1).reshape(-1, 3)
        moved = project_points(self.lens.packed()[None], points)[0].reshape(h, w, 2)
        return moved[..., 0], moved[..., 1]

    def project_with_jacobians(self, points: ArrayLike) -> ProjectionJacobians:
        """Project points (..., 3) with derivatives; NaN as in `project`."""
        p = np.asarray(points, dtype=np.float64)
        lead = p.shape[:-1]
        rows = lens_jacobians(self.packed(), np.ascontiguousarray(p.reshape(-1, 3)))
        kept = K1 - FX + len(self.lens.distortion)
        pixels, by_point, by_pose, by_lens = rows
        return ProjectionJacobians(
            pixels.reshape(*lead, 2),
            by_point.reshape(*lead, 2, 3),
            by_pose.reshape(*lead, 2, 6),
            by_lens[:, :, :kept].reshape(*lead, 2, kept),
        )


@dataclass(frozen=True, eq=False)
class MatrixCamera(Camera):
    """A view known only by its 3x4 projection matrix: ``w (u, v, 1) = matrix @ (x, y, z, 1)``.

    Attributes:
        name: as in the rig's file.
        image_size: (width, height) px.
        matrix: (3, 4), any non-zero scale; the sign that puts the scene in front is found from its determinant.
        kind: "light" or "xray".
    """

    name: str
    image_size: tuple[int, int]
    matrix: Floats
    kind: Kind = "light"

    def __post_init__(self) -> None:
        who = f"camera '{checked_name(self.name, 'a camera')}'"
        object.__setattr__(self, "image_size", checked_size(self.image_size, who))
        m = shaped(self.matrix, (3, 4), f"{who}: projection matrix")
        if np.linalg.matrix_rank(m[:, :3]) < 3:
            raise InputError(f"{who}: projection matrix has a singular left 3x3 part, so no centre of projection")
        object.__setattr__(self, "matrix", m)
        if self.kind not in KINDS:
            raise InputError(f"{who}: kind must be 'light' or 'xray', got {self.kind!r}")

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) px."""
        return self.image_size

    @property
    def centre(self) -> Floats:
        """(3,) centre of projection, world mm."""
        return np.asarray(-np.linalg.solve(self.matrix[:, :3], self.matrix[:, 3]))

    @cached_property
    def facing(self) -> Floats:
        """The matrix with the sign for which points in front have a positive third coordinate."""
        return np.asarray(self.matrix * np.sign(np.linalg.det(self.matrix[:, :3])))

    def packed(self) -> Floats:
        """Return the camera as one row of numbers for compiled kernels."""
        row = np.zeros(ROW)
        row[MODEL] = MATRIX
        row[MATRIX_ENTRIES] = self.facing.ravel()
        row[LIMIT] = np.inf
        row[CENTRE] = self.centre
        return row

    def rays(self, pixels: ArrayLike) -> tuple[Floats, Floats]:
        """Return origins and unit directions (..., 3), world mm."""
        p = np.asarray(pixels, dtype=np.float64)
        homogeneous = np.concatenate([p, np.ones((*p.shape[:-1], 1))], axis=-1)
        directions = homogeneous @ np.linalg.inv(self.facing[:, :3]).T
        directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
        return np.broadcast_to(self.centre, directions.shape), directions

    def undistort_points(self, pixels: ArrayLike) -> Floats:
        """Return the pixels as they are: a bare matrix has no distortion."""
        return np.array(pixels, dtype=np.float64)

    def project_with_jacobians(self, points: ArrayLike) -> ProjectionJacobians:
        """Project points (..., 3) with derivatives by the point and by the 12 matrix entries (of `facing`)."""
        p = np.asarray(points, dtype=np.float64)
        m = self.facing
        x = np.concatenate([p, np.ones((*p.shape[:-1], 1))], axis=-1)
        h = x @ m.T
        w = np.where(h[..., 2:] > 0, h[..., 2:], np.nan)
        pixels = h[..., :2] / w
        by_point = (m[:2, :3] - pixels[..., None] * m[2, :3]) / w[..., None]
        by_lens = np.zeros((*p.shape[:-1], 2, 12))
        by_lens[..., 0, 0:4] = by_lens[..., 1, 4:8] = x / w
        by_lens[..., :, 8:12] = -pixels[..., None] * (x / w)[..., None, :]
        return ProjectionJacobians(pixels, by_point, np.zeros((*p.shape[:-1], 2, 0)), by_lens)


@compiled
def lens_jacobians(row: Floats, points: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Project points (n, 3) through a lens row, with all derivatives (see `ProjectionJacobians`)."""
    n = points.shape[0]
    pixels = np.empty((n, 2))
    by_point = np.full((n, 2, 3), np.nan)
    by_pose = np.full((n, 2, 6), np.nan)
    by_lens = np.full((n, 2, LENS_PARAMETERS), np.nan)
    by_xy, by_k = np.empty((2, 2)), np.empty((2, 14))
    g = np.empty(3)
    for i in range(n):
        x, y, z = points[i, 0], points[i, 1], points[i, 2]
        # rotated point q, then the camera's c = q + t
        q0 = row[R00] * x + row[R01] * y + row[R02] * z
        q1 = row[R10] * x + row[R11] * y + row[R12] * z
        q2 = row[R20] * x + row[R21] * y + row[R22] * z
        zc = q2 + row[TZ]
        if zc <= 0:
            pixels[i, 0], pixels[i, 1] = np.nan, np.nan
            continue
        xn, yn = (q0 + row[TX]) / zc, (q1 + row[TY]) / zc
        xd, yd = distort_with_jacobians(row, xn, yn, by_xy, by_k)
        pixels[i, 0], pixels[i, 1] = row[FX] * xd + row[SKEW] * yd + row[CX], row[FY] * yd + row[CY]
        if not np.isfinite(xd):
            continue
        for axis in range(2):
            along = row[FX] if axis == 0 else 0.0
            across = row[SKEW] if axis == 0 else row[FY]
            gx = along * by_xy[0, 0] + across * by_xy[1, 0]
            gy = along * by_xy[0, 1] + across * by_xy[1, 1]
            g[0], g[1], g[2] = gx / zc, gy / zc, -(gx * xn + gy * yn) / zc
            for k in range(3):
                by_point[i, axis, k] = g[0] * row[R00 + k] + g[1] * row[R10 + k] + g[2] * row[R20 + k]
                by_pose[i, axis, 3 + k] = g[k]
            # g . (w x q) = w . (q x g)
            by_pose[i, axis, 0] = q1 * g[2] - q2 * g[1]
            by_pose[i, axis, 1] = q2 * g[0] - q0 * g[2]
            by_pose[i, axis, 2] = q0 * g[1] - q1 * g[0]
            by_lens[i, axis, 0] = xd if axis == 0 else 0.0
            by_lens[i, axis, 1] = 0.0 if axis == 0 else yd
            by_lens[i, axis, 2] = 1.0 if axis == 0 else 0.0
            by_lens[i, axis, 3] = 0.0 if axis == 0 else 1.0
            by_lens[i, axis, 4] = yd if axis == 0 else 0.0
            for k in range(14):
                by_lens[i, axis, K1 - FX + k] = along * by_k[0, k] + across * by_k[1, k]
    return pixels, by_point, by_pose, by_lens
