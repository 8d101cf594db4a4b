"""Images of the frames that are looked at first, kept while cameras are learnt: the same videos are decoded for both.

Who cuts these frames out, and who finds size and shape of the subject in them, asks for images that were decoded
already. They are gone when size and shape are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path

from calibration.foundation.spans import Span
from capture.recordings.recording import Footage
from capture.recordings.seen_frames import SeenFrames, lent
from capture.recordings.video import probe
from vivarig.jobs.first_looks import Looked, look_frames
from vivarig.jobs.footage_images import first_cut
from vivarig.jobs.job import Job

__all__ = ["frames_to_keep", "keep_seen", "seen_lent"]

_MOST_BYTES = 300_000_000
"""Images of all cameras that are kept on disk: where there would be more they are decoded again."""


def frames_to_keep(job: Job, looked: Looked) -> list[int]:
    """Return the frames of the recording whose images are worth keeping; none where these are too large."""
    frames = [frame for span in looked.spans for frame in _frames(job, looked, span)]
    pixels = sum(width * height for width, height in (probe(one.source).size for one in _light(job)))
    return frames if 3 * pixels * len(frames) <= _MOST_BYTES else []


def keep_seen(job: Job, looked: Looked, camera: int, seen: SeenFrames) -> None:
    """Keep images of one of the light cameras, each stretch's by itself."""
    offset = round(_light(job)[camera].offset_frames)
    for span in looked.spans:
        wanted = {frame + offset for frame in _frames(job, looked, span)}
        images = {index: image for index, image in seen.images.items() if index in wanted}
        job.keep_step("track", _name(span, camera), replace(seen, images=images))


def seen_lent(job: Job, spans: Sequence[Span]) -> AbstractContextManager[None]:
    """Lend what was kept of some stretches to all who read the videos meanwhile."""
    return lent({Path(one.source): partial(_seen, job, spans, k) for k, one in enumerate(_light(job))})


def _seen(job: Job, spans: Sequence[Span], camera: int) -> SeenFrames | None:
    some = [one for span in spans if (one := job.kept_step("track", _name(span, camera))) is not None]
    return replace(some[0], images={k: image for one in some for k, image in one.images.items()}) if some else None


def _frames(job: Job, looked: Looked, span: Span) -> list[int]:
    start = first_cut(job)
    return [start + frame for frame in look_frames(job, span, len(looked.spans))]


def _light(job: Job) -> list[Footage]:
    return [job.recording.footage[index] for index in job.recording.of_kind("light")]


def _name(span: Span, camera: int) -> str:
    return f"seen {span} {camera:04d}"
