"""A skin through time with known places of its vertices, and what virtual cameras see of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.cameras.rig import Rig
from calibration.cameras.ring import ring_rig
from calibration.foundation.arrays import Floats, Ints
from tracking.observations.contours import Observation, observe
from tracking.observations.rasteriser import cast_masks

__all__ = ["MovingSkin"]


@dataclass(frozen=True, eq=False)
class MovingSkin:
    """A skin of V vertices over T frames.

    Attributes:
        rest: (V, 3) as the mesh file has it, mm. faces: (F, 3).
        vertices: (T, V, 3) where they are, mm.
    """

    rest: Floats
    faces: Ints
    vertices: Floats

    @property
    def length(self) -> float:
        """Length of the body: longest side of the mesh, mm."""
        return float(np.ptp(self.rest, axis=0).max())

    def cameras(self, count: int = 8) -> Rig:
        """Place cameras on a ring around all frames, every second one higher."""
        low, high = self.vertices.min(axis=(0, 1)), self.vertices.max(axis=(0, 1))
        reach = 0.5 * float(np.linalg.norm(high - low))
        heights = [0.9 * reach, 2.2 * reach]
        return ring_rig(
            count, radius=3.5 * reach, height=heights, target=0.5 * (low + high), size=(640, 480), field_mm=2.2 * reach
        )

    def observe(self, rig: Rig, frame: int) -> Observation:
        """Return the silhouettes of a frame."""
        return observe(cast_masks(rig, self.vertices[frame], self.faces))
