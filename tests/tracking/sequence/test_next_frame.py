"""The next frame of a pass: how much is tried, and when it is not tried again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.next_frame import LONGEST, Follower, SecondAttempts
from tracking.sequence.settings import TrackerSettings

FALL = 0.01


def followed(overlaps: list[float], gain: float) -> list[int]:
    """Frames that are tried again, where each attempt gains so much."""
    attempts, again = SecondAttempts(FALL), []
    for _ in range(60):
        attempts.saw(0.97)
    for frame, overlap in enumerate(overlaps):
        if attempts.due(overlap):
            again.append(frame)
            attempts.tried(overlap, overlap + gain)
    return again


def test_attempts_in_vain_become_rare_and_those_that_help_do_not() -> None:
    assert followed([0.965] * 20, 0.0) == []
    assert followed([0.95] * 12, 0.5 * FALL) == list(range(12))
    vain = followed([0.95] * 60, 0.1 * FALL)
    assert vain[:5] == [0, 2, 5, 10, 19]
    assert set(np.diff(vain[4:])) == {LONGEST + 1}


def test_a_frame_that_falls_further_is_tried_at_once_and_a_good_one_ends_the_pause() -> None:
    assert followed([0.95, 0.95, 0.95, 0.95, 0.93], 0.0) == [0, 2, 4]
    assert followed([0.95, 0.97, 0.95], 0.0) == [0, 2]
    assert followed([0.95, 0.95, 0.95, 0.97, 0.95, 0.95, 0.95], 0.0) == [0, 2, 4, 6]


class Fit:
    """A fit as far as a follower looks at it."""

    def __init__(self, score: float) -> None:
        self.agreement = self.score = score
        self.pose, self.latent = QuadPose(np.eye(3)[None], np.zeros((1, 3))), np.zeros(2)


@pytest.mark.parametrize(
    ("rodent", "close", "glanced", "asked", "kept"),
    [
        (True, True, 0.97, ["glance"], 0.97),  # one look does
        (True, True, 0.90, ["glance", "fit"], 0.968),  # not what is usual: fitted, and the better one kept
        (True, True, None, ["glance", "fit"], 0.968),
        (True, False, 0.97, ["fit"], 0.968),  # outlines of the frame before were off
        (False, True, 0.97, ["fit"], 0.968),  # a person's arms are too quick
    ],
)
def test_a_rodent_whose_outlines_lie_close_is_glanced_at(
    rodent: bool, close: bool, glanced: float | None, asked: list[str], kept: float
) -> None:
    did: list[str] = []

    def glance(*about: Any) -> Any:
        did.append("glance")
        return None if glanced is None else Fit(glanced)

    def fit(*about: Any, **options: Any) -> Any:
        did.append("fit")
        return Fit(0.968)

    solver: Any = SimpleNamespace(
        glance=glance, fit=fit, posture=object() if rodent else None, lies_close=lambda fit: close
    )
    limbs: Any = SimpleNamespace(mend_next=lambda observation, fit, before: fit)
    first: Any = Fit(0.97)
    finder: Any = None
    follower = Follower(solver, finder, limbs, TrackerSettings(), first)
    found = follower.next(SimpleNamespace(seen=2), first, None)  # type: ignore[arg-type]
    assert did == asked
    assert found is not None and found.agreement == kept
