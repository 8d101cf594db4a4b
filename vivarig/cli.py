"""The command line: ``vivarig <verb>``; one module per verb under ``vivarig/commands``.

Exit codes: 0 done, 1 done but quality below its own threshold (said which), 2 bad input, 130 stopped by Ctrl-C, 143
terminated.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from calibration.foundation.errors import VivarigError, nearest, one_line
from vivarig.console.signals import end_on_signals
from vivarig.version import __version__

if TYPE_CHECKING:
    from vivarig.console.reporting import CommandReport

__all__ = ["VERBS", "main", "parser_of"]

#: Every verb with its line in ``vivarig --help``. A module is imported only when its verb is used.
VERBS = {
    "demo": "run the whole pipeline on a sample recording, to its report",
    "init": "describe a folder of videos as a recording",
    "board": "make a calibration board to print",
    "calibrate": "turn board videos into rig.toml, with a report on its accuracy",
    "sync": "estimate time offsets between cameras",
    "silhouettes": "cut the subject out of the videos",
    "hull": "reconstruct the visual hull of each frame",
    "subject": "make a subject: template, quads, prior, skeleton, markers",
    "train": "train a pose prior",
    "track": "fit the template surface to each frame",
    "skeleton": "recover the skeleton from the tracked surface",
    "rhythm": "tell from silhouettes alone whether there is a regular gait",
    "clean": "make feet stand still while they stand, and do the edits of edits.toml",
    "run": "all stages from videos to report, resumable",
    "watch": "run recordings as they arrive in a folder",
    "xray": "undistort, calibrate, track and triangulate X-ray beads",
    "evaluate": "score results against truth, the HumanEva way",
    "report": "make the HTML report of a recording",
    "film": "films of a recording with what was found drawn over it",
    "view": "look at a recording in 3D in the browser",
    "export": "write results in the formats of other tools",
    "table": "many recordings in one tidy table, CSV or Parquet",
    "compare": "groups of animals beside each other, from a table",
    "convert": "convert rig and motion files between formats",
    "completion": "make your shell complete verbs and options",
    "simulate": "film a synthetic recording with known truth",
}


def _overview() -> str:
    width = max(map(len, VERBS))
    lines = [f"  {verb:<{width}}  {text}" for verb, text in VERBS.items()]
    return "\n".join(
        [
            "usage: vivarig <verb> [options]",
            "",
            "Markerless 3D motion capture of rodents and people from calibrated cameras.",
            "",
            *lines,
            "",
            "vivarig <verb> --help explains a verb with an example; vivarig --version prints the version.",
        ]
    )


def parser_of(verb: str, module: ModuleType) -> argparse.ArgumentParser:
    """Return the parser of a verb's module."""
    parser = argparse.ArgumentParser(
        prog=f"vivarig {verb}",
        description=textwrap.fill(module.HELP, 100),
        epilog=f"example:\n{module.EXAMPLE}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers of the report to FILE")
    loud = parser.add_mutually_exclusive_group()
    loud.add_argument("--verbose", action="store_true", help="log what happens inside")
    loud.add_argument("--quiet", action="store_true", help="say nothing but what went wrong: no report, no progress")
    return parser


def _module(verb: str) -> ModuleType:
    return importlib.import_module(f"vivarig.commands.{verb}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None and words[:1] != ["view"]:  # whose way to end is Ctrl-C
        end_on_signals(f"vivarig {words[0]}" if words and words[0] in VERBS else "vivarig")
    if not words or words[0] in ("-h", "--help", "help"):
        print(_overview())
        return 0 if words else 2
    if words[0] == "--version":
        print(f"vivarig {__version__}")
        return 0
    verb = words[0]
    if verb not in VERBS:
        print(f"vivarig: unknown verb '{verb}'; {nearest(verb, VERBS)}", file=sys.stderr)
        return 2
    try:
        from threadpoolctl import threadpool_limits

        from vivarig.console.progress import silence_progress
        from vivarig.console.reporting import write_json

        module = _module(verb)  # takes seconds: may be interrupted too
        args = parser_of(verb, module).parse_args(words[1:])
        logging.basicConfig(level=logging.INFO if args.verbose else logging.WARNING, format="%(name)s: %(message)s")
        silence_progress(args.quiet)
        if verb == "completion":  # the one verb that asks all others
            args.parsers = {name: (text, parser_of(name, _module(name))) for name, text in VERBS.items()}
        # BLAS sums in another order on another number of threads: one, and every machine gives the same bytes.
        with threadpool_limits(limits=1, user_api="blas"):
            report: CommandReport = module.run(args)
        if args.json is not None:
            write_json(args.json, report.numbers)
    except (VivarigError, OSError) as error:
        print(f"vivarig {verb}: {one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"vivarig {verb}: stopped; run it again to go on from here", file=sys.stderr)
        return 130
    _say([] if args.quiet else report.lines)
    if not report.quality_ok:
        print(f"vivarig {verb}: done, but not all is well: {report.reason}", file=sys.stderr)
        return 1
    return 0


def _say(lines: Sequence[str]) -> None:
    """Print the report; one that nobody reads to its end (``| head``) is no failure."""
    try:
        for line in lines:
            print(line)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or closing it would fail once more


if __name__ == "__main__":
    sys.exit(main())
