"""A rival is given up when it owes too much; across the jumps of a rodent, whose limbs are small, earlier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from calibration.foundation.arrays import Floats
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.rivals import DEBT, SMALL_DEBT, follow_across_jumps

FRAMES, LOSS = 60, 0.0043


@dataclass(eq=False)
class Fit:
    pose: QuadPose
    latent: Floats
    score: float


@dataclass
class Solver:
    """Stands for a solver: what is fitted stays where it starts, and is worse than what is known by `LOSS` a frame."""

    posture: object | None
    unit: float = 1.0
    fitted: int = 0

    def fit(self, observation: int, pose: QuadPose, latent: Floats, **settings: Any) -> Fit:
        self.fitted += 1
        return Fit(pose, latent, 0.8 - LOSS)


@pytest.mark.parametrize(("posture", "debt"), [(None, DEBT), ("a rodent's", SMALL_DEBT)])
def test_both_sides_of_a_jump_are_followed_until_they_owe_too_much(posture: object | None, debt: float) -> None:
    solver = Solver(posture)
    places = [0.0] * (FRAMES // 2) + [500.0] * (FRAMES // 2)
    fits = [Fit(QuadPose(np.eye(3)[None], np.array([[x, 0.0, 0.0]])), np.zeros(2), 0.8) for x in places]
    known = list(fits)
    assert not follow_across_jumps(solver, lambda frame: frame, fits)  # type: ignore[arg-type, return-value]
    assert all(one is other for one, other in zip(fits, known, strict=True))
    # Each side: the rival itself, the frames until it owes more, and the frame across the jump, where it meets its own.
    assert solver.fitted == 2 * (1 + int(debt / LOSS) + 1)
