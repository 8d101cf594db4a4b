"""Smooth signals of time that motions are composed of."""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Floats

__all__ = ["bump", "ramp", "smooth_noise", "smoothstep"]


def smoothstep(s: Floats) -> Floats:
    """Return the minimum-jerk rise ``10 s^3 - 15 s^4 + 6 s^5`` of s clipped to 0..1."""
    s = np.clip(s, 0.0, 1.0)
    return np.asarray(s * s * s * (10.0 - 15.0 * s + 6.0 * s * s))


def ramp(t: Floats, start: float, stop: float) -> Floats:
    """Return a smooth rise from 0 at ``start`` to 1 at ``stop``, s."""
    return smoothstep((t - start) / max(stop - start, 1e-9))


def bump(t: Floats, start: float, rise: float, stop: float) -> Floats:
    """Return a plateau: 0 before ``start``, 1 from ``start + rise`` to ``stop - rise``, 0 after ``stop``."""
    return np.asarray(ramp(t, start, start + rise) * (1.0 - ramp(t, stop - rise, stop)))


def smooth_noise(t: Floats, channels: int, hertz: float, rng: np.random.Generator) -> Floats:
    """Return (T, channels) band-limited noise of unit size: four sinusoids each, up to ``hertz``."""
    frequency = hertz * rng.uniform(0.25, 1.0, size=(4, channels))
    phase = rng.uniform(0, 2 * np.pi, size=(4, channels))
    waves = np.sin(2 * np.pi * frequency * np.asarray(t)[:, None, None] + phase)
    return np.asarray(waves.sum(axis=1) / np.sqrt(2.0))
