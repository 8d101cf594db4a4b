"""Hulls on disk: ``hull.h5``, streamed frame by frame.

``vertices`` (sum V, 3) float32 and ``faces`` (sum F, 3) int32 hold all frames' meshes one after the other;
``vertex_start`` (T + 1) and ``face_start`` (T + 1) say where each begins, ``vertex_count`` (T) and ``face_count`` (T)
how many rows it has: where parts were put together, compressed as they were, unused rows follow the last of each. Faces
number the vertices of their own frame. Beside them ``volume`` (T) mm^3, ``views_used`` (T, C), ``agreement`` (T, C)
IoU, ``flags`` (T).

An hour's hulls are tens of gigabytes: to copy them into one file would take one worker longer than many take to make
them. So the parts of a long recording stay files of their own in ``hull_parts``; ``hull.h5`` then holds, in place of
``vertices`` and ``faces``, ``parts`` (P) names and ``part_first`` (P + 1) the frame that each begins with.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from calibration.foundation.errors import InputError
from calibration.foundation.hdf5_files import RowWriter, copy_chunks, words_of
from calibration.foundation.result_files import create_results, open_results, text_array
from capture.hull.result import Hull

__all__ = ["MOST_IN_ONE", "HullWriter", "create_hulls", "drop_parts", "keep_parts", "read_hull", "read_hulls"]

STAGE = "hull"
FOLDER = "hull_parts"
MOST_IN_ONE = 20_000
"""Frames up to which hulls are put together in one file."""
COLUMNS = ("volume", "views_used", "agreement", "flags")
_NAME = re.compile(r"[\w-]+\.h5")


class HullWriter:
    """Streams hulls into an open result file; made by `create_hulls`."""

    def __init__(self, file: h5py.File, names: Sequence[str], frames: int) -> None:
        self._file = file
        file["names"] = text_array(list(names))
        for key, dtype, chunk in (("vertices", np.float32, 8192), ("faces", np.int32, 16384)):
            file.create_dataset(
                key,
                (0, 3),
                dtype,
                maxshape=(None, 3),
                chunks=(chunk, 3),
                compression="gzip",
                compression_opts=1,
                shuffle=True,
            )
        self._rows = {key: RowWriter(file[key]) for key in ("vertices", "faces")}
        for key in ("vertex", "face"):
            file.create_dataset(f"{key}_start", (frames + 1,), np.int64)
            file.create_dataset(f"{key}_count", (frames,), np.int64)
        file.create_dataset("volume", (frames,), np.float64)
        file.create_dataset("views_used", (frames, len(names)), np.bool_)
        file.create_dataset("agreement", (frames, len(names)), np.float32)
        file.create_dataset("flags", (frames,), np.uint16)

    def write(self, first: int, hulls: Sequence[Hull]) -> None:
        """Append the hulls of frames ``first``, ``first`` + 1, ...; frames come in order."""
        file = self._file
        for key, one, parts in (
            ("vertices", "vertex", [hull.vertices.astype(np.float32) for hull in hulls]),
            ("faces", "face", [hull.faces for hull in hulls]),
        ):
            counts = [len(part) for part in parts]
            ends = self._rows[key].rows + np.cumsum(counts)
            for part in parts:
                self._rows[key].append(part)
            file[f"{one}_start"][first + 1 : first + 1 + len(parts)] = ends
            file[f"{one}_count"][first : first + len(parts)] = counts
        rows = slice(first, first + len(hulls))
        file["volume"][rows] = [hull.volume for hull in hulls]
        file["views_used"][rows] = np.array([hull.views_used for hull in hulls])
        file["agreement"][rows] = np.array([hull.agreement for hull in hulls])
        file["flags"][rows] = [hull.flags for hull in hulls]

    def finish(self) -> None:
        """Write what is held back of what was appended."""
        for rows in self._rows.values():
            rows.finish()

    def copy(self, first: int, path: Path | str) -> int:
        """Append all hulls of another file as frames ``first`` on, unread; return how many.

        A file is either written or put together so, not both.
        """
        file = self._file
        with open_results(path, stage=STAGE, look=False) as part:
            frames = len(part["volume"])
            for key, one in (("vertices", "vertex"), ("faces", "face")):
                data, more = file[key], part[key]
                # Chunks are copied as they are, so each part begins a new one.
                begin = -(-len(data) // data.chunks[0]) * data.chunks[0]
                data.resize(begin + len(more), axis=0)
                copy_chunks(more, 0, data, begin, len(more))
                file[f"{one}_start"][first : first + 1 + frames] = begin + part[f"{one}_start"][()]
                file[f"{one}_count"][first : first + frames] = part[f"{one}_count"][()]
            for key in ("volume", "views_used", "agreement", "flags"):
                file[key][first : first + frames] = part[key][:]
        return frames


@contextmanager
def create_hulls(
    path: Path | str, names: Sequence[str], frames: int, parameters: Mapping[str, Any]
) -> Iterator[HullWriter]:
    """Yield a writer of ``hull.h5``."""
    with create_results(path, stage=STAGE, parameters=parameters) as file:
        writer = HullWriter(file, names, frames)
        yield writer
        writer.finish()


def read_hull(path: Path | str, frame: int) -> Hull:
    """Return the hull of one frame."""
    return next(read_hulls(path, [frame]))


def read_hulls(path: Path | str, frames: Sequence[int] | None = None) -> Iterator[Hull]:
    """Yield the hulls of the given frames (all by default) of a ``hull.h5``."""
    with open_results(path, stage=STAGE) as file:
        count = len(file["volume"])
        apart = "parts" in file
        for frame in range(count) if frames is None else frames:
            if not 0 <= frame < count:
                raise InputError(f"{path}: frame {frame} is outside 0..{count - 1}")
            if not apart:
                yield _hull(file, frame)
                continue
            part, row = _part_of(file, Path(path), frame)
            with open_results(part, stage=STAGE) as one:
                if not row < len(one["volume"]):
                    raise InputError(f"{part}: has no row {row}; delete {path} and run `vivarig hull` again")
                yield _hull(one, row)


def _hull(file: h5py.File, frame: int) -> Hull:
    return Hull(
        file["vertices"][_rows(file, "vertex", frame)].astype(np.float64),
        file["faces"][_rows(file, "face", frame)],
        float(file["volume"][frame]),
        file["views_used"][frame],
        file["agreement"][frame].astype(np.float64),
        int(file["flags"][frame]),
    )


def _rows(file: h5py.File, one: str, frame: int) -> slice:
    """Return the rows of a frame's vertices or faces; files of earlier versions have no gaps and no counts."""
    start, stop = (int(row) for row in file[f"{one}_start"][frame : frame + 2])
    return slice(start, start + int(file[f"{one}_count"][frame]) if f"{one}_count" in file else stop)


def keep_parts(target: Path, parts: Sequence[Path], parameters: Mapping[str, Any]) -> None:
    """Keep hull files beside ``target``, in order, and write it as the list of them.

    A file is linked, not copied, where the disk can do that. If this is stopped half-way there is no ``target``.
    """
    folder, coming = target.parent / FOLDER, target.parent / f".{FOLDER}"
    shutil.rmtree(coming, ignore_errors=True)
    coming.mkdir(parents=True)
    columns: dict[str, list[Any]] = {key: [] for key in COLUMNS}
    names: tuple[str, ...] = ()
    for path in parts:
        with open_results(path, stage=STAGE, look=False) as file:
            names = names or words_of(file["names"])
            for key in COLUMNS:
                columns[key].append(file[key][()])
        _link(path, coming / path.name)
    target.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(coming, folder)
    with create_results(target, stage=STAGE, parameters=parameters) as file:
        file["names"] = text_array(list(names))
        file["parts"] = text_array([path.name for path in parts])
        file["part_first"] = np.cumsum([0, *(len(one) for one in columns["volume"])], dtype=np.int64)
        for key, values in columns.items():
            file[key] = np.concatenate(values)


def drop_parts(target: Path) -> None:
    """Remove the parts that a ``target`` before this one had."""
    shutil.rmtree(target.parent / FOLDER, ignore_errors=True)


def _part_of(file: h5py.File, path: Path, frame: int) -> tuple[Path, int]:
    """Return the file that holds the hull of a frame, and its row there."""
    first = file["part_first"][()]
    index = int(np.searchsorted(first, frame, side="right")) - 1
    name = words_of(file["parts"][index : index + 1])[0]
    # Where edits lie over the results, the list as made lies in a folder of its own.
    places = [place / FOLDER / name for place in (path.parent, path.parent.parent)]
    found = next((place for place in places if place.is_file()), None)
    if not _NAME.fullmatch(name) or found is None:
        raise InputError(f"{path}: its part {FOLDER}/{name} is missing; delete it and run `vivarig hull` again")
    return found, frame - int(first[index])


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # a disk that knows no links
        shutil.copyfile(source, target)
