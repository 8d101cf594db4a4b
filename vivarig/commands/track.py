"""``vivarig track``: fit the template surface to each frame."""

from __future__ import annotations

import argparse
from pathlib import Path

from calibration.foundation.errors import InputError
from calibration.foundation.spans import Span
from capture.recordings.recording import load_recording
from capture.silhouettes.subjects.subject_recordings import subject_recordings
from tracking.subjects.mesh_files import SUFFIXES, UPRIGHT
from vivarig.commands.stage_arguments import add_options, add_workers, options_from, real, whole
from vivarig.console.reporting import CommandReport
from vivarig.jobs.lock import results_lock
from vivarig.pipeline.standalone import run_one_stage
from vivarig.stages.options import TrackOptions, own_options
from vivarig.track_stage.mesh_tracking import MeshOptions, track_meshes
from vivarig.track_stage.track_summary import summary

__all__ = ["EXAMPLE", "HELP", "add_arguments", "run"]

HELP = (
    "Fit the subject's template to the silhouettes of each frame (results/silhouettes.h5) and write quads, surface, "
    "virtual markers and trust to results/track.h5. The start is found automatically."
)
EXAMPLE = """  vivarig track mouse_07
  vivarig track mouse_07 --subject subjects/m7 --start 120
  vivarig track --meshes scans --subject human --up y --rate-hz 30 -o walk"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("recording", type=Path, nargs="?", help="recording folder")
    parser.add_argument("--which", type=int, metavar="K", help="which subject, of a recording with several: 1, 2, ...")
    add_options(parser, TrackOptions)
    add_workers(parser)
    words = parser.add_argument_group("meshes instead of a recording")
    words.add_argument(
        "--meshes", type=Path, metavar="DIR",
        help=f"folder with one mesh per frame ({' '.join(SUFFIXES)}), no correspondence needed",
    )  # fmt: skip
    words.add_argument(
        "-o", "--output", type=Path, default=Path("tracked"), metavar="OUT", help="folder to write (default: ./tracked)"
    )
    words.add_argument(
        "--unit-mm", type=real(above=0), default=1.0, metavar="MM", help="millimetres in one unit (default 1)"
    )
    words.add_argument("--up", choices=tuple(UPRIGHT), default="z", help="their vertical axis (default z)")
    words.add_argument(
        "--rate-hz", type=real(above=0), default=25.0, metavar="HZ", help="meshes per second (default 25)"
    )
    words.add_argument(
        "--views", type=whole(2), default=10, metavar="N", help="virtual cameras around each (default 10)"
    )


def run(args: argparse.Namespace) -> CommandReport:
    """Track a recording, in parts on all cores; or a folder of meshes."""
    if args.meshes is not None:
        meshes = MeshOptions(args.meshes, args.output, args.unit_mm, args.up, args.rate_hz, args.views)
        with results_lock(args.output / "results"):
            target, frames = track_meshes(meshes, options_from(args, TrackOptions()))
        return summary(target, Span(0, frames), 0, 0.0)
    if args.recording is None:
        raise InputError("what shall be tracked? give a recording folder, or --meshes DIR")
    recording = load_recording(_chosen(args))
    return run_one_stage("track", recording, options_from(args, own_options(recording, TrackOptions)), args.workers)


def _chosen(args: argparse.Namespace) -> Path:
    """Return the folder to track: the recording, or that of one of its subjects."""
    recording = load_recording(args.recording)
    subjects = subject_recordings(recording)
    if args.which is None and not subjects:
        return recording.folder
    if args.which is None or not 1 <= args.which <= len(subjects):
        got = "" if args.which is None else f", got {args.which}"
        raise InputError(f"{recording.folder}: {max(1, len(subjects))} subjects; --which wants the number of one{got}")
    return subjects[int(args.which) - 1].folder
