"""``vivarig sync``: time offsets between cameras from the motion of the board or of the subject."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import cv2
import numpy as np

from calibration.boards.session import Session, open_session
from calibration.boards.sightings import merge_sightings
from calibration.boards.synchronisation import Offset, offset_of_signals, offsets_of_session
from calibration.foundation.errors import InputError
from capture.recordings.recording import load_recording
from capture.recordings.video import read_frames
from vivarig.calibration_stage.board_footage import detect_session
from vivarig.commands.stage_arguments import whole
from vivarig.console.progress import progress
from vivarig.console.reporting import CommandReport

__all__ = ["EXAMPLE", "HELP", "add_arguments", "run"]

HELP = """Estimate how late each camera is against the first, in whole frames and fractions.

A calibration session is synchronised by its board: first by when it moves, then by the epipolar geometry of its
corners. A recording (with recording.toml) is synchronised by when the subject moves, to about half a frame."""
EXAMPLE = """  vivarig sync my_session
  vivarig sync mouse_07 --json offsets.json"""

DOUBTFUL = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    parser.add_argument("folder", type=Path, help="calibration session, or recording with recording.toml")
    parser.add_argument("--board", type=Path, metavar="FILE", help="board description, if not SESSION/board.toml")
    parser.add_argument("--output", type=Path, metavar="DIR", help="where the detections are kept (SESSION/results)")
    parser.add_argument("--most", type=int, metavar="N", help="largest offset to consider, frames")
    parser.add_argument(
        "--workers", type=whole(1), default=os.cpu_count() or 1, metavar="N", help="images searched at once"
    )


def run(args: argparse.Namespace) -> CommandReport:
    """Estimate the offsets."""
    if (args.folder / "recording.toml").is_file():
        offsets = _by_subject(args.folder, args.most)
    else:
        offsets = _by_board(open_session(args.folder, args.board), args)
    lines = []
    for name, offset in offsets.items():
        if offset.method == "reference":
            lines.append(f"  {name}: reference")
            continue
        spread = f" +- {offset.sd_frames:.3f}" if np.isfinite(offset.sd_frames) else ""
        how = f"{offset.method}, correlation {offset.correlation:.2f}"
        lines.append(f"  {name}: {offset.frames:+.2f}{spread} frames late ({how})")
    doubtful = [n for n, o in offsets.items() if o.method == "motion" and not o.correlation > DOUBTFUL]
    numbers = {
        name: {"frames": o.frames, "sd_frames": o.sd_frames, "correlation": o.correlation, "method": o.method}
        for name, o in offsets.items()
    }
    return CommandReport(
        ["time offsets:", *lines, "put a whole number of frames as `offset` in recording.toml"],
        {"offsets": numbers},
        quality_ok=not doubtful,
        reason=f"the motion of {', '.join(doubtful)} resembles the first camera's too little (below {DOUBTFUL:g})",
    )


def _by_board(session: Session, args: argparse.Namespace) -> dict[str, Offset]:
    output = args.output or session.folder / "results"
    # videos of different lengths are what this command is for
    boards, detections, _ = detect_session(session, output, workers=args.workers, step=1, trim=True)
    sightings = merge_sightings([d.sightings(boards) for d in detections])
    return offsets_of_session(sightings, most=args.most)


def _by_subject(folder: Path, most: int | None) -> dict[str, Offset]:
    recording = load_recording(folder)
    if len(recording.footage) < 2:
        raise InputError(f"{folder}: one camera only, nothing to synchronise")
    signals = {}
    for footage in recording.footage:
        signals[footage.name] = _change(footage.source, footage.name)
    names = list(signals)
    out = {names[0]: Offset(0.0, 0.0, 1.0, "reference")}
    for name in names[1:]:
        out[name] = offset_of_signals(signals[names[0]], signals[name], most=most)
    return out


def _change(source: Path, name: str) -> np.ndarray:
    """Return how much the picture changes at each frame step: the root of the mean of the strongest changes."""
    before: np.ndarray | None = None
    out = []
    for _, image in progress(read_frames(source, gray=True), f"watching {name}"):
        small = cv2.resize(image, None, fx=0.25, fy=0.25, interpolation=cv2.INTER_AREA).astype(np.float32)
        if before is not None:
            difference = np.abs(small - before)
            strong = difference[difference > 8.0]  # above sensor noise
            out.append(float(np.sqrt(strong.sum())))
        before = small
    return np.array(out)
