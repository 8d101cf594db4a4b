"""Logarithms and angles of many numbers at once, for compiled loops that need thousands of them.

The C library is asked for one number at a time, which keeps a loop from being vectorised. These are its formulas
without branches, to the last digit or two.
"""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.compiled import compiled

__all__ = ["angles", "logarithms"]


@compiled
def logarithms(x: Floats, out: Floats) -> None:
    """Fill the natural logarithms (n,) of positive normal numbers (n,), by the series of fdlibm."""
    bits, mantissa = x.view(np.int64), out.view(np.int64)
    for i in range(len(x)):
        # x = 2^k m with m from sqrt(1/2) to sqrt(2); log m = 2 artanh s
        k = (bits[i] - 0x3FE6A09E667F3BCD) >> 52
        mantissa[i] = bits[i] - (k << 52)
        s = (out[i] - 1.0) / (out[i] + 1.0)
        z = s * s
        series = 1.479819860511658591e-01
        series = 1.531383769920937332e-01 + z * series
        series = 1.818357216161805012e-01 + z * series
        series = 2.222219843214978396e-01 + z * series
        series = 2.857142874366239149e-01 + z * series
        series = 3.999999999940941908e-01 + z * series
        series = 6.666666666666735130e-01 + z * series
        out[i] = k * 6.93147180559945309e-01 + s * (2.0 + z * series)


@compiled
def angles(y: Floats, x: Floats, out: Floats) -> None:
    """Fill the angles (n,) of points (x, y), -pi to pi, as ``arctan2`` does, by the fraction of Cephes; 0 at (0, 0)."""
    for i in range(len(y)):
        across, along = abs(y[i]), abs(x[i])
        low, high = min(across, along), max(across, along)
        # A slope from 0 to 1; beyond 0.66 it is taken from an eighth of a turn.
        steep = low > 0.66 * high
        t = (low - high) / (low + high) if steep else low / max(high, 1e-300)
        z = t * t
        above = -8.750608600031904122785e-1
        above = above * z - 1.615753718733365076637e1
        above = above * z - 7.500855792314704667340e1
        above = above * z - 1.228866684490136173410e2
        above = above * z - 6.485021904942025371773e1
        below = z + 2.485846490142306297962e1
        below = below * z + 1.650270098316988542046e2
        below = below * z + 4.328810604912902668951e2
        below = below * z + 4.853903996359136964868e2
        below = below * z + 1.945506571482613964425e2
        angle = t + t * (z * above / below)
        angle = angle + 0.25 * np.pi if steep else angle
        angle = 0.5 * np.pi - angle if across > along else angle
        angle = np.pi - angle if x[i] < 0.0 else angle
        out[i] = -angle if y[i] < 0.0 else angle
