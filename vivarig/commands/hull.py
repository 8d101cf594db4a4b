"""``vivarig hull``: reconstruct the visual hull of each frame."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from capture.hull.result import HullFlag, flag_words
from capture.hull.sequence import HullOptions, HullReport, reconstruct_hulls
from capture.hull.store import read_hulls
from capture.posture import posture_table, write_posture
from capture.recordings.recording import Recording, load_recording
from capture.silhouettes.subjects.subject_recordings import subject_recordings
from vivarig.console.option_types import whole_number
from vivarig.console.progress import progress_callback
from vivarig.console.reporting import CommandReport

__all__ = ["EXAMPLE", "HELP", "add_arguments", "hull_options", "run", "summary"]

HELP = (
    "Reconstruct the visual hull of each frame from results/silhouettes.h5 into results/hull.h5; of each subject in "
    "results/subject_1, ... where there are several."
)
EXAMPLE = """  vivarig hull mouse_07
  vivarig hull mouse_07 --voxel 2 --robust 1 --posture posture.csv"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("recording", type=Path, help="recording folder")
    parser.add_argument(
        "--voxel", type=float, default=None, metavar="MM", help="side of a cell (default: 2 pixels at the subject)"
    )
    parser.add_argument(
        "--robust", type=int, default=0, metavar="K", help="number of views that may be wrong at any point"
    )
    parser.add_argument(
        "--engine",
        default="implicit",
        choices=("implicit", "exact"),
        help="implicit: fast, for tracking; exact: polyhedron",
    )
    parser.add_argument(
        "--posture",
        type=Path,
        metavar="FILE",
        help="also write centroid, axes, length, height, volume and speed as CSV",
    )
    parser.add_argument("--workers", type=whole_number(1), default=None, help="threads (default: all cores)")


def hull_options(args: argparse.Namespace) -> HullOptions:
    """Return how hulls are wanted."""
    return HullOptions(voxel_mm=args.voxel, tolerated=args.robust, engine=args.engine)


def run(args: argparse.Namespace) -> CommandReport:
    """Reconstruct the hulls."""
    recording = load_recording(args.recording)
    subjects = subject_recordings(recording)
    if not subjects:
        return _hulls(args, recording)
    reports = []
    for number, one in enumerate(subjects, start=1):
        posture = args.posture and args.posture.with_stem(f"{args.posture.stem}_{number}")
        reports.append(_hulls(argparse.Namespace(**{**vars(args), "posture": posture}), one))
    lines = [f"subject {k}: {line}" for k, one in enumerate(reports, start=1) for line in one.lines]
    reason = "; ".join(f"subject {k}: {one.reason}" for k, one in enumerate(reports, start=1) if one.reason)
    return CommandReport(lines, {"subjects": [one.numbers for one in reports]}, not reason, reason)


def _hulls(args: argparse.Namespace, recording: Recording) -> CommandReport:
    """Reconstruct the hulls of one subject."""
    with progress_callback("hulls") as on_progress:
        report = reconstruct_hulls(
            recording.results / "silhouettes.h5",
            recording.need_rig(),
            recording.results / "hull.h5",
            hull_options(args),
            workers=args.workers,
            on_progress=on_progress,
        )
    return summary(args, recording, report)


def summary(args: argparse.Namespace, recording: Recording, report: HullReport) -> CommandReport:
    """Say how the hulls came out, and write what else was asked for."""
    if args.posture is not None:
        write_posture(args.posture, posture_table(read_hulls(recording.results / "hull.h5"), recording.rate_hz))
    there = report.volume > 0
    frames = len(there)
    agreement = float(np.nanmean(report.agreement)) if np.isfinite(report.agreement).any() else float("nan")
    volume = float(np.median(report.volume[there])) / 1000.0 if there.any() else float("nan")
    size = f"{volume:.4g} ml" if not volume >= 1e4 else f"{volume / 1000:.4g} litres"
    lines = [
        f"{frames} frames: results/hull.h5",
        f"  hull in {100 * there.mean():.1f} % of frames, median volume {size}, "
        f"agreement {agreement:.3f} IoU, {report.views_used.sum(axis=1).mean():.1f} views per frame",
    ]
    counts = {flag.name or str(int(flag)): int(np.count_nonzero(report.flags & flag)) for flag in HullFlag}
    for flag in HullFlag:
        if counts[flag.name or str(int(flag))]:
            lines.append(f"  {counts[flag.name or str(int(flag))]} frames: {flag_words(flag)[0]}")
    numbers = {
        "frames": frames,
        "hull_share": float(there.mean()),
        "median_volume_mm3": 1000.0 * volume,
        "agreement_iou": agreement,
        "mean_views": float(report.views_used.sum(axis=1).mean()),
        "flags": counts,
    }
    reason = "" if there.mean() >= 0.5 else f"only {100 * there.mean():.0f} % of frames have a hull"
    return CommandReport(lines, numbers, not reason, reason)
