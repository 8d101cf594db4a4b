"""Objects kept on disk between runs, read back only if this user wrote them.

They are pickles, and a pickle from a stranger's folder could run anything: so each is signed with a key that lies in
the user's own cache folder. One that is signed otherwise (another user's, damaged, for other inputs) is made again.

Large arrays lie beside the pickle in the same file and are mapped, not read: workers that share an object share the
memory of its arrays, and neither writing nor reading holds them twice. A file: signature, two numbers (bytes of the
pickle, arrays), the arrays' lengths, the pickle, the arrays, each from a multiple of `_ALIGNED` on.
"""

from __future__ import annotations

import hashlib
import hmac
import mmap
import os
import pickle
import secrets
import struct
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from calibration.foundation.files import atomic_path

__all__ = ["is_ours", "load_object", "load_object_anew", "save_object"]

_KEY_BYTES = _MAC_BYTES = 32
_HEAD = struct.Struct("<QQ")
_APART = 1 << 16
"""Arrays of so many bytes are kept beside the pickle."""
_ALIGNED = 64
_AT_ONCE = 1 << 20
"""Bytes of a file that are read at a time."""


def save_object(path: Path, value: object, rests_on: str) -> None:
    """Keep an object that was made from what ``rests_on`` is the digest of."""
    arrays: list[memoryview] = []

    def stays_inside(buffer: pickle.PickleBuffer) -> bool:
        content = buffer.raw()
        if content.nbytes < _APART:
            return True
        arrays.append(content)
        return False

    content = pickle.dumps(value, protocol=5, buffer_callback=stays_inside)
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        file.write(bytes(_MAC_BYTES))
        signed = _begun(path.name, rests_on)
        for piece in _pieces(content, arrays):
            signed.update(piece)
            file.write(piece)
        file.seek(0)
        file.write(signed.digest()[:_MAC_BYTES])


def _pieces(content: bytes, arrays: list[memoryview]) -> Iterator[bytes | memoryview]:
    """Yield what a file holds after its signature."""
    head = _HEAD.pack(len(content), len(arrays)) + struct.pack(f"<{len(arrays)}Q", *(one.nbytes for one in arrays))
    yield head
    yield content
    at = _MAC_BYTES + len(head) + len(content)
    for array in arrays:
        yield bytes(-at % _ALIGNED)
        yield array
        at += -at % _ALIGNED + array.nbytes


def is_ours(path: Path, rests_on: str) -> bool:
    """Return whether an object is there, unharmed, written by this user and made from the same inputs."""
    wanted = _begun(path.name, rests_on)
    try:
        with open(path, "rb") as file:
            found = file.read(_MAC_BYTES)
            while piece := file.read(_AT_ONCE):
                wanted.update(piece)
    except OSError:
        return False
    return hmac.compare_digest(found, wanted.digest()[:_MAC_BYTES])


def load_object(path: Path) -> Any:
    """Return an object whose origin was checked when the run began (`is_ours`), or that this run wrote."""
    return _unpickled(path, path.stat().st_mtime_ns)


def load_object_anew(path: Path) -> Any:
    """Return an object as `load_object` does, without remembering it: one that is large and seldom asked for."""
    with open(path, "rb") as file:
        # A copy where it is written to: a model that follows its scene changes its own arrays, not the file.
        mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    size, count = _HEAD.unpack_from(mapped, _MAC_BYTES)
    lengths = struct.unpack_from(f"<{count}Q", mapped, _MAC_BYTES + _HEAD.size)
    begin = _MAC_BYTES + _HEAD.size + 8 * count
    arrays, at = [], begin + size
    for length in lengths:
        at += -at % _ALIGNED
        arrays.append(mapped[at : at + length])
        at += length
    return pickle.loads(mapped[begin : begin + size], buffers=arrays)


@lru_cache(maxsize=1)  # a worker that goes on to the next stage no longer needs what the parts of the last one shared
def _unpickled(path: Path, stamp: int) -> Any:
    return load_object_anew(path)


def _begun(name: str, rests_on: str) -> hmac.HMAC:
    """Return a signature that goes on with the file's content."""
    return hmac.new(_key(), f"{name}\0{rests_on}\0".encode(), hashlib.blake2b)


@lru_cache(maxsize=1)
def _key() -> bytes:
    """Return this user's key, made on first use; where it cannot be kept, one for this process alone."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    path = Path(base) / "vivarig" / "key"
    try:
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(secrets.token_bytes(_KEY_BYTES))
        key = path.read_bytes()
        return key if len(key) == _KEY_BYTES else secrets.token_bytes(_KEY_BYTES)
    except FileExistsError:  # another process made it just now
        return path.read_bytes() or secrets.token_bytes(_KEY_BYTES)
    except (OSError, RuntimeError):
        return secrets.token_bytes(_KEY_BYTES)
