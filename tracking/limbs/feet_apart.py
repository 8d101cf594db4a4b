"""How many views show a rodent's foot itself: what of it sticks out of the rest of the body, and the silhouette has.

A leg is explained as well where its foot is as where it is not: most of it is thigh, which the trunk covers. A foot
drawn up into the belly leaves silhouettes that hold nothing against a leg that stands. Only the foot's own part of the
silhouette says that it is there.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from calibration.foundation.arrays import Floats, Ints
from tracking.limbs.chains import Limbs
from tracking.limbs.drawing import ViewDrawing, drawn, projected
from tracking.observations.rasteriser import Layers
from tracking.quads.template import Template

__all__ = ["OUTERMOST", "FeetApart"]

OUTERMOST = 2
"""Quads at the end of a leg that are its foot: foot and toes."""
SHARE = 0.15
"""Share of a drawn foot that lies further from the rest of the body than outlines err, and in the silhouette, from
which on a view shows the foot."""


class FeetApart:
    """Draws the feet of one template apart from the rest of the body; of people none."""

    def __init__(self, limbs: Limbs, template: Template, camera_rows: Floats) -> None:
        self._cameras = camera_rows
        self._count = len(limbs)
        self.legs = [leg for leg, name in enumerate(limbs.names) if name.endswith("_limb")]
        nearest = limbs.nearest_quads(template.binding)
        self._faces: Ints = np.ascontiguousarray(template.faces)
        bits = np.full(len(self._faces), 1 << len(self.legs))
        for foot, leg in enumerate(self.legs):
            bits[np.isin(nearest, limbs.chains[leg][-OUTERMOST:])[self._faces].any(axis=1)] = 1 << foot
        self._layers: Layers = bits.astype(np.uint16)

    def views(self, drawings: Sequence[ViewDrawing | None], vertices: Floats, tolerance: float) -> Floats:
        """(L,) how many views show the foot of each leg; NaN for limbs without one.

        Args:
            drawings: of the pose, per view; None where a camera saw nothing.
            vertices: (V, 3) of the template.
            tolerance: how far outlines may lie from each other, mm.
        """
        shown = np.full(self._count, np.nan)
        shown[self.legs] = 0.0
        for drawing, camera in zip(drawings, self._cameras, strict=True):
            if drawing is not None and self.legs:
                pixels = projected(vertices, camera)
                image = drawn(drawing.canvas, pixels, self._faces, self._layers, 1.0).limbs
                for foot, leg in enumerate(self.legs):
                    shown[leg] += _share(image, 1 << foot, drawing, tolerance * drawing.rate) >= SHARE
        return shown


def _share(image: Layers, own: int, drawing: ViewDrawing, near: float) -> float:
    """Share of what is drawn with one bit that lies further than ``near`` from all other bits, and in the mask."""
    foot = (image & own) > 0
    if not foot.any():
        return 0.0
    off = cv2.distanceTransform(((image & ~np.uint16(own)) == 0).view(np.uint8), cv2.DIST_L2, 5)
    return float((foot & (off > near) & (drawing.canvas.mask > 0)).sum() / foot.sum())
