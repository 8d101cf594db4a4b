"""Soft tissue on top of skinning: bulging muscles, skin that slides over bone, constant volume, breathing.

All of it is a function of pose and time alone, so that any frame can be made without the frames before it.
Each effect has a mask over the skin: a Gaussian around a point of the bind pose times the local looseness of the
skin, which is 1 on trunk and thigh and 0 at paws, tail and nose.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.compiled import compiled
from calibration.geometry.transforms import vector_from_rotation
from skeleton.tree.joint_tree import Pose, Skeleton

__all__ = ["Tissue", "build_tissue", "tissue_drives"]


@dataclass(frozen=True, eq=False)
class Tissue:
    """Masks over V skin vertices and what drives them.

    Attributes:
        bulge_joints: (B,) joints whose angle drives each bulge; ``bulge_axes`` (B, 3) the axis of that angle in the
            parent's frame, ``bulge_mm`` (B,) height at one radian, ``bulge_masks`` (B, V).
        slide_segments: (S,) segments over which the skin slides; ``slide_probes`` (S,) segments and
            ``slide_offsets`` (S, 3) points that drag it, ``slide_rest`` (S, 3) the probe at rest in the segment's
            frame, ``slide_gain`` (S,) mm per mm, ``slide_limit`` (S,) mm, ``slide_masks`` (S, V).
        soft_mask: (V,) where the flesh gives way to keep the volume; ``soft_area`` its integral, mm^2.
        soft_share: share of a volume change that is given back; ``soft_limit`` largest displacement, mm.
        breath_masks: (2, V) chest and belly; ``breath_mm``, ``breath_hz``.
    """

    bulge_joints: Ints
    bulge_axes: Floats
    bulge_mm: Floats
    bulge_masks: Floats
    slide_segments: Ints
    slide_probes: Ints
    slide_offsets: Floats
    slide_rest: Floats
    slide_gain: Floats
    slide_limit: Floats
    slide_masks: Floats
    soft_mask: Floats
    soft_area: float
    soft_share: float
    soft_limit: float
    breath_masks: Floats
    breath_mm: float
    breath_hz: float


def build_tissue(
    numbers: Mapping[str, Any],
    skeleton: Skeleton,
    bind: Pose,
    points: Floats,
    area: Floats,
    weights: Floats,
    scale: float,
) -> Tissue:
    """Make the masks of ``points`` (V, 3) in the ``bind`` pose; ``scale`` is the subject's mean length factor."""
    looseness = np.array([_loose(numbers["loose"], name) for name in skeleton.joint_names])
    loose = weights @ looseness

    def masks(tables: Sequence[Mapping[str, Any]], strength: Floats) -> Floats:
        out = np.zeros((len(tables), len(points)))
        for row, table in zip(out, tables, strict=True):
            s = skeleton.index(table["segment"])
            centre = bind.positions[0, s] + bind.rotations[0, s] @ (scale * np.array(table["offset"], float))
            square = ((points - centre) ** 2).sum(1) / (scale * float(table["radius"])) ** 2
            row[:] = np.exp(-0.5 * square) * strength
        return out

    bulges, slides, soft, breath = (numbers[key] for key in ("bulge", "slide", "soft", "breath"))
    probes, offsets = skeleton.points([table["probe"] for table in slides])
    rest = skeleton.forward(skeleton.rest())
    over = np.array([skeleton.index(table["segment"]) for table in slides], dtype=np.int64)
    soft_mask = masks(soft, loose).max(axis=0)
    return Tissue(
        bulge_joints=np.array([skeleton.index(table["joint"]) for table in bulges], dtype=np.int64),
        bulge_axes=np.array([table["axis"] for table in bulges], dtype=np.float64),
        bulge_mm=scale * np.array([table["mm"] for table in bulges], dtype=np.float64),
        bulge_masks=masks(bulges, np.ones(len(points))),
        slide_segments=over,
        slide_probes=probes,
        slide_offsets=offsets,
        slide_rest=rest.points(probes, offsets)[0] - rest.positions[0, over],
        slide_gain=np.array([table["gain"] for table in slides], dtype=np.float64),
        slide_limit=scale * np.array([table["limit_mm"] for table in slides], dtype=np.float64),
        slide_masks=masks(slides, loose),
        soft_mask=soft_mask,
        soft_area=float((soft_mask * area).sum()),
        soft_share=float(numbers["soft_share"]),
        soft_limit=scale * float(numbers["soft_limit_mm"]),
        breath_masks=masks(breath, loose),
        breath_mm=scale * float(numbers["breath_mm"]),
        breath_hz=float(numbers["breath_hz"]),
    )


def _loose(table: Mapping[str, float], joint: str) -> float:
    """Return the looseness of a segment's skin: the entry whose key its name contains, 1 if none does."""
    for key, value in table.items():
        if key in joint:
            return float(value)
    return 1.0


def tissue_drives(tissue: Tissue, skeleton: Skeleton, pose: Pose) -> tuple[Floats, Floats]:
    """Return bulge heights (T, B) mm and slide vectors (T, S, 3) mm, world, of a pose.

    Bulge: ``mm * tanh(angle)``. Slide: the probe's displacement in the segment's frame since rest, times the gain,
    with its length bent smoothly to the limit (``u tanh(|u|/limit) limit/|u|``).
    """
    parents = skeleton.parents[tissue.bulge_joints]
    turn = np.einsum("tbji,tbjk->tbik", pose.rotations[:, parents], pose.rotations[:, tissue.bulge_joints])
    angle = np.einsum("tbi,bi->tb", vector_from_rotation(turn), tissue.bulge_axes)
    bulge = tissue.bulge_mm * np.tanh(angle)
    over = tissue.slide_segments
    probe = pose.points(tissue.slide_probes, tissue.slide_offsets) - pose.positions[:, over]
    local = np.einsum("tsji,tsj->tsi", pose.rotations[:, over], probe) - tissue.slide_rest
    drag = local * tissue.slide_gain[:, None]
    length = np.linalg.norm(drag, axis=2, keepdims=True)
    limit = tissue.slide_limit[:, None]
    drag *= limit * np.tanh(length / limit) / np.maximum(length, 1e-12)
    return bulge, np.einsum("tsij,tsj->tsi", pose.rotations[:, over], drag)


@compiled
def add_tissue(
    out: Floats, normals: Floats, bulge_masks: Floats, bulge: Floats, slide_masks: Floats, slide: Floats
) -> None:
    """Add bulges along the normals and slides along the surface to skinned vertices (T, V, 3), in place."""
    for t in range(out.shape[0]):
        for v in range(out.shape[1]):
            nx, ny, nz = normals[t, v, 0], normals[t, v, 1], normals[t, v, 2]
            height = 0.0
            for b in range(bulge.shape[1]):
                height += bulge_masks[b, v] * bulge[t, b]
            x = 0.0
            y = 0.0
            z = 0.0
            for s in range(slide.shape[1]):
                m = slide_masks[s, v]
                if m > 1e-3:
                    x += m * slide[t, s, 0]
                    y += m * slide[t, s, 1]
                    z += m * slide[t, s, 2]
            height -= x * nx + y * ny + z * nz  # tangential part of the slide only
            out[t, v, 0] += x + height * nx
            out[t, v, 1] += y + height * ny
            out[t, v, 2] += z + height * nz


@compiled
def volumes(points: Floats, faces: Ints) -> Floats:
    """Return the enclosed volume (T,) of meshes (T, V, 3), mm^3."""
    out = np.zeros(points.shape[0])
    for t in range(points.shape[0]):
        total = 0.0
        ox, oy, oz = points[t, 0, 0], points[t, 0, 1], points[t, 0, 2]
        for f in range(faces.shape[0]):
            a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
            ax, ay, az = points[t, a, 0] - ox, points[t, a, 1] - oy, points[t, a, 2] - oz
            bx, by, bz = points[t, b, 0] - ox, points[t, b, 1] - oy, points[t, b, 2] - oz
            cx, cy, cz = points[t, c, 0] - ox, points[t, c, 1] - oy, points[t, c, 2] - oz
            total += ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx)
        out[t] = total / 6.0
    return out


@compiled
def inflate(out: Floats, normals: Floats, mask: Floats, heights: Floats) -> None:
    """Move vertices (T, V, 3) along their normals by ``mask * heights``, in place; heights (T,) mm."""
    for t in range(out.shape[0]):
        if heights[t] == 0.0 or math.isnan(heights[t]):
            continue
        for v in range(out.shape[1]):
            for i in range(3):
                out[t, v, i] += mask[v] * heights[t] * normals[t, v, i]
