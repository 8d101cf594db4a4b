"""Limbs that leave their path for a moment: what moves smoothly before and after does not leap there and back.

A limb whose outlines fit wrongly for some frames comes back from one frame to the next. How far a joint lies from the
path through the two frames before and the two after it tells: on right tracks of people boxing, dancing and running
some 1 to 15 thousandths of the size at 60 Hz, where a knee came back from 118 mm 50.
"""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Floats
from tracking.limbs.chains import Limbs

__all__ = ["leaps", "with_stretches_between"]

USUAL = 10.0
"""How many times what is usual for a quad in these frames is no leap: at low rates paths are less smooth."""


def leaps(centres: Floats, limbs: Limbs) -> Floats:
    """(T, L) how far the quads (T, Q, 3) of each limb leave their path, mm: the furthest of them.

    0 where it is no more than usual, NaN where a frame around was not tracked. The last quad of a limb (hand, toes) is
    left out: it turns in place, and no joint moves with it.
    """
    away: Floats = np.full((len(centres), len(limbs.of_quad)), np.nan)
    if len(centres) >= 5:
        path = (4.0 * (centres[1:-3] + centres[3:-1]) - centres[:-4] - centres[4:]) / 6.0
        away[2:-2] = np.linalg.norm(centres[2:-2] - path, axis=2)
    known = np.isfinite(away).any(axis=1)
    usual = np.median(away[known], axis=0) if known.any() else np.zeros(away.shape[1])
    away = np.where(away > USUAL * usual, away, 0.0 * away)
    inner = [limbs.chains[0], *(chain[:-1] if len(chain) > 1 else chain for chain in limbs.chains[1:])]
    return np.stack([away[:, chain].max(axis=1) for chain in inner], axis=1)


def with_stretches_between(leap: Floats) -> Floats:
    """(T,) leaps (T,), 0 where there are none, and between two the larger one where a limb was away: there and back.

    That is where a stretch between leaps is shorter than those before and after.
    """
    leaping = np.concatenate([[False], leap > 0, [False]])
    edges = np.flatnonzero(np.diff(leaping.astype(int)))
    starts, stops = np.concatenate([[0], edges[1::2]]), np.concatenate([edges[::2], [len(leap)]])
    lengths = stops - starts
    result = leap.copy()
    for k in range(1, len(lengths) - 1):
        if lengths[k] < min(lengths[k - 1], lengths[k + 1]):
            result[starts[k] : stops[k]] = max(leap[starts[k] - 1], leap[stops[k]])
    return result
