"""Silhouettes on disk: one bit per pixel, lossless, any frame in any order; and masks that users bring.

``silhouettes.h5`` holds ``names`` and, per camera, a group ``cameras/<name>`` with ``masks`` (T, H, ceil(W / 8))
packed bits, ``agreement`` (T) IoU with the other views before any repair, ``flags`` (T) `MaskFlag` codes and ``area``
(T) px. With mattes also ``matte`` (sum m), the coverage 0..255 of the pixels along the masks' edges (`edge_band`, row
by row), one frame after the other, and ``matte_start`` (T + 1) where each begins. With a rig also ``outline`` (sum n,
2) px, the corners of the convex hull of each silhouette as the camera saw it, before any repair, and ``outline_start``
(T + 1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntFlag
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import cv2
import h5py
import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Bools, Bytes, Floats, Singles
from calibration.foundation.errors import InputError, nearest
from calibration.foundation.hdf5_files import copy_chunks, words_of
from calibration.foundation.result_files import create_results, open_results, read_parameters, text_array
from calibration.foundation.spans import Span
from capture.recordings.coco import coco_masks
from capture.recordings.video import read_frames

__all__ = [
    "LikeliestMasks",
    "MaskFlag",
    "MaskWriter",
    "create_masks",
    "edge_band",
    "first_frame",
    "has_mattes",
    "mask_cameras",
    "mattes_in",
    "outlines_in",
    "read_agreement",
    "read_flags",
    "read_masks",
    "user_masks",
]

STAGE = "silhouettes"
_COLUMNS = ("agreement", "flags", "area")
_POINTED = (("matte", "matte_start"), ("outline", "outline_start"))
_HELD = 4096
"""Frames whose numbers are held while masks are copied: writing a few at a time costs more than the masks."""


class MaskFlag(IntFlag):
    """What is worth knowing about one silhouette; 0: nothing."""

    NO_FRAME = 1
    EMPTY = 2
    FULL = 4
    TOUCHES_BORDER = 8
    CONTRADICTED = 16
    REPAIRED = 32
    SUBJECTS_TOUCH = 64
    IDENTITY_UNSURE = 128


def edge_band(mask: Bools) -> Bools:
    """Return (H, W) the pixels on both sides of a silhouette's edge: those with a neighbour (of eight) across it."""
    kernel = np.ones((3, 3), np.uint8)
    inside = mask.view(np.uint8)
    return np.asarray(cv2.dilate(inside, kernel) != cv2.erode(inside, kernel))


class MaskWriter:
    """Streams silhouettes into an open result file; made by `create_masks`."""

    def __init__(
        self, file: h5py.File, names: Sequence[str], sizes: Sequence[tuple[int, int]], frames: int, matte: bool
    ) -> None:
        file["names"] = text_array(list(names))
        self._groups: dict[str, h5py.Group] = {}
        self._data: dict[str, dict[str, h5py.Dataset]] = {}
        self._held: dict[str, list[tuple[int, dict[str, NDArray[Any]]]]] = {}
        self._written: dict[str, list[tuple[int, dict[str, NDArray[Any]]]]] = {}
        self._corners: dict[str, list[tuple[int, Sequence[Floats]]]] = {}
        for name, (width, height) in zip(names, sizes, strict=True):
            group = file.create_group(f"cameras/{name}")
            group.attrs["width"] = width
            group.attrs["height"] = height
            packed = -(-width // 8)
            group.create_dataset(
                "masks",
                (frames, height, packed),
                np.uint8,
                chunks=(1, height, packed),
                compression="gzip",
                compression_opts=1,
            )
            group.create_dataset("agreement", (frames,), np.float32, fillvalue=np.nan)
            # Without a value of its own the library leaves what nobody writes as it lies in memory.
            group.create_dataset("flags", (frames,), np.uint16, fillvalue=0)
            group.create_dataset("area", (frames,), np.uint32, fillvalue=0)
            if matte:
                group.create_dataset(
                    "matte",
                    (0,),
                    np.uint8,
                    maxshape=(None,),
                    chunks=(16384,),
                    compression="gzip",
                    compression_opts=1,
                )
                group.create_dataset("matte_start", (frames + 1,), np.int64, fillvalue=0)
            self._groups[name] = group

    def write(
        self,
        camera: str,
        start: int,
        packed: Bytes,
        agreement: Singles,
        flags: NDArray[np.uint16],
        mattes: Sequence[Bytes] | None = None,
    ) -> NDArray[np.int64]:
        """Write packed masks (n, H, ceil(W / 8)) with their agreement and flags (n,) from frame ``start`` on.

        ``mattes``: per frame the coverage along the edge; those of a camera come in the order of the frames. The areas
        (n,), px, are returned.
        """
        group = self._groups[camera]
        stop = start + len(packed)
        group["masks"][start:stop] = packed
        # A few numbers at a time cost as much to write as the masks: they are kept until the end.
        numbers: dict[str, NDArray[Any]] = {
            "agreement": agreement.copy(),
            "flags": flags.copy(),
            "area": _areas(packed),
        }
        self._written.setdefault(camera, []).append((start, numbers))
        if mattes is not None:
            values = group["matte"]
            ends = len(values) + np.cumsum([len(one) for one in mattes])
            values.resize(int(ends[-1]), axis=0)
            values[int(ends[0]) - len(mattes[0]) :] = np.concatenate(mattes)
            group["matte_start"][start + 1 : stop + 1] = ends
        return np.asarray(numbers["area"], np.int64)

    def copy(self, camera: str, start: int, group: h5py.Group, rows: Span) -> NDArray[np.uint32]:
        """Write rows of another file's group as they are from frame ``start`` on: masks stay packed and compressed.

        What is copied comes in the order of the frames; their numbers are written some thousand frames at a time. The
        areas (n,), px, are returned.
        """
        theirs: dict[str, h5py.Dataset] = dict(group.items())
        if "outline" in theirs and "outline" not in self._groups[camera]:
            self._make_outlines(self._groups[camera])
        if camera not in self._data:  # looking them up for each part would take longer than copying it
            self._data[camera] = dict(self._groups[camera].items())
        copy_chunks(theirs["masks"], rows.first, self._data[camera]["masks"], start, len(rows))
        numbers = {key: theirs[key][rows.first : rows.stop] for key in _COLUMNS}
        for values, pointer in _POINTED:
            if values in theirs:
                starts = theirs[pointer][rows.first : rows.stop + 1]
                numbers[values] = theirs[values][int(starts[0]) : int(starts[-1])]
                numbers[pointer] = np.diff(starts)
        held = self._held.setdefault(camera, [])
        held.append((start, numbers))
        if sum(len(one["flags"]) for _, one in held) >= _HELD:
            self._flush(camera)
        return np.asarray(numbers["area"], np.uint32)

    def flush(self) -> None:
        """Write what is still held."""
        for camera in list(self._held):
            self._flush(camera)
        for camera, rows in self._written.items():
            for start, numbers in _together(rows):
                for key in _COLUMNS:
                    self._groups[camera][key][start : start + len(numbers[key])] = numbers[key]
        self._written.clear()
        for camera in list(self._corners):
            self._flush_corners(camera)

    def _flush(self, camera: str) -> None:
        """Write the numbers of copied rows."""
        held, ours = self._held.pop(camera), self._data[camera]
        start = held[0][0]
        for key in _COLUMNS:
            column = np.concatenate([one[key] for _, one in held])
            ours[key][start : start + len(column)] = column
        for values, pointer in _POINTED:
            if values in held[0][1]:
                before = len(ours[values])
                more = np.concatenate([one[values] for _, one in held])
                ends = before + np.cumsum(np.concatenate([one[pointer] for _, one in held]))
                ours[values].resize(before + len(more), axis=0)
                ours[values][before:] = more
                ours[pointer][start + 1 : start + 1 + len(ends)] = ends

    @staticmethod
    def _make_outlines(group: h5py.Group) -> None:
        kept = {"chunks": (4096, 2), "compression": "gzip", "compression_opts": 1}
        group.create_dataset("outline", (0, 2), np.uint16, maxshape=(None, 2), **kept)
        group.create_dataset("outline_start", (len(group["flags"]) + 1,), np.int64, fillvalue=0)

    def write_outlines(self, camera: str, start: int, corners: Sequence[Floats]) -> None:
        """Write the corners (n, 2), px, of the outlines of successive frames as the camera sees them, before repair."""
        self._corners.setdefault(camera, []).append((start, corners))

    def _flush_corners(self, camera: str) -> None:
        """Write the outlines of a camera that are held, in the order in which they came."""
        group, held = self._groups[camera], self._corners.pop(camera)
        if "outline" not in group:
            self._make_outlines(group)
        values, starts = group["outline"], group["outline_start"]
        before = len(values)
        more = np.concatenate([np.zeros((0, 2)), *(one for _, corners in held for one in corners)])
        values.resize(before + len(more), axis=0)
        values[before:] = more
        for start, corners in held:
            ends = before + np.cumsum([len(one) for one in corners], dtype=np.int64)
            starts[start + 1 : start + 1 + len(corners)] = ends
            before = int(ends[-1]) if len(ends) else before


def _together(rows: Sequence[tuple[int, dict[str, NDArray[Any]]]]) -> Iterator[tuple[int, dict[str, NDArray[Any]]]]:
    """Yield the first of rows that follow each other, and their numbers put together."""
    begin = 0
    for n in range(1, len(rows) + 1):
        last, numbers = rows[n - 1]
        if n == len(rows) or rows[n][0] != last + len(numbers["flags"]):
            parts = [one for _, one in rows[begin:n]]
            yield rows[begin][0], {key: np.concatenate([one[key] for one in parts]) for key in parts[0]}
            begin = n


def _areas(packed: Bytes) -> NDArray[np.int64]:
    """Return (n,) the pixels of packed masks (n, H, ceil(W / 8)), counted 64 at a time."""
    flat = packed.reshape(len(packed), -1)
    whole = flat.shape[1] // 8 * 8
    words, rest = flat[:, :whole].view(np.uint64), flat[:, whole:]
    return np.asarray(sum(np.bitwise_count(one).sum(axis=1, dtype=np.int64) for one in (words, rest)))


@contextmanager
def create_masks(
    path: Path | str,
    names: Sequence[str],
    sizes: Sequence[tuple[int, int]],
    frames: int,
    parameters: Mapping[str, Any],
    *,
    matte: bool = False,
) -> Iterator[MaskWriter]:
    """Yield a writer of ``silhouettes.h5`` for cameras of the given sizes (width, height), with mattes if wanted."""
    with create_results(path, stage=STAGE, parameters=parameters, units="px") as file:
        writer = MaskWriter(file, names, sizes, frames, matte)
        yield writer
        writer.flush()


def mask_cameras(path: Path | str) -> tuple[list[str], int]:
    """Return the cameras' names in order and the number of frames of a ``silhouettes.h5``."""
    with open_results(path, stage=STAGE) as file:
        names = list(words_of(file["names"]))
        return names, len(file[f"cameras/{names[0]}/flags"]) if names else 0


def first_frame(path: Path | str) -> int:
    """Return the recording frame that the first row of a file is: not 0 where only some frames were cut out."""
    with open_results(path, stage=STAGE) as file:
        return int(read_parameters(file).get("start", 0))


def _group(file: h5py.File, camera: str) -> h5py.Group:
    if camera not in file["cameras"]:
        names = list(words_of(file["names"]))
        raise InputError(f"{file.filename}: no camera '{camera}'; {nearest(camera, names)}")
    return file["cameras"][camera]


def read_masks(path: Path | str, camera: str, frames: slice | Sequence[int] | int | None = None) -> Bools:
    """Return (n, H, W) the silhouettes of a camera at the given frames (all by default), in the order asked."""
    with open_results(path, stage=STAGE) as file:
        return masks_in(file, camera, frames)


def masks_in(file: h5py.File, camera: str, frames: slice | Sequence[int] | int | None = None) -> Bools:
    """Return the silhouettes of a camera from a file that is already open; see `read_masks`."""
    group = _group(file, camera)
    data = group["masks"]
    if frames is None:
        frames = slice(None)
    if isinstance(frames, slice):
        packed = data[frames]
    else:
        wanted = [int(frames)] if isinstance(frames, int | np.integer) else [int(f) for f in frames]
        beyond = [f for f in wanted if not 0 <= f < len(data)]
        if beyond:
            raise InputError(f"{file.filename}: frame {beyond[0]} is outside 0..{len(data) - 1}")
        packed = np.stack([data[f] for f in wanted]) if wanted else np.zeros((0, *data.shape[1:]), np.uint8)
    bits = np.unpackbits(packed, axis=-1, count=int(group.attrs["width"]))
    return bits.view(np.bool_)


class LikeliestMasks:
    """Silhouettes of an open file without the margin that the program added of its own accord: their likeliest edges.

    What a file says of a camera is looked up once; that costs more than a mask.
    """

    def __init__(self, file: h5py.File) -> None:
        self._file = file
        self._told = read_parameters(file).get("cameras", {})
        self._cameras: dict[str, tuple[h5py.Dataset, int, Bytes | None]] = {}

    def __call__(self, camera: str, frame: int) -> Bools:
        """Return (H, W) the silhouette of a camera in one frame."""
        if camera not in self._cameras:
            self._cameras[camera] = self._looked_up(camera)
        masks, width, kernel = self._cameras[camera]
        mask = np.unpackbits(masks[frame], axis=-1, count=width)
        return (mask if kernel is None else np.asarray(cv2.erode(mask, kernel))).view(np.bool_)

    def _looked_up(self, camera: str) -> tuple[h5py.Dataset, int, Bytes | None]:
        group = _group(self._file, camera)
        margin = int(self._told.get(camera, {}).get("own_margin_px", 0))
        side = 2 * margin + 1
        kernel = np.asarray(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (side, side))) if margin else None
        return group["masks"], int(group.attrs["width"]), kernel


def has_mattes(file: h5py.File) -> bool:
    """Return whether an open ``silhouettes.h5`` holds mattes beside the masks."""
    names = file["names"][()]
    return len(names) > 0 and "matte" in file["cameras"][names[0].decode("utf-8")]


def edge_values(group: h5py.Group, first: int, stop: int) -> list[Bytes]:
    """Return the coverage along the edges (m,) of frames ``first`` to ``stop`` - 1, of a camera's group."""
    starts = group["matte_start"][first : stop + 1]
    values = group["matte"][int(starts[0]) : int(starts[-1])]
    return [values[a - starts[0] : b - starts[0]] for a, b in pairwise(starts)]


def mattes_in(file: h5py.File, camera: str, first: int, stop: int) -> Bytes:
    """Return (n, H, W) the mattes of a camera, 0..255, of frames ``first`` to ``stop`` - 1 of an open file."""
    masks = masks_in(file, camera, slice(first, stop))
    out = masks.astype(np.uint8) * np.uint8(255)
    for matte, mask, values in zip(out, masks, edge_values(_group(file, camera), first, stop), strict=True):
        matte[edge_band(mask)] = values
    return out


def outlines_in(file: h5py.File, camera: str, first: int = 0, stop: int | None = None) -> list[Floats] | None:
    """Return the corners (n, 2), px, of a camera's outlines before repair, frame by frame; None if not stored."""
    group = _group(file, camera)
    if "outline" not in group:
        return None
    starts = group["outline_start"][first : None if stop is None else stop + 1]
    values = group["outline"][int(starts[0]) : int(starts[-1])].astype(np.float64)
    return [values[a - starts[0] : b - starts[0]] for a, b in pairwise(starts)]


def read_agreement(path: Path | str) -> Singles:
    """Return (T, C) each silhouette's IoU with the hull of all views, before repair; NaN where there is none."""
    return _columns(path, "agreement").astype(np.float32)


def read_flags(path: Path | str) -> NDArray[np.uint16]:
    """Return (T, C) `MaskFlag` codes."""
    return _columns(path, "flags").astype(np.uint16)


def _columns(path: Path | str, key: str) -> NDArray[Any]:
    with open_results(path, stage=STAGE) as file:
        names = list(words_of(file["names"]))
        return np.stack([file["cameras"][name][key][()] for name in names], axis=1)


def user_masks(source: Path | str, frames: int, size: tuple[int, int], first: int = 0) -> Iterator[Bools]:
    """Yield masks ``first`` up to ``frames`` (H, W) of those that a user brings: PNG folder, video, or COCO JSON.

    In images everything above mid-grey is inside. In COCO files the annotations of an image are united; images
    come in the order of their ids; an image without annotation has an empty mask.
    """
    place = Path(source)
    width, height = size
    count = first
    coco = place.suffix.lower() == ".json"
    masks = islice(coco_masks(place), first, None) if coco else _image_masks(place, first)
    for mask in masks:
        if mask.shape != (height, width):
            raise InputError(
                f"{place}: mask {count} is {mask.shape[1]} x {mask.shape[0]} px, the camera {width} x {height}"
            )
        yield mask
        count += 1
        if count == frames:
            return
    raise InputError(f"{place}: {count} masks, the recording has {frames} frames")


def _image_masks(place: Path, first: int) -> Iterator[Bools]:
    for _, image in read_frames(place, first, ahead=False):
        grey = image if image.ndim == 2 else image.max(axis=2)
        # Masks come as 0/255 or as 0/1 labels; a video's compression blurs only the first kind.
        yield grey > (0 if grey.max() <= 1 else 127)
