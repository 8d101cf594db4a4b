"""One stage by itself, from the results of the stages before it; what it makes counts as done for `vivarig run`."""

from __future__ import annotations

from pathlib import Path

from calibration.foundation.digests import digest_of_path
from calibration.foundation.spans import Span
from capture.recordings.masks import mask_cameras
from capture.recordings.recording import Recording
from vivarig.console.reporting import CommandReport
from vivarig.jobs.cutting import LENGTH
from vivarig.jobs.fingerprints import Ledger, digest_of_inputs
from vivarig.jobs.job import Job, StagePlan
from vivarig.jobs.lock import results_lock
from vivarig.mending.unedited import FILES, as_made, take_off
from vivarig.pipeline.plans import plan_as_before, plan_of, record
from vivarig.pipeline.runner import run_job, workers_here
from vivarig.pipeline.stages import STAGES, Stage, run_whole
from vivarig.stages.options import StageOptions

__all__ = ["run_one_stage"]


def run_one_stage(stage: str, recording: Recording, options: StageOptions, workers: int | None = None) -> CommandReport:
    """Run a stage on what lies in the results; no other command may work on them meanwhile."""
    chosen = next(one for one in STAGES if one.name == stage)
    with results_lock(recording.results):
        ledger = Ledger(recording.results)
        if stage in FILES:
            take_off(recording.results)  # `vivarig run` lays the edits over what is made here
        brought = digest_of_inputs(recording)
        plan = plan_of(recording, chosen, options, _before(recording, chosen, ledger, brought), brought, LENGTH)
        report = _in_parts(recording, plan, workers) if stage == "track" else run_whole(recording, options, workers)
        output = recording.results / chosen.output
        if output.is_file() and not _elsewhere(options, output):
            record(ledger, recording, plan, output, report.reason)
    return report


def _elsewhere(options: StageOptions, output: Path) -> bool:
    """Return whether the result went to another place than `vivarig run` looks for it."""
    asked = getattr(options, "output", None)
    return asked is not None and Path(asked).resolve() != output.resolve()


def _before(recording: Recording, stage: Stage, ledger: Ledger, brought: str) -> list[str]:
    """Return what a stage rests on: the plans of those before it as `vivarig run` would have made them.

    Where a result before it was made otherwise (copied, or by other inputs), it rests on that file's content instead,
    so that `vivarig run` will not take it for its own.
    """
    before = []
    for need in (one for one in STAGES if one.name in stage.needs):
        output = as_made(recording.results, need.output)
        earlier = _before(recording, need, ledger, brought)
        planned = plan_as_before(recording, need, earlier, brought, LENGTH, ledger, lambda name, text: None).rests_on
        if ledger.is_done(need.name, planned, output):
            before.append(planned)
        else:
            before.append(digest_of_path(output) if output.is_file() else "nothing")
    return before


def _in_parts(recording: Recording, plan: StagePlan, workers: int | None) -> CommandReport:
    """Run a stage that reads silhouettes in parts on all cores; one that was killed goes on from the parts it left."""
    recording.need_rig()
    _, frames = mask_cameras(recording.results / "silhouettes.h5")
    job = Job(recording.folder.resolve(), Span(0, frames), {plan.name: plan})
    job.check_start()
    job.drop_strange()
    with workers_here(workers) as place:
        reports = run_job(job, [plan.name], place, lambda name, text: None, {}, None)
    job.clear(plan.name, "silhouettes")
    return reports[plan.name]
