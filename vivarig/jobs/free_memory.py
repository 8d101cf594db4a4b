"""Free memory given back to the machine: the C library would keep what a task once needed."""

from __future__ import annotations

import ctypes
import sys

__all__ = ["give_back"]


def give_back() -> None:
    """Give back what nothing holds any more, where the C library can."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it, others keep nothing
        if trim is not None:
            trim(0)
