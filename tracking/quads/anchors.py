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
from tracking.quads.green import green_along, green_slopes

__all__ = ["anchored_moves", "anchored_rows", "anchored_slopes"]


def anchored_rows(cage: Cage, anchors: Floats, points: Floats) -> Floats:
    """Bind points (P, 3) through anchors (P, 3) inside a cage.

    Args:
        cage: closed cage.
        anchors: places inside.
        points: what is bound, mm; a point that is its own anchor gets its Green coordinates.

    Returns:
        rows (P, 4 Q + F).
    """
    rows, moves = green_along(anchors, points - anchors, cage.vertices, cage.faces)
    return rows + moves


def anchored_slopes(cage: Cage, anchors: Floats, points: Floats) -> tuple[Floats, Floats]:
    """Bind points as `anchored_rows`; return the rows, and their derivatives (3, P, 4 Q + F) by the points' places."""
    rows, slopes = green_slopes(anchors, cage.vertices, cage.faces)
    return rows + np.einsum("pi,ipc->pc", points - anchors, slopes), slopes


def anchored_moves(cage: Cage, anchors: Floats, ways: Floats) -> Floats:
    """Return how the rows (P, 4 Q + F) of points bound through anchors change as they go along ``ways`` (P, 3)."""
    return green_along(anchors, ways, cage.vertices, cage.faces)[1]
