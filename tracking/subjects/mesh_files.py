"""Triangle meshes of other programs: one file, or a folder with one file per frame."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from calibration.foundation.arrays import HUGE, Floats, Ints
from calibration.foundation.damaged_files import reading, require_file
from calibration.foundation.errors import InputError
from calibration.foundation.names import natural_key

__all__ = ["SUFFIXES", "UPRIGHT", "joined", "mesh_paths", "mesh_volume", "raw_mesh", "read_mesh", "require_closed"]

_LARGEST_MB = 500
SUFFIXES = (".ply", ".obj", ".stl", ".glb", ".gltf", ".off")

#: Turn that brings each vertical axis to z, the other two kept in order.
UPRIGHT = {
    "x": np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]),
    "y": np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
    "z": np.eye(3),
}


def mesh_paths(folder: Path | str) -> list[Path]:
    """Return the mesh files of a folder in natural order (frame_2 before frame_10).

    Raises:
        InputError: there is no such folder, it holds no mesh, or meshes of several kinds (copies of one another?).
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder of meshes")
    paths = sorted(
        (path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES), key=lambda path: natural_key(path.name)
    )
    kinds = sorted({path.suffix.lower() for path in paths})
    if not paths:
        raise InputError(f"{folder}: holds no mesh; wanted one file per frame, {' '.join(SUFFIXES)}")
    if len(kinds) > 1:
        raise InputError(
            f"{folder}: holds meshes of several kinds ({', '.join(kinds)}); keep one kind, a file per frame"
        )
    return paths


def read_mesh(path: Path | str, *, unit_mm: float = 1.0, up: str = "z") -> tuple[Floats, Ints]:
    """Read one mesh, its double vertices joined.

    Args:
        path: a file of one of `SUFFIXES`; the parts of a scene are joined.
        unit_mm: millimetres in one unit of the file.
        up: its vertical axis, brought to z.

    Returns:
        vertices: (V, 3) mm, z up.
        faces: (F, 3).
    """
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: not a mesh file; wanted {' '.join(SUFFIXES)}")
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    vertices, faces = _loaded(path)
    vertices = unit_mm * vertices @ UPRIGHT[up].T
    return joined(vertices, faces)


def raw_mesh(path: Path) -> tuple[int, Ints]:
    """Return how many vertices a mesh file has and its faces (F, 3), as they stand in it."""
    vertices, faces = _loaded(path)
    return len(vertices), faces


def _loaded(path: Path) -> tuple[Floats, Ints]:
    """Read a mesh as it stands in its file; compiled code will index its vertices by its faces, so they are checked."""
    import trimesh  # a tenth of what a worker would import

    require_file(path, most_mb=_LARGEST_MB)
    with reading(path, "a mesh", also=(UnboundLocalError,)), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        mesh = trimesh.load(path, force="mesh", process=False)
        vertices = np.asarray(mesh.vertices, np.float64).reshape(-1, 3)
        faces = np.asarray(mesh.faces, np.int64).reshape(-1, 3)
    if not len(faces) or not len(vertices):
        raise InputError(f"{path}: holds no triangles")
    if not np.abs(vertices).max() < HUGE or faces.min() < 0 or faces.max() >= len(vertices):
        raise InputError(f"{path}: its vertices are not finite, or its triangles name vertices that are not there")
    return vertices, faces


def joined(vertices: Floats, faces: Ints) -> tuple[Floats, Ints]:
    """Join vertices at one place (files of separate triangles, seams of texture), drop those of no triangle."""
    size = float(np.ptp(vertices, axis=0).max())
    keys = np.round(vertices / max(1e-7 * size, 1e-300)).astype(np.int64)
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    faces = first[inverse.ravel()][faces]  # each place is stood for by its first vertex, so that the order stays
    faces = faces[(faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])]
    used, faces = np.unique(faces, return_inverse=True)
    return vertices[used], np.asarray(faces.reshape(-1, 3), np.int64)


def require_closed(vertices: Floats, faces: Ints, what: str) -> Ints:
    """Check that a mesh is closed and turn its triangles outwards; return them.

    Raises:
        InputError: an edge does not have two triangles that run along it in opposite ways, or there is no volume.
    """
    half = faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    count = np.unique(np.sort(half, axis=1), axis=0, return_counts=True)[1]
    if (count != 2).any():
        raise InputError(
            f"{what}: the template is not closed: {int((count != 2).sum())} edges do not have two faces; "
            "fill its holes and join double vertices (MeshLab, Blender), then try again"
        )
    if len(np.unique(half, axis=0)) != len(half):
        raise InputError(f"{what}: neighbouring triangles face opposite ways; orient them alike")
    return faces if _signed_volume(vertices, faces) > 0 else np.ascontiguousarray(faces[:, ::-1])


def mesh_volume(vertices: Floats, faces: Ints) -> float:
    """Return the volume of a mesh, mm^3; of one with small holes, about."""
    return abs(_signed_volume(vertices - vertices.mean(axis=0), faces))


def _signed_volume(vertices: Floats, faces: Ints) -> float:
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    return float(np.sum(a * np.cross(b, c))) / 6.0
