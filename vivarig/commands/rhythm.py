"""``vivarig rhythm``: is there a regular gait, by the silhouettes alone."""

from __future__ import annotations

import argparse
from pathlib import Path

from capture.recordings.recording import load_recording
from capture.rhythm import key_frames
from vivarig.console.reporting import CommandReport
from vivarig.stages.silhouette_rhythm import recording_rhythm

__all__ = ["EXAMPLE", "HELP", "add_arguments", "run"]

HELP = (
    "Say from results/silhouettes.h5 whether the subject walks regularly, how many strides a second, and in which "
    "frames key poses tell the cycle apart best. Only silhouettes are needed, no track and no calibration."
)
EXAMPLE = """  vivarig rhythm mouse_07
  vivarig rhythm mouse_07 --keys 8"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("recording", type=Path, help="recording folder")
    parser.add_argument("--keys", type=int, default=4, help="how many frames to name (default 4)")


def run(args: argparse.Namespace) -> CommandReport:
    """Judge the rhythm."""
    rhythm = recording_rhythm(load_recording(args.recording))
    frames = key_frames(rhythm, args.keys)
    lines = [rhythm.words(), f"frames for key poses: {', '.join(str(frame) for frame in frames)}"]
    numbers = {
        "regular": rhythm.regular, "stride_hz": rhythm.stride_hz, "camera": rhythm.camera,
        "regularity": rhythm.regularity, "key_frames": frames,
    }  # fmt: skip
    return CommandReport(lines, numbers)
