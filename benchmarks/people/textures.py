"""Patterns in space: what a place of a floor, a wall or a cloth looks like. Colours are linear, 0 to 1."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import map_coordinates

from calibration.foundation.arrays import Floats

__all__ = ["checked", "cloudy", "planks", "plaster", "striped", "tiles"]

_LATTICE = 32


def cloudy(places: Floats, size_mm: float, seed: int, octaves: int = 3) -> Floats:
    """Return smooth noise (n,) of about -1 to 1 at places (n, 3), whose largest clouds are ``size_mm`` across."""
    lattice = np.random.default_rng(seed).uniform(-1.0, 1.0, (_LATTICE,) * 3)
    found = np.zeros(len(places))
    for octave in range(octaves):
        at = (places / (size_mm * 0.5**octave) + 7.3 * octave) % _LATTICE
        found += 0.5**octave * map_coordinates(lattice, at.T, order=1, mode="grid-wrap")
    return found


def _lines(along: Floats, every_mm: float, wide_mm: float) -> Floats:
    """Return 1 on lines across a coordinate (n,), 0 beside them, with soft sides."""
    off = np.abs((along + 0.5 * every_mm) % every_mm - 0.5 * every_mm)
    return np.asarray(np.clip(1.5 - off / wide_mm, 0.0, 1.0))


def planks(places: Floats, colour: Floats, seed: int) -> Floats:
    """Return the colours (n, 3) of a floor of wooden planks, 160 mm wide."""
    row = np.floor(places[:, 1] / 160.0).astype(int)
    shifted = places[:, 0] + 531.0 * (row % 3)
    board = row * 17 + np.floor(shifted / 1400.0).astype(int) * 5
    tone = np.random.default_rng(seed).uniform(0.75, 1.2, 97)[board % 97]
    grain = cloudy(places * np.array([0.06, 1.0, 1.0]), 25.0, seed + 1)
    joints = np.maximum(_lines(places[:, 1], 160.0, 3.0), _lines(shifted, 1400.0, 3.0))
    return np.asarray(colour * (tone * (1.0 + 0.12 * grain) * (1.0 - 0.6 * joints))[:, None])


def tiles(places: Floats, colour: Floats, seed: int) -> Floats:
    """Return the colours (n, 3) of a floor of stone tiles, 400 mm wide."""
    number = np.floor(places[:, 0] / 400.0).astype(int) * 7 + np.floor(places[:, 1] / 400.0).astype(int) * 13
    tone = np.random.default_rng(seed).uniform(0.9, 1.08, 101)[number % 101]
    joints = np.maximum(_lines(places[:, 0], 400.0, 4.0), _lines(places[:, 1], 400.0, 4.0))
    return np.asarray(
        colour * (tone * (1.0 + 0.1 * cloudy(places, 180.0, seed + 1, 4)) * (1.0 - 0.45 * joints))[:, None]
    )


def plaster(places: Floats, colour: Floats, seed: int) -> Floats:
    """Return the colours (n, 3) of painted plaster or a carpet: clouds and fine grain."""
    wide, fine = cloudy(places, 1500.0, seed), cloudy(places, 30.0, seed + 1, 2)
    return np.asarray(colour * (1.0 + 0.06 * wide + 0.05 * fine)[:, None])


def striped(places: Floats, colours: Floats, every_mm: float) -> Floats:
    """Return the colours (n, 3) of level stripes of two colours (2, 3)."""
    return np.asarray(colours[(places[:, 2] // every_mm).astype(int) % 2])


def checked(places: Floats, colours: Floats, every_mm: float) -> Floats:
    """Return the colours (n, 3) of a checked cloth: two colours (2, 3), and their mean where only one band crosses."""
    bands = (places[:, 1:] // every_mm).astype(int) % 2
    share = bands.mean(axis=1, keepdims=True)
    return np.asarray(colours[0] * (1.0 - share) + colours[1] * share)
