"""``vivarig silhouettes``: cut the subject out of the videos."""

from __future__ import annotations

import argparse
from pathlib import Path

from capture.recordings.recording import load_recording
from vivarig.commands.stage_arguments import add_options, add_workers, options_from
from vivarig.console.reporting import CommandReport
from vivarig.pipeline.standalone import run_one_stage
from vivarig.stages import silhouettes
from vivarig.stages.options import SilhouetteOptions, own_options

__all__ = ["EXAMPLE", "HELP", "add_arguments", "run"]

HELP = "Cut the subject out of each camera's images and write results/silhouettes.h5."
EXAMPLE = """  vivarig silhouettes mouse_07
  vivarig silhouettes mouse_07 --model moving --sheet look.png --json silhouettes.json
  vivarig silhouettes two_mice --subjects 2"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("recording", type=Path, help="recording folder")
    add_options(parser, SilhouetteOptions)
    add_workers(parser)


def run(args: argparse.Namespace) -> CommandReport:
    """Segment the recording."""
    silhouettes.check_sheet(options_from(args, SilhouetteOptions()))
    recording = load_recording(args.recording)
    options = options_from(args, own_options(recording, SilhouetteOptions))
    return run_one_stage("silhouettes", recording, options, args.workers)
