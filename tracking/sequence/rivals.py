"""A second hypothesis of a sequence: another pose found in one frame is followed from there, as long as it pays.

A heading turned round or a head on its side explains one frame almost as well as the truth; a few frames on, the motion
tells. So the rival is followed both ways until it meets the poses known, or has been worse for a while; of what it went
through, the stretch with the greatest gain in score takes their place. Where the poses known jump from one frame to the
next, one side of the jump is wrong (arms that changed sides, say, and came back): each side is followed into the other.

How sure a hypothesis is follows from the same: a rival that comes back to the known poses on both sides is none of
theirs beyond, and leaves a doubt in the frames between alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from calibration.foundation.arrays import Floats
from tracking.fitting.solver import FrameFit, FrameSolver
from tracking.observations.contours import Observation
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.trust import AMBIGUOUS, DIFFERS

__all__ = ["Contest", "Foray", "follow_across_jumps", "follow_rival", "stays_better"]

MET = 15.0
"""A rival whose quads lie this near to the known ones has met them, thousandths of the size."""
PATIENCE = 12
"""Frames over which a rival may be worse on average before it is given up."""
DEBT, SMALL_DEBT = 0.04, 0.01
"""Score that a rival may owe, summed over the frames since it was best: what one arm in the wrong place costs a frame.
Without this limit 60 frames of a real mouse end the same, with twice the fits. And across the jumps of a rodent, whose
limbs are smaller: of 58 such rivals those that were kept owed 0.005 at most until then, and those that lost went on for
eight frames to owe 0.04."""
WORTH = 0.002
"""Overlap, mean of these frames, by which a neighbour's pose must be better for a part to be tracked anew from it."""
JUMP = 60.0
"""Change of a quad's displacement from one frame to the next that is a jump, thousandths of the size."""


@dataclass(frozen=True, eq=False)
class Contest:
    """What became of a rival that was followed beside the known poses.

    Attributes:
        gain: mean gain in score over the frames that it went through, negative where it lost.
        lead: (T,) by how much what was kept of the two beat the other, in the mean of the frames in which it was kept;
            1 where they are the same hypothesis, most of the body being where the other has it.
    """

    gain: float
    lead: Floats


def follow_rival(
    solver: FrameSolver,
    observe: Callable[[int], Observation],
    fits: list[FrameFit | None],
    frame: int,
    rival: FrameFit,
    *,
    debt: float = DEBT,
    until_told: bool = False,
) -> Contest:
    """Follow another hypothesis from a frame and put it in the place of what is worse.

    Args:
        solver: of the sequence.
        observe: gives the silhouettes of a frame.
        fits: what is known; changed where the rival is better.
        frame: where the rival was found.
        rival: its fit there.
        debt: score that it may owe until it is given up.
        until_told: how sure the known poses are is asked, too: while most of the body is elsewhere, it is not given up
            before it has lost by as much as tells it from them.
    """
    known = fits[frame]
    assert known is not None
    gain = rival.score - known.score
    paths = [_followed(solver, observe, fits, frame, rival, way, debt, until_told) for way in (1, -1)]
    better = [_best_prefix(path.gains) for path in paths]
    taken = gain + sum(sums for _, sums in better) > 0
    lead = np.ones(len(fits))
    if any(path.reach > 0 for path in paths) or _is_rival(rival, known, solver):
        _lower(lead, frame, gain, paths, [count for count, _ in better] if taken else None)
    if taken:
        fits[frame] = rival
        for path, (count, _) in zip(paths, better, strict=True):
            for index, fit in path.steps[:count]:
                fits[index] = fit
    return Contest(float(np.mean([gain, *paths[0].gains, *paths[1].gains])), lead)


def _lower(lead: Floats, frame: int, gain: float, paths: Sequence[_Path], taken: Sequence[int] | None) -> None:
    """Lower the lead (T,) around the frame of a rival to what was kept of the two had over the other.

    ``taken``: how many of its frames are taken each way, and its own; None where nothing is.
    """
    onwards, back = paths
    if taken is None:
        lead[frame - back.reach : frame + onwards.reach + 1] = abs(np.mean([gain, *onwards.gains, *back.gains]))
        return
    won = abs(float(np.mean([gain, *onwards.gains[: taken[0]], *back.gains[: taken[1]]])))
    lead[frame - taken[1] : frame + taken[0] + 1] = won
    for path, count, way in zip(paths, taken, (1, -1), strict=True):
        lost = path.gains[count:]
        for step in range(count + 1, path.reach + 1):
            lead[frame + way * step] = abs(np.mean(lost)) if lost else won


def _is_rival(one: FrameFit, other: FrameFit, solver: FrameSolver) -> bool:
    """Whether a fit has the middle one of the quads elsewhere than another: tail and feet alone may be anywhere."""
    away = np.linalg.norm(one.pose.centres - other.pose.centres, axis=1)
    return float(np.median(away)) > DIFFERS * solver.unit


def follow_across_jumps(
    solver: FrameSolver, observe: Callable[[int], Observation], fits: list[FrameFit | None]
) -> bool:
    """Follow both sides of every jump into the other, and keep what is better; say whether anything changed.

    Args:
        solver: of the sequence.
        observe: gives the silhouettes of a frame.
        fits: what is known; changed where a side of a jump explains the frames of the other better.
    """
    changed = False
    debt = DEBT if solver.posture is None else SMALL_DEBT
    for before in _jumps(fits, JUMP * solver.unit):
        for here, there in ((before, before + 1), (before + 1, before)):
            known, other = fits[here], fits[there]
            assert known is not None and other is not None
            rival = solver.fit(observe(here), other.pose, other.latent, latent_steps=False, warm=True)
            if rival.pose.distance(known.pose) < MET * solver.unit:
                continue
            follow_rival(solver, observe, fits, here, rival, debt=debt)
            if fits[here] is rival:
                changed = True
                break
    return changed


def _jumps(fits: list[FrameFit | None], far: float) -> list[int]:
    """Frames after which a quad's displacement differs by more than ``far``, mm, from those before and after it."""
    centres = [None if fit is None else fit.pose.centres for fit in fits]
    steps = [None if a is None or b is None else b - a for a, b in pairwise(centres)]
    jumps = []
    for index, step in enumerate(steps):
        beside = [steps[k] for k in (index - 1, index + 1) if 0 <= k < len(steps)]
        known = [other for other in beside if other is not None]
        if step is not None and known:
            away = np.linalg.norm(step - np.mean(known, axis=0), axis=1).max()
            if away > far and all(np.abs(other).max() < np.abs(step).max() for other in known):
                jumps.append(index)
    return jumps


def stays_better(
    solver: FrameSolver,
    observe: Callable[[int], Observation],
    poses: Sequence[QuadPose],
    agreement: Floats,
    first: int,
    way: int,
    guess: tuple[QuadPose, Floats],
) -> bool:
    """Follow a guess along some frames of a known track: whether it stays apart from it and explains more.

    Where it comes back to the known track, or explains less, tracking all frames anew from it would change nothing.

    Args:
        solver: of the sequence.
        observe: gives the silhouettes of a frame.
        poses: (T,) quads of the known track. agreement: (T,) its overlap, NaN where it has none.
        first: frame to begin at. way: 1 onwards, -1 backwards.
        guess: quads and latent point there.
    """
    pose, latent = guess
    gains: list[float] = []
    index = first
    while 0 <= index < len(poses) and len(gains) < PATIENCE:
        if not np.isfinite(agreement[index]):
            return True
        fit = solver.fit(observe(index), pose, latent, latent_steps=False, warm=True)
        if fit.pose.distance(poses[index]) < MET * solver.unit:
            return False
        gains.append(fit.agreement - float(agreement[index]))
        pose, latent = fit.pose, fit.latent
        index += way
    return not gains or float(np.mean(gains)) > WORTH


class Foray:
    """A track that is followed into a known one, compared with it frame by frame."""

    def __init__(self, poses: Sequence[QuadPose], agreement: Floats, unit: float) -> None:
        """Prepare; ``poses`` and ``agreement`` (T,) are those of the known track, ``unit`` is that of the solver."""
        self._poses, self._agreement, self._met = poses, np.nan_to_num(agreement), MET * unit
        self._gains: list[float] = []

    def ends(self, frame: int, fit: FrameFit) -> bool:
        """Take in the next frame; say whether it has met the known track, or explained less for a while."""
        if fit.pose.distance(self._poses[frame]) < self._met:
            return True
        self._gains.append(fit.agreement - float(self._agreement[frame]))
        return len(self._gains) >= PATIENCE and float(np.mean(self._gains[-PATIENCE:])) < 0

    @property
    def taken(self) -> int:
        """How many of the frames it went through are to take the place of the known ones."""
        return _best_prefix(self._gains)[0]


@dataclass(frozen=True, eq=False)
class _Path:
    """Where a rival went, one way.

    Attributes:
        steps: frame and fit, one after the other. gains: in score, of each.
        reach: how many frames on it was still another hypothesis; to the end of the sequence where it did not come
            back to the known poses.
    """

    steps: list[tuple[int, FrameFit]]
    gains: list[float]
    reach: int


def _followed(
    solver: FrameSolver,
    observe: Callable[[int], Observation],
    fits: list[FrameFit | None],
    frame: int,
    rival: FrameFit,
    way: int,
    debt: float,
    until_told: bool,
) -> _Path:
    """Follow a rival one way, until it meets the known poses, or is given up."""
    steps: list[tuple[int, FrameFit]] = []
    gains: list[float] = []
    current, start = rival, fits[frame]
    assert start is not None
    gain = rival.score - start.score
    owed, reach, apart = max(-gain, 0.0), 0, _is_rival(rival, start, solver)
    index, met = frame + way, False
    while 0 <= index < len(fits):
        known = fits[index]
        lost = owed > debt or (len(gains) >= PATIENCE and np.mean(gains[-PATIENCE:]) < 0)
        if known is None or (lost and not (until_told and apart and not _told([gain, *gains]))):
            break
        current = solver.fit(observe(index), current.pose, current.latent, latent_steps=False, warm=True)
        if current.pose.distance(known.pose) < MET * solver.unit:
            met = True
            break
        steps.append((index, current))
        gains.append(current.score - known.score)
        owed = max(owed - gains[-1], 0.0)
        apart = _is_rival(current, known, solver)
        reach = len(steps) if apart else reach
        index += way
    if apart and not met:
        reach = len(fits) - 1 - frame if way > 0 else frame
    return _Path(steps, gains, reach)


def _told(gains: list[float]) -> bool:
    """Whether a rival has lost clearly, in the mean of the frames since it was best."""
    return float(np.mean(gains[_best_prefix(gains)[0] :] or [0.0])) <= -AMBIGUOUS


def _best_prefix(gains: list[float]) -> tuple[int, float]:
    """Return how many of the first gains to take so that their sum is greatest, and that sum."""
    sums = np.concatenate([[0.0], np.cumsum(gains)])
    best = int(np.argmax(sums))
    return best, float(sums[best])
