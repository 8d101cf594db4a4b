"""One stage by itself, in parts on all cores, from the results of the stages before it."""

from __future__ import annotations

import argparse
import shutil

from calibration.foundation.spans import Span
from capture.recordings.masks import mask_cameras
from capture.recordings.recording import load_recording
from vivarig.console.reporting import CommandReport
from vivarig.jobs.fingerprints import digest_of_inputs, digest_of_more, digest_of_path, digest_of_words
from vivarig.jobs.job import Job, StagePlan
from vivarig.pipeline.runner import run_job, workers_here

__all__ = ["run_one_stage"]


def run_one_stage(stage: str, arguments: argparse.Namespace) -> CommandReport:
    """Run a stage that reads silhouettes; a run that was killed goes on from the parts it left."""
    recording = load_recording(arguments.recording)
    recording.need_rig()
    source = recording.results / "silhouettes.h5"
    _, frames = mask_cameras(source)
    words = {key: str(value) for key, value in vars(arguments).items() if key not in ("recording", "workers", "json")}
    more = digest_of_more(recording, stage, vars(arguments))
    rests_on = digest_of_words(stage, digest_of_inputs(recording), more, digest_of_path(source), options=words)
    job = Job(recording.folder.resolve(), Span(0, frames), {stage: StagePlan(stage, arguments, rests_on)})
    job.check_start()
    with workers_here(arguments.workers) as workers:
        reports = run_job(job, [stage], workers, lambda name, text: None, {}, None)
    shutil.rmtree(job.parts)
    return reports[stage]
