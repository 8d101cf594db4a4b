"""Free memory given back to the machine: the C library would keep what a task once needed."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

__all__ = ["give_back", "giving_back"]


def give_back() -> None:
    """Give back what nothing holds any more, where the C library can."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it, others keep nothing
        if trim is not None:
            trim(0)


def giving_back(on_progress: Callable[[int, int], None], every: int) -> Callable[[int, int], None]:
    """Return what tells of progress (done, total) and gives free memory back each time ``every`` more are done.

    Pieces of large images that one step leaves behind do not fit the next: a long loop would hold more and more.
    """
    last = 0

    def went_on(done: int, total: int) -> None:
        nonlocal last
        if done - last >= every:
            last = done
            give_back()
        on_progress(done, total)

    return went_on
