"""What is looked at before the parts of a stage are done, and the few frames of it that are cut out first.

The subject's size and shape takes one worker many seconds. It needs a dozen frames or two, so these are cut out before
all others, and the rest of the silhouettes is made beside it.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from calibration.foundation.arrays import Bools
from calibration.foundation.result_files import open_results
from calibration.foundation.spans import Span
from capture.recordings.masks import LikeliestMasks
from vivarig.jobs.cutting import spread
from vivarig.jobs.job import Job, PartMasks

__all__ = ["PHASE", "LookMasks", "Looked", "look_frames", "own_frames", "shown_masks"]

PHASE = "look"
"""The phase of the silhouettes in which the frames are cut out."""
_LOOKS, _LOOKS_OF = 12, {"human": 20}
"""Frames of a recording, about, and of people: all are looked at where clothes hide them (`adapt_to_clothes`)."""


@dataclass(frozen=True)
class Looked:
    """What the preparation of a stage looks at.

    Attributes:
        spans: stretches of the recording.
        first: whether of these no more than the frames that are cut out first are there.
    """

    spans: tuple[Span, ...] = ()
    first: bool = False

    def __str__(self) -> str:
        """Return words that tell one from the others of the same job."""
        return f"{len(self.spans)} {PHASE}" if self.first else f"{len(self.spans)}"


def own_frames(job: Job, span: Span) -> Span:
    """Return the frames of a stretch that are to be tracked."""
    spans = job.spans("track")
    return Span(max(span.first, spans[0].first), min(span.stop, spans[-1].stop))


def look_frames(job: Job, span: Span, stretches: int) -> list[int]:
    """Return the frames of a stretch that are looked at first, where so many stretches are."""
    looks = _LOOKS_OF.get(job.recording.subject or "", _LOOKS)
    return spread(own_frames(job, span), -(-looks // stretches))


class LookMasks:
    """Silhouettes of the frames that were cut out first."""

    def __init__(self, job: Job, spans: tuple[Span, ...]) -> None:
        self._stack = contextlib.ExitStack()
        self._at: dict[int, tuple[LikeliestMasks, int]] = {}
        for span in spans:
            path = job.path("silhouettes", PHASE, span)
            masks = LikeliestMasks(self._stack.enter_context(open_results(path, stage="silhouettes")))
            for row, frame in enumerate(look_frames(job, span, len(spans))):
                self._at[frame] = masks, row

    def __enter__(self) -> LookMasks:
        """All files are open."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close them."""
        self._stack.close()

    def __call__(self, names: tuple[str, ...], frame: int) -> list[Bools]:
        """Return the silhouettes (H, W) of one frame, one per camera, with their most likely edges."""
        masks, row = self._at[frame]
        return [masks(name, row) for name in names]


def shown_masks(job: Job, looked: Looked) -> LookMasks | PartMasks:
    """Return the silhouettes that a preparation may look at."""
    return LookMasks(job, looked.spans) if looked.first else PartMasks(job)
