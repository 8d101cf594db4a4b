"""Hulls in parts: frames are independent."""

from __future__ import annotations

import numpy as np

from calibration.foundation.result_files import open_results, read_parameters
from calibration.foundation.spans import Span
from capture.hull.sequence import HullReport, reconstruct_hulls
from capture.hull.store import create_hulls
from vivarig.commands import hull as verb
from vivarig.console.progress import progress_callback
from vivarig.console.reporting import CommandReport
from vivarig.jobs.job import Job

__all__ = ["join", "work"]


def work(job: Job, phase: str, span: Span) -> None:
    """Reconstruct the hulls of one part, which lies within one of the silhouettes."""
    around = next(part for part in job.spans("silhouettes") if part.meets(span))
    with progress_callback(f"hull {span}") as on_progress:
        reconstruct_hulls(
            job.path("silhouettes", "masks", around),
            job.recording.need_rig(),
            job.path("hull", phase, span),
            verb.hull_options(job.plans["hull"].arguments),
            rows=range(span.first - around.first, span.stop - around.first),
            workers=1,
            on_progress=on_progress,
        )


def join(job: Job) -> CommandReport:
    """Put the parts together."""
    paths = [job.path("hull", "hulls", span) for span in job.spans("hull")]
    target = job.recording.results / "hull.h5"
    with open_results(paths[0], stage="hull") as file:
        names = [name.decode("utf-8") for name in file["names"][()]]
        parameters = read_parameters(file)
    with create_hulls(target, names, len(job.whole), parameters) as writer:
        at = 0
        for path in paths:
            at += writer.copy(at, path)
    with open_results(target, stage="hull") as file:
        report = HullReport(
            file["volume"][()],
            file["views_used"][()],
            file["agreement"][()].astype(np.float64),
            file["flags"][()],
        )
    return verb.summary(job.plans["hull"].arguments, job.recording, report)
