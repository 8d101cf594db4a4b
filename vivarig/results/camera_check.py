"""The cameras of a recording held against each other by its silhouettes: what to say, and in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.once import once
from calibration.foundation.result_files import open_results, read_parameters
from capture.camera_checks.faults import CameraCheck, Fault, check_cameras
from capture.camera_checks.focus import edge_blur, out_of_focus
from capture.camera_checks.left_over import left_px, stays_far
from capture.camera_checks.outlines import Outlines
from capture.camera_checks.sentences import far_alone, sentence, unclear
from capture.camera_checks.stored import left_outlines, stored_outlines
from capture.recordings.masks import first_frame, mask_cameras, read_masks
from capture.recordings.recording import Recording
from capture.recordings.video import read_frames

__all__ = ["CameraVerdict", "judge_cameras", "judge_cameras_once"]

#: Rows of the silhouettes whose images are looked at for sharpness: early ones, so that little is decoded.
_LOOKED_AT = (0, 13, 26, 39)
_EVERY = 4
"""Of the rows whose outlines are held against each other, each so-many-th is looked at again after repair."""


@dataclass(frozen=True)
class CameraVerdict:
    """What the silhouettes say of the cameras.

    Attributes:
        lines: for people.
        numbers: for machines: ``disagreement_px`` per camera by itself, ``left_px`` once the views mended each other,
            ``faults``, cameras that are ``unclear``, and those that are ``far_alone``.
        reason: why the result is not good; empty if nothing is wrong.
        mended: the rig with cameras that are turned or moved put right; None if none is.
    """

    lines: list[str]
    numbers: dict[str, Any]
    reason: str
    mended: Rig | None = None


def judge_cameras_once(recording: Recording) -> CameraVerdict:
    """Judge the cameras, or tell what was found when a task of the same run judged them by the same file."""
    state = (recording.results / "silhouettes.h5").stat()
    return once(f"cameras {state.st_size} {state.st_mtime_ns}", partial(judge_cameras, recording))


def judge_cameras(recording: Recording, path: Path | None = None) -> CameraVerdict:
    """Judge the cameras of a recording by its silhouettes (``results/silhouettes.h5`` unless a path is given)."""
    file = recording.results / "silhouettes.h5" if path is None else path
    names, _ = mask_cameras(file)
    if recording.rig is None or len(names) < 2:
        return CameraVerdict([], {}, "")
    rig = recording.rig.subset(names)
    outlines, frames = stored_outlines(file, rig)
    check = check_cameras(rig, outlines, frames)
    left = _left(file, rig, outlines, frames)
    offsets = {one.name: one.offset_frames for one in recording.footage}
    said = [sentence(fault, offsets[fault.camera]) for fault in check.faults]
    blur = _blur(recording, file, names)
    said += [
        f"{names[index]} is out of focus (the subject's edge is blurred by {blur[index]:.1f} px there, by "
        f"{np.nanmedian(np.delete(blur, index)):.1f} in the others): focus it and calibrate again"
        for index in out_of_focus(blur)
    ]
    doubted, alone = _doubted(check, left)
    lines = [*_agreement(check.disagreement_px, left), *(f"camera wrong: {text}" for text in said)]
    off = dict(zip(names, zip(check.disagreement_px.tolist(), left.tolist(), strict=True), strict=True))
    lines += [unclear(name, *off[name]) for name in doubted] + [far_alone(name, *off[name]) for name in alone]
    said += [f"cannot tell whether {name} is right" for name in doubted if np.isinf(off[name][1])]
    numbers = {
        "disagreement_px": dict(zip(names, check.disagreement_px.tolist(), strict=True)),
        "left_px": dict(zip(names, left.tolist(), strict=True)),
        "edge_blur_px": dict(zip(names, blur.tolist(), strict=True)),
        "out_of_focus": [names[index] for index in out_of_focus(blur)],
        "unclear": doubted,
        "far_alone": alone,
        "faults": [_numbers(fault) for fault in check.faults],
    }
    return CameraVerdict(lines, numbers, "; ".join(said), check.mended)


def _left(file: Path, rig: Rig, outlines: Sequence[Outlines], frames: Ints) -> Floats:
    """Return (C,) px how far cameras are off by what the views left of each other's silhouettes; NaN without repair."""
    with open_results(file, stage="silhouettes") as opened:
        repaired = bool(read_parameters(opened).get("repair", True))
    if not repaired:
        return np.full(len(rig), np.nan)
    few = np.arange(0, len(frames), _EVERY)
    return left_px(rig, [one.take(few) for one in outlines], left_outlines(file, rig, frames[few]), frames[few])


def _agreement(off: Floats, left: Floats) -> list[str]:
    """Return how outlines agree, in words; none where nothing is known."""
    if not np.isfinite(off).any():
        return []
    after = f"; {np.nanmedian(left):.2f} px when the views have mended each other" if np.isfinite(left).any() else ""
    off_px = np.median(off[np.isfinite(off)])
    return [f"outlines of different cameras agree to {off_px:.2f} px (tangent planes, median){after}"]


def _doubted(check: CameraCheck, left: Floats) -> tuple[list[str], list[str]]:
    """Return the cameras without a known fault that stay far off the others, and those far off by themselves alone.

    Where one camera is wrong, or may be, the others are far off because of it: nothing is said of them then.
    """
    accused = {name for fault in check.faults for name in (fault.camera, fault.other)}
    doubted = [
        name
        for name, px, far in zip(check.names, left, stays_far(left), strict=True)
        if name not in accused and (far or (np.isnan(px) and name in check.unclear))
    ]
    return doubted, [] if accused or doubted else list(check.unclear)


def _blur(recording: Recording, file: Path, names: list[str]) -> Floats:
    """Return (C,) how blurred the subject's edge is in each camera, px, in some early frames; NaN if not known."""
    first = first_frame(file)
    rows = [row for row in _LOOKED_AT if row < mask_cameras(file)[1]]
    found = []
    for name in names:
        footage = next(one for one in recording.footage if one.name == name)
        start = first + round(footage.offset_frames)
        if not footage.has_images or start < 0:
            found.append(np.nan)
            continue
        images = read_frames(footage.source, start, start + rows[-1] + 1, _LOOKED_AT[1], ahead=False)
        masks = read_masks(file, name, rows)
        values = [edge_blur(image, mask) for (_, image), mask in zip(images, masks, strict=False)]
        known = [value for value in values if np.isfinite(value)]
        found.append(float(np.median(known)) if known else np.nan)
    return np.array(found)


def _numbers(fault: Fault) -> dict[str, Any]:
    return {
        "camera": fault.camera,
        "kind": fault.kind,
        "frames": fault.frames,
        "degrees": float(np.linalg.norm(fault.degrees)),
        "degrees_up_right_clockwise": fault.degrees,
        "shift_mm": fault.shift_mm,
        "other": fault.other,
        "before_px": fault.before_px,
        "after_px": fault.after_px,
    }
