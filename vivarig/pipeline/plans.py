"""What each stage is to be made with: the recording's own settings, and what was given on top of them for once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from calibration.foundation.errors import InputError
from capture.recordings.recording import Recording
from vivarig.jobs.fingerprints import Ledger, digest_of_more, digest_of_words
from vivarig.jobs.job import StagePlan
from vivarig.pipeline.stages import Stage
from vivarig.stages.options import StageOptions, changed, differences, own_options

__all__ = ["plan_as_before", "plan_of", "plan_with", "record"]

Tell = Callable[[str, str], None]


def plan_of(
    recording: Recording, stage: Stage, options: StageOptions, before: Sequence[str], brought: str, part_frames: int
) -> StagePlan:
    """Return the plan of a stage: its options, and a digest of all that its result depends on."""
    matters = asdict(options)
    if stage.phases:
        matters["part_frames"] = part_frames
    more = digest_of_more(recording, stage.name, matters)
    return StagePlan(stage.name, options, digest_of_words(stage.name, brought, more, *before, options=matters))


def plan_with(
    recording: Recording, stage: Stage, options: StageOptions, before: Sequence[str], brought: str, part_frames: int,
    ledger: Ledger, tell: Tell,
) -> StagePlan:  # fmt: skip
    """Return the plan of a stage whose options are given now, for once; noted, so that an interrupted run goes on."""
    plan = plan_of(recording, stage, options, before, brought, part_frames)
    given = differences(options, own_options(recording, stage.options))
    if given:
        tell(stage.name, f"with {_words(given)}, for this once ({_always(stage, given)})")
    if not ledger.made_from(stage.name, plan.rests_on):
        ledger.begin(stage.name, plan.rests_on, given)
    return plan


def plan_as_before(
    recording: Recording, stage: Stage, before: Sequence[str], brought: str, part_frames: int, ledger: Ledger,
    tell: Tell,
) -> StagePlan:  # fmt: skip
    """Return the plan of a stage for which nothing is given now.

    What was given for once holds for what it was given for: the result that it made is kept, an interrupted run goes on
    with it. Whatever is made anew, from other inputs, is made as recording.toml says; all of this is told.
    """
    own = own_options(recording, stage.options)
    plan = plan_of(recording, stage, own, before, brought, part_frames)
    lost: Mapping[str, str] = {}
    for given, rests_on in ledger.given(stage.name):
        try:
            options = changed(own, given, said=stage.name)
        except InputError:
            continue  # an option that this version no longer has
        if options == own:
            continue
        other = plan_of(recording, stage, options, before, brought, part_frames)
        if other.rests_on == rests_on:
            way = f"`--again {stage.name}` makes it without; {_always(stage, given)}"
            tell(stage.name, f"with {_words(given)}, as given for it before ({way})")
            return other
        lost = given
    if lost and not ledger.made_from(stage.name, plan.rests_on):
        tell(stage.name, f"without {_words(lost)}, which was given for once ({_always(stage, lost)})")
    return plan


def record(ledger: Ledger, recording: Recording, plan: StagePlan, output: Path, reason: str) -> None:
    """Note what a stage made, and the options that were given for it."""
    given = differences(plan.options, own_options(recording, type(plan.options)))
    ledger.record(plan.name, plan.rests_on, output, reason, given)


def _words(given: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in given.items())


def _always(stage: Stage, given: Mapping[str, str]) -> str:
    return f"for always: [{stage.name}] {', '.join(given)} in recording.toml"
