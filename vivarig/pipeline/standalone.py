"""One stage by itself, in parts on all cores, from the results of the stages before it."""

from __future__ import annotations

import shutil
from dataclasses import asdict

from calibration.foundation.spans import Span
from capture.recordings.masks import mask_cameras
from capture.recordings.recording import Recording
from vivarig.console.reporting import CommandReport
from vivarig.jobs.fingerprints import digest_of_inputs, digest_of_more, digest_of_path, digest_of_words
from vivarig.jobs.job import Job, StagePlan
from vivarig.pipeline.runner import run_job, workers_here
from vivarig.stages.options import StageOptions

__all__ = ["run_one_stage"]


def run_one_stage(stage: str, recording: Recording, options: StageOptions, workers: int | None = None) -> CommandReport:
    """Run a stage that reads silhouettes; a run that was killed goes on from the parts it left."""
    recording.need_rig()
    source = recording.results / "silhouettes.h5"
    _, frames = mask_cameras(source)
    matters = asdict(options)
    more = digest_of_more(recording, stage, matters)
    rests_on = digest_of_words(stage, digest_of_inputs(recording), more, digest_of_path(source), options=matters)
    job = Job(recording.folder.resolve(), Span(0, frames), {stage: StagePlan(stage, options, rests_on)})
    job.check_start()
    with workers_here(workers) as place:
        reports = run_job(job, [stage], place, lambda name, text: None, {}, None)
    shutil.rmtree(job.parts)
    return reports[stage]
