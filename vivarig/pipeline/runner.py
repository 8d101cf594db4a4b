"""Run the stages of one recording: skip what is done, redo what is stale or harmed, leave nothing half-written."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from calibration.errors import InputError
from capture.recording import Recording
from vivarig.pipeline.fingerprints import Ledger, digest_of_inputs, digest_of_words
from vivarig.pipeline.stages import STAGES, Stage, options_of, run_stage
from vivarig.reporting import CommandReport

__all__ = ["RunOptions", "StageOutcome", "run_recording"]

#: Options that change how fast a stage runs, never what it makes.
_SPEED_ONLY = ("workers", "recording", "json", "verbose")


@dataclass(frozen=True)
class RunOptions:
    """How to run.

    Attributes:
        until: last stage to run.
        stage_options: per stage, option names of its verb with their values as text.
        workers: processes or threads a stage may use; None: its own choice.
        again: stages to redo even if done.
    """

    until: str = "report"
    stage_options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    workers: int | None = None
    again: tuple[str, ...] = ()


@dataclass(frozen=True)
class StageOutcome:
    """What became of one stage.

    Attributes:
        name: the stage.
        status: "done" now, "kept" from before, or "redone" because its result was harmed.
        seconds: time it took now.
        report: what it said, None if kept.
    """

    name: str
    status: str
    seconds: float
    report: CommandReport | None


def wanted_stages(options: RunOptions) -> tuple[Stage, ...]:
    """Return the stages up to the last one wanted."""
    names = [stage.name for stage in STAGES]
    for name in (options.until, *options.stage_options, *options.again):
        if name not in names:
            raise InputError(f"'{name}' is not a stage; the stages are {', '.join(names)}")
    return STAGES[: names.index(options.until) + 1]


def run_recording(
    recording: Recording, options: RunOptions | None = None, on_stage: Callable[[str, str], None] | None = None
) -> list[StageOutcome]:
    """Bring all stages of a recording up to date and say what became of each.

    ``on_stage`` is told (stage, what is happening) as it goes.
    """
    chosen = options or RunOptions()
    stages = wanted_stages(chosen)
    recording.need_rig()
    tell = on_stage or (lambda stage, text: None)
    brought = digest_of_inputs(recording)
    ledger = Ledger(recording.results)
    outcomes = []
    for stage in stages:
        given = dict(chosen.stage_options.get(stage.name, {}))
        arguments = options_of(stage.name, given, recording.folder)
        if chosen.workers is not None and hasattr(arguments, "workers"):
            arguments.workers = chosen.workers
        matters = {k: v for k, v in vars(arguments).items() if k not in _SPEED_ONLY}
        rests_on = digest_of_words(stage.name, brought, *(ledger.made(need) for need in stage.needs), options=matters)
        output = recording.results / stage.output
        if stage.name not in chosen.again and ledger.is_done(stage.name, rests_on, output):
            tell(stage.name, "done before, kept")
            outcomes.append(StageOutcome(stage.name, "kept", 0.0, None))
            continue
        harmed = ledger.is_damaged(stage.name, rests_on, output)
        tell(stage.name, "its result was changed or damaged since: doing it again" if harmed else "running")
        start = time.monotonic()
        report = run_stage(stage.name, arguments)
        if not output.is_file():
            raise InputError(f"{output}: the stage '{stage.name}' made no result")
        ledger.record(stage.name, rests_on, output)
        status = "redone" if harmed else "done"
        outcomes.append(StageOutcome(stage.name, status, time.monotonic() - start, report))
    return outcomes
