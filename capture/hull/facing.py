"""Which side of a bare projection matrix is the front.

A matrix is known up to scale, so its third row does not say which points lie in front. `MatrixCamera` takes the
sign of a right-handed world. Published matrices of turntables also come with left-handed worlds (the VGG
dinosaur does): there every point of the scene would lie behind every camera. The silhouettes decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from calibration.cameras.camera import Camera, MatrixCamera
from calibration.foundation.arrays import Floats
from capture.hull.distance import DistanceImage

__all__ = ["TurnedCamera", "facing_cameras"]


class TurnedCamera(MatrixCamera):
    """A bare matrix of a left-handed world: the front is where a right-handed one has its back."""

    @cached_property
    def facing(self) -> Floats:
        """The matrix with the sign for which points in front have a positive third coordinate."""
        return np.asarray(-self.matrix * np.sign(np.linalg.det(self.matrix[:, :3])))


def facing_cameras(cameras: Sequence[Camera], images: Sequence[DistanceImage]) -> list[Camera]:
    """Return the cameras, bare matrices turned so that the point seen in the silhouettes' middles is in front."""
    equations = []
    for camera, image in zip(cameras, images, strict=True):
        if isinstance(camera, MatrixCamera):
            x0, y0, x1, y1 = image.box
            m = camera.facing / np.linalg.norm(camera.facing[2, :3])
            equations += [(x0 + x1) / 2 * m[2] - m[0], (y0 + y1) / 2 * m[2] - m[1]]
    if len(equations) < 4:
        return list(cameras)
    rows = np.array(equations)
    point = np.linalg.lstsq(rows[:, :3], -rows[:, 3], rcond=None)[0]
    depths = [float(c.facing[2, :3] @ point + c.facing[2, 3]) for c in cameras if isinstance(c, MatrixCamera)]
    if np.median(depths) > 0:
        return list(cameras)
    return [TurnedCamera(c.name, c.image_size, c.matrix, c.kind) if isinstance(c, MatrixCamera) else c for c in cameras]
