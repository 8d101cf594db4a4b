"""Small recordings cut from the samples, for tests of the application."""

from __future__ import annotations

from pathlib import Path

import h5py

from calibration.rig import load_rig, save_rig
from capture.recording import Footage, Recording, load_recording, save_recording
from capture.video import read_frames, write_video

SAMPLES = Path(__file__).resolve().parent.parent / "sample_data"


def cut_recording(
    place: Path, *, sample: str = "mouse", frames: int = 8, cameras: int = 4, first: int = 0
) -> Recording:
    """Make a recording of a few frames and cameras of a sample, with its truth."""
    source = load_recording(SAMPLES / sample)
    assert source.rig is not None
    every = len(source.footage) // cameras
    chosen = source.footage[::every][:cameras]
    (place / "videos").mkdir(parents=True)
    footage = []
    for one in chosen:
        video = place / "videos" / f"{one.name}.mp4"
        images = [image for _, image in read_frames(one.source, first, first + frames, gray=sample == "mouse")]
        write_video(video, images, source.rate_hz, quality=10)
        background = None
        if one.background is not None:
            background = place / "videos" / f"{one.name}_background.mp4"
            plates = [image for _, image in read_frames(one.background, gray=sample == "mouse")]
            write_video(background, plates, source.rate_hz, quality=10)
        footage.append(Footage(one.name, video, background))
    save_rig(load_rig(SAMPLES / sample / "rig.toml").subset([one.name for one in chosen]), place / "rig.toml")
    recording = Recording(place, f"{sample}_cut", source.rate_hz, source.subject, source.rig, tuple(footage))
    save_recording(recording)
    _cut_truth(SAMPLES / sample / "truth.h5", place / "truth.h5", first, frames)
    return load_recording(place)


def _cut_truth(source: Path, target: Path, first: int, frames: int) -> None:
    with h5py.File(source) as old, h5py.File(target, "w") as new:
        for key, value in old.attrs.items():
            new.attrs[key] = value
        for name in ("names", "positions"):
            data = old[f"landmarks/{name}"][()]
            new[f"landmarks/{name}"] = data[first : first + frames] if name == "positions" else data


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
