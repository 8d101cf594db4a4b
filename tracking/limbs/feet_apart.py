"""How many views show a rodent's foot itself: what of it sticks out of the rest of the body, and the silhouette has.

A leg is explained as well where its foot is as where it is not: most of it is thigh, which the trunk covers. A foot
drawn up into the belly leaves silhouettes that hold nothing against a leg that stands. Only the foot's own part of the
silhouette says that it is there. And of a paw that two feet of the template share nobody knows whose it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Floats, Ints
from calibration.foundation.compiled import compiled
from tracking.limbs.chains import Limbs
from tracking.limbs.drawing import ViewDrawing
from tracking.observations.rasteriser import Layers
from tracking.quads.template import Template

__all__ = ["OUTERMOST", "FeetApart", "in_one_place"]

OUTERMOST = 2
"""Quads at the end of a leg that are its foot: foot and toes."""
SHARE = 0.15
"""Share of a drawn foot that lies further from the rest of the body than outlines err, and in the silhouette, from
which on a view shows the foot."""
APART = 100.0
"""Distance from which on two feet stand in different places, thousandths of the size."""


class FeetApart:
    """Tells the feet of one template apart from the rest of the body; of people none.

    Attributes:
        legs: the limbs with feet.
        layers: (F,) bits of the template's faces: one for each foot, in the order of the legs, the next for the rest.
    """

    def __init__(self, limbs: Limbs, template: Template) -> None:
        self._count = len(limbs)
        self.legs = [leg for leg, name in enumerate(limbs.names) if name.endswith("_limb")]
        self._quads = [list(limbs.chains[leg][-OUTERMOST:]) for leg in self.legs]
        nearest = limbs.nearest_quads(template.binding)
        self.layers: Ints = np.full(len(template.faces), 1 << len(self.legs))
        for foot, leg in enumerate(self.legs):
            own = np.isin(nearest, limbs.chains[leg][-OUTERMOST:])
            self.layers[own[template.faces].any(axis=1)] = 1 << foot

    def views(
        self, drawings: Sequence[ViewDrawing | None], centres: Floats, *, tolerance: float, unit: float
    ) -> Floats:
        """(L,) how many views show the foot of each leg; NaN for limbs without one, 0 for feet in one place.

        Args:
            drawings: of the pose, per view, with these layers; None where a camera saw nothing.
            centres: (Q, 3) of the pose's quads, mm.
            tolerance: how far outlines may lie from each other, mm.
            unit: one thousandth of the subject's size, mm.
        """
        shown = np.full(self._count, np.nan)
        shown[self.legs] = 0.0
        for drawing in drawings:
            if drawing is not None and self.legs:
                shown[self.legs] += _are_shown(drawing, len(self.legs), tolerance * drawing.rate)
        if self.legs:
            middles = np.array([centres[quads].mean(axis=0) for quads in self._quads])
            shown[np.array(self.legs)[in_one_place(middles, unit)]] = 0.0
        return shown


def in_one_place(feet: Floats, unit: float) -> Bools:
    """(n,) which feet (n, 3) stand where another does; ``unit`` is one thousandth of the subject's size, mm."""
    away = np.linalg.norm(feet[:, None] - feet[None], axis=2)
    np.fill_diagonal(away, np.inf)
    return np.asarray(away.min(axis=1) <= APART * unit)


def _are_shown(drawing: ViewDrawing, feet: int, near: float) -> Bools:
    """(feet,) whether enough of each foot lies further than ``near`` from all else, and in the mask."""
    shown = np.zeros(feet, np.bool_)
    room = int(near) + 2  # what is nearer lies within
    sizes, alone, boxes = _feet_alone(drawing.feet, drawing.canvas.mask, feet)
    for foot in range(feet):
        # What all else covers is not further from it: distances are asked where enough is left.
        if sizes[foot] == 0 or alone[foot] < SHARE * sizes[foot]:
            continue
        left, top, right, bottom = boxes[foot]
        part = slice(max(top - room, 0), bottom + room), slice(max(left - room, 0), right + room)
        image, mask = drawing.feet[part], drawing.canvas.mask[part]
        rest = image & ~np.uint32(1 << foot) == 0
        off = cv2.distanceTransform(rest.view(np.uint8), cv2.DIST_L2, 5)
        apart = (image > 0) & rest & (off > near) & (mask > 0)
        shown[foot] = np.count_nonzero(apart) / sizes[foot] >= SHARE
    return shown


@compiled
def _feet_alone(image: Layers, mask: Bytes, feet: int) -> tuple[Ints, Ints, Ints]:
    """(feet,) drawn pixels of each foot, and those that nothing else covers and the mask has.

    The third are the first column and row and those after the last (feet, 4) of the latter.
    """
    sizes, alone = np.zeros(feet, np.int64), np.zeros(feet, np.int64)
    boxes = np.zeros((feet, 4), np.int64)
    boxes[:, 0], boxes[:, 1] = image.shape[1], image.shape[0]
    every = (1 << feet) - 1
    for row in range(image.shape[0]):
        for column in range(image.shape[1]):
            bits = image[row, column]
            if bits & every == 0:
                continue
            for foot in range(feet):
                if (bits >> foot) & 1:
                    sizes[foot] += 1
                    if bits == 1 << foot and mask[row, column]:
                        alone[foot] += 1
                        box = boxes[foot]
                        box[0], box[1] = min(box[0], column), min(box[1], row)
                        box[2], box[3] = max(box[2], column + 1), max(box[3], row + 1)
    return sizes, alone, boxes
