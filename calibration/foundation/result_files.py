"""Result files: HDF5, written atomically, each carrying version, stage, parameters and units.

Behind the HDF5 content stands a digest of it (HDF5 programs do not look there), so that damage is seen on opening. What
was written without one, or taken up by another program, is judged by its structure alone.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from calibration.foundation.damaged_files import reading, require_file
from calibration.foundation.errors import InputError
from calibration.foundation.files import atomic_path
from calibration.foundation.hdf5_files import create_hdf5, open_hdf5
from calibration.foundation.result_structure import check_structure

__all__ = ["create_results", "open_results", "read_parameters"]

FORMAT_VERSION = 1
_MARK = b"vivarig blake2b:"
_DIGEST_BYTES = 16
_TAIL = len(_MARK) + _DIGEST_BYTES
_BLOCK = 1 << 20
_WAY_OUT = {"simulate": "make the recording again, or copy it again from where you got it"}
_MOST_DIGESTED = 1 << 30
"""Bytes: larger files are judged by their structure alone, or every command would begin by reading them twice."""


@contextmanager
def create_results(
    path: Path | str, *, stage: str, parameters: Mapping[str, Any], units: str = "mm"
) -> Iterator[h5py.File]:
    """Yield an HDF5 file that takes the place of ``path`` when the block ends well. Same content, same bytes."""
    with atomic_path(path) as temporary:
        with create_hdf5(temporary, path, track_order=True) as file:
            file.attrs["vivarig_version"] = FORMAT_VERSION
            file.attrs["stage"] = stage
            file.attrs["parameters"] = json.dumps(dict(parameters), sort_keys=True)
            file.attrs["units"] = units
            yield file
        _seal(temporary)


@contextmanager
def open_results(path: Path | str, *, stage: str, look: bool = True) -> Iterator[h5py.File]:
    """Yield a result file for reading, after checking that it is one of ``stage`` and unharmed.

    Digest, links, declared sizes and structure are checked once per process; not at all without ``look``, for parts
    that this run made or found unharmed: of an hour's thousands, that would cost more than putting them together.
    """
    source = Path(path)
    again = _WAY_OUT.get(stage, f"delete it and run `vivarig {stage}` again")
    if not source.exists():
        raise InputError(f"{source}: no such file; run `vivarig {stage}` first")
    told = require_file(source).stat()
    version = (str(source.resolve()), told.st_size, told.st_mtime_ns, told.st_ino, stage)
    known = not look or version in _checked
    vouched = None if known else _vouched(source, told.st_size)
    if vouched is False:
        raise InputError(f"{source}: damaged since it was written; {again}")
    with open_hdf5(source, f"a result of '{stage}'", remedy=again, look=not known) as file:
        if not known:
            with reading(source, f"a result of '{stage}'", remedy=again):
                _check(file, source, stage, again, numbers=not vouched)
            _checked.add(version)
        yield file


_checked: set[tuple[str, int, int, int, str]] = set()


def _check(file: h5py.File, source: Path, stage: str, again: str, *, numbers: bool) -> None:
    found = file.attrs.get("stage")
    if found != stage:
        raise InputError(f"{source}: wanted a result of '{stage}', this one is of '{found}'")
    if int(file.attrs.get("vivarig_version", 0)) > FORMAT_VERSION:
        raise InputError(f"{source}: written by a newer Vivarig; update this one")
    try:
        check_structure(file, stage, numbers=numbers)
    except InputError as error:
        raise InputError(f"{source}: damaged: {error}; {again}") from None


def _vouched(path: Path, size: int) -> bool | None:
    """Return whether a file agrees with the digest behind it; None where there is none."""
    if size > _MOST_DIGESTED or size < _TAIL:
        return None
    state = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    with open(path, "rb") as content:
        content.seek(size - _TAIL)
        tail = content.read(_TAIL)
        if not tail.startswith(_MARK):
            return None
        content.seek(0)
        left = size - _TAIL
        while left and (block := content.read(min(_BLOCK, left))):
            state.update(block)
            left -= len(block)
    return tail[len(_MARK) :] == state.digest()


def _seal(path: Path) -> None:
    """Write a digest of a finished file behind it."""
    if os.path.getsize(path) > _MOST_DIGESTED - _TAIL:
        return
    state = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    with open(path, "r+b") as content:
        while block := content.read(_BLOCK):
            state.update(block)
        content.write(_MARK + state.digest())


def read_parameters(file: h5py.File) -> dict[str, Any]:
    """Return the parameters a result file was made with."""
    try:
        content = json.loads(file.attrs["parameters"])
    except (TypeError, ValueError, RecursionError, KeyError):
        raise InputError(f"{file.filename}: its parameters cannot be read; make it again") from None
    return dict(content) if isinstance(content, dict) else {}


def text_array(values: list[str]) -> np.ndarray[Any, Any]:
    """Return strings as a fixed-length byte array that HDF5 stores compactly."""
    return np.array([value.encode("utf-8") for value in values], dtype="S")
