"""Bone shapes: closed meshes per segment, plain but right in length, thickness and place, to cast X-ray shadows.

Tables of `bodies/flesh/<name>.toml` may hold single shapes, or one of three families that are written out here:
``long = r`` a shaft of radius r with thicker ends; ``vertebrae = n`` a row of bodies with spinous and transverse
processes; ``ribs = n`` pairs of arcs from the spine to the sternum.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from skimage.measure import marching_cubes

from calibration.foundation.arrays import Floats, Ints
from skeleton.actors.meshing import fill_grid, project
from skeleton.actors.shapes import Shapes, load_flesh, shapes_from_tables
from skeleton.tree.joint_tree import Pose, Skeleton

__all__ = ["Bone", "build_bones"]


@dataclass(frozen=True, eq=False)
class Bone:
    """The bones of one segment.

    Attributes:
        name: anatomical name of the segment.
        segment: joint index that carries it.
        vertices: (V, 3) in the segment's frame, mm.
        faces: (F, 3) closed, outward; separate bones (ribs) are separate parts.
    """

    name: str
    segment: int
    vertices: Floats
    faces: Ints

    def posed(self, pose: Pose) -> Floats:
        """Return world vertices (T, V, 3), mm."""
        turned = np.einsum("tij,vj->tvi", pose.rotations[:, self.segment], self.vertices)
        return np.asarray(turned + pose.positions[:, self.segment, None])


def build_bones(body: str, skeleton: Skeleton, length: Floats) -> tuple[Bone, ...]:
    """Mesh the bones of a subject; ``length`` (J,) are its length factors, which also thicken the bones."""
    flesh = load_flesh(body)
    tables = [single for table in flesh.bones for single in _written_out(table, skeleton, length)]
    owners = np.array([skeleton.index(table["segment"]) for table in tables])
    shapes = shapes_from_tables(tables, skeleton, length, length[owners])
    rest = skeleton.forward(skeleton.rest())
    out = []
    for j, joint in enumerate(skeleton.joints):
        mine = np.flatnonzero(shapes.segments == j)
        if len(mine) == 0:
            continue
        packed = _subset(shapes, mine).posed(rest)
        vertices, faces = _mesh(packed, flesh.bone_voxel_mm * float(length[j]))
        out.append(Bone(joint.segment, j, vertices - rest.positions[0, j], faces))
    return tuple(out)


def _subset(shapes: Shapes, rows: Ints) -> Shapes:
    names = ("segments", "kinds", "start", "end", "radii", "turns", "blend")
    return Shapes(*(getattr(shapes, name)[rows] for name in names))


def _mesh(packed: Floats, cell: float) -> tuple[Floats, Ints]:
    grid, origin = fill_grid(packed, cell)
    points, faces, _, _ = marching_cubes(grid, 0.0)
    points = project(np.ascontiguousarray(points, dtype=np.float64) * cell + origin, packed, cell, steps=2)
    return points, np.ascontiguousarray(faces, dtype=np.int64)


def _written_out(table: dict[str, Any], skeleton: Skeleton, length: Floats) -> Iterable[dict[str, Any]]:
    segment = skeleton.index(table["segment"])
    rest = skeleton.forward(skeleton.rest())
    base = {"segment": table["segment"], "blend": float(table.get("blend", 0.3))}
    if not any(key in table for key in ("long", "vertebrae", "ribs")):
        yield table
        return

    # Ends in the segment's frame, in the built-in body's millimetres (shapes_from_tables applies the lengths).
    ends = []
    for key in ("from", "to"):
        s, offset = skeleton.point(table[key])
        local = (rest.positions[0, s] + offset - rest.positions[0, segment]) / length[segment]
        ends.append(local + np.array(table.get(f"{key}_shift", [0.0, 0.0, 0.0])))
    a, b = ends

    def capsule(start: Floats, end: Floats, one: float, two: float) -> dict[str, Any]:
        row = {"from": table["segment"], "to": table["segment"], "radius": [one, two]}
        return {**base, **row, "from_shift": start.tolist(), "to_shift": end.tolist()}

    if "long" in table:
        r = float(table["long"])
        yield capsule(a, b, r, r)
        yield capsule(a, a + 0.14 * (b - a), 1.7 * r, 1.1 * r)
        yield capsule(b - 0.16 * (b - a), b, 1.1 * r, 1.8 * r)
    elif "vertebrae" in table:
        count, r = int(table["vertebrae"]), float(table["radius"])
        step = (b - a) / count
        processes = float(table.get("processes", 1.0))
        for i in range(count):
            start, middle = a + i * step, a + (i + 0.5) * step
            yield capsule(start + 0.2 * step, start + 0.8 * step, r, r)
            if processes > 0:
                up = np.array([-0.25 * np.linalg.norm(step), 0.0, 2.3 * r * processes])
                yield capsule(middle, middle + up, 0.55 * r, 0.3 * r)
                for side in (-1.0, 1.0):
                    yield capsule(middle, middle + np.array([0.0, side * 2.0 * r * processes, 0.0]), 0.5 * r, 0.3 * r)
    else:
        count, r = int(table["ribs"]), float(table["radius"])
        wide, deep, swept = (float(table[key]) for key in ("half_width", "depth", "swept"))
        angles = np.linspace(0.15, 0.96, 9) * np.pi
        for i in range(count):
            root = a + (i + 0.5) / count * (b - a)
            for side in (-1.0, 1.0):
                arc = np.stack(
                    [
                        swept * (angles / np.pi) ** 2,
                        side * wide * np.sin(angles),
                        -0.5 * deep * (1 - np.cos(angles)),
                    ],
                    axis=1,
                )
                for one, two in itertools.pairwise(arc):
                    yield capsule(root + one, root + two, r, r)
        tip = np.array([swept, 0.0, -deep])
        yield capsule(a + tip, b + tip, 1.4 * r, 1.4 * r)
