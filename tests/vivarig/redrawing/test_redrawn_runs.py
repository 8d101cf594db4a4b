"""A recording whose silhouettes are drawn again: the same bytes whatever happened on the way, progress, pictures."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from mouse_by_stools import filmed_by_stools
from small_recordings import differences

from calibration.foundation.arrays import Bools
from calibration.foundation.errors import InputError
from calibration.foundation.spans import Span
from capture.recordings.masks import read_masks
from capture.recordings.recording import load_recording
from tracking.appearance.furniture import Furniture
from tracking.sequence.track_file import open_track
from tracking.sequence.tracker import Tracker
from vivarig.console.progress import relay_progress
from vivarig.console.reporting import CommandReport
from vivarig.jobs.fingerprints import Ledger
from vivarig.jobs.job import Job, StagePlan
from vivarig.pipeline import tasks
from vivarig.pipeline.runner import run_job
from vivarig.pipeline.workers import Inline, LocalWorkers
from vivarig.report.page import Page
from vivarig.report.pictures import overlay
from vivarig.report.sections import _outlines_told
from vivarig.results.findings import Findings, load_findings
from vivarig.stages.options import TrackOptions
from vivarig.track_stage import track
from vivarig.viewer import Viewer

FRAMES = 6
CAMERAS = tuple(f"cam{k}" for k in range(4))


def job_of(folder: Path) -> Job:
    """Two parts of three frames; of known size, which takes half of the time."""
    return Job(folder, Span(0, FRAMES), {"track": StagePlan("track", TrackOptions(scale=1.0), "the same")}, 3)


def tracked(job: Job, workers: Inline | LocalWorkers) -> None:
    run_job(job, ["track"], workers, lambda stage, text: None, {}, None, show=False)
    job.clear("track", "silhouettes")


class Run:
    """The recording, tracked, its parts as they were before they were joined, and what was heard of the progress."""

    def __init__(self, place: Path, patched: pytest.MonkeyPatch) -> None:
        self.whole, self.parted = place / "whole", place / "parted"
        _, self.animals = filmed_by_stools(self.whole, FRAMES)
        self.heard: dict[str, list[tuple[int, int]]] = {}
        self.called: list[str] = []

        def stop(job: Job) -> CommandReport:
            raise InputError("stopped here")

        with patched.context() as only_now, pytest.raises(InputError, match="stopped here"):
            only_now.setattr(track, "join", stop)
            only_now.setattr("vivarig.pipeline.runner.relay_progress", self._listen)
            for name in ("follow", "fit_again", "finish"):
                only_now.setattr(Tracker, name, self._noted(name, getattr(Tracker, name)))
            tracked(job_of(self.whole), Inline())
        shutil.copytree(self.whole, self.parted)
        tracked(job_of(self.whole), Inline())

    def _noted(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: object, **keywords: object) -> object:
            self.called.append(name)
            return method(*args, **keywords)

        return noted

    def _listen(self, listener: object) -> None:
        def hear(label: str, done: int, total: int) -> None:
            self.heard.setdefault(label, []).append((done, total))

        relay_progress(None if listener is None else hear)

    @property
    def findings(self) -> Findings:
        return load_findings(load_recording(self.whole))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    with pytest.MonkeyPatch.context() as patched:
        return Run(tmp_path_factory.mktemp("redrawn"), patched)


def test_it_turns_itself_on_and_parts_the_things_from_the_animal(run: Run) -> None:
    told = run.findings.track.parameters["outlines"]  # type: ignore[union-attr]
    assert told["redrawn"] and told["after"] > told["before"] + 0.01

    def beyond(name: str) -> int:
        masks: list[Bools] = [read_masks(run.whole / "results" / name, camera) for camera in CAMERAS]
        extra = (masks[k][frame] & ~run.animals[frame][k] for k in range(4) for frame in range(FRAMES))
        return int(sum(np.count_nonzero(one) for one in extra))

    assert beyond("redrawn.h5") < 0.3 * beyond("silhouettes.h5")


def test_a_part_is_followed_once_and_finished_once(run: Run) -> None:
    """The silhouettes drawn again are fitted from where the subject was found, not tracked from nothing."""
    assert run.called[:6] == 2 * ["follow", "fit_again", "finish"], run.called  # the rest is who is mended


def test_all_three_passes_over_a_part_show_progress(run: Run) -> None:
    """Tracked, drawn, tracked once more; counted by the part's own frames, which its ends do not add to."""
    for label in ("track 00000000-00000003", "track 00000003-00000006"):
        done = [one for one, _ in run.heard[label]]
        assert done == sorted(done) and done[-1] == 3 and {1, 2} <= set(done)
        assert {total for _, total in run.heard[label]} == {3}


def test_neither_workers_nor_a_kill_change_a_byte(run: Run, tmp_path: Path) -> None:
    """Two processes go on from a run that was stopped before its parts; both are killed while they draw."""
    place = tmp_path / "whole"
    shutil.copytree(run.parted, place)
    job = job_of(place)
    for left in (job.parts / "track").glob("track-*"):
        left.unlink()
    pool = LocalWorkers(2)
    over = threading.Event()
    killed: list[int] = []

    def kill_who_draws() -> None:
        while not over.wait(0.02):
            if any("redrawn" in path.name for path in (job.parts / "track").iterdir()):
                killed.extend(pool.pids)
                for pid in killed:
                    os.kill(pid, signal.SIGKILL)
                return

    watching = threading.Thread(target=kill_who_draws)
    watching.start()
    try:
        tracked(job, pool)
    finally:
        over.set()
        watching.join()
        pool.shutdown()
    assert killed
    assert not differences(place, run.whole)


@pytest.mark.parametrize("lost", [True, False])
def test_silhouettes_of_a_part_that_are_lost_or_harmed_are_drawn_again(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: bool
) -> None:
    """The part's track is whole: without a look at what lies beside it, the old silhouettes would be joined."""
    place = tmp_path / "whole"
    shutil.copytree(run.parted, place)
    job = job_of(place)
    beside = job.beside("track", "track", Span(3, 6), "redrawn")
    whole = beside.read_bytes()
    if lost:
        beside.unlink()
    else:
        beside.write_bytes(whole[:-50])
    made: list[Span] = []

    def work(job: Job, phase: str, span: Span) -> None:
        made.append(span)
        shutil.copy(run.parted / "results" / "parts" / "track" / f"{phase}-{span}.h5", job.path("track", phase, span))
        beside.write_bytes(whole)

    monkeypatch.setattr(track, "work", work)
    for span in job.spans("track"):
        tasks.part(job, "track", "track", span)
    assert made == [Span(3, 6)] and job.is_done("track", "track", Span(3, 6))


def test_a_part_is_tracked_without_things_that_stand_still(run: Run, tmp_path: Path) -> None:
    """Things are taken off before its first pass; here alone, without drawing again."""
    place = tmp_path / "whole"
    shutil.copytree(run.parted, place)
    job, span = job_of(place), Span(0, 3)
    names = tuple(CAMERAS)
    cut = [read_masks(place / "results" / "silhouettes.h5", camera, 1)[0] for camera in names]
    still = [before & ~animal for before, animal in zip(cut, run.animals[1], strict=True)]
    pictures = [cv2.imread(str(place / camera / "001.png")) for camera in names]
    things = tuple(Furniture(where, image, 255.0) for where, image in zip(still, pictures, strict=True))
    job.keep("track", replace(job.prepared("track"), things=things, outlines=None))
    job.remove("track", "track", span)
    tasks.part(job, "track", "track", span)
    beside = job.beside("track", "track", span, "redrawn")
    for camera, thing, picture, before in zip(names, things, pictures, cut, strict=True):
        ours = read_masks(beside, camera, 1)[0]
        assert np.array_equal(ours, thing.cleared(picture, before)) and ours.sum() < 0.8 * before.sum()
    with open_track(job.path("track", "track", span)) as file:
        assert np.isfinite(file.centres()).all()


def test_a_track_whose_silhouettes_were_removed_is_not_done(run: Run, tmp_path: Path) -> None:
    results = tmp_path / "results"
    shutil.copytree(run.whole / "results", results)
    ledger, output = Ledger(results), results / "track.h5"
    ledger.record("track", "x", output, "")
    assert ledger.is_done("track", "x", output)
    (results / "redrawn.h5").unlink()
    assert not ledger.is_done("track", "x", output) and ledger.is_damaged("track", "x", output)


def test_report_and_viewer_show_before_and_after(run: Run) -> None:
    findings = run.findings
    assert findings.redrawn is not None
    page = Page("report")
    _outlines_told(page, findings)
    text = page.html()
    assert "taken off" in text and "before and after they were drawn again" in text and "data:image" in text
    plain, both = (overlay(findings, "cam0", 2, what) for what in (("silhouette",), ("silhouette", "redrawn")))
    assert plain is not None and both is not None
    before, after = (
        read_masks(run.whole / "results" / name, "cam0", 2)[0] for name in ("silhouettes.h5", "redrawn.h5")
    )
    off = before & ~after
    assert off.sum() > 500
    redness = [int(image[off].astype(int)[:, 2].sum() - image[off].astype(int)[:, 1].sum()) for image in (plain, both)]
    assert redness[1] > redness[0] + 50 * off.sum()


def test_the_viewer_has_a_switch_for_them(run: Run) -> None:
    viewer = Viewer(run.findings, "127.0.0.1", 8974)
    try:
        images = []
        for images_on, silhouettes_on in ((False, False), (True, False), (False, True)):
            viewer._toggles["images"].value, viewer._toggles["silhouettes"].value = images_on, silhouettes_on
            viewer.show(2)
            images.append(viewer.layers[0].handles["camera/cam0"].image)
    finally:
        viewer.stop()
    nothing, bare, drawn = images
    assert nothing is None and bare.shape == drawn.shape and np.abs(bare.astype(int) - drawn).max() > 50
