"""``vivarig table``: many recordings in one tidy table."""

from __future__ import annotations

import argparse
from pathlib import Path

from calibration.foundation.errors import InputError
from vivarig.commands.stage_arguments import whole
from vivarig.console.progress import progress_callback
from vivarig.console.reporting import CommandReport
from vivarig.statistics.recordings import find_recordings, finished_recording
from vivarig.statistics.rows import ROWS, rows_of
from vivarig.statistics.table_files import create_table

__all__ = ["EXAMPLE", "HELP", "add_arguments", "run"]

HELP = (
    "Write many recordings as one tidy table, CSV or Parquet by the suffix. A row is a joint in a frame (place, speed, "
    "angles, sigma, trust, place in the gait cycle), with --rows strides a stride of a foot, with --rows recordings a "
    "recording. The column group is the folder that holds the recording, animal is subject_id of [session]."
)
EXAMPLE = """  vivarig table day1/* day2/* -o all.csv
  vivarig table day1/* -o strides.parquet --rows strides"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recordings", type=Path, nargs="+", help="recording folders")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="OUT", help="table, .csv or .parquet")
    parser.add_argument("--rows", choices=ROWS, default=ROWS[0], help=f"what a row is (default: {ROWS[0]})")
    parser.add_argument("--every", type=whole(1), default=1, metavar="N", help="joints: every how many frames (1)")
    parser.add_argument("--skip-unfinished", action="store_true", help="leave recordings without a skeleton out")


def run(args: argparse.Namespace) -> CommandReport:
    """Write the table."""
    folders, left_out = find_recordings(args.recordings, skip_unfinished=args.skip_unfinished)
    count, lines = 0, []
    with create_table(args.output) as table, progress_callback("table") as on_progress:
        for done, folder in enumerate(folders, 1):
            recording = finished_recording(folder)
            rows = 0
            for columns in rows_of(recording, args.rows, every=args.every):
                table.write(columns)
                rows += len(next(iter(columns.values())))
            count += rows
            if args.rows == "strides" and not rows:
                lines.append(f"  {folder}: no strides. {recording.without_gait}")
            on_progress(done, len(folders))
        if not count:
            raise InputError(f"no {args.rows} in {len(folders)} recordings, so no table: {lines[0].strip()}")
    lines = [f"wrote {args.output}: {count} rows ({args.rows}) of {len(folders)} recordings", *lines]
    lines += [f"  left out: {text}" for text in left_out]
    numbers = {"rows": count, "recordings": [str(folder) for folder in folders], "left_out": left_out}
    return CommandReport(lines, numbers)
