"""Digests of files and folders: what a result was made from, told by content."""

from __future__ import annotations

import hashlib
from pathlib import Path

from calibration.foundation.damaged_files import require_file

__all__ = ["digest_of_path", "digest_of_result"]

_BLOCK = 1 << 20
_MOST_READ = 1 << 30
_SPREAD = 4096


def digest_of_path(path: Path) -> str:
    """Return a digest of a file's content, or of the names and contents of a folder's files."""
    state = hashlib.blake2b(digest_size=16)
    if path.is_dir():
        for file in sorted(p for p in path.rglob("*") if p.is_file()):
            state.update(f"{file.relative_to(path).as_posix()}\0".encode())
            state.update(bytes.fromhex(digest_of_path(file)))
        return state.hexdigest()
    with open(require_file(path), "rb") as content:  # a pipe or a device would never end
        while block := content.read(_BLOCK):
            state.update(block)
    return state.hexdigest()


def digest_of_result(path: Path) -> str:
    """Return a digest of a result file's content; of more than a gigabyte, of its size and of blocks all over it.

    (Results of an hour are tens of gigabytes, and everything waits while one process reads them.)
    """
    size = require_file(path).stat().st_size
    if size <= _MOST_READ:
        return digest_of_path(path)
    state = hashlib.blake2b(str(size).encode(), digest_size=16)
    with open(path, "rb") as content:
        for place in range(_SPREAD):
            content.seek((size - _BLOCK // 16) * place // (_SPREAD - 1))
            state.update(content.read(_BLOCK // 16))
    return state.hexdigest()
