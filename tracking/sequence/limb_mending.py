"""Limbs of a sequence: looked for again where the silhouettes contradict them, and what is seen of them in the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from tracking.fitting.posture import COST
from tracking.fitting.solver import FrameFit, FrameSolver, Sketch
from tracking.limbs.chains import limbs_of
from tracking.limbs.evidence import LimbEvidence, LimbRecord, LimbSight
from tracking.limbs.leaps import leaps
from tracking.limbs.search import APART, BACK, LimbSearch
from tracking.limbs.turned_in_place import turned_leads
from tracking.observations.contours import Observation
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.calm_frames import WEAKER, CalmFrames, far_within, worse_of
from tracking.sequence.limb_trust import RODENTS, SINGLE, TURN, judge_limbs, lead_speaks_against, limits_of

__all__ = ["LimbMender", "better"]

STARTS, HEAD_STARTS = 4, 7
"""Poses of a limb that are fitted when it is looked for anew, and of a rodent's head: nose and ears look alike."""
HIDE = 0.8
"""A second attempt at a limb shows at least this share of what was shown of it."""
OWN = 0.3
"""Overlap that a limb of a rodent may cost to be explained better itself, of what it is explained better by."""
HOPE = 0.005
"""What finishing a sketch may bring: one that is worse by more is given up. In 35 searches for a real mouse's limbs
sketches that won in the end were better by 0.002 and more; most that lost were worse by 0.01 to 0.07."""
LEAD = 0.06
"""Lead of another place of a head that makes it twice as suspect."""
ELSEWHERE = 50.0
"""Mean distance of a head's quads from which on two fits of it differ, thousandths of the size."""
LONGEST_WAIT = 15
"""Frames, at most, until a limb that was looked for in vain is looked for again."""
SELDOM = 8
"""Frames from one whose limbs are looked at on the way to the next, where nothing is near what makes a limb looked for.
They are judged more often in the end (`tracking.sequence.calm_frames`)."""
WORSE = 1.5
"""Times as badly explained as after a search in vain: then a limb is looked for at once."""


def better(first: FrameFit, second: FrameFit) -> FrameFit:
    """Return the fit with the higher overlap, less what it pays for leaving the prior."""
    return second if second.score > first.score + 1e-4 else first


@dataclass(frozen=True, eq=False)
class _Seen:
    """What the silhouettes say of a fit's limbs beside areas: of their outlines the residual and weakness (L,), mm.

    ``rival`` is by how much the place of a rodent's head beats any other; 1 for people.
    """

    residual: Floats
    weak: Floats
    rival: float


class _Tried(NamedTuple):
    """What limbs of a fit were looked for in vain: anew, and each as in some fits beside."""

    anew: set[int]
    beside: list[WeakSet[FrameFit]]


class LimbMender:
    """Looks for the limbs of one solver's subject, ever more rarely while that is in vain."""

    def __init__(self, solver: FrameSolver) -> None:
        self.evidence = LimbEvidence(solver, limbs_of(solver.cage_rig.quads))
        self.search = LimbSearch(self.evidence)
        count = len(self.evidence.limbs)
        self._doubt, self._rough = limits_of(self.evidence.limbs.names).search
        posture = solver.posture
        self._head = None if posture is None else int(self.evidence.limbs.of_quad[posture.head])
        self._wait, self._left = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self._vain = np.zeros(count)
        self._calm = CalmFrames(solver)
        self._unseen = SELDOM
        self._sights: WeakKeyDictionary[FrameFit | Sketch, LimbSight] = WeakKeyDictionary()
        self._known: WeakKeyDictionary[FrameFit, _Seen] = WeakKeyDictionary()
        self._tried: WeakKeyDictionary[FrameFit, _Tried] = WeakKeyDictionary()

    def forget(self) -> None:
        """Begin afresh: no search was in vain yet."""
        self._wait[:], self._left[:], self._vain[:] = 0, 0, 0.0
        self._unseen = SELDOM

    def mended(self, observation: Observation, fit: FrameFit) -> FrameFit:
        """Look for the limbs that the silhouettes of a frame by itself contradict."""
        self.forget()
        return self.mend(observation, fit)

    def mend_next(self, observation: Observation, fit: FrameFit, before: Sequence[FrameFit | None]) -> FrameFit:
        """The same for a frame that follows others (the last two of them given): not looked at where these are calm."""
        if self._unseen + 1 < SELDOM and self._calm.goes_on([*before, fit]):
            self._unseen += 1
            return fit
        fit = self.mend(observation, fit)
        self._unseen = 0 if self._is_calm(observation, fit) else SELDOM
        return fit

    def _is_calm(self, observation: Observation, fit: FrameFit) -> bool:
        """Return whether no limb is near what makes it looked for."""
        return bool((WEAKER * self._badness(observation, fit) < self._doubt).all())

    def mend(self, observation: Observation, fit: FrameFit, beside: tuple[FrameFit, Floats] | None = None) -> FrameFit:
        """Look for the limbs that the silhouettes contradict, worst first.

        They are tried as in the frame beside (its fit, and how badly each limb is explained there) where that explains
        them better, and anew; ever more rarely while what is found is contradicted too.
        """
        bad = self._badness(observation, fit)
        for limb in map(int, np.argsort(-bad, kind="stable")):
            if bad[limb] < self._doubt:
                break
            # What was tried from a fit before would end as it did.
            tried = self._tried_from(fit)
            starts = []
            known = beside is not None and beside[1][limb] < max(self._doubt, bad[limb] / 2.0)
            if beside is not None and known and beside[0] not in tried.beside[limb]:
                starts.append(self.evidence.limbs.moved(fit.pose, limb, beside[0].pose))
                tried.beside[limb].add(beside[0])
            self._left[limb] -= 1
            anew = self._left[limb] < 0 or bad[limb] > WORSE * self._vain[limb]
            if anew and limb not in tried.anew:
                starts += self.search.propose(
                    observation, fit.pose, limb, HEAD_STARTS if limb == self._head else STARTS
                )
                tried.anew.add(limb)
            found = self._found(observation, fit, limb, starts) if starts else fit
            if found is not fit:
                self._remember(fit, found)
                fit = found
                bad = np.minimum(bad, self._badness(observation, fit))
            if anew:
                in_vain = bad[limb] >= self._doubt
                self._wait[limb] = min(2 * int(self._wait[limb]) + 1, LONGEST_WAIT) if in_vain else 0
                self._left[limb], self._vain[limb] = self._wait[limb], bad[limb]
        return fit

    def _tried_from(self, fit: FrameFit) -> _Tried:
        """What was tried from a fit."""
        return self._tried.setdefault(fit, _Tried(set(), [WeakSet() for _ in self._wait]))

    def _remember(self, before: FrameFit, after: FrameFit) -> None:
        """What was looked for in vain from a fit is not from one with another limb elsewhere, where this one stayed."""
        tried, near = self._tried_from(before), BACK * self.evidence.solver.unit
        stayed = [_apart(before, after, chain) < near for chain in self.evidence.limbs.chains]
        self._tried[after] = _Tried(
            {limb for limb in tried.anew if stayed[limb]},
            [WeakSet(known) if stays else WeakSet() for known, stays in zip(tried.beside, stayed, strict=True)],
        )

    def _found(self, observation: Observation, fit: FrameFit, limb: int, starts: list[QuadPose]) -> FrameFit:
        """Return the best fit from some starts of a limb, or the one that is there."""
        shown = HIDE * self._shown(observation, fit, limb)
        if self._head is None:
            best = fit
            for trial in self.search.fits(observation, starts):
                # A limb that hides behind the rest contradicts nothing: holes in silhouettes would drive it there.
                if self._shown(observation, trial, limb) >= shown:
                    best = self._better(observation, best, trial, limb)
            return best
        # A rodent's limbs are looked for in most frames: of its starts only the best is fitted to the end.
        sketches = self.search.sketches(observation, starts, fit, limb)
        sketch = self._best(observation, sketches, limb, shown, self._value(observation, fit, limb) - HOPE)
        if sketch is None:
            return fit
        trial = self.search.finished(observation, sketch)
        return self._better(observation, fit, trial, limb) if self._shown(observation, trial, limb) >= shown else fit

    def _best(
        self, observation: Observation, sketches: list[Sketch], limb: int, shown: float, least: float
    ) -> Sketch | None:
        """Return the best sketch of a limb that shows at least so much of it and is worth more than ``least``.

        Drawn are only those that may be it: what a limb leaves open makes a sketch worth less than its score.
        """
        best: Sketch | None = None
        for sketch in sorted(sketches, key=lambda one: -one.score):
            if sketch.score <= least:
                break
            value = self._value(observation, sketch, limb)
            if value > least and self._shown(observation, sketch, limb) >= shown:
                best, least = sketch, value
        return best

    def repair(self, observe: Callable[[int], Observation], fits: list[FrameFit | None]) -> bool:
        """Try contradicted limbs as they are in the frames beside, from both ends of a stretch; say if any improved."""
        improved = False
        self.forget()
        calm = {frame for frame, _, _ in self._calm.between(fits, *self._looks(observe, fits), SELDOM)}
        for way in (1, -1):
            for frame in range(len(fits))[::way]:
                fit, near = fits[frame], frame - way
                if fit is None or not 0 <= near < len(fits) or frame in calm:
                    continue
                if (self._badness(observe(frame), fit) < self._doubt).all():
                    continue
                other = fits[near]
                beside = None if other is None else (other, self._badness(observe(near), other))
                found = self.mend(observe(frame), fit, beside)
                improved |= found is not fit
                fits[frame] = found
        return improved

    def _looks(
        self, observe: Callable[[int], Observation], fits: list[FrameFit | None]
    ) -> tuple[Callable[[int], bool], Callable[[int], bool]]:
        """What says whether a frame is calm, and whether that is known already."""

        def is_calm(frame: int) -> bool:
            fit = fits[frame]
            return fit is not None and self._is_calm(observe(frame), fit)

        return is_calm, lambda frame: fits[frame] in self._known

    def record(self, observe: Callable[[int], Observation], fits: list[FrameFit | None]) -> LimbRecord:
        """What the silhouettes say of every limb in every frame; of frames between calm ones what these show."""
        limbs = self.evidence.limbs
        record = LimbRecord.empty(len(fits), len(limbs))

        def judge(frame: int) -> bool:
            fit = fits[frame]
            if fit is not None:
                self._judge(observe(frame), fit, record, frame)
            return far_within(record, frame, self.evidence.solver.unit, limbs.names)

        for frame, before, after in self._calm.between(fits, judge):
            worse_of(record, frame, before, after)
        untracked = np.full_like(self.evidence.solver.cage_rig.quads.centres, np.nan)
        record.leap[:] = leaps(np.array([untracked if fit is None else fit.pose.centres for fit in fits]), limbs)
        return record

    def _judge(self, observation: Observation, fit: FrameFit, record: LimbRecord, frame: int) -> None:
        """Write into a record what the silhouettes say of every limb in one frame."""
        seen = self._seen(observation, fit)
        sight = self.evidence.borne_out(observation, fit.pose, self._sight(observation, fit))
        record.bad[frame], record.views[frame] = sight.bad, sight.views
        record.outside[frame], record.missing[frame] = sight.worst
        record.residual[frame], record.weak[frame] = seen.residual, seen.weak
        known = {} if self._head is None else {self._head: seen.rival}
        record.lead[frame] = self.search.leads(observation, fit.pose, known)
        self._turn_in_place(observation, fit, record.turned[frame])
        self._stand(fit, record.standing[frame])
        record.feet[frame] = self.evidence.feet(observation, fit.pose)
        for limb in self._ambiguous(record, frame):
            apart = ELSEWHERE if limb == self._head else APART
            over_fits = self._lead_over_fits(observation, fit, limb, apart)
            if over_fits >= 0:
                record.lead[frame, limb] = over_fits

    def _ambiguous(self, record: LimbRecord, frame: int) -> list[int]:
        """Limbs of a rodent of which another place explains more as it is, and against which nothing else speaks."""
        if self._head is None:
            return []
        unit, limits = self.evidence.solver.unit, limits_of(self.evidence.limbs.names)
        told = LimbRecord(**{key: values[frame : frame + 1] for key, values in record.rows().items()})
        if limits is RODENTS and not lead_speaks_against(told, limits).any():
            return []  # what else leads say of theirs, they say of any
        # Silhouettes of the frames around may excuse as much.
        told = replace(told, bad=told.bad / SINGLE, outside=told.outside / SINGLE, missing=told.missing / SINGLE)
        sure = replace(told, lead=np.ones_like(told.lead))
        fewer = judge_limbs(told, unit=unit, limits=limits)[0][0] > judge_limbs(sure, unit=unit, limits=limits)[0][0]
        return [limb for limb in range(len(fewer)) if fewer[limb]]

    def _lead_over_fits(self, observation: Observation, fit: FrameFit, limb: int, apart: float) -> float:
        """By how much a fit beats those from other places of a limb, over what is wanted (`TURN`), in units of overlap.

        Another place that explains more as it is may be none once the limb is fitted there: it comes back, or loses.
        """
        chain, unit = self.evidence.limbs.chains[limb], self.evidence.solver.unit
        rivals = []
        starts = self.search.propose(observation, fit.pose, limb, STARTS)
        for sketch in self.search.sketches(observation, starts, fit, limb):
            if _apart(sketch, fit, chain) > apart * unit:
                rivals.append(sketch)
        ends = [self.search.finished(observation, one) for one in sorted(rivals, key=lambda one: -one.score)[:2]]
        scores = [one.score for one in ends if _apart(one, fit, chain) > apart * unit]
        return min(fit.score - max(scores, default=-1.0) - TURN, 1.0)

    def _turn_in_place(self, observation: Observation, fit: FrameFit, leads: Floats) -> None:
        """Write into (L,) by how much a rodent's trunk and head beat themselves turned in place."""
        solver = self.evidence.solver
        if solver.posture is not None and self._head is not None:
            leads[0], leads[self._head] = turned_leads(solver, solver.posture, observation, fit)

    def _stand(self, fit: FrameFit, away: Floats) -> None:
        """Write into (L,) how far a rodent's hind feet are from where they stand, in sigmas."""
        posture = self.evidence.solver.posture
        if posture is not None and posture.stance is not None:
            away[self.evidence.limbs.of_quad[list(posture.stance.feet)]] = posture.hind_feet_away(fit.pose)

    def _sight(self, observation: Observation, fit: FrameFit | Sketch) -> LimbSight:
        """What a fit's limbs cover and leave open: drawn once."""
        sight = self._sights.get(fit)
        if sight is None:
            sight = self._sights[fit] = self.evidence.sight(observation, fit.pose)
        return sight

    def _seen(self, observation: Observation, fit: FrameFit) -> _Seen:
        """What else is seen of a fit's limbs: judged once, and not for starts that are not kept."""
        seen = self._known.get(fit)
        if seen is None:
            rival = 1.0 if self._head is None else self.search.lead(observation, fit.pose, self._head)
            seen = _Seen(*self.evidence.outlines(observation, fit.pose), rival)
            self._known[fit] = seen
        return seen

    def _better(self, observation: Observation, first: FrameFit, second: FrameFit, limb: int) -> FrameFit:
        """Return the better fit; of a rodent's, whose limbs are small beside the trunk, the limb itself has a say."""
        if self.evidence.solver.posture is None:
            return better(first, second)
        gain = self._value(observation, second, limb) - self._value(observation, first, limb)
        return second if gain > 1e-4 else first

    def _value(self, observation: Observation, fit: FrameFit | Sketch, limb: int) -> float:
        """The score of a rodent's fit, less what one of its limbs leaves open."""
        return fit.score - OWN * float(self._sight(observation, fit).bad[limb])

    def _shown(self, observation: Observation, fit: FrameFit | Sketch, limb: int) -> float:
        """Share of a limb that the rest of the body does not cover, mean of the views."""
        return float(np.nan_to_num(self._sight(observation, fit).apart[limb]).mean())

    def _badness(self, observation: Observation, fit: FrameFit) -> Floats:
        """(L,) how badly each limb is explained, by area or by its outline; the trunk is not looked for."""
        seen = self._seen(observation, fit)
        rough = seen.residual / (self._rough * self.evidence.solver.unit)
        bad = np.maximum(self._sight(observation, fit).bad, self._doubt * np.nan_to_num(rough))
        points = self.evidence.solver.points
        if points is not None:
            # A point that several cameras mark three sigmas away from it speaks against its limb.
            owner = self.evidence.limbs.of_points(points.points.binding)
            np.maximum.at(bad, owner, 2.0 * self._doubt * np.nan_to_num(points.missed(observation.sightings, fit.pose)))
        if self._head is not None and fit.strain > 0:
            bad[self._head] += self._doubt * (1.0 + fit.strain / COST)
        if self._head is not None and seen.rival < 0:
            # Another place of the head explains the silhouettes better: it is looked for there.
            bad[self._head] += self._doubt * (1.0 - seen.rival / LEAD)
        bad[0] = 0.0
        return np.asarray(bad)


def _apart(first: FrameFit | Sketch, second: FrameFit, chain: Ints) -> float:
    """Mean distance between the quads of a limb in two fits, mm."""
    return float(np.linalg.norm(first.pose.centres[chain] - second.pose.centres[chain], axis=1).mean())
