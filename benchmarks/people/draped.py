"""Cloth that hangs or hugs, each made in its own way and none as the tracker draws it.

A draped skirt falls straight down from whatever of hips and legs stands out furthest above, in each direction for
itself, and is slow to fall back; wide trousers and sleeves are the body's own skin, moved out and fluttering.
"""

from __future__ import annotations

import numpy as np

from benchmarks.people.carrying import MovingPerson
from benchmarks.people.skirts import AROUND, closed_rings
from calibration.foundation.arrays import Floats, Ints
from calibration.geometry.meshes import vertex_normals

__all__ = ["draped_skirt", "wide_clothes"]

LEVELS = 10
#: Of the leg's length; room between cloth and legs, mm; share of its width that it keeps from one frame to the next.
DRAPED_LENGTH, EASE_MM, SLOW = 0.75, 25.0, 0.85
#: Bones that wide clothes cover, how far out they stand there, mm, and by how much of that they flutter.
WIDE = {"upperleg01": 25.0, "upperleg02": 35.0, "lowerleg01": 45.0, "lowerleg02": 55.0, "upperarm01": 15.0,
        "upperarm02": 20.0, "lowerarm01": 30.0}  # fmt: skip
FLUTTER = 0.4


def draped_skirt(person: MovingPerson) -> tuple[Floats, Ints]:
    """Return the vertices (T, V, 3) of a skirt that hangs over hips and legs, and its faces."""
    build = person.build
    hips = [build.at(f"upperleg01.{side}") for side in "LR"]
    leg = float(np.linalg.norm(build.way("upperleg01.L", "foot.L")))
    bones = [k for k, name in enumerate(build.bones) if name.startswith(("root", "pelvis", "upperleg", "lowerleg"))]
    legs = np.flatnonzero(build.weights[:, bones].sum(axis=1) > 0.5)
    angle = np.linspace(0.0, 2.0 * np.pi, AROUND, endpoint=False)
    ways = np.stack([np.cos(angle), np.sin(angle)])
    wide = np.zeros((LEVELS, AROUND))
    vertices = []
    for skin, heads in zip(person.vertices, person.heads, strict=True):
        middle = heads[hips].mean(axis=0)
        top, hem = middle[2] + 60.0, middle[2] - DRAPED_LENGTH * leg
        heights = np.linspace(top, hem, LEVELS)
        points = skin[legs]
        out = (points[:, :2] - middle[:2]) @ ways
        now = np.array([out[(points[:, 2] > low) & (points[:, 2] < top + 40.0)].max(axis=0) for low in heights - 20.0])
        wide = np.maximum(now + EASE_MM, SLOW * wide)
        rings = np.empty((LEVELS, AROUND, 3))
        rings[..., :2] = middle[:2] + wide[..., None] * ways.T
        rings[..., 2] = heights[:, None]
        vertices.append(rings.reshape(-1, 3))
    return np.array(vertices), closed_rings(LEVELS)


def wide_clothes(person: MovingPerson) -> MovingPerson:
    """Return a person whose skin is that of wide trousers and sleeves."""
    build = person.build
    far = np.zeros(len(build.vertices))
    for name, out in WIDE.items():
        far += out * build.weights[:, [build.at(f"{name}.{side}") for side in "LR"]].sum(axis=1)
    along = build.vertices[:, 2] / 120.0
    skin = np.empty_like(person.vertices)
    for frame, vertices in enumerate(person.vertices):
        moving = 1.0 + FLUTTER * np.sin(along + 0.35 * frame)
        skin[frame] = vertices + (far * moving)[:, None] * vertex_normals(vertices, build.faces)
    return MovingPerson(build, skin, person.heads, person.turns)
