"""Thinned meshes of the built-in bodies, and the quads grown around them, made ahead of time.

Open3D, which thins them, takes a second to load, and growing a person's quads another::

python -m tracking.subjects.shipped_templates
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.files import atomic_path
from calibration.foundation.npz_files import read_npz
from skeleton.actors.actor import build_actor
from skeleton.bodies import BODIES
from tracking.quads.body_rig import CUTS, place_body_rig
from tracking.quads.template import OUTLINE_VERTICES, STEP_VERTICES, thinned

__all__ = ["made_extents", "made_templates", "shipped_extents", "shipped_templates"]

Mesh = tuple[Floats, Ints]


def made_templates(body: str) -> tuple[Mesh, Mesh]:
    """Thin the mesh of a built-in body of its own size: vertices (V, 3) mm and faces (F, 3) for outlines and steps."""
    actor = build_actor(body)
    outline = thinned(place_body_rig(actor).vertices, actor.faces, OUTLINE_VERTICES)
    return outline, thinned(*outline, STEP_VERTICES)


def shipped_templates(body: str) -> tuple[Mesh, Mesh]:
    """Return those meshes as they lie beside the body's quads."""
    found = read_npz(_path(body), "thinned meshes of a built-in body")
    outline, step = (
        (found[f"{name}_vertices"].astype(np.float64), found[f"{name}_faces"].astype(np.int64))
        for name in ("outline", "step")
    )
    return outline, step


def made_extents(body: str) -> Floats:
    """Grow the quads of a built-in body of its own size until their cage holds it; return their sides (Q, 4) mm.

    On one thread: sums over more have other last digits, by which the rat's quads end 0.01 mm elsewhere.
    """
    with threadpool_limits(limits=1, user_api="blas"):
        return place_body_rig(build_actor(body)).enclosure.rig.extents


def shipped_extents(body: str) -> Floats:
    """Return those sides as they lie beside the body's quads."""
    return read_npz(_path(body), "thinned meshes of a built-in body")["extents"].astype(np.float64)


def _path(body: str) -> Path:
    return CUTS / body / "thinned.npz"


def main() -> None:
    """Write meshes and quads of all bodies."""
    for body in BODIES:
        arrays: dict[str, Any] = {"extents": made_extents(body)}
        for name, (vertices, faces) in zip(("outline", "step"), made_templates(body), strict=True):
            arrays |= {f"{name}_vertices": vertices, f"{name}_faces": faces.astype(np.uint16)}
        with atomic_path(_path(body)) as temporary, open(temporary, "wb") as stream:
            np.savez_compressed(stream, **arrays)


if __name__ == "__main__":
    main()
