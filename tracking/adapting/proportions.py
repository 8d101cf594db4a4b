"""What is known of the proportions of bodies before any outline is seen: how far lengths and girths differ."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from calibration.foundation.arrays import Floats
from tracking.fitting.frame_energy import ERRING
from tracking.fitting.settings import COMMON
from tracking.subjects.shape import LIMBS, in_fur, shape_groups

__all__ = ["known_of_bodies", "known_of_stout_bodies"]

SIZE_SPREAD, LENGTH_SPREAD, GIRTH_SPREAD = 0.15, 0.06, 0.25
"""How far bodies lie from the built-in one, 1 sigma of the logarithm: size from the estimate, lengths of parts and
girths from the size."""
STOUT_SPREAD, FUR_SPREAD = 0.5, 0.001
"""The same of girths where the animal is stouter than the built-in body: the build that fits best says them roughly.
And of its legs, which are as thick for its size as that build has them."""
LIMB_SPREAD = 0.045
"""How far the two bones of a limb leave their proportion, 1 sigma of the logarithm of one over the other, as between
people: loose cloth hides elbows, and outlines alone made an upper arm of 1.38 with a forearm of 0.81."""


def known_of_bodies(body: str, girth_spread: Floats | float = GIRTH_SPREAD, firmness: float = 1.0) -> Floats:
    """Curvature (K, K) of what is known of bodies, in the units of an energy that counts outlines too often.

    Args:
        body: built-in body.
        girth_spread: of girths, each (G,) or all.
        firmness: by how much more proportions hold than on the recordings on which the spreads were chosen.
    """
    lengths, girths = shape_groups(body)
    count, size = len(lengths), len(lengths) + len(girths)
    mean = np.zeros(size)
    mean[:count] = 1.0 / count
    apart = np.eye(size) - mean[None]
    spread = np.repeat(LENGTH_SPREAD, size)
    spread[count:] = girth_spread
    known = apart.T @ np.diag(spread**-2.0) @ apart
    for (i, one), (j, other) in combinations(enumerate(lengths), 2):
        if one in LIMBS and LIMBS[one] == LIMBS.get(other):
            ratio = np.eye(size)[i] - np.eye(size)[j]
            known += np.outer(ratio, ratio) / LIMB_SPREAD**2
    # The size is no proportion. The estimate that it holds to, by the overlap of four frames, is off by 5 % as chance
    # has it where outlines err much: what they say of it together, as lengths and girths are found, is worth more.
    return np.asarray(COMMON**2 * (firmness * known + np.outer(mean, mean) / SIZE_SPREAD**2))


def known_of_stout_bodies(body: str, residuals: Sequence[float], expected: float) -> Floats:
    """Curvature (K, K) of what is known of an animal stouter than the built-in body.

    Outlines that miss an animal by more say less of its bones: hunched mice came out with a trunk of 0.8 and legs of
    1.2 of a mouse's, other frames of the same mouse otherwise. So proportions hold them as much more as the variance of
    what the outlines leave exceeds that of the recordings on which the spreads were chosen.

    Legs and flank of a stout animal share an outline, and what a bulge of the flank is when the animal sits, a thick
    thigh explains as well: two sets of frames of one mouse gave shanks of 1.1 and 1.4, mice had thighs of 0.9 and 1.9,
    and the knee went out with the thigh. So the girth of its legs is the build's.

    Args:
        body: built-in body.
        residuals: root mean square of what the build's outlines leave in each frame, mm.
        expected: 1 sigma of an outline sample, mm.
    """
    left = float(np.clip(np.mean(np.square(residuals)) / expected**2, *ERRING))
    girths = np.array([FUR_SPREAD if part in in_fur(body) else STOUT_SPREAD for part in shape_groups(body)[1]])
    return known_of_bodies(body, girths, left / ERRING[0])
