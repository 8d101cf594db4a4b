"""Heaps of strings inside HDF5 files: walked here first, for on a damaged one the HDF5 library walks in place for ever.

Strings of any length lie in "global heap collections": a header of 16 bytes (``GCOL``, version 1, size) and objects one after
the other, each a header of 16 bytes (number, references, size) and its bytes, filled up to eight. Object 0 is the free rest and
its size counts its own header; with a size of nothing the library's walk never comes to an end.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from calibration.foundation.errors import InputError

__all__ = ["check_string_heaps"]

_MARK = b"GCOL\x01"
_HEADER = 16
_BLOCK = 1 << 22
_SMALLEST = 4096
"""Bytes: the library refuses smaller heaps by itself."""


def check_string_heaps(path: Path, length_bytes: int, skipped: list[tuple[int, int]]) -> None:
    """Refuse a file with a heap of strings that cannot be walked to its end.

    Args:
        path: an HDF5 file.
        length_bytes: how many bytes a size has in it, which the file says.
        skipped: (first, end) stretches that hold numbers alone and are not looked at, in any order.
    """
    size = path.stat().st_size
    with open(path, "rb") as content:
        for first, end in _between(sorted(skipped), size):
            for place in _marks(content, first, end):
                if not _can_be_walked(content, place, size, length_bytes):
                    raise InputError(f"{path}: damaged: its strings at byte {place} cannot be read")


def _between(skipped: list[tuple[int, int]], size: int) -> Iterator[tuple[int, int]]:
    """Yield the stretches of a file that are not skipped."""
    first = 0
    for start, end in skipped:
        if start > first:
            yield first, start
        first = max(first, end)
    if first < size:
        yield first, size


def _marks(content: BinaryIO, first: int, end: int) -> Iterator[int]:
    """Yield where heaps begin in a stretch, also one whose mark reaches over the edge of a block."""
    while first < end:
        content.seek(first)
        block = content.read(min(_BLOCK + len(_MARK) - 1, end - first))
        found = block.find(_MARK)
        while found >= 0:
            yield first + found
            found = block.find(_MARK, found + 1)
        first += _BLOCK


def _can_be_walked(content: BinaryIO, place: int, size: int, length_bytes: int) -> bool:
    content.seek(place + 8)
    declared = int.from_bytes(content.read(length_bytes), "little")
    if not _SMALLEST <= declared <= size - place:
        return True  # no heap at all, or one that the library refuses when it is asked for
    content.seek(place)
    heap = content.read(declared)
    at = _HEADER
    while at + _HEADER <= declared:
        number = int.from_bytes(heap[at : at + 2], "little")
        length = int.from_bytes(heap[at + 8 : at + 8 + length_bytes], "little")
        step = length if number == 0 else _HEADER + -(-length // 8) * 8
        if step == 0 or step > declared - at:
            return False
        at += step
    return True
