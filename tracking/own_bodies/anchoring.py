"""Where the skin of a body hangs on its cage: each vertex itself where the cage holds it, else a place further in.

The way in leads to the axis of the vertex's own part of the cage (the line between its quads), found by ways through
the flesh, so that no vertex hangs on a limb that merely lies beside it. Offsets of neighbours are evened out: what
stands out of the cage moves as one.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_matrix, diags

from calibration.foundation.arrays import Floats, Ints
from tracking.own_bodies.flesh import Flesh
from tracking.quads.cage import Cage, clearance
from tracking.quads.oriented_quads import QuadRig

__all__ = ["anchors_of", "axis_pieces", "inward"]

STEPS = 24
"""Places that are tried on the way from the axis to a vertex."""
EVEN = 12
"""Rounds of evening out."""


def axis_pieces(rig: QuadRig) -> tuple[Floats, Floats]:
    """Straight pieces (S, 3), (S, 3) that run through the inside of a cage, from quad to quad, mm."""
    starts, ends = [], []
    for region in rig.regions:
        if len(region.quads) == 2:
            starts.append(rig.centres[region.quads[0]])
            ends.append(rig.centres[region.quads[1]])
        else:
            middle = rig.centres[list(region.quads)].mean(axis=0)
            for quad in region.quads:
                starts.append(middle)
                ends.append(rig.centres[quad])
    return np.array(starts), np.array(ends)


def anchors_of(rig: QuadRig, cage: Cage, flesh: Flesh, faces: Ints, *, room: float) -> Floats:
    """Return the anchors (V, 3) of a mesh's vertices, mm, at least ``room`` mm inside the cage."""
    starts, ends = axis_pieces(rig)
    owner = flesh.vertex_owners(starts, ends)
    vertices = flesh.vertices
    rough = inward(vertices, starts[owner], ends[owner], cage, room)
    offsets = vertices - rough
    smooth = _evened(offsets, faces, len(vertices))
    evened = vertices - smooth
    bad = clearance(evened, cage)[0] < room
    # Where evening out leaves the cage, go back as far as is needed.
    for share in (0.5, 0.25, 0.0):
        evened[bad] = vertices[bad] - (share * smooth[bad] + (1 - share) * offsets[bad])
        bad = clearance(evened, cage)[0] < 0.999 * room
        if not bad.any():
            break
    evened[bad] = rough[bad]
    return evened


def inward(points: Floats, starts: Floats, ends: Floats, cage: Cage, room: float) -> Floats:
    """Draw points (P, 3) towards their pieces of the axis until they lie ``room`` mm inside the cage, all the way."""
    along = ends - starts
    share = np.sum((points - starts) * along, axis=1) / np.maximum(np.sum(along**2, axis=1), 1e-12)
    feet = starts + np.clip(share, 0.05, 0.95)[:, None] * along
    held = np.zeros(len(points))
    going = np.ones(len(points), np.bool_)
    for step in range(1, STEPS + 1):
        at = np.flatnonzero(going)
        if not len(at):
            break
        reach = step / STEPS
        inside = clearance(feet[at] + reach * (points[at] - feet[at]), cage)[0] >= room
        held[at[inside]] = reach
        going[at[~inside]] = False
    return np.asarray(feet + held[:, None] * (points - feet))


def _evened(offsets: Floats, faces: Ints, count: int) -> Floats:
    """Mean of each vertex's offset and its neighbours', a few times over."""
    ends = faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    ones = np.ones(2 * len(ends))
    rows, columns = np.concatenate([ends[:, 0], ends[:, 1]]), np.concatenate([ends[:, 1], ends[:, 0]])
    beside = coo_matrix((ones, (rows, columns)), shape=(count, count)).tocsr()
    beside.data[:] = 1.0
    mean = diags(1.0 / np.maximum(np.asarray(beside.sum(axis=1)).ravel(), 1.0)) @ beside
    result = offsets
    for _ in range(EVEN):
        result = 0.5 * result + 0.5 * (mean @ result)
    return np.asarray(result)
