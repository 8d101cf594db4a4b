"""What the silhouettes say of each limb in one frame: how much of it stands in empty air, and what near it is missing.

The limbs are drawn one by one, small, into every view. A limb's share that lies further outside the silhouette than the
model errs is *outside*; silhouette that lies further from the whole model is *missing*, and is put down to the limb
that is nearest in the image. Neither needs the recording's usual level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

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

__all__ = ["LimbEvidence", "LimbRecord", "LimbSight", "ViewDrawing", "projected"]

TOLD = 0.25
"""Share of a limb that no other limb covers, from which on a view tells where it is."""
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
    def views(self) -> Floats:
        """(L,) number of views that tell where each limb is."""
        return np.asarray((np.nan_to_num(self.apart) >= TOLD).sum(axis=1), np.float64)

    @property
    def worst(self) -> tuple[Floats, Floats]:
        """(L,) share outside, and missing, in the view that shows most of it."""
        return np.nan_to_num(self.outside).max(axis=1), np.nan_to_num(self.missing).max(axis=1)

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


@dataclass(frozen=True, eq=False)
class LimbRecord:
    """What T frames show of L limbs; NaN where a frame was not tracked.

    Attributes:
        bad: (T, L) unexplained and empty share, mean of the views.
        outside, missing: (T, L) the two apart, the worst view.
        views: (T, L) views that tell where the limb is.
        residual: (T, L) root mean square of its outline's residuals, mm; NaN where no outline is its own.
        weak: (T, L) uncertainty of its outer half along the worst direction by its own outlines, 1 sigma, mm.
        lead: (T, L) by how much the limb's place explains the silhouettes better than any other clearly different one.
    """

    NAMES: ClassVar[tuple[str, ...]] = ("bad", "outside", "missing", "views", "residual", "weak", "lead")
    bad: Floats
    outside: Floats
    missing: Floats
    views: Floats
    residual: Floats
    weak: Floats
    lead: Floats

    @classmethod
    def empty(cls, frames: int, limbs: int) -> LimbRecord:
        """Return the record of frames that were not tracked."""
        return cls(*(np.full((frames, limbs), np.nan) for _ in cls.NAMES))

    def rows(self) -> dict[str, Floats]:
        """Return the arrays by name."""
        return {key: getattr(self, key) for key in self.NAMES}


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
        self._of_outline: Ints = limbs.of_points(solver.template.binding)
        outer = np.zeros(len(limbs.of_quad), np.bool_)
        for chain in limbs.chains[1:]:
            outer[chain[len(chain) // 2 :]] = True
        self._outer: Bools = outer[limbs.nearest_quads(solver.template.binding)]
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

    def outlines(self, observation: Observation, pose: QuadPose) -> tuple[Floats, Floats]:
        """(L,) root mean square of each limb's outline residuals, and uncertainty of its outer half, mm.

        The first is NaN where no outline is the limb's own. The second is along the worst direction, were the half to
        shift as a whole: two cameras that face each other say nothing of the depth.
        """
        solver, count = self.solver, len(self.limbs)
        matches = solver.outline_matches(observation, pose)
        sample = matches.pairs[:, 0]
        owner = self._of_outline[sample]
        weight = np.bincount(owner, matches.weights, minlength=count)
        squares = np.bincount(owner, matches.weights * matches.residuals**2, minlength=count)
        rms = np.sqrt(np.where(weight > 0, squares / np.maximum(weight, 1e-12), np.nan))
        settings = solver.settings
        told = matches.weights / (settings.contour_length * solver.unit) / (settings.contour_sigma * solver.unit) ** 2
        weak = np.full(count, np.nan)
        for limb in range(1, count):
            ours = (owner == limb) & self._outer[sample]
            rows = matches.directions[ours]
            least = np.linalg.eigvalsh((rows * told[ours, None]).T @ rows)[0]
            weak[limb] = 1.0 / np.sqrt(max(least, 1e-6 / solver.unit**2))
        return np.asarray(rms), weak

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
