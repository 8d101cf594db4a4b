"""Which task runs when, and the skeleton of a long recording fitted by many workers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from tracked_mouse import write_tracked_mouse

from calibration.foundation.errors import InputError
from calibration.foundation.spans import Span
from capture.recordings.recording import load_recording, save_recording
from vivarig.jobs import cutting
from vivarig.jobs.first_looks import Looked, look_frames
from vivarig.jobs.job import Job, StagePlan
from vivarig.pipeline import tasks
from vivarig.pipeline.schedule import Node, nodes_of, run_nodes
from vivarig.pipeline.stages import run_whole
from vivarig.pipeline.tasks import Done
from vivarig.pipeline.workers import Inline
from vivarig.report.groups import GROUPS, OUTLINES
from vivarig.stages.options import (
    HullOptions,
    ReportOptions,
    SilhouetteOptions,
    SkeletonOptions,
    StageOptions,
    TrackOptions,
)

FRAMES = 40


class Noting(Inline):
    """Runs nothing and notes in which order tasks came."""

    def submit(self, function: Any, /, *args: Any, **named: Any) -> Any:
        return super().submit(lambda: Done(args[0], 0.0, 0.0))


def order_of(nodes: list[Node]) -> list[tuple[str, str, str]]:
    came: list[tuple[str, str, str]] = []
    run_nodes(nodes, Noting(), lambda node, answer: came.append(node.key))
    return came


def test_a_task_waits_for_all_that_it_needs_and_what_others_wait_for_goes_first() -> None:
    def node(stage: str, what: str, part: str, *needs: tuple[str, str, str]) -> Node:
        return Node((stage, what, part), (None,), frozenset(needs))

    masks = [("silhouettes", "masks", str(k)) for k in range(3)]
    nodes = [
        node("hull", "hulls", "0", masks[0]),
        node("track", "prepare", "", masks[2]),
        node("track", "track", "0", masks[0], ("track", "prepare", "")),
        node("track", "join", "", ("track", "track", "0")),
        *(node(*key) for key in masks),
        node("skeleton", "join", "", ("track", "join", ""), ("not", "wanted", "now")),
    ]
    came = order_of(nodes)
    assert len(came) == len(nodes)
    for one in nodes:
        known = {other.key for other in nodes}
        assert all(came.index(need) < came.index(one.key) for need in one.needs & known)
    # Masks come before hulls, on which nothing waits.
    assert came[:3] == masks and came[-1] == ("hull", "hulls", "0")


@pytest.fixture
def job(tmp_path: Path) -> Job:
    folder = write_tracked_mouse(tmp_path / "mouse_01")
    return Job(folder, Span(0, FRAMES), {"skeleton": StagePlan("skeleton", SkeletonOptions(), "inputs")})


def datasets(path: Path) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return found


def test_what_one_worker_puts_together_of_a_long_recording_goes_on_beside_the_parts() -> None:
    masks = [("silhouettes", "masks", f"{k:04d}") for k in range(500)]
    nodes = [Node(key, (None,), frozenset()) for key in masks]
    nodes += [Node(("track", "track", key[2]), (None,), frozenset(masks)) for key in masks]
    nodes.append(Node(("silhouettes", "join", ""), (None,), frozenset(masks)))
    assert order_of(nodes)[len(masks)] == ("silhouettes", "join", "")
    assert order_of(nodes[:100] + nodes[500:600] + nodes[-1:])[-1] == ("silhouettes", "join", "")


def test_the_skeleton_of_a_long_recording_is_fitted_chunk_by_chunk_on_any_workers(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [node.key[1] for node in nodes_of(job, ["skeleton"], 1)] == ["join"]
    monkeypatch.setattr(cutting, "CHUNK", 16)
    nodes = nodes_of(job, ["skeleton"], 1)
    assert [node.key[1] for node in nodes] == ["prepare", "fit", "fit", "fit", "join"]
    assert sum(node.frames for node in nodes) == len(job.whole)  # what progress is told of
    run_nodes(nodes, Inline(), lambda node, answer: None)
    kept = sorted(path.name for path in (job.parts / "skeleton").glob("*.kept"))
    assert [name.split()[0] for name in kept] == ["fit", "fit", "fit", "scaling.kept", "seen.kept"]
    result = job.recording.results / "skeleton.h5"
    in_tasks = datasets(result)
    result.unlink()
    run_whole(load_recording(job.folder), SkeletonOptions())
    alone = datasets(result)
    assert alone.keys() == in_tasks.keys()
    for name, values in alone.items():
        np.testing.assert_array_equal(in_tasks[name], values, err_msg=name)


class TooLittle(Inline):
    """Runs nothing; what the track's parts share is not found in the first ``count`` looks."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.left = count
        self.looked: list[Looked] = []

    def submit(self, function: Any, /, *args: Any, **named: Any) -> Any:
        if args[0] is not tasks.prepare or args[2] != "track":
            return super().submit(lambda: Done(None, 0.0, 0.0))
        self.looked.append(args[-1])
        self.left -= 1
        return super().submit(lambda: Done(self.left < 0, 0.0, 0.0))


def tracking_job(folder: Path, frames: int, track: TrackOptions) -> Job:
    plans: dict[str, StageOptions] = {"silhouettes": SilhouetteOptions(), "track": track}
    return Job(folder, Span(0, frames), {name: StagePlan(name, options, "") for name, options in plans.items()})


def test_more_frames_of_people_are_cut_out_first(job: Job) -> None:
    recording = job.recording
    counts = []
    for subject in ("mouse", "human", None):
        save_recording(replace(recording, subject=subject))
        counts.append(len(look_frames(tracking_job(job.folder, FRAMES, TrackOptions()), Span(0, FRAMES), 1)))
    assert counts == [12, 20, 12]


def test_a_dozen_frames_are_cut_out_first_and_the_rest_beside_size_and_shape(job: Job) -> None:
    long = tracking_job(job.folder, 2000, TrackOptions())
    keys = order_of(nodes_of(long, ["silhouettes", "track"], 1))
    looks = [key for key in keys if key[1] == "look"]
    assert len(looks) == 6 and sum(len(look_frames(long, span, 6)) for span in long.stretches[:6]) == 12
    cameras = [("silhouettes", "learn", f"{k:04d}") for k in range(len(long.recording.of_kind("light")))]
    assert keys[: len(cameras) + 8] == [*cameras, ("silhouettes", "prepare", ""), *looks, ("track", "prepare", "")]
    # silhouettes that are there already are looked at as they are
    assert not any(node.key[1] == "look" for node in nodes_of(long, ["track"], 1))
    # a subject whose size and shape are given is not looked at
    known = nodes_of(tracking_job(job.folder, 2000, TrackOptions(scale=1.0, adapt=False)), ["silhouettes", "track"], 1)
    assert not any(node.key[1] == "look" for node in known)
    assert next(node.needs for node in known if node.key == ("track", "prepare", "")) == frozenset()


@pytest.mark.parametrize(("frames", "workers", "before"), [(320, 2, 0), (450, 2, 1), (480, 4, 2), (450, 1, 0)])
def test_silhouettes_come_before_the_track_but_for_parts_that_would_be_left_over(
    job: Job, frames: int, workers: int, before: int
) -> None:
    known = tracking_job(job.folder, frames, TrackOptions(scale=1.0, adapt=False))
    came = order_of(nodes_of(known, ["silhouettes", "track"], workers))
    last = max(came.index(("silhouettes", "masks", str(span))) for span in known.spans("silhouettes"))
    early = [key for key in came[:last] if key[:2] == ("track", "track")]
    assert [key[2] for key in early] == [str(span) for span in known.spans("track")[:before]]
    assert came.index(("silhouettes", "join", "")) > last + len(known.spans("track")) - before


@pytest.mark.parametrize("frames", [200, 2000])
def test_where_the_first_frames_show_too_little_more_is_looked_at(job: Job, frames: int) -> None:
    long = tracking_job(job.folder, frames, TrackOptions())
    every = long.stretches
    workers = TooLittle(1)
    came: list[tuple[str, str, str]] = []
    run_nodes(nodes_of(long, ["silhouettes", "track"], 1), workers, lambda node, answer: came.append(node.key))
    assert [looked.first for looked in workers.looked] == [True, False]
    assert workers.looked[0].spans == workers.looked[1].spans
    looked = workers.looked[1].spans
    parts = {("silhouettes", "masks", str(s)) for s in long.spans("silhouettes") if any(s.meets(o) for o in looked)}
    assert parts <= set(came[: came.index(("track", "prepare", ""))])
    workers = TooLittle(9)
    with pytest.raises(InputError, match="no frame has a silhouette in two cameras"):
        run_nodes(nodes_of(long, ["silhouettes", "track"], 1), workers, lambda node, answer: None)
    assert workers.looked[-1].spans == every and len(workers.looked) == (3 if len(every) > 6 else 2)


def test_sections_of_the_report_are_made_when_what_they_show_is_there_and_before_the_page(job: Job) -> None:
    plans: dict[str, StageOptions] = {"hull": HullOptions(), "skeleton": SkeletonOptions(), "report": ReportOptions()}
    whole = Job(job.folder, Span(0, 40), {name: StagePlan(name, options, "") for name, options in plans.items()})
    nodes = {node.key: node for node in nodes_of(whole, plans, 1)}
    skeleton = ("skeleton", "join", "")
    sections = {key for key in nodes if key[1] == "sections"}
    assert {key[2] for key in sections} == set(GROUPS)
    hull = ("hull", "join", "")
    assert all(nodes[key].needs == ({hull} if key[2] == OUTLINES else {hull, skeleton}) for key in sections)
    assert sections < nodes["report", "join", ""].needs
    order = order_of(list(nodes.values()))
    assert order[0] == skeleton and order[order.index(hull) + 1] == ("report", "sections", OUTLINES)
