"""The cameras of a recording held against each other by its silhouettes: what to say, and in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Floats
from calibration.foundation.once import once
from capture.camera_checks.faults import Fault, check_cameras
from capture.camera_checks.focus import edge_blur, out_of_focus
from capture.camera_checks.sentences import sentence
from capture.camera_checks.stored import stored_outlines
from capture.recordings.masks import first_frame, mask_cameras, read_masks
from capture.recordings.recording import Recording
from capture.recordings.video import read_frames

__all__ = ["CameraVerdict", "judge_cameras", "judge_cameras_once"]

#: Rows of the silhouettes whose images are looked at for sharpness: early ones, so that little is decoded.
_LOOKED_AT = (0, 13, 26, 39)


@dataclass(frozen=True)
class CameraVerdict:
    """What the silhouettes say of the cameras.

    Attributes:
        lines: for people.
        numbers: for machines: ``disagreement_px`` per camera, ``faults`` and cameras that are ``unclear``.
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
    check = check_cameras(recording.rig.subset(names), *stored_outlines(file, recording.rig.subset(names)))
    offsets = {one.name: one.offset_frames for one in recording.footage}
    said = [sentence(fault, offsets[fault.camera]) for fault in check.faults]
    blur = _blur(recording, file, names)
    said += [
        f"{names[index]} is out of focus (the subject's edge is blurred by {blur[index]:.1f} px there, by "
        f"{np.nanmedian(np.delete(blur, index)):.1f} in the others): focus it and calibrate again"
        for index in out_of_focus(blur)
    ]
    known = check.disagreement_px[np.isfinite(check.disagreement_px)]
    lines = []
    if len(known):
        lines.append(f"outlines of different cameras agree to {np.median(known):.2f} px (tangent planes, median)")
    lines += [f"camera wrong: {text}" for text in said]
    off = dict(zip(names, check.disagreement_px.tolist(), strict=True))
    lines += [
        f"cannot tell whether {name} is right: its outlines lie {off[name]:.1f} px off the others', and no turn or "
        "delay of the camera explains that; its silhouettes may lack a part of the subject, or hold more than it"
        for name in check.unclear
    ]
    numbers = {
        "disagreement_px": dict(zip(names, check.disagreement_px.tolist(), strict=True)),
        "edge_blur_px": dict(zip(names, blur.tolist(), strict=True)),
        "out_of_focus": [names[index] for index in out_of_focus(blur)],
        "unclear": list(check.unclear),
        "faults": [_numbers(fault) for fault in check.faults],
    }
    return CameraVerdict(lines, numbers, "; ".join(said), check.mended)


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
