"""A neighbour's pose is followed into a part only where that promises more, and for as long as it explains more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from calibration.foundation.arrays import Floats
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.rivals import MET, PATIENCE, WORTH, Foray, follow_rival, stays_better

FRAMES = 3 * PATIENCE


@dataclass
class Follower:
    """Stands for a solver: a guess comes nearer to x = 0, where the known track is, by a share per frame."""

    share: float
    agreement: float
    unit: float = 1.0
    fitted: int = 0

    def fit(self, observation: int, pose: QuadPose, latent: Floats, **settings: Any) -> Any:
        self.fitted += 1
        return FollowedFit(QuadPose(pose.rotations, self.share * pose.centres), latent, self.agreement)


@dataclass
class FollowedFit:
    pose: QuadPose
    latent: Floats
    agreement: float

    @property
    def score(self) -> float:
        return self.agreement


def at(x: float) -> QuadPose:
    return QuadPose(np.eye(3)[None], np.array([[x, 0.0, 0.0]]))


@pytest.mark.parametrize(
    ("share", "gain", "worth_it", "fits"),
    [
        (1.0, 2.0 * WORTH, True, PATIENCE),  # apart, and better
        (1.0, 0.5 * WORTH, False, PATIENCE),  # apart, and hardly better
        (0.5, 2.0 * WORTH, False, 3),  # comes back to the known track
    ],
)
@pytest.mark.parametrize(("first", "way"), [(0, 1), (FRAMES - 1, -1)])
def test_what_comes_back_or_explains_no_more_is_not_followed_on(
    share: float, gain: float, worth_it: bool, fits: int, first: int, way: int
) -> None:
    solver = Follower(share, 0.8 + gain)
    known, agreement = [at(0.0)] * FRAMES, np.full(FRAMES, 0.8)
    guess = (at(100.0), np.zeros(2))
    assert stays_better(solver, lambda frame: frame, known, agreement, first, way, guess) is worth_it  # type: ignore[arg-type, return-value]
    assert solver.fitted == fits


def test_what_was_not_tracked_is_tracked_from_the_neighbour() -> None:
    solver = Follower(1.0, 0.1)
    agreement = np.full(FRAMES, np.nan)
    assert stays_better(solver, lambda frame: frame, [at(0.0)] * FRAMES, agreement, 0, 1, (at(9.0), np.zeros(2)))  # type: ignore[arg-type, return-value]


def test_a_foray_ends_where_it_meets_the_known_track() -> None:
    foray = Foray([at(0.0)] * FRAMES, np.full(FRAMES, 0.8), 1.0)
    away = [100.0, 50.0, 2.0 * MET, 0.5 * MET]
    assert [foray.ends(k, FollowedFit(at(x), np.zeros(2), 0.81)) for k, x in enumerate(away)] == [False] * 3 + [True]  # type: ignore[arg-type]
    assert foray.taken == 3


def test_a_foray_ends_where_it_has_explained_less_for_a_while_and_what_was_better_is_taken() -> None:
    foray = Foray([at(0.0)] * FRAMES, np.full(FRAMES, 0.8), 1.0)
    agreement = [0.82] * 5 + [0.785] * FRAMES
    ends = [foray.ends(k, FollowedFit(at(99.0), np.zeros(2), agreement[k])) for k in range(FRAMES)]  # type: ignore[arg-type]
    assert ends.index(True) == PATIENCE - 1
    assert foray.taken == 5


def test_what_the_known_track_has_not_is_taken() -> None:
    foray = Foray([at(0.0)] * FRAMES, np.full(FRAMES, np.nan), 1.0)
    assert not any(foray.ends(k, FollowedFit(at(99.0), np.zeros(2), 0.3)) for k in range(FRAMES))  # type: ignore[arg-type]
    assert foray.taken == FRAMES


@pytest.mark.parametrize(
    ("share", "lost", "until_told", "reached", "followed"),
    [
        (1.0, 0.001, True, (0, FRAMES), FRAMES - 1),  # never told from the known track: to both ends
        (1.0, 0.001, False, (0, FRAMES), 2 * PATIENCE),  # the same, given up
        (1.0, 0.03, True, (0, FRAMES), 2),  # told at once
        (0.6, 0.001, True, (9, 16), 12),  # back on the known track: beyond it is no other hypothesis
        (0.6, 0.001, False, (9, 16), 12),
    ],
)
def test_how_long_a_rival_is_one(
    share: float, lost: float, until_told: bool, reached: tuple[int, int], followed: int
) -> None:
    solver = Follower(share, 0.8 - lost)
    fits: list[Any] = [FollowedFit(at(0.0), np.zeros(2), 0.8) for _ in range(FRAMES)]
    rival: Any = FollowedFit(at(300.0), np.zeros(2), 0.8 - lost)
    contest = follow_rival(solver, lambda frame: frame, fits, 12, rival, until_told=until_told)  # type: ignore[arg-type, return-value]
    assert contest.gain == pytest.approx(-lost) and solver.fitted == followed
    assert np.flatnonzero(contest.lead < 1.0).tolist() == list(range(*reached))
    assert contest.lead.min() == pytest.approx(lost)


def test_a_rival_that_wins_some_frames_is_as_sure_there_as_it_is_better_and_so_is_what_is_kept_beside() -> None:
    """Better by 0.03 up to frame 15, worse by 0.02 from there on: followed until that is told."""
    known = [FollowedFit(at(0.0), np.zeros(2), 0.77 if frame < 16 else 0.82) for frame in range(FRAMES)]
    fits: list[Any] = list(known)
    rival: Any = FollowedFit(at(300.0), np.zeros(2), 0.8)
    contest = follow_rival(Follower(1.0, 0.8), lambda frame: frame, fits, 12, rival, until_told=True)  # type: ignore[arg-type, return-value]
    assert [one is not other for one, other in zip(fits, known, strict=True)] == [True] * 16 + [False] * (FRAMES - 16)
    assert contest.lead == pytest.approx(np.where(np.arange(FRAMES) < 16, 0.03, 0.02))


def test_what_differs_in_few_quads_is_no_rival() -> None:
    known, tail = (QuadPose(np.tile(np.eye(3), (3, 1, 1)), np.zeros((3, 3))) for _ in range(2))
    tail.centres[2] = 400.0
    fits: list[Any] = [FollowedFit(known, np.zeros(2), 0.8) for _ in range(FRAMES)]
    solver = Follower(1.0, 0.799)
    contest = follow_rival(solver, lambda frame: frame, fits, 3, FollowedFit(tail, np.zeros(2), 0.799), until_told=True)  # type: ignore[arg-type, return-value]
    assert (contest.lead == 1.0).all() and contest.gain == pytest.approx(-0.001)
