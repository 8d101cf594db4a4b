"""What the views say about each other's silhouettes.

The hull of all *other* views, drawn into a view, is an upper bound of that view's silhouette: what sticks out of it
is contradicted and dropped. If leaving a view out makes the remaining ones agree clearly better, that view misses
something: its holes that the others fill are filled, and if that does not mend it, it is flagged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Floats
from capture.hull.agreement import mesh_silhouettes, overlap
from capture.hull.distance import DistanceImage, Extent, distance_image
from capture.hull.implicit import implicit_hull
from capture.silhouettes.views.confirmation import Sights, may_be_wrong
from capture.silhouettes.views.lines_of_sight import Scene
from capture.silhouettes.views.ray_agreement import ray_agreement

__all__ = ["Verdict", "consensus"]

#: A frame whose views all agree this well is not looked at further.
_FINE = 0.85
#: A few lines of sight suffice to see that if they agree this well.
_A_FEW, _SURE = 100, 0.95
#: Below this IoU a silhouette is contradicted by the others.
CONTRADICTED = 0.8
#: How much better the others must agree without a view for it to be the one that misses something.
_BETTER = 0.02
#: Cells along the longest side of a hull: it is held against masks with some pixels of room.
_CELLS = 40
#: With this many other views one of them may be wrong at a point: what one view misses must not be lost in all.
_MANY = 4


@dataclass(frozen=True, eq=False)
class Verdict:
    """The views' judgement of one frame.

    Attributes:
        masks: the silhouettes after repair.
        agreement: (C,) IoU with the hull of all views *before* repair; NaN where nothing can be said.
        contradicted: (C,) silhouettes that the others contradict, after repair.
        repaired: (C,) silhouettes that were changed.
    """

    masks: list[Bools]
    agreement: Floats
    contradicted: Bools
    repaired: Bools


def _scores(
    masks: Sequence[Bools], images: Sequence[DistanceImage], rig: Rig, views: Bools | None
) -> tuple[Floats, list[Bools]]:
    """Return (C,) how the hull of some views agrees with all, and its silhouette in each; none if it is empty."""
    others = 0 if views is None else int(np.count_nonzero(views))
    hull = implicit_hull(
        images, rig, views=views, tolerated=int(others >= _MANY), most_cells=_CELLS, sharp=False, score=False
    )
    usable = np.array([image.view in (Extent.COMPLETE, Extent.PARTIAL) for image in images])
    scores = np.full(len(masks), np.nan)
    if np.count_nonzero(usable) < 2:
        return scores, []
    drawn = [] if hull.is_empty else mesh_silhouettes(rig, hull.vertices, hull.faces)
    for index in np.flatnonzero(usable).tolist():
        scores[index] = overlap(drawn[index], masks[index]) if drawn else 0.0
    return scores, drawn


def consensus(masks: Sequence[Bools], rig: Rig, *, repair: bool = True, scene: Scene | None = None) -> Verdict:
    """Judge the silhouettes of one frame, one mask (H, W) per camera, and mend what the others contradict.

    ``scene``: of silhouettes that hold these; None: found here.
    """
    agreement = ray_agreement(masks, rig, scene, _A_FEW)
    if not agreement[np.isfinite(agreement)].min(initial=1.0) >= _SURE:
        agreement = ray_agreement(masks, rig, scene)
    kept = list(masks)
    changed = np.zeros(len(masks), dtype=bool)
    usable = np.flatnonzero(np.isfinite(agreement))
    if len(usable) < 3 or agreement[usable].min() >= _FINE:
        return Verdict(kept, agreement, np.nan_to_num(agreement, nan=1.0) < CONTRADICTED, changed)
    images = [distance_image(mask) for mask in masks]
    before, _ = _scores(masks, images, rig, None)
    suspect = np.zeros(len(masks), dtype=bool)
    sights: Sights | None = None
    for index in usable.tolist():
        others = np.ones(len(masks), dtype=bool)
        others[index] = False
        without, all_drawn = _scores(masks, images, rig, others)
        if not all_drawn:
            continue
        drawn, mask = all_drawn[index], masks[index]
        rest = usable[usable != index]
        suspect[index] = np.mean(without[rest] - before[rest]) > _BETTER
        if not repair:
            continue
        mended = mask.copy()
        window = _window(mask | drawn)
        mended[window] = _without_excess(mask[window], drawn[window])
        if (mended != mask).any():
            # Views that hold much more than the subject (the light changed, somebody passed by) make a hull as large as
            # the room, with cells as large as the subject: lines of sight lose nothing.
            sights = sights or Sights(masks, scene or Scene.of(masks, rig), 1)
            allowed = drawn | sights.of_view(index, mask, may_be_wrong(rig))
            mended[window] = _without_excess(mask[window], allowed[window])
        if suspect[index]:
            mended[window] |= _filled_holes(mended[window], drawn[window])
        if (mended != mask).any():
            kept[index] = mended
            changed[index] = True
    after = before
    if changed.any():
        images = [distance_image(mask) for mask in kept]
        after, _ = _scores(kept, images, rig, None)
        # Views that lost everything by the repair agree with nothing.
        if not np.nan_to_num(after)[usable].mean() > np.nan_to_num(before)[usable].mean():
            return Verdict(
                list(masks), agreement, (np.nan_to_num(before, nan=1.0) < CONTRADICTED) | suspect, ~changed & changed
            )
        suspect &= ~changed
    worst = np.nan_to_num(after, nan=1.0) < CONTRADICTED
    # A view that misses something drags the others down: only the suspect is to blame then.
    contradicted = suspect if suspect.any() else worst
    return Verdict(kept, agreement, contradicted, changed)


def _window(mask: Bools) -> tuple[slice, slice]:
    """Return the rows and columns of a mask (H, W), with a pixel around."""
    x, y, w, h = cv2.boundingRect(mask.view(np.uint8))
    return slice(max(0, y - 1), y + h + 1), slice(max(0, x - 1), x + w + 1)


def _without_excess(mask: Bools, allowed: Bools) -> Bools:
    """Drop the parts of a mask that stick out of what the other views allow by more than a few pixels."""
    mask, allowed = np.ascontiguousarray(mask), np.ascontiguousarray(allowed)
    extent = max(cv2.boundingRect(mask.view(np.uint8))[2:])
    reach = max(2, round(0.02 * extent))
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * reach + 1, 2 * reach + 1))
    room = cv2.dilate(allowed.view(np.uint8), kernel).view(np.bool_)
    excess = mask & ~room
    if not excess.any():
        return mask.copy()
    # A thin part of the body (tail, paw, ear) is what *other* views lose first: only thick excess, or excess that
    # does not hang together with what the others confirm, is dropped.
    _, whole = cv2.connectedComponents(mask.view(np.uint8), connectivity=8)
    confirmed = np.unique(whole[mask & allowed])
    count, labels = cv2.connectedComponents(excess.view(np.uint8), connectivity=8)
    inner = cv2.distanceTransform(mask.view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_3)
    thick = np.zeros(count)
    np.maximum.at(thick, labels[excess], inner[excess])
    detached = np.ones(count, dtype=bool)
    detached[np.unique(labels[excess & np.isin(whole, confirmed)])] = False
    drop = (thick > max(3.0, 0.04 * extent)) | detached
    drop[0] = False
    rest = mask & ~drop[labels]
    # What is left of a dropped part inside the room goes with it: keep parts that the others see in the main.
    count, labels, stats, _ = cv2.connectedComponentsWithStats(rest.view(np.uint8), connectivity=8)
    seen = np.bincount(labels[allowed & rest], minlength=count)
    keep = seen >= 0.3 * stats[:, cv2.CC_STAT_AREA]
    keep[0] = False
    return np.asarray(keep[labels])


def _filled_holes(mask: Bools, allowed: Bools) -> Bools:
    """Return the holes of a mask that the other views would fill."""
    count, labels, stats, _ = cv2.connectedComponentsWithStats((~mask).view(np.uint8), connectivity=4)
    covered = np.bincount(labels[allowed & ~mask], minlength=count) / np.maximum(stats[:, cv2.CC_STAT_AREA], 1)
    height, width = mask.shape
    x, y = stats[:, cv2.CC_STAT_LEFT], stats[:, cv2.CC_STAT_TOP]
    inner = (x > 0) & (y > 0) & (x + stats[:, cv2.CC_STAT_WIDTH] < width) & (y + stats[:, cv2.CC_STAT_HEIGHT] < height)
    fill = inner & (covered > 0.9)
    fill[0] = False
    return np.asarray(fill[labels])
