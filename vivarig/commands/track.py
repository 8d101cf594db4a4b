"""``vivarig track``: fit the template surface to each frame."""

from __future__ import annotations

import argparse
from functools import lru_cache
from pathlib import Path

import h5py
import numpy as np

from calibration.errors import InputError
from calibration.rig import Rig
from capture.masks import mask_cameras, masks_in
from capture.recording import load_recording
from capture.results import open_results
from tracking.contours import Observation, observe
from tracking.scale_search import find_scale, make_solver
from tracking.subject import Subject, load_subject, scaled_subject
from tracking.track_file import write_track
from tracking.tracker import Tracker, TrackerSettings
from vivarig.progress import progress_callback
from vivarig.reporting import CommandReport

__all__ = ["EXAMPLE", "HELP", "add_arguments", "run"]

HELP = (
    "Fit the subject's template to the silhouettes of each frame (results/silhouettes.h5) and write quads, surface, "
    "virtual markers and trust to results/track.h5. The start is found automatically."
)
EXAMPLE = """  vivarig track mouse_07
  vivarig track mouse_07 --subject subjects/m7 --start 120"""

MIN_TRUSTED = 0.5
"""Share of trusted frames below which the command says that quality is low."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("recording", type=Path, help="recording folder")
    parser.add_argument("--subject", metavar="NAME", help="built-in body or subject folder (default: the recording's)")
    parser.add_argument(
        "--scale", default="auto", metavar="FACTOR",
        help="size of the subject against its template: a number, or auto to estimate it (built-in bodies) ",
    )  # fmt: skip
    parser.add_argument("--start", type=int, metavar="FRAME", help="frame to start at (default: chosen)")
    parser.add_argument("--frames", metavar="A:B", help="only frames A to B - 1; the others stay untracked")
    parser.add_argument("--smooth", type=int, default=1, metavar="N", help="smoothing sweeps (default 1, 0 for none)")


def run(args: argparse.Namespace) -> CommandReport:
    """Track a recording."""
    recording = load_recording(args.recording)
    name = args.subject or recording.subject
    if not name:
        raise InputError(f"{recording.folder}: recording.toml names no subject; give --subject mouse|rat|human|FOLDER")
    path = recording.results / "silhouettes.h5"
    cameras, frames = mask_cameras(path)
    rig = recording.need_rig().subset(cameras)
    first, last = _span(args.frames, frames)
    subject = load_subject(str(name), base=recording.folder)
    with open_results(path, stage="silhouettes") as file:

        @lru_cache(maxsize=64)
        def look(frame: int) -> Observation:
            return _observation(file, rig, first + frame)

        subject, scale = _sized(subject, args.scale, rig, look, last - first)
        solver = make_solver(subject, rig)
        tracker = Tracker(solver, rig, settings=TrackerSettings(smooth_sweeps=max(args.smooth, 0)))
        with progress_callback("tracking") as on_progress:
            track = tracker.track(
                look, last - first, start=None if args.start is None else args.start - first, on_progress=on_progress
            )
    if (first, last) != (0, frames):
        track = track.padded(first, frames)
    write_track(
        recording.results / "track.h5",
        track,
        subject,
        solver,
        rate_hz=recording.rate_hz,
        parameters={"subject": str(name), "scale": scale, "smooth": args.smooth, "start": track.start},
    )
    span = track.trust[first:last]
    shares = [float(np.mean(span == level)) for level in range(3)]
    agreement = float(np.nanmedian(track.agreement[first:last]))
    lines = [
        f"{last - first} frames, {len(cameras)} cameras, subject {subject.name} x {scale:.3f}: results/track.h5",
        f"  trusted {100 * shares[0]:.1f} %, doubtful {100 * shares[1]:.1f} %, lost {100 * shares[2]:.1f} %",
        f"  silhouette overlap {agreement:.3f} IoU (median), outline residual "
        f"{float(np.nanmedian(track.residual)):.2f} mm, start at frame {track.start}",
    ]
    numbers = {
        "frames": last - first,
        "scale": scale,
        "trusted_share": shares[0],
        "doubtful_share": shares[1],
        "lost_share": shares[2],
        "agreement_iou": agreement,
        "residual_mm": float(np.nanmedian(track.residual)),
        "start_frame": track.start,
    }
    reason = "" if shares[0] >= MIN_TRUSTED else f"only {100 * shares[0]:.0f} % of the frames are trusted"
    return CommandReport(lines, numbers, not reason, reason)


def _span(words: str | None, frames: int) -> tuple[int, int]:
    if words is None:
        return 0, frames
    start, colon, stop = words.partition(":")
    try:
        first, last = int(start or 0), int(stop or frames)
    except ValueError:
        raise InputError(f"--frames wants A:B, e.g. 100:400, got {words!r}") from None
    if not colon or not 0 <= first < last <= frames:
        raise InputError(f"--frames {words}: the recording has frames 0 to {frames - 1}")
    return first, last


def _observation(file: h5py.File, rig: Rig, frame: int) -> Observation:
    return observe([masks_in(file, name, frame)[0] for name in rig.names])


def _sized(subject: Subject, wanted: str, rig: Rig, look: object, frames: int) -> tuple[Subject, float]:
    """Scale the subject as asked, or as the silhouettes say."""
    if wanted != "auto":
        try:
            scale = float(wanted)
        except ValueError:
            raise InputError(f"--scale wants a number or auto, got {wanted!r}") from None
        if not 0.2 < scale < 5.0:
            raise InputError(f"--scale must lie between 0.2 and 5, got {scale:g}")
    else:
        assert callable(look)
        seen = {int(f): look(int(f)).seen for f in np.linspace(0, frames - 1, min(frames, 12)).astype(int)}
        best = max(seen.values())
        if best < 2:
            raise InputError(
                "no frame has a silhouette in two cameras; run `vivarig silhouettes` and look at its report"
            )
        good = [f for f, count in seen.items() if count == best]
        chosen = [good[i] for i in np.unique(np.linspace(0, len(good) - 1, min(2, len(good))).astype(int))]
        scale = find_scale(subject, rig, look, chosen, up=np.array([0.0, 0.0, 1.0]))
    return (subject if scale == 1.0 else scaled_subject(subject, scale)), scale
