"""The next frame of a pass: from where its neighbour ended, a little further along its motion.

Where the silhouettes' overlap falls below the usual, the frame is tried again from the manifold, from training poses
near the last root and in the end from nothing; what overlaps best is kept. Where an animal turns quickly, or a view is
cut out badly, a stretch of frames overlaps less whatever is tried. There attempts that brought nothing are repeated
after one frame, two, four and so on: as often as before where they help, seldom where they do not, and never given up.
"""

from __future__ import annotations

from itertools import islice

import numpy as np

from calibration.geometry.transforms import rotation_from_vector, vector_from_rotation
from tracking.fitting.initialisation import Finder
from tracking.fitting.solver import FrameFit, FrameSolver
from tracking.observations.contours import Observation
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.limb_mending import LimbMender, better
from tracking.sequence.settings import TrackerSettings

__all__ = ["Follower", "SecondAttempts"]

LOOKED_AT = 40
"""Frames whose median overlap is the usual one."""
LONGEST = 8
"""Frames, at most, between two attempts."""


class SecondAttempts:
    """The overlap that is usual on the way through a sequence, and when to try a frame again."""

    def __init__(self, fall: float) -> None:
        """Prepare; ``fall`` of the overlap below the usual asks for a second attempt."""
        self._fall = fall
        self._seen: list[float] = []
        self._pause, self._left, self._least = 0, 0, np.inf

    def saw(self, overlap: float) -> None:
        """Take in the overlap that a frame ended with."""
        self._seen.append(overlap)

    @property
    def usual(self) -> float:
        """Overlap of the last frames, NaN before the first."""
        return float(np.median(self._seen[-LOOKED_AT:])) if self._seen else float("nan")

    def asked(self, overlap: float) -> bool:
        """Whether an overlap has fallen below the usual."""
        return overlap < self.usual - self._fall

    def due(self, overlap: float) -> bool:
        """Whether a frame that has fallen is to be tried again: not in the pause after attempts in vain, unless it fell
        further than there; call it once a frame."""
        if not self.asked(overlap):
            self._pause, self._left, self._least = 0, 0, np.inf
            return False
        self._left -= 1
        return self._left < 0 or overlap < self._least - self._fall

    def tried(self, before: float, after: float) -> None:
        """Take in what an attempt brought: in vain is less than half of the fall that asks for one."""
        vain = after - before < 0.5 * self._fall
        self._pause = min(max(2 * self._pause, 1), LONGEST) if vain else 0
        self._left, self._least = self._pause, after


class Follower:
    """Fits frame after frame in one direction."""

    def __init__(
        self, solver: FrameSolver, finder: Finder, limbs: LimbMender, settings: TrackerSettings, first: FrameFit | None
    ) -> None:
        """Prepare to go on from the first frame's fit."""
        self.solver, self.finder, self.limbs, self.settings = solver, finder, limbs, settings
        self._attempts = SecondAttempts(settings.retry)
        if first is not None:
            self._attempts.saw(first.agreement)

    def next(self, observation: Observation, current: FrameFit | None, before: FrameFit | None) -> FrameFit | None:
        """Fit the next frame from the last one and the one before it; None where less than two cameras see anything."""
        if observation.seen < 2 or current is None:
            return None
        fit = self._fitted(observation, current, before)
        self._attempts.saw(fit.agreement)
        return fit

    def _fitted(self, observation: Observation, current: FrameFit, before: FrameFit | None) -> FrameFit:
        start, attempts, usual = self._predict(current, before), self._attempts, self._attempts.usual
        best = None
        # Not of people, whose arms are quicker: what is saved here, limbs that are looked for cost again.
        if self.solver.posture is not None and self.solver.lies_close(current):
            best = self.solver.glance(observation, start, current.latent)
        if best is None or attempts.asked(best.agreement):
            fit = self.solver.fit(observation, start, current.latent, latent_steps=False, warm=True)
            best = fit if best is None else better(best, fit)
        if not self.settings.restarts:
            return best
        if attempts.due(best.agreement):
            first, best = best, self._again(observation, start, current, best, usual)
            attempts.tried(first.agreement, best.agreement)
        if best.agreement < usual - self.settings.search:
            found, _ = self.finder.find(observation, keep=8, finish=2)
            best = better(best, found)
        return self.limbs.mend_next(observation, best, (before, current))

    def _again(
        self, observation: Observation, start: QuadPose, current: FrameFit, best: FrameFit, usual: float
    ) -> FrameFit:
        """Try a frame that overlaps less than usual from the manifold, and from training poses where it is far less."""
        for other in (
            self.solver.fit(observation, start, current.latent),
            self.solver.fit(observation, current.pose, current.latent, latent_steps=False),
        ):
            best = better(best, other)
        if best.agreement < usual - self.settings.restart:
            for proposal in islice(self.finder.around(observation, best.pose, headings=(0.0, 0.35, -0.35)), 3):
                best = better(best, self.solver.fit(observation, proposal.pose, proposal.latent))
        return best

    def _predict(self, current: FrameFit, before: FrameFit | None) -> QuadPose:
        share = self.settings.velocity
        if before is None or share == 0.0:
            return current.pose
        turn = vector_from_rotation(current.pose.rotations @ before.pose.rotations.transpose(0, 2, 1))
        return QuadPose(
            rotation_from_vector(share * turn) @ current.pose.rotations,
            current.pose.centres + share * (current.pose.centres - before.pose.centres),
        )
