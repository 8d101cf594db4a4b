"""A neighbour that fits better is followed into a part, and takes the place of the frames that it went through."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pytest
from track_parts import FRAMES, part, truth

from calibration.foundation.spans import Span
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.track import Course
from tracking.sequence.track_file import open_track
from tracking.sequence.track_joining import TrackPart
from vivarig.jobs.cutting import MARGIN
from vivarig.track_stage.track import _followed_in, _Foray, _lead_at, _take

ASTRAY, WRONG = 100.0, 14
"""How far the part's own track is beside the truth, mm, and in how many frames."""
WIDE = Span(0, FRAMES)


def at(row: int) -> QuadPose:
    return QuadPose(np.tile(np.eye(3), (3, 1, 1)), truth()[row])


class Tracker:
    """Stands for a tracker that always finds the truth; an observation is the row itself."""

    def __init__(self) -> None:
        self.solver = SimpleNamespace(unit=1.0, fit=self.fit)

    def fit(self, row: int, pose: QuadPose, latent: Any, **settings: Any) -> Any:
        return SimpleNamespace(pose=at(row), latent=latent, agreement=0.95)

    def follow(
        self, observe: Any, frames: int, *, start: int, guess: Any, until: Callable[[int, Any], bool] | None = None
    ) -> Course:
        fits: list[Any] = [None] * frames
        fits[start] = self.fit(start, *guess)
        for way in (1, -1):
            row = start + way
            while 0 <= row < frames:
                fits[row] = self.fit(row, *guess)
                if until is not None and until(row, fits[row]):
                    break
                row += way
        return Course(tuple(fits), start, np.ones(frames))


def astray(path: Path, rows: slice) -> TrackPart:
    """Write a part of all frames that is beside the truth in some of them."""
    part(path, 0, FRAMES, overlap=0.8, lead=0.2)
    with h5py.File(path, "r+") as file:
        file["centres"][rows] += ASTRAY
    return TrackPart(path, 0, 0, FRAMES)


def followed(here: TrackPart, frame: int, way: int) -> _Foray | None:
    tracker: Any = Tracker()
    look: Any = int
    return _followed_in(tracker, look, here, WIDE, frame, way, (at(frame), np.zeros(2)))


@pytest.mark.parametrize(
    ("frame", "way", "wrong", "taken", "frames"),
    [
        (1, 1, slice(0, WRONG), Span(0, WRONG), Span(0, WRONG + MARGIN)),
        (FRAMES - 2, -1, slice(FRAMES - WRONG, FRAMES), Span(FRAMES - WRONG, FRAMES), Span(2, FRAMES)),
        (1, 1, slice(0, FRAMES), WIDE, WIDE),
    ],
)
def test_it_is_followed_until_both_agree(
    tmp_path: Path, frame: int, way: int, wrong: slice, taken: Span, frames: Span
) -> None:
    foray = followed(astray(tmp_path / "here.h5", wrong), frame, way)
    assert foray is not None and foray.taken == taken and foray.frames == frames
    assert (
        len(foray.course.fits) == len(foray.course.lead) == len(frames) and foray.course.first == frame - frames.first
    )
    for row, fit in zip(range(frames.first, frames.stop), foray.course.fits, strict=True):
        assert fit is not None and np.array_equal(fit.pose.centres, truth()[row])


def test_what_agrees_soon_is_left_as_it_is(tmp_path: Path) -> None:
    assert followed(astray(tmp_path / "here.h5", slice(0, 5)), 1, 1) is None


def test_a_part_that_tracked_nothing_is_taken_as_a_whole() -> None:
    foray = followed(TrackPart(None, 0, 0, FRAMES), 1, 1)
    assert foray is not None and foray.taken == foray.frames == WIDE


@pytest.mark.parametrize(
    ("taken", "start"),
    [(Span(0, WRONG), 3), (Span(2, FRAMES), 1), (Span(6, 9), 1)],
)
def test_the_rest_stays_as_it_was(tmp_path: Path, taken: Span, start: int) -> None:
    """A part whose own start is among the frames taken goes back to the neighbour's."""
    here = astray(tmp_path / "here.h5", slice(0, FRAMES))
    frames = taken.widened(MARGIN, WIDE)
    window = part(tmp_path / "window.h5", frames.first, frames.stop, lead=0.7)
    foray = _Foray(frames, Course((), 0, np.ones(0)), taken)
    target = tmp_path / "here.h5"  # a part that was mended from its other side
    _take(target, window, foray, here, 3, WIDE)
    with open_track(target) as file:
        wanted = truth() + ASTRAY
        wanted[taken.first : taken.stop] -= ASTRAY
        assert np.array_equal(file.centres(), wanted)
        assert file.start_frame == start
        of_window = (wanted == truth()).all(axis=(1, 2))
        assert np.array_equal(file.lead(), np.where(of_window, 0.7, 0.2))
        assert np.array_equal(file.agreement(), np.where(of_window, 0.9, 0.8))


def test_what_a_neighbour_is_followed_from_is_as_sure_as_the_neighbour_is_there(tmp_path: Path) -> None:
    neighbour = TrackPart(part(tmp_path / "neighbour.h5", 2, 12, lead=0.7), 2, 2, 12)
    assert neighbour.path is not None
    with h5py.File(neighbour.path, "r+") as file:
        file["lead"][5:] = 0.001
    assert (_lead_at(neighbour, 6), _lead_at(neighbour, 7)) == (0.7, 0.001)
