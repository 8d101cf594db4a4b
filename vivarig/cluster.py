"""Recordings spread over a Dask cluster: each is one task, done by the same code as a local run.

A recording's folder must be seen under the same path by every worker (a shared file system). A worker that dies loses
nothing but the stage it was in: the task is tried again elsewhere and goes on from the stages already done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from calibration.errors import InputError, VivarigError
from capture.recording import load_recording
from vivarig.pipeline import RunOptions, StageOutcome, run_recording

__all__ = ["run_on_cluster"]

_TRIES = 3


def _one(folder: str, options: RunOptions) -> list[StageOutcome] | str:
    """Run one recording on a worker; what the user must mend comes back as text, not as a failed task."""
    try:
        return run_recording(load_recording(folder), options)
    except VivarigError as error:
        return str(error)


def run_on_cluster(
    folders: Sequence[Path],
    options: RunOptions,
    *,
    address: str | None = None,
    processes: int | None = None,
    on_done: Callable[[int, int], None] | None = None,
) -> dict[Path, list[StageOutcome] | str]:
    """Run recordings on the cluster at ``address``, or on so many local processes; outcomes or the error, by folder."""
    try:
        import distributed
    except ImportError:
        raise InputError("running on a cluster needs Dask: pip install 'vivarig[cluster]'") from None
    cluster: Any = None
    if address is None:
        cluster = distributed.LocalCluster(
            n_workers=processes or 1, threads_per_worker=1, processes=True, dashboard_address=None
        )
    try:
        client = distributed.Client(cluster if cluster is not None else address, timeout="20s")
    except OSError:
        raise InputError(f"no Dask scheduler answers at {address}; start one with `dask scheduler`") from None
    try:
        # not pure: the outcome is in files, so that the same call must run again
        tasks = {
            client.submit(
                _one, str(folder.resolve()), options, retries=_TRIES, pure=False, key=f"{i}-{folder.name}"
            ): folder
            for i, folder in enumerate(folders)
        }
        outcomes: dict[Path, list[StageOutcome] | str] = {}
        for done, (task, result) in enumerate(
            distributed.as_completed(tasks, with_results=True, raise_errors=False), 1
        ):
            outcomes[tasks[task]] = result if isinstance(result, list | str) else f"the worker failed: {result}"
            if on_done is not None:
                on_done(done, len(tasks))
        return {folder: outcomes[folder] for folder in folders}
    finally:
        client.close()
        if cluster is not None:
            cluster.close()
