"""The cameras of a recording held against each other by its silhouettes: what to say, and in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from capture.camera_checks.faults import Fault, check_cameras
from capture.camera_checks.sentences import sentence
from capture.camera_checks.stored import stored_outlines
from capture.recordings.masks import mask_cameras
from capture.recordings.recording import Recording

__all__ = ["CameraVerdict", "judge_cameras"]


@dataclass(frozen=True)
class CameraVerdict:
    """What the silhouettes say of the cameras.

    Attributes:
        lines: for people.
        numbers: for machines: ``disagreement_px`` per camera and ``faults``.
        reason: why the result is not good; empty if nothing is wrong.
    """

    lines: list[str]
    numbers: dict[str, Any]
    reason: str


def judge_cameras(recording: Recording, path: Path | None = None) -> CameraVerdict:
    """Judge the cameras of a recording by its silhouettes (``results/silhouettes.h5`` unless a path is given)."""
    file = recording.results / "silhouettes.h5" if path is None else path
    names, _ = mask_cameras(file)
    if recording.rig is None or len(names) < 2:
        return CameraVerdict([], {}, "")
    check = check_cameras(recording.rig.subset(names), *stored_outlines(file, recording.rig.subset(names)))
    offsets = {one.name: one.offset_frames for one in recording.footage}
    said = [sentence(fault, offsets[fault.camera]) for fault in check.faults]
    known = check.disagreement_px[np.isfinite(check.disagreement_px)]
    lines = []
    if len(known):
        lines.append(f"outlines of different cameras agree to {np.median(known):.2f} px (tangent planes, median)")
    lines += [f"camera wrong: {text}" for text in said]
    numbers = {
        "disagreement_px": dict(zip(names, check.disagreement_px.tolist(), strict=True)),
        "faults": [_numbers(fault) for fault in check.faults],
    }
    return CameraVerdict(lines, numbers, "; ".join(said))


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
