"""Rigs and cameras that tests share."""

from __future__ import annotations

import numpy as np

from calibration.cameras.camera import Camera, LensCamera, MatrixCamera
from calibration.cameras.lens import FisheyeLens, PinholeLens
from calibration.cameras.rig import Rig
from calibration.geometry.transforms import RigidTransform

INTRINSICS = np.array([[800.0, 1.5, 322.0], [0, 810.0, 238.0], [0, 0, 1]])
COEFFICIENTS = np.array([-0.3, 0.1, 1e-3, -2e-3, 0.01, 0.02, 0.01, 1e-3, 1e-3, 5e-4, -1e-3, 3e-4, 0.01, -0.02])


def looking_at_origin(centre: np.ndarray) -> RigidTransform:
    """Return the pose of a camera at ``centre`` (mm) that looks at the world origin, upright."""
    z = -centre / np.linalg.norm(centre)
    x = np.cross(z, [0.0, 0.0, 1.0])
    x /= np.linalg.norm(x)
    rotation = np.stack([x, np.cross(z, x), z])
    return RigidTransform(rotation, -rotation @ centre)


def ring(n: int = 8, distortion: int = 5, radius: float = 600.0) -> Rig:
    """Return ``n`` cameras around a 16 cm field, all different."""
    cameras = []
    for k in range(n):
        angle = 2 * np.pi * k / n
        centre = np.array([radius * np.cos(angle), radius * np.sin(angle), 250.0 + 40 * (k % 3)])
        intrinsics = INTRINSICS + np.array([[k, 0, k / 2], [0, k / 3, -k], [0, 0, 0]])
        lens = PinholeLens((640, 480), intrinsics, COEFFICIENTS[:distortion] * (1 + k / 50))
        cameras.append(LensCamera(f"cam{k + 1}", lens, looking_at_origin(centre)))
    return Rig(tuple(cameras))


def four_around(size: tuple[int, int], focal_px: float, rise: float) -> Rig:
    """Return four cameras without distortion, 900 mm from the origin, as high as ``rise`` times their way from z."""
    intrinsics = np.array([[focal_px, 0, size[0] / 2], [0, focal_px, size[1] / 2], [0, 0, 1]])
    cameras = []
    for index in range(4):
        angle = 0.3 + index * np.pi / 2
        towards = np.array([np.cos(angle), np.sin(angle), rise])
        pose = looking_at_origin(900 * towards / np.linalg.norm(towards))
        cameras.append(LensCamera(f"c{index}", PinholeLens(size, intrinsics, np.zeros(0)), pose))
    return Rig(tuple(cameras))


def one_of_each() -> dict[str, Camera]:
    """Return a camera of every model."""
    pose = looking_at_origin(np.array([500.0, 100, 200]))
    cameras: dict[str, Camera] = {
        f"pinhole{n}": LensCamera(f"pinhole{n}", PinholeLens((640, 480), INTRINSICS, COEFFICIENTS[:n]), pose)
        for n in (0, 4, 5, 8, 12, 14)
    }
    fisheye = FisheyeLens(
        (640, 480), np.array([[300.0, 0.3, 320], [0, 301, 240], [0, 0, 1]]), [-0.02, 0.01, 3e-3, -1e-3]
    )
    cameras["fisheye"] = LensCamera("fisheye", fisheye, pose)
    matrix = INTRINSICS @ np.column_stack([pose.rotation, pose.translation])
    cameras["matrix"] = MatrixCamera("matrix", (640, 480), -2.5 * matrix)  # a bare matrix may have either sign
    return cameras
