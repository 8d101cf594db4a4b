"""Points outside a cage carried by it: each through an anchor inside, with the local deformation there.

Green coordinates of a point outside its cage map it to nonsense. A point x is bound through its place a inside (its
anchor) instead::

    row(x) = row(a) + (x - a) . d row / d a

which carries its offset from the anchor with the local deformation of the cage: exact at rest, and for any offset where
the cage moves by an affine map.
"""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Floats
from tracking.quads.cage import Cage
from tracking.quads.green import green_coordinates

__all__ = ["anchored_rows"]


def anchored_rows(cage: Cage, anchors: Floats, points: Floats, *, step: float) -> tuple[Floats, Floats]:
    """Bind points (P, 3) through anchors (P, 3) inside a cage.

    Args:
        cage: closed cage.
        anchors: places inside, at least ``step`` mm from its faces.
        points: what is bound, mm; a point that is its own anchor gets its Green coordinates.
        step: of the numerical derivative, mm.

    Returns:
        rows (P, 4 Q + F), and their derivatives (3, P, 4 Q + F) by the points' places.
    """
    rows = np.hstack(green_coordinates(anchors, cage.vertices, cage.faces))
    gradients = np.stack(
        [
            (np.hstack(green_coordinates(anchors + step * axis, cage.vertices, cage.faces)) - rows) / step
            for axis in np.eye(3)
        ]
    )
    return rows + np.einsum("pi,ipc->pc", points - anchors, gradients), gradients
