"""HDF5 files, our own and strangers': opened in one place that looks at all of one before anything is believed.

HDF5 can point out of itself (external links, external storage, virtual datasets), and a stranger's file could so make
this program read any other; it can declare sizes that no disk holds; and its heaps of strings can be damaged so that
the library walks them for ever. All are refused here.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import h5py
import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Floats
from calibration.foundation.damaged_files import reading, require_file
from calibration.foundation.errors import InputError

__all__ = ["RowWriter", "check_string_heaps", "copy_chunks", "create_hdf5", "mapped_or_read", "open_hdf5", "words_of"]

_MOST_OBJECTS = 200_000
_FREE_BYTES = 1 << 26
"""A dataset of this size may hold nothing but its fill value."""
_LARGE = 1 << 24
"""A dataset of more bytes is not searched for heaps of strings."""
_MARK = b"GCOL\x01"
_HEADER = 16
_BLOCK = 1 << 22
_SMALLEST = 4096
"""Bytes of a heap of strings: the library refuses smaller ones by itself."""
_MOST_PACKED = 1100
"""Deflate packs at most 1032 to 1: what declares more than that is not in the file."""


class _Disk(io.FileIO):
    """A file that never tells HDF5 of a failed write: HDF5 crashes the process when a full disk meets its closing.

    The first failure is kept in ``failure``; what follows is dropped, and `create_hdf5` raises it at the end.
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
def create_hdf5(temporary: Path, target: Path | str, *, track_order: bool = False) -> Iterator[h5py.File]:
    """Yield an HDF5 file to write; a full disk is an `InputError` that names ``target``."""
    with _Disk(temporary, "w+") as disk:
        with h5py.File(disk, "w", track_order=track_order) as file:
            yield file
        if disk.failure is not None:
            reason = disk.failure.strerror or "the disk refused"
            raise InputError(f"{target}: could not be written ({reason}); make room and run again") from disk.failure


@contextmanager
def open_hdf5(path: Path | str, what: str, *, remedy: str = "", look: bool = True) -> Iterator[h5py.File]:
    """Yield an HDF5 file for reading, after a look at all of its objects.

    Args:
        path: the file.
        what: what it should be, for the message.
        remedy: the way out of a damaged one.
        look: look at all objects first; not again for a file that was looked at and has not changed.
    """
    source = require_file(path)
    with reading(source, what, remedy=remedy):
        file = h5py.File(source, "r")
    with file:
        with reading(source, what, remedy=remedy):
            if look:
                _look_through(file, source)
        with reading(source, what, remedy=remedy, only_in="h5py"):
            yield file


def _look_through(file: h5py.File, source: Path) -> None:
    size = source.stat().st_size
    seen: set[object] = set()
    numbers: list[tuple[int, int]] = []
    waiting: list[h5py.Group] = [file]
    while waiting:
        group = waiting.pop()
        for name in group:
            link = group.get(name, getlink=True)
            if isinstance(link, h5py.ExternalLink):
                raise InputError(f"{source}: '{name}' is a link into another file, which is not followed")
            if isinstance(link, h5py.SoftLink):
                continue  # leads to something in this file that is looked at under its own name
            node = group[name]
            address = h5py.h5o.get_info(node.id).addr
            if address in seen:
                continue
            seen.add(address)
            if len(seen) > _MOST_OBJECTS:
                raise InputError(f"{source}: holds more than {_MOST_OBJECTS} objects")
            if isinstance(node, h5py.Group):
                waiting.append(node)
            elif isinstance(node, h5py.Dataset):
                _check_dataset(node, name, source, size)
                offset, stored = node.id.get_offset(), node.id.get_storage_size()
                if offset is not None and stored > _LARGE:
                    numbers.append((offset, offset + stored))
    check_string_heaps(source, file.id.get_create_plist().get_sizes()[1], numbers)


def _check_dataset(node: h5py.Dataset, name: str, source: Path, size: int) -> None:
    if node.is_virtual or node.external:
        raise InputError(f"{source}: '{name}' takes its numbers from another file, which is not followed")
    stored = node.id.get_storage_size()
    if stored > size:
        raise InputError(f"{source}: '{name}' says it takes {stored} bytes of a file of {size}")
    if node.nbytes > _FREE_BYTES + _MOST_PACKED * stored:
        raise InputError(f"{source}: '{name}' declares {node.nbytes / 1e6:.0f} MB, the file has {size / 1e6:.1f} MB")
    offset = node.id.get_offset()
    if offset is not None and offset + stored > size:
        raise InputError(f"{source}: '{name}' ends behind the end of the file")


def check_string_heaps(path: Path, length_bytes: int, skipped: list[tuple[int, int]]) -> None:
    """Refuse a file with a heap of strings that cannot be walked to its end: the library would walk in place for ever.

    Strings of any length lie in "global heap collections": a header of 16 bytes (``GCOL``, version 1, size) and objects
    one after the other, each a header of 16 bytes (number, references, size) and its bytes, filled up to eight. Object
    0 is the free rest, and its size counts its own header; with a size of nothing the library's walk never ends.

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


def words_of(dataset: Any) -> tuple[str, ...]:
    """Return the strings of a dataset, whichever way its writer stored them."""
    return tuple(word.decode("utf-8") if isinstance(word, bytes) else str(word) for word in np.asarray(dataset[()]))


def mapped_or_read(dataset: h5py.Dataset) -> Floats:
    """Return a dataset of numbers; one that lies in its file in one run is mapped, so that only what is used is read.

    Results are replaced, never changed in place: what is mapped stays as it was.
    """
    offset = dataset.id.get_offset()
    if offset is None or dataset.dtype != np.float64 or dataset.size == 0:
        return np.asarray(dataset[:], dtype=np.float64)
    return np.memmap(dataset.file.filename, np.float64, "r", offset, dataset.shape)


def copy_chunks(source: h5py.Dataset, first: int, target: h5py.Dataset, start: int, count: int) -> None:
    """Copy rows from one dataset to another that is stored alike, as they are: compressed ones are not unpacked.

    ``first`` and ``start`` begin chunks. The rows that follow in the last chunk are copied with it.
    """
    rows = source.chunks[0]
    alike = source.chunks == target.chunks and source.dtype == target.dtype and source.shape[1:] == target.shape[1:]
    packed = all(getattr(source, how) == getattr(target, how) for how in ("compression", "compression_opts", "shuffle"))
    whole = source.chunks[1:] == source.shape[1:] and first % rows == 0 and start % rows == 0
    if not (alike and packed and whole):
        raise ValueError(f"{source.name}: its chunks do not fit those of {target.name}")
    behind = (0,) * (source.ndim - 1)
    for row in range(0, count, rows):
        skipped, content = source.id.read_direct_chunk((first + row, *behind))
        target.id.write_direct_chunk((start + row, *behind), content, skipped)


class RowWriter:
    """Appends rows to an empty dataset that is shuffled and deflated, chunk by chunk; `finish` writes the last one.

    HDF5 looks for repeats in every byte. In shuffled numbers there are runs, and noise without repeats: to look for
    runs alone takes half the time and a tenth more room. Any program reads either.
    """

    def __init__(self, data: h5py.Dataset) -> None:
        whole = data.chunks is not None and data.chunks[1:] == data.shape[1:]
        if not (whole and data.compression == "gzip" and data.shuffle and len(data) == 0):
            raise ValueError(f"{data.name}: wanted an empty dataset of whole rows, shuffled and deflated")
        self._data = data
        self._held = np.zeros(data.chunks, data.dtype)
        self.rows = 0

    def append(self, rows: NDArray[Any]) -> None:
        """Add rows (n, ...)."""
        size, at = len(self._held), 0
        while at < len(rows):
            first = self.rows % size
            count = min(size - first, len(rows) - at)
            self._held[first : first + count] = rows[at : at + count]
            self.rows += count
            at += count
            if first + count == size:
                self._write(self.rows - size)

    def finish(self) -> None:
        """Write what is left of the rows; to be called once."""
        size = len(self._held)
        left = self.rows % size
        if left:
            self._held[left:] = 0
            self._write(self.rows - left)

    def _write(self, first: int) -> None:
        self._data.resize(self.rows, axis=0)
        held = self._held.reshape(-1)
        shuffled = held.view(np.uint8).reshape(len(held), -1).T.tobytes()
        packer = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, zlib.Z_RLE)
        content = packer.compress(shuffled) + packer.flush()
        self._data.id.write_direct_chunk((first,) + (0,) * (self._held.ndim - 1), content)
