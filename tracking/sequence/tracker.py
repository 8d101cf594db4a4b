"""A whole sequence: from an automatic start forwards and backwards, with failure detection and restarts.

Each frame starts where its neighbour ended, a little further along its motion. When the silhouettes' overlap falls
below the usual, the frame is tried again from the manifold and from training poses near the last root; what overlaps
best is kept. At the end, badly fitted frames are tried again from both neighbours (the passes of both directions are
joined this way), all frames are pulled to the middle of their neighbours, together with the marks of the skin's texture
where images are given, and what still fits badly is marked, not invented.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError, SolveError
from tracking.fitting.initialisation import ALIKE, Finder
from tracking.fitting.solver import FrameFit, FrameSolver
from tracking.observations.contours import Observation
from tracking.observations.feature_tracks import FeatureTracks
from tracking.points.following import steadied
from tracking.points.placing import Placed, place_points, without_wrong
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.limb_mending import LimbMender, better
from tracking.sequence.limb_trust import frames_with_limbs, judge_limbs, limits_of
from tracking.sequence.next_frame import Follower
from tracking.sequence.rivals import follow_across_jumps, follow_rival
from tracking.sequence.settings import TrackerSettings
from tracking.sequence.steadying import steady
from tracking.sequence.track import Course, Track
from tracking.sequence.trust import AMBIGUOUS, DIFFERS, judge_track
from tracking.terms.points import PointTerm

__all__ = ["Tracker"]

_NONE = np.zeros(0, np.int64)
NO_MARKS = FeatureTracks(_NONE, _NONE, _NONE, np.zeros((0, 2)))
"""Of a sequence without images."""

SOME = 24
"""Frames in which names of 2D points are looked at: those that are mostly wrong there have no say."""
LAST_STEPS, MAY_FALL = 4, 0.02
"""Steps of the fit after marked points were placed, and by how much the overlap may fall for their sake."""


class Tracker:
    """Tracks one subject through one rig of cameras."""

    def __init__(
        self, solver: FrameSolver, rig: Rig, *, up: Floats | None = None, settings: TrackerSettings | None = None
    ) -> None:
        """Prepare; ``up`` is the vertical in world axes, z by default."""
        self.solver = solver
        self.settings = settings or TrackerSettings()
        self._centres = np.array([camera.centre for camera in rig.cameras])
        self.finder = Finder(solver, rig, np.array([0.0, 0.0, 1.0]) if up is None else up)
        self.limbs = LimbMender(solver)

    def track(
        self,
        observe: Callable[[int], Observation],
        frames: int,
        *,
        start: int | None = None,
        guess: tuple[QuadPose, Floats] | None = None,
        others: Mapping[int, tuple[QuadPose, Floats]] | None = None,
        rival: FrameFit | None = None,
        texture: FeatureTracks | None = None,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Track:
        """Track a sequence: `follow` and `finish` on the same silhouettes.

        Args:
            observe: gives the silhouettes of a frame; may be asked for any frame more than once.
            frames: length of the sequence.
            start: frame to start at, None to choose the first good one.
            guess: quads and latent point in the start frame, from elsewhere; None to look for the subject.
            others: the same in other frames, each found for itself: where the track differs, they are followed too.
            rival: another fit of the start frame that is hardly worse, as `sought_again` gives it: followed beside
                the track, and the mean difference over the frames says how sure the start is.
            texture: marks followed through the images of the same frames and cameras; None where there are no images.
            on_progress: called with frames done and in all.

        Raises:
            InputError: no frame has a silhouette in two cameras.
        """
        course = self.follow(
            observe, frames, start=start, guess=guess, others=others, rival=rival, on_progress=on_progress
        )
        return self.finish(observe, course, texture=texture)

    def follow(
        self,
        observe: Callable[[int], Observation],
        frames: int,
        *,
        start: int | None = None,
        guess: tuple[QuadPose, Floats] | None = None,
        others: Mapping[int, tuple[QuadPose, Floats]] | None = None,
        rival: FrameFit | None = None,
        until: Callable[[int, FrameFit], bool] = lambda frame, fit: False,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Course:
        """Find the subject and follow it both ways; what it is given is told in `track`.

        ``until`` is asked of each frame's fit whether to go no further that way.
        """
        # Systems of 200 unknowns are too small for threaded BLAS, whose waiting threads cost a hundred times the sum
        # itself on a busy machine; the compiled kernels use the cores.
        with threadpool_limits(limits=1, user_api="blas"):
            fits: list[FrameFit | None] = [None] * frames
            self._weigh_points(observe, frames)
            if guess is not None and start is not None:
                first, lead = start, 1.0
                fits[start] = self._from_guess(observe(start), guess)
            else:
                first, lead, rival = self._start(observe, frames, start, fits)
            # A rival that is to be followed beside the track says more of the start than its one frame.
            leads = np.full(frames, 1.0 if rival is not None else lead)
            if self.settings.restarts and (found := fits[first]) is not None:
                fits[first] = self.limbs.mended(observe(first), found)
            self._both_ways(observe, fits, first, until, on_progress)
            if self.settings.restarts:
                self._look_again(observe, fits, first, lead, leads)
                self._compare(observe, fits, others or {})
            return Course(tuple(fits), first, leads, rival)

    def fit_again(
        self,
        observe: Callable[[int], Observation],
        course: Course,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Course:
        """Fit every frame of a course to other silhouettes, from where it is: limbs that were found stay found."""

        def again(frame: int, fit: FrameFit | None) -> FrameFit | None:
            seen = observe(frame)
            if fit is None or seen.seen < 2:
                return None
            return self.solver.fit(seen, fit.pose, fit.latent, latent_steps=False, warm=True)

        fits = []
        with threadpool_limits(limits=1, user_api="blas"):
            for frame, fit in enumerate(course.fits):
                fits.append(again(frame, fit))
                if on_progress is not None:
                    on_progress(frame + 1, len(course.fits))
            return replace(course, fits=tuple(fits), rival=again(course.first, course.rival))

    def finish(
        self, observe: Callable[[int], Observation], course: Course, *, texture: FeatureTracks | None = None
    ) -> Track:
        """Look again at what the silhouettes contradict, lay all frames together, and judge them."""
        fits, first, lead = list(course.fits), course.first, course.lead
        with threadpool_limits(limits=1, user_api="blas"):
            if self.settings.restarts:
                tried: set[tuple[int, FrameFit]] = set()
                for _ in range(self.settings.repair_sweeps):
                    if not self._repair(observe, fits, tried):
                        break
                follow_across_jumps(self.solver, observe, fits)
                if course.rival is not None and fits[first] is not None:
                    contest = follow_rival(self.solver, observe, fits, first, course.rival, until_told=True)
                    lead = np.minimum(lead, contest.lead)
            if self.solver.points is not None:
                observe = self._place_points(self.solver.points, observe, fits)
            marks = NO_MARKS if texture is None else texture
            steady(self.solver, self._centres, observe, fits, marks, self.settings)
            return self._collect(observe, fits, first, lead)

    def _weigh_points(self, observe: Callable[[int], Observation], frames: int) -> None:
        """Take the say from names of marked points that are mostly wrong."""
        term = self.solver.points
        if term is not None:
            some = [observe(int(frame)).sightings for frame in np.unique(np.linspace(0, frames - 1, SOME).astype(int))]
            term.place(without_wrong(term.points, [seen for seen in some if seen is not None]))

    def _both_ways(
        self,
        observe: Callable[[int], Observation],
        fits: list[FrameFit | None],
        first: int,
        until: Callable[[int, FrameFit], bool],
        on_progress: Callable[[int, int], None] | None,
    ) -> None:
        """Fit frame after frame from the first one, onwards and back."""
        frames, done = len(fits), 1
        for way in (1, -1):
            self.limbs.forget()
            before: FrameFit | None = None
            current = fits[first]
            follower = Follower(self.solver, self.finder, self.limbs, self.settings, current)
            frame = first + way
            while 0 <= frame < frames:
                observation = observe(frame)
                fit = follower.next(observation, current, before)
                fits[frame] = fit
                if fit is not None and until(frame, fit):
                    break
                if fit is not None:
                    before, current = (current if fits[frame - way] is not None else None), fit
                else:
                    before = None
                done += 1
                if on_progress is not None:
                    on_progress(done, frames)
                frame += way

    def _start(
        self, observe: Callable[[int], Observation], frames: int, start: int | None, fits: list[FrameFit | None]
    ) -> tuple[int, float, FrameFit | None]:
        """Find the subject in the start frame, or in the best of a few frames seen by most cameras.

        Returns:
            The frame, by how much the fit there beats the best that is clearly different, and that one where it is not
            by enough.
        """
        if start is not None:
            if not 0 <= start < frames:
                raise InputError(f"start frame {start} is not one of the recording's {frames} frames")
            try:
                found = {start: self._rivals(observe(start))}
            except SolveError as error:
                raise InputError(f"frame {start}: {error}; choose another start frame") from None
            return self._chosen(start, found, fits)
        candidates = np.unique(np.linspace(0, frames - 1, min(frames, 24)).astype(int))
        seen = {int(frame): observe(int(frame)).seen for frame in candidates}
        best_seen = max(seen.values())
        if best_seen < 2:
            raise InputError(
                "no frame has a silhouette in two cameras; run `vivarig silhouettes` and look at its report"
            )
        good = [frame for frame in seen if seen[frame] == best_seen][:2]
        found = {frame: self._rivals(observe(frame)) for frame in good}
        return self._chosen(max(good, key=lambda frame: found[frame][0].agreement), found, fits)

    def _chosen(
        self, first: int, found: Mapping[int, list[FrameFit]], fits: list[FrameFit | None]
    ) -> tuple[int, float, FrameFit | None]:
        best, *others = found[first]
        fits[first] = best
        lead = best.score - others[0].score if others else 1.0
        return first, lead, others[0] if self.solver.posture is not None and lead < AMBIGUOUS else None

    def _from_guess(self, observation: Observation, guess: tuple[QuadPose, Floats]) -> FrameFit:
        """Fit the start frame from a pose given from elsewhere, and look for the subject where that fits badly."""
        fit = self.solver.fit(observation, *guess)
        if fit.agreement < self.settings.believed and observation.seen >= 2:
            fit = better(fit, self._found(observation)[0])
        return fit

    def _found(self, observation: Observation) -> tuple[FrameFit, float]:
        """Look for the subject in a frame, rivals mended limb by limb; see `Finder.find`."""
        best, *others = self._rivals(observation)
        return best, best.score - others[0].score if others else 1.0

    def _rivals(self, observation: Observation) -> list[FrameFit]:
        """Look for the subject in a frame: the best fit, and the best clearly different one; see `Finder.rivals`."""
        return self.finder.rivals(observation, mend=self.limbs.mended if self.settings.restarts else None)

    def sought_again(
        self, observation: Observation, guess: tuple[QuadPose, Floats]
    ) -> tuple[FrameFit, FrameFit | None]:
        """Look for the subject in a frame where a pose is known that hardly beat its rivals, fitted with another body.

        Returns:
            The best fit, and the best that is clearly different, None where there is none.
        """
        with threadpool_limits(limits=1, user_api="blas"):
            known = self.solver.fit(observation, *guess)
            best, *others = sorted([*self._rivals(observation), known], key=lambda fit: -fit.score)
        apart = 1.5 * ALIKE * self.solver.unit
        return best, next((one for one in others if one.pose.distance(best.pose) > apart), None)

    def _look_again(
        self,
        observe: Callable[[int], Observation],
        fits: list[FrameFit | None],
        first: int,
        lead: float,
        leads: Floats,
    ) -> None:
        """Where the start did not convince, look for the subject anew far from it, and follow what is better.

        ``lead`` is that of the start; the ``leads`` (T,) of the frames are lowered to that over what is found.
        """
        start = fits[first]
        if start is None or (start.agreement >= self.settings.believed and lead >= self.settings.sure):
            return
        for share in self.settings.again:
            frame = round(share * (len(fits) - 1))
            known = fits[frame]
            if known is None or abs(frame - first) < 10:
                continue
            found = self._found(observe(frame))[0]
            if found.pose.distance(known.pose) >= DIFFERS * self.solver.unit:
                contest = follow_rival(self.solver, observe, fits, frame, found, until_told=True)
                np.minimum(leads, contest.lead, out=leads)

    def _compare(
        self,
        observe: Callable[[int], Observation],
        fits: list[FrameFit | None],
        others: Mapping[int, tuple[QuadPose, Floats]],
    ) -> None:
        """Follow what was found in other frames by themselves, where the track says something else there."""
        for frame, guess in others.items():
            known = fits[frame]
            if known is not None and known.pose.distance(guess[0]) > DIFFERS * self.solver.unit:
                rival = self.solver.fit(observe(frame), *guess, latent_steps=False)
                if known.pose.distance(rival.pose) > DIFFERS * self.solver.unit:
                    follow_rival(self.solver, observe, fits, frame, rival)

    def _repair(
        self,
        observe: Callable[[int], Observation],
        fits: list[FrameFit | None],
        tried: set[tuple[int, FrameFit]],
    ) -> bool:
        """Try badly fitted frames again from their neighbours, in both directions; say whether anything improved.

        ``tried`` are frames and the fits that they were tried from: from these they would end as they did.
        """
        known = [fit.agreement for fit in fits if fit is not None]
        usual = float(np.median(known))
        improved = self.limbs.repair(observe, fits)
        order = range(len(fits))
        for way, frames in ((1, order), (-1, reversed(order))):
            for frame in frames:
                neighbour = frame - way
                fit = fits[frame]
                if not 0 <= neighbour < len(fits) or fit is None or fits[neighbour] is None:
                    continue
                other = fits[neighbour]
                assert other is not None
                if fit.agreement > usual - self.settings.retry or other.agreement < fit.agreement:
                    continue
                # Outlines that lie close are those of the right limbs: from a neighbour such a frame would end where it
                # is, a little further on.
                close = self.solver.posture is not None and self.solver.lies_close(fit)
                start = fit if close else other
                if (frame, start) in tried:
                    continue
                tried.add((frame, start))
                kept = better(fit, self._tried_again(observe(frame), start, close=close) or fit)
                if kept is not fit:
                    fits[frame] = kept
                    improved = True
        return improved

    def _tried_again(self, observation: Observation, start: FrameFit, *, close: bool) -> FrameFit | None:
        """Fit a frame from a fit: its own where outlines lie close, a neighbour's where they do not."""
        if close:
            return self.solver.glance(observation, start.pose, start.latent)
        return self.solver.fit(observation, start.pose, start.latent, latent_steps=False, warm=True)

    def _place_points(
        self, term: PointTerm, observe: Callable[[int], Observation], fits: list[FrameFit | None]
    ) -> Callable[[int], Observation]:
        """Find where the marked points are, on the body and in space, and fit all frames once more to that.

        Returns:
            What gives the silhouettes of a frame, with the points as they are known now.
        """
        if not np.isfinite(term.points.sigma).any():
            return observe
        solver = self.solver
        frames: list[Placed | None] = []
        for frame, fit in enumerate(fits):
            seen = None if fit is None else observe(frame).sightings
            frames.append(None if fit is None or seen is None else Placed(fit.pose, seen))
        some = [one for one in frames if one is not None]
        term.place(place_points(solver.cage_rig, term.points, some, solver.camera_rows, solver.unit))
        told = steadied(solver.cage_rig, term.points, frames, solver.camera_rows, solver.unit)

        def look(frame: int) -> Observation:
            return replace(observe(frame), sightings=told[frame])

        for frame, fit in enumerate(fits):
            if fit is not None and told[frame] is not None:
                trial = solver.fit(look(frame), fit.pose, fit.latent, latent_steps=False, last_steps=LAST_STEPS)
                if trial.agreement > fit.agreement - MAY_FALL:
                    fits[frame] = trial
        return look

    def _collect(
        self, observe: Callable[[int], Observation], fits: list[FrameFit | None], first: int, lead: Floats
    ) -> Track:
        count, quads = len(fits), len(self.solver.cage_rig.quads)
        views = len(fits[first].overlap)  # type: ignore[union-attr]
        rotations = np.full((count, quads, 3, 3), np.nan)
        centres = np.full((count, quads, 3), np.nan)
        latent = np.full((count, self.solver.prior.latent_dim), np.nan)
        overlap = np.full((count, views), np.nan)
        residual, variance, departure = (np.full(count, np.nan) for _ in range(3))
        for frame, fit in enumerate(fits):
            if fit is None:
                continue
            rotations[frame], centres[frame], latent[frame] = fit.pose.rotations, fit.pose.centres, fit.latent
            overlap[frame], residual[frame] = fit.overlap, fit.residual
            variance[frame], departure[frame] = fit.variance, fit.departure
        names = self.limbs.evidence.limbs.names
        limits = limits_of(names)
        trust, reason = judge_track(
            overlap, departure, centres, lead, unit=self.solver.unit, poor=limits.poor, fall=limits.fall
        )
        record = self.limbs.record(observe, fits)
        limb_trust, limb_reason = judge_limbs(record, unit=self.solver.unit, limits=limits)
        trust, reason = frames_with_limbs(trust, reason, limb_trust, limb_reason, names)
        seen = np.isfinite(overlap).sum(axis=1)
        agreement = np.where(seen > 0, np.nansum(overlap, axis=1) / np.maximum(seen, 1), np.nan)
        return Track(
            rotations, centres, latent, overlap, agreement, residual, variance, departure, trust, reason,
            names, record, limb_trust, limb_reason, first, lead, tuple(fits), self._point_status(observe, count),
        )  # fmt: skip

    def _point_status(self, observe: Callable[[int], Observation], count: int) -> Ints | None:
        if self.solver.points is None:
            return None
        marks = [observe(frame).sightings for frame in range(count)]
        shape = next((seen.status.shape for seen in marks if seen is not None), (0, 0))
        return np.array([np.zeros(shape, np.int64) if seen is None else seen.status for seen in marks])
