"""Images of a report: which are kept when the videos are decoded before it, and how the others are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_recordings import cut_recording

from calibration.foundation.arrays import Bytes
from capture.recordings.video import read_frames, write_video
from vivarig.jobs.seen_shown import _in_colour, _plain
from vivarig.pipeline import RunOptions, run_recording
from vivarig.pipeline.workers import Inline
from vivarig.report import pictures
from vivarig.report.build import build_report
from vivarig.report.image_reader import ImageReader
from vivarig.results.shown_frames import frames_shown, strip_frames
from vivarig.stages.options import TrackOptions


def test_a_run_decodes_what_its_report_shows_while_it_learns_the_cameras(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = cut_recording(tmp_path / "mouse", frames=6, cameras=3)
    shown = frames_shown(6, [one.name for one in recording.footage])
    known = {(one.source, frame) for one in recording.footage for frame in shown[one.name]}
    read, asked = ImageReader.read, list[tuple[Path, int]]()

    def watched(self: ImageReader, source: Path, at: int) -> Bytes | None:
        asked.append((source, at))
        return read(self, source, at)

    with monkeypatch.context() as patch:
        patch.setattr(ImageReader, "read", watched)
        options = {"track": TrackOptions(scale=1.06, adapt=False)}
        run_recording(recording, RunOptions("report", options), workers=Inline(), show=False)
    assert len(known) == 15 and not known & set(asked)
    made = (recording.results / "report.html").read_text()
    pictures._decoded_kept.clear()
    assert not list(recording.results.glob("**/*.kept"))
    build_report(recording, tmp_path / "alone.html")
    alone = (tmp_path / "alone.html").read_text()
    for one, other in zip(made.split('"data:image'), alone.split('"data:image'), strict=True):
        assert one.partition('"')[0] == other.partition('"')[0]


def test_images_that_show_no_colour_are_kept_as_grey_ones(rng: np.random.Generator) -> None:
    grey = rng.integers(0, 255, (8, 9), dtype=np.uint8)
    coloured = rng.integers(0, 255, (8, 9, 3), dtype=np.uint8)
    assert _plain(_in_colour(grey)).shape == (8, 9)
    for image in (_in_colour(grey), coloured):
        np.testing.assert_array_equal(_in_colour(_plain(image)), image)


def test_images_that_are_expected_are_those_read_one_by_one(tmp_path: Path, rng: np.random.Generator) -> None:
    path = tmp_path / "film.mp4"
    write_video(path, rng.integers(0, 255, (90, 32, 48), dtype=np.uint8), 30.0)
    every = dict(read_frames(path))
    reader = ImageReader()
    reader.expect(path, [-4, 3, 70, 80, 95])
    # in order as told, then one that was not told of, one before, one that is not there
    for at in (3, 70, 71, 80, 2, 70):
        image = reader.read(path, at)
        assert image is not None
        np.testing.assert_array_equal(image, every[at])
    assert reader.read(path, 95) is None and reader.read(path, -4) is None
    reader.close()


def test_the_frames_shown_of_short_and_long_recordings() -> None:
    assert strip_frames(3) == [0, 1, 2]
    assert len(strip_frames(5000)) == 16
    shown = frames_shown(200, ["a", "b", "c"])
    assert shown["c"] == [0, 100, 199] and set(shown["a"]) > {0, 100, 199} and len(shown["a"]) == 17
    assert frames_shown(1, ["a"]) == {"a": [0]}
