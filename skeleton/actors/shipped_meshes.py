"""Meshes of the built-in bodies' flesh, made ahead of time (a second each)::

python -m skeleton.actors.shipped_meshes
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.files import atomic_path
from calibration.foundation.npz_files import read_npz
from skeleton.actors.meshing import mesh_solid
from skeleton.actors.shapes import bind_pose, load_flesh, shapes_from_tables
from skeleton.bodies import BODIES, load_body

__all__ = ["made_mesh", "shipped_mesh"]

_FOLDER = Path(__file__).parents[1] / "bodies" / "flesh"


def made_mesh(body: str) -> tuple[Floats, Ints]:
    """Mesh the flesh of a built-in body in its bind pose: vertices (V, 3) mm, faces (F, 3)."""
    skeleton, flesh = load_body(body), load_flesh(body)
    shapes = shapes_from_tables(flesh.skin, skeleton, np.ones(len(skeleton.joints)), np.ones(len(flesh.skin)))
    sizes = np.array([float(table.get("size", 1.0)) for table in flesh.skin])
    return mesh_solid(
        shapes.posed(bind_pose(skeleton, flesh)), cell=flesh.voxel_mm, vertices=flesh.vertices, sizes=sizes
    )


def shipped_mesh(body: str) -> tuple[Floats, Ints]:
    """Return that mesh as it lies beside the table of flesh."""
    found = read_npz(_FOLDER / f"{body}.npz", "mesh of a built-in body")
    return found["vertices"].astype(np.float64), found["faces"].astype(np.int64)


def main() -> None:
    """Write the meshes of all bodies."""
    for body in BODIES:
        vertices, faces = made_mesh(body)
        with atomic_path(_FOLDER / f"{body}.npz") as temporary, open(temporary, "wb") as stream:
            np.savez_compressed(stream, vertices=vertices, faces=faces.astype(np.uint16))


if __name__ == "__main__":
    main()
