"""Videos decoded frame after frame, and put aside for who goes on from where another has stopped.

A recording is cut out in pieces. A piece that begins in the middle of a video is decoded from the key frame before it,
often hundreds of frames back; the process that did the piece before has that behind it already.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

from calibration.foundation.damaged_files import require_file
from calibration.foundation.errors import InputError

__all__ = ["REMEMBERED", "Reader", "close_aside", "go_on", "open_video", "put_aside", "video_stream"]

_WORTH_SEEKING = 48  # frames; decoding that many from the start costs less than looking for a key frame
#: Containers whose time stamps number the frames; others (AVI) are decoded from their beginning.
_STAMPED = ("mov,mp4,m4a,3gp,3g2,mj2", "matroska,webm")
_LEADING = 16
"""Frames that are decoded after a key frame and shown before it, at most."""
REMEMBERED = 256
"""Videos whose length and time stamps a process remembers."""
_MOST_ASIDE = 32


def open_video(path: Path) -> av.container.InputContainer:
    """Open a video file and nothing else."""
    if not path.exists():
        raise InputError(f"{path}: no such video")
    require_file(path)
    try:
        # "file:" and its own protocol alone: a playlist that calls itself a video must not lead to other files
        return av.open(f"file:{path}", options={"protocol_whitelist": "file"}, metadata_errors="replace")
    except (av.error.FFmpegError, OSError, ValueError, MemoryError) as error:
        said = getattr(error, "strerror", None) or type(error).__name__
        raise InputError(f"{path}: cannot be opened as a video ({said})") from None


def video_stream(container: av.container.InputContainer, path: Path) -> av.VideoStream:
    """Return the first video stream of an open file."""
    streams = container.streams.video
    if not streams or streams[0].codec_context is None:
        raise InputError(f"{path}: holds no video stream that can be read")
    return streams[0]


class Reader:
    """An open video that is decoded in order.

    Attributes:
        path: of the video.
        frames: (index, frame) from the first that is wanted or before it, others among them.
        mono: whether it was filmed in grey.
    """

    def __init__(self, path: Path, wanted: Collection[int], *, ahead: bool) -> None:
        """Open a video for the frames ``wanted``, in order; ``ahead`` decodes on threads of its own."""
        self.path = path
        with ExitStack() as until_ready:
            self._container = until_ready.enter_context(open_video(path))
            stream = video_stream(self._container, path)
            stream.thread_type = "AUTO" if ahead else "NONE"
            self.mono = (stream.pix_fmt or "").startswith("gray")
            self.frames: Iterator[tuple[int, av.VideoFrame]] = enumerate(self._container.decode(stream))
            skips = not isinstance(wanted, range) or wanted.step > 1
            if (skips or next(iter(wanted)) >= _WORTH_SEEKING) and self._container.format.name in _STAMPED:
                self.frames = _sought(path, self._container, stream, wanted)
            until_ready.pop_all()  # who has the reader closes it

    def close(self) -> None:
        """Close the file."""
        self._container.close()


@dataclass(frozen=True, eq=False)
class _Aside:
    """A reader, the frame that comes next, and size and time of its file."""

    reader: Reader
    at: int
    file: tuple[int, int]


_aside: dict[Path, _Aside] = {}


def put_aside(reader: Reader, at: int) -> None:
    """Leave a reader open, whose next frame is ``at``, for who reads on from there."""
    before = _aside.pop(reader.path, None)
    if before is not None:
        before.reader.close()
    while len(_aside) >= _MOST_ASIDE:
        _aside.pop(next(iter(_aside))).reader.close()
    _aside[reader.path] = _Aside(reader, at, _file_state(reader.path))


def go_on(path: Path, first: int) -> Reader | None:
    """Return a reader that was put aside shortly before a frame, None where there is none."""
    kept = _aside.pop(path, None)
    if kept is None:
        return None
    if 0 <= first - kept.at < _WORTH_SEEKING and kept.file == _file_state(path):
        return kept.reader
    kept.reader.close()
    return None


def close_aside() -> None:
    """Close all that was put aside: each holds a few images."""
    while _aside:
        _aside.popitem()[1].reader.close()


def _file_state(path: Path) -> tuple[int, int]:
    told = path.stat()
    return told.st_size, told.st_mtime_ns


def _sought(
    path: Path,
    container: av.container.InputContainer,
    stream: av.VideoStream,
    wanted: Collection[int],
    *,
    trusting: bool = True,
) -> Iterator[tuple[int, av.VideoFrame]]:
    """Yield (index, frame) from the key frame before the first ``wanted`` on, others too, but not all of them.

    Frames are numbered by their time stamps, read without decoding; a video without usable stamps is decoded from its
    beginning.
    """
    told = path.stat()
    stamps, even = _time_stamps(path, told.st_size, told.st_mtime_ns, trusting)
    first = next(iter(wanted))
    if stamps is None or first >= len(stamps):
        yield from enumerate(container.decode(stream))
        return
    begun = False
    for frame in _decoded(stream, _packets_from(container, stream, stamps, first), stamps, wanted):
        if frame.pts is None:
            continue
        index = int(np.searchsorted(stamps, frame.pts))
        if even and (index == len(stamps) or stamps[index] != frame.pts):
            if begun:
                raise InputError(f"{path}: frame {index} is not where its index says; write the video's container anew")
            stream.codec_context.flush_buffers()
            yield from _sought(path, container, stream, wanted, trusting=False)
            return
        begun = True
        yield index, frame


def _packets_from(
    container: av.container.InputContainer, stream: av.VideoStream, stamps: NDArray[np.int64], first: int
) -> Iterator[av.Packet[av.VideoStream]]:
    """Return the packets of a video from the key frame before its frame ``first`` on."""
    sought = first
    while True:
        container.seek(int(stamps[sought]), stream=stream, backward=True, any_frame=False)
        packets = container.demux(stream)
        begins = next(packets)
        # A container sorts by when frames are decoded: the key frame after those that are shown before it may be found.
        if sought == 0 or begins.pts is None or np.searchsorted(stamps, begins.pts) <= first:
            return chain([begins], packets)
        sought = max(0, sought - _LEADING)


def _decoded(
    stream: av.VideoStream,
    packets: Iterable[av.Packet[av.VideoStream]],
    stamps: NDArray[np.int64],
    wanted: Collection[int],
) -> Iterator[av.VideoFrame]:
    """Yield frames, those ``wanted`` among them, from a key frame on, and of the others what these rest on.

    What no other frame rests on is not decoded, nor is what lies between a wanted frame and the last key frame before
    the next.
    """
    codec = stream.codec_context
    for some, anew in _needed(packets, stamps, wanted):
        if anew:  # what is decoded and not put out yet comes first; the rest is forgotten
            yield from codec.decode(None)
            codec.flush_buffers()
        for packet, is_wanted in some:
            codec.skip_frame = "DEFAULT" if is_wanted else "NONREF"
            yield from packet.decode()
    yield from codec.decode(None)


def _needed(
    packets: Iterable[av.Packet[av.VideoStream]], stamps: NDArray[np.int64], wanted: Collection[int]
) -> Iterator[tuple[list[tuple[av.Packet[av.VideoStream], bool]], bool]]:
    """Yield packets up to each one that is ``wanted``, or may be, and whether; and whether they begin anew.

    They do with a key frame: of what was held before it, whose frames are not wanted, nothing is needed then.
    """
    held: list[tuple[av.Packet[av.VideoStream], bool]] = []
    rest, sent, anew = iter(wanted), set[int](), False
    following: int | None = next(rest)
    for packet in packets:
        if packet.size == 0:  # the end of the video
            return
        index = None if packet.pts is None else int(np.searchsorted(stamps, packet.pts))
        if held and packet.is_keyframe and index is not None and following is not None and index <= following:
            held, anew = [], True
        held.append((packet, index is None or index in wanted))
        if not held[-1][1]:
            continue
        yield held, anew
        held, anew = [], False
        if index is not None:
            sent.add(index)
        while following in sent:
            sent.discard(following)
            following = next(rest, None)
        if following is None:
            return


@lru_cache(maxsize=REMEMBERED)
def _time_stamps(path: Path, size_bytes: int, changed_ns: int, trusting: bool) -> tuple[NDArray[np.int64] | None, bool]:
    """Return the sorted presentation stamps of a video, None where they do not number the frames, found once.

    With ``trusting`` they are taken from an index in the file that lists every frame, evenly spaced (then True is
    returned, too): to read the packets of an hour instead costs the whole file.
    """
    with open_video(path) as container:
        stream = video_stream(container, path)
        entries = stream.index_entries
        if trusting and stream.start_time is not None and 2 <= stream.frames == len(entries):
            order = np.array([entry.timestamp for entry in entries], dtype=np.int64)
            step = int(order[1] - order[0])
            if step > 0 and (np.diff(order) == step).all():
                return np.asarray(stream.start_time + step * np.arange(len(order))), True
        found = [packet.pts for packet in container.demux(stream) if packet.size]
    if any(stamp is None for stamp in found):
        return None, False
    stamps = np.sort(np.array(found, dtype=np.int64))
    return (stamps if len(stamps) and (np.diff(stamps) > 0).all() else None), False
