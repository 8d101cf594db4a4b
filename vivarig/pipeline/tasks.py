"""What a worker does, wherever it is: small functions of a job, whose results are files."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numba
from threadpoolctl import threadpool_limits

from calibration.foundation.once import keeping
from calibration.foundation.result_files import open_results
from calibration.foundation.spans import Span
from capture.recordings.decoding import close_aside
from vivarig.console.reporting import CommandReport
from vivarig.jobs.first_looks import PHASE, Looked
from vivarig.jobs.job import Job
from vivarig.jobs.seen_shown import shown_lent
from vivarig.pipeline import rehearsal
from vivarig.pipeline.stages import cut_stage, run_whole, shared_stage
from vivarig.stages.options import SkeletonOptions

__all__ = [
    "Done",
    "ahead",
    "extract",
    "join",
    "learn",
    "look",
    "part",
    "prepare",
    "rehearse",
    "sections",
    "timed",
    "whole",
]


#: Between parts of these stages videos stay open, to be read on by the next part.
_READ_ON = ("silhouettes", "hull")


@dataclass(frozen=True)
class Done:
    """A task's answer, with the time and the processor time it took on its worker, s.

    ``begun`` is when, by the clock that all processes of a machine share (`time.monotonic`), ``worker`` the process.
    """

    value: Any
    seconds: float
    cpu_seconds: float
    begun: float = 0.0
    worker: int = 0


def timed(function: Callable[..., Any], job: Job, stage: str, *arguments: Any) -> Done:
    """Run a task of a stage on one thread and measure it.

    Many tasks run side by side, and their systems are small: threads inside them would wait for each other, which on a
    busy machine costs many times the sum itself. (What the task needs is imported first: only libraries that are there
    can be told.)
    """
    start, cpu = time.monotonic(), time.process_time()
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    if function not in (whole, ahead, rehearse, sections):
        cut_stage(stage)
    if function is not part or stage not in _READ_ON:
        close_aside()
    try:
        with threadpool_limits(limits=1, user_api="blas"):
            value = function(job, stage, *arguments)
    finally:
        numba.set_num_threads(threads)
    return Done(value, time.monotonic() - start, time.process_time() - cpu, start, os.getpid())


def prepare(job: Job, stage: str, threads: int, looked: Looked) -> bool:
    """Make what the parts of a stage share, looking at some of the silhouettes; False if those are too few."""
    if job.is_prepared(stage):
        return True  # by a run before that was stopped; whether it is ours was checked at the start of this one
    # the steps come in the same order each time, so that their number tells which is which
    number = itertools.count()
    numbered = keeping(lambda name, make: job.once(stage, f"{looked} {next(number):04d} {name}", make))
    with numbered if looked.spans else _keeping(job, stage):
        prepared = shared_stage(stage).prepare(job, threads, looked)
    if prepared is not None:
        job.keep(stage, prepared)
        job.forget(stage)
    return prepared is not None


def learn(job: Job, stage: str, camera: int, looked: Looked) -> None:
    """Learn one camera of the silhouettes for the task that learns how they go together, and keep what `look` needs."""
    from vivarig.stages import silhouettes

    if not job.is_prepared(stage):
        with _keeping(job, stage):
            silhouettes.learn(job, camera, looked)


def look(job: Job, stage: str, span: Span, parts: int) -> None:
    """Cut the frames out of a part of the silhouettes that are looked at first, where so many parts are."""
    from vivarig.stages import silhouettes

    if not job.is_prepared("track") and not job.is_done(stage, PHASE, span):
        silhouettes.look(job, span, parts)
        job.record(stage, PHASE, span)


def part(job: Job, stage: str, phase: str, span: Span) -> None:
    """Do one part of a stage, unless it is done."""
    path = job.path(stage, phase, span)
    if not job.is_done(stage, phase, span):
        job.remove(stage, phase, span)
        cut_stage(stage).work(job, phase, span)
        job.record(stage, phase, span)
    elif path.is_file():
        with open_results(path, stage=stage):
            pass  # of a run before: looked at here, where many can, for what puts them together does not


def extract(job: Job, stage: str, span: Span) -> None:
    """Cut a part out of the finished silhouettes."""
    from vivarig.stages import silhouettes

    silhouettes.extract(job, span)


def join(job: Job, stage: str) -> CommandReport:
    """Put the parts of a stage together; what is found out on the way is kept for the report, which asks again."""
    with _keeping(job, "report"):
        return cut_stage(stage).join(job)


def ahead(job: Job, stage: str, index: int | None) -> None:
    """Fit one chunk of the skeleton for the task that writes them all; None: what all chunks share."""
    from vivarig.stages import skeleton

    options = job.options(SkeletonOptions)
    with _keeping(job, stage):
        if index is None:
            skeleton.prepare_ahead(job.recording, options)
        else:
            skeleton.fit_ahead(job.recording, options, index)


def rehearse(job: Job, stage: str, subject: str) -> None:
    """Compile what tracking and skeleton need, with a body that stands still."""
    rehearsal.rehearse(subject)


def sections(job: Job, stage: str, group: str) -> None:
    """Make some sections of the report for the task that writes them all."""
    from vivarig.stages import report

    with _keeping(job, stage), shown_lent(job):
        report.build_ahead(job.recording, group)


def whole(job: Job, stage: str) -> CommandReport:
    """Do a stage that is not cut, with what was made for it ahead."""
    with _keeping(job, stage):
        return run_whole(job.recording, job.plans[stage].options)


def _keeping(job: Job, stage: str) -> AbstractContextManager[None]:
    return keeping(lambda name, make: job.once(stage, name, make))
