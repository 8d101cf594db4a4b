"""Run the stages of one recording: skip what is done, redo what is stale or harmed, leave nothing half-written."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from calibration.foundation.errors import InputError
from calibration.foundation.spans import Span
from capture.recordings.recording import Recording
from skeleton.bodies import BODIES
from vivarig.console.progress import StagesDisplay, relay_progress
from vivarig.console.reporting import CommandReport
from vivarig.jobs.cutting import LENGTH
from vivarig.jobs.fingerprints import Ledger, digest_of_inputs
from vivarig.jobs.job import Job, StagePlan
from vivarig.jobs.lock import results_lock
from vivarig.mending.unedited import FILES
from vivarig.pipeline.bead_run import run_beads, xray_alone
from vivarig.pipeline.edited import EditsInRun
from vivarig.pipeline.plans import plan_as_before, plan_with, record
from vivarig.pipeline.rehearsal import note_done
from vivarig.pipeline.schedule import Node, Workers, nodes_of, rehearsal_nodes, run_nodes
from vivarig.pipeline.stages import STAGES, Stage
from vivarig.pipeline.tasks import Done
from vivarig.pipeline.workers import Inline, LocalWorkers
from vivarig.stages.options import SilhouetteOptions, StageOptions, TrackOptions, changed, own_options

__all__ = [
    "RunOptions",
    "StageOutcome",
    "run_job",
    "run_recording",
    "workers_here",
]

_SUBJECTS = f"{', '.join(BODIES)}, or a folder made by `vivarig subject`"


@dataclass(frozen=True)
class RunOptions:
    """How to run.

    Attributes:
        until: last stage to run.
        stage_options: per stage, its options; a stage that is not named has those of recording.toml.
        changes: per stage, option names and values on top of those.
        workers: processes to use; None: one per core.
        again: stages to redo even if done.
        part_frames: most frames of a part; tracks of other parts differ a little.
    """

    until: str = "report"
    stage_options: Mapping[str, StageOptions] = field(default_factory=dict)
    changes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    workers: int | None = None
    again: tuple[str, ...] = ()
    part_frames: int = LENGTH


@dataclass(frozen=True)
class StageOutcome:
    """What became of one stage.

    Attributes:
        name: the stage.
        status: "done" now, "kept" from before, or "redone" because its result was harmed.
        seconds: what it took now, summed over its workers.
        cpu_seconds: processor time of the same.
        report: what it said, None if kept.
        reason: which quality threshold its result misses, empty if none; that of a kept one too.
    """

    name: str
    status: str
    seconds: float
    cpu_seconds: float
    report: CommandReport | None
    reason: str = ""


def wanted_stages(options: RunOptions) -> tuple[Stage, ...]:
    """Return the stages up to the last one wanted that it needs, directly or not, or that were asked for by name.

    So hulls, which neither track nor skeleton needs, are made for the report, or when something is said about them.
    """
    names = [stage.name for stage in STAGES]
    for name in (options.until, *options.stage_options, *options.changes, *options.again):
        if name not in names:
            raise InputError(f"'{name}' is not a stage; the stages are {', '.join(names)}")
    upto = STAGES[: names.index(options.until) + 1]
    wanted = {options.until, *options.stage_options, *options.changes, *options.again}
    for stage in reversed(upto):
        if stage.name in wanted:
            wanted |= {*stage.needs}
    return tuple(stage for stage in upto if stage.name in wanted)


@contextlib.contextmanager
def workers_here(count: int | None) -> Iterator[Inline | LocalWorkers]:
    """Yield workers on this machine: so many processes, or this one alone for 1."""
    wanted = count or os.cpu_count() or 1
    if wanted == 1:
        yield Inline()
        return
    pool = LocalWorkers(wanted)
    try:
        yield pool
    finally:
        pool.shutdown()


def run_recording(
    recording: Recording,
    options: RunOptions | None = None,
    on_stage: Callable[[str, str], None] | None = None,
    workers: Workers | None = None,
    *,
    show: bool = True,
) -> list[StageOutcome]:
    """Bring all stages of a recording up to date and say what became of each.

    Args:
        recording: what to work on.
        options: which stages, and how.
        on_stage: told (stage, what is happening) as it goes.
        workers: where the work is done; None: in processes on this machine, as the options say.
        show: show the progress, where there is a terminal.
    """
    chosen = options or RunOptions()
    stages = wanted_stages(chosen)
    for name, number in (("workers", chosen.workers), ("part_frames", chosen.part_frames)):
        if number is not None and number < 1:
            raise InputError(f"{name} must be at least 1, got {number}")
    tell = on_stage or (lambda stage, text: None)
    if xray_alone(recording):
        return _bead_outcomes(recording, chosen, tell)
    recording.need_rig()
    with results_lock(recording.results):
        ledger = Ledger(recording.results)
        job = _planned(recording, chosen, stages, ledger, tell)
        job.drop_strange()
        edits = EditsInRun(recording, job.plans, ledger)
        edits.prepare()
        harmed: dict[str, bool] = {}
        for stage in stages:
            plan, output = job.plans[stage.name], edits.output(stage.output)
            if stage.name not in chosen.again and ledger.is_done(stage.name, plan.rests_on, output):
                tell(stage.name, "done before, kept")
                continue
            harmed[stage.name] = ledger.is_damaged(stage.name, plan.rests_on, output)
            if harmed[stage.name]:
                tell(stage.name, "its result was changed or damaged since: doing it again")
        if any(name in FILES for name in harmed):
            edits.begin_again()
        for stage_name in chosen.again:
            shutil.rmtree(job.parts / stage_name, ignore_errors=True)
        spent: dict[str, list[Done]] = {name: [] for name in harmed}
        reports: dict[str, CommandReport] = {}
        if harmed or edits.pending:
            made = [name for name in harmed if name in FILES]
            rest = [name for name in harmed if name not in FILES]
            with contextlib.ExitStack() as stack:
                place = workers if workers is not None else stack.enter_context(workers_here(chosen.workers))
                if edits.pending:
                    if made:
                        reports = run_job(job, made, place, tell, spent, ledger, show=show)
                    edits.lay(tell)
                    reports |= run_job(job, rest, place, tell, spent, ledger, show=show) if rest else {}
                else:
                    reports = run_job(job, harmed, place, tell, spent, ledger, show=show)
        if job.parts.exists():
            shutil.rmtree(job.parts)
        for stage in stages:
            if not (recording.results / stage.output).is_file():
                raise InputError(f"{recording.results / stage.output}: was removed during the run; run it again")
    outcomes = []
    for stage in stages:
        name = stage.name
        if name not in harmed:
            outcomes.append(StageOutcome(name, "kept", 0.0, 0.0, None, ledger.reason(name)))
            continue
        status = "redone" if harmed[name] else "done"
        took = [sum(getattr(one, key) for one in spent[name]) for key in ("seconds", "cpu_seconds")]
        outcomes.append(StageOutcome(name, status, took[0], took[1], reports[name], ledger.reason(name)))
    return outcomes


def _bead_outcomes(recording: Recording, options: RunOptions, tell: Callable[[str, str], None]) -> list[StageOutcome]:
    """Run the steps of a recording of X-ray cameras alone, which have no options here."""
    if options.until != "report" or options.stage_options or options.changes or options.again:
        raise InputError(
            f"{recording.folder}: X-ray cameras alone: --until, --set and --again are of light cameras; the steps with "
            "their options are `vivarig xray undistort`, `calibrate`, `track` and `triangulate`"
        )
    return [
        StageOutcome(name, status, seconds, seconds, report, reason)
        for name, status, seconds, report, reason in run_beads(recording, tell)
    ]


def run_job(
    job: Job,
    todo: Mapping[str, bool] | Sequence[str],
    workers: Workers,
    tell: Callable[[str, str], None],
    spent: dict[str, list[Done]],
    ledger: Ledger | None,
    *,
    show: bool = True,
) -> dict[str, CommandReport]:
    """Run the stages ``todo`` of a job with one progress display; note in ``spent`` and the ledger what was done."""
    outputs = {stage.name: stage.output for stage in STAGES}
    nodes = nodes_of(job, todo, workers.capacity)
    begun: set[str] = set()
    with StagesDisplay(show=show) as display:
        for stage in todo:
            display.add(stage, sum(node.frames for node in nodes if node.key[0] == stage) or 1)

        def started(node: Node) -> None:
            if node.key[0] in todo and node.key[0] not in begun:
                begun.add(node.key[0])
                tell(node.key[0], "running")

        def finished(node: Node, answer: Done) -> None:
            stage, what, part = node.key
            spent.setdefault(stage, []).append(answer)
            display.finished(f"{stage} {part}", node.frames)
            if what == "join":
                output = job.folder / "results" / outputs[stage]
                if not output.is_file():
                    raise InputError(f"{output}: the stage '{stage}' made no result")
                if ledger is not None:
                    record(ledger, job.recording, job.plans[stage], output, answer.value.reason)

        def heard(label: str, done: int, total: int) -> None:
            display.running(label, done)

        if isinstance(workers, LocalWorkers):
            workers.on_progress = heard
            workers.start(len(job.stretches))
            rehearsal = rehearsal_nodes(job, todo) if workers.capacity > 1 else []
            reports = run_nodes([*nodes, *rehearsal], workers, finished, started)
            if rehearsal:
                note_done()
            return reports
        if not isinstance(workers, Inline):
            return run_nodes(nodes, workers, finished, started)
        before = relay_progress(heard)
        try:
            return run_nodes(nodes, workers, finished, started)
        finally:
            relay_progress(before)


def _planned(
    recording: Recording,
    options: RunOptions,
    stages: Sequence[Stage],
    ledger: Ledger,
    tell: Callable[[str, str], None],
) -> Job:
    """Return the job with the plan of each stage."""
    brought = digest_of_inputs(recording)
    plans: dict[str, StagePlan] = {}
    for stage in stages:
        before = [plans[need].rests_on for need in stage.needs]
        rests = (before, brought, options.part_frames, ledger, tell)
        words = options.changes.get(stage.name, {})
        if words or stage.name in (*options.stage_options, *options.again):
            given = options.stage_options.get(stage.name) or own_options(recording, stage.options)
            given = changed(given, words, said=f"--set {stage.name}")
            plans[stage.name] = plan_with(recording, stage, given, *rests)
        else:
            plans[stage.name] = plan_as_before(recording, stage, *rests)
    job = Job(recording.folder.resolve(), Span(0, 0), plans, options.part_frames)
    cut_out = job.options(SilhouetteOptions)
    count = cut_out.subjects or recording.subjects
    if count > 1 and len(stages) > 1:
        raise InputError(
            f"{recording.folder}: {count} subjects; run `vivarig silhouettes {recording.folder} --subjects {count}`, "
            f"then `vivarig run` on {recording.results}/subject_1 to subject_{count}"
        )
    if "track" in plans:
        _check_subject(recording, job.options(TrackOptions))
    job = replace(job, whole=frames_of(recording, cut_out))
    job.check_start()
    return job


def _check_subject(recording: Recording, options: TrackOptions) -> None:
    """Refuse a subject that is not there now, rather than when the silhouettes of a long recording are done."""
    name = options.subject or recording.subject
    if not name:
        raise InputError(
            f'{recording.folder}: recording.toml names no subject; add a line like subject = "mouse" ({_SUBJECTS}), or '
            "give --set track.subject=NAME"
        )
    if name not in BODIES and not any(place.is_dir() for place in (recording.folder / name, Path(name))):
        raise InputError(f"{recording.folder}: unknown subject '{name}'; wanted {_SUBJECTS}")


def frames_of(recording: Recording, options: SilhouetteOptions) -> Span:
    """Return the rows of ``silhouettes.h5``: the frames that all cameras have, or those that were asked for."""
    from capture.silhouettes.segment import count_frames  # half of what this process would import

    total = count_frames(recording)
    last = total if options.stop is None else min(options.stop, total)
    if not 0 <= options.start < last:
        raise InputError(
            f"silhouettes: wanted frames from --start {options.start} to --stop {last}, the recording has 0 to "
            f"{total - 1}"
        )
    return Span(0, last - options.start)
