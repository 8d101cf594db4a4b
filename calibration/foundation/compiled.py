"""Typed door to numba, so that strict type checking sees the functions and not the compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from calibration.foundation.kernels.dispatcher import Kernel

__all__ = ["compiled", "compiled_parallel", "prange"]

F = TypeVar("F", bound=Callable[..., Any])

# OpenMP first: numba's own order begins with TBB and warns on every machine that has an old one lying about.
numba.config.THREADING_LAYER_PRIORITY = ["omp", "tbb", "workqueue"]

#: ``range`` whose turns are shared between threads inside a `compiled_parallel` function.
prange = numba.prange


def _compile(function: F, *, parallel: bool) -> F:
    # Division as in IEEE 754, by zero too: the check that Python makes keeps loops from being vectorised.
    # A process of one thread, as workers are, shares no loop: plain code is quicker to compile.
    parallel = parallel and numba.config.NUMBA_NUM_THREADS > 1
    options = {"nogil": True, "parallel": parallel, "error_model": "numpy"}
    return cast(F, function if numba.config.DISABLE_JIT else Kernel(function, options))


def compiled(function: F) -> F:
    """Compile a function of numbers and arrays to machine code, cached on disk; it runs beside other threads."""
    return _compile(function, parallel=False)


def compiled_parallel(function: F) -> F:
    """Compile like `compiled`, with `prange` loops on all threads. The sums inside one turn keep their order.

    What a loop writes is returned, or a parameter of its own: a write into a member of a tuple is dead code to numba.
    """
    return _compile(function, parallel=True)
