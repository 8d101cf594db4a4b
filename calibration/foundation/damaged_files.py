"""Damaged files: whatever a library says of one becomes one line, and only ordinary files are opened at all."""

from __future__ import annotations

import csv
import functools
import stat
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar, cast

from calibration.foundation.errors import InputError, VivarigError

__all__ = ["DAMAGE", "guarded", "reading", "require_file", "require_ordinary"]

F = TypeVar("F", bound=Callable[..., Any])

#: What parsers of libraries raise on bytes that nobody wrote on purpose. Not a bare ``Exception``: an interrupt, an
#: assertion of ours or an exhausted recursion in a solver stays what it is.
DAMAGE: tuple[type[Exception], ...] = (
    ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, NotImplementedError, OSError, RecursionError,
    RuntimeError, SyntaxError, SystemError, TypeError, ValueError, csv.Error, struct.error, tokenize.TokenError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip


@contextmanager
def reading(
    path: Path | str, what: str, *, remedy: str = "", only_in: str = "", also: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Read a file inside this block; what goes wrong in there is the file's fault and said in one line.

    Args:
        path: the file.
        what: what it should be, e.g. "a DICOM file".
        remedy: the way out.
        also: errors of the library's own that mean damage.
        only_in: package whose failures count as damage (by where the error passed through); empty: all.
    """
    try:
        yield
    except VivarigError:
        raise
    except (*DAMAGE, *also) as error:
        if only_in and not _passed_through(error.__traceback__, only_in):
            raise
        if isinstance(error, PermissionError | FileNotFoundError):
            raise
        reason = (
            "larger than the memory allows" if isinstance(error, MemoryError) else str(error) or type(error).__name__
        )
        raise InputError(
            f"{path}: damaged, or not {what} ({reason.splitlines()[0][:200]}){f'; {remedy}' if remedy else ''}"
        ) from error


def guarded(what: str) -> Callable[[F], F]:
    """Make a function whose first argument is a path read it inside `reading`."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def inside(path: Path | str, *arguments: Any, **named: Any) -> Any:
            with reading(path, what):
                return function(path, *arguments, **named)

        return cast(F, inside)

    return decorate


def _passed_through(trace: TracebackType | None, package: str) -> bool:
    while trace is not None:
        if package in Path(trace.tb_frame.f_code.co_filename).parts:
            return True
        trace = trace.tb_next
    return False


def require_ordinary(path: Path | str) -> None:
    """Refuse what is neither a file nor a folder: a pipe or a device may never end."""
    try:
        mode = Path(path).stat().st_mode
    except FileNotFoundError:
        raise InputError(f"{path}: no such file or folder") from None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        kind = "pipe" if stat.S_ISFIFO(mode) else "socket" if stat.S_ISSOCK(mode) else "device"
        raise InputError(f"{path}: wanted a file or a folder, this is a {kind}; copy its content into a file")


def require_file(path: Path | str, *, most_mb: float | None = None) -> Path:
    """Return the path of an ordinary file, of at most so many megabytes where a format has no larger ones."""
    source = Path(path)
    require_ordinary(source)
    if source.is_dir():
        raise InputError(f"{source}: wanted a file, this is a folder")
    size = source.stat().st_size / 1e6
    if most_mb is not None and size > most_mb:
        raise InputError(f"{source}: {size:.0f} MB; a file of this kind has at most {most_mb:g} MB")
    return source
