"""Triangle meshes as arrays: what several packages need of them."""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Floats, Ints

__all__ = ["vertex_normals"]


def vertex_normals(vertices: Floats, faces: Ints) -> Floats:
    """Return (V, 3) unit normals, faces weighted by area; zero where a vertex has no area."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    across = np.cross(b - a, c - a)
    total = np.zeros((len(vertices), 3))
    for k in range(3):
        for axis in range(3):
            total[:, axis] += np.bincount(faces[:, k], across[:, axis], len(vertices))
    return np.asarray(total / np.maximum(np.linalg.norm(total, axis=1, keepdims=True), 1e-12))
