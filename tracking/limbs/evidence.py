"""What the silhouettes say of each limb in one frame: how much of it stands in empty air, and what near it is missing.

The limbs are drawn one by one, small, into every view. A limb's share that lies further outside the silhouette than the
model errs is *outside*; silhouette that lies further from the whole model is *missing*, and is put down to the limb
that is nearest in the image. Neither needs the recording's usual level.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from calibration.foundation.arrays import Bools, Floats, Ints
from tracking.fitting.solver import FrameSolver
from tracking.limbs.chains import Limbs
from tracking.limbs.confirming import borne_out
from tracking.limbs.drawing import Canvas, ViewDrawing, drawn, judged, projected
from tracking.limbs.feet_apart import FeetApart
from tracking.observations.contours import Observation
from tracking.quads.oriented_quads import QuadPose
from tracking.quads.template import Template

__all__ = ["LimbEvidence", "LimbRecord", "LimbSight", "cloth_over"]

TOLD = 0.25
"""Share of a limb that no other limb covers, from which on a view tells where it is."""
TOLERANCE = 25.0
"""Distance between outlines that the template of another body may leave, thousandths of its size."""


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

    @cached_property
    def bad(self) -> Floats:
        """(L,) how badly each limb is explained: the mean over views, 0 is perfect."""
        both = np.nan_to_num(self.outside) + np.nan_to_num(self.missing)
        seen = np.isfinite(self.outside).sum(axis=1)
        return np.asarray(both.sum(axis=1) / np.maximum(seen, 1))


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
        turned: (T, L) by how much a rodent's trunk and head overlap better than turned in place, the trunk rolled, the
            head nodded (`tracking.limbs.turned_in_place`); NaN for other limbs, and for people.
        shown: (T, L) share of the places around in which the images show a rodent's foot better than in its own
            (`tracking.appearance.feet`); NaN where that was not looked at.
        standing: (T, L) how far a rodent's hind foot is from where hind feet stand under such a trunk, in sigmas
            (`tracking.fitting.stance`), infinite where it is curled up; NaN for other limbs, and for people.
        leap: (T, L) how far it leaves the path through the frames before and after, mm (`tracking.limbs.leaps`).
        feet: (T, L) views that show the foot of a rodent's leg itself, apart from the rest of the body
            (`tracking.limbs.feet_apart`), 0 where two feet stand in one place; NaN for other limbs, and for people.
    """

    NAMES: ClassVar[tuple[str, ...]] = (
        "bad", "outside", "missing", "views", "residual", "weak", "lead", "turned", "shown", "standing",
        "leap", "feet",
    )  # fmt: skip
    MORE_IS_BETTER: ClassVar[tuple[str, ...]] = ("views", "lead", "turned", "feet")
    bad: Floats
    outside: Floats
    missing: Floats
    views: Floats
    residual: Floats
    weak: Floats
    lead: Floats
    turned: Floats
    shown: Floats
    standing: Floats
    leap: Floats
    feet: Floats

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
        self._binding = solver.coarse_binding
        self.of_vertex: Ints = _owners(limbs, template)
        # A face belongs to the outermost limb of its corners: the seam is the limb's.
        owner = self.of_vertex[template.faces].max(axis=1)
        self._faces: Ints = np.ascontiguousarray(template.faces)
        self._feet = FeetApart(limbs, template)
        self._bits = len(limbs) + 1  # clothes have one, too
        self._layers = ((1 << owner) | (self._feet.layers << self._bits)).astype(np.uint32)
        # What was looked at and drawn last: the tests of one frame share it.
        self._looked_at: tuple[Observation, list[Canvas | None]] | None = None
        self._carried: tuple[QuadPose, Floats] | None = None
        self._drawn: tuple[Observation, QuadPose, list[ViewDrawing | None]] | None = None
        self._of_outline: Ints = _owners(limbs, solver.template)
        outer = np.zeros(len(limbs.of_quad), np.bool_)
        for chain in limbs.chains[1:]:
            outer[chain[len(chain) // 2 :]] = True
        self._outer: Bools = outer[limbs.nearest_quads(solver.template.binding)]
        self._tolerance = TOLERANCE * solver.unit
        self._covered = sum(1 << int(limb) for limb in np.flatnonzero(cloth_over(limbs, solver.template)))

    def draw(self, observation: Observation, pose: QuadPose) -> list[ViewDrawing | None]:
        """Draw a pose into each view; None where a camera saw nothing."""
        if self._drawn is not None and self._drawn[0] is observation and self._drawn[1] is pose:
            return self._drawn[2]
        if self._looked_at is None or self._looked_at[0] is not observation:
            canvases = [Canvas.around(view) if len(view.points) else None for view in observation.views]
            self._looked_at = (observation, canvases)
        vertices = self._vertices(pose)
        # The two larger of three axes of a body that is seen from the side; within a fifth, which a tolerance allows.
        axes = np.linalg.eigvalsh(np.cov(vertices.T))
        spread = float(np.sqrt(axes[2] + 0.5 * (axes[1] + axes[0])))
        drawings: list[ViewDrawing | None] = []
        for view, canvas, camera in zip(observation.views, self._looked_at[1], self.solver.camera_rows, strict=True):
            if canvas is None:
                drawings.append(None)
                continue
            pixels = projected(vertices, camera)
            drawings.append(drawn(canvas.holding(view, pixels), pixels, self._faces, self._layers, self._bits, spread))
        self._drawn = (observation, pose, drawings)
        return drawings

    def _vertices(self, pose: QuadPose) -> Floats:
        """(V, 3) of the coarse template in a pose."""
        if self._carried is None or self._carried[0] is not pose:
            vertices = np.ascontiguousarray(self.solver.cage_rig.deform(self._binding, pose), np.float64)
            self._carried = (pose, vertices)
        return self._carried[1]

    def sight(self, observation: Observation, pose: QuadPose) -> LimbSight:
        """Judge the limbs of a frame."""
        count = len(self.limbs)
        outside, missing, apart = (np.full((count, len(observation.views)), np.nan) for _ in range(3))
        for index, drawing in enumerate(self.draw(observation, pose)):
            if drawing is not None:
                outside[:, index], missing[:, index], apart[:, index] = judged(
                    drawing, count, self._tolerance, covered=self._covered
                )
        return LimbSight(outside, missing, apart)

    def feet(self, observation: Observation, pose: QuadPose) -> Floats:
        """(L,) how many views show the foot of each leg of a rodent as its own; NaN for other limbs, and for people."""
        if not self._feet.legs:
            return np.full(len(self.limbs), np.nan)
        drawings = self.draw(observation, pose)
        return self._feet.views(drawings, pose.centres, tolerance=self._tolerance, unit=self.solver.unit)

    def borne_out(self, observation: Observation, pose: QuadPose, sight: LimbSight) -> LimbSight:
        """Return what is seen of the limbs of a rodent, of what one view holds against them only what others bear out.

        A person's limbs are large, and what one view says of them has been right.
        """
        posture = self.solver.posture
        in_air, lacks = ((np.nan_to_num(one) > 0).sum(axis=0) > 0 for one in (sight.outside, sight.missing))
        if posture is None or not (in_air.any() or lacks.any()):
            return sight
        sizes = np.array([view.size for view in observation.views], np.int64)
        vertices = self._vertices(pose)
        empty, missing = borne_out(
            self.draw(observation, pose), self.solver.camera_rows, sizes, vertices, self.of_vertex, posture.up,
            self._tolerance, (in_air, lacks),
        )  # fmt: skip
        return LimbSight(sight.outside * empty, sight.missing * missing, sight.apart)

    def outlines(self, observation: Observation, pose: QuadPose) -> tuple[Floats, Floats]:
        """(L,) root mean square of each limb's outline residuals, and uncertainty of its outer half, mm.

        The first is NaN where no outline is the limb's own. The second is along the worst direction, were the half to
        shift as a whole: two cameras that face each other say nothing of the depth.
        """
        solver, count = self.solver, len(self.limbs)
        matches = solver.outline_matches(observation, pose)
        sample = matches.pairs[:, 0]
        owner = self._of_outline[sample]
        weight = np.bincount(owner, matches.weights, minlength=count)[:count]
        squares = np.bincount(owner, matches.weights * matches.residuals**2, minlength=count)[:count]
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


def cloth_over(limbs: Limbs, template: Template) -> Floats:
    """(L,) how far the limbs that clothes hang on may lie from where outlines of the cloth put them, mm; 0 if bare."""
    over = np.zeros(len(limbs))
    if template.flesh is not None and template.spread is not None:
        quads = len(limbs.of_quad)
        hung = template.binding[template.flesh :, : 4 * quads].any(axis=0).reshape(quads, 4).any(axis=1)
        over[limbs.of_quad[hung]] = template.spread[template.flesh :].max()
        over[0] = 0.0
    return over


def _owners(limbs: Limbs, template: Template) -> Ints:
    """Return the limb (V,) of each vertex; clothes are of none, which is the number after the last."""
    owner = limbs.of_points(template.binding)
    if template.flesh is not None:
        owner[template.flesh :] = len(limbs)
    return owner
