"""The ground of a recording that has no plate, put together by two ways that know it."""

from __future__ import annotations

import cv2
import numpy as np

from calibration.foundation.arrays import Bytes
from capture.backgrounds.background import NoiseCurve, noise_over
from capture.backgrounds.followed_inwards import brightest_modes, ground_of, temporal_modes
from capture.backgrounds.ground_labels import cell_looks, cells_of, labelled_ground, steady_outside, tolerance_of
from capture.backgrounds.uncovered import Ground, ground_over
from capture.backgrounds.which_ground import better_places
from capture.discs import disc
from capture.silhouettes.cleanup import Cleaning, silhouette_of
from capture.silhouettes.difference import PlateModel

__all__ = ["uncovered_ground"]

#: Rounds of finding the ground behind a subject that stays, and cells around it that are not taken for ground.
_ROUNDS = 2
_CLEAR = 4


def uncovered_ground(stack: Bytes, noise: NoiseCurve, floor: float) -> Ground:
    """Return the background of a recording without plate (n, H, W, C), from what its subject uncovers.

    Two ways know it, in cells; where they differ, the outlines of what they would take for the subject decide.
    """
    cells = np.stack([cells_of(image) for image in stack])
    # Means of some pixels have less noise than a pixel; how much less they tell: that of a codec hangs together.
    own = noise_over(cells)
    scene = steady_outside(cells, own)
    centre, known = labelled_ground(cells, cell_looks(cells, noise), scene, noise)
    followed = _followed_ground(cells, noise, floor)
    second = better_places(cells, centre, followed.background.centre, ~scene, own)
    centre = np.where(second[:, :, None], followed.background.centre, centre)
    known = np.where(second, followed.seen, known)
    tolerance = tolerance_of(noise)[np.clip(np.rint(centre), 0, 255).astype(np.uint8)]
    # A single cell that says otherwise than those around it in the same image is wrong.
    free = [(np.abs(cell - centre) <= tolerance).all(axis=2) & known for cell in cells]
    smooth = [cv2.medianBlur(one.view(np.uint8), 5) for one in free]
    return ground_over(stack, np.stack(smooth).view(np.bool_), noise)


def _followed_ground(stack: Bytes, noise: NoiseCurve, floor: float) -> Ground:
    """Return the background behind a subject that stays: followed inwards, then what silhouettes leave free."""
    found = ground_of(temporal_modes(stack, noise), noise)
    for _ in range(_ROUNDS):
        # What was found may lie in a shadow yet: ground that is brighter by as much is no subject.
        lit = PlateModel(found.background, shadow_floor=floor, highlight=1.0 / floor)
        found_in = [silhouette_of(lit.evidence(image), Cleaning()) for image in stack]
        grown = [cv2.dilate(mask.view(np.uint8), disc(_CLEAR)) for mask in found_in]
        free = np.stack(grown) == 0
        found = brightest_modes(temporal_modes(stack, noise, free), free.sum(axis=0, dtype=np.int32), noise)
    return found
