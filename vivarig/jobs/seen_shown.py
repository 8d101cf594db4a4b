"""Images that the report shows whatever the results are, kept while cameras are learnt: the same videos are decoded."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import cv2
import numpy as np

from calibration.foundation.arrays import Bytes
from capture.recordings.recording import Footage
from capture.recordings.seen_frames import SeenFrames, lent
from capture.recordings.video import probe
from vivarig.jobs.footage_images import first_cut
from vivarig.jobs.job import Job
from vivarig.results.shown_frames import frames_shown

__all__ = ["frames_to_show", "keep_shown", "shown_lent"]

_MOST_BYTES = 60_000_000
"""Images of all cameras that are kept: where there would be more, the report decodes them again."""
_REPORT = "report"


def frames_to_show(job: Job) -> list[list[int]]:
    """Return for each light camera the frames of the recording whose images are kept; none where they are too large."""
    light = [job.recording.footage[index] for index in job.recording.of_kind("light")]
    if _REPORT not in job.plans or not all(one.has_images for one in light):
        return [[] for _ in light]
    shown, start = frames_shown(len(job.whole), [one.name for one in light]), first_cut(job)
    if sum(_image_bytes(one) * len(shown[one.name]) for one in light) > _MOST_BYTES:
        return [[] for _ in light]
    return [[start + frame for frame in shown[one.name]] for one in light]


def _image_bytes(footage: Footage) -> int:
    told = probe(footage.source)
    return told.size[0] * told.size[1] * (3 if told.colour else 1)


def keep_shown(job: Job, camera: int, seen: SeenFrames) -> None:
    """Keep those images of one of the light cameras, as it filmed them."""
    wanted = frames_to_show(job)[camera]
    offset = round(job.recording.footage[job.recording.of_kind("light")[camera]].offset_frames)
    images = {k: _plain(seen.images[k]) for k in (frame + offset for frame in wanted) if k in seen.images}
    if images:
        job.keep_step(_REPORT, _name(camera), replace(seen, images=images))


def shown_lent(job: Job) -> AbstractContextManager[None]:
    """Lend them to all who read the videos meanwhile."""
    light = [job.recording.footage[index] for index in job.recording.of_kind("light")]
    return lent({Path(one.source): cache(partial(_kept, job, k)) for k, one in enumerate(light)})


def _kept(job: Job, camera: int) -> SeenFrames | None:
    seen: SeenFrames | None = job.kept_step(_REPORT, _name(camera))
    if seen is None or not probe(seen.source).colour:
        return seen
    return replace(seen, images={k: _in_colour(image) for k, image in seen.images.items()})


def _plain(image: Bytes) -> Bytes:
    """Return an image (h, w, 3) as (h, w) where it shows no colour: a third is enough to keep."""
    plain = image.ndim == 3 and bool((image == image[:, :, :1]).all())
    return np.ascontiguousarray(image[:, :, 0]) if plain else image


def _in_colour(image: Bytes) -> Bytes:
    return image if image.ndim == 3 else np.asarray(cv2.cvtColor(image, cv2.COLOR_GRAY2BGR))


def _name(camera: int) -> str:
    return f"seen {camera:04d}"
