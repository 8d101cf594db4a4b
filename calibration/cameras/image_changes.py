"""Cameras for images that were cropped, scaled, padded or turned after the calibration.

Pixel centres have whole coordinates, so an image that is scaled by s has its pixel u at (u + 1/2) s - 1/2.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np

from calibration.cameras.camera import Camera, LensCamera, MatrixCamera
from calibration.cameras.lens import FisheyeLens, PinholeLens
from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import RigidTransform

__all__ = ["cropped", "padded", "rotated", "scaled"]

#: Axes of a camera whose image is turned clockwise by a quarter: the old down points left, the old right points down.
_QUARTER = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


def cropped(camera: Camera, corner: tuple[int, int], size: tuple[int, int]) -> Camera:
    """Return the camera of the part of its images from ``corner`` (x, y) on, of the given size, px."""
    (x, y), (width, height) = corner, size
    whole = camera.size
    if min(x, y) < 0 or min(size) < 1 or x + width > whole[0] or y + height > whole[1]:
        raise InputError(
            f"camera '{camera.name}': the part of {width}x{height} px from ({x}, {y}) on is not inside its image of "
            f"{whole[0]}x{whole[1]}"
        )
    change = np.array([[1.0, 0, -x], [0, 1, -y], [0, 0, 1]])
    if not isinstance(camera, LensCamera):
        return _mapped(camera, change, size)
    # Every frame of a recording cuts its images to where the subject is: a part of a lens that was checked is not
    # checked again, and how far it is invertible stays the same.
    intrinsics, limit = change @ camera.lens.intrinsics, camera.lens.invertible_limit
    intrinsics.flags.writeable = False
    lens, changed = copy(camera.lens), copy(camera)
    lens.__dict__.update(size=(int(width), int(height)), intrinsics=intrinsics, invertible_limit=limit)
    changed.__dict__["lens"] = lens
    return changed


def scaled(camera: Camera, size: tuple[int, int]) -> Camera:
    """Return the camera of images scaled to a new size (width, height), px."""
    if min(size) < 1:
        raise InputError(f"camera '{camera.name}': an image cannot be scaled to {size[0]}x{size[1]} px")
    sx, sy = size[0] / camera.size[0], size[1] / camera.size[1]
    return _mapped(camera, np.array([[sx, 0, (sx - 1) / 2], [0, sy, (sy - 1) / 2], [0, 0, 1]]), size)


def padded(camera: Camera, left: int, top: int, right: int, bottom: int) -> Camera:
    """Return the camera of images with so many pixels added on each side."""
    if min(left, top, right, bottom) < 0:
        raise InputError(f"camera '{camera.name}': pixels to add must be 0 or more, got {(left, top, right, bottom)}")
    size = (camera.size[0] + left + right, camera.size[1] + top + bottom)
    return _mapped(camera, np.array([[1.0, 0, left], [0, 1, top], [0, 0, 1]]), size)


def rotated(camera: Camera, degrees: int) -> Camera:
    """Return the camera of images turned clockwise by 90, 180 or 270 degrees."""
    if degrees % 90:
        raise InputError(f"camera '{camera.name}': images are turned by 90, 180 or 270 degrees, got {degrees}")
    for _ in range(degrees // 90 % 4):
        camera = _quarter(camera)
    return camera


def _mapped(camera: Camera, change: Floats, size: tuple[int, int]) -> Camera:
    """Return a camera whose pixels (u, v, 1) are mapped by ``change`` (3, 3), which has no off-diagonal scale."""
    if isinstance(camera, MatrixCamera):
        return replace(camera, image_size=size, matrix=change @ camera.matrix)
    if not isinstance(camera, LensCamera):
        raise InputError(f"camera '{camera.name}': a {type(camera).__name__} cannot be changed")
    lens = replace(camera.lens, size=size, intrinsics=change @ camera.lens.intrinsics)
    # How far the lens is invertible is a matter of its distortion alone, and takes a while to find.
    lens.__dict__["invertible_limit"] = camera.lens.invertible_limit
    return replace(camera, lens=lens)


def _quarter(camera: Camera) -> Camera:
    """Return the camera of images turned clockwise by 90 degrees: pixel (u, v) comes to (height - 1 - v, u)."""
    width, height = camera.size
    size = (height, width)
    change = np.array([[0.0, -1.0, height - 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    if isinstance(camera, MatrixCamera):
        return replace(camera, image_size=size, matrix=change @ camera.matrix)
    if not isinstance(camera, LensCamera):
        raise InputError(f"camera '{camera.name}': a {type(camera).__name__} cannot be changed")
    lens = camera.lens
    if lens.intrinsics[0, 1] != 0:
        raise InputError(f"camera '{camera.name}': a lens with skew cannot be turned by a quarter")
    intrinsics = change @ lens.intrinsics @ _QUARTER.T
    turned = RigidTransform(_QUARTER, np.zeros(3)) @ camera.camera_from_world
    if isinstance(lens, FisheyeLens):
        return replace(camera, lens=replace(lens, size=size, intrinsics=intrinsics), camera_from_world=turned)
    return replace(
        camera,
        lens=PinholeLens(size, intrinsics, _turned_distortion(camera.name, lens.distortion)),
        camera_from_world=turned,
    )


def _turned_distortion(name: str, distortion: Floats) -> Floats:
    """Return OpenCV's coefficients in axes turned by a quarter: radial ones stay, the others change places."""
    k = distortion.copy()
    if len(k) >= 14 and k[12:14].any():
        raise InputError(f"camera '{name}': a lens with a tilted sensor cannot be turned by a quarter")
    if len(k) >= 4:
        k[2], k[3] = distortion[3], -distortion[2]
    if len(k) >= 12:
        k[8:12] = -distortion[10], -distortion[11], distortion[8], distortion[9]
    return k
