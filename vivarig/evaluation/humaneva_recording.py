"""A recording folder from a sequence in HumanEva's layout: nothing is copied, the videos stay where they are."""

from __future__ import annotations

from pathlib import Path

from calibration.cameras.rig import save_rig
from capture.recordings.humaneva_folder import HumanEvaSequence
from capture.recordings.recording import Footage, Recording, save_recording

__all__ = ["RATE_HZ", "make_recording"]

RATE_HZ = 60.0
"""Frames per second of all of HumanEva's cameras."""


def make_recording(sequence: HumanEvaSequence, folder: Path) -> Recording:
    """Write ``recording.toml`` and ``rig.toml`` for a sequence; its frame 0 is image 1 of the first camera.

    HumanEva-I's cameras were started by software: each one's offset is what the synchronisation files say, the image of
    another camera that was taken at the same motion-capture frame.
    """
    first = next(iter(sequence.sync.values()))
    footage = []
    for name, source in sequence.images.items():
        sync = sequence.sync[name]
        same = sync.image_start + (first.mocap_frame(1.0) - sync.mocap_start) / sync.scale
        background = sequence.backgrounds.get(name)
        footage.append(
            Footage(
                name,
                source.resolve(),
                background.resolve() if background is not None else None,
                offset_frames=round(same - 1.0, 3),
            )
        )
    folder.mkdir(parents=True, exist_ok=True)
    save_rig(sequence.rig, folder / "rig.toml")
    title = f"{sequence.subject} {sequence.action}"
    recording = Recording(folder.resolve(), title, RATE_HZ, "human", sequence.rig, tuple(footage))
    save_recording(recording)
    return recording
