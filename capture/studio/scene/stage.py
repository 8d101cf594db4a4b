"""What stands still: lamps, floor, bedding and transparent walls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Floats, Ints, Singles
from capture.studio.scene.options import StudioOptions
from capture.studio.scene.surfaces import icosphere
from capture.studio.scene.texture import fractal_noise

__all__ = ["Lamp", "Stage", "build_stage"]

FLOOR_REFLECTANCE = (0.62, 0.60, 0.56)
BACKDROP_LIGHT = (0.42, 0.43, 0.46)
CHIP_REFLECTANCE = (0.66, 0.55, 0.38)


@dataclass(frozen=True, eq=False)
class Lamp:
    """A small lamp.

    Attributes:
        position: (3,) mm.
        colour: (3,) light of red, green, blue that falls on a surface at ``distance`` facing it.
        distance: mm at which ``colour`` holds; it falls with the square.
    """

    position: Floats
    colour: Floats
    distance: float


@dataclass(frozen=True, eq=False)
class Stage:
    """The set around the subject.

    Attributes:
        scale: size of the subject, mm; patterns, chips and lamps are measured by it.
        lamps: cast light and shadows.
        ambient: (3,) light from everywhere.
        floor_radius: mm; outside it the backdrop shows.
        chips: vertices and faces of the bedding, or None.
        walls: half width of the square of transparent walls, mm, and their height; None without.
        options: the numbers it was built from.
    """

    scale: float
    lamps: tuple[Lamp, ...]
    ambient: Floats
    floor_radius: float
    chips: tuple[Floats, Ints] | None
    walls: tuple[float, float] | None
    options: StudioOptions

    def unevenness(self, points: Floats) -> Singles:
        """Return the factor (n,) of the lamps' light at ``points`` (n, 3)."""
        amount = self.options.uneven_light
        if amount == 0.0:
            return np.ones(len(points), dtype=np.float32)
        noise = fractal_noise(points, scale=1.7 * self.scale, octaves=1, seed=self.options.seed + 7)
        return np.asarray(np.maximum(1.0 + amount * noise, 0.05), dtype=np.float32)

    def floor_reflectance(self, points: Floats) -> Singles:
        """Return the reflectance (n, 3) of the floor at ``points`` (n, 3)."""
        base = np.tile(np.asarray(FLOOR_REFLECTANCE, dtype=np.float32), (len(points), 1))
        if self.options.floor_texture > 0.0:
            noise = fractal_noise(points, scale=0.25 * self.scale, octaves=5, seed=self.options.seed + 11)
            base *= np.maximum(1.0 + 0.8 * np.float32(self.options.floor_texture) * noise, 0.05)[:, None]
        return np.minimum(base, np.float32(0.95))

    def backdrop(self, directions: Floats) -> Singles:
        """Return the light (n, 3) that arrives from beyond the floor along ``directions`` (n, 3)."""
        base = np.tile(np.asarray(BACKDROP_LIGHT, dtype=np.float32), (len(directions), 1))
        if self.options.floor_texture > 0.0:
            noise = fractal_noise(directions, scale=0.4, octaves=4, seed=self.options.seed + 13)
            base *= (1.0 + 0.5 * np.float32(self.options.floor_texture) * noise)[:, None]
        return base

    def chip_reflectance(self, points: Floats) -> Singles:
        """Return the reflectance (n, 3) of the bedding at ``points`` (n, 3)."""
        noise = fractal_noise(points, scale=0.05 * self.scale, octaves=2, seed=self.options.seed + 17)
        base = np.tile(np.asarray(CHIP_REFLECTANCE, dtype=np.float32), (len(points), 1))
        return np.clip(base * (1.0 + 0.25 * noise)[:, None], 0.02, 0.95)


def build_stage(
    scale: float, options: StudioOptions, *, floor_radius: float | None = None, clear: float = 0.0
) -> Stage:
    """Set up lamps, floor, bedding and walls around the origin for a subject of size ``scale`` mm.

    Args:
        floor_radius: mm; six times the subject's size unless given.
        clear: radius around the origin in which no bedding lies, mm.
    """
    rng = np.random.default_rng([options.seed, 101])
    count = options.lamps
    angles = 2.0 * np.pi * (np.arange(count) + 0.35 + 0.2 * rng.uniform(-1, 1, count)) / count
    reach = 4.0 * scale
    lamps = []
    for angle, wobble in zip(angles, rng.uniform(0.85, 1.15, count), strict=True):
        position = np.array([0.55 * reach * np.cos(angle), 0.55 * reach * np.sin(angle), 0.85 * reach])
        warmth = np.array([1.02, 1.0, 0.96]) if options.colour else np.ones(3)
        lamps.append(Lamp(position, 0.75 / count * wobble * warmth, float(np.linalg.norm(position))))
    chips = _bedding(options, scale, 3.0 * scale, clear, rng) if options.clutter else None
    return Stage(
        scale=scale,
        lamps=tuple(lamps),
        ambient=np.full(3, 0.45),
        floor_radius=6.0 * scale if floor_radius is None else floor_radius,
        chips=chips,
        walls=(1.6 * scale, 1.6 * scale) if options.reflections > 0.0 else None,
        options=options,
    )


def _bedding(
    options: StudioOptions, scale: float, radius: float, clear: float, rng: np.random.Generator
) -> tuple[Floats, Ints]:
    """Strew flat chips, a few hundredths of the subject long, over the floor."""
    ball, triangles = icosphere(1.0, subdivisions=1)
    vertices, faces = [], []
    for number in range(options.clutter):
        distance = np.sqrt(rng.uniform((clear / radius) ** 2, 1.0)) * radius
        angle, turn, tilt = rng.uniform(0, 2 * np.pi, 3)
        axes = scale * rng.uniform([0.03, 0.015, 0.006], [0.07, 0.03, 0.012])
        chip = ball * axes
        lean = 0.25 * np.sin(tilt)
        chip = chip @ np.array([[np.cos(lean), 0, np.sin(lean)], [0, 1, 0], [-np.sin(lean), 0, np.cos(lean)]])
        chip = chip @ np.array([[np.cos(turn), np.sin(turn), 0], [-np.sin(turn), np.cos(turn), 0], [0, 0, 1]])
        place = np.array([distance * np.cos(angle), distance * np.sin(angle), 0.7 * axes[2]])
        vertices.append(chip + place)
        faces.append(triangles + number * len(ball))
    return np.concatenate(vertices), np.concatenate(faces)
