"""One command at a time on the results of a recording; what killed ones left half-written is cleared away."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from calibration.foundation.errors import InputError
from calibration.foundation.files import half_written

__all__ = ["ResultsBusyError", "results_lock"]


class ResultsBusyError(InputError):
    """Another command is working on a recording just now."""


@contextlib.contextmanager
def results_lock(results: Path) -> Iterator[None]:
    """Hold the results folder for the block: every command that writes results does, so none breaks another's work.

    The lock is the operating system's on the folder itself: it goes with the process, however that ends.
    """
    results.mkdir(parents=True, exist_ok=True)
    if os.name != "posix":  # pragma: no cover
        yield
        return
    import fcntl

    handle = os.open(results, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ResultsBusyError(
                f"{results}: another command is working on this recording; wait for it, or stop it"
            ) from None
        for path in half_written(results):
            path.unlink(missing_ok=True)
        yield
    finally:
        os.close(handle)
