"""Heaps of strings in HDF5 files: sound ones are read, those that would keep the library busy for ever are refused."""

from __future__ import annotations

import struct
from pathlib import Path

import h5py
import numpy as np
import pytest

from calibration.foundation import hdf5_files
from calibration.foundation.errors import InputError
from calibration.foundation.hdf5_files import open_hdf5, words_of

WORDS = [f"marker {k} {'x' * k}" for k in range(300)]


def _file(path: Path) -> Path:
    """Write strings into several heaps, and numbers."""
    with h5py.File(path, "w") as file:
        file["names"] = WORDS
        for k in range(3):  # between them numbers: a heap at the end of a file only grows
            file[f"numbers {k}"] = np.arange(5000.0)
            file.flush()
            file[f"words {k}"] = WORDS
        file.attrs["told"] = "of any length"
    return path


def _heaps(path: Path) -> list[int]:
    content = path.read_bytes()
    found, at = [], content.find(b"GCOL")
    while at >= 0:
        found.append(at)
        at = content.find(b"GCOL", at + 1)
    return found


def _set(path: Path, place: int, kind: str, value: int) -> None:
    with open(path, "r+b") as content:
        content.seek(place)
        content.write(struct.pack(kind, value))


def _read(path: Path) -> tuple[str, ...]:
    with open_hdf5(path, "a file of words") as file:
        return words_of(file["names"])


def test_sound_heaps_are_read(tmp_path: Path) -> None:
    path = _file(tmp_path / "a.h5")
    assert len(_heaps(path)) >= 3
    assert _read(path) == tuple(WORDS)


@pytest.mark.parametrize("size", [0, 2**64 - 16, 2**64 - 24, 2**63, 5000])
@pytest.mark.parametrize("number", [0, 7])
@pytest.mark.parametrize("which", [0, -1])
def test_an_object_without_an_end_is_refused(tmp_path: Path, which: int, number: int, size: int) -> None:
    path = _file(tmp_path / "a.h5")
    first = _heaps(path)[which] + 16
    _set(path, first, "<H", number)
    _set(path, first + 8, "<Q", size)
    if (number, size) == (7, 0):  # an empty string: the walk goes on, into what is no header
        with pytest.raises(InputError):
            _read(path)
        return
    with pytest.raises(InputError, match=r"a\.h5: damaged: its strings at byte \d+ cannot be read"):
        _read(path)


def test_a_heap_is_found_over_the_edge_of_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _file(tmp_path / "a.h5")
    place = _heaps(path)[-1]
    _set(path, place + 24, "<Q", 2**64 - 16)
    for before in range(5):
        monkeypatch.setattr(hdf5_files, "_BLOCK", place + before)
        with pytest.raises(InputError, match=f"at byte {place} "):
            hdf5_files.check_string_heaps(path, 8, [])


def test_what_only_looks_like_a_heap_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["bytes"] = np.frombuffer(b"GCOL\x01\0\0\0" + b"\xff" * 64 + b"GCOL\x01\0\0\0" + b"\0" * 64, np.uint8)
    with open_hdf5(path, "a file of bytes") as file:
        assert len(file["bytes"]) == 144


def test_large_stretches_of_numbers_are_not_searched(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    content = bytearray(9000)
    content[100:108], content[108:116] = b"GCOL\x01\0\0\0", struct.pack("<Q", 4096)
    path.write_bytes(content)
    with pytest.raises(InputError, match="at byte 100 "):
        hdf5_files.check_string_heaps(path, 8, [(4000, 5000)])
    hdf5_files.check_string_heaps(path, 8, [(4000, 9000), (50, 200)])
