"""How loosely a subject's outlines lie around its body, part by part: what they leave where its shape was looked for.

A body of the right lengths, girths and skin still misses the outlines of a wide sleeve or trouser leg, now to this side
and now to that, as cloth swings and folds; of bare skin it misses little. So what is left of the outlines around a
vertex, over all frames, says how much they are to be believed there (`Template.spread`). Cloth that hangs still and
flesh that is thick say nothing here: that is for girths and skin. Nor do hands and feet, of which fingers and toes are
left whatever they wear: they are bare, and limbs are found by them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.spatial import cKDTree

from calibration.foundation.arrays import Floats
from tracking.adapting.skin_search import outline_pairs
from tracking.fitting.solver import FrameFit, FrameSolver
from tracking.observations.contours import Observation
from tracking.quads.template import bare

__all__ = ["outline_looseness"]

AROUND = 60.0
"""Squares are averaged over vertices this near at rest, thousandths of the size: few frames say little of one."""
USUAL = 0.5
"""What is left of the outlines of bare people, against the outlines' own sigma."""
FOLLOWED = 4.0
"""A fit goes along with cloth on all sides of a limb: it lies so many times as far off as what is left beyond that."""
BARE = ("hand", "wrist", "ball", "toe")
"""Quads whose outlines are always believed, by the end of their names."""
DIGITS = 2
"""Kept in hundredths of a millimetre, as the skin is."""


def outline_looseness(solver: FrameSolver, looks: Mapping[int, Observation], fits: Mapping[int, FrameFit]) -> Floats:
    """Return (V,) how far outlines lie from those of the body, 1 sigma, mm, over the vertices of its outline template.

    Args:
        solver: of the body in its shape and skin.
        looks: silhouettes of each frame.
        fits: the body in some frames.
    """
    body = bare(solver.template).vertices
    pairs = outline_pairs(solver, looks, fits)
    # As in the fit itself, a pair far off says that it is a wrong one.
    share = pairs.shares / (1.0 + (pairs.residuals / (solver.settings.robust[-1] * solver.unit)) ** 2) ** 2
    both = pairs.vertices.ravel()
    weight = np.bincount(both, np.repeat(share, 2), len(body))
    square = np.bincount(both, np.repeat(share * pairs.residuals**2, 2), len(body))
    near = cKDTree(body).query_ball_point(body, AROUND * solver.unit)
    # A place that no frame shows on an outline has the mean of all.
    usual = square.sum() / max(weight.sum(), 1e-9)
    seen = np.array([weight[ids].sum() for ids in near])
    means = np.array([square[ids].sum() for ids in near]) / np.maximum(seen, 1e-9)
    skin = USUAL * solver.settings.contour_sigma * solver.unit
    left = np.sqrt(np.maximum(np.where(seen > 0, means, usual) - skin**2, 0.0))
    quads = solver.cage_rig.quads
    nearest = np.asarray(cKDTree(quads.centres).query(body)[1], np.int64)
    left[np.array([name.endswith(BARE) for name in quads.quad_names])[nearest]] = 0.0
    return np.asarray(np.round(FOLLOWED * left, DIGITS))
