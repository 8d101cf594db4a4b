"""Poses of flat boards in one camera: both solutions that a plane seen in perspective allows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from calibration.cameras.camera import LensCamera
from calibration.cameras.camera_row import (
    CENTRE,
    CX,
    CY,
    DISTORTION,
    F1,
    F4,
    FISHEYE,
    FX,
    FY,
    K1,
    LIMIT,
    MODEL,
    R00,
    R11,
    R22,
    ROTATION,
    ROW,
    SKEW,
    TRANSLATION,
    TX,
)
from calibration.cameras.lens import FisheyeLens, PinholeLens
from calibration.cameras.projection import project_point, undistort_pixels
from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.compiled import compiled
from calibration.geometry.small_matrices import factorise
from calibration.geometry.transforms import RigidTransform

__all__ = ["PlanarPose", "camera_from_row", "half_turn", "lens_row", "planar_poses", "poses_of_views"]


@dataclass(frozen=True, eq=False)
class PlanarPose:
    """A candidate camera_from_board pose and its reprojection RMS, px (2D distance)."""

    camera_from_board: RigidTransform
    rms_px: float


def lens_row(row: Floats) -> Floats:
    """Return a camera row with an identity pose and no limit of its own on where points project."""
    out = row.copy()
    out[ROTATION] = np.eye(3).ravel()
    out[TRANSLATION] = 0.0
    out[CENTRE] = 0.0
    out[LIMIT] = (np.pi / 2) ** 2 if row[MODEL] == FISHEYE else np.inf
    return out


def planar_poses(row: Floats, model: Floats, pixels: Floats) -> tuple[PlanarPose, ...]:
    """Return the two poses (best first) of a flat board from its corners, as `poses_of_views` does for many."""
    rotations, translations, rms = poses_of_views(
        row[None], np.zeros(1, np.int64), model, pixels, np.array([len(model)], np.int64)
    )
    return tuple(
        PlanarPose(RigidTransform(rotations[0, k], translations[0, k]), float(rms[0, k]))
        for k in range(2)
        if np.isfinite(rms[0, k])
    )


def poses_of_views(
    rows: Floats, camera: Ints, model: Floats, pixels: Floats, ends: Ints
) -> tuple[Floats, Floats, Floats]:
    """Return both poses of a flat board in each of v views: rotations (v, 2, 3, 3), translations (v, 2, 3), RMS px.

    ``rows`` (c, 36) are cameras, their poses ignored, ``camera`` (v,) the one of each view; ``model`` (n, 3) holds
    the corners in the board's plane z = 0, mm, and ``pixels`` (n, 2) their images, view after view up to ``ends``
    (v,). Infinitesimal plane-based pose estimation (Collins and Bartoli 2014) on undistorted points. The better
    pose comes first; one that puts a corner behind the camera, or does not exist, has an infinite RMS.
    """
    lenses = np.stack([lens_row(row) for row in rows])
    # the exact inverse needs the lens's own limit, to know where it stops being one
    limited = lenses.copy()
    for c, row in enumerate(rows):
        if row[DISTORTION].any():
            limited[c, LIMIT] = _limit(row[:R00].tobytes())
    return _poses_of_views(lenses, limited, camera, np.ascontiguousarray(model), np.ascontiguousarray(pixels), ends)


@compiled
def _poses_of_views(
    lenses: Floats, limited: Floats, camera: Ints, model: Floats, pixels: Floats, ends: Ints
) -> tuple[Floats, Floats, Floats]:
    count = camera.shape[0]
    rotations, translations = np.zeros((count, 2, 3, 3)), np.zeros((count, 2, 3))
    rms = np.full((count, 2), np.inf)
    first = 0
    for v in range(count):
        corners, seen = model[first : ends[v]], pixels[first : ends[v]]
        first = ends[v]
        ideal = undistort_pixels(limited[camera[v]], seen)
        turn, shift = rotations[v], translations[v]
        if not _ippe(corners, ideal, turn, shift):
            continue
        for k in range(2):
            rms[v, k] = _rms(lenses[camera[v]], turn[k], shift[k], corners, seen)
            if not math.isfinite(rms[v, k]):  # behind the camera, or degenerate
                rms[v, k] = np.inf
        if rms[v, 1] < rms[v, 0]:
            for k in range(3):
                shift[0, k], shift[1, k] = shift[1, k], shift[0, k]
                for j in range(3):
                    turn[0, k, j], turn[1, k, j] = turn[1, k, j], turn[0, k, j]
            rms[v, 0], rms[v, 1] = rms[v, 1], rms[v, 0]
    return rotations, translations, rms


@compiled
def _ippe(model: Floats, ideal: Floats, rotations: Floats, translations: Floats) -> bool:
    """Fill both poses of a plane from its homography; False if fewer than four corners or all on a line.

    Letters as in Collins and Bartoli (2014): J is the derivative of the homography at the middle of the corners,
    v = (p, q) its value there, gamma the scale.
    """
    n, middle_x, middle_y = 0, 0.0, 0.0
    for i in range(model.shape[0]):
        if math.isfinite(ideal[i, 0]):
            n += 1
            middle_x += model[i, 0]
            middle_y += model[i, 1]
    if n < 4:
        return False
    middle_x, middle_y = middle_x / n, middle_y / n
    ok, h = _homography(model, ideal, middle_x, middle_y)
    if not ok:
        return False
    p, q = h[2], h[5]
    j = np.array([[h[0] - h[6] * p, h[1] - h[7] * p], [h[3] - h[6] * q, h[4] - h[7] * q]])
    # rotation that takes the optical axis to the line of sight (p, q, 1)
    t2 = p * p + q * q
    s = math.sqrt(t2 + 1.0)
    to_sight = np.eye(3)
    if t2 > 1e-24:
        c = (1.0 - 1.0 / s) / t2
        to_sight[0, 0] -= c * p * p
        to_sight[0, 1] -= c * p * q
        to_sight[1, 0] -= c * p * q
        to_sight[1, 1] -= c * q * q
        to_sight[0, 2], to_sight[1, 2] = p / s, q / s
        to_sight[2, 0], to_sight[2, 1], to_sight[2, 2] = -p / s, -q / s, 1.0 / s
    b00, b01 = to_sight[0, 0] - p * to_sight[2, 0], to_sight[0, 1] - p * to_sight[2, 1]
    b10, b11 = to_sight[1, 0] - q * to_sight[2, 0], to_sight[1, 1] - q * to_sight[2, 1]
    det = b00 * b11 - b01 * b10
    a00, a01 = (b11 * j[0, 0] - b01 * j[1, 0]) / det, (b11 * j[0, 1] - b01 * j[1, 1]) / det
    a10, a11 = (b00 * j[1, 0] - b10 * j[0, 0]) / det, (b00 * j[1, 1] - b10 * j[0, 1]) / det
    aa, bb, ab = a00 * a00 + a01 * a01, a10 * a10 + a11 * a11, a00 * a10 + a01 * a11
    gamma = math.sqrt(0.5 * (aa + bb + math.sqrt((aa - bb) ** 2 + 4 * ab * ab)))
    if not gamma > 1e-12:
        return False
    r00, r01, r10, r11 = a00 / gamma, a01 / gamma, a10 / gamma, a11 / gamma
    c0 = math.sqrt(max(1.0 - r00 * r00 - r10 * r10, 0.0))
    c1 = math.sqrt(max(1.0 - r01 * r01 - r11 * r11, 0.0))
    if -(r00 * r01 + r10 * r11) < 0.0:
        c1 = -c1
    for k in range(2):
        sign = 1.0 if k == 0 else -1.0
        x, y = np.array([r00, r10, sign * c0]), np.array([r01, r11, sign * c1])
        turn = np.empty((3, 3))
        turn[:, 0], turn[:, 1] = x, y
        turn[0, 2] = x[1] * y[2] - x[2] * y[1]
        turn[1, 2] = x[2] * y[0] - x[0] * y[2]
        turn[2, 2] = x[0] * y[1] - x[1] * y[0]
        _product(to_sight, turn, rotations[k])
        if not _place(model, ideal, rotations[k], translations[k]):
            return False
    return True


@compiled
def _product(a: Floats, b: Floats, out: Floats) -> None:
    for i in range(3):
        for j in range(3):
            out[i, j] = a[i, 0] * b[0, j] + a[i, 1] * b[1, j] + a[i, 2] * b[2, j]


@compiled
def _homography(model: Floats, ideal: Floats, middle_x: float, middle_y: float) -> tuple[bool, Floats]:
    """Return the homography (8 numbers, the ninth is 1) from the plane, its origin moved to the middle, to the image.

    Linear least squares in units of the board's size; False where the corners do not determine it.
    """
    size = 0.0
    for i in range(model.shape[0]):
        size = max(size, abs(model[i, 0] - middle_x), abs(model[i, 1] - middle_y))
    normal, low = np.zeros((8, 8)), np.zeros((8, 8))
    right, line = np.zeros(8), np.zeros(8)
    for i in range(model.shape[0]):
        if not math.isfinite(ideal[i, 0]):
            continue
        x, y = (model[i, 0] - middle_x) / size, (model[i, 1] - middle_y) / size
        for axis in range(2):
            u = ideal[i, axis]
            line[:] = 0.0
            line[3 * axis], line[3 * axis + 1], line[3 * axis + 2] = x, y, 1.0
            line[6], line[7] = -u * x, -u * y
            for a in range(8):
                right[a] += line[a] * u
                for b in range(a + 1):
                    normal[a, b] += line[a] * line[b]
    for a in range(8):
        for b in range(a):
            normal[b, a] = normal[a, b]
    if not factorise(normal, low):
        return False, right
    for a in range(8):
        if low[a, a] * low[a, a] < 1e-13 * normal[a, a]:  # on a line, to rounding
            return False, right
    for a in range(8):
        for b in range(a):
            right[a] -= low[a, b] * right[b]
        right[a] /= low[a, a]
    for a in range(7, -1, -1):
        for b in range(a + 1, 8):
            right[a] -= low[b, a] * right[b]
        right[a] /= low[a, a]
    for a in (0, 1, 3, 4, 6, 7):
        right[a] /= size
    return True, right


@compiled
def _place(model: Floats, ideal: Floats, rotation: Floats, translation: Floats) -> bool:
    """Fill the translation that fits a known rotation best: linear in it, u (r3 X + t3) = r1 X + t1 and so for v."""
    n, su, sv, suu = 0.0, 0.0, 0.0, 0.0
    b0, b1, b2 = 0.0, 0.0, 0.0
    for i in range(model.shape[0]):
        u, v = ideal[i, 0], ideal[i, 1]
        if not math.isfinite(u):
            continue
        x = rotation[0, 0] * model[i, 0] + rotation[0, 1] * model[i, 1] + rotation[0, 2] * model[i, 2]
        y = rotation[1, 0] * model[i, 0] + rotation[1, 1] * model[i, 1] + rotation[1, 2] * model[i, 2]
        z = rotation[2, 0] * model[i, 0] + rotation[2, 1] * model[i, 1] + rotation[2, 2] * model[i, 2]
        du, dv = u * z - x, v * z - y
        n += 1.0
        su += u
        sv += v
        suu += u * u + v * v
        b0 += du
        b1 += dv
        b2 -= u * du + v * dv
    # [n 0 -su; 0 n -sv; -su -sv suu] t = b, by eliminating the first two
    pivot = suu - (su * su + sv * sv) / n
    if not pivot > 1e-14 * suu:
        return False
    translation[2] = (b2 + (su * b0 + sv * b1) / n) / pivot
    translation[0] = (b0 + su * translation[2]) / n
    translation[1] = (b1 + sv * translation[2]) / n
    return True


@compiled
def _rms(lens: Floats, rotation: Floats, translation: Floats, model: Floats, pixels: Floats) -> float:
    """Return the root mean square 2D distance of a board's corners from their projection; NaN behind the camera."""
    row = lens.copy()
    for i in range(3):
        for j in range(3):
            row[R00 + 3 * i + j] = rotation[i, j]
        row[TX + i] = translation[i]
    total = 0.0
    for n in range(model.shape[0]):
        u, v = project_point(row, model[n, 0], model[n, 1], model[n, 2])
        total += (u - pixels[n, 0]) ** 2 + (v - pixels[n, 1]) ** 2
    return math.sqrt(total / model.shape[0])


@lru_cache(maxsize=64)
def _limit(packed: bytes) -> float:
    """Return where the lens of a row stops being invertible (kept: a search asks for the same lens often)."""
    row = np.zeros(ROW)
    row[:R00] = np.frombuffer(packed)
    row[R00] = row[R11] = row[R22] = 1.0
    return float(camera_from_row(row, (1, 1), "lens", 14).lens.invertible_limit)


def half_turn(model: Floats) -> RigidTransform:
    """Return board_from_turned_board: the turn by 180 degrees that maps a symmetric grid onto itself."""
    centre = (model.min(0) + model.max(0)) / 2
    turn = np.diag([-1.0, -1.0, 1.0])
    return RigidTransform(turn, centre - turn @ centre)


def camera_from_row(row: Floats, size: tuple[int, int], name: str, coefficients: int) -> LensCamera:
    """Return a pinhole or fisheye camera from a row; ``coefficients`` says how many distortion terms to keep."""
    k = np.array([[row[FX], row[SKEW], row[CX]], [0, row[FY], row[CY]], [0, 0, 1]])
    pose = RigidTransform(row[ROTATION].reshape(3, 3).copy(), row[TRANSLATION].copy())
    if row[MODEL] == FISHEYE:
        return LensCamera(name, FisheyeLens(size, k, row[F1 : F4 + 1].copy()), pose)
    return LensCamera(name, PinholeLens(size, k, row[K1 : K1 + coefficients].copy()), pose)
