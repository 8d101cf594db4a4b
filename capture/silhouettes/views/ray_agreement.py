"""How much of each silhouette the other views confirm, without building a surface.

The hull of all views, drawn into one of them, never leaves that view's silhouette, so their overlap (IoU) is the share
of the silhouette's pixels whose lines of sight meet the hull. Silhouettes count as one pixel larger here: a line of
sight along the rim touches the hull in one point only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Floats
from capture.mask_boxes import box_of
from capture.silhouettes.views.lines_of_sight import ALL_OTHERS, Scene, lines_that_meet

__all__ = ["ray_agreement"]

#: Lines of sight per view.
_RAYS = 500


def ray_agreement(masks: Sequence[Bools], rig: Rig, scene: Scene | None = None, rays: int = _RAYS) -> Floats:
    """Return (C,) the IoU of each mask (H, W) with the hull of all; NaN where nothing can be said, 0 for no hull.

    ``scene``: of silhouettes that hold these; None: found here. ``rays``: lines of sight per view, at most about.
    """
    scores = np.full(len(masks), np.nan)
    known = scene or Scene.of(masks, rig)
    if len(known.used) < 2:
        return scores
    if known.box is None:
        scores[known.used] = 0.0
        return scores
    views = known.packed(masks, 1)
    for place, index in enumerate(known.used.tolist()):
        asked = _chosen_pixels(masks[index], rays)
        count = np.count_nonzero(asked[0])
        if count > 0:  # of a scene that held more nothing may be left
            met = lines_that_meet(known, place, asked, views, known.box, ALL_OTHERS)
            scores[index] = np.count_nonzero(met) / count
    return scores


def _chosen_pixels(mask: Bools, rays: int) -> tuple[Bools, tuple[int, int], int]:
    """Return pixels of a silhouette on a grid (h, w), its first (row, column) and its spacing."""
    left, top, width, height = box_of(mask)
    here = mask[top : top + height, left : left + width]
    stride = max(1, int(np.ceil(np.sqrt(np.count_nonzero(here) / rays))))
    first = stride // 2
    grid = np.ascontiguousarray(here[first::stride, first::stride])
    if not grid.any():
        return np.ascontiguousarray(here), (top, left), 1
    return grid, (top + first, left + first), stride
