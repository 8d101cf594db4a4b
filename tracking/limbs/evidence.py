"""What the silhouettes say of each limb in one frame: how much of it stands in empty air, and what near it is missing.

The limbs are drawn one by one, small, into every view. A limb's share that lies further outside the silhouette than the
model errs is *outside*; silhouette that lies further from the whole model is *missing*, and is put down to the limb
that is nearest in the image. Neither needs the recording's usual level.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from calibration.cameras.projection import project_point
from calibration.foundation.arrays import Bools, Bytes, Floats, Ints
from calibration.foundation.compiled import compiled
from tracking.fitting.solver import FrameSolver
from tracking.limbs.chains import Limbs
from tracking.observations.contours import Observation, View
from tracking.observations.rasteriser import fill_triangles
from tracking.quads.oriented_quads import QuadPose

__all__ = ["LimbEvidence", "LimbSight", "ViewDrawing", "projected"]

TOLERANCE = 25.0
"""Distance between outlines that the template of another body may leave, thousandths of its size."""
SMALL = 220
"""Pixels across the drawing of a view, about."""


@dataclass(frozen=True, eq=False)
class LimbSight:
    """One frame, L limbs, C views.

    Attributes:
        outside: (L, C) share of the drawn limb that stands outside the silhouette; NaN where it is not drawn.
        missing: (L, C) unexplained silhouette put down to the limb, as a share of the limb's own drawn size.
        apart: (L, C) share of the limb that no other limb covers: how much the view can tell of it.
    """

    outside: Floats
    missing: Floats
    apart: Floats

    @property
    def bad(self) -> Floats:
        """(L,) how badly each limb is explained: the mean over views, 0 is perfect."""
        both = np.nan_to_num(self.outside) + np.nan_to_num(self.missing)
        seen = np.isfinite(self.outside).sum(axis=1)
        return np.asarray(both.sum(axis=1) / np.maximum(seen, 1))


@dataclass(frozen=True, eq=False)
class ViewDrawing:
    """One view drawn small.

    Attributes:
        mask: (h, w) observed silhouette. limbs: (L, h, w) each limb.
        left, top, step: full pixel = (left, top) + step x small pixel.
        rate: small pixels per mm at the body.
    """

    mask: Bytes
    limbs: Bytes
    left: float
    top: float
    step: int
    rate: float

    def emptiness(self) -> Floats:
        """(h, w) how far outside the silhouette each pixel lies, small pixels."""
        return _distance(self.mask == 0)


class LimbEvidence:
    """Draws the limbs of one solver's template into its views."""

    def __init__(self, solver: FrameSolver, limbs: Limbs) -> None:
        self.solver, self.limbs = solver, limbs
        template = solver.coarse
        self._binding = np.ascontiguousarray(template.binding, np.float32)
        self.of_vertex: Ints = limbs.of_points(template.binding)
        # A face belongs to the outermost limb of its corners: the seam is the limb's.
        owner = self.of_vertex[template.faces].max(axis=1)
        self._faces = [np.ascontiguousarray(template.faces[owner == limb]) for limb in range(len(limbs))]
        self._tolerance = TOLERANCE * solver.unit

    def draw(self, observation: Observation, pose: QuadPose) -> list[ViewDrawing | None]:
        """Draw a pose into each view; None where a camera saw nothing."""
        vertices = self.solver.cage_rig.deform(self._binding, pose)
        return [
            self._draw(view, camera, vertices) if len(view.points) else None
            for view, camera in zip(observation.views, self.solver.camera_rows, strict=True)
        ]

    def _draw(self, view: View, camera: Floats, vertices: Floats) -> ViewDrawing:
        pixels = projected(np.ascontiguousarray(vertices, np.float64), camera)
        known = pixels[np.isfinite(pixels).all(axis=1)]
        box = np.array([view.box[0], view.box[1], view.box[0] + view.box[2], view.box[1] + view.box[3]], float)
        if len(known):
            box[:2] = np.minimum(box[:2], known.min(axis=0))
            box[2:] = np.maximum(box[2:], known.max(axis=0))
        room = 0.05 * float((box[2:] - box[:2]).max()) + 2
        low = np.maximum(np.floor(box[:2] - room), 0)
        high = np.minimum(np.ceil(box[2:] + room), view.size)
        step = max(1, int((high - low).max()) // SMALL)
        width, height = (max(int(size), 1) for size in -(-(high - low) // step))
        mask = np.zeros((height, width), np.uint8)
        # The pixel in the middle of each small one stands for it.
        columns, rows = (
            (low[k] + step * np.arange(size) + step // 2 - view.box[k]).astype(int)
            for k, size in enumerate((width, height))
        )
        inside_x, inside_y = (columns >= 0) & (columns < view.box[2]), (rows >= 0) & (rows < view.box[3])
        mask[np.ix_(inside_y, inside_x)] = view.mask[np.ix_(rows[inside_y], columns[inside_x])]
        small = (pixels - low - step // 2) / step
        limbs = np.zeros((len(self.limbs), height, width), np.uint8)
        for limb, faces in enumerate(self._faces):
            fill_triangles(small, faces, 1, limbs[limb])
        return ViewDrawing(mask, limbs, float(low[0]), float(low[1]), step, _rate(small, vertices))

    def sight(self, observation: Observation, pose: QuadPose) -> LimbSight:
        """Judge the limbs of a frame."""
        count = len(self.limbs)
        outside, missing, apart = (np.full((count, len(observation.views)), np.nan) for _ in range(3))
        for index, drawn in enumerate(self.draw(observation, pose)):
            if drawn is not None:
                outside[:, index], missing[:, index], apart[:, index] = self._judge(drawn)
        return LimbSight(outside, missing, apart)

    def _judge(self, drawn: ViewDrawing) -> tuple[Floats, Floats, Floats]:
        near = self._tolerance * drawn.rate
        areas = drawn.limbs.sum(axis=(1, 2), dtype=np.int64)
        size = np.maximum(areas, 1)
        far_out = drawn.emptiness() > near
        outside = np.array([np.count_nonzero(far_out & (limb > 0)) for limb in drawn.limbs]) / size
        layers = drawn.limbs.sum(axis=0)
        apart = np.array([np.count_nonzero((limb > 0) & (layers == 1)) for limb in drawn.limbs]) / size
        missing = np.zeros(len(areas))
        model = layers > 0
        if model.any():
            away, labels = cv2.distanceTransformWithLabels(
                (~model).astype(np.uint8), cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL
            )
            deep = (away > near) & (drawn.mask > 0)
            if deep.any():
                # The label of a pixel is that of the nearest pixel of the model; the outermost limb there owns it.
                owner = np.zeros(int(labels.max()) + 1, np.int64)
                for limb in range(len(areas)):
                    owner[labels[(drawn.limbs[limb] > 0) & model]] = limb
                missing = np.bincount(owner[labels[deep]], minlength=len(areas)) / size
        outside[areas == 0], missing[areas == 0], apart[areas == 0] = np.nan, np.nan, np.nan
        return outside, missing, apart


def _distance(free: Bools) -> Floats:
    """Distance (h, w) in pixels of the free pixels from the others."""
    return np.asarray(cv2.distanceTransform(free.astype(np.uint8), cv2.DIST_L2, 5), np.float64)


def _rate(pixels: Floats, vertices: Floats) -> float:
    """Pixels per mm of a projected body: its spread in the image against its spread across the view."""
    known = np.isfinite(pixels).all(axis=1)
    if known.sum() < 3:
        return 1.0
    across = np.sqrt(np.sum(np.var(pixels[known], axis=0)))
    # The two larger of three axes of a body that is seen from the side; within a fifth, which a tolerance allows.
    spread = np.sort(np.linalg.eigvalsh(np.cov(vertices[known].T)))[::-1]
    return float(across / np.sqrt(max(spread[0] + 0.5 * (spread[1] + spread[2]), 1e-9)))


@compiled
def projected(vertices: Floats, camera: Floats) -> Floats:
    """(N, 2) pixels of points in one camera."""
    pixels = np.empty((len(vertices), 2))
    for i in range(len(vertices)):
        pixels[i, 0], pixels[i, 1] = project_point(camera, vertices[i, 0], vertices[i, 1], vertices[i, 2])
    return pixels
