"""The stages of a recording, in order: what each needs, makes and is run by."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from threadpoolctl import threadpool_limits

from calibration.foundation.errors import InputError, nearest
from vivarig.console.reporting import CommandReport

__all__ = ["STAGES", "Stage", "options_of", "run_stage"]


@dataclass(frozen=True)
class Stage:
    """One stage: the verb of the same name run on the recording.

    Attributes:
        name: the verb.
        output: the file it makes in ``results/``.
        needs: the stages whose outputs it reads.
        phases: what is done with each part, one after the other; none: the stage is done as a whole.
        shared: whether its parts share something that is made first.
    """

    name: str
    output: str
    needs: tuple[str, ...]
    phases: tuple[str, ...] = ()
    shared: bool = False


STAGES: tuple[Stage, ...] = (
    Stage("silhouettes", "silhouettes.h5", (), ("masks",), shared=True),
    Stage("hull", "hull.h5", ("silhouettes",), ("hulls",)),
    Stage("track", "track.h5", ("silhouettes",), ("track", "mend"), shared=True),
    Stage("skeleton", "skeleton.h5", ("track",)),
    Stage("report", "report.html", ("silhouettes", "hull", "track", "skeleton")),
)


def _parser(stage: str) -> argparse.ArgumentParser:
    module = importlib.import_module(f"vivarig.commands.{stage}")
    parser = argparse.ArgumentParser(prog=f"vivarig {stage}", add_help=False, exit_on_error=False)
    module.add_arguments(parser)
    return parser


def options_of(stage: str, given: Mapping[str, str], folder: Path) -> argparse.Namespace:
    """Return the arguments of a stage's verb: its defaults with ``given`` (option name to text) on top."""
    parser = _parser(stage)
    known = {action.option_strings[-1].lstrip("-"): action for action in parser._actions if action.option_strings}
    words = [str(folder)]
    for name, value in given.items():
        if name not in known:
            raise InputError(f"--set {stage}.{name}: no such option; {nearest(name, known)}")
        words.append(f"--{name}")
        if known[name].nargs != 0:
            words.append(value)
        elif value != "true":
            raise InputError(f"--set {stage}.{name} is a switch; give it as {stage}.{name}=true")
    try:
        return parser.parse_args(words)
    except (argparse.ArgumentError, SystemExit) as error:
        raise InputError(f"--set {stage}: {error}") from None


def run_stage(stage: str, arguments: argparse.Namespace) -> CommandReport:
    """Run a stage's verb."""
    module = importlib.import_module(f"vivarig.commands.{stage}")
    with threadpool_limits(limits=1, user_api="blas"):  # the same bytes on any number of cores
        report = module.run(arguments)
    assert isinstance(report, CommandReport)
    return report
