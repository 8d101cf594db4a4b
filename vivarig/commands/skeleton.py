"""``vivarig skeleton``: from virtual markers to joints."""

from __future__ import annotations

import argparse
from pathlib import Path

from capture.recordings.recording import load_recording
from vivarig.commands.stage_arguments import add_options, options_from
from vivarig.console.reporting import CommandReport
from vivarig.pipeline.standalone import run_one_stage
from vivarig.stages.options import SkeletonOptions, own_options

__all__ = ["EXAMPLE", "HELP", "add_arguments", "run"]

HELP = "Recover the skeleton from the markers of results/track.h5 into results/skeleton.h5."
EXAMPLE = """  vivarig skeleton mouse_07
  vivarig skeleton mouse_07 --smooth 0 --no-scaling"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("recording", type=Path, help="recording folder")
    add_options(parser, SkeletonOptions)


def run(args: argparse.Namespace) -> CommandReport:
    """Fit the skeleton."""
    recording = load_recording(args.recording)
    options = options_from(args, own_options(recording, SkeletonOptions))
    return run_one_stage("skeleton", recording, options)
