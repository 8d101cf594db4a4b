"""Whether a rig's z axis points up: told by its cameras, which people seldom mount upside down."""

from __future__ import annotations

import numpy as np

from calibration.cameras.camera import LensCamera
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Floats
from calibration.geometry.transforms import RigidTransform

__all__ = ["AXES", "turned_up", "upward"]

#: What may point up in a foreign rig, as the direction in its own axes.
AXES = {
    "z": (0.0, 0.0, 1.0), "-z": (0.0, 0.0, -1.0), "y": (0.0, 1.0, 0.0), "-y": (0.0, -1.0, 0.0),
    "x": (1.0, 0.0, 0.0), "-x": (-1.0, 0.0, 0.0),
}  # fmt: skip


def upward(rig: Rig) -> str | None:
    """Return the axis along which the cameras' upper edges point, None where they do not agree on one.

    A camera that looks straight down or up says nothing; so its say is how level it is.
    """
    total = np.zeros(3)
    for camera in rig:
        if isinstance(camera, LensCamera):
            total -= camera.camera_from_world.rotation[1]  # the image's y grows downwards
    share = total / max(len(rig), 1)
    best = max(AXES, key=lambda name: float(share @ np.array(AXES[name])))
    return best if float(share @ np.array(AXES[best])) > 0.4 else None


def turned_up(up: str) -> RigidTransform:
    """Return the turn that brings an axis of a foreign world to z."""
    z: Floats = np.array(AXES[up])
    x = np.array([1.0, 0.0, 0.0]) if abs(z[0]) < 0.5 else np.array([0.0, 1.0, 0.0])
    y = np.cross(z, x)
    return RigidTransform(np.stack([x, y, z]), np.zeros(3))
