"""Hulls of a recording, or of each of its subjects, as a whole or in parts: frames are independent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibration.foundation.hdf5_files import words_of
from calibration.foundation.result_files import open_results, read_parameters
from calibration.foundation.spans import Span
from capture.hull.result import HullFlag, flag_words
from capture.hull.sequence import HullReport, HullSettings, reconstruct_hulls
from capture.hull.store import MOST_IN_ONE, create_hulls, drop_parts, keep_parts, read_hulls
from capture.posture import posture_table, write_posture
from capture.recordings.recording import Recording
from capture.silhouettes.subjects.subject_recordings import subject_recordings
from vivarig.console.progress import progress_callback
from vivarig.console.reporting import CommandReport
from vivarig.jobs.job import Job
from vivarig.stages.options import HullOptions

__all__ = ["join", "run", "summary", "work"]


def hull_settings(options: HullOptions) -> HullSettings:
    """Return how hulls are wanted, in the library's words."""
    return HullSettings(voxel_mm=options.voxel_mm, tolerated=options.robust, engine=options.engine)


def run(recording: Recording, options: HullOptions, workers: int | None = None) -> CommandReport:
    """Reconstruct the hulls of a recording, or of each of its subjects, in this process."""
    subjects = subject_recordings(recording)
    if not subjects:
        return _hulls(recording, options, workers)
    reports = []
    for number, one in enumerate(subjects, start=1):
        posture = options.posture and options.posture.with_stem(f"{options.posture.stem}_{number}")
        reports.append(_hulls(one, replace(options, posture=posture), workers))
    lines = [f"subject {k}: {line}" for k, one in enumerate(reports, start=1) for line in one.lines]
    reason = "; ".join(f"subject {k}: {one.reason}" for k, one in enumerate(reports, start=1) if one.reason)
    return CommandReport(lines, {"subjects": [one.numbers for one in reports]}, not reason, reason)


def _hulls(recording: Recording, options: HullOptions, workers: int | None) -> CommandReport:
    """Reconstruct the hulls of one subject."""
    with progress_callback("hulls") as on_progress:
        report = reconstruct_hulls(
            recording.results / "silhouettes.h5",
            recording.need_rig(),
            recording.results / "hull.h5",
            hull_settings(options),
            workers=workers,
            on_progress=on_progress,
        )
    return summary(options, recording, report)


def work(job: Job, phase: str, span: Span) -> None:
    """Reconstruct the hulls of one part, which lies within one of the silhouettes."""
    around = next(part for part in job.spans("silhouettes") if part.meets(span))
    with progress_callback(f"hull {span}") as on_progress:
        reconstruct_hulls(
            job.path("silhouettes", "masks", around),
            job.recording.need_rig(),
            job.path("hull", phase, span),
            hull_settings(job.options(HullOptions)),
            rows=range(span.first - around.first, span.stop - around.first),
            workers=1,
            on_progress=on_progress,
        )


def join(job: Job) -> CommandReport:
    """Put the parts together."""
    paths = [job.path("hull", "hulls", span) for span in job.spans("hull")]
    target = job.recording.results / "hull.h5"
    with open_results(paths[0], stage="hull") as file:
        names = list(words_of(file["names"]))
        parameters = read_parameters(file)
    if len(job.whole) > MOST_IN_ONE:
        keep_parts(target, paths, parameters)
    else:
        with create_hulls(target, names, len(job.whole), parameters) as writer:
            at = 0
            for path in paths:
                at += writer.copy(at, path)
        drop_parts(target)
    with open_results(target, stage="hull") as file:
        report = HullReport(
            file["volume"][()],
            file["views_used"][()],
            file["agreement"][()].astype(np.float64),
            file["flags"][()],
        )
    return summary(job.options(HullOptions), job.recording, report)


def summary(options: HullOptions, recording: Recording, report: HullReport) -> CommandReport:
    """Say how the hulls came out, and write what else was asked for."""
    if options.posture is not None:
        write_posture(options.posture, posture_table(read_hulls(recording.results / "hull.h5"), recording.rate_hz))
    there = report.volume > 0
    frames = len(there)
    agreement = float(np.nanmean(report.agreement)) if np.isfinite(report.agreement).any() else float("nan")
    volume = float(np.median(report.volume[there])) / 1000.0 if there.any() else float("nan")
    size = f"{volume:.4g} ml" if not volume >= 1e4 else f"{volume / 1000:.4g} litres"
    lines = [
        f"{frames} frames: results/hull.h5",
        f"  hull in {100 * there.mean():.1f} % of frames, median volume {size}, "
        f"agreement {agreement:.3f} IoU, {report.views_used.sum(axis=1).mean():.1f} views per frame",
    ]
    counts = {flag.name or str(int(flag)): int(np.count_nonzero(report.flags & flag)) for flag in HullFlag}
    for flag in HullFlag:
        if counts[flag.name or str(int(flag))]:
            lines.append(f"  {counts[flag.name or str(int(flag))]} frames: {flag_words(flag)[0]}")
    numbers = {
        "frames": frames,
        "hull_share": float(there.mean()),
        "median_volume_mm3": 1000.0 * volume,
        "agreement_iou": agreement,
        "mean_views": float(report.views_used.sum(axis=1).mean()),
        "flags": counts,
    }
    reason = "" if there.mean() >= 0.5 else f"only {100 * there.mean():.0f} % of frames have a hull"
    return CommandReport(lines, numbers, not reason, reason)
