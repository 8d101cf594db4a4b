"""Frames that the report shows whatever the results are: who decodes the videos before it can keep their images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["frames_shown", "strip_frames", "strip_views"]

_STRIP, _STRIP_VIEWS = 16, 2


def strip_views(names: Sequence[str]) -> list[str]:
    """Return the cameras of the strip of images."""
    return [names[k * len(names) // _STRIP_VIEWS] for k in range(min(_STRIP_VIEWS, len(names)))]


def strip_frames(frames: int) -> list[int]:
    """Return the frames of the strip that lie all over a recording."""
    return sorted({int(frame) for frame in np.linspace(0, frames - 1, min(frames, _STRIP))})


def frames_shown(frames: int, names: Sequence[str]) -> dict[str, list[int]]:
    """Return for each camera the frames of a recording that are shown: its ends and its middle, and the strip."""
    everywhere = {0, frames // 2, frames - 1}
    strip = dict.fromkeys(strip_views(names), everywhere | set(strip_frames(frames)))
    return {name: sorted(strip.get(name, everywhere)) for name in names}
