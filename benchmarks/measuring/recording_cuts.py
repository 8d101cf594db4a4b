"""Recordings made from a sample: fewer cameras, any frames in any order, so also longer than the sample itself."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np

from calibration.cameras.rig import load_rig, save_rig
from capture.recordings.masks import read_masks
from capture.recordings.recording import Footage, Recording, load_recording, save_recording
from capture.recordings.video import read_frames, write_video
from capture.silhouettes.segment import segment_recording

__all__ = ["SAMPLES", "cut_recording", "linked_recording", "masks_there_and_back", "there_and_back"]

SAMPLES = Path(__file__).resolve().parents[2] / "sample_data"


def there_and_back(length: int, frames: int) -> list[int]:
    """Return ``frames`` frame numbers that play a clip of ``length`` frames forwards, backwards, and so on."""
    once = [*range(length), *range(length - 2, 0, -1)]
    return [once[k % len(once)] for k in range(frames)]


def linked_recording(source: Path, place: Path) -> Path:
    """Make a recording of links to all that another folder holds, so that results lie elsewhere; return its folder."""
    place.mkdir(parents=True)
    for one in source.resolve().iterdir():
        if one.name != "results":
            (place / one.name).symlink_to(one)
    return place


def cut_recording(
    place: Path, *, sample: str = "mouse", frames: Sequence[int] = range(8), cameras: int = 4
) -> Recording:
    """Make a recording of some frames and cameras of a sample, with its truth."""
    source = load_recording(SAMPLES / sample)
    every = len(source.footage) // cameras
    chosen = source.footage[::every][:cameras]
    grey = sample == "mouse"
    (place / "videos").mkdir(parents=True)
    footage = []
    for one in chosen:
        video = place / "videos" / f"{one.name}.mp4"
        images = dict(read_frames(one.source, min(frames), max(frames) + 1, gray=grey))
        write_video(video, [images[k] for k in frames], source.rate_hz, quality=10)
        background = None
        if one.background is not None:
            background = place / "videos" / f"{one.name}_background.mp4"
            plates = [image for _, image in read_frames(one.background, gray=grey)]
            write_video(background, plates, source.rate_hz, quality=10)
        footage.append(Footage(one.name, video, background))
    save_rig(load_rig(SAMPLES / sample / "rig.toml").subset([one.name for one in chosen]), place / "rig.toml")
    save_recording(Recording(place, f"{sample}_cut", source.rate_hz, source.subject, source.rig, tuple(footage)))
    with h5py.File(SAMPLES / sample / "truth.h5") as old, h5py.File(place / "truth.h5", "w") as new:
        for key, value in old.attrs.items():
            new.attrs[key] = value
        new["landmarks/names"] = old["landmarks/names"][()]
        new["landmarks/positions"] = old["landmarks/positions"][()][list(frames)]
    return load_recording(place)


def masks_there_and_back(recording: Recording, frames: int) -> None:
    """Leave of a recording the silhouettes alone, as videos, played there and back until there are so many frames."""
    segment_recording(recording)
    footage = []
    for one in recording.footage:
        masks = np.where(read_masks(recording.results / "silhouettes.h5", one.name), 255, 0).astype(np.uint8)
        path = recording.folder / f"{one.name}_masks.mkv"
        write_video(path, (masks[k] for k in there_and_back(len(masks), frames)), recording.rate_hz, codec="ffv1")
        footage.append(Footage(one.name, path, masks=path))
    shutil.rmtree(recording.results)
    settings = {"hull": {"voxel_mm": 8.0}}  # a pixel of such images is no finer
    save_recording(replace(recording, footage=tuple(footage), settings=settings))
