"""Which rows of a skeleton follow the edits of its track."""

from __future__ import annotations

import numpy as np

from calibration.foundation.spans import Span
from tracking.sequence.tracked_points import TrackedPoints

__all__ = ["around", "edited_spans"]

_CHUNK = 4096
WIDE, EASE = 12, 4
"""Frames around an edit that are fitted again, so that it is smooth, and those of them that are taken."""


def edited_spans(before: TrackedPoints, after: TrackedPoints) -> list[Span]:
    """Return the rows in which two tracks differ, those that are near each other together."""
    if before is after:
        return []
    differ = before.trust != after.trust
    for first in range(0, len(after), _CHUNK):
        rows = slice(first, min(first + _CHUNK, len(after)))
        old, new = before.rows(rows).points, after.rows(rows).points
        differ[rows] |= (~np.isclose(old, new, rtol=0.0, atol=0.0, equal_nan=True)).any(axis=(1, 2))
        limbs = before.limbs(rows, ("any",)), after.limbs(rows, ("any",))
        if limbs[0] is not None and limbs[1] is not None:
            differ[rows] |= (limbs[0].trust != limbs[1].trust).any(axis=1)
    found: list[Span] = []
    for row in np.flatnonzero(differ).tolist():
        if found and row - found[-1].stop <= 2 * EASE:
            found[-1] = Span(found[-1].first, row + 1)
        else:
            found.append(Span(row, row + 1))
    return found


def around(span: Span, frames: int) -> tuple[Span, Span]:
    """Return the rows that are fitted again because of an edit, and those of them that are taken."""
    whole = Span(0, frames)
    return span.widened(WIDE, whole), span.widened(EASE, whole)
