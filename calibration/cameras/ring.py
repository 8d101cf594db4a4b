"""Rigs from a few words: cameras on a ring, all looking at one point."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import RigidTransform

__all__ = ["look_at", "ring_rig"]


def look_at(eye: ArrayLike, target: ArrayLike, up: ArrayLike = (0.0, 0.0, 1.0)) -> RigidTransform:
    """Return ``camera_from_world`` of a camera at ``eye`` that looks at ``target``, ``up`` upwards in its image."""
    place = np.asarray(eye, dtype=np.float64)
    forward = np.asarray(target, dtype=np.float64) - place
    distance = np.linalg.norm(forward)
    if distance == 0.0:
        raise InputError("camera and target are at the same place; move one of them")
    forward /= distance
    right = np.cross(forward, np.asarray(up, dtype=np.float64))
    if np.linalg.norm(right) < 1e-9:  # looking straight down or up: let world x point right
        right = np.array([1.0, 0.0, 0.0])
    right /= np.linalg.norm(right)
    rotation = np.stack([right, np.cross(forward, right), forward])
    return RigidTransform(rotation, -rotation @ place)


def camera_names(count: int) -> list[str]:
    """Return cam01, cam02, ... with as many digits as string sorting needs."""
    digits = max(2, len(str(count)))
    return [f"cam{number:0{digits}d}" for number in range(1, count + 1)]


# Twelve parameters: all but three are keywords with a default, each a property of the ring that examples set alone.
def ring_rig(
    count: int,
    *,
    radius: float,
    height: float | ArrayLike,
    target: ArrayLike = (0.0, 0.0, 0.0),
    size: tuple[int, int] = (640, 480),
    field_mm: float | None = None,
    focal_px: float | None = None,
    distortion: ArrayLike = (),
    first_angle: float = 0.0,
    arc: float = 2.0 * np.pi,
    jitter: float = 0.0,
    seed: int = 0,
) -> Rig:
    """Place ``count`` cameras on a ring around the vertical through ``target``, all looking at it.

    Args:
        radius: of the ring, mm.
        height: above the floor, mm; several heights are taken in turn.
        target: (3,) point looked at, mm.
        size: (width, height) px.
        field_mm: width seen at the target, mm; or give
        focal_px: the focal length, px.
        distortion: OpenCV coefficients (0, 4, 5, 8, 12 or 14), the same for every camera but for ``jitter``.
        first_angle: of the first camera from the x axis, rad.
        arc: over which they spread, rad; a full turn by default.
        jitter: relative scatter of place, aim, focal length and distortion, as in a real rig (0.02 is 2 %).
        seed: of the jitter.
    """
    if count < 1:
        raise InputError(f"a rig needs at least 1 camera, got {count}")
    if (field_mm is None) == (focal_px is None):
        raise InputError("give either field_mm (width seen at the target) or focal_px, not both or none")
    aim = np.asarray(target, dtype=np.float64)
    heights = np.atleast_1d(np.asarray(height, dtype=np.float64))
    coefficients = np.asarray(distortion, dtype=np.float64)
    full = abs(arc - 2.0 * np.pi) < 1e-9
    rng = np.random.default_rng([seed, 907])
    cameras = []
    for number, name in enumerate(camera_names(count)):
        angle = first_angle + arc * number / (count if full else max(count - 1, 1))
        place = np.array(
            [aim[0] + radius * np.cos(angle), aim[1] + radius * np.sin(angle), heights[number % len(heights)]]
        )
        noise = rng.standard_normal(10)
        reach = float(np.linalg.norm(place - aim))
        place = place + jitter * reach * noise[:3]
        reach = float(np.linalg.norm(place - aim))
        focal = (focal_px if focal_px is not None else size[0] * reach / (field_mm or 1.0)) * (1.0 + jitter * noise[3])
        centre = (np.array(size) - 1.0) / 2.0 + jitter * 0.25 * size[0] * noise[4:6]
        intrinsics = np.array([[focal, 0.0, centre[0]], [0.0, focal, centre[1]], [0.0, 0.0, 1.0]])
        lens = PinholeLens(size, intrinsics, coefficients * (1.0 + 3.0 * jitter * noise[6]))
        pose = look_at(place, aim + jitter * 0.5 * reach * noise[7:10] * np.array([1.0, 1.0, 0.5]))
        cameras.append(LensCamera(name, lens, pose))
    return Rig(tuple(cameras))
