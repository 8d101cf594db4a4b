"""Hulls on disk: ``hull.h5``, streamed frame by frame.

``vertices`` (sum V, 3) float32 and ``faces`` (sum F, 3) int32 hold all frames' meshes one after the other;
``vertex_start`` (T + 1) and ``face_start`` (T + 1) say where each begins. Faces number the vertices of their own
frame. Beside them ``volume`` (T) mm^3, ``views_used`` (T, C), ``agreement`` (T, C) IoU, ``flags`` (T).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from calibration.foundation.errors import InputError
from calibration.foundation.result_files import create_results, open_results, text_array
from capture.hull.result import Hull

__all__ = ["HullWriter", "create_hulls", "read_hull", "read_hulls"]

STAGE = "hull"
_ROWS = 1 << 17


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
        for key in ("vertex_start", "face_start"):
            file.create_dataset(key, (frames + 1,), np.int64)
        file.create_dataset("volume", (frames,), np.float64)
        file.create_dataset("views_used", (frames, len(names)), np.bool_)
        file.create_dataset("agreement", (frames, len(names)), np.float32)
        file.create_dataset("flags", (frames,), np.uint16)

    def write(self, first: int, hulls: Sequence[Hull]) -> None:
        """Append the hulls of frames ``first``, ``first`` + 1, ...; frames come in order."""
        file = self._file
        for key, start, parts in (
            ("vertices", "vertex_start", [hull.vertices.astype(np.float32) for hull in hulls]),
            ("faces", "face_start", [hull.faces for hull in hulls]),
        ):
            data = file[key]
            before = len(data)
            ends = before + np.cumsum([len(part) for part in parts])
            data.resize(int(ends[-1]), axis=0)
            data[before:] = np.concatenate(parts)
            file[start][first + 1 : first + 1 + len(parts)] = ends
        rows = slice(first, first + len(hulls))
        file["volume"][rows] = [hull.volume for hull in hulls]
        file["views_used"][rows] = np.array([hull.views_used for hull in hulls])
        file["agreement"][rows] = np.array([hull.agreement for hull in hulls])
        file["flags"][rows] = [hull.flags for hull in hulls]

    def copy(self, first: int, path: Path | str) -> int:
        """Append all hulls of another file as frames ``first`` on, unread; return how many."""
        file = self._file
        with open_results(path, stage=STAGE) as part:
            frames = len(part["volume"])
            for key, start in (("vertices", "vertex_start"), ("faces", "face_start")):
                data, more = file[key], part[key]
                before = len(data)
                data.resize(before + len(more), axis=0)
                for row in range(0, len(more), _ROWS):
                    block = more[row : row + _ROWS]
                    data[before + row : before + row + len(block)] = block
                file[start][first + 1 : first + 1 + frames] = before + part[start][1:]
            for key in ("volume", "views_used", "agreement", "flags"):
                file[key][first : first + frames] = part[key][:]
        return frames


@contextmanager
def create_hulls(
    path: Path | str, names: Sequence[str], frames: int, parameters: Mapping[str, Any]
) -> Iterator[HullWriter]:
    """Yield a writer of ``hull.h5``."""
    with create_results(path, stage=STAGE, parameters=parameters) as file:
        yield HullWriter(file, names, frames)


def read_hull(path: Path | str, frame: int) -> Hull:
    """Return the hull of one frame."""
    return next(read_hulls(path, [frame]))


def read_hulls(path: Path | str, frames: Sequence[int] | None = None) -> Iterator[Hull]:
    """Yield the hulls of the given frames (all by default) of a ``hull.h5``."""
    with open_results(path, stage=STAGE) as file:
        count = len(file["volume"])
        for frame in range(count) if frames is None else frames:
            if not 0 <= frame < count:
                raise InputError(f"{path}: frame {frame} is outside 0..{count - 1}")
            v0, v1 = (int(n) for n in file["vertex_start"][frame : frame + 2])
            f0, f1 = (int(n) for n in file["face_start"][frame : frame + 2])
            yield Hull(
                file["vertices"][v0:v1].astype(np.float64),
                file["faces"][f0:f1],
                float(file["volume"][frame]),
                file["views_used"][frame],
                file["agreement"][frame].astype(np.float64),
                int(file["flags"][frame]),
            )
