"""``vivarig report``: the HTML report of a recording."""

from __future__ import annotations

import argparse
from pathlib import Path

from capture.recordings.recording import load_recording
from vivarig.console.reporting import CommandReport
from vivarig.report import build_report

HELP = "Make one self-contained HTML page from the results of a recording: quality, worst frames, overlays, plots."
EXAMPLE = "  vivarig report mouse_07\n  vivarig report mouse_07 --output mouse_07.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recording", type=Path, help="recording folder")
    parser.add_argument("--output", type=Path, metavar="HTML", help="where to write (default: results/report.html)")


def run(args: argparse.Namespace) -> CommandReport:
    """Write the report."""
    recording = load_recording(args.recording)
    path = args.output or recording.results / "report.html"
    numbers = build_report(recording, path)
    lines = [f"report: {path}"]
    if "mean_joint_error_mm" in numbers:
        lines.append(f"mean joint error against the truth: {numbers['mean_joint_error_mm']:.2f} mm")
    return CommandReport(lines, numbers)
