"""Silhouettes in parts: the models are learnt once from the whole recording, then any frames are cut out with them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.result_files import open_results, read_parameters
from calibration.foundation.spans import Span
from capture.recordings.masks import create_masks, edge_values, has_mattes, read_agreement, read_flags
from capture.silhouettes.segment import SilhouetteReport, learn_models, segment_recording
from capture.silhouettes.subjects.subject_recordings import drop_subjects
from vivarig.commands import silhouettes as verb
from vivarig.console.progress import progress_callback
from vivarig.console.reporting import CommandReport
from vivarig.jobs.job import Job

__all__ = ["extract", "join", "prepare", "work"]

_BLOCK = 16


def prepare(job: Job, threads: int, spans: tuple[Span, ...]) -> object:
    """Learn the models."""
    return learn_models(job.recording, verb.model_options(job.plans["silhouettes"].arguments), workers=threads)


def work(job: Job, phase: str, span: Span) -> None:
    """Cut out the frames of one part."""
    arguments = job.plans["silhouettes"].arguments
    with progress_callback(f"silhouettes {span}") as on_progress:
        segment_recording(
            job.recording,
            job.path("silhouettes", phase, span),
            verb.model_options(arguments),
            start=arguments.start + span.first,
            stop=arguments.start + span.stop,
            models=job.prepared("silhouettes"),
            workers=1,
            on_progress=on_progress,
        )


def extract(job: Job, span: Span) -> None:
    """Cut one part out of the finished silhouettes, for the stages that read parts."""
    path = job.path("silhouettes", "masks", span)
    _copy([(job.recording.results / "silhouettes.h5", span)], path, {})


def join(job: Job) -> CommandReport:
    """Put the parts together."""
    arguments = job.plans["silhouettes"].arguments
    drop_subjects(job.recording)
    target = job.recording.results / "silhouettes.h5"
    spans = job.spans("silhouettes")
    pieces = [(job.path("silhouettes", "masks", span), Span(0, len(span))) for span in spans]
    area = _copy(pieces, target, {"start": arguments.start})
    with open_results(target, stage="silhouettes") as file:
        cameras = read_parameters(file)["cameras"]
    models = tuple(str(camera["model"]) for camera in cameras.values())
    report = SilhouetteReport(tuple(cameras), models, read_agreement(target), read_flags(target), area)
    return verb.summary(arguments, job.recording, report)


def _copy(pieces: list[tuple[Path, Span]], target: Path, changed: Mapping[str, object]) -> Floats:
    """Copy rows of silhouette files into one, a few frames at a time; return (T, C) the areas, px."""
    with open_results(pieces[0][0], stage="silhouettes") as file:
        names = [name.decode("utf-8") for name in file["names"][()]]
        sizes = [tuple(int(file[f"cameras/{name}"].attrs[key]) for key in ("width", "height")) for name in names]
        parameters = {**read_parameters(file), **changed}
        matte = has_mattes(file)
    count = sum(len(rows) for _, rows in pieces)
    area = np.zeros((count, len(names)))
    shapes = [(width, height) for width, height in sizes]
    with create_masks(target, names, shapes, count, parameters, matte=matte) as writer:
        at = 0
        for path, rows in pieces:
            with open_results(path, stage="silhouettes") as file:
                for first in range(rows.first, rows.stop, _BLOCK):
                    here = slice(first, min(first + _BLOCK, rows.stop))
                    for index, name in enumerate(names):
                        group = file[f"cameras/{name}"]
                        packed = group["masks"][here]
                        edges = edge_values(group, here.start, here.stop) if matte else None
                        writer.write(name, at, packed, group["agreement"][here], group["flags"][here], edges)
                        area[at : at + len(packed), index] = np.bitwise_count(packed).sum(axis=(1, 2))
                    at += here.stop - here.start
    return area
