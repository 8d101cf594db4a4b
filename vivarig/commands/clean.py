"""``vivarig clean``: feet that stand."""

from __future__ import annotations

import argparse
from pathlib import Path

from capture.recordings.recording import load_recording
from vivarig.commands.stage_arguments import add_options, options_from
from vivarig.console.reporting import CommandReport
from vivarig.jobs.lock import results_lock
from vivarig.stages import clean
from vivarig.stages.options import CleanOptions, own_options

__all__ = ["EXAMPLE", "HELP", "add_arguments", "run"]

HELP = (
    "Make the feet of results/skeleton.h5 stand still while they stand, and do what edits.toml asks; write "
    "results/clean.h5. The raw fit stays."
)
EXAMPLE = """  vivarig clean mouse_07
  vivarig clean person_02 --balance"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("recording", type=Path, help="recording folder")
    add_options(parser, CleanOptions)


def run(args: argparse.Namespace) -> CommandReport:
    """Clean the motion."""
    recording = load_recording(args.recording)
    options = options_from(args, own_options(recording, CleanOptions))
    with results_lock(recording.results):
        return clean.run(recording, options)
