"""Frame rates: what a header states against what the time stamps say."""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError

__all__ = ["checked_rate", "rate_from_times"]

#: Stated and measured rates may differ by this share: time columns are often rounded to milliseconds.
_TOLERANCE = 0.02


def rate_from_times(times: Floats, who: str) -> float:
    """Return the rate of evenly spaced time stamps (T,) s, in Hz; uneven ones are an error."""
    if len(times) < 2:
        raise InputError(f"{who}: one frame has no rate; pass rate_hz")
    steps = np.diff(times)
    typical = float(np.median(steps))
    if typical <= 0 or np.abs(steps - typical).max() > 0.5 * typical + 1e-3:
        worst = int(np.argmax(np.abs(steps - typical)))
        raise InputError(
            f"{who}: time stamps are not evenly spaced (step {steps[worst]:g} s after frame {worst}, "
            f"others {typical:g} s); resample the file first"
        )
    rate = (len(times) - 1) / float(times[-1] - times[0])
    whole = round(rate, 3)
    return whole if abs(rate - whole) < 1e-5 * rate else rate


def checked_rate(times: Floats, stated: float, wanted: float | None, who: str) -> float:
    """Return the rate to use: ``wanted`` if given, else the stated one if the time stamps agree with it."""
    if wanted is not None:
        return wanted
    if len(times) > 1:
        measured = (len(times) - 1) / float(times[-1] - times[0]) if times[-1] > times[0] else np.inf
        # Rounded to milliseconds, two stamps may be off by 1 ms in all.
        slack = _TOLERANCE + 1e-3 * abs(measured) / max(len(times) - 1, 1)
        if not abs(measured - stated) <= slack * stated:
            raise InputError(
                f"{who}: the header says {stated:g} Hz, the time column {measured:g} Hz; pass rate_hz to choose"
            )
    return stated
