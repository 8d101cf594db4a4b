"""Single images out of videos: one that comes soon after the last is reached by reading on, not by seeking anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from calibration.foundation.arrays import Bytes
from capture.recordings.video import pass_frames

__all__ = ["ImageReader"]

_AHEAD = 60
"""Frames to read on over: to seek costs opening the file and half its distance of key frames."""
_OPEN = 16


class ImageReader:
    """Images of several sources, each read forwards as long as that is shorter."""

    def __init__(self) -> None:
        self._open: dict[Path, tuple[int, Iterator[tuple[int, Callable[[], Bytes]]]]] = {}

    def read(self, source: Path, at: int) -> Bytes | None:
        """Return image ``at`` of a source, None where it has none."""
        if at < 0:
            return None
        following, frames = self._open.pop(source, (at + 1, iter(())))
        if not following <= at < following + _AHEAD:
            frames, following = pass_frames(source, at, ahead=False), at
        for index, image in frames:
            if index >= at:
                while len(self._open) >= _OPEN:
                    self._open.pop(next(iter(self._open)))
                self._open[source] = (index + 1, frames)
                return image() if index == at else None
        return None

    def close(self) -> None:
        """Let go of all sources."""
        self._open.clear()
