"""What of a finished recording goes into a table: its motion frame by frame, and its gait where there is any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from capture.recordings.recording import load_recording
from skeleton.analysis.cycles import stride_spans
from skeleton.analysis.gait import Gait, gait_of
from vivarig.report.gait_section import no_gait
from vivarig.report.motion import motion_curves
from vivarig.results.findings import Findings, SkeletonFindings, load_findings
from vivarig.results.ground import ground_under

__all__ = ["FinishedRecording", "find_recordings", "finished_recording", "foot_of_joint"]

_FORE = ("shoulder", "elbow", "wrist", "scapula", "clavicle", "fingers", "hand", "forepaw")


@dataclass(frozen=True, eq=False)
class FinishedRecording:
    """A recording with a skeleton.

    Attributes:
        folder: where it lies.
        group: name of the folder that holds it: recordings of a day, of a treatment.
        findings: all results.
        skeleton: of them.
        gait: strides, None where there is none to speak of.
        without_gait: why not.
    """

    folder: Path
    group: str
    findings: Findings
    skeleton: SkeletonFindings
    gait: Gait | None
    without_gait: str

    @property
    def animal(self) -> str:
        """``subject_id`` of recording.toml; the recording's name where it has none."""
        return str(self.findings.recording.session.get("subject_id", self.findings.recording.name))


def find_recordings(paths: Sequence[Path], *, skip_unfinished: bool) -> tuple[list[Path], list[str]]:
    """Return the folders that are finished recordings, and what was left out in words.

    What is no recording (a table of last week that ``day1/*`` also names) is left out and said; a recording without a
    skeleton is an error, unless it shall be skipped.
    """
    folders, left_out = [], []
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such folder")
        if not (path / "recording.toml").is_file():
            left_out.append(f"{path} is no recording")
        elif (path / "results" / "skeleton.h5").is_file():
            folders.append(path)
        elif skip_unfinished:
            left_out.append(f"{path} has no skeleton yet")
        else:
            raise InputError(f"{path}: no results/skeleton.h5; `vivarig run {path}` first, or give --skip-unfinished")
    if not folders:
        raise InputError(f"none of the {len(paths)} paths is a finished recording ({'; '.join(left_out[:3])})")
    return folders, left_out


def finished_recording(folder: Path) -> FinishedRecording:
    """Read a finished recording."""
    findings = load_findings(load_recording(folder))
    skeleton = findings.skeleton
    if skeleton is None:
        raise InputError(f"{folder}: no results/skeleton.h5; `vivarig run {folder}` first")
    gait, why = _gait(findings, skeleton)
    return FinishedRecording(folder, folder.resolve().parent.name, findings, skeleton, gait, why)


def _gait(findings: Findings, skeleton: SkeletonFindings) -> tuple[Gait | None, str]:
    paths = motion_curves(skeleton).gait
    if paths is None or len(paths.root) < 3:
        return None, "no gait without a pose in every frame"
    ground = ground_under(findings.recording, paths.feet, skeleton.rate_hz)
    why = no_gait(skeleton.trust, paths, ground, skeleton.rate_hz)
    return (None, why) if why else (gait_of(paths, skeleton.rate_hz, belt=ground), "")


def foot_of_joint(joint: str, feet: Sequence[str]) -> str:
    """Return the foot whose cycle a joint goes through: its own, for the trunk the first; "" without feet."""
    side = joint.split("_")[0]
    fore = any(word in joint for word in _FORE)
    wanted = [f"{side}_{'fore' if fore else 'hind'}", f"{side}_foot"] if side in ("left", "right") else []
    return next((foot for foot in wanted if foot in feet), feet[0] if len(feet) else "")


def cycle_columns(recording: FinishedRecording, foot: str, frames: Ints) -> tuple[Floats, Floats]:
    """Return number and phase (0 to 1) of a foot's whole stride that each frame (n,) lies in; NaN between strides."""
    number, phase = np.full(len(frames), np.nan), np.full(len(frames), np.nan)
    if recording.gait is None or foot not in recording.gait.contacts:
        return number, phase
    for index, (begin, end) in enumerate(stride_spans(recording.gait.contacts[foot])):
        inside = (frames >= begin) & (frames < end)
        number[inside] = index
        phase[inside] = (frames[inside] - begin) / (end - begin)
    return number, phase
