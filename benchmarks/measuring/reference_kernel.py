"""The time of one fixed piece of work, printed beside any frames-per-second figure so that machines can be compared."""

from __future__ import annotations

import time

import numpy as np

__all__ = ["reference_kernel_s"]


def reference_kernel_s() -> float:
    """Return the least time of five runs, in seconds, of sorting and multiplying fixed arrays on one core."""
    rng = np.random.default_rng(0)
    values, matrix = rng.random(2_000_000), rng.random((300, 300))
    best = np.inf
    for _ in range(5):
        start = time.perf_counter()
        np.sort(values)
        for _ in range(10):
            np.einsum("ij,jk->ik", matrix, matrix)
        best = min(best, time.perf_counter() - start)
    return best
