"""Poses of flat boards in one camera: both solutions that a plane seen in perspective allows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np

from calibration.arrays import Floats
from calibration.cameras import FisheyeLens, LensCamera, PinholeLens
from calibration.compiled import compiled
from calibration.projection import FISHEYE, ROW, project_point, undistort_pixels
from calibration.transforms import RigidTransform

__all__ = ["PlanarPose", "half_turn", "lens_camera", "lens_row", "planar_poses"]


@dataclass(frozen=True, eq=False)
class PlanarPose:
    """A candidate camera_from_board pose and its reprojection RMS, px (2D distance)."""

    camera_from_board: RigidTransform
    rms_px: float


def lens_row(row: Floats) -> Floats:
    """Return a camera row with an identity pose and no limit of its own on where points project."""
    out = row.copy()
    out[20:29] = np.eye(3).ravel()
    out[29:32] = 0.0
    out[33:36] = 0.0
    out[32] = (np.pi / 2) ** 2 if row[0] == FISHEYE else np.inf
    return out


def planar_poses(row: Floats, model: Floats, pixels: Floats) -> tuple[PlanarPose, ...]:
    """Return the two poses (best first) of a flat board from its corners.

    ``row`` (36,) is the camera, its pose ignored; ``model`` (k, 3) the corners in the board's plane z = 0, mm;
    ``pixels`` (k, 2). Infinitesimal plane-based pose estimation (Collins and Bartoli 2014) on undistorted
    points; a candidate that puts a corner behind the camera is not returned.
    """
    lens = lens_row(row)
    # the exact inverse needs the lens's own limit, to know where it stops being one
    limited = lens.copy()
    limited[32] = _limit(row[:20].tobytes()) if row[6:20].any() else lens[32]
    ideal = undistort_pixels(limited, np.ascontiguousarray(pixels))
    good = np.isfinite(ideal).all(1)
    if good.sum() < 4:
        return ()
    _, turns, shifts, _ = cv2.solvePnPGeneric(
        np.ascontiguousarray(model[good]),
        np.ascontiguousarray(ideal[good]),
        np.eye(3),
        np.zeros(4),
        flags=cv2.SOLVEPNP_IPPE,
    )
    found = []
    for turn, shift in zip(turns, shifts, strict=True):
        rotation, translation = cv2.Rodrigues(turn)[0], shift.reshape(3)
        rms = _rms(lens, rotation, translation, model, pixels)
        if math.isfinite(rms):  # not behind the camera, not degenerate
            found.append(PlanarPose(RigidTransform(rotation, translation), rms))
    return tuple(sorted(found, key=lambda pose: pose.rms_px))


@compiled
def _rms(lens: Floats, rotation: Floats, translation: Floats, model: Floats, pixels: Floats) -> float:
    """Return the root mean square 2D distance of a board's corners from their projection; NaN behind the camera."""
    row = lens.copy()
    for i in range(3):
        for j in range(3):
            row[20 + 3 * i + j] = rotation[i, j]
        row[29 + i] = translation[i]
    total = 0.0
    for n in range(model.shape[0]):
        u, v = project_point(row, model[n, 0], model[n, 1], model[n, 2])
        total += (u - pixels[n, 0]) ** 2 + (v - pixels[n, 1]) ** 2
    return math.sqrt(total / model.shape[0])


@lru_cache(maxsize=64)
def _limit(packed: bytes) -> float:
    """Return where the lens of a row stops being invertible (kept: a search asks for the same lens often)."""
    row = np.zeros(ROW)
    row[:20] = np.frombuffer(packed)
    row[20] = row[24] = row[28] = 1.0
    return float(lens_camera(row, (1, 1), "lens", 14).lens.invertible_limit)


def half_turn(model: Floats) -> RigidTransform:
    """Return board_from_turned_board: the turn by 180 degrees that maps a symmetric grid onto itself."""
    centre = (model.min(0) + model.max(0)) / 2
    turn = np.diag([-1.0, -1.0, 1.0])
    return RigidTransform(turn, centre - turn @ centre)


def lens_camera(row: Floats, size: tuple[int, int], name: str, coefficients: int) -> LensCamera:
    """Return a pinhole or fisheye camera from a row; ``coefficients`` says how many distortion terms to keep."""
    k = np.array([[row[1], row[5], row[3]], [0, row[2], row[4]], [0, 0, 1]])
    pose = RigidTransform(row[20:29].reshape(3, 3).copy(), row[29:32].copy())
    if row[0] == FISHEYE:
        return LensCamera(name, FisheyeLens(size, k, row[6:10].copy()), pose)
    return LensCamera(name, PinholeLens(size, k, row[6 : 6 + coefficients].copy()), pose)
