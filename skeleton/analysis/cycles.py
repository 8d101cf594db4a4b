"""Curves over the gait cycle: any signal from one touch-down of a foot to its next, as mean and spread.

Each whole stride is stretched to 0-100 % of its cycle. Strides of clearly different speeds (a walk that becomes a jog)
are kept apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from skeleton.analysis.contacts import Contacts
from skeleton.analysis.stances import otsu_split

__all__ = ["CycleCurve", "cycle_curves", "cycles_table", "stride_spans"]

SAMPLES = 101
"""Points of a cycle, 0 to 100 %."""
_TWO_SPEEDS = 1.3
"""Strides fall into slow and fast ones if those are faster by this factor at least."""


@dataclass(frozen=True, eq=False)
class CycleCurve:
    """One signal over the cycle of one foot at one speed.

    Attributes:
        name: of the signal.
        foot: whose touch-downs begin and end the cycles.
        speed_mm_s: mean speed over the ground of these strides.
        mean, spread: (101,) of the strides, in the signal's unit; spread is 1 standard deviation, NaN of one stride.
        strides: how many.
    """

    name: str
    foot: str
    speed_mm_s: float
    mean: Floats
    spread: Floats
    strides: int


def stride_spans(contacts: Contacts) -> Floats:
    """Return (S, 2) begin and end of each whole stride, in frames and parts of frames."""
    downs = contacts.touch_down_s * contacts.rate_hz
    return np.array(list(pairwise(downs))).reshape(-1, 2)


def cycle_curves(
    signals: Mapping[str, Floats],
    foot_of: Mapping[str, str],
    contacts: Mapping[str, Contacts],
    root: Floats,
) -> list[CycleCurve]:
    """Return the mean and spread of signals over their foot's cycle, slow strides before fast ones.

    Args:
        signals: name to values (T,); NaN where not known: a stride with any is left out.
        foot_of: signal name to the foot of its side.
        contacts: foot name to its contacts.
        root: (T, 2) way of the body over the ground, mm.
    """
    out = []
    for name, values in signals.items():
        foot = foot_of[name]
        spans = stride_spans(contacts[foot])
        rows = np.array([_stretched(values, span) for span in spans]).reshape(-1, SAMPLES)
        whole = np.isfinite(rows).all(axis=1)
        rows, spans = rows[whole], spans[whole]
        speeds = _speeds(spans, root, contacts[foot].rate_hz)
        for group in _groups(speeds):
            chosen = rows[group]
            spread = chosen.std(axis=0, ddof=1) if len(chosen) > 1 else np.full(SAMPLES, np.nan)
            out.append(CycleCurve(name, foot, float(speeds[group].mean()), chosen.mean(axis=0), spread, len(chosen)))
    return out


def _stretched(values: Floats, span: Floats) -> Floats:
    """Return (101,) the values of one stride at even shares of it."""
    at = np.linspace(span[0], span[1], SAMPLES)
    first = int(span[0])
    inside = values[first : int(np.ceil(span[1])) + 1]
    if not len(inside) or not np.isfinite(inside).all():
        return np.full(SAMPLES, np.nan)
    return np.asarray(np.interp(at, np.arange(first, first + len(inside)), inside))


def _speeds(spans: Floats, root: Floats, rate_hz: float) -> Floats:
    """(S,) mean speed of the body over each stride, mm/s."""
    index = np.arange(len(root))
    ends = np.stack([np.interp(spans, index, root[:, axis]) for axis in range(2)], axis=-1)
    return np.asarray(np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1) / np.maximum(np.ptp(spans, axis=1), 1) * rate_hz)


def _groups(speeds: Floats) -> list[Ints]:
    """Return the strides of one speed, or of two clearly different ones."""
    if not len(speeds):
        return []
    every = np.arange(len(speeds))
    if len(speeds) < 4:
        return [every]
    split, explained = otsu_split(speeds)
    slow, fast = every[speeds <= split], every[speeds > split]
    if explained < 0.8 or not len(fast) or speeds[fast].mean() < _TWO_SPEEDS * speeds[slow].mean():
        return [every]
    return [slow, fast]


def cycles_table(curves: Sequence[CycleCurve]) -> str:
    """Return the curves as CSV text, one row per signal, speed and per cent of the cycle."""
    lines = ["signal,foot,speed_mm_s,strides,cycle_percent,mean,standard_deviation"]
    for curve in curves:
        head = f"{curve.name},{curve.foot},{curve.speed_mm_s:.1f},{curve.strides}"
        for percent, (mean, spread) in enumerate(zip(curve.mean, curve.spread, strict=True)):
            lines.append(f"{head},{percent},{mean:.4f},{'' if np.isnan(spread) else f'{spread:.4f}'}")
    return "\n".join(lines) + "\n"
