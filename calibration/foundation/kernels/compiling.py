"""How a kernel is compiled: lean by the numba that our hooks were written for, by any other as numba does it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numba
from numba.core.targetconfig import ConfigStack

__all__ = ["OURS", "is_inner", "quickly"]

_HOOKED = "0.68."
"""The versions of numba that `calibration.foundation.kernels.lean` reaches into; others compile for twice as long."""

OURS: set[Callable[..., Any]] = set()
"""Functions of which a `Kernel` keeps in mind whether they can be called from Python."""


def is_inner() -> bool:
    """Return whether what is asked for now is asked for by a function that is being compiled."""
    return len(ConfigStack()) > 0


def quickly() -> contextlib.AbstractContextManager[None]:
    """Compile what is compiled inside without waste, where this numba is known."""
    if not numba.__version__.startswith(_HOOKED):
        return contextlib.nullcontext()
    from calibration.foundation.kernels.lean import lean

    return lean()
