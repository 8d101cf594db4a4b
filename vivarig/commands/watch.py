"""``vivarig watch``: recordings done as they arrive."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from calibration.foundation.errors import InputError
from vivarig.commands.run import stage_options
from vivarig.commands.stage_arguments import add_workers
from vivarig.console.reporting import CommandReport
from vivarig.console.signals import before_end
from vivarig.pipeline import STAGES, RunOptions, workers_here
from vivarig.pipeline.watching import STATUS_PAGE, Watch

__all__ = ["EXAMPLE", "HELP", "add_arguments", "run"]

HELP = (
    "Watch a folder and run each recording in it (a sub-folder with recording.toml) when its files have stopped "
    f"changing, one after the other, until Ctrl-C. {STATUS_PAGE} in that folder says how each stands; open it in a "
    "browser. A recording that changes is done again as far as needed, and so after a restart."
)
EXAMPLE = """  vivarig watch day1
  vivarig watch day1 --once --until skeleton"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("folder", type=Path, help="folder that recordings arrive in")
    parser.add_argument("--once", action="store_true", help="end when all that is there is done")
    parser.add_argument(
        "--settle", type=float, default=30.0, metavar="SECONDS",
        help="a recording has arrived when none of its files changed for so long (default 30)",
    )  # fmt: skip
    parser.add_argument("--every", type=float, default=5.0, metavar="SECONDS", help="how often to look (default 5)")
    parser.add_argument("--until", default="report", choices=[s.name for s in STAGES], help="last stage to run")
    parser.add_argument(
        "--set", dest="settings", action="append", default=[], metavar="STAGE.OPTION=VALUE",
        help="as for vivarig run",
    )  # fmt: skip
    add_workers(parser)


def run(args: argparse.Namespace) -> CommandReport:
    """Watch until interrupted, or until all is done."""
    if not args.folder.is_dir():
        raise InputError(f"{args.folder}: wanted a folder that recordings arrive in")
    if not args.settle >= 0 or not args.every > 0:
        raise InputError(
            f"--settle wants 0 s or more and --every more than 0 s, got {args.settle:g} and {args.every:g}"
        )
    options = RunOptions(args.until, {}, stage_options(args.settings), args.workers)

    def tell(text: str) -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    with workers_here(args.workers) as workers:
        watch = Watch(args.folder, options, workers, settle_s=args.settle, tell=tell)
        before_end(watch.stop)
        tell(f"watching {args.folder}; {args.folder / STATUS_PAGE} says how it stands")
        try:
            while watch.look() or not args.once:
                time.sleep(args.every)
        finally:
            watch.stop()
    rows = list(watch.status.values())
    failed = [row.name for row in rows if row.state == "failed"]
    lines = [f"{row.name}: {row.state}{': ' if row.text else ''}{row.text}" for row in rows] or ["no recording found"]
    reason = f"{len(failed)} of {len(rows)} recordings failed: {', '.join(failed)}" if failed else ""
    return CommandReport(lines, {row.name: {"state": row.state, "text": row.text} for row in rows}, not reason, reason)
