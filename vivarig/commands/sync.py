"""``vivarig sync``: time offsets between cameras from the motion of the board or of the subject."""

from __future__ import annotations

import argparse
import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np

from calibration.boards.session import Session, open_session
from calibration.boards.sightings import merge_sightings
from calibration.boards.synchronisation import offsets_of_session
from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from capture.camera_checks.changes import lag_of_changes
from capture.camera_checks.lags import find_lags
from capture.camera_checks.outlines import Outlines, join_outlines
from capture.camera_checks.stored import stored_outlines
from capture.recordings.offset_writing import write_offsets
from capture.recordings.recording import Footage, Recording, load_recording
from capture.recordings.video import read_frames
from capture.silhouettes import ModelOptions, segment_recording
from capture.silhouettes.segment import count_frames, learn_models
from vivarig.calibration_stage.board_footage import detect_session
from vivarig.commands.stage_arguments import whole
from vivarig.console.progress import progress, progress_callback
from vivarig.console.reporting import CommandReport

__all__ = ["EXAMPLE", "HELP", "add_arguments", "run"]

HELP = """Estimate how late each camera is against the first, in whole frames and fractions.

A calibration session is synchronised by its board: first by when it moves, then by the epipolar geometry of its
corners. A recording with a rig is synchronised by the outlines of its subject, which fit together at one lag only, to
a tenth of a frame. A recording without a rig is synchronised by when its pictures change, as far as something happens
once (a rhythm fits at every period). Where the recording does not tell, this is said instead of a number."""
EXAMPLE = """  vivarig sync my_session
  vivarig sync mouse_07 --json offsets.json
  vivarig sync mouse_07 --most 200 --write"""

DOUBTFUL = 0.5
#: Largest lag that is looked for in a recording, frames; stretches that are cut out for it, and their frames.
_MOST = 30
_STRETCHES = 3
_STRETCH = 120


@dataclass(frozen=True)
class _Offset:
    """What is printed of one camera: ``frames`` late in all, of which ``given`` are in recording.toml already."""

    frames: float
    sd_frames: float
    how: str
    method: str
    doubt: str = ""
    given: float = 0.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    parser.add_argument("folder", type=Path, help="calibration session, or recording with recording.toml")
    parser.add_argument("--board", type=Path, metavar="FILE", help="board description, if not SESSION/board.toml")
    parser.add_argument("--output", type=Path, metavar="DIR", help="where the detections are kept (SESSION/results)")
    parser.add_argument(
        "--most", type=whole(1), metavar="N", help=f"largest offset to consider, frames (recordings: {_MOST})"
    )
    parser.add_argument(
        "--write", action="store_true", help="put the offsets found into recording.toml; its comments stay"
    )
    parser.add_argument(
        "--workers", type=whole(1), default=os.cpu_count() or 1, metavar="N", help="images searched at once"
    )


def run(args: argparse.Namespace) -> CommandReport:
    """Estimate the offsets."""
    if not (args.folder / "recording.toml").is_file():
        if args.write:
            raise InputError(f"{args.folder}: --write is for a recording; this is a session without recording.toml")
        return _said(_by_board(open_session(args.folder, args.board), args))
    recording = load_recording(args.folder)
    light = [recording.footage[index] for index in recording.of_kind("light")]
    if len(light) < 2:
        raise InputError(f"{args.folder}: fewer than two cameras of kind 'light', nothing to synchronise")
    most = args.most or _MOST
    offsets = _by_changes(light, most) if recording.rig is None else _by_outlines(recording, light, most, args.workers)
    return _said(offsets, write_to=args.folder if args.write else None)


def _said(offsets: dict[str, _Offset], write_to: Path | None = None) -> CommandReport:
    lines = []
    for name, offset in offsets.items():
        if offset.doubt:
            lines.append(f"  {name}: cannot tell ({offset.doubt})")
            continue
        spread = f" +- {offset.sd_frames:.2f}" if np.isfinite(offset.sd_frames) else ""
        given = f", of which recording.toml has {offset.given:g} already" if offset.given else ""
        late = "reference" if offset.method == "reference" else f"{offset.frames:+.2f}{spread} frames late"
        lines.append(f"  {name}: {late}{given}" + (f" ({offset.how})" if offset.how else ""))
    unsure = [name for name, offset in offsets.items() if offset.doubt]
    wanted = {name: round(o.frames) for name, o in offsets.items() if not o.doubt and round(o.frames) != round(o.given)}
    if wanted and write_to is not None:
        file = write_offsets(write_to, wanted)
        lines.append(f"wrote {', '.join(f'{name} offset = {frames}' for name, frames in wanted.items())} into {file}")
    elif wanted:
        words = ", ".join(f"{name} offset = {frames}" for name, frames in wanted.items())
        lines.append(f"put these under [cameras.NAME] in recording.toml, or give --write: {words}")
    elif not unsure:
        lines.append("the cameras are in step; nothing to change")
    numbers = {
        name: {
            "frames": None if o.doubt else o.frames, "sd_frames": o.sd_frames, "method": o.method,
            "given_frames": o.given, "cannot_tell": o.doubt,
        }
        for name, o in offsets.items()
    }  # fmt: skip
    reason = f"cannot tell how late {', '.join(unsure)} {'is' if len(unsure) == 1 else 'are'}" if unsure else ""
    return CommandReport(["time offsets:", *lines], {"offsets": numbers}, quality_ok=not unsure, reason=reason)


def _by_board(session: Session, args: argparse.Namespace) -> dict[str, _Offset]:
    output = args.output or session.folder / "results"
    # videos of different lengths are what this command is for
    boards, detections, _ = detect_session(session, output, workers=args.workers, step=1, trim=True)
    sightings = merge_sightings([d.sightings(boards) for d in detections])
    found = {}
    for name, one in offsets_of_session(sightings, most=args.most).items():
        weak = one.method == "motion" and not one.correlation > DOUBTFUL
        doubt = f"its board's motion resembles the first camera's too little: {one.correlation:.2f}" if weak else ""
        how = "" if one.method == "reference" else f"{one.method}, correlation {one.correlation:.2f}"
        found[name] = _Offset(one.frames, one.sd_frames, how, one.method, doubt)
    return found


def _by_outlines(recording: Recording, light: list[Footage], most: int, workers: int) -> dict[str, _Offset]:
    """Synchronise by the rig: outlines of one subject share tangent planes only at the right lag."""
    rig = recording.need_rig().subset([one.name for one in light])
    given = {one.name: float(round(one.offset_frames)) for one in light}
    lags = find_lags(rig, *_cut_out(recording, most, workers), most=most)
    sure = [index for index, lag in enumerate(lags) if not lag.doubt]
    zero = given[rig.names[sure[0]]] if sure else 0.0
    found = {}
    for index, (name, lag) in enumerate(zip(rig.names, lags, strict=True)):
        is_reference = sure[:1] == [index]
        how = f"outlines then agree to {lag.disagreement_px:.1f} px"
        # only differences are known: the reference keeps the offset it has
        frames = lag.frames + given[name]
        method = "reference" if is_reference else "outlines"
        found[name] = _Offset(frames, lag.sd_frames, how, method, lag.doubt, zero if is_reference else given[name])
    return found


def _cut_out(recording: Recording, most: int, workers: int) -> tuple[list[Outlines], Ints]:
    """Return the outlines of some stretches of a recording, cut out for this alone, and their frames."""
    total = count_frames(recording)
    options = ModelOptions()
    length = max(_STRETCH, 4 * most)
    starts = [0] if total <= _STRETCHES * length else np.linspace(0, total - length, _STRETCHES).astype(int).tolist()
    spans = [(0, total)] if len(starts) == 1 else [(start, start + length) for start in starts]
    names = [recording.footage[index].name for index in recording.of_kind("light")]
    rig = recording.need_rig().subset(names)
    alone = replace(recording, rig=None)  # cameras out of step must not mend each other
    models = learn_models(alone, options, workers=workers)
    parts: list[list[Floats]] = [[] for _ in names]
    frames = []
    with tempfile.TemporaryDirectory() as folder, progress_callback("silhouettes") as on_progress:
        for number, (first, stop) in enumerate(spans):
            path = Path(folder) / f"{number}.h5"

            def told(done: int, _: int, number: int = number, stop: int = stop, first: int = first) -> None:
                on_progress(number * (stop - first) + done, sum(b - a for a, b in spans))

            segment_recording(
                alone, path, options, start=first, stop=stop, models=models, workers=workers, on_progress=told
            )
            outlines, rows = stored_outlines(path, rig)
            frames.append(first + rows)
            for part, one in zip(parts, outlines, strict=True):
                part += np.split(one.pixels, one.starts[1:-1])
    return [join_outlines(part) for part in parts], np.concatenate(frames)


def _by_changes(light: list[Footage], most: int) -> dict[str, _Offset]:
    """Synchronise without a rig: by when the pictures change."""
    signals = {one.name: _change(one.source, one.name) for one in light}
    first = light[0]
    found = {first.name: _Offset(first.offset_frames, 0.0, "", "reference", given=first.offset_frames)}
    for one in light[1:]:
        lag = lag_of_changes(signals[first.name], signals[one.name], most=most)
        how = f"changes of the picture, correlation {lag.correlation:.2f}"
        doubt = f"{lag.doubt}; with a rig the subject's outlines would tell" if lag.doubt else ""
        # both signals count from the first frame of the files: offsets that are given are not in them
        frames = lag.frames + first.offset_frames
        found[one.name] = _Offset(frames, float("nan"), how, "changes", doubt, one.offset_frames)
    return found


def _change(source: Path, name: str) -> Floats:
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
