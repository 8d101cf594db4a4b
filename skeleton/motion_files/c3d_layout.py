"""A look at the layout of a C3D file before the C++ library believes it: that one crashes on some damaged files.

Its header names the first parameter block. Parameters: records of a name, the way to the next record, type, dimensions
and values.
"""

from __future__ import annotations

import math
import struct
from pathlib import Path

from calibration.foundation.damaged_files import require_file
from calibration.foundation.errors import InputError

__all__ = ["check_layout"]

_BLOCK = 512
_MIPS = 86
_WIDTHS = {-1: 1, 1: 1, 2: 2, 4: 4}
#: Parameters that the library takes for numbers, for text, and never without a value, whatever their record says.
_NUMBERS = ("USED", "SCALE", "RATE", "DATA_START", "FRAMES", "GEN_SCALE", "OFFSET", "ACTUAL_START_FIELD",
            "ACTUAL_END_FIELD", "TYPE", "CORNERS", "ORIGIN", "CHANNEL", "ZERO", "RATIO", "CAL_MATRIX",
            "LONG_FRAMES")  # fmt: skip
_TEXTS = ("LABELS", "UNITS", "DESCRIPTIONS", "FORMAT", "X_SCREEN", "Y_SCREEN")
_NEEDED = ("USED", "RATE", "DATA_START", "FRAMES", "GEN_SCALE", "RATIO")
_MOST_RECORDS = 20_000
_LARGEST_MB = 4000


def check_layout(path: Path) -> None:
    """Refuse a C3D file whose records or data do not lie in it."""
    content = require_file(path, most_mb=_LARGEST_MB).read_bytes()
    if len(content) < 2 * _BLOCK or content[1] != 0x50:
        raise InputError(f"{path}: not a C3D file (its second byte must be 80)")
    start = (content[0] - 1) * _BLOCK
    if not _BLOCK <= start <= len(content) - _BLOCK:
        raise InputError(f"{path}: damaged C3D file: no parameters at block {content[0]}")
    order = ">" if content[start + 3] == _MIPS else "<"
    _check_parameters(content, start + 4, order, path)


def _check_parameters(content: bytes, at: int, order: str, path: Path) -> None:
    """Walk through the records."""
    for _ in range(_MOST_RECORDS):
        if at + 2 > len(content):
            raise InputError(f"{path}: damaged C3D file: its parameters run out of the file")
        length, group = struct.unpack_from("bb", content, at)
        if length == 0 or group == 0:
            return
        link = at + 2 + abs(length)
        if link + 4 > len(content):
            raise InputError(f"{path}: damaged C3D file: its parameters run out of the file")
        step = struct.unpack_from(f"{order}H", content, link)[0]
        after = link + step
        stop = after if step else len(content)
        if step and after + 2 > len(content):
            raise InputError(f"{path}: damaged C3D file: a parameter leads out of the file")
        if group > 0:
            name = content[at + 2 : link].decode("latin-1").upper()
            _check_values(name, content, link + 2, stop, path)
        elif step and step < 3 + content[link + 2]:
            raise InputError(f"{path}: damaged C3D file: a group's description runs into the next record")
        if not step:
            return
        at = after
    raise InputError(f"{path}: damaged C3D file: its parameters do not end")


def _check_values(name: str, content: bytes, at: int, stop: int, path: Path) -> None:
    kind = struct.unpack_from("b", content, at)[0]
    dimensions = content[at + 2 : at + 2 + content[at + 1]]
    if kind not in _WIDTHS or len(dimensions) > 7 or len(dimensions) != content[at + 1]:
        raise InputError(f"{path}: damaged C3D file: a parameter of unknown type")
    if (name in _NUMBERS and kind == -1) or (name.startswith(_TEXTS) and kind != -1):
        raise InputError(f"{path}: damaged C3D file: {name} is of another type than it should be")
    if name in _NEEDED and not math.prod(dimensions):
        raise InputError(f"{path}: damaged C3D file: {name} has no value")
    end = at + 2 + len(dimensions) + _WIDTHS[kind] * math.prod(dimensions)
    if end >= min(stop, len(content)) or end + 1 + content[end] > stop:
        raise InputError(f"{path}: damaged C3D file: a parameter's values run into the next record")
