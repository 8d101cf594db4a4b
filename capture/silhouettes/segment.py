"""Segment a whole recording, streaming: a few frames of all cameras are in memory at any time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.arrays import Bools, Bytes, Floats, Singles
from calibration.errors import InputError
from calibration.rig import Rig
from capture.masks import MaskFlag, create_masks, user_masks
from capture.recording import Footage, Recording
from capture.silhouettes.consensus import consensus
from capture.silhouettes.difference import PlateModel
from capture.silhouettes.models import CameraModel, ModelOptions, camera_model
from capture.silhouettes.tuning import tune
from capture.video import probe, read_frames

__all__ = ["SilhouetteReport", "count_frames", "learn_models", "segment_recording"]

_CHUNK = 16
#: Frames spread over the recording from which models learn what moves, and on how many of them they are tuned.
_SAMPLES = 12
_TUNED = 4


@dataclass(frozen=True, eq=False)
class SilhouetteReport:
    """How a recording was segmented.

    Attributes:
        names: the cameras.
        models: the model that each camera got.
        agreement: (T, C) IoU with the hull of all views, before repair; NaN where there is none.
        flags: (T, C) `MaskFlag` codes.
        area: (T, C) silhouette area, px.
    """

    names: tuple[str, ...]
    models: tuple[str, ...]
    agreement: Singles
    flags: NDArray[np.uint16]
    area: Floats


@dataclass(frozen=True, eq=False)
class _Source:
    footage: Footage
    frames: int
    size: tuple[int, int]
    offset: int


def _sources(recording: Recording) -> tuple[list[_Source], int]:
    sources = []
    for index in recording.of_kind("light"):
        footage = recording.footage[index]
        info = probe(footage.source)
        sources.append(_Source(footage, info.frames, info.size, round(footage.offset_frames)))
    if not sources:
        raise InputError(f"{recording.folder}: no camera of kind 'light' to segment")
    if recording.rig is not None:
        for source in sources:
            size = recording.rig[source.footage.name].size
            if size != source.size:
                raise InputError(
                    f"camera '{source.footage.name}': the video is {source.size[0]} x {source.size[1]} px, "
                    f"its calibration {size[0]} x {size[1]}"
                )
    total = max(0, min(source.frames - source.offset for source in sources))
    if total == 0:
        raise InputError(f"{recording.folder}: the cameras have no frame in common (see their offsets)")
    return sources, total


def count_frames(recording: Recording) -> int:
    """Return the number of frames that all light cameras of a recording have."""
    return _sources(recording)[1]


def learn_models(
    recording: Recording, options: ModelOptions | None = None, *, workers: int | None = None
) -> list[CameraModel | None]:
    """Make the models of all light cameras from the whole recording, for `segment_recording` of any part of it."""
    sources, total = _sources(recording)
    rig = None if recording.rig is None else recording.rig.subset([source.footage.name for source in sources])
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        return _models(sources, 0, total, options or ModelOptions(), rig, pool)


def segment_recording(
    recording: Recording,
    path: Path | str | None = None,
    options: ModelOptions | None = None,
    *,
    start: int = 0,
    stop: int | None = None,
    models: Sequence[CameraModel | None] | None = None,
    workers: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> SilhouetteReport:
    """Segment all light cameras of a recording into ``silhouettes.h5``.

    Args:
        recording: what to segment; with a rig the views also judge each other.
        path: file to write; by default in the recording's results.
        options: model and clean-up.
        start, stop: recording frames to do; the file holds those only.
        models: of `learn_models`; None: made here, from the frames to do.
        workers: threads; the result does not depend on it.
        on_progress: called with (frames done, frames in all).
    """
    chosen = options or ModelOptions()
    sources, total = _sources(recording)
    last = total if stop is None else min(stop, total)
    if not 0 <= start < last:
        raise InputError(f"silhouettes: wanted frames {start}..{stop}, the recording has 0..{total - 1}")
    count = last - start
    names = tuple(source.footage.name for source in sources)
    rig = None if recording.rig is None else recording.rig.subset(names)
    target = recording.results / "silhouettes.h5" if path is None else Path(path)
    area = np.zeros((count, len(sources)))
    agreement = np.full((count, len(sources)), np.nan, dtype=np.float32)
    flags = np.zeros((count, len(sources)), dtype=np.uint16)
    threads = workers or os.cpu_count() or 1
    with ThreadPoolExecutor(threads) as pool:
        if models is None:
            models = _models(sources, start, last, chosen, rig, pool)
        streams = [_stream(source, model, start, last) for source, model in zip(sources, models, strict=True)]
        sizes = [source.size for source in sources]
        with create_masks(target, names, sizes, count, _parameters(chosen, models, names, start)) as writer:
            for first in range(0, count, _CHUNK):
                chunk = min(_CHUNK, count - first)

                def segment(index: int, chunk: int = chunk) -> tuple[Bools, NDArray[np.uint16]]:
                    return _segment_chunk(streams[index], models[index], chunk, sizes[index])

                parts = list(pool.map(segment, range(len(sources))))

                def judge(offset: int, parts: list[tuple[Bools, NDArray[np.uint16]]] = parts) -> Floats:
                    return _judge(offset, parts, rig, chosen.repair)

                scores = np.array(list(pool.map(judge, range(chunk))))
                here = slice(first, first + chunk)
                for index, (masks, codes) in enumerate(parts):
                    score = scores[:, index].astype(np.float32)
                    writer.write(names[index], first, np.packbits(masks, axis=-1), score, codes)
                    agreement[here, index], flags[here, index] = score, codes
                    area[here, index] = [np.count_nonzero(mask) for mask in masks]
                if on_progress is not None:
                    on_progress(first + chunk, count)
    labels = tuple("masks" if model is None else model.name for model in models)
    return SilhouetteReport(names, labels, agreement, flags, area)


def _models(
    sources: Sequence[_Source], start: int, last: int, options: ModelOptions, rig: Rig | None, pool: Executor
) -> list[CameraModel | None]:
    """Make the models of all cameras, tuned to each other where there is a rig; None where masks are brought."""
    brought = [source.footage.masks is not None and options.model in ("auto", "masks") for source in sources]
    if options.model == "masks" and not all(brought):
        name = sources[brought.index(False)].footage.name
        raise InputError(f"camera '{name}': the masks model needs masks in recording.toml")
    step = max(1, -(-min(last - start, 2000) // _SAMPLES))

    def sampled(index: int) -> list[Bytes]:
        source = sources[index]
        begin = max(0, start + source.offset)
        end = min(begin + min(last - start, 2000), source.frames)
        return [image for _, image in read_frames(source.footage.source, begin, end, step)]

    def make(index: int) -> CameraModel | None:
        if brought[index]:
            return None
        return camera_model(sources[index].footage, sources[index].frames, options, samples[index])

    samples = list(pool.map(sampled, range(len(sources))))
    models = list(pool.map(make, range(len(sources))))
    ready = [model for model in models if model is not None]
    if rig is not None and len(ready) == len(models) >= 3 and not any(model.in_order for model in ready):
        few = [
            _as_read(images, model)[:: max(1, len(images) // _TUNED)]
            for images, model in zip(samples, ready, strict=True)
        ]
        tuned, _ = tune(ready, few, rig, pool, floors=options.shadow_floor is None)
        return list(tuned)
    return models


def _as_read(images: list[Bytes], model: CameraModel) -> list[Bytes]:
    return [image[:, :, 0] if model.grey and image.ndim == 3 else image for image in images]


def _stream(source: _Source, model: CameraModel | None, start: int, last: int) -> Iterator[Bytes | None]:
    """Yield the images (or brought masks) of the recording's frames, None where a camera has none."""
    first = start + source.offset
    if model is None and source.footage.masks is not None:
        for index, mask in enumerate(user_masks(source.footage.masks, last + source.offset, source.size)):
            if index >= first:
                yield mask.view(np.uint8)
        return
    for _ in range(min(0, first), 0):
        yield None
    grey = model is not None and model.grey
    for _, image in read_frames(source.footage.source, max(0, first), last + source.offset, gray=grey):
        yield image


def _parameters(
    options: ModelOptions, models: Sequence[CameraModel | None], names: Sequence[str], start: int
) -> dict[str, Any]:
    """Return what the file should say about how it was made, tuned values included."""
    cameras: dict[str, dict[str, Any]] = {}
    for name, model in zip(names, models, strict=True):
        if model is None:
            cameras[name] = {"model": "masks"}
            continue
        floor = model.model.shadow_floor if isinstance(model.model, PlateModel) else None
        cameras[name] = {"model": model.name, "shadow_floor": floor, **asdict(model.cleaning)}
    return {"model": options.model, "repair": options.repair, "start": start, "cameras": cameras}


def _segment_chunk(
    stream: Iterator[Bytes | None], model: CameraModel | None, count: int, size: tuple[int, int]
) -> tuple[Bools, NDArray[np.uint16]]:
    """Return the masks (n, H, W) and flags (n,) of the next ``count`` images of a camera."""
    masks = np.zeros((count, size[1], size[0]), dtype=bool)
    flags = np.zeros(count, dtype=np.uint16)
    for offset in range(count):
        image = next(stream, None)
        if image is None:
            flags[offset] = MaskFlag.NO_FRAME
            continue
        masks[offset] = image.view(np.bool_) if model is None else model.silhouette(image)
        flags[offset] = _mask_flags(masks[offset])
    return masks, flags


def _mask_flags(mask: Bools) -> int:
    """Return what a mask says by itself."""
    if not mask.any():
        return int(MaskFlag.EMPTY)
    if mask.all():
        return int(MaskFlag.FULL)
    touches = mask[:2].any() or mask[-2:].any() or mask[:, :2].any() or mask[:, -2:].any()
    return int(MaskFlag.TOUCHES_BORDER) if touches else 0


def _judge(offset: int, parts: list[tuple[Bools, NDArray[np.uint16]]], rig: Rig | None, repair: bool) -> Floats:
    """Let the views judge one frame of a chunk: mend its masks and set its flags in place; return the agreement."""
    if rig is None:
        return np.full(len(parts), np.nan)
    verdict = consensus([masks[offset] for masks, _ in parts], rig, repair=repair)
    for index, (masks, codes) in enumerate(parts):
        if verdict.repaired[index]:
            masks[offset] = verdict.masks[index]
            codes[offset] = _mask_flags(masks[offset]) | MaskFlag.REPAIRED
        if verdict.contradicted[index]:
            codes[offset] |= np.uint16(MaskFlag.CONTRADICTED)
    return verdict.agreement
