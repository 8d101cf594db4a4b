"""Rooms that people are filmed in: floor, walls, a few things, and lamps of some size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.people.textures import planks, plaster, tiles
from calibration.foundation.arrays import Floats, Ints

__all__ = ["Lamp", "Room", "colours_of", "lamp_points", "room_mesh"]

#: Half of the room's length and width, and its height, mm: all cameras are inside.
HALF_MM, HEIGHT_MM = 5400.0, 3300.0
FLOORS: dict[str, Callable[[Floats, Floats, int], Floats]] = {"planks": planks, "tiles": tiles, "carpet": plaster}
#: Things along the walls: middle (x, y), half of the length and width, height (mm), colour.
THINGS = (
    ((-4700.0, 1500.0), (350.0, 700.0), 1900.0, (0.22, 0.12, 0.06)),
    ((4800.0, -900.0), (300.0, 500.0), 800.0, (0.45, 0.43, 0.40)),
    ((900.0, 4800.0), (600.0, 300.0), 750.0, (0.10, 0.16, 0.22)),
    ((-1500.0, -4850.0), (450.0, 280.0), 1200.0, (0.30, 0.05, 0.04)),
)


@dataclass(frozen=True)
class Lamp:
    """A rectangle that gives light downwards: its middle and half sizes along x and y (mm), its colour times power."""

    middle: tuple[float, float, float]
    half: tuple[float, float]
    light: tuple[float, float, float]


@dataclass(frozen=True)
class Room:
    """Floor ("planks", "tiles", "carpet") and walls in their colours, lamps, light from everywhere, seed of all."""

    floor: str
    floor_colour: tuple[float, float, float]
    wall_colours: tuple[tuple[float, float, float], ...]
    lamps: tuple[Lamp, ...]
    sky: tuple[float, float, float]
    seed: int


def room_mesh() -> tuple[Floats, Ints]:
    """Return the corners and triangles of the shell (first ten triangles, floor first, then walls) and the things."""
    shell = _box(np.zeros(2), np.array([HALF_MM, HALF_MM]), HEIGHT_MM)
    boxes = [shell] + [_box(np.array(at), np.array(half), high) for at, half, high, _ in THINGS]
    corners = np.concatenate([one[0] for one in boxes])
    faces = np.concatenate([one[1] + 8 * number for number, one in enumerate(boxes)])
    return corners, faces


def _box(middle: Floats, half: Floats, height: float) -> tuple[Floats, Ints]:
    signs = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    ring = middle + signs * half
    corners = np.concatenate([np.c_[ring, np.zeros(4)], np.c_[ring, np.full(4, height)]])
    sides = [[k, (k + 1) % 4, 4 + (k + 1) % 4, 4 + k] for k in range(4)]
    quads = np.array([[0, 1, 2, 3], *sides, [4, 5, 6, 7]])
    return corners, np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]], axis=1).reshape(-1, 3)


def colours_of(room: Room, places: Floats, triangle: Ints) -> Floats:
    """Return the colours (n, 3) of places (n, 3) on the triangles (n,) of `room_mesh`."""
    face, box = triangle // 2 % 6, triangle // 12
    colours = np.full((len(places), 3), 0.7)
    floor = (box == 0) & (face == 0)
    colours[floor] = FLOORS[room.floor](places[floor], np.array(room.floor_colour), room.seed)
    for wall in range(4):
        here = (box == 0) & (face == wall + 1)
        own = np.array(room.wall_colours[wall % len(room.wall_colours)])
        colours[here] = _hung(places[here], plaster(places[here], own, room.seed + 10 + wall), wall, room.seed)
    for number, thing in enumerate(THINGS):
        here = box == number + 1
        colours[here] = plaster(places[here], np.array(thing[3]), room.seed + 30 + number)
    return colours


def _hung(places: Floats, colours: Floats, wall: int, seed: int) -> Floats:
    """Return a wall's colours (n, 3) with a skirting board and two pictures on it."""
    rng = np.random.default_rng(seed + 50 + wall)
    along = places[:, wall % 2]
    colours = np.where(places[:, 2:] < 90.0, 0.35, colours)
    for _ in range(2):
        middle, size = rng.uniform(-3500.0, 3500.0), rng.uniform(300.0, 600.0, 2)
        inside = (np.abs(along - middle) < size[0]) & (np.abs(places[:, 2] - 1700.0) < size[1])
        colours[inside] = plaster(places[inside], rng.uniform(0.03, 0.6, 3), seed + 60 + wall)
    return np.asarray(colours)


def lamp_points(lamps: tuple[Lamp, ...], across: int) -> tuple[Floats, Floats]:
    """Return points (n, 3) spread over the lamps, across times across each, and the light (n, 3) of each."""
    steps = (np.arange(across) + 0.5) / across * 2.0 - 1.0
    x, y = (one.ravel() for one in np.meshgrid(steps, steps))
    spread = [np.array(lamp.middle) + np.c_[x * lamp.half[0], y * lamp.half[1], 0.0 * x] for lamp in lamps]
    lights = [np.tile(np.array(lamp.light) / across**2, (across**2, 1)) for lamp in lamps]
    return np.concatenate(spread), np.concatenate(lights)
