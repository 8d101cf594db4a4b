"""How late a camera is by when its picture changes: without a rig, and only where something happens once.

Gait and other rhythms fit at every period, and slow trends at any lag. Both can be foretold from the frames before:
what is left when that is taken off (the innovations of one autoregressive model of both signals) marks events that
happen at one instant. Only if these agree at one lag, in both halves of the recording, is it believed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Floats, Ints

__all__ = ["ChangeLag", "lag_of_changes"]

#: Frames from which a frame is foretold, at most, and frames per number that is fitted, at least.
_MEMORY = 24
_PER_NUMBER = 6
_LEAST_OVERLAP = 30
#: The best lag's correlation must be this many standard errors, and every other (not next to it) below this share.
_LEAST_SIGMAS = 5.0
_RIVAL = 0.6


@dataclass(frozen=True)
class ChangeLag:
    """How late one signal is: ``frames``, the correlation of both signals' events there, and why not to believe it."""

    frames: float
    correlation: float
    doubt: str


def lag_of_changes(reference: Floats, signal: Floats, *, most: int) -> ChangeLag:
    """Return how many frames ``signal`` (n,) is late against ``reference`` (m,), looking up to ``most`` either way."""
    a, b = _events([reference, signal])
    lags = np.arange(-most, most + 1)
    scores = np.array([_score(a, b, int(lag)) for lag in lags])
    if not np.isfinite(scores[:, 0]).any():
        return ChangeLag(0.0, np.nan, f"fewer than {_LEAST_OVERLAP} frames in common")
    sigmas = np.where(np.isfinite(scores[:, 0]), scores[:, 0], -np.inf)
    best = int(np.argmax(sigmas))
    lag, correlation = int(lags[best]), float(scores[best, 1])
    fraction = 0.0
    if 0 < best < len(lags) - 1 and np.isfinite(sigmas[best - 1 : best + 2]).all():
        left, top, right = np.maximum(sigmas[best - 1 : best + 2], 0.0)
        fraction = float(np.clip(0.5 * (right - left) / max(2 * top - left - right, 1e-9), -0.5, 0.5))
    rivals = np.abs(lags - lag) > 1
    doubt = ""
    if sigmas[best] < _LEAST_SIGMAS:
        doubt = "nothing happens at one instant that both cameras see"
    elif (sigmas[rivals] > _RIVAL * sigmas[best]).any():
        rival = int(lags[rivals][int(np.argmax(sigmas[rivals]))])
        doubt = f"{rival:+d} frames fit nearly as well"
    elif not _in_both_halves(a, b, lag, lags):
        doubt = "the halves of the recording do not agree"
    return ChangeLag(lag + fraction, correlation, doubt)


def _in_both_halves(a: Floats, b: Floats, lag: int, lags: Ints) -> bool:
    """Return whether the lag is the best, or next to it, in either half."""
    middle = min(len(a), len(b)) // 2
    for half in (slice(None, middle), slice(middle, None)):
        scores = np.array([_score(a[half], b[half], int(one))[0] for one in lags])
        if not np.isfinite(scores).any() or abs(int(lags[int(np.nanargmax(scores))]) - lag) > 1:
            return False
    return True


def _score(a: Floats, b: Floats, lag: int) -> tuple[float, float]:
    """Return the correlation of two signals at a lag, in standard errors and as it is; NaN if too short."""
    start, stop = max(0, -lag), min(len(a), len(b) - lag)
    if stop - start < _LEAST_OVERLAP:
        return np.nan, np.nan
    x, y = a[start:stop], b[start + lag : stop + lag]
    if x.std() < 1e-9 or y.std() < 1e-9:
        return np.nan, np.nan
    r = float(np.corrcoef(x, y)[0, 1])
    return float(np.arctanh(np.clip(r, -0.999999, 0.999999)) * np.sqrt(len(x) - 3)), r


def _events(signals: list[Floats]) -> list[Floats]:
    """Return what of each signal the frames before do not foretell, in units of its spread, no event beyond 4.

    One model for both, so that both are delayed alike. The first frames, of which too little is known, are 0.
    """
    scaled = [(one - one.mean()) / max(float(one.std()), 1e-9) for one in signals]
    length = sum(map(len, signals))
    memory = max(1, min(_MEMORY, length // (2 * _PER_NUMBER)))
    rows, wanted = [], []
    for one in scaled:
        if len(one) > memory:
            rows.append(np.lib.stride_tricks.sliding_window_view(one[:-1], memory))
            wanted.append(one[memory:])
    if not rows:
        return [np.zeros(len(one)) for one in scaled]
    weights, *_ = np.linalg.lstsq(np.concatenate(rows), np.concatenate(wanted), rcond=1e-6)
    out = []
    for one in scaled:
        left = np.zeros(len(one))
        if len(one) > memory:
            left[memory:] = one[memory:] - np.lib.stride_tricks.sliding_window_view(one[:-1], memory) @ weights
        spread = max(1.4826 * float(np.median(np.abs(left[memory:]))) if len(one) > memory else 0.0, 1e-9)
        out.append(np.clip(left / spread, -4.0, 4.0))
    return out
