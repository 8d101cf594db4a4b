"""Who is who from frame to frame: solids get the names of the subjects that moved there.

A subject is expected where its last two places lead. Names are given so that the sum of the distances from there is
least. Two subjects in one solid touch: neither is told from the other until they part, and the names they get then rest
on where they were before: that frame is marked as unsure, as is one where the other way round is nearly as near.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from calibration.foundation.arrays import Bools, Ints
from capture.silhouettes.subjects.solids import Solid

__all__ = ["Identities", "Named"]

#: Names are sure if the other way round would be at least so many times as far.
_CLEAR = 2.0


@dataclass(frozen=True, eq=False)
class Named:
    """Who is who in one frame.

    Attributes:
        solid: (n,) number of the solid that each subject is in, -1 where it is not seen.
        touching: (n,) whether it shares its solid with another.
        unsure: (n,) whether it may be another one, from this frame on.
    """

    solid: Ints
    touching: Bools
    unsure: Bools


class Identities:
    """The subjects of a recording, ``count`` of them, as known up to the last frame that was shown."""

    def __init__(self, count: int) -> None:
        self._place = np.full((count, 3), np.nan)
        self._step = np.zeros((count, 3))
        self._low = np.full((count, 3), np.nan)
        self._high = np.full((count, 3), np.nan)
        self._touching = np.zeros(count, dtype=bool)

    def name(self, solids: Sequence[Solid]) -> Named:
        """Name the solids of the next frame, given by falling volume, and remember where the subjects are."""
        count = len(self._place)
        known = np.isfinite(self._place[:, 0])
        expected = self._place + self._step
        centres = np.array([solid.centre for solid in solids]).reshape(-1, 3)
        away = np.linalg.norm(expected[:, None] - centres[None], axis=2)
        solid = np.full(count, -1, dtype=np.int64)
        # Whoever was never seen takes what is left over, in order of volume.
        rows, columns = linear_sum_assignment(np.where(known[:, None], away, 1e9 + np.arange(len(centres))))
        solid[rows] = columns
        for subject in np.flatnonzero(known & (solid < 0)):
            solid[subject] = self._swallowed_by(int(subject), solids)
        touching = np.array([k >= 0 and np.count_nonzero(solid == k) > 1 for k in solid], dtype=bool)
        unsure = self._touching & ~touching & (solid >= 0)
        settled = np.flatnonzero(known & (solid >= 0) & ~touching)
        for a in settled:
            for b in settled[settled > a]:
                as_is = away[a, solid[a]] + away[b, solid[b]]
                swapped = away[a, solid[b]] + away[b, solid[a]]
                if swapped < _CLEAR * as_is:
                    unsure[[a, b]] = True
        self._remember(solids, solid, touching, known)
        return Named(solid, touching, unsure)

    def _swallowed_by(self, subject: int, solids: Sequence[Solid]) -> int:
        """Return the solid whose box meets the one a missing subject is expected in, -1 if it is not there."""
        low, high = self._low[subject] + self._step[subject], self._high[subject] + self._step[subject]
        for index, solid in enumerate(solids):
            if (solid.low <= high).all() and (solid.high >= low).all():
                return index
        return -1

    def _remember(self, solids: Sequence[Solid], solid: Ints, touching: Bools, known: Bools) -> None:
        for subject in np.flatnonzero(solid >= 0):
            here = solids[int(solid[subject])]
            if not touching[subject]:
                followed = known[subject] and not self._touching[subject]
                self._step[subject] = here.centre - self._place[subject] if followed else 0.0
                self._place[subject] = here.centre
            else:
                self._step[subject] = 0.0
            self._low[subject], self._high[subject] = here.low, here.high
        self._step[solid < 0] = 0.0
        self._touching = touching
