"""Points of a subject that another program marks in images: where on the body they are, and how far from there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calibration.foundation.arrays import Floats

__all__ = ["FIRST_SIGMA", "BodyPoints"]

FIRST_SIGMA = 45.0
"""How far marks lie from our joints and markers before the recording itself has told, thousandths of the size: what one
program calls a hip another puts 50 mm away."""


@dataclass(frozen=True, eq=False)
class BodyPoints:
    """P named points bound to a cage.

    Attributes:
        names: as the user's files have them.
        binding: (P, 4 Q + F) coordinates in the cage.
        sigma: (P,) how far a mark lies from the point, thousandths of the size, 1 sigma along one axis.
    """

    names: tuple[str, ...]
    binding: Floats
    sigma: Floats

    def scaled(self, quads: int, scale: float) -> BodyPoints:
        """Return the points of a cage of Q quads that was scaled, or whose quads moved after that."""
        columns = np.ones(self.binding.shape[1])
        columns[4 * quads :] = scale
        return replace(self, binding=self.binding * columns)
