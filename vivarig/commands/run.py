"""``vivarig run``: all stages from videos to report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from calibration.foundation.errors import InputError, VivarigError, one_line
from capture.recordings.recording import load_recording
from vivarig.commands.stage_arguments import add_workers
from vivarig.console.progress import progress_callback
from vivarig.console.reporting import CommandReport
from vivarig.pipeline import STAGES, RunOptions, StageOutcome, run_recording, workers_here
from vivarig.pipeline.cluster import ClusterTrust, run_on_cluster
from vivarig.pipeline.schedule import Workers

HELP = (
    "Run all stages on one or more recordings: silhouettes, hull, track, skeleton, report. What is done already is "
    "kept; what was interrupted, changed or damaged is done again. Nothing you brought is changed. One failing "
    "recording does not stop the others. The work is cut into parts of frames, so that a run that was killed goes on "
    "inside a stage, and spread over processes here or over a Dask cluster; the result is the same wherever it is done."
)
EXAMPLE = """  vivarig run mouse_07
  vivarig run day1/* --set silhouettes.model=moving --until skeleton
  vivarig run day1/* --cluster tcp://login1:8786"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recordings", type=Path, nargs="+", metavar="RECORDING", help="recording folders")
    parser.add_argument("--until", default="report", choices=[s.name for s in STAGES], help="last stage to run")
    parser.add_argument(
        "--set", dest="settings", action="append", default=[], metavar="STAGE.OPTION=VALUE",
        help="an option of a stage's own verb, e.g. hull.voxel=2, on top of recording.toml's, for this once; only what "
        "depends on it is done again",
    )  # fmt: skip
    parser.add_argument("--again", action="append", default=[], metavar="STAGE", help="redo this stage even if done")
    add_workers(parser)
    parser.add_argument(
        "--cluster", metavar="ADDRESS", help="spread the parts of the recordings over this Dask scheduler's workers"
    )
    parser.add_argument(
        "--cluster-security", type=Path, metavar="FOLDER",
        help="ca.pem, cert.pem and key.pem for a scheduler with TLS (tls://...)",
    )  # fmt: skip
    parser.add_argument(
        "--insecure", action="store_true", help="use a plain scheduler on another machine: it trusts all who reach it"
    )


def stage_options(settings: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the options per stage from words like ``hull.voxel=2``."""
    found: dict[str, dict[str, str]] = {}
    for word in settings:
        name, equals, value = word.partition("=")
        stage, dot, option = name.partition(".")
        if not equals or not dot or not stage or not option:
            raise InputError(f"--set wants STAGE.OPTION=VALUE, e.g. hull.voxel=2, got {word!r}")
        found.setdefault(stage, {})[option] = value
    return found


def run(args: argparse.Namespace) -> CommandReport:
    """Run the recordings one after the other."""
    options = RunOptions(args.until, {}, stage_options(args.settings), args.workers, tuple(args.again))
    lines: list[str] = []
    numbers: dict[str, Any] = {}
    failed: list[str] = []
    poor: list[str] = []
    for folder, outcomes in _outcomes(args, options):
        if isinstance(outcomes, str):
            if len(args.recordings) == 1:
                raise InputError(outcomes)
            failed.append(str(folder))
            lines.append(f"{folder}: failed: {outcomes}")
            numbers[str(folder)] = {"failed": outcomes}
            continue
        lines += _lines(folder, outcomes)
        numbers[str(folder)] = {
            outcome.name: {"status": outcome.status, "seconds": outcome.seconds,
                           **(dict(outcome.report.numbers) if outcome.report else {})}
            for outcome in outcomes
        }  # fmt: skip
        poor += [f"{folder}: {outcome.name}: {outcome.reason}" for outcome in outcomes if outcome.reason]
    if failed and len(failed) == len(args.recordings):
        raise InputError(f"every recording failed; the first: {lines[0]}")
    said = [f"{len(failed)} of {len(args.recordings)} recordings failed: {', '.join(failed)}"] if failed else []
    reason = "; ".join([*said, *poor])
    return CommandReport(lines, numbers, not reason, reason)


def _outcomes(args: argparse.Namespace, options: RunOptions) -> Iterator[tuple[Path, list[StageOutcome] | str]]:
    """Yield each recording with its outcomes, or with what must be mended."""
    if args.cluster is not None:
        with progress_callback("recordings") as on_done:
            trust = ClusterTrust(args.cluster_security, args.insecure)
            done = run_on_cluster(args.recordings, options, address=args.cluster, trust=trust, on_done=on_done)
        yield from done.items()
        return
    with workers_here(args.workers) as workers:
        for folder in args.recordings:
            try:
                yield folder, _one(folder, options, workers)
            except (VivarigError, OSError) as error:
                yield folder, one_line(error)


def _one(folder: Path, options: RunOptions, workers: Workers) -> list[StageOutcome]:
    def tell(stage: str, text: str) -> None:
        sys.stderr.write(f"{folder}: {stage}: {text}\n")
        sys.stderr.flush()

    return run_recording(load_recording(folder), options, tell, workers)


def _lines(folder: Path, outcomes: list[StageOutcome]) -> list[str]:
    lines = [f"{folder}:"]
    for outcome in outcomes:
        took = f"{outcome.seconds:.1f} s of work" if outcome.status != "kept" else "kept from before"
        lines.append(f"  {outcome.name:<12} {took}")
        if outcome.report is not None:
            lines += [f"    {line}" for line in outcome.report.lines]
    return lines
