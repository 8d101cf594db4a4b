"""Models without a background picture: a key colour, and a threshold for infrared backlight."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from calibration.foundation.arrays import Bytes, Floats
from calibration.foundation.errors import InputError
from capture.backgrounds.background import SCALE

__all__ = ["ChromaModel", "ThresholdModel", "key_colour"]


@dataclass(frozen=True, eq=False)
class ChromaModel:
    """Distance from a key colour in the Lab chroma plane: green or blue screens.

    Attributes:
        colour: (2,) a and b of the screen, OpenCV's 8-bit Lab.
        sigma: spread of the screen's colour, Lab units.
    """

    colour: Floats
    sigma: float = 4.0

    def evidence(self, image: Bytes) -> Bytes:
        """Return (H, W) the distance from the key colour in units of 1 / `SCALE` standard deviations."""
        if image.ndim != 3:
            raise InputError("chroma key: wanted colour images; take the threshold or plate model for grey ones")
        lab = cv2.cvtColor(image, cv2.COLOR_BGR2LAB)[:, :, 1:].astype(np.float32)
        away = np.sqrt(((lab - self.colour.astype(np.float32)) ** 2).sum(axis=2)) / self.sigma
        return np.asarray(np.minimum(255.0, SCALE * away), dtype=np.uint8)


def key_colour(image: Bytes) -> ChromaModel:
    """Find the screen's colour: the commonest chroma of an image, with the spread around it."""
    if image.ndim != 3:
        raise InputError("chroma key: wanted colour images; take the threshold or plate model for grey ones")
    lab = cv2.cvtColor(image, cv2.COLOR_BGR2LAB)[:, :, 1:].reshape(-1, 2)
    first = int(np.bincount(lab[:, 0], minlength=256).argmax())  # one channel at a time: the peak is compact
    near = lab[np.abs(lab[:, 0].astype(int) - first) <= 8]
    second = int(np.bincount(near[:, 1], minlength=256).argmax())
    screen = near[np.abs(near[:, 1].astype(int) - second) <= 8].astype(float)
    sigma = max(2.0, float(screen.std(axis=0).max()))
    return ChromaModel(screen.mean(axis=0), sigma)


@dataclass(frozen=True)
class ThresholdModel:
    """Brightness threshold for infrared backlight (dark subject) or a bright subject on black.

    Attributes:
        level: grey level between subject and rest; None: half-way between the two sides of Otsu's, found in each frame.
        dark: whether the subject is the darker side.
    """

    level: float | None = None
    dark: bool = True

    def evidence(self, image: Bytes) -> Bytes:
        """Return (H, W) high evidence beyond the level, rising over ten grey levels around it."""
        grey = image if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
        level = self.level
        if level is None:
            split = cv2.threshold(grey, 0, 255, cv2.THRESH_BINARY + cv2.THRESH_OTSU)[0]
            low, high = grey[grey <= split], grey[grey > split]
            level = (float(low.mean()) + float(high.mean())) / 2 if len(low) and len(high) else float(split)
        beyond = (level - grey.astype(np.float32)) * (1.0 if self.dark else -1.0)
        # At the level the evidence is the default of weak evidence, so that the silhouette's edge lies there.
        return np.asarray(np.clip(SCALE * (4.0 + beyond), 0.0, 255.0), dtype=np.uint8)
