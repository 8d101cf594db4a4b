"""A rehearsal on a machine that has compiled nothing yet.

The first run compiles for a minute and more, one stage after the other: while one worker learns the silhouettes, the
others have nothing to do. One of them then tracks a template that stands still in made-up cameras, and fits its
skeleton, for nothing but the machine code that this leaves behind (`calibration.foundation.kernels`).
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from functools import lru_cache
from pathlib import Path

import numba
import numpy as np

from calibration.cameras.rig import save_rig
from calibration.cameras.ring import ring_rig
from calibration.foundation.files import write_text
from capture.recordings.recording import Footage, Recording, load_recording, save_recording
from capture.recordings.video import write_video

__all__ = ["is_due", "note_done", "rehearse"]

_CAMERAS, _FRAMES, _SIZE = 4, 2, (160, 120)
_COMPILED = ("calibration", "skeleton", "capture", "tracking")
"""Packages that have compiled functions."""


def is_due() -> bool:
    """Return whether no run with this code has come to its end on this machine."""
    return not _marker().is_file()


def note_done() -> None:
    """Note that what runs need is compiled; where that cannot be written, the next run rehearses again."""
    try:
        write_text(_marker(), "")
    except OSError:
        return


@lru_cache(maxsize=1)
def _marker() -> Path:
    """Return the file that is there when this code, in this place, has been compiled for this processor."""
    place = Path(__file__).resolve().parents[2]
    told = hashlib.blake2b(repr((numba.__version__, str(place), os.environ.get("NUMBA_CACHE_DIR"))).encode())
    for package in _COMPILED:
        for path in sorted((place / package).rglob("*.py")):
            told.update(path.read_bytes())
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "vivarig" / f"compiled-{told.hexdigest()[:24]}"


def rehearse(subject: str) -> None:
    """Track a built-in body that stands still, and fit its skeleton, in a folder that is gone afterwards."""
    from vivarig.pipeline.runner import RunOptions, run_recording

    with tempfile.TemporaryDirectory() as folder:
        recording = _standing_still(Path(folder) / "rehearsal", subject)
        run_recording(recording, RunOptions("skeleton", workers=1), show=False)


def _standing_still(place: Path, subject: str) -> Recording:
    """Make a recording of a template's silhouettes."""
    from capture.hull.agreement import mesh_silhouettes
    from tracking.subjects.subject import load_subject

    template = load_subject(subject).template
    vertices = np.asarray(template.vertices, dtype=np.float64)
    middle, reach = vertices.mean(axis=0), float(np.ptp(vertices, axis=0).max())
    rig = ring_rig(
        _CAMERAS, radius=3 * reach, height=middle[2] + np.array([1.0, 2.0]) * reach, target=middle, size=_SIZE,
        field_mm=1.6 * reach, first_angle=0.3,
    )  # fmt: skip
    place.mkdir(parents=True)
    footage = []
    masks = mesh_silhouettes(rig, vertices, template.faces.astype(np.int32))
    for name, mask in zip(rig.names, masks, strict=True):
        path = place / f"{name}.mkv"
        write_video(path, [np.where(mask, 255, 0).astype(np.uint8)] * _FRAMES, 100.0, codec="ffv1")
        footage.append(Footage(name, path, masks=path))
    save_rig(rig, place / "rig.toml")
    save_recording(Recording(place, "rehearsal", 100.0, subject, rig, tuple(footage)))
    return load_recording(place)
