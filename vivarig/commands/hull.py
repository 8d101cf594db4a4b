"""``vivarig hull``: reconstruct the visual hull of each frame."""

from __future__ import annotations

import argparse
from pathlib import Path

from capture.recordings.recording import load_recording
from vivarig.commands.stage_arguments import add_options, add_workers, options_from
from vivarig.console.reporting import CommandReport
from vivarig.pipeline.standalone import run_one_stage
from vivarig.stages.options import HullOptions, own_options

__all__ = ["EXAMPLE", "HELP", "add_arguments", "run"]

HELP = (
    "Reconstruct the visual hull of each frame from results/silhouettes.h5 into results/hull.h5; of each subject in "
    "results/subject_1, ... where there are several."
)
EXAMPLE = """  vivarig hull mouse_07
  vivarig hull mouse_07 --voxel 2 --robust 1 --posture posture.csv"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("recording", type=Path, help="recording folder")
    add_options(parser, HullOptions)
    add_workers(parser)


def run(args: argparse.Namespace) -> CommandReport:
    """Reconstruct the hulls."""
    recording = load_recording(args.recording)
    options = options_from(args, own_options(recording, HullOptions))
    return run_one_stage("hull", recording, options, args.workers)
