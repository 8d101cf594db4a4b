"""``vivarig silhouettes``: cut the subject out of the videos."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from calibration.foundation.errors import InputError
from capture.recordings.masks import MaskFlag
from capture.recordings.recording import Recording, load_recording
from capture.recordings.video import probe
from capture.silhouettes import MODELS, Cleaning, ModelOptions, segment_recording
from capture.silhouettes.segment import SilhouetteReport, subjects_of
from capture.silhouettes.sheets import contact_sheet
from capture.silhouettes.subjects.subject_recordings import drop_subjects, split_subjects, subject_recordings
from vivarig.console.option_types import number, whole_number
from vivarig.console.progress import progress_callback
from vivarig.console.reporting import CommandReport

__all__ = ["EXAMPLE", "HELP", "add_arguments", "model_options", "run", "summary", "uneven_footage"]

HELP = "Cut the subject out of each camera's images and write results/silhouettes.h5."
EXAMPLE = """  vivarig silhouettes mouse_07
  vivarig silhouettes mouse_07 --model moving --sheet look.png --json silhouettes.json
  vivarig silhouettes two_mice --subjects 2"""

_SHEETS = (".png", ".jpg", ".jpeg")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    words = "; ".join(f"{name}: {text}" for name, text in MODELS.items())
    parser.add_argument("recording", type=Path, help="recording folder")
    parser.add_argument("--model", default="auto", choices=tuple(MODELS), help=words)
    parser.add_argument(
        "--threshold", type=number(above=0), default=None, metavar="SIGMA", help="strong evidence; weak is 0.45 of it"
    )
    parser.add_argument(
        "--shadow-floor",
        type=number(above=0, most=1),
        default=None,
        help="darkest brightness ratio taken for a shadow, 1: none (default: found by view agreement)",
    )
    parser.add_argument("--no-repair", action="store_true", help="store silhouettes as each camera sees them")
    parser.add_argument(
        "--margin",
        type=whole_number(0),
        default=None,
        metavar="PX",
        help="pixels added around each silhouette (default: 0; 0.3 %% of the image's longer side for a subject that "
        "sits and has no plate)",
    )
    parser.add_argument(
        "--matte",
        action="store_true",
        help="also store how much of each pixel along the edge is covered; `vivarig hull` then uses it",
    )
    parser.add_argument(
        "--subjects",
        type=int,
        default=None,
        metavar="N",
        help="how many subjects to tell apart (default: as recording.toml says, else 1); each becomes a recording of "
        "its own, results/subject_1, ...",
    )
    parser.add_argument(
        "--sheet", type=Path, metavar="FILE", help="also write a contact sheet (PNG or JPEG) for your eyes"
    )
    parser.add_argument("--start", type=int, default=0, help="first frame")
    parser.add_argument("--stop", type=int, default=None, help="frame to stop before")
    parser.add_argument("--workers", type=whole_number(1), default=None, help="threads (default: all cores)")


def model_options(args: argparse.Namespace) -> ModelOptions:
    """Return how silhouettes are wanted."""
    cleaning = Cleaning() if args.threshold is None else Cleaning(low=0.45 * args.threshold, high=args.threshold)
    return ModelOptions(
        args.model, cleaning, args.shadow_floor, not args.no_repair, args.margin, args.subjects, args.matte
    )


def run(args: argparse.Namespace) -> CommandReport:
    """Segment the recording."""
    if args.sheet is not None and args.sheet.suffix.lower() not in _SHEETS:
        raise InputError(f"--sheet {args.sheet}: wanted a file name that ends in {', '.join(_SHEETS)}")
    recording = load_recording(args.recording)
    drop_subjects(recording)
    with progress_callback("silhouettes") as on_progress:
        report = segment_recording(
            recording,
            options=model_options(args),
            start=args.start,
            stop=args.stop,
            workers=args.workers,
            on_progress=on_progress,
        )
    return summary(args, recording, report)


def summary(args: argparse.Namespace, recording: Recording, report: SilhouetteReport) -> CommandReport:
    """Say how the silhouettes came out, tell subjects apart and draw them if asked."""
    frames = len(report.flags)
    lines = [f"{frames} frames, {len(report.names)} cameras: results/silhouettes.h5"]
    found = (report.flags & (MaskFlag.NO_FRAME | MaskFlag.EMPTY | MaskFlag.FULL)) == 0
    contradicted = (report.flags & MaskFlag.CONTRADICTED) != 0
    means = [float(np.nanmean(column)) if np.isfinite(column).any() else float("nan") for column in report.agreement.T]
    width = max(map(len, report.names))
    for index, name in enumerate(report.names):
        agreement = "no rig" if np.isnan(means[index]) else f"agreement {means[index]:.3f} IoU"
        lines.append(
            f"  {name:<{width}}  {report.models[index]:<8} found in {100 * found[:, index].mean():5.1f} % of frames, "
            f"{agreement}, contradicted in {100 * contradicted[:, index].mean():.1f} %"
        )
    lines += [f"  note: {text}" for text in uneven_footage(recording)]
    if args.sheet is not None:
        contact_sheet(recording.from_frame(args.start), args.sheet)
        lines.append(f"  contact sheet: {args.sheet}")
    share = float(found.mean())
    numbers = {
        "frames": frames,
        "cameras": list(report.names),
        "models": list(report.models),
        "found_share": found.mean(axis=0),
        "agreement_iou": means,
        "contradicted_share": contradicted.mean(axis=0),
        "mean_area_px": report.area.mean(axis=0),
    }
    reason = "" if share >= 0.5 else f"the subject was found in {100 * share:.0f} % of the images only"
    count = subjects_of(recording, model_options(args))
    if count > 1:
        said, numbers["subjects"] = _told_apart(args, recording, count)
        lines += said
    return CommandReport(lines, numbers, not reason, reason)


def uneven_footage(recording: Recording) -> list[str]:
    """Say where cameras do not fit together: one that ends before the others, one of another frame rate."""
    light = [recording.footage[index] for index in recording.of_kind("light")]
    found = {footage.name: probe(footage.source) for footage in light}
    ends = {footage.name: found[footage.name].frames - round(footage.offset_frames) for footage in light}
    least, most = min(ends.values()), max(ends.values())
    said = []
    if least < most:
        first = [name for name, end in ends.items() if end == least]
        said.append(
            f"{', '.join(first)} ends after {least} frames, the longest camera after {most}: the last {most - least} "
            "are left out"
        )
    rates = {name: info.rate_hz for name, info in found.items() if info.rate_hz is not None}
    if rates and max(rates.values()) > 1.01 * min(rates.values()):
        words = ", ".join(f"{name} {rate:g}" for name, rate in rates.items())
        said.append(
            f"the video files name different frame rates (Hz: {words}); frames are paired by number, so results are "
            "right only if all cameras took them at the same moments"
        )
    return said


def _told_apart(args: argparse.Namespace, recording: Recording, count: int) -> tuple[list[str], list[dict[str, Any]]]:
    """Make a recording of each subject, with its own silhouettes; return what to say of each, in words and numbers."""
    with progress_callback("subjects") as on_progress:
        split = split_subjects(recording, count, workers=args.workers, on_progress=on_progress)
    lines, numbers = [], []
    for subject, one in enumerate(subject_recordings(recording)):
        segment_recording(one, workers=args.workers)
        found, touching = (float(column[:, subject].mean()) for column in (split.found, split.touching))
        unsure = np.flatnonzero(split.unsure[:, subject]).tolist()
        lines.append(
            f"  subject {subject + 1}: seen in {100 * found:.1f} % of frames, touching another in "
            f"{100 * touching:.1f} %, identity unsure from {len(unsure)} frames on{_some(unsure)}: "
            f"results/{one.folder.name}"
        )
        numbers.append({"found_share": found, "touching_share": touching, "unsure_frames": unsure})
    return lines, numbers


def _some(frames: list[int]) -> str:
    return f" ({', '.join(map(str, frames[:5]))}{', ...' if len(frames) > 5 else ''})" if frames else ""
