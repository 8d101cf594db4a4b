"""Stretches of frames of a recording."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Span"]


@dataclass(frozen=True, order=True)
class Span:
    """Frames ``first`` to ``stop`` - 1 of a recording."""

    first: int
    stop: int

    def __len__(self) -> int:
        """Return the number of frames."""
        return self.stop - self.first

    def __str__(self) -> str:
        """Return a name that sorts by frame."""
        return f"{self.first:08d}-{self.stop:08d}"

    def widened(self, margin: int, within: Span) -> Span:
        """Return the span with ``margin`` frames more on both sides, as far as there are any."""
        return Span(max(within.first, self.first - margin), min(within.stop, self.stop + margin))

    def meets(self, other: Span) -> bool:
        """Return whether the two have a frame in common."""
        return self.first < other.stop and other.first < self.stop
