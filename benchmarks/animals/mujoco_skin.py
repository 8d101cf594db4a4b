"""Skins of MuJoCo models (.skn): vertices carried by the model's bodies with weights of their own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.geometry.transforms import rotation_from_quaternion
from skeleton.tree.articulation import Articulation

__all__ = ["Skin", "read_skin"]


@dataclass(frozen=True, eq=False)
class Skin:
    """A skin of V vertices on B bones.

    Attributes:
        vertices: (V, 3) mm. faces: (F, 3).
        bones: B names of bodies.
        places: (B, 3) mm. rotations: (B, 3, 3) of the bodies where the skin was bound.
        weights: (V, B), rows sum to 1.
    """

    vertices: Floats
    faces: Ints
    bones: tuple[str, ...]
    places: Floats
    rotations: Floats
    weights: Floats

    def posed(self, positions: Floats, rotations: Floats) -> Floats:
        """Carry the skin (T, V, 3) with bodies at (T, B, 3) mm, turned (T, B, 3, 3)."""
        turn = rotations @ np.swapaxes(self.rotations, -1, -2)
        shift = positions - np.einsum("tbij,bj->tbi", turn, self.places)
        mixed = np.einsum("vb,tbij->tvij", self.weights, turn, optimize=True)
        return np.asarray(
            np.einsum("tvij,vj->tvi", mixed, self.vertices) + np.einsum("vb,tbi->tvi", self.weights, shift)
        )

    def bodies(self, model: Articulation) -> Ints:
        """(B,) the model's segments that the bones are."""
        return np.array([model.segment_names.index(name) for name in self.bones])


def read_skin(path: Path) -> Skin:
    """Read a skin file; metres become millimetres."""
    raw = path.read_bytes()
    vertices, texture, faces, bones = np.frombuffer(raw, np.int32, 4).tolist()
    at = 16
    places = np.frombuffer(raw, np.float32, 3 * vertices, at).reshape(-1, 3)
    at += 12 * vertices + 8 * texture
    triangles = np.frombuffer(raw, np.int32, 3 * faces, at).reshape(-1, 3)
    at += 12 * faces
    names, centres, turns = [], [], []
    weights = np.zeros((vertices, bones))
    for bone in range(bones):
        names.append(raw[at : at + 40].split(b"\0")[0].decode())
        centres.append(np.frombuffer(raw, np.float32, 3, at + 40))
        turns.append(np.frombuffer(raw, np.float32, 4, at + 52))
        count = int(np.frombuffer(raw, np.int32, 1, at + 68)[0])
        at += 72
        which = np.frombuffer(raw, np.int32, count, at)
        weights[which, bone] = np.frombuffer(raw, np.float32, count, at + 4 * count)
        at += 8 * count
    return Skin(
        1000.0 * places.astype(float),
        triangles.astype(np.int64),
        tuple(names),
        1000.0 * np.array(centres, float),
        rotation_from_quaternion(np.array(turns, float)),
        weights / weights.sum(axis=1, keepdims=True),
    )
