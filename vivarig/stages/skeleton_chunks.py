"""A skeleton fitted to a recording of any length, a chunk of frames at a time.

A chunk is fitted some frames beyond its ends, and those are dropped: at a seam each side has seen what comes next.
Chunks need nothing of each other, so that many workers can fit them; turns are counted on from the chunk before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.once import once
from calibration.foundation.spans import Span
from skeleton.inverse_kinematics.fits import SkeletonFit, same_sign
from skeleton.inverse_kinematics.spring_window import unwrapped
from vivarig.jobs.cutting import chunk_spans

__all__ = ["fit_chunk", "fit_chunks"]

LEAD = 32
"""Frames that a chunk is fitted beyond its ends."""

#: (frames to fit, pose (D,) to begin with or None) -> the fit of those frames.
Fit = Callable[[Span, Floats | None], SkeletonFit]


def fit_chunk(fit: Fit, span: Span, frames: int, *, lead: int = LEAD) -> SkeletonFit:
    """Fit one chunk with what lies beside it; made once where steps are kept."""
    return once(f"fit {span}", lambda: fit(span.widened(lead, Span(0, frames)), None))


def fit_chunks(
    fit: Fit, seen: Ints, *, chunk: int | None = None, lead: int = LEAD
) -> Iterator[tuple[Span, SkeletonFit]]:
    """Yield the frames of each chunk with their fit.

    They come in the order of time, except that chunks at the beginning in which nothing is seen come last: their pose
    is held from the first frame after them.

    Args:
        fit: fits some frames.
        seen: (T,) how many points each frame has.
        chunk: most frames of a chunk, None: as long recordings are cut.
        lead: frames that a chunk is fitted beyond its ends.
    """
    whole = Span(0, len(seen))
    spans = chunk_spans(len(whole), chunk)
    begin = next((k for k, span in enumerate(spans) if _shows(seen, span)), 0)
    first: SkeletonFit | None = None
    before: SkeletonFit | None = None
    for span in spans[begin:]:
        wide = span.widened(lead, whole)
        if before is not None and not _shows(seen, wide):
            fitted = fit(wide, before.coordinates[-1])  # nothing is seen: the pose is held
        else:
            fitted = fit_chunk(fit, span, len(whole), lead=lead)
        at = span.first - wide.first
        if before is not None:
            fitted = _continued(before.rows(before.frames - 1, before.frames), fitted, at)
        before = fitted.rows(at, at + len(span))
        first = first or before
        yield span, before
    for span in reversed(spans[:begin]):
        assert first is not None
        first = fit(span, first.coordinates[0])
        yield span, first


def _shows(seen: Ints, span: Span) -> bool:
    """Return whether any of the frames has points enough for a pose."""
    return bool(seen[span.first : span.stop].max(initial=0) >= 3)


def _continued(before: SkeletonFit, fit: SkeletonFit, at: int) -> SkeletonFit:
    """Return a fit whose turns and signs go on from the frame before its row ``at``."""
    path = unwrapped(fit.body, np.concatenate([before.coordinates, fit.coordinates[at:]]))[1:]
    turns = same_sign(np.concatenate([before.rotations, fit.rotations[at:]]))[1:]
    return replace(
        fit,
        coordinates=np.concatenate([fit.coordinates[:at], path]),
        rotations=np.concatenate([fit.rotations[:at], turns]),
    )
