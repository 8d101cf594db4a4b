"""Recordings as a laboratory would have stored them: the same films, compressed again and more strongly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from calibration.cameras.rig import save_rig
from capture.recordings.recording import load_recording, save_recording
from capture.recordings.video import probe, read_frames, write_video

__all__ = ["recompressed"]


def recompressed(source: Path, folder: Path, crf: int, every: int = 1) -> None:
    """Write a recording with every n-th camera of another into ``folder``, films and plates in H.264 of that factor.

    Its true masks, if it has any, stay where they are: a link leads there.
    """
    original = load_recording(source)
    videos = folder / "videos"
    videos.mkdir(parents=True)
    footage = []
    for one in original.footage[::every]:
        film = _again(one.source, videos / f"{one.name}.mp4", original.rate_hz, crf)
        plate = None
        if one.background is not None:
            plate = _again(one.background, videos / f"{one.name}_background.mp4", original.rate_hz, crf)
        footage.append(replace(one, source=film, background=plate))
    rig = original.need_rig().subset([one.name for one in footage])
    save_rig(rig, folder / "rig.toml")
    save_recording(replace(original, folder=folder, footage=tuple(footage), rig=rig))
    if (source / "truth.npz").exists():
        (folder / "truth.npz").symlink_to((source / "truth.npz").resolve())


def _again(film: Path, target: Path, rate_hz: float, crf: int) -> Path:
    """Write a film again, compressed by a constant rate factor; return where it is."""
    images = (image for _, image in read_frames(film, 0, probe(film).frames))
    write_video(target, images, rate_hz, quality=crf)
    return target
