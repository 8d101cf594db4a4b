"""What people wear: parts of a body at rest, painted and standing out from the skin as cloth, hair and shoes do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.people.builds import Build
from benchmarks.people.carrying import MovingPerson
from benchmarks.people.textures import checked, cloudy, striped
from calibration.foundation.arrays import Floats, Ints
from calibration.geometry.meshes import vertex_normals

__all__ = ["Outfit", "dressed", "painted", "parts_of"]

PARTS = ("skin", "hair", "shirt", "legs", "shoes")
#: How far the parts stand out from the skin, mm.
OUT_MM = {"skin": 0.0, "hair": 14.0, "shirt": 11.0, "legs": 8.0, "shoes": 7.0}
#: Bones under a shirt without sleeves, and what sleeves of each length add.
TRUNK = ("spine01", "spine02", "spine03", "spine04", "clavicle", "shoulder01")
SLEEVES = {"none": (), "short": ("upperarm01",), "long": ("upperarm01", "upperarm02", "lowerarm01", "lowerarm02")}
HIPS = ("root", "pelvis", "spine05")
LEGS = {"short": ("upperleg01", "upperleg02"), "long": ("upperleg01", "upperleg02", "lowerleg01", "lowerleg02")}


@dataclass(frozen=True)
class Outfit:
    """Colours (linear, 0 to 1), lengths ("none", "short", "long") and the shirt's pattern ("plain", "striped", ...).

    ``shoes`` None goes barefoot; ``hair_mm``: how far down the neck hair hangs from the eyes' height.
    """

    shirt: tuple[float, float, float]
    legs: tuple[float, float, float]
    skin: tuple[float, float, float] = (0.50, 0.29, 0.20)
    hair: tuple[float, float, float] = (0.035, 0.022, 0.015)
    shoes: tuple[float, float, float] | None = (0.04, 0.04, 0.045)
    shirt_second: tuple[float, float, float] | None = None
    pattern: str = "plain"
    sleeves: str = "short"
    trousers: str = "long"
    hair_mm: float = 60.0


def parts_of(build: Build, outfit: Outfit) -> Ints:
    """Return (V,) which of `PARTS` each vertex of a body belongs to."""
    bone = np.array([name.split(".")[0] for name in build.bones])[build.weights.argmax(axis=1)]
    part = np.zeros(len(bone), int)
    part[np.isin(bone, TRUNK + SLEEVES[outfit.sleeves])] = PARTS.index("shirt")
    part[np.isin(bone, HIPS + LEGS[outfit.trousers])] = PARTS.index("legs")
    if outfit.shoes is not None:
        feet = np.char.startswith(bone, "foot") | np.char.startswith(bone, "toe")
        part[feet] = PARTS.index("shoes")
    eye = build.heads[build.at("eye.L")]
    head = np.isin(bone, ["head", "neck01", "neck02", "neck03"])
    above = build.vertices[:, 2] - eye[2]
    behind = build.vertices[:, 0] < eye[0] - 75.0
    part[head & ((above > 48.0) | (behind & (above > -outfit.hair_mm)))] = PARTS.index("hair")
    return part


def dressed(person: MovingPerson, outfit: Outfit) -> Floats:
    """Return the surface (T, V, 3) of a moving person in clothes."""
    part = parts_of(person.build, outfit)
    out = np.array([OUT_MM[name] for name in PARTS])[part]
    folds = 1.0 + 0.5 * cloudy(person.build.vertices, 90.0, 5)
    surface = np.empty_like(person.vertices)
    for frame, skin in enumerate(person.vertices):
        surface[frame] = skin + (out * folds)[:, None] * vertex_normals(skin, person.build.faces)
    return surface


def painted(places: Floats, part: Ints, outfit: Outfit, seed: int) -> Floats:
    """Return the colours (n, 3) at places (n, 3) of a body at rest, of parts (n,)."""
    shoes = outfit.shoes if outfit.shoes is not None else outfit.skin
    table = np.array([outfit.skin, outfit.hair, outfit.shirt, outfit.legs, shoes])
    colours = table[part]
    shirt = part == PARTS.index("shirt")
    if outfit.shirt_second is not None and shirt.any():
        both = np.array([outfit.shirt, outfit.shirt_second])
        pattern = {"striped": striped, "checked": checked}[outfit.pattern]
        colours[shirt] = pattern(places[shirt], both, 55.0)
    rough = np.array([0.05, 0.3, 0.1, 0.12, 0.1])[part]
    return np.asarray(colours * (1.0 + rough * cloudy(places, 60.0, seed, 4))[:, None])
