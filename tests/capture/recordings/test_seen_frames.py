"""Images that were decoded once are given to who asks again: the same bytes, and decoded where they are not there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from capture.backgrounds.background import spread_frames, spread_frames_beside
from capture.recordings import video
from capture.recordings.seen_frames import SeenFrames, lent
from capture.recordings.video import read_frames, write_video


@pytest.fixture
def film(tmp_path: Path, rng: np.random.Generator) -> Path:
    path = tmp_path / "a.mp4"
    frames = (np.clip(rng.normal(120, 30, (48, 64, 3)), 0, 255).astype(np.uint8) for _ in range(60))
    write_video(path, frames, 120.0, quality=4)
    return path


def test_frames_that_come_by_are_those_that_are_read(film: Path) -> None:
    stack, others = spread_frames_beside(film, 8, [3, 14, 57, 99])
    assert np.array_equal(stack, spread_frames(film, 8))
    assert sorted(others) == [3, 14, 57], "the film has no frame 99"
    for gray in (False, True):
        for index, image in read_frames(film, only=[3, 14, 57], gray=gray):
            assert np.array_equal(others[index][gray], image)
    assert np.array_equal(spread_frames_beside(film, 8, [3], gray=True)[0], spread_frames(film, 8, gray=True))


def test_lent_images_are_given_in_place_of_decoding(film: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = dict(read_frames(film, only=[5, 31, 44]))
    grey = dict(read_frames(film, only=[31], gray=True))
    decoded: list[int] = []
    really = video._decode

    def decode(path: Path, wanted: list[int], ahead: bool) -> object:
        decoded.extend(wanted)
        return really(path, wanted, ahead)

    monkeypatch.setattr(video, "_decode", decode)
    with lent({film: lambda: SeenFrames(film, known, gray=False)}):
        found = dict(read_frames(film, only=[44, 31]))
        assert list(found) == [31, 44] and not decoded
        assert all(np.array_equal(image, known[index]) for index, image in found.items())
        found[31][:] = 0
        assert known[31].any(), "who reads an image may write into it"
        assert np.array_equal(dict(read_frames(film, only=[31], gray=True))[31], grey[31])
        assert decoded == [31], "grey is the decoder's to make"
        assert list(dict(read_frames(film, only=[31, 32]))) == [31, 32]
        assert decoded == [31, 31, 32], "one is missing: all are decoded in one pass"
    assert list(dict(read_frames(film, only=[5]))) == [5] and decoded[-1] == 5
