"""Board poses eliminated from the normal equations of a bundle adjustment (Schur complement), compiled.

S = H_gg - sum_t H_gt H_tt^-1 H_tg
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibration.bundle.equations import Equations
from calibration.foundation.arrays import Floats
from calibration.foundation.compiled import compiled
from calibration.geometry.small_matrices import factorise, forward_solve

__all__ = ["Elimination", "back_substitute", "reduce"]


class Elimination(NamedTuple):
    """With L L^T = H_tt: the factors L (T, 6, 6), L^-1 H_tg as (T, G, 6) and L^-1 g_t (T, 6)."""

    factors: Floats
    whitened: Floats
    own: Floats


@compiled
def reduce(equations: Equations, freedom: Floats, damping: float) -> tuple[bool, Floats, Floats, Elimination]:
    """Eliminate the targets. Return success, S (G, G), its right side (G,), and what leads back to the targets.

    ``freedom`` (T, 6) is 0 where a target's own parameter is held. Marquardt damping multiplies the diagonals by
    1 + ``damping``.
    """
    _, h_gg, h_gt, h_tt, g_g, g_t = equations
    columns, count = h_gg.shape[0], h_tt.shape[0]
    s = h_gg.copy()
    b = -g_g
    for a in range(columns):
        s[a, a] *= 1.0 + damping
    factors = np.zeros((count, 6, 6))
    whitened = np.zeros((count, columns, 6))
    own = np.zeros((count, 6))
    active = np.empty(columns, np.int64)
    block = np.empty((6, 6))
    for t in range(count):
        block[:, :] = h_tt[t]
        for k in range(6):
            block[k, k] *= 1.0 + damping
            if freedom[t, k] == 0.0:
                block[k, k] = 1.0
        low = factors[t]
        if not factorise(block, low):
            return False, s, b, Elimination(factors, whitened, own)
        forward_solve(low, g_t[t], own[t])
        used = 0
        for a in range(columns):
            h = h_gt[t, a]
            if h[0] != 0.0 or h[1] != 0.0 or h[2] != 0.0 or h[3] != 0.0 or h[4] != 0.0 or h[5] != 0.0:
                active[used] = a
                used += 1
                forward_solve(low, h, whitened[t, a])
        for i in range(used):
            a = active[i]
            x = whitened[t, a]
            x0, x1, x2, x3, x4, x5 = x[0], x[1], x[2], x[3], x[4], x[5]
            y = own[t]
            b[a] += x0 * y[0] + x1 * y[1] + x2 * y[2] + x3 * y[3] + x4 * y[4] + x5 * y[5]
            for j in range(i + 1):
                y = whitened[t, active[j]]
                s[a, active[j]] -= x0 * y[0] + x1 * y[1] + x2 * y[2] + x3 * y[3] + x4 * y[4] + x5 * y[5]
    for a in range(columns):
        for k in range(a):
            s[k, a] = s[a, k]
    return True, s, b, Elimination(factors, whitened, own)


@compiled
def back_substitute(eliminated: Elimination, by_global: Floats) -> Floats:
    """Return the step of each target (T, 6), -H_tt^-1 (g_t + H_tg x), that goes with a global step x (G,)."""
    factors, whitened, own = eliminated
    out = np.empty_like(own)
    for t in range(own.shape[0]):
        y = out[t]
        y[:] = -own[t]
        for a in range(by_global.shape[0]):
            for k in range(6):
                y[k] -= whitened[t, a, k] * by_global[a]
        low = factors[t]
        for i in range(5, -1, -1):
            v = y[i]
            for k in range(i + 1, 6):
                v -= low[k, i] * y[k]
            y[i] = v / low[i, i]
    return out
