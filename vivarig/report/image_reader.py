"""Single images out of videos: one that comes soon after the last is reached by reading on, not by seeking anew.

Where it is known which ones will be asked for, what none of them rests on is not decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from calibration.foundation.arrays import Bytes
from capture.recordings.video import pass_frames

__all__ = ["ImageReader"]

_AHEAD = 60
"""Frames to read on over: to seek costs opening the file and half its distance of key frames."""
_OPEN = 16


@dataclass
class _Pass:
    """A source that is read forwards: the first image that may come yet, those to come, and which; None: all."""

    following: int
    images: Iterator[tuple[int, Callable[[], Bytes]]]
    only: Collection[int] | None = None

    def leads_to(self, at: int) -> bool:
        """Return whether image ``at`` is reached by reading on."""
        if self.only is not None:
            return at >= self.following and at in self.only
        return self.following <= at < self.following + _AHEAD


class ImageReader:
    """Images of several sources, each read forwards as long as that is shorter."""

    def __init__(self) -> None:
        self._open: dict[Path, _Pass] = {}

    def expect(self, source: Path, wanted: Collection[int]) -> None:
        """Be told which images of a source will be asked for next, in order; others can be asked for all the same."""
        only = frozenset(at for at in wanted if at >= 0)
        self._keep(source, _Pass(0, pass_frames(source, only=only, ahead=False), only))

    def read(self, source: Path, at: int) -> Bytes | None:
        """Return image ``at`` of a source, None where it has none."""
        if at < 0:
            return None
        known = self._open.pop(source, None)
        if known is None or not known.leads_to(at):
            known = _Pass(at, pass_frames(source, at, ahead=False))
        for index, image in known.images:
            if index >= at:
                known.following = index + 1
                self._keep(source, known)
                return image() if index == at else None
        return None

    def _keep(self, source: Path, known: _Pass) -> None:
        while len(self._open) >= _OPEN:
            self._open.pop(next(iter(self._open)))
        self._open[source] = known

    def close(self) -> None:
        """Let go of all sources."""
        self._open.clear()
