"""Smoothing of trajectories without delay, with a cut-off that the data choose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import make_smoothing_spline
from scipy.signal import butter, sosfiltfilt

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError

__all__ = ["Smoothed", "butterworth", "choose_cutoff", "smooth_trajectories", "spline"]

#: A fourth-order zero-phase filter is a second-order one run both ways; its -3 dB point moves inwards by this.
BOTH_WAYS = (np.sqrt(2.0) - 1.0) ** 0.25
#: Shorter runs of frames have no spectrum to speak of and are left as they are.
SHORTEST = 13


@dataclass(frozen=True, eq=False)
class Smoothed:
    """Filtered trajectories.

    Attributes:
        positions: (T, B, 3) mm; NaN where the input was.
        method: "butterworth" or "spline".
        cutoff_hz: (B,) cut-off used (Butterworth); NaN for beads left as they were, or for the spline.
    """

    positions: Floats
    method: str
    cutoff_hz: Floats


def butterworth(signal: Floats, rate_hz: float, cutoff_hz: float) -> Floats:
    """Filter (T, k) signals without gaps by a fourth-order zero-phase Butterworth low-pass."""
    corrected = cutoff_hz / BOTH_WAYS
    if not 0.0 < corrected < 0.5 * rate_hz:
        raise InputError(
            f"cut-off {cutoff_hz:g} Hz: wanted between 0 and {0.5 * rate_hz * BOTH_WAYS:g} Hz at {rate_hz:g} frames/s"
        )
    sections = butter(2, corrected, fs=rate_hz, output="sos")
    pad = min(len(signal) - 1, int(3.0 * rate_hz / cutoff_hz) + 3)
    return np.asarray(sosfiltfilt(sections, signal, axis=0, padtype="odd", padlen=pad))


def residual_curve(signal: Floats, rate_hz: float, cutoffs_hz: Floats) -> Floats:
    """Return (n,) root mean square of what the filter takes away, per cut-off (Winter's residual analysis)."""
    return np.array([np.sqrt(np.mean((signal - butterworth(signal, rate_hz, f)) ** 2)) for f in cutoffs_hz])


def choose_cutoff(signal: Floats, rate_hz: float) -> float:
    """Choose the cut-off by residual analysis (Winter, Biomechanics and Motor Control, section 3.4.4.3).

    At high cut-offs the residual is noise alone and falls along a line; carried to 0 Hz that line gives the noise
    in the signal. The cut-off is where the residual reaches that level: as much signal is lost as noise let
    through.
    """
    top = 0.48 * rate_hz * BOTH_WAYS
    cutoffs = np.linspace(max(1.0, 0.01 * rate_hz), top, 60)
    residual = residual_curve(signal, rate_hz, cutoffs)
    tail = cutoffs > 0.55 * top
    slope, intercept = np.polyfit(cutoffs[tail], residual[tail], 1)
    if slope >= 0.0 or intercept <= 0.0:
        return float(top)
    below = np.flatnonzero(residual <= intercept)
    if not len(below):
        return float(top)
    k = int(below[0])
    if k == 0:
        return float(cutoffs[0])
    part = (residual[k - 1] - intercept) / max(residual[k - 1] - residual[k], 1e-15)
    return float(cutoffs[k - 1] + part * (cutoffs[k] - cutoffs[k - 1]))


def spline(signal: Floats, rate_hz: float) -> Floats:
    """Smooth (T, k) signals without gaps by a cubic spline whose stiffness is chosen by cross-validation."""
    t = np.arange(len(signal)) / rate_hz
    return np.stack([make_smoothing_spline(t, column)(t) for column in signal.T], axis=1)


def smooth_trajectories(
    positions: Floats, rate_hz: float, *, method: str = "butterworth", cutoff_hz: float | None = None
) -> Smoothed:
    """Smooth (T, B, 3) trajectories; gaps stay gaps, each run of frames between them is filtered on its own.

    Args:
        cutoff_hz: for all beads; chosen per bead by residual analysis of its longest run unless given.
    """
    if method not in ("butterworth", "spline"):
        raise InputError(f"unknown filter '{method}'; valid are butterworth, spline")
    smoothed = positions.copy()
    used = np.full(positions.shape[1], np.nan)
    for bead in range(positions.shape[1]):
        runs = [run for run in _runs(np.isfinite(positions[:, bead, 0])) if run[1] - run[0] >= SHORTEST]
        if not runs:
            continue
        if method == "butterworth":
            longest = max(runs, key=lambda run: run[1] - run[0])
            chosen = cutoff_hz or choose_cutoff(positions[longest[0] : longest[1], bead], rate_hz)
            used[bead] = chosen
        for start, stop in runs:
            piece = positions[start:stop, bead]
            if method == "butterworth":
                smoothed[start:stop, bead] = butterworth(piece, rate_hz, float(used[bead]))
            else:
                smoothed[start:stop, bead] = spline(piece, rate_hz)
    return Smoothed(smoothed, method, used)


def _runs(seen: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> list[tuple[int, int]]:
    """Return (start, stop) of the runs of True."""
    edges = np.diff(np.concatenate([[0], seen.astype(np.int8), [0]]))
    return list(zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist(), strict=True))
