"""A skirt: a cone around the hips whose hem goes with the thighs by half, as cloth that no template knows."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from benchmarks.people.carrying import MovingPerson
from calibration.foundation.arrays import Floats, Ints

__all__ = ["AROUND", "closed_rings", "skirt"]

AROUND, ROWS = 24, 8
#: Of the leg's length; of its radius; what share of the thighs' turn the hem takes.
LENGTH, FLARE, FOLLOWS = 0.55, 0.4, 0.6
WAIST_MM = 60.0


def skirt(person: MovingPerson) -> tuple[Floats, Ints]:
    """Return the vertices (T, V, 3) of a skirt and its faces."""
    build = person.build
    at = {name: build.at(name) for name in ("root", "upperleg01.L", "upperleg01.R", "foot.L")}
    radius = 0.95 * float(np.linalg.norm(build.way("upperleg01.L", "upperleg01.R")))
    leg = float(np.linalg.norm(build.way("upperleg01.L", "foot.L")))
    angle = np.linspace(0.0, 2.0 * np.pi, AROUND, endpoint=False)
    down = np.repeat(np.linspace(0.0, 1.0, ROWS), AROUND)
    angle = np.tile(angle, ROWS)
    wide = radius * (1.0 + FLARE * down)
    rest = np.stack([0.8 * wide * np.cos(angle), wide * np.sin(angle), WAIST_MM - LENGTH * leg * down], axis=1)
    vertices = np.empty((len(person.heads), len(rest), 3))
    for frame, (heads, turns) in enumerate(zip(person.heads, person.turns, strict=True)):
        pelvis, cloth = turns[at["root"]], rest.copy()
        for side, mine in (("L", np.sin(angle) > 0.0), ("R", np.sin(angle) <= 0.0)):
            thigh = at[f"upperleg01.{side}"]
            hip = build.heads[thigh] - build.heads[at["root"]]
            swing = Rotation.from_matrix(pelvis.T @ turns[thigh]).as_rotvec()
            partly = Rotation.from_rotvec(FOLLOWS * down[mine, None] * swing)
            cloth[mine] = partly.apply(rest[mine] - hip) + hip
        vertices[frame] = cloth @ pelvis.T + heads[at["root"]]
    return vertices, closed_rings(ROWS)


def closed_rings(rows: int) -> Ints:
    """Return the faces (F, 3) of rings of `AROUND` vertices, one below the other: wall, waist and hem."""
    row, column = np.divmod(np.arange((rows - 1) * AROUND), AROUND)
    beside = (column + 1) % AROUND
    a, b = row * AROUND + column, row * AROUND + beside
    wall = np.concatenate([np.stack([a, b, a + AROUND], axis=1), np.stack([b, b + AROUND, a + AROUND], axis=1)])
    fan = np.stack([np.zeros(AROUND - 2, int), np.arange(1, AROUND - 1), np.arange(2, AROUND)], axis=1)
    return np.concatenate([wall, fan, fan + (rows - 1) * AROUND])
