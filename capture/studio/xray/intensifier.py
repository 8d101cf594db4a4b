"""An X-ray image intensifier: its curved input screen bends the image (pincushion), the earth's field twists it (S)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibration.foundation.arrays import Floats, Singles
from calibration.foundation.errors import InputError

__all__ = ["Intensifier"]

BALANCE = 2.0 / 3.0


@dataclass(frozen=True, eq=False)
class Intensifier:
    """Where an ideal (pinhole) pixel appears, in polar coordinates about ``centre`` with rho = r / radius:

        r' = r (1 + pincushion (rho^2 - 2/3)),    angle' = angle + twist (rho^2 - 2/3)

    The 2/3 makes the ideal image the one nearest to the observed by a similarity (mean of rho^4 over that of rho^2
    on a disc), which is how an undistortion fitted to a grid chooses its scale and turn.

    Attributes:
        size: (width, height) of the image, px.
        centre: (2,) px.
        radius: of the round input screen, px; nothing is seen outside it.
        pincushion: relative stretch of the rim against the centre, 0 to 0.3.
        twist: turn of the rim against the centre, rad: the S shape of a straight wire.
        vignetting: loss of light at the rim, 0 to 1.
    """

    size: tuple[int, int]
    centre: Floats
    radius: float
    pincushion: float = 0.0
    twist: float = 0.0
    vignetting: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.pincushion <= 0.3 or abs(self.twist) > 0.5 or self.radius <= 0.0:
            raise InputError(
                "intensifier: wanted pincushion of 0 to 0.3, twist within 0.5 rad and a positive radius, "
                f"got {self.pincushion:g}, {self.twist:g} and {self.radius:g} px"
            )

    def apply(self, pixels: ArrayLike) -> Floats:
        """Return where ideal pixels (..., 2) are observed."""
        offset = np.asarray(pixels, dtype=np.float64) - self.centre
        excess = np.einsum("...i,...i->...", offset, offset) / self.radius**2 - BALANCE
        return self._turned(offset, self.twist * excess, 1.0 + self.pincushion * excess)

    def remove(self, pixels: ArrayLike) -> Floats:
        """Return the ideal pixels of observed ones (..., 2), to 1e-12 of the radius."""
        offset = np.asarray(pixels, dtype=np.float64) - self.centre
        observed = np.sqrt(np.einsum("...i,...i->...", offset, offset)) / self.radius
        rho = observed.copy()
        k = self.pincushion
        for _ in range(10):  # Newton on rho (1 + k (rho^2 - 2/3)) = observed: rising and convex, so it cannot fail
            value = rho * (1.0 + k * (rho**2 - BALANCE)) - observed
            rho = rho - value / (1.0 - k * BALANCE + 3.0 * k * rho**2)
        excess = rho**2 - BALANCE
        return self._turned(offset, -self.twist * excess, 1.0 / (1.0 + k * excess))

    def _turned(self, offset: Floats, angle: Floats, scale: Floats) -> Floats:
        c, s = np.cos(angle) * scale, np.sin(angle) * scale
        x, y = offset[..., 0], offset[..., 1]
        result: Floats = np.stack([c * x - s * y, s * x + c * y], axis=-1) + self.centre
        return result

    def aperture(self) -> Singles:
        """Return the share (H, W) of light that passes: vignetting inside the screen, nothing outside, a soft rim."""
        width, height = self.size
        y, x = np.mgrid[0:height, 0:width].astype(np.float64)
        rho = np.hypot(x - self.centre[0], y - self.centre[1]) / self.radius
        light = 1.0 - self.vignetting * rho**2
        return np.asarray(light * np.clip((1.0 - rho) * self.radius + 0.5, 0.0, 1.0), dtype=np.float32)

    def map_table(self, nodes: int = 33) -> tuple[Floats, Floats]:
        """Return a lattice of ideal pixels (nodes, nodes, 2) over the image and where each is observed."""
        width, height = self.size
        x, y = np.meshgrid(np.linspace(0, width - 1, nodes), np.linspace(0, height - 1, nodes))
        ideal = np.stack([x, y], axis=-1)
        return ideal, self.apply(ideal)
