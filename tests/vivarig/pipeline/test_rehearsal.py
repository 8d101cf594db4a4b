"""What a first run compiles ahead: with a body that stands still, once on a machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tracked_mouse import write_tracked_mouse

from calibration.foundation.spans import Span
from capture.recordings.masks import user_masks
from skeleton.bodies import BODIES
from vivarig.console.progress import relay_progress
from vivarig.jobs.job import Job, StagePlan
from vivarig.pipeline import rehearsal, tasks
from vivarig.pipeline.schedule import Waiting, nodes_of, rehearsal_nodes
from vivarig.stages.options import SilhouetteOptions, TrackOptions


@pytest.fixture(autouse=True)
def new_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who has run nothing yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    rehearsal._marker.cache_clear()


@pytest.mark.parametrize("body", BODIES)
def test_the_body_is_seen_whole_by_all_cameras(tmp_path: Path, body: str) -> None:
    recording = rehearsal._standing_still(tmp_path / "r", body)
    for one in recording.footage:
        assert one.masks is not None
        masks = list(user_masks(one.masks, 2, rehearsal._SIZE, 0))
        assert len(masks) == 2 and np.count_nonzero(masks[0]) > 200
        assert not (masks[0][0].any() or masks[0][-1].any() or masks[0][:, 0].any() or masks[0][:, -1].any())


def test_once_on_a_machine_for_built_in_bodies_and_before_all_else(tmp_path: Path) -> None:
    folder = write_tracked_mouse(tmp_path / "mouse_01")
    plans = {"silhouettes": SilhouetteOptions(), "track": TrackOptions()}
    job = Job(folder, Span(0, 200), {name: StagePlan(name, options, "") for name, options in plans.items()})
    (node,) = rehearsal_nodes(job, plans)
    assert node.call == (tasks.rehearse, job, "track", "mouse") and not node.needs
    waiting = Waiting([node, *nodes_of(job, plans, 2)])
    first = waiting.next()
    assert first is node, "the longest task of all; another worker learns the cameras"
    second = waiting.next()
    assert second is not None and second.key[1] == "learn"
    assert rehearsal_nodes(job, ["track"]) == [], "silhouettes are there: nobody waits"
    own = Job(folder, Span(0, 200), {**job.plans, "track": StagePlan("track", TrackOptions(subject="own"), "")})
    assert rehearsal_nodes(own, plans) == []
    rehearsal.note_done()
    assert rehearsal_nodes(job, plans) == []


def test_a_run_within_a_task_leaves_the_progress_to_who_had_it() -> None:
    def worker(label: str, done: int, total: int) -> None:
        return None

    before = relay_progress(worker)
    try:
        mine = relay_progress(lambda label, done, total: None)
        assert mine is worker
        relay_progress(mine)
        assert relay_progress(None) is worker
    finally:
        relay_progress(before)
