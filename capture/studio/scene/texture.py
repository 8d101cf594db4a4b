"""Procedural patterns: seeded solid noise, so a texture has detail at any distance and no seams."""

from __future__ import annotations

import math

import numpy as np

from calibration.foundation.arrays import Floats, Singles
from calibration.foundation.compiled import compiled

__all__ = ["fractal_noise"]


@compiled
def _lattice(x: int, y: int, z: int, seed: int) -> float:
    """Return the pseudo-random value in [-1, 1] of one lattice point (integer hash, 32 bit)."""
    h = (x * 374761393 + y * 668265263 + z * 2147483647 + seed * 1274126177) & 0xFFFFFFFF
    h = ((h ^ (h >> 13)) * 1274126177) & 0xFFFFFFFF
    h = ((h ^ (h >> 16)) * 2246822519) & 0xFFFFFFFF
    h = h ^ (h >> 15)
    return (h & 0xFFFFFF) / 8388607.5 - 1.0


@compiled
def noise_at(x: float, y: float, z: float, seed: int) -> float:
    """Return smooth noise in [-1, 1] with features one unit across."""
    i, j, k = math.floor(x), math.floor(y), math.floor(z)
    fx, fy, fz = x - i, y - j, z - k
    fx = fx * fx * (3.0 - 2.0 * fx)
    fy = fy * fy * (3.0 - 2.0 * fy)
    fz = fz * fz * (3.0 - 2.0 * fz)
    i, j, k = int(i), int(j), int(k)
    c00 = _lattice(i, j, k, seed) * (1 - fx) + _lattice(i + 1, j, k, seed) * fx
    c10 = _lattice(i, j + 1, k, seed) * (1 - fx) + _lattice(i + 1, j + 1, k, seed) * fx
    c01 = _lattice(i, j, k + 1, seed) * (1 - fx) + _lattice(i + 1, j, k + 1, seed) * fx
    c11 = _lattice(i, j + 1, k + 1, seed) * (1 - fx) + _lattice(i + 1, j + 1, k + 1, seed) * fx
    return (c00 * (1 - fy) + c10 * fy) * (1 - fz) + (c01 * (1 - fy) + c11 * fy) * fz


@compiled
def _fractal(points: Floats, scale: float, octaves: int, seed: int, out: Singles) -> None:
    for n in range(points.shape[0]):
        total, weight, frequency = 0.0, 1.0, 1.0 / scale
        for octave in range(octaves):
            total += weight * noise_at(
                points[n, 0] * frequency,
                points[n, 1] * frequency,
                points[n, 2] * frequency,
                seed + 101 * octave,
            )
            weight *= 0.6
            frequency *= 2.03
        out[n] = total


def fractal_noise(points: Floats, *, scale: float, octaves: int, seed: int) -> Singles:
    """Return noise (n,) of about unit amplitude at ``points`` (n, 3), its largest features ``scale`` mm across."""
    out = np.empty(len(points), dtype=np.float32)
    _fractal(np.ascontiguousarray(points, dtype=np.float64), scale, octaves, seed, out)
    return out
