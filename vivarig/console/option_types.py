"""Numbers given as text: read, and refused where they can mean nothing."""

from __future__ import annotations

import math
from collections.abc import Callable

from calibration.foundation.errors import InputError

__all__ = ["number", "whole_number"]


def whole_number(least: int) -> Callable[[str], int]:
    """Return a reader of whole numbers of at least ``least``."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise InputError(f"wanted a whole number of {least} or more, got '{text}'")
        return value

    return read


def number(*, above: float | None = None, least: float = -math.inf, most: float = math.inf) -> Callable[[str], float]:
    """Return a reader of finite numbers from ``least``, or ``above`` a limit that is not one of them, to ``most``."""
    bounds = [] if above is None else [f"above {above:g}"]
    bounds += [f"of {least:g} or more"] if math.isfinite(least) else []
    bounds += [f"up to {most:g}"] if math.isfinite(most) else []

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and least <= value <= most and (above is None or value > above)):
            raise InputError(f"wanted {' '.join(['a number', *bounds])}, got '{text}'")
        return value

    return read
