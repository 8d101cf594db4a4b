"""Images that one task of a recording decoded and another asks for again: a few frames, kept so that it need not.

Key frames of a video lie hundreds apart: whoever wants a few frames of it decodes most of it. Where such images are
lent, `capture.recordings.video` gives them in place of decoding; of all others it decodes, and the bytes are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from calibration.foundation.arrays import Bytes

__all__ = ["SeenFrames", "lent", "seen_frames"]


@dataclass(frozen=True, eq=False)
class SeenFrames:
    """Some images of a video.

    Attributes:
        source: the video.
        images: by frame number, (h, w) or (h, w, 3) BGR.
        gray: whether grey images were asked for; of a video filmed in grey all are.
    """

    source: Path
    images: Mapping[int, Bytes]
    gray: bool


Loaded = Callable[[], "SeenFrames | None"]

_lent: dict[Path, Loaded] = {}


@contextmanager
def lent(every: Mapping[Path, Loaded]) -> Iterator[None]:
    """Lend images of videos to all who read these meanwhile, on whatever thread; they are loaded when asked for."""
    _lent.update(every)
    try:
        yield
    finally:
        for source in every:
            _lent.pop(source, None)


def seen_frames(source: Path, wanted: Collection[int], *, gray: bool) -> list[tuple[int, Bytes]] | None:
    """Return the wanted frames of a video, in order, where all of them are lent as they are asked for; else None."""
    load = _lent.get(source)
    known = None if load is None else load()
    # A decoder makes grey of colour in a way of its own.
    if known is None or gray is not known.gray or not all(index in known.images for index in wanted):
        return None
    return [(index, known.images[index]) for index in wanted]
