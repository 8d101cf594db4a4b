"""Result files: HDF5, written atomically, each carrying version, stage, parameters and units."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from calibration.foundation.errors import InputError
from calibration.foundation.files import atomic_path

__all__ = ["FORMAT_VERSION", "create_results", "open_results", "read_parameters"]

FORMAT_VERSION = 1


class _Disk(io.FileIO):
    """A file that never tells HDF5 of a failed write: HDF5 crashes the process when a full disk meets its closing.

    The first failure is kept in ``failure``; what follows is dropped, and `create_results` raises it at the end.
    """

    failure: OSError | None = None

    def write(self, data: Any, /) -> int:
        """Write all of ``data``, or remember why not."""
        view = memoryview(data).cast("B")
        done = 0
        while self.failure is None and done < len(view):
            try:
                done += super().write(view[done:]) or 0
            except OSError as error:
                self.failure = OSError(error.errno, error.strerror, str(self.name))
        return len(view)

    def truncate(self, size: int | None = None, /) -> int:
        """Set the length, or remember why not."""
        try:
            return super().truncate(size)
        except OSError as error:
            self.failure = self.failure or OSError(error.errno, error.strerror, str(self.name))
            return size or 0


@contextmanager
def create_results(
    path: Path | str, *, stage: str, parameters: Mapping[str, Any], units: str = "mm"
) -> Iterator[h5py.File]:
    """Yield an HDF5 file that takes the place of ``path`` when the block ends well. Same content, same bytes."""
    with atomic_path(path) as temporary, _Disk(temporary, "w+") as disk:
        with h5py.File(disk, "w", track_order=True) as file:
            file.attrs["vivarig_version"] = FORMAT_VERSION
            file.attrs["stage"] = stage
            file.attrs["parameters"] = json.dumps(dict(parameters), sort_keys=True)
            file.attrs["units"] = units
            yield file
        if disk.failure is not None:
            reason = disk.failure.strerror or "the disk refused"
            raise InputError(f"{path}: could not be written ({reason}); make room and run again") from disk.failure


@contextmanager
def open_results(path: Path | str, *, stage: str) -> Iterator[h5py.File]:
    """Yield a result file for reading, after checking that it is one of ``stage``."""
    source = Path(path)
    if not source.is_file():
        raise InputError(f"{source}: no such file; run `vivarig {stage}` first")
    try:
        file = h5py.File(source, "r")
    except OSError:
        raise InputError(f"{source}: damaged or not an HDF5 file; delete it and run `vivarig {stage}` again") from None
    with file:
        found = file.attrs.get("stage")
        if found != stage:
            raise InputError(f"{source}: wanted a result of '{stage}', this one is of '{found}'")
        if int(file.attrs.get("vivarig_version", 0)) > FORMAT_VERSION:
            raise InputError(f"{source}: written by a newer Vivarig; update this one")
        yield file


def read_parameters(file: h5py.File) -> dict[str, Any]:
    """Return the parameters a result file was made with."""
    content = json.loads(file.attrs["parameters"])
    return dict(content) if isinstance(content, dict) else {}


def text_array(values: list[str]) -> np.ndarray[Any, Any]:
    """Return strings as a fixed-length byte array that HDF5 stores compactly."""
    return np.array([value.encode("utf-8") for value in values], dtype="S")
