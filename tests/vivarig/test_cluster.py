"""Recordings on Dask workers: the same bytes as a local run, and a dying worker survived."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from pathlib import Path

import pytest
from small_recordings import cut_recording, files_of

from calibration.errors import InputError
from vivarig.cluster import run_on_cluster
from vivarig.pipeline import RunOptions, run_recording

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # Dask warns of its own closing order

UNTIL = RunOptions("silhouettes")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small recording done locally."""
    place = tmp_path_factory.mktemp("cluster") / "local"
    run_recording(cut_recording(place, frames=4, cameras=2), UNTIL)
    return place


def copies(finished: Path, tmp_path: Path, count: int) -> list[Path]:
    targets = [tmp_path / f"r{index}" for index in range(count)]
    for target in targets:
        shutil.copytree(finished, target, ignore=shutil.ignore_patterns("results"))
    return targets


def test_two_processes_and_one_dying_worker(finished: Path, tmp_path: Path) -> None:
    targets = copies(finished, tmp_path, 3)
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        victim = next(iter(cluster.workers.values())).pid
        timer = threading.Timer(1.0, os.kill, (victim, signal.SIGKILL))
        timer.start()
        outcomes = run_on_cluster([*targets, tmp_path / "none"], UNTIL, address=cluster.scheduler_address)
        timer.join()
    assert "no such file" in str(outcomes[tmp_path / "none"])
    for target in targets:
        assert isinstance(outcomes[target], list)
        assert {k: v for k, v in files_of(target).items() if "/." not in k} == files_of(finished)


def test_no_scheduler_is_said(finished: Path) -> None:
    with pytest.raises(InputError, match="no Dask scheduler answers"):
        run_on_cluster([finished], UNTIL, address="tcp://127.0.0.1:9")
