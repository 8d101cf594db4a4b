"""Where each bead is in each view of each frame, and how well that is known."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Bools, Floats, measured
from calibration.foundation.errors import InputError

__all__ = ["BeadTracks", "PointStatus"]


class PointStatus(IntEnum):
    """How one point of one view came about."""

    LOST = 0
    TRACKED = 1
    #: Fitted together with a bead it overlaps: the covariance is wider.
    OVERLAPPING = 2
    #: Brought by the user: never changed by the program.
    GIVEN = 3


@dataclass(frozen=True, eq=False)
class BeadTracks:
    """Beads in the images of all views.

    Attributes:
        names: B bead names.
        cameras: C camera names.
        pixels: (T, C, B, 2) centres in the images as they were brought (distorted), px; NaN where lost.
        covariance: (T, C, B, 2, 2) px^2; NaN where lost.
        status: (T, C, B) uint8 of `PointStatus`.
        sigma: (C, B) typical Gaussian radius, px.
        contrast: (C, B) typical attenuation.
    """

    names: tuple[str, ...]
    cameras: tuple[str, ...]
    pixels: Floats
    covariance: Floats
    status: NDArray[np.uint8]
    sigma: Floats
    contrast: Floats

    def __post_init__(self) -> None:
        shape = self.status.shape
        if len(shape) != 3 or shape[1:] != (len(self.cameras), len(self.names)):
            raise InputError(
                f"bead status must be (T, {len(self.cameras)} cameras, {len(self.names)} beads), got {shape}"
            )
        if self.pixels.shape != (*shape, 2) or self.covariance.shape != (*shape, 2, 2):
            raise InputError(f"bead pixels and covariance do not fit {shape}: {self.pixels.shape}")
        if self.sigma.shape != shape[1:] or self.contrast.shape != shape[1:]:
            raise InputError(f"bead radii and contrasts do not fit {shape[1:]}: {self.sigma.shape}")
        for name in ("pixels", "covariance", "sigma", "contrast"):
            measured(getattr(self, name), f"bead {name}")

    @property
    def found(self) -> Bools:
        """(T, C, B) whether the bead has a position there."""
        return np.asarray(np.isfinite(self.pixels[..., 0]))

    def __len__(self) -> int:
        return len(self.pixels)


def unique_names(count: int, prefix: str = "bead") -> tuple[str, ...]:
    """Return names for beads that nobody named: bead01, bead02, ..."""
    width = max(2, len(str(count)))
    return tuple(f"{prefix}{k + 1:0{width}d}" for k in range(count))
