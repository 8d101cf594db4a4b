"""``vivarig track``: fit the template surface to each frame."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from calibration.foundation.errors import InputError
from calibration.foundation.result_files import open_results, read_parameters
from calibration.foundation.spans import Span
from capture.recordings.recording import load_recording
from capture.silhouettes.subjects.subject_recordings import subject_recordings
from vivarig.console.option_types import whole_number
from vivarig.console.reporting import CommandReport
from vivarig.pipeline.standalone import run_one_stage
from vivarig.stages.mesh_tracking import add_mesh_arguments, track_meshes

__all__ = ["EXAMPLE", "HELP", "add_arguments", "run", "summary"]

HELP = (
    "Fit the subject's template to the silhouettes of each frame (results/silhouettes.h5) and write quads, surface, "
    "virtual markers and trust to results/track.h5. The start is found automatically."
)
EXAMPLE = """  vivarig track mouse_07
  vivarig track mouse_07 --subject subjects/m7 --start 120
  vivarig track --meshes scans --subject human --up y --rate-hz 30 -o walk"""

MIN_TRUSTED = 0.5
"""Share of trusted frames below which the command says that quality is low."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("recording", type=Path, nargs="?", help="recording folder")
    parser.add_argument("--subject", metavar="NAME", help="built-in body or subject folder (default: the recording's)")
    parser.add_argument("--which", type=int, metavar="K", help="which subject, of a recording with several: 1, 2, ...")
    parser.add_argument(
        "--scale", default="auto", metavar="FACTOR",
        help="size of the subject against its template: a number (its lengths are then known), or auto to estimate it",
    )  # fmt: skip
    parser.add_argument(
        "--no-adapt", action="store_true",
        help="keep the built-in body's proportions: estimate its size only, not the lengths and girths of its parts",
    )  # fmt: skip
    parser.add_argument("--start", type=int, metavar="FRAME", help="frame to start at (default: chosen)")
    parser.add_argument("--frames", metavar="A:B", help="only frames A to B - 1; the others stay untracked")
    parser.add_argument("--workers", type=whole_number(1), metavar="N", help="processes to use (default: all cores)")
    parser.add_argument(
        "--smooth", type=whole_number(0), default=1, metavar="N", help="smoothing sweeps (default 1, 0 for none)"
    )
    parser.add_argument(
        "--no-texture", action="store_true", help="use silhouettes only, not the texture of fur or cloth in the images"
    )
    add_mesh_arguments(parser)


def run(args: argparse.Namespace) -> CommandReport:
    """Track a recording, in parts on all cores; or a folder of meshes."""
    if args.meshes is not None:
        target, frames = track_meshes(args)
        return summary(target, Span(0, frames), 0, 0.0)
    if args.recording is None:
        raise InputError("what shall be tracked? give a recording folder, or --meshes DIR")
    return run_one_stage("track", argparse.Namespace(**{**vars(args), "recording": _chosen(args)}))


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


def _shape_words(shape: Mapping[str, Any]) -> str:
    """Say which lengths and girths the body was given, or why it was left as it is."""
    if shape["kept"]:
        words = "; ".join(
            f"{kind} of " + ", ".join(f"{part} {factor:.2f}" for part, factor in shape[f"{kind}s"].items())
            for kind in ("length", "girth")
        )
        return (
            f"body adapted: {words} of the built-in's (overlap in {len(shape['held'])} frames held out "
            f"{shape['before']:.3f} -> {shape['after']:.3f})"
        )
    tried = "" if shape["before"] is None else f" (overlap {shape['before']:.3f} -> {shape['after']:.3f})"
    return f"body not adapted: {shape['why']}{tried}"


def summary(path: Path, span: Span, apart: int, seam_mm: float) -> CommandReport:
    """Say how a track came out: of the frames in ``span``, with so many seams where parts disagree."""
    with open_results(path, stage="track") as file:
        rows = slice(span.first, span.stop)
        trust, agreement, residual = (file[name][rows] for name in ("trust", "agreement", "residual"))
        cameras = file["overlap"].shape[1]
        subject, start = str(file.attrs["subject"]), int(file.attrs["start_frame"])
        parameters = read_parameters(file)
    scale, parts = float(parameters["scale"]), int(parameters["parts"])
    shares = [float(np.mean(trust == level)) for level in range(3)]
    overlap = float(np.nanmedian(agreement))
    lines = [
        f"{len(span)} frames, {cameras} cameras, subject {subject} x {scale:.3f}: results/track.h5",
        f"  trusted {100 * shares[0]:.1f} %, doubtful {100 * shares[1]:.1f} %, lost {100 * shares[2]:.1f} %",
        f"  silhouette overlap {overlap:.3f} IoU (median), outline residual "
        f"{float(np.nanmedian(residual)):.2f} mm, start at frame {start}",
    ]
    shape = parameters.get("shape")
    if shape:
        lines.append(f"  {_shape_words(shape)}")
    if parts > 1:
        lines.append(f"  {parts} parts, {apart} seams where they disagree; largest distance at a seam {seam_mm:.2f} mm")
    numbers = {
        "frames": len(span),
        "scale": scale,
        "trusted_share": shares[0],
        "doubtful_share": shares[1],
        "lost_share": shares[2],
        "agreement_iou": overlap,
        "residual_mm": float(np.nanmedian(residual)),
        "start_frame": start,
        "parts": parts,
        "seams_apart": apart,
        "seam_mm": seam_mm,
        "shape": shape,
    }
    reason = "" if shares[0] >= MIN_TRUSTED else f"only {100 * shares[0]:.0f} % of the frames are trusted"
    return CommandReport(lines, numbers, not reason, reason)
