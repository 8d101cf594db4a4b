"""A skeleton fitted to a recording of any length, a chunk of frames at a time.

A chunk is fitted some frames beyond its ends, and those are dropped: at a seam each side has seen what comes next. Its
first pose is that of the chunk before, so that both tell the same story; and turns are counted on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.spans import Span
from skeleton.inverse_kinematics.fits import SkeletonFit, same_sign
from skeleton.inverse_kinematics.spring_window import unwrapped

__all__ = ["CHUNK", "fit_chunks"]

CHUNK = 2048
"""Frames of a chunk, at most."""
LEAD = 32
"""Frames that a chunk is fitted beyond its ends."""

#: (frames to fit, pose (D,) to begin with or None) -> the fit of those frames.
Fit = Callable[[Span, Floats | None], SkeletonFit]


def fit_chunks(fit: Fit, seen: Ints, *, chunk: int = CHUNK, lead: int = LEAD) -> Iterator[tuple[Span, SkeletonFit]]:
    """Yield the frames of each chunk with their fit.

    They come in the order of time, except that chunks at the beginning in which nothing is seen come last: their pose
    is held from the first frame after them.

    Args:
        fit: fits some frames.
        seen: (T,) how many points each frame has.
        chunk: most frames of a chunk.
        lead: frames that a chunk is fitted beyond its ends.
    """
    whole = Span(0, len(seen))
    count = max(1, -(-len(whole) // chunk))
    spans = [Span(a, b) for a, b in pairwise(len(whole) * k // count for k in range(count + 1))]
    begin = next((k for k, span in enumerate(spans) if seen[span.first : span.stop].max(initial=0) >= 3), 0)
    first: SkeletonFit | None = None
    before: tuple[Span, SkeletonFit] | None = None
    for span in spans[begin:]:
        wide = span.widened(lead, whole)
        start = None if before is None else before[1].coordinates[wide.first - before[0].first]
        fitted = fit(wide, start)
        if before is not None:
            last = span.first - 1 - before[0].first
            fitted = _continued(before[1].rows(last, last + 1), fitted, span.first - wide.first)
        before = wide, fitted
        kept = fitted.rows(span.first - wide.first, span.stop - wide.first)
        first = first or kept
        yield span, kept
    for span in reversed(spans[:begin]):
        assert first is not None
        first = fit(span, first.coordinates[0])
        yield span, first


def _continued(before: SkeletonFit, fit: SkeletonFit, at: int) -> SkeletonFit:
    """Return a fit whose turns and signs go on from the frame before its row ``at``."""
    path = unwrapped(fit.body, np.concatenate([before.coordinates, fit.coordinates[at:]]))[1:]
    turns = same_sign(np.concatenate([before.rotations, fit.rotations[at:]]))[1:]
    return replace(
        fit,
        coordinates=np.concatenate([fit.coordinates[:at], path]),
        rotations=np.concatenate([fit.rotations[:at], turns]),
    )
