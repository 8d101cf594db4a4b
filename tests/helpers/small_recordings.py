"""Small recordings cut from the samples, for tests of the application."""

from __future__ import annotations

from pathlib import Path

from benchmarks.measuring import recording_cuts
from capture.recordings.recording import Recording


def cut_recording(
    place: Path, *, sample: str = "mouse", frames: int = 8, cameras: int = 4, first: int = 0
) -> Recording:
    """Make a recording of a few frames and cameras of a sample, with its truth."""
    return recording_cuts.cut_recording(place, sample=sample, frames=range(first, first + frames), cameras=cameras)


def differences(left: Path, right: Path) -> list[str]:
    """Return the relative paths of the files that only one folder has or that differ; half-written ones are left out.

    Names only: a failed comparison should say which file it was, not print its bytes.
    """
    contents = [
        {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name[0] != "."}
        for folder in (left, right)
    ]
    return sorted(
        name for name in contents[0].keys() | contents[1].keys() if contents[0].get(name) != contents[1].get(name)
    )
