"""Parts of a rodent that silhouettes lose: feet are bare, and as pale as many a floor.

What is cut out of a video lacks them far more often than it invents them. So a foot that stands beyond the silhouette
is contradicted less than one that the silhouette shows elsewhere. Not so the tail: nothing says where it is then, and
it would wave in empty air.
"""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Bools, Floats
from tracking.quads.oriented_quads import QuadRig

__all__ = ["pale_vertices"]

BARE = ("foot", "toe", "wrist", "finger")


def pale_vertices(rig: QuadRig, binding: Floats) -> Bools | None:
    """Return which points bound to a rodent's quads (V, 4 Q + F) are of its feet; None for other bodies."""
    names = rig.quad_names
    if "tail_base" not in names:
        return None
    bare = np.array([name.removeprefix("left_").removeprefix("right_").startswith(BARE) for name in names])
    shares = np.abs(binding[:, : 4 * len(names)]).reshape(len(binding), len(names), 4).sum(axis=2)
    return np.asarray(bare[np.argmax(shares, axis=1)])
