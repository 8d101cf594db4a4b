"""The footage whose silhouettes were cut out, and its images by the recording's frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import cv2
import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bytes
from capture.recordings.masks import first_frame
from capture.recordings.recording import Footage
from capture.recordings.video import read_frames
from vivarig.jobs.job import Job

__all__ = ["cameras_of", "first_cut", "footage_of", "grey_images_of", "images_at", "images_of"]


def first_cut(job: Job) -> int:
    """Return the frame of the footage that is the first of the silhouettes."""
    if "silhouettes" in job.plans:
        return int(job.plans["silhouettes"].options.start)
    return first_frame(job.recording.results / "silhouettes.h5")


def footage_of(job: Job) -> tuple[Footage, ...]:
    """Return the cameras' images from the first one on whose silhouettes were cut out."""
    return job.recording.from_frame(first_cut(job)).footage


def cameras_of(job: Job, rig: Rig) -> list[Footage]:
    """Return the footage of the rig's cameras, in order."""
    sources = {footage.name: footage for footage in footage_of(job)}
    return [sources[name] for name in rig.names]


def grey_images_of(footage: Footage, frames: range) -> Iterator[Bytes | None]:
    """Yield a camera's grey images of some of the recording's frames, None where it has none.

    For who reads several cameras side by side: nothing is decoded ahead.
    """
    offset = round(footage.offset_frames)
    first, stop = frames.start + offset, frames.stop + offset
    before = range(first, min(stop, 0), frames.step)
    yield from (None for _ in before)
    first += len(before) * frames.step
    for _, image in read_frames(footage.source, first, stop, frames.step, gray=True, ahead=False):
        yield image


def images_at(footage: Footage, frames: Sequence[int]) -> list[Bytes | None]:
    """Return a camera's images (H, W, 3) of some of the recording's frames, None where it has none.

    They are read in one pass: one by one, each would be decoded from the key frame before it.
    """
    found: dict[int, Bytes] = {}
    if footage.has_images:
        offset = round(footage.offset_frames)
        wanted = {frame + offset for frame in frames}
        for index, image in read_frames(footage.source, only=wanted, ahead=False):
            found[index - offset] = _in_colour(image)
    return [found.get(frame) for frame in frames]


def images_of(footage: Footage, frames: Sequence[int]) -> Iterator[Bytes | None]:
    """Yield a camera's images (H, W, 3) of the recording's frames ``frames``, ascending, None where it has none.

    Frames in between are passed by: to turn one into colours costs more than to decode it.
    """
    offset = round(footage.offset_frames)
    wanted = {frame + offset for frame in frames}
    found = read_frames(footage.source, only=wanted, ahead=False) if footage.has_images else iter(())
    index, image = next(found, (-1, None))
    for frame in frames:
        if image is None or index != frame + offset:
            yield None
            continue
        yield _in_colour(image)
        index, image = next(found, (-1, None))


def _in_colour(image: Bytes) -> Bytes:
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_GRAY2BGR)) if image.ndim == 2 else image
