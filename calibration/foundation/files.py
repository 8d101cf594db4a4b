"""Atomic writing: a file is either the old one or the whole new one, never half of it."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from calibration.foundation.damaged_files import DAMAGE, require_file
from calibration.foundation.errors import InputError, VivarigError

__all__ = [
    "atomic_path",
    "discard_unfinished",
    "half_written",
    "read_text",
    "write_bytes",
    "write_text",
    "written_by_library",
]

LARGEST_TEXT_MB = 500
_MACHINE = hashlib.blake2b(socket.gethostname().encode(), digest_size=3).hexdigest()
#: Names of files that are being written: stem, machine, process, eight characters.
_UNFINISHED = re.compile(r"\.(?P<stem>.+)-(?P<machine>[0-9a-f]{6})-(?P<process>\d+)-[a-z0-9_]{8}(?P<suffix>\.\w+)?")
_unfinished: set[Path] = set()
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def atomic_path(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path beside ``path`` that replaces it when the block ends without an error.

    The temporary name keeps the suffix, for writers that choose the format by it. A full disk is an `InputError`.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    _clear_away(target)
    prefix = f".{target.stem[:100]}-{_MACHINE}-{os.getpid()}-"
    try:
        handle, name = tempfile.mkstemp(prefix=prefix, suffix=target.suffix, dir=target.parent)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(target)) from None  # the name that the user knows
    os.close(handle)
    temporary = Path(name)
    _unfinished.add(temporary)
    try:
        yield temporary
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())
        os.chmod(temporary, 0o644)  # mkstemp makes it private; a result is for the whole lab
        os.replace(temporary, target)
    except OSError as error:
        if error.errno in _FULL:
            raise InputError(f"{target}: could not be written ({error.strerror}); make room and run again") from error
        raise
    finally:
        temporary.unlink(missing_ok=True)
        _unfinished.discard(temporary)


@contextmanager
def written_by_library(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path as `atomic_path` does, for libraries that answer a full disk in words of their own."""
    with atomic_path(path) as temporary:
        try:
            yield temporary
        except VivarigError:
            raise
        except DAMAGE as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            said = (str(error) or type(error).__name__).strip().splitlines()[0][:200]
            raise InputError(f"{path}: could not be written ({said}); is there room on the disk?") from error


def discard_unfinished() -> None:
    """Remove the files that this process is writing: it is about to end."""
    for temporary in tuple(_unfinished):
        temporary.unlink(missing_ok=True)


def half_written(folder: Path) -> Iterator[Path]:
    """Yield the files in and below a folder of ours that processes left half-written."""
    for path in folder.rglob(".*"):
        if _UNFINISHED.fullmatch(path.name) and path.is_file():
            yield path


def _clear_away(target: Path) -> None:
    """Remove what processes of this machine that are gone left of the same file."""
    try:
        with os.scandir(target.parent) as entries:
            names = [entry.name for entry in entries if entry.name.startswith(f".{target.stem[:100]}-")]
    except OSError:
        return
    for name in names:
        match = _UNFINISHED.fullmatch(name)
        if match is None or match["machine"] != _MACHINE or (match["suffix"] or "") != target.suffix:
            continue
        try:
            os.kill(int(match["process"]), 0)
        except ProcessLookupError:
            (target.parent / name).unlink(missing_ok=True)
        except OSError:
            continue  # another user's


def write_bytes(path: Path | str, content: bytes) -> None:
    """Write ``content`` to ``path`` atomically."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path | str, content: str) -> None:
    """Write ``content`` to ``path`` atomically, as UTF-8 with the line ends it has."""
    write_bytes(path, content.encode("utf-8"))


def read_text(path: Path | str) -> str:
    """Read a whole UTF-8 text file; an unreadable one is an `InputError` that names it."""
    source = Path(path)
    if not source.exists():
        raise InputError(f"{source}: no such file")
    try:
        return require_file(source, most_mb=LARGEST_TEXT_MB).read_bytes().decode("utf-8-sig")
    except PermissionError:
        raise InputError(f"{source}: not permitted to read this file") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{source}: not a text file (byte {error.start} is not UTF-8)") from None
