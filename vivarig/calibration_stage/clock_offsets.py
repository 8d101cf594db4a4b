"""What a calibration found of the cameras' clocks, put into recordings that were made with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from calibration.accuracy.report import CalibrationOutcome
from calibration.solving.view_checks import late_frames
from capture.recordings.offset_writing import write_offsets
from capture.recordings.recording import load_recording

__all__ = ["offsets_of", "write_clock_offsets"]


def offsets_of(outcome: CalibrationOutcome) -> dict[str, int]:
    """Return by how many whole frames cameras are late; those in step are left out."""
    return {name: round(frames) for name, frames in late_frames(outcome.solution).items()}


def write_clock_offsets(outcome: CalibrationOutcome, recordings: Sequence[Path]) -> list[str]:
    """Write the offsets into recording.toml of each recording that has these cameras, and say so.

    The board and the recording are taken to be filmed alike: same rate, same triggers.
    """
    late, said = offsets_of(outcome), []
    for folder in recordings:
        names = {footage.name for footage in load_recording(folder).footage}
        mine = {name: float(frames) for name, frames in late.items() if name in names}
        if not mine:
            said.append(f"{folder}: no camera of it is late by a frame: recording.toml left as it is")
            continue
        file = write_offsets(folder, mine)
        words = ", ".join(f"{name} {frames:+g}" for name, frames in mine.items())
        said.append(f"wrote offsets into {file} (frames late: {words})")
    return said
