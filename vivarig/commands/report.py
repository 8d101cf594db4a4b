"""``vivarig report``: the HTML report of a recording."""

from __future__ import annotations

import argparse
from pathlib import Path

from capture.recordings.recording import load_recording
from vivarig.commands.stage_arguments import add_options, options_from
from vivarig.console.reporting import CommandReport
from vivarig.pipeline.standalone import run_one_stage
from vivarig.stages.options import ReportOptions, own_options

__all__ = ["EXAMPLE", "HELP", "add_arguments", "run"]

HELP = "Make one self-contained HTML page from the results of a recording: quality, worst frames, overlays, plots."
EXAMPLE = "  vivarig report mouse_07\n  vivarig report mouse_07 --output mouse_07.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recording", type=Path, help="recording folder")
    add_options(parser, ReportOptions)


def run(args: argparse.Namespace) -> CommandReport:
    """Write the report."""
    recording = load_recording(args.recording)
    options = options_from(args, own_options(recording, ReportOptions))
    return run_one_stage("report", recording, options)
