"""Cholesky factors of small symmetric matrices, compiled: the same numbers whatever the BLAS and its threads."""

from __future__ import annotations

import math

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.compiled import compiled

__all__ = ["cholesky", "cholesky_solve", "factorise", "forward_solve"]


@compiled
def factorise(matrix: Floats, low: Floats) -> bool:
    """Fill ``low`` (zeros before) with the Cholesky factor of a matrix; False if it is not positive definite."""
    n = matrix.shape[0]
    for j in range(n):
        d = matrix[j, j]
        for k in range(j):
            d -= low[j, k] * low[j, k]
        if not d > 0.0:
            return False
        low[j, j] = math.sqrt(d)
        for i in range(j + 1, n):
            v = matrix[i, j]
            for k in range(j):
                v -= low[i, k] * low[j, k]
            low[i, j] = v / low[j, j]
    return True


@compiled
def cholesky(matrix: Floats) -> tuple[bool, Floats]:
    """Return whether a symmetric matrix is positive definite and its lower Cholesky factor."""
    low = np.zeros(matrix.shape)
    return factorise(matrix, low), low


@compiled
def forward_solve(low: Floats, right: Floats, out: Floats) -> None:
    """Solve L x = b into ``out`` for a lower triangle."""
    for i in range(low.shape[0]):
        v = right[i]
        for k in range(i):
            v -= low[i, k] * out[k]
        out[i] = v / low[i, i]


@compiled
def cholesky_solve(low: Floats, right: Floats) -> Floats:
    """Solve L L^T x = b for columns b of ``right`` (n, m)."""
    n, m = right.shape
    x = right.copy()
    for c in range(m):
        for i in range(n):
            s = x[i, c]
            for k in range(i):
                s -= low[i, k] * x[k, c]
            x[i, c] = s / low[i, i]
        for i in range(n - 1, -1, -1):
            s = x[i, c]
            for k in range(i + 1, n):
                s -= low[k, i] * x[k, c]
            x[i, c] = s / low[i, i]
    return x
