"""Reading and writing videos and image folders as streams of frames, never whole."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import islice, takewhile
from pathlib import Path

import av
import cv2
import numpy as np
from av.video.reformatter import VideoReformatter

from calibration.foundation.arrays import Bools, Bytes
from calibration.foundation.damaged_files import reading, require_file, require_ordinary
from calibration.foundation.errors import InputError
from calibration.foundation.files import atomic_path
from calibration.foundation.names import natural_key
from capture.recordings.coco import coco_images, coco_masks
from capture.recordings.decoding import REMEMBERED, Reader, go_on, open_video, put_aside, video_stream
from capture.recordings.seen_frames import seen_frames

__all__ = ["VideoInfo", "image_files", "pass_frames", "probe", "read_both", "read_frames", "read_image", "write_video"]

#: Pixel formats whose first plane is the grey image as it is, levels 0-255.
_FULL_RANGE = ("gray", "yuvj420p", "yuvj422p", "yuvj444p")
_LARGEST_IMAGE_MB = 400
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")


@dataclass(frozen=True)
class VideoInfo:
    """What a video or image folder holds.

    Attributes:
        frames: number of frames that decode (counted, not taken from the header).
        rate_hz: nominal rate, None for an image folder.
        size: (width, height) px.
        colour: whether frames have three channels.
    """

    frames: int
    rate_hz: float | None
    size: tuple[int, int]
    colour: bool


def image_files(folder: Path) -> list[Path]:
    """Return the images of a folder in natural order."""
    files = [path for path in folder.iterdir() if path.suffix.lower() in IMAGE_SUFFIXES and path.name[0] != "."]
    return sorted(files, key=lambda path: natural_key(path.name))


def read_image(path: Path | str) -> Bytes:
    """Read one image as (h, w) or (h, w, 3) BGR uint8; 16-bit images are scaled to 8 bit."""
    source = require_file(path, most_mb=_LARGEST_IMAGE_MB)
    with reading(source, "an image"):
        data = np.fromfile(source, dtype=np.uint8)
        image = cv2.imdecode(data, cv2.IMREAD_ANYCOLOR | cv2.IMREAD_ANYDEPTH) if len(data) else None
    if image is None:
        raise InputError(f"{path}: cannot be read as an image")
    if image.dtype == np.uint16:
        image = (image >> 8).astype(np.uint8)
    if image.dtype != np.uint8:
        raise InputError(f"{path}: wanted an 8- or 16-bit image, got {image.dtype}")
    return np.asarray(image)


def probe(source: Path | str) -> VideoInfo:
    """Return what ``source`` holds. Counting decodes packets' headers only, so it is quick but exact."""
    place = Path(source)
    if not place.exists():
        raise InputError(f"{place}: no such video")
    require_ordinary(place)
    if place.is_dir():
        files = image_files(place)
        if not files:
            raise InputError(f"{place}: no image in this folder")
        first = read_image(files[0])
        return VideoInfo(len(files), None, (first.shape[1], first.shape[0]), first.ndim == 3)
    if place.suffix.lower() == ".json":
        count, size = coco_images(place)
        return VideoInfo(count, None, size, False)
    if place.suffix.lower() in IMAGE_SUFFIXES:
        first = read_image(place)
        return VideoInfo(1, None, (first.shape[1], first.shape[0]), first.ndim == 3)
    told = place.stat()
    return _probed(place, told.st_size, told.st_mtime_ns)


@lru_cache(maxsize=REMEMBERED)
def _probed(place: Path, size_bytes: int, changed_ns: int) -> VideoInfo:
    """Return what a video holds, counted once per process: each part of an hour's recording would count it again."""
    with open_video(place) as container:
        stream = video_stream(container, place)
        rate = float(stream.average_rate) if stream.average_rate else None
        colour = not (stream.pix_fmt or "").startswith("gray")
        size = (stream.codec_context.width, stream.codec_context.height)
        frames = sum(1 for packet in container.demux(stream) if packet.size)
    return VideoInfo(frames, rate, size, colour)


def read_frames(
    source: Path | str,
    start: int = 0,
    stop: int | None = None,
    step: int = 1,
    *,
    only: Collection[int] | None = None,
    gray: bool = False,
    ahead: bool = True,
) -> Iterator[tuple[int, Bytes]]:
    """Yield (index, image) of frames start, start + step, ... below ``stop``; (h, w) or (h, w, 3) BGR uint8.

    The masks of a COCO file (.json) are images of 0 and 255. A video is decoded from the key frame before ``start``.
    ``only``: some of these frames, where not all are wanted. ``gray`` gives (h, w) whatever the source. ``ahead``
    decodes on threads of its own; without it less work is done in all, for who reads several sources side by side.
    """
    for index, image in pass_frames(source, start, stop, step, only=only, gray=gray, ahead=ahead):
        yield index, image()


def pass_frames(
    source: Path | str,
    start: int = 0,
    stop: int | None = None,
    step: int = 1,
    *,
    only: Collection[int] | None = None,
    gray: bool = False,
    ahead: bool = True,
) -> Iterator[tuple[int, Callable[[], Bytes]]]:
    """Yield what `read_frames` does, but each image only when it is called for: one that is passed by costs less."""
    place = Path(source)
    wanted: Collection[int] = range(start, sys.maxsize if stop is None else stop, step)
    if only is not None:
        wanted = dict.fromkeys(sorted(index for index in only if index in wanted))
    seen = None if only is None else seen_frames(place, wanted, gray=gray)
    if seen is not None:
        yield from ((index, partial(np.array, image)) for index, image in seen)
        return
    for index, image in _pass(place, wanted, ahead):
        yield index, partial(image, gray)


def read_both(source: Path | str, only: Collection[int]) -> Iterator[tuple[int, Bytes, Bytes]]:
    """Yield (index, image, grey image) of some frames, in order, as `read_frames` gives the one and the other."""
    for index, image in _pass(Path(source), dict.fromkeys(sorted(only)), ahead=False):
        yield index, image(False), image(True)


def _pass(place: Path, wanted: Collection[int], ahead: bool) -> Iterator[tuple[int, Callable[[bool], Bytes]]]:
    """Yield each frame that is wanted with what gives its image, grey or as it was filmed."""
    if not wanted:
        return
    if place.is_dir() or place.suffix.lower() in IMAGE_SUFFIXES:
        files = image_files(place) if place.is_dir() else [place]
        for index in takewhile(lambda number: number < len(files), wanted):
            yield index, partial(_still, files[index])
        return
    if place.suffix.lower() == ".json":
        last = wanted[-1] if isinstance(wanted, range) else max(wanted)
        for index, mask in enumerate(islice(coco_masks(place), min(last, sys.maxsize - 1) + 1)):
            if index in wanted:
                yield index, partial(_drawn, mask)
        return
    yield from _decode(place, wanted, ahead)


def _still(path: Path, gray: bool) -> Bytes:
    image = read_image(path)
    return _gray(image) if gray else image


def _drawn(mask: Bools, gray: bool) -> Bytes:
    return np.multiply(mask.view(np.uint8), np.uint8(255))


def _gray(image: Bytes) -> Bytes:
    return image if image.ndim == 2 else np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY))


def _decode(path: Path, wanted: Collection[int], ahead: bool) -> Iterator[tuple[int, Callable[[bool], Bytes]]]:
    """Yield (index, image) of the frames ``wanted``, in order, as `_pass` does."""
    first, last = next(iter(wanted)), wanted[-1] if isinstance(wanted, range) else max(wanted)
    in_a_row = last - first < len(wanted) and not ahead
    reader = go_on(path, first) if in_a_row else None
    if reader is None:
        # who goes on from there wants what comes after, too
        reader = Reader(path, range(first, sys.maxsize) if in_a_row else wanted, ahead=ahead)
    index, turned, ours = first, VideoReformatter(), True  # one for all frames: it keeps its tables
    try:
        for index, frame in reader.frames:
            if index >= last and in_a_row:
                put_aside(reader, index + 1)
                ours = False
            if index in wanted:
                yield index, partial(_image, turned, reader.mono, f"{path}: frame {index}", frame)
            if index >= last:
                return
    except av.error.FFmpegError as error:
        raise InputError(f"{path}: frame {index} does not decode ({error.strerror})") from None
    finally:
        if ours:
            reader.close()


def _image(turned: VideoReformatter, mono: bool, told: str, frame: av.VideoFrame, gray: bool) -> Bytes:
    grey = gray or mono
    if grey and frame.format.name in _FULL_RANGE:
        return _first_plane(frame)
    try:
        return np.asarray(turned.reformat(frame, format="gray" if grey else "bgr24").to_ndarray())
    except av.error.FFmpegError as error:
        raise InputError(f"{told} does not decode ({error.strerror})") from None


def _first_plane(frame: av.VideoFrame) -> Bytes:
    """Return (h, w) a copy of a frame's brightness, without the detour over a colour conversion."""
    plane = frame.planes[0]
    flat: Bytes = np.frombuffer(plane, dtype=np.uint8)  # type: ignore[call-overload]
    rows = flat[: frame.height * plane.line_size].reshape(frame.height, plane.line_size)
    return np.ascontiguousarray(rows[:, : frame.width])


def write_video(
    path: Path | str, frames: Iterable[Bytes], rate_hz: float, *, codec: str = "h264", quality: int = 18
) -> int:
    """Write frames (h, w) or (h, w, 3) BGR to a video, atomically, the same bytes each time; return their number.

    ``codec``: "h264" (``quality`` is the CRF: 0 lossless to 51) or "ffv1" (lossless, .mkv or .avi).
    """
    if codec not in ("h264", "ffv1"):
        raise InputError(f"video codec must be h264 or ffv1, got {codec!r}")
    count = 0
    with atomic_path(path) as temporary:
        with av.open(str(temporary), "w", options={"fflags": "+bitexact"}) as container:
            stream: av.VideoStream | None = None
            for image in frames:
                mono = image.ndim == 2
                if stream is None:
                    stream = _new_stream(container, image, mono, rate_hz, codec, quality)
                frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="gray" if mono else "bgr24")
                for packet in stream.encode(frame):
                    container.mux(packet)
                count += 1
            if stream is None:
                raise InputError(f"{path}: no frame to write")
            for packet in stream.encode():
                container.mux(packet)
    return count


def _new_stream(
    container: av.container.OutputContainer,
    image: Bytes,
    mono: bool,
    rate_hz: float,
    codec: str,
    quality: int,
) -> av.VideoStream:
    name = "libx264" if codec == "h264" else "ffv1"
    stream = container.add_stream(name, rate=Fraction(rate_hz).limit_denominator(100_000))
    if not isinstance(stream, av.VideoStream):
        raise InputError(f"this build of the video library cannot encode {codec}")
    stream.height, stream.width = image.shape[:2]
    if codec == "h264":
        stream.pix_fmt = "gray" if mono else "yuv420p"
        # one thread and bit-exact flags: the same frames give the same bytes on any number of cores
        stream.options = {"crf": str(quality), "preset": "medium", "threads": "1"}
        if mono:
            stream.codec_context.color_range = av.video.reformatter.ColorRange.JPEG  # grey levels 0-255 as they are
    else:
        stream.pix_fmt = "gray" if mono else "bgr0"
        stream.options = {"threads": "1"}
    stream.codec_context.flags |= av.codec.context.Flags.bitexact
    return stream
