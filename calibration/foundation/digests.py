"""Digests of files and folders: what a result was made from, told by content."""

from __future__ import annotations

import hashlib
from pathlib import Path

from calibration.foundation.damaged_files import require_file

__all__ = ["digest_of_path"]

_BLOCK = 1 << 20


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
