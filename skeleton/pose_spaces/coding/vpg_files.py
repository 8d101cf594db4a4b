"""The .vpg file: a motion coded in its own pose space, a few bytes per frame, readable on its own.

Little endian. ``VPG`` and the version (1 byte); the length of the head (uint32) and the head, zlib of JSON: joint
names, parents, vertical, rate, frames, modes, width and lengths of the blocks; then float32 ``offsets`` (J, 3) mm,
``mean`` (J, 3) rad, ``levels``, ``scales``, ``direction_steps``, ``step``, packed by zlib; then range-coded tables
``directions`` and ``coefficients`` (`skeleton.pose_spaces.coding.range_coder`); at the end a CRC-32 of all before it.
"""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from calibration.foundation.damaged_files import reading, require_file
from calibration.foundation.errors import InputError
from calibration.foundation.files import write_bytes
from skeleton.pose_spaces.coding.motion_coding import CodedMotion
from skeleton.pose_spaces.coding.range_coder import decode_table, encode_table

__all__ = ["pack_motion", "read_vpg", "unpack_motion", "write_vpg"]

_MAGIC = b"VPG"
VERSION = 1
_LARGEST_MB = 1000
_LARGEST_UNPACKED = 1 << 26


def pack_motion(coded: CodedMotion) -> bytes:
    """Return the bytes of a .vpg file; same motion, same bytes."""
    numbers = np.concatenate(
        [coded.offsets.ravel(), coded.mean.ravel(), coded.levels, coded.scales, coded.direction_steps, [coded.step]]
    ).astype("<f4")
    # Bytes of equal weight side by side: zeros and equal exponents then pack well.
    plain = zlib.compress(numbers.view(np.uint8).reshape(-1, 4).T.tobytes(), 9)
    directions, coefficients = encode_table(coded.directions), encode_table(coded.coefficients)
    head = {
        "names": coded.names, "parents": coded.parents.tolist(), "up": coded.up, "rate_hz": coded.rate_hz,
        "frames": coded.frames, "modes": coded.modes, "rows": len(coded.coefficients),
        "width": coded.coefficients.shape[1], "blocks": [len(plain), len(directions), len(coefficients)],
    }  # fmt: skip
    text = zlib.compress(json.dumps(head, separators=(",", ":")).encode(), 9)
    body = _MAGIC + bytes([VERSION]) + struct.pack("<I", len(text)) + text + plain + directions + coefficients
    return body + struct.pack("<I", zlib.crc32(body))


def _unpacked(data: bytes) -> bytes:
    """Undo zlib; what would become larger than any motion's numbers is refused."""
    machine = zlib.decompressobj()
    content = machine.decompress(data, _LARGEST_UNPACKED)
    if machine.unconsumed_tail:
        raise ValueError("a block would unpack without end")
    return content


def unpack_motion(data: bytes, who: str) -> CodedMotion:
    """Return the coded motion of the bytes of a .vpg file; ``who`` names it in errors."""
    if data[:3] != _MAGIC or len(data) < 16:
        raise InputError(f"{who}: not a .vpg file")
    if data[3] != VERSION:
        raise InputError(f"{who}: .vpg version {data[3]}, this program reads version {VERSION}; update it")
    if zlib.crc32(data[:-4]) != struct.unpack("<I", data[-4:])[0]:
        raise InputError(f"{who}: the .vpg file is damaged or cut short (its check sum does not match)")
    length = struct.unpack("<I", data[4:8])[0]
    head: dict[str, Any] = json.loads(_unpacked(data[8 : 8 + length]))
    plain, directions, coefficients = head["blocks"]
    at = 8 + length
    joints, modes = len(head["names"]), int(head["modes"])
    raw = np.frombuffer(_unpacked(data[at : at + plain]), np.uint8)
    numbers = np.ascontiguousarray(raw.reshape(4, -1).T).view("<f4").ravel().astype(np.float64)
    at += plain
    parts = np.split(numbers, np.cumsum([3 * joints, 3 * joints, 7 + modes, 2, modes]))
    return CodedMotion(
        tuple(head["names"]), np.array(head["parents"], dtype=np.int64), parts[0].reshape(-1, 3), head["up"],
        float(head["rate_hz"]), int(head["frames"]), float(parts[5][0]), parts[1].reshape(-1, 3), parts[2], parts[3],
        parts[4], decode_table(data[at : at + directions], modes, 3 * joints - 3),
        decode_table(data[at + directions : at + directions + coefficients], int(head["rows"]), int(head["width"])),
    )  # fmt: skip


def write_vpg(coded: CodedMotion, path: Path) -> int:
    """Write a .vpg file; return its size in bytes."""
    data = pack_motion(coded)
    write_bytes(path, data)
    return len(data)


def read_vpg(path: Path) -> CodedMotion:
    """Read a .vpg file."""
    if not Path(path).is_file():
        raise InputError(f"{path}: cannot be read (no such file)")
    data = require_file(path, most_mb=_LARGEST_MB).read_bytes()
    with reading(path, "a .vpg file"):
        return unpack_motion(data, str(path))
