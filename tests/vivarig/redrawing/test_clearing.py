"""Things that stand still are taken off all silhouettes of a recording, where the body fits better without them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import cv2
import numpy as np
from pale_footed_mouse import rig

from calibration.foundation.arrays import Bools
from calibration.foundation.spans import Span
from capture.recordings.masks import read_masks
from capture.recordings.recording import Footage, Recording
from tracking.adapting.build_search import Build
from tracking.adapting.scale_search import Found
from tracking.observations.contours import Observation
from tracking.quads.oriented_quads import QuadPose
from tracking.subjects.shape import BodyShape
from vivarig.jobs.job import Job
from vivarig.redrawing.clearing import clear_frames, clear_part, parts_the_subject, things_that_stand
from vivarig.results.outline_words import outline_words
from vivarig.stages.options import SilhouetteOptions, TrackOptions
from vivarig.track_stage import preparing

FRAMES = 8


def filmed(folder: Path) -> tuple[list[Footage], list[list[Bools]], list[list[Bools]]]:
    """A square that moves past a still one, in four views; silhouettes of both, and of the one that moves."""
    cameras = rig()
    noise = np.random.default_rng(2)
    footage = [Footage(camera.name, folder / camera.name) for camera in cameras]
    both: list[list[Bools]] = [[] for _ in range(FRAMES)]
    alone: list[list[Bools]] = [[] for _ in range(FRAMES)]
    for one, camera in zip(footage, cameras, strict=True):
        one.source.mkdir()
        for frame in range(FRAMES):
            image = np.full((camera.size[1], camera.size[0], 3), 150.0)
            still, moving = (np.zeros(image.shape[:2], bool) for _ in range(2))
            still[100:150, 160:200], moving[90:160, 20 + 35 * frame : 75 + 35 * frame] = True, True
            image[still], image[moving] = (60.0, 60.0, 70.0), (40.0, 50.0, 140.0)
            image += noise.normal(0.0, 1.5, image.shape)
            cv2.imwrite(str(one.source / f"{frame:03d}.png"), np.clip(np.rint(image), 0, 255).astype(np.uint8))
            both[frame].append(still | moving)
            alone[frame].append(moving)
    return footage, both, alone


def overlap(ours: list[Bools], true: list[Bools]) -> float:
    return float(np.mean([(a & b).sum() / (a | b).sum() for a, b in zip(ours, true, strict=True)]))


def test_a_part_is_cleared_as_its_frames_are(tmp_path: Path) -> None:
    cameras = rig()
    footage, both, alone = filmed(tmp_path)
    names = tuple(cameras.names)

    def masks(asked: tuple[str, ...], frame: int) -> list[Bools]:
        return [both[frame][names.index(name)] for name in asked]

    things = things_that_stand(footage, masks, cameras, range(FRAMES))
    assert len(things) == 4 and None not in things
    cleared = clear_frames(masks, things, footage, range(2, 6))
    clear_part(tmp_path / "part.h5", things, footage, masks, cameras, Span(2, 6))
    for frame in range(2, 6):
        assert overlap(cleared(names, frame), alone[frame]) > 0.95
        for name in names:
            assert np.array_equal(read_masks(tmp_path / "part.h5", name, frame - 2)[0], cleared((name,), frame)[0])
    assert overlap(both[2], alone[2]) < 0.8
    brought = [Footage(one.name, one.source, masks=tmp_path) for one in footage]
    assert things_that_stand(brought, masks, cameras, range(FRAMES)) == ()


def build(*agreements: float) -> Build:
    nowhere = QuadPose(np.eye(3)[None], np.zeros((1, 3)))
    found = tuple(Found(frame, nowhere, np.zeros(2), 1.0, one) for frame, one in enumerate(agreements))
    return Build(BodyShape.uniform("human", 1.0), found)


def test_the_body_must_fit_much_better_in_every_frame() -> None:
    assert parts_the_subject(build(0.7, 0.75), build(0.9, 0.85))
    assert not parts_the_subject(build(0.7, 0.75), build(0.72, 0.76))
    assert not parts_the_subject(build(0.7, 0.75), build(0.95, 0.74))


def test_a_body_that_fits_badly_is_looked_for_without_things(tmp_path: Path) -> None:
    """Which of two bodies is taken, the one with or the one without things; one that fits is not asked."""
    cameras = rig()
    footage, both, _ = filmed(tmp_path)
    names = tuple(cameras.names)
    recording = Recording(tmp_path, "squares", 100.0, "human", cameras, tuple(footage))
    options = TrackOptions()
    job = cast(
        Job,
        SimpleNamespace(
            plans={"silhouettes": SimpleNamespace(options=SilhouetteOptions())}, recording=recording,
            options=lambda kind: options,
        ),
    )  # fmt: skip
    asked: list[int] = []

    def find(look: Callable[[int], Observation], found: Build) -> Build:
        asked.append(look(2).seen)
        return found

    def parted(before: Build, after: Build) -> tuple[Build, bool]:
        taken, things = preparing._parted(
            job, cameras, lambda some, frame: [both[frame][names.index(name)] for name in some], range(FRAMES), before,
            lambda look: find(look, after),
        )  # fmt: skip
        return taken, bool(things)

    bad, good, fits = build(0.7, 0.75), build(0.9, 0.85), build(0.9, 0.9)
    assert parted(bad, good) == (good, True) and parted(bad, bad) == (bad, False)
    assert parted(fits, good) == (fits, False) and asked == [4, 4]


def test_it_is_said() -> None:
    told = {"redrawn": True, "why": "", "before": None, "after": None, "things": ["cam0", "cam2"]}
    words = outline_words({**told, "added_and_taken_off": {"cam0": [0.0, 0.2], "cam2": [0.0, 0.4]}})
    assert "stand still" in words and "cam0, cam2" in words and "30.0 % taken off" in words
    assert "template" not in words
    told |= {"before": 0.69, "after": 0.72, "helped": True, "added_and_taken_off": {"cam0": [0.0, 0.2]}}
    assert "then drawn again with the template's help" in outline_words(told) and "0.720" in outline_words(told)
    told |= {"helped": False, "redrawn": True}
    assert "template" not in outline_words(told)
