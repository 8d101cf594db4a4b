"""How a recording is cut into parts: by its length alone, so that any number of workers makes the same parts."""

from __future__ import annotations

from itertools import pairwise

from calibration.foundation.spans import Span

__all__ = ["CHUNK", "LENGTH", "MARGIN", "chunk_spans", "cut", "cut_finer", "spread"]

LENGTH = 160
"""Frames of a part, at most: finding the subject anew costs a few frames' time, losing a part that was killed more."""

MARGIN = 4
"""Frames that a part is tracked beyond its ends, to be compared with its neighbours."""

_FINER = 4
"""Pieces of a part where frames need not be in a row: small ones fill the time in which others wait."""

CHUNK = 2048
"""Frames of a chunk of the skeleton, at most."""

_WORTH_TWO = 80


def cut(whole: Span, length: int = LENGTH) -> tuple[Span, ...]:
    """Cut frames into parts of equal length, ``length`` at most; short recordings still give two cores something to do.

    >>> [len(part) for part in cut(Span(0, 401))]
    [133, 134, 134]
    """
    count = max(-(-len(whole) // length), 2 if len(whole) >= _WORTH_TWO else 1)
    edges = [whole.first + len(whole) * k // count for k in range(count + 1)]
    return tuple(Span(a, b) for a, b in pairwise(edges))


def cut_finer(spans: tuple[Span, ...]) -> tuple[Span, ...]:
    """Cut parts into a few pieces each, the last one into twice as many: who is done early waits for half a piece.

    >>> [len(piece) for piece in cut_finer((Span(0, 160), Span(160, 320)))]
    [40, 40, 40, 40, 20, 20, 20, 20, 20, 20, 20, 20]
    """
    few = [_FINER] * (len(spans) - 1) + [2 * _FINER]
    return tuple(piece for span, n in zip(spans, few, strict=True) for piece in cut(span, -(-len(span) // n)))


def spread(span: Span, count: int) -> list[int]:
    """Return up to ``count`` of the frames, the first and the last among them.

    >>> spread(Span(10, 20), 4)
    [10, 13, 16, 19]
    """
    few = min(len(span), count)
    return sorted({span.first + (len(span) - 1) * k // max(few - 1, 1) for k in range(few)})


def chunk_spans(frames: int, chunk: int | None = None) -> list[Span]:
    """Return the chunks in which the skeleton of so many frames is fitted.

    >>> [len(span) for span in chunk_spans(5000)]
    [1666, 1667, 1667]
    """
    count = max(1, -(-frames // (chunk or CHUNK)))
    return [Span(a, b) for a, b in pairwise(frames * k // count for k in range(count + 1))]
