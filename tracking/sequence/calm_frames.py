"""Frames whose limbs need no look of their own: between two that are far from every limit the body goes on smoothly.

To judge the limbs of a frame costs more than to fit it, and where nothing is wrong one frame says what the next one
does. So the limbs are judged in every eighth frame, or every fourth, and in those between only where something is near
a limit on either side, or the body does not go on smoothly there. A limb that slips away does so by a jump, or it is
still away when the next frame is judged; within a few frames without a jump it cannot go to another place and come
back, and what is between lies near the line from one judged frame to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np

from calibration.foundation.arrays import Floats
from tracking.fitting.solver import FrameFit, FrameSolver
from tracking.limbs.evidence import LimbRecord
from tracking.limbs.search import APART
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.limb_trust import MANY, judge_limbs, limits_of

__all__ = ["EVERY", "CalmFrames", "far_within", "worse_of"]

EVERY = 8
"""Frames from one that is judged to the next; half as many where the body does not go on smoothly for so long."""
AWAY = APART / 2.0
"""How far a corner of a quad may lie from the line between where it is in two judged frames, thousandths of the size:
half of what tells two places of a limb apart."""
BEND = AWAY / (EVERY // 4) ** 2
"""How far it may lie from the middle of where it is in the frames beside, thousandths: so bent for half as many frames,
it is as far off the line."""
FALL = 0.01
"""Fall of the overlap, mean of the views, that makes a frame judged."""
TWICE = 2.0
"""Limbs that would be believed with figures so many times as bad are far within their limits."""
WEAKER = 1.25
"""The same for how well they are seen, which has to do with where they are and changes slowly."""
LEAD = 0.06
"""The same for the lead over another place: so much less of it (doubt grows over as much)."""


class CalmFrames:
    """Says where a solver's subject goes on smoothly."""

    def __init__(self, solver: FrameSolver) -> None:
        self._quads, self._bend, self._away = solver.cage_rig.quads, BEND * solver.unit, AWAY * solver.unit
        self._marked = solver.points is not None
        self._corners: WeakKeyDictionary[QuadPose, Floats] = WeakKeyDictionary()

    def goes_on(self, fits: Sequence[FrameFit | None]) -> bool:
        """Return whether consecutive frames go on smoothly, and none of them fits worse than the first.

        Points that another program marked may be wrong in any frame: with them it is never said.
        """
        some = [fit for fit in fits if fit is not None]
        if self._marked or len(some) < max(len(fits), 3):
            return False
        seen = np.isfinite(some[0].overlap)
        if any((np.isfinite(fit.overlap) != seen).any() or fit.agreement < some[0].agreement - FALL for fit in some):
            return False
        corners = np.stack([self._corners_of(fit.pose) for fit in some])
        bend = corners[1:-1] - 0.5 * (corners[:-2] + corners[2:])
        share = np.linspace(0.0, 1.0, len(some))[:, None, None, None]
        away = corners - (1.0 - share) * corners[0] - share * corners[-1]
        return _longest(bend) <= self._bend and _longest(away) <= self._away

    def _corners_of(self, pose: QuadPose) -> Floats:
        """(Q, 4, 3) corners of the quads in a pose: each is asked for several times."""
        corners = self._corners.get(pose)
        if corners is None:
            corners = self._corners[pose] = self._quads.posed_corners(pose)
        return corners

    def between(
        self,
        fits: Sequence[FrameFit | None],
        judge: Callable[[int], bool],
        known: Callable[[int], bool] = lambda frame: False,
        every: int = EVERY,
    ) -> Iterator[tuple[int, int, int]]:
        """Judge the frames that need it.

        Args:
            fits: of all frames, in order of time.
            judge: judges a frame, and says whether it is far from every limit; called once a frame at most.
            known: whether that is done already: such frames are taken first.
            every: frames from one that is judged to the next, where nothing happens; half as many are tried next.

        Yields:
            The frames that need no judgement, each with the judged ones before and after it.
        """
        calm: dict[int, bool] = {}

        def is_calm(frame: int) -> bool:
            if frame not in calm:
                calm[frame] = judge(frame)
            return calm[frame]

        def next_calm(at: int) -> int:
            """The next frame up to which the body goes on smoothly from a calm one to a calm one; itself for none."""
            for length in (every, every // 2):
                ends = range(at + 1, min(at + length, len(fits) - 1) + 1)
                judged = [frame for frame in ends if frame in calm][:1] or [one for one in ends if known(one)][-1:]
                end: int = [at, *ends, *judged][-1]
                if is_calm(at) and self.goes_on(fits[at : end + 1]) and is_calm(end):
                    return end
            return at

        at = 0
        while at < len(fits):
            end = at if fits[at] is None else next_calm(at)
            yield from ((frame, at, end) for frame in range(at + 1, end))
            at = max(end, at + 1)


def _longest(vectors: Floats) -> float:
    """Length of the longest of some vectors (..., 3)."""
    return float(np.sqrt(np.einsum("...i,...i->...", vectors, vectors).max(initial=0.0)))


def far_within(record: LimbRecord, frame: int, unit: float, names: Sequence[str]) -> bool:
    """Return whether all limbs of a frame would be believed by itself if their figures were clearly worse."""
    one = LimbRecord(**{key: values[frame : frame + 1] for key, values in record.rows().items()})
    worse = replace(
        one, bad=TWICE * one.bad, outside=TWICE * one.outside, missing=TWICE * one.missing,
        residual=TWICE * one.residual, weak=WEAKER * one.weak, lead=one.lead - LEAD,
        views=np.where(one.views < MANY, one.views - 1.0, one.views),
        turned=one.turned / TWICE, standing=TWICE * one.standing,
    )  # fmt: skip
    return not judge_limbs(worse, unit=unit, limits=limits_of(names))[0].any()


def worse_of(record: LimbRecord, frame: int, first: int, second: int) -> None:
    """Write into a frame that was not judged the worse of what two others show."""
    for key, values in record.rows().items():
        worse = np.fmin if key in LimbRecord.MORE_IS_BETTER else np.fmax
        values[frame] = worse(values[first], values[second])
