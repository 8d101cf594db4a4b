"""Segment a whole recording, streaming: a few frames of all cameras are in memory at any time."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.cameras.camera import Camera
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Bytes, Floats, Ints, Singles
from calibration.foundation.compiled import compiled
from calibration.foundation.errors import InputError
from calibration.foundation.result_files import open_results
from capture.backgrounds.belt_scene import BeltScene, BeltView, stilled_frames
from capture.camera_checks.outlines import outline
from capture.recordings.masks import MaskFlag, MaskWriter, create_masks, mask_cameras, masks_in, read_flags, user_masks
from capture.recordings.recording import Footage, Recording
from capture.recordings.seen_frames import SeenFrames
from capture.recordings.video import probe, read_frames
from capture.silhouettes.difference import PlateModel
from capture.silhouettes.doubts import Doubt
from capture.silhouettes.edges.matte import edge_matte
from capture.silhouettes.judging import Share, judge_frame, mask_flags, own_margin
from capture.silhouettes.models import CameraModel, ModelOptions, SittingModel
from capture.silhouettes.preparation import Prepared, Source, learn_camera, prepare_models
from capture.silhouettes.sitting import Cut
from capture.silhouettes.subjects.solids import MOST_SUBJECTS

__all__ = [
    "SilhouetteReport",
    "check_frames",
    "count_frames",
    "learn_model",
    "learn_models",
    "segment_recording",
    "subjects_of",
]

#: Frames that are held at a time at most, and pixels of all their cameras.
_CHUNK, _CHUNK_PX = 8, 30_000_000
Model = CameraModel | SittingModel | None


@dataclass(frozen=True, eq=False)
class SilhouetteReport:
    """How a recording was segmented.

    Attributes:
        names: the cameras.
        models: the model that each camera got.
        agreement: (T, C) how silhouettes agree with image and views, IoU; NaN where nothing can be said.
        flags: (T, C) `MaskFlag` codes.
        area: (T, C) silhouette area, px.
    """

    names: tuple[str, ...]
    models: tuple[str, ...]
    agreement: Singles
    flags: NDArray[np.uint16]
    area: Floats


def _sources(recording: Recording) -> tuple[list[Source], int]:
    sources = []
    for index in recording.of_kind("light"):
        footage = recording.footage[index]
        info = probe(footage.source)
        belt = None
        if recording.belt is not None and recording.rig is not None:
            belt = BeltView(recording.rig[footage.name], np.array(recording.belt) / recording.rate_hz)
        sources.append(Source(footage, info.frames, info.size, round(footage.offset_frames), belt))
    if not sources:
        raise InputError(f"{recording.folder}: no camera of kind 'light' to segment")
    if recording.rig is not None:
        for source in sources:
            size = recording.rig[source.footage.name].size
            if size != source.size:
                raise InputError(_wrong_size(source.footage.name, source.size, size))
    stored = [mask_cameras(one.footage.masks)[1] for one in sources if one.footage.masks and _is_stored(one.footage)]
    total = max(0, min([source.frames - source.offset for source in sources] + stored))
    if total == 0:
        raise InputError(f"{recording.folder}: the cameras have no frame in common (see their offsets)")
    return sources, total


def _wrong_size(name: str, video: tuple[int, int], rig: tuple[int, int]) -> str:
    """Say that a video is not of its calibration's size, and how to make a rig for it."""
    if video == rig[::-1]:
        likely = "--rotate 90 (or 270)"
    elif abs(video[0] * rig[1] - video[1] * rig[0]) <= max(*video, *rig):
        likely = f"--scale {video[0]}x{video[1]}"
    elif video[0] <= rig[0] and video[1] <= rig[1]:
        likely = f"--crop {video[0]}x{video[1]}+X+Y"
    else:
        likely = "--scale, then --pad LEFT,TOP,RIGHT,BOTTOM"
    return (
        f"camera '{name}': the video is {video[0]} x {video[1]} px, its calibration {rig[0]} x {rig[1]}; if it was "
        f"cropped, scaled, padded or turned since, make a rig for it: vivarig convert rig.toml rig_video.toml "
        f"--camera {name} {likely}"
    )


def _is_stored(footage: Footage) -> bool:
    """Return whether a camera's masks are those of one subject out of several, row by row."""
    return footage.masks is not None and footage.masks.suffix == ".h5"


def _brought_flags(footage: Footage, start: int, last: int) -> NDArray[np.uint16]:
    """Return (n,) what is known of a subject among several: whether it touches another, or may be another."""
    if footage.masks is None or not _is_stored(footage):
        return np.zeros(last - start, dtype=np.uint16)
    told = read_flags(footage.masks)[start:last, 0]
    return told & np.uint16(MaskFlag.SUBJECTS_TOUCH | MaskFlag.IDENTITY_UNSURE)


def count_frames(recording: Recording) -> int:
    """Return the number of frames that all light cameras of a recording have."""
    return _sources(recording)[1]


def subjects_of(recording: Recording, options: ModelOptions) -> int:
    """Return how many subjects are to be told apart."""
    count = recording.subjects if options.subjects is None else options.subjects
    if not 1 <= count <= MOST_SUBJECTS:
        raise InputError(f"subjects: wanted a number from 1 to {MOST_SUBJECTS}, got {count}")
    if count > 1 and recording.rig is None:
        raise InputError(f"{recording.folder}: {count} subjects are told apart in space, which needs a rig.toml")
    return count


def check_frames(recording: Recording, start: int, stop: int | None) -> None:
    """Refuse frames that `segment_recording` would refuse, before models are learnt for them."""
    _last(start, stop, count_frames(recording))


def _last(start: int, stop: int | None, total: int) -> int:
    """Return the frame after the last one to do."""
    last = total if stop is None else min(stop, total)
    if not 0 <= start < last:
        raise InputError(f"silhouettes: wanted frames {start} to {last - 1}, the recording has 0 to {total - 1}")
    return last


def learn_models(
    recording: Recording,
    options: ModelOptions | None = None,
    *,
    workers: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Prepared:
    """Make the models of all light cameras from the whole recording, for `segment_recording` of any part of it.

    ``on_progress``: called with (cameras learnt, cameras in all).
    """
    sources, total = _sources(recording)
    rig = None if recording.rig is None else recording.rig.subset([source.footage.name for source in sources])
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        return prepare_models(sources, 0, total, options or ModelOptions(), rig, pool, on_progress)


def learn_model(
    recording: Recording, options: ModelOptions, camera: int, beside: Collection[int] = ()
) -> tuple[SeenFrames, SeenFrames] | None:
    """Learn one of the light cameras by itself ahead of `learn_models`, for who keeps steps.

    Returns:
        Images of the recording's frames ``beside``, as filmed and as `segment_recording` reads them; None if they did
        not come by.
    """
    sources, total = _sources(recording)
    shown: list[tuple[SeenFrames, SeenFrames]] = []
    learn_camera(sources, camera, 0, total, options, beside, lambda filmed, taken: shown.append((filmed, taken)))
    return shown[0] if shown else None


def segment_recording(
    recording: Recording,
    path: Path | str | None = None,
    options: ModelOptions | None = None,
    *,
    start: int = 0,
    stop: int | None = None,
    only: Sequence[int] | None = None,
    models: Prepared | None = None,
    workers: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> SilhouetteReport:
    """Segment all light cameras of a recording into ``silhouettes.h5``.

    Args:
        recording: what to segment; with a rig the views also judge each other.
        path: file to write; by default in the recording's results.
        options: model and clean-up.
        start, stop: recording frames to do; the file holds those only.
        only: some of these frames, in order, where not all are wanted.
        models: of `learn_models`; None: made here, like those from the whole recording: where a subject sits
            through the frames to do, its ground shows at other times.
        workers: threads; the result does not depend on it.
        on_progress: called with (frames done, frames in all).
    """
    chosen = options or ModelOptions()
    sources, total = _sources(recording)
    last = _last(start, stop, total)
    rows = np.arange(last - start) if only is None else np.array(only, dtype=np.int64) - start
    count = len(rows)
    names = tuple(source.footage.name for source in sources)
    rig = None if recording.rig is None else recording.rig.subset(names)
    target = recording.results / "silhouettes.h5" if path is None else Path(path)
    brought = np.stack([_brought_flags(source.footage, start, last)[rows] for source in sources], axis=1)
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        known = models or prepare_models(sources, 0, total, chosen, rig, pool)
        if chosen.matte:
            _check_matte(recording, chosen, known.models, names)
        streams = [
            _rows_of(_stream(source, model, start, last, known.belt(index), rows), rows)
            for index, (source, model) in enumerate(zip(sources, known.models, strict=True))
        ]
        sizes = [source.size for source in sources]
        chunk = max(1, min(_CHUNK, count, _CHUNK_PX // sum(width * height for width, height in sizes)))
        # Masks of one chunk after the other lie in the same place: new memory costs more than what is written to it.
        room = [np.zeros((chunk, height, width), dtype=bool) for width, height in sizes]
        cutter = _Cutter(room, streams, known, rig, chosen, pool)
        report = _empty_report(names, known.models, count)
        parameters = _parameters(chosen, known, names, start, subjects_of(recording, chosen))
        with create_masks(target, names, sizes, count, parameters, matte=chosen.matte) as writer:
            for first in range(0, count, chunk):
                here = slice(first, min(first + chunk, count))
                shares = cutter.cut(here.stop - first)
                if rig is not None:  # before the views mend each other: `capture.camera_checks` judges by them
                    for name, corners in zip(names, pool.map(_outlines, shares, rig), strict=True):
                        writer.write_outlines(name, first, corners)
                report.agreement[here] = cutter.judge(shares)
                for share, told in zip(shares, brought[here].T, strict=True):
                    share.flags |= told
                _write(writer, first, shares, report, cutter)
                if on_progress is not None:
                    on_progress(here.stop, count)
    return report


@dataclass(frozen=True, eq=False)
class _Cutter:
    """Cuts the subject out of a few frames of all cameras at a time, on the threads of ``pool``.

    ``room``: (n, H, W) of each camera, where the masks of a few frames are until the next are cut.
    """

    room: Sequence[Bools]
    streams: Sequence[Iterator[Bytes | None]]
    known: Prepared
    rig: Rig | None
    options: ModelOptions
    pool: ThreadPoolExecutor

    def cut(self, count: int) -> list[Share]:
        """Return what each camera sees of the next ``count`` frames by itself."""

        def segment(index: int) -> Share:
            model, keep, doubt = self.known.models[index], self.options.matte, self.rig is not None
            return _segment_chunk(self.streams[index], model, self.room[index][:count], keep=keep, doubt=doubt)

        return list(self.pool.map(segment, range(len(self.room))))

    def judge(self, shares: Sequence[Share]) -> Singles:
        """Let the views mend each other's frames, in place; return their agreement (n, C)."""

        def judge(offset: int) -> Floats:
            return judge_frame(offset, shares, self.known, self.rig, self.options)

        return np.array(list(self.pool.map(judge, range(len(shares[0].masks)))), np.float32)


def _empty_report(names: tuple[str, ...], models: Sequence[Model], count: int) -> SilhouetteReport:
    """Return a report whose figures of ``count`` frames are filled as they are cut out."""
    shape = (count, len(names))
    labels = tuple("masks" if model is None else model.name for model in models)
    return SilhouetteReport(
        names, labels, np.full(shape, np.nan, np.float32), np.zeros(shape, np.uint16), np.zeros(shape)
    )


def _write(writer: MaskWriter, first: int, shares: Sequence[Share], report: SilhouetteReport, cutter: _Cutter) -> None:
    """Write the frames from ``first`` on, and fill their flags and areas in the report; their masks are empty then."""
    packed = cutter.pool.map(lambda share: np.packbits(share.masks, axis=-1), shares)
    mattes = list(cutter.pool.map(_mattes, shares)) if cutter.options.matte else [None] * len(shares)
    for index, (share, bits) in enumerate(zip(shares, packed, strict=True)):
        here = slice(first, first + len(bits))
        told = (report.agreement[here, index], share.flags)
        report.area[here, index] = writer.write(report.names[index], first, bits, *told, mattes[index])
        report.flags[here, index] = share.flags
        _empty(share.masks, bits)


@compiled
def _empty(masks: Bools, bits: Bytes) -> None:
    """Empty masks (n, H, W) that are packed in ``bits``: to look where something is costs less than to empty all."""
    for n in range(bits.shape[0]):
        for y in range(bits.shape[1]):
            row, some = bits[n, y], np.uint8(0)
            for x in range(len(row)):
                some |= row[x]
            if some != 0:
                masks[n, y] = False


def _stream(
    source: Source, model: Model, start: int, last: int, belt: BeltScene | None, rows: Ints
) -> Iterator[Bytes | None]:
    """Yield the images (or brought masks) of the recording's frames, None where a camera has none.

    ``rows``: numbers of those that are wanted, counted from ``start``; others may be None, too.
    """
    first = start + source.offset
    brought = source.footage.masks if model is None else None
    if brought is not None and _is_stored(source.footage):
        with open_results(brought, stage="silhouettes") as file:
            for frame in range(start, last):
                yield masks_in(file, source.footage.name, frame)[0].view(np.uint8)
        return
    for _ in range(min(0, first), 0):
        yield None
    if brought is not None:
        for mask in user_masks(brought, last + source.offset, source.size, max(0, first)):
            yield mask.view(np.uint8)
        return
    grey = model is not None and model.grey
    if belt is not None:
        yield from stilled_frames(source.footage.source, belt, max(0, first), last + source.offset, gray=grey)
        return
    numbers = range(max(0, first), last + source.offset)
    only = None if len(rows) == last - start else set((first + rows).tolist())
    images = read_frames(source.footage.source, numbers.start, numbers.stop, only=only, gray=grey, ahead=False)
    following, image = next(images, (-1, None))
    for number in numbers:
        if number == following:
            yield image
            following, image = next(images, (-1, None))
        else:
            yield None


def _rows_of(stream: Iterator[Bytes | None], rows: Ints) -> Iterator[Bytes | None]:
    """Yield some images of a stream, given by their numbers in it, in order."""
    wanted = set(rows.tolist())
    return (image for row, image in enumerate(stream) if row in wanted)


def _parameters(
    options: ModelOptions, known: Prepared, names: Sequence[str], start: int, subjects: int
) -> dict[str, Any]:
    """Return what the file should say about how it was made, tuned values included."""
    cameras: dict[str, dict[str, Any]] = {}
    for name, model in zip(names, known.models, strict=True):
        if not isinstance(model, CameraModel):
            cameras[name] = {"model": "masks" if model is None else model.name}
            if isinstance(model, SittingModel) and options.margin_px is None:
                cameras[name]["own_margin_px"] = own_margin(model, model.looks.shape)
            continue
        cameras[name] = {"model": model.name, **asdict(model.cleaning)}
        if isinstance(model.model, PlateModel):
            plate = model.model
            cameras[name] |= {"shadow_floor": plate.shadow_floor, "hue_limit": plate.hue_limit}
            cameras[name]["noise_times"] = plate.noise_times
    parameters = {
        "model": options.model,
        "repair": options.repair,
        "margin_px": options.margin_px,
        "start": start,
        "cameras": cameras,
    }
    if known.floor is not None:
        parameters["floor_mm"], parameters["floor_up"] = known.floor.height, known.floor.up
    if subjects > 1:
        parameters["subjects"] = subjects
    if options.matte:
        parameters["matte"] = True
    return parameters


def _outlines(share: Share, camera: Camera) -> list[Floats]:
    """Return the corners of the outlines of a chunk."""
    windows = [None if doubt is None else doubt.window for doubt in share.doubts]
    return [outline(mask, camera, window) for mask, window in zip(share.masks, windows, strict=True)]


def _mattes(share: Share) -> list[Bytes]:
    """Return the coverage along the edges of a chunk's silhouettes, empty where a camera has no image."""
    return [
        np.zeros(0, np.uint8) if image is None else edge_matte(image, mask)
        for image, mask in zip(share.images, share.masks, strict=True)
    ]


def _check_matte(recording: Recording, options: ModelOptions, models: Sequence[Model], names: Sequence[str]) -> None:
    """Refuse mattes where the silhouette's edge is not that of the image."""
    if subjects_of(recording, options) > 1:
        raise InputError("silhouettes: mattes of several subjects are not made; take --matte or --subjects")
    if options.margin_px:
        raise InputError("silhouettes: a matte has no margin; take --matte or --margin")
    for name, model in zip(names, models, strict=True):
        if not isinstance(model, CameraModel):
            why = "its masks are brought" if model is None else "its subject sits, without a plate"
            raise InputError(f"camera '{name}': no matte, {why}; leave --matte out, or take another --model")


def _segment_chunk(stream: Iterator[Bytes | None], model: Model, masks: Bools, *, keep: bool, doubt: bool) -> Share:
    """Return a camera's next silhouettes, put in ``masks`` (n, H, W); ``keep`` images, and what is in ``doubt``."""
    count = len(masks)
    flags = np.zeros(count, dtype=np.uint16)
    cuts: list[Cut | None] = [None] * count
    images: list[Bytes | None] = [None] * count
    doubts: list[Doubt | None] = [None] * count
    for offset in range(count):
        image = next(stream, None)
        if image is None:
            masks[offset], flags[offset] = False, MaskFlag.NO_FRAME
            continue
        images[offset] = image if keep else None
        if isinstance(model, SittingModel):
            cut = Cut.of(model.looks, image)
            masks[offset], cuts[offset] = cut.silhouette(model.looks), cut
        elif doubt and model is not None:
            doubts[offset] = model.silhouette_and_doubt(image, masks[offset])
        else:
            masks[offset] = image.view(np.bool_) if model is None else model.silhouette(image)
        known = doubts[offset]
        flags[offset] = mask_flags(masks[offset], None if known is None else known.window)
    return Share(masks, flags, cuts, images, doubts)
