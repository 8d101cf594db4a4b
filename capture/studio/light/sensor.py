"""From light to grey levels: exposure, vignetting, drift, flicker, noise, eight bits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np

from calibration.foundation.arrays import Bytes, Singles
from capture.studio.scene.options import StudioOptions

__all__ = ["Sensor"]

#: Grey levels of a white surface in full light.
FULL_SCALE = 235.0
#: Hz; twice the mains of 50 Hz.
MAINS_HZ = 100.0


@dataclass(frozen=True, eq=False)
class Sensor:
    """One camera's sensor. Noise depends on seed, camera and frame alone, not on the order of rendering.

    Attributes:
        camera: number in the rig.
        size: (width, height) px.
        options: the difficulties.
    """

    camera: int
    size: tuple[int, int]
    options: StudioOptions

    @cached_property
    def _falloff(self) -> Singles | None:
        if self.options.vignetting == 0.0:
            return None
        width, height = self.size
        y, x = np.mgrid[0:height, 0:width].astype(np.float32)
        squared = ((x - width / 2) ** 2 + (y - height / 2) ** 2) / (width**2 + height**2) * 4.0
        falloff: Singles = (1.0 - np.float32(self.options.vignetting) * squared)[..., None]
        return falloff

    def gain(self, frame: int, frames: int, rate_hz: float) -> float:
        """Return the factor of drift and flicker at a frame of a recording."""
        phase = np.random.default_rng([self.options.seed, 301, self.camera]).uniform(0.0, 2.0 * np.pi)
        drift = 1.0 + self.options.gain_drift * frame / max(frames - 1, 1)
        return float(drift * (1.0 + self.options.flicker * np.sin(2.0 * np.pi * MAINS_HZ * frame / rate_hz + phase)))

    def expose(self, light: Singles, *, frame: int, frames: int = 1, rate_hz: float = 1.0, take: int = 0) -> Bytes:
        """Return the image, uint8 (H, W) or (H, W, 3) BGR, of linear light (H, W, C).

        Args:
            take: tells apart recordings of one seed (the empty stage, the subject), whose noise must differ.
        """
        if self.options.defocus > 0.0:
            blurred = cv2.GaussianBlur(light, (0, 0), self.options.defocus, borderType=cv2.BORDER_REPLICATE)
            light = blurred.reshape(light.shape)
        grey = light * np.float32(FULL_SCALE * self.gain(frame, frames, rate_hz))
        if self._falloff is not None:
            grey = grey * self._falloff
        if self.options.noise > 0.0:
            rng = np.random.default_rng([self.options.seed, 211, take, self.camera, frame])
            # Read noise plus shot noise, whose variance grows with the signal; together `noise` at mid grey.
            deviation = np.float32(self.options.noise) * np.sqrt(0.3 + 0.7 * np.maximum(grey, 0.0) / 128.0)
            grey = grey + deviation * rng.standard_normal(grey.shape, dtype=np.float32)
        image: Bytes = np.clip(np.rint(grey), 0, 255).astype(np.uint8)
        return image if self.options.colour else image[..., 0]
