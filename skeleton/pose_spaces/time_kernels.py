"""How a motion's coordinates hang together over time: covariance functions, and the likeliest one for given frames.

    ``k(d) = (1 - w) (1 + d^2 / 2 a l^2)^-a + w exp(-2 sin^2(pi d / P) / s^2 - d^2 / 2 L^2) + r exp(-d^2 / 2 n^2)``

The first part is a mixture of squared exponentials of many lengths (rational quadratic), since fast and slow motion
share every coordinate; the second, for gaits, comes back after a period P and fades over L; the last is jitter as
short as a frame, so that values that are known are met. Courty 2013 takes one squared exponential: the limit of large
a.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import minimize

from calibration.foundation.arrays import Bools, Floats, Ints
from calibration.foundation.errors import InputError

__all__ = ["Conditioned", "Stretch", "TimeKernel", "condition", "find_period", "fit_time_kernel"]

#: Added to the diagonal before factoring, relative to the variance.
_JITTER = 1e-10
#: Bounds of log length (s), log a, log of the jitter's standard deviation, logit w, log s, log L (s).
_BOUNDS = ((-3.9, 1.1), (-3.0, 3.0), (-9.2, -1.2), (-4.0, 6.0), (-1.6, 1.1), (-0.9, 3.0))


@dataclass(frozen=True, eq=False)
class TimeKernel:
    """A covariance function of unit variance (but for the jitter).

    Attributes:
        length_s: l.
        mixture: a.
        jitter: standard deviation of the jitter, sqrt(r).
        frame_s: its length n, s.
        cyclic: share w of the part that comes back; 0 for none.
        period_s: P.
        shape: s.
        fading_s: L.
    """

    length_s: float
    mixture: float
    jitter: float
    frame_s: float
    cyclic: float = 0.0
    period_s: float = 1.0
    shape: float = 1.0
    fading_s: float = 1.0

    def __call__(self, apart: Floats) -> Floats:
        """Covariance of values that are ``apart`` seconds apart."""
        d2 = np.asarray(apart) ** 2
        smooth = (1.0 + d2 / (2.0 * self.mixture * self.length_s**2)) ** -self.mixture
        out = (1.0 - self.cyclic) * smooth + self.jitter**2 * np.exp(-0.5 * d2 / self.frame_s**2)
        if self.cyclic > 0.0:
            swing = np.sin(np.pi * np.asarray(apart) / self.period_s) ** 2
            out = out + self.cyclic * np.exp(-2.0 * swing / self.shape**2 - 0.5 * d2 / self.fading_s**2)
        return np.asarray(out)


class Stretch(NamedTuple):
    """Values (n, c) of c coordinates at times (n,), s."""

    times: Floats
    values: Floats


def _kernel(p: Floats, frame_s: float, period_s: float | None) -> TimeKernel:
    length, mixture, jitter = np.exp(p[:3])
    if period_s is None:
        return TimeKernel(length, mixture, jitter, frame_s)
    share = 1.0 / (1.0 + np.exp(-p[3]))
    shape, fading = np.exp(p[4:6])
    return TimeKernel(length, mixture, jitter, frame_s, float(share), period_s * float(np.exp(p[6])), shape, fading)


def _cost(p: Floats, stretches: Sequence[Stretch], frame_s: float, period_s: float | None) -> float:
    """Negative log likelihood per value, with the variance of each coordinate at its likeliest."""
    kernel = _kernel(p, frame_s, period_s)
    squares, halves, count = 0.0, 0.0, 0
    for times, values in stretches:
        table = kernel(times[:, None] - times)
        table[np.diag_indices_from(table)] += 1e-8
        try:
            factor = np.linalg.cholesky(table)
        except np.linalg.LinAlgError:
            return 1e10
        white = solve_triangular(factor, values, lower=True, check_finite=False)
        squares = squares + (white**2).sum(axis=0)
        halves += float(np.log(np.diag(factor)).sum())
        count += len(times)
    width = stretches[0].values.shape[1]
    return float(0.5 * np.log(squares / count + 1e-18).sum() + width * halves / count)


def fit_time_kernel(
    stretches: Sequence[Stretch],
    frame_s: float,
    *,
    period_s: float | None = None,
    rounds: int = 25,
) -> tuple[TimeKernel, float]:
    """Return the likeliest kernel for coordinates of zero mean, and its cost per value (lower is likelier).

    With ``period_s`` the part that comes back is fitted, too, its period within a fifth of that.
    """
    if not stretches or sum(len(s.times) for s in stretches) < 8:
        raise InputError("time kernel: wanted at least 8 known frames")
    start = [np.log(0.15), np.log(0.5), np.log(0.01)]
    bounds = list(_BOUNDS[:3])
    if period_s is not None:
        start += [1.0, np.log(0.8), np.log(2.0), 0.0]
        bounds += [*_BOUNDS[3:], (-0.2, 0.2)]
    found = minimize(
        _cost, np.array(start), args=(stretches, frame_s, period_s), method="L-BFGS-B", bounds=bounds,
        options={"maxiter": rounds},
    )  # fmt: skip
    return _kernel(found.x, frame_s, period_s), float(found.fun)


def find_period(values: Floats, known: Bools, rate_hz: float) -> float | None:
    """Return the time (s) after which coordinates (T, c) of zero mean come back, or None if they do not.

    The highest peak of the autocorrelation between 0.1 s and half of the known time, if it is above 0.3.
    """
    shown = np.where(known[:, None], values, 0.0)
    most = min(int(4.0 * rate_hz), int(known.sum()) // 2)
    lags = np.arange(max(2, int(0.1 * rate_hz)), most)
    if len(lags) < 3:
        return None
    scores = np.full(len(lags), -1.0)
    for i, lag in enumerate(lags):
        both = known[lag:] & known[:-lag]
        a, b = shown[lag:][both], shown[:-lag][both]
        if both.sum() > 20:
            scores[i] = (a * b).sum() / np.sqrt((a**2).sum() * (b**2).sum() + 1e-30)
    inner = np.flatnonzero((scores[1:-1] > scores[:-2]) & (scores[1:-1] >= scores[2:]) & (scores[1:-1] > 0.3)) + 1
    if not len(inner):
        return None
    return float(lags[inner[np.argmax(scores[inner])]] / rate_hz)


class Conditioned(NamedTuple):
    """What known values say of others: ``mean`` (g, c), ``shape`` (g, g) covariance for unit variance, ``scale`` (c,)
    variance of each coordinate."""

    mean: Floats
    shape: Floats
    scale: Floats


def condition(kernel: TimeKernel, times: Floats, values: Floats, wanted: Floats) -> Conditioned:
    """Condition on values (n, c) at times (n,), zero mean, and ask for times (g,)."""
    table = kernel(times[:, None] - times)
    factor = cho_factor(table + _JITTER * np.eye(len(times)), lower=True)
    across = kernel(wanted[:, None] - times)
    weights = cho_solve(factor, values)
    for _ in range(4):  # what the added diagonal took away: known values are to be met
        weights = weights + cho_solve(factor, values - table @ weights)
    shape = kernel(wanted[:, None] - wanted) - across @ cho_solve(factor, across.T)
    scale = np.maximum((values * weights).sum(axis=0) / len(times), 1e-18)
    return Conditioned(np.asarray(across @ weights), np.asarray(0.5 * (shape + shape.T)), np.asarray(scale))


def near_and_far(known: Ints, first: int, stop: int, *, near: int, most: int) -> Ints:
    """Choose of known frames all that lie within ``near`` of a gap and of the others evenly, about ``most`` in all."""
    close = (known >= first - near) & (known < stop + near)
    far = known[~close]
    stride = max(1, int(np.ceil(len(far) / max(1, most - int(close.sum())))))
    return np.sort(np.concatenate([known[close], far[::stride]]))
