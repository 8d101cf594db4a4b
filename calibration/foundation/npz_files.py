"""NumPy archives (.npz) of any origin: plain arrays only, each no larger than its place in the archive."""

from __future__ import annotations

import math
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import HUGE
from calibration.foundation.damaged_files import reading, require_file
from calibration.foundation.errors import InputError

__all__ = ["read_npz"]

_LARGEST_MB = 1000


def read_npz(path: Path | str, what: str, *, remedy: str = "") -> dict[str, NDArray[Any]]:
    """Read all arrays of an archive; one that holds objects, infinite or absurd numbers is refused."""
    source = require_file(path, most_mb=_LARGEST_MB)
    found: dict[str, NDArray[Any]] = {}
    with reading(source, what, remedy=remedy), zipfile.ZipFile(source) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > 1e6 * _LARGEST_MB:
            raise InputError(f"{source}: would unpack to more than {_LARGEST_MB} MB")
        for entry in archive.infolist():
            with archive.open(entry) as stream:
                found[entry.filename.removesuffix(".npy")] = _array(stream, entry.file_size)
    for name, array in found.items():
        if array.dtype.kind == "f" and array.size and not np.abs(array[~np.isnan(array)]).max(initial=0.0) < HUGE:
            raise InputError(f"{source}: '{name}' holds infinite or absurd numbers{f'; {remedy}' if remedy else ''}")
    return found


def _array(stream: Any, size: int) -> NDArray[Any]:
    version = np.lib.format.read_magic(stream)
    read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in read_header:
        raise ValueError(f"array format {version} is not known")
    shape, fortran, dtype = read_header[version](stream)
    if dtype.hasobject:
        raise ValueError("holds Python objects")
    if min(shape, default=1) < 0 or math.prod(shape) * dtype.itemsize > size:
        raise ValueError(f"an array says {shape} but has {size} bytes")
    content = stream.read(math.prod(shape) * dtype.itemsize)
    if dtype.kind == "U" and np.frombuffer(content, dtype.byteorder + "u4").max(initial=0) > sys.maxunicode:
        raise ValueError("holds letters that do not exist")
    array: NDArray[Any] = np.frombuffer(content, dtype, math.prod(shape)).copy()
    return array.reshape(shape[::-1]).T if fortran else array.reshape(shape)
