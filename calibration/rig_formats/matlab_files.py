"""Reading MATLAB files (level 5, MATLAB versions 5 to 7) with every length checked.

scipy's reader trusts what it finds and crashes the whole process on some damaged files; this one reads what rig files
need (numbers, text, cells, structs) and answers anything else with one line.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibration.foundation.errors import InputError

__all__ = ["read_matlab"]

#: Element types that hold numbers, as numpy types.
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_TEXT = {16: "utf-8", 17: "utf-16", 18: "utf-32", 4: "utf-16", 2: "latin-1", 1: "latin-1"}
_MATRIX, _COMPRESSED = 14, 15
_CELL, _STRUCT, _CHAR = 1, 2, 4
_NUMERIC_CLASSES = range(6, 16)
_DEEPEST = 16
_LARGEST = 1 << 28


@dataclass
class _Reader:
    """A window of bytes with a position; every step is checked against its end."""

    data: bytes
    order: str
    at: int = 0

    def element(self) -> tuple[int, bytes]:
        """Return the type and bytes of the next element, past its padding."""
        word = self._word(self.at)
        if word >> 16:  # small element: type and length share one word, the data the next
            kind, size = word & 0xFFFF, word >> 16
            start, after = self.at + 4, self.at + 8
            if size > 4:
                raise InputError("a small element holds more than 4 bytes")
        else:
            kind, size = word, self._word(self.at + 4)
            start = self.at + 8
            after = start + size + (0 if kind == _COMPRESSED else -size % 8)
        if start + size > len(self.data):
            raise InputError(f"an element of {size} bytes is cut off")
        self.at = after
        return kind, self.data[start : start + size]

    def _word(self, at: int) -> int:
        if at + 4 > len(self.data):
            raise InputError("the file ends inside an element")
        return int(struct.unpack_from(f"{self.order}I", self.data, at)[0])

    @property
    def more(self) -> bool:
        """Whether at least one element may follow."""
        return self.at + 8 <= len(self.data)


def read_matlab(path: Path | str) -> dict[str, Any]:
    """Read the variables of a MATLAB file.

    Numbers come as arrays, text as str, a cell as an object array, a 1x1 struct as a dictionary and a larger one as an
    object array of dictionaries; anything else (objects, functions, sparse) as None.
    """
    source = Path(path)
    if not source.is_file():
        raise InputError(f"{source}: no such file")
    data = source.read_bytes()
    try:
        return _variables(data)
    except InputError as error:
        raise InputError(f"{source}: not a readable MATLAB file: {error}") from None
    except (struct.error, zlib.error, UnicodeDecodeError, MemoryError, RecursionError) as error:
        raise InputError(f"{source}: not a readable MATLAB file: damaged ({type(error).__name__})") from None


def _variables(data: bytes) -> dict[str, Any]:
    if data[:8] == b"\x89HDF\r\n\x1a\n" or data[:10] == b"MATLAB 7.3":
        raise InputError("it is of version 7.3; save it with -v7")
    if len(data) < 136 or data[126:128] not in (b"IM", b"MI"):
        raise InputError("it does not begin as one")
    order = "<" if data[126:128] == b"IM" else ">"
    reader, found = _Reader(data, order, 128), {}
    while reader.more:
        kind, content = reader.element()
        if kind == _COMPRESSED:
            kind, content = _Reader(_inflated(content), order).element()
        if kind == _MATRIX:
            name, value = _matrix(content, order, 0)
            found[name] = value
    return found


def _inflated(content: bytes) -> bytes:
    machine = zlib.decompressobj()
    out = machine.decompress(content, _LARGEST)
    if machine.unconsumed_tail:
        raise InputError(f"a variable is larger than {_LARGEST >> 20} MB")
    return out


def _numbers(kind: int, content: bytes, order: str) -> np.ndarray[Any, Any]:
    if kind not in _NUMBERS:
        raise InputError(f"element type {kind} where numbers were due")
    dtype = np.dtype(order + _NUMBERS[kind])
    if len(content) % dtype.itemsize:
        raise InputError("a row of numbers is cut off")
    return np.frombuffer(content, dtype).astype(dtype.newbyteorder("="))


def _matrix(content: bytes, order: str, depth: int) -> tuple[str, Any]:
    if depth > _DEEPEST:
        raise InputError("nested too deeply")
    if not content:
        return "", np.zeros((0, 0))
    reader = _Reader(content, order)
    flags = _numbers(*reader.element(), order)
    dims = _numbers(*reader.element(), order).astype(np.int64)
    if not flags.size or dims.size < 2 or (dims < 0).any():
        raise InputError("an array without flags or shape")
    shape = tuple(int(n) for n in dims)
    count = int(np.prod([float(n) for n in shape]))
    name = reader.element()[1].decode("latin-1")
    array_class = int(flags[0]) & 0xFF
    if array_class in _NUMERIC_CLASSES:
        return name, _fill(_numbers(*reader.element(), order), shape, count)
    if array_class == _CHAR:
        return name, _text(*reader.element(), shape)
    if array_class == _CELL:
        return name, _objects([_nested(reader, order, depth) for _ in range(_sane(count, content))], shape)
    if array_class == _STRUCT:
        return name, _struct(reader, order, shape, _sane(count, content), depth)
    return name, None


def _sane(count: int, content: bytes) -> int:
    """Return a number of nested arrays, each of which takes at least 8 bytes."""
    if count > len(content) // 8 + 1:
        raise InputError(f"{count} nested arrays cannot be in {len(content)} bytes")
    return count


def _fill(values: np.ndarray[Any, Any], shape: tuple[int, ...], count: int) -> np.ndarray[Any, Any]:
    if values.size != count:
        raise InputError(f"an array says {'x'.join(map(str, shape))} but holds {values.size} numbers")
    return values.reshape(shape, order="F")


def _text(kind: int, content: bytes, shape: tuple[int, ...]) -> str:
    if kind not in _TEXT:
        raise InputError(f"element type {kind} where text was due")
    return content.decode(_TEXT[kind]).strip("\ufeff") if len(shape) == 2 else ""


def _nested(reader: _Reader, order: str, depth: int) -> Any:
    kind, content = reader.element()
    if kind != _MATRIX:
        raise InputError(f"element type {kind} where an array was due")
    return _matrix(content, order, depth + 1)[1]


def _objects(values: list[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    out = np.empty(len(values), dtype=object)
    for index, value in enumerate(values):
        out[index] = value
    return out.reshape(shape, order="F")


def _struct(reader: _Reader, order: str, shape: tuple[int, ...], count: int, depth: int) -> Any:
    width = _numbers(*reader.element(), order)
    names = reader.element()[1]
    if width.size != 1 or width[0] < 1 or len(names) % int(width[0]):
        raise InputError("a struct with unreadable field names")
    step = int(width[0])
    fields = [names[i : i + step].split(b"\0")[0].decode("latin-1") for i in range(0, len(names), step)]
    records = [{field: _nested(reader, order, depth) for field in fields} for _ in range(count)]
    return records[0] if count == 1 else _objects(records, shape)
