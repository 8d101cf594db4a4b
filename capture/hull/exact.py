"""The exact engine: the polyhedron bounded by the cones over the silhouettes' outlines.

Each outline, holes included, becomes a cone with its tip in the camera; manifold3d intersects all of them at once,
exactly and always watertight. A view that shows a part of the subject only says what is *not* there: the cone over the
rest of its frame is subtracted instead, and nothing outside the frame is carved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import manifold3d
import numpy as np
from numpy.typing import NDArray

from calibration.cameras.camera import Camera
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Floats
from capture.hull.agreement import silhouette_agreement
from capture.hull.bounds import Box
from capture.hull.contours import Outline, mask_contours, outline_of
from capture.hull.distance import Extent, Outside
from capture.hull.implicit import gather
from capture.hull.result import Hull, HullFlag, no_hull

__all__ = ["cone", "exact_hull"]

#: Outlines are simplified by at most this much by default, px: the steps of a binary mask are about as high.
TOLERANCE_PX = 0.7


def cone(outline: Outline, far: float, tolerance_px: float) -> manifold3d.Manifold:
    """Return the solid over an outline from its camera's centre to a depth along the forward axis, mm.

    The tip makes half as many triangles as a cut before the subject would, and the intersection a fifth faster.
    """
    section = manifold3d.CrossSection(
        [np.ascontiguousarray(polygon) for polygon in outline.polygons], manifold3d.FillRule.EvenOdd
    ).simplify(tolerance_px)
    polygons = [np.asarray(polygon, dtype=np.float64) for polygon in section.to_polygons()]
    if not polygons:
        return manifold3d.Manifold()
    caps = np.asarray(manifold3d.triangulate(polygons))
    points = np.concatenate(polygons) / outline.scale
    rays = outline.forward + points[:, :1] * outline.right + points[:, 1:] * outline.down
    # Every outline has a tip of its own: a vertex shared by two of them would not be manifold.
    vertices = np.concatenate([outline.centre + far * rays, np.repeat(outline.centre[None], len(polygons), axis=0)])
    sides = []
    start = 0
    for number, polygon in enumerate(polygons):
        here = np.arange(len(polygon))
        tip = np.full(len(polygon), len(points) + number)
        # Counter-clockwise outlines, the solid on their left, seen along (right, down, forward): a right-handed
        # frame whose z runs from the camera to the cap.
        sides.append(np.stack([tip, start + (here + 1) % len(polygon), start + here], axis=1))
        start += len(polygon)
    faces = np.concatenate([caps, *sides]).astype(np.uint64)
    return manifold3d.Manifold(manifold3d.Mesh64(vert_properties=vertices, tri_verts=faces))


def intersect(outlines: Sequence[Outline], box: Box, tolerance_px: float = TOLERANCE_PX) -> manifold3d.Manifold:
    """Return the common part of the cones within a box, less the cones of complement outlines."""
    corners = np.stack(np.meshgrid(*zip(box.low, box.high, strict=True), indexing="ij"), axis=-1).reshape(-1, 3)
    kept: list[manifold3d.Manifold] = []
    carved: list[manifold3d.Manifold] = []
    for outline in outlines:
        depths = (corners - outline.centre) @ outline.forward
        far = float(depths.max()) * 1.05
        if far <= 0:
            return manifold3d.Manifold()
        (carved if outline.complement else kept).append(cone(outline, far, tolerance_px))
    if not kept:
        size = box.size
        kept.append(manifold3d.Manifold.cube(tuple(size.tolist())).translate(tuple(box.low.tolist())))
    result = manifold3d.Manifold.batch_boolean(kept, manifold3d.OpType.Intersect) if len(kept) > 1 else kept[0]
    if carved:
        result = manifold3d.Manifold.batch_boolean([result, *carved], manifold3d.OpType.Subtract)
    return result


def exact_hull(
    silhouettes: Sequence[NDArray[Any] | None],
    rig: Rig,
    bounds: Box | None = None,
    *,
    views: NDArray[np.bool_] | None = None,
    wanted_views: int | None = None,
    outside: Outside = Outside.AUTO,
    tolerance_px: float = TOLERANCE_PX,
    score: bool = True,
) -> Hull:
    """Return the exact visual hull of one frame: watertight, manifold, and its silhouettes are the input ones.

    Args:
        silhouettes: one per camera: (H, W) mask or alpha matte, or None (not observed).
        rig: the calibrated cameras.
        bounds: where to look; by default found from the silhouettes.
        views: (C,) False leaves a view out.
        wanted_views: fewer complete views than this flag the frame; by default three quarters of the rig.
        outside: what to assume outside a view's frame.
        tolerance_px: how much the outlines may be simplified.
        score: also draw the hull into the views and measure the agreement.
    """
    evidence = gather(silhouettes, rig, views=views, bounds=bounds, wanted_views=wanted_views, outside=outside)
    if evidence.box is None:
        return no_hull(len(rig), evidence.used, evidence.flags)
    masks = [silhouettes[int(index)] for index in np.flatnonzero(evidence.used)]
    outlines = []
    for camera, image, mask in zip(evidence.cameras, evidence.images, masks, strict=True):
        if mask is None:
            continue
        contours = mask_contours(mask, complement=not image.carves_outside)
        outlines.append(outline_of(camera, contours, complement=not image.carves_outside))
    solid = intersect(outlines, evidence.box, tolerance_px)
    mesh = solid.to_mesh64()
    vertices: Floats = np.ascontiguousarray(np.asarray(mesh.vert_properties, dtype=np.float64)[:, :3])
    faces = np.ascontiguousarray(np.asarray(mesh.tri_verts).astype(np.int32))
    if len(faces) == 0:
        return no_hull(len(rig), evidence.used, evidence.flags | HullFlag.EMPTY_HULL)
    flags = evidence.flags
    if any(image.view is not Extent.COMPLETE for image in evidence.images):
        margin = 1e-6 * float(evidence.box.size.max())
        if (vertices.min(axis=0) <= evidence.box.low + margin).any() or (
            vertices.max(axis=0) >= evidence.box.high - margin
        ).any():
            flags |= HullFlag.CUT_BY_BOUNDS
    agreement = np.full(len(rig), np.nan)
    if score:
        agreement[evidence.used] = _agreement(evidence.cameras, masks, vertices, faces)
    return Hull(vertices, faces, float(solid.volume()), evidence.used, agreement, int(flags))


def _agreement(
    cameras: Sequence[Camera], masks: Sequence[NDArray[Any] | None], vertices: Floats, faces: NDArray[np.int32]
) -> Floats:
    binary = [
        None if mask is None else mask if mask.dtype == np.bool_ else mask > (127 if mask.dtype == np.uint8 else 0.5)
        for mask in masks
    ]
    return silhouette_agreement(cameras, binary, vertices, faces)
