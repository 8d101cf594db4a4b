"""The ground of a recording: the belt or wheel that recording.toml names, else what the feet say."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from calibration.foundation.arrays import Floats
from capture.recordings.recording import Recording
from skeleton.analysis.belts import Ground, given_belt
from skeleton.analysis.contacts import ground_of
from skeleton.analysis.wheels import given_wheel

__all__ = ["ground_under"]


def ground_under(recording: Recording, feet: Mapping[str, Floats], rate_hz: float) -> Ground:
    """Return what feet, the points (T, P, 3) of each, stand on."""
    if recording.belt is not None:
        return given_belt(np.array(recording.belt), len(next(iter(feet.values()))))
    if recording.wheel is not None:
        wheel = recording.wheel
        return given_wheel(np.array(wheel.centre), np.array(wheel.axis), wheel.radius, list(feet.values()), rate_hz)
    return ground_of(feet, rate_hz)
