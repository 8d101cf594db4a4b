"""``vivarig demo``: the whole pipeline on a sample recording."""

from __future__ import annotations

import argparse
import shutil
import webbrowser
from pathlib import Path

from calibration.foundation.errors import InputError
from vivarig.commands import run as run_command
from vivarig.commands.stage_arguments import add_workers
from vivarig.console.reporting import CommandReport

HELP = (
    "Copy a sample recording to a folder of its own, run all stages on it and say where the report is. The samples "
    "are made by the studio, so the report compares the result with the truth."
)
EXAMPLE = "  vivarig demo\n  vivarig demo human --folder /tmp/demo --open"

SAMPLES = ("mouse", "human")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("sample", nargs="?", default="mouse", choices=SAMPLES, help="which sample recording")
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="where to work (default: ./demo)")
    parser.add_argument("--open", action="store_true", help="open the report in the browser")
    add_workers(parser)


def samples_folder() -> Path:
    """Return the folder of sample recordings: of this checkout, or the compact copy in the installed package."""
    packed = Path(__file__).resolve().parents[1] / "samples"
    folder = Path(__file__).resolve().parents[2] / "sample_data"
    return folder if folder.is_dir() else packed


def run(args: argparse.Namespace) -> CommandReport:
    """Copy, run, show."""
    source = samples_folder() / args.sample
    target = args.folder / args.sample
    if not source.is_dir():
        raise InputError(f"the sample '{args.sample}' is not in the installed package; it is in the repository")
    if not target.exists():
        # Whole or not at all: a copy that was killed half-way would be taken for a recording that lacks its videos.
        part = target.with_name(f".{target.name}-copy")
        shutil.rmtree(part, ignore_errors=True)
        shutil.copytree(source, part, ignore=shutil.ignore_patterns("results"))
        part.rename(target)
    words = argparse.Namespace(
        recordings=[target], until="report", settings=[], again=[], workers=args.workers, cluster=None
    )
    report = run_command.run(words)
    page = (target / "results" / "report.html").resolve()
    if args.open:
        webbrowser.open(page.as_uri())
    return CommandReport([*report.lines, f"open {page} in a browser"], report.numbers, report.quality_ok, report.reason)
