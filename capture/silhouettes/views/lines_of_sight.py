"""Lines of sight of one view, followed until they meet what the other views' silhouettes leave of space.

Each view's silhouette comes as distances from it: a point that is so many pixels outside one of them cannot come inside
before the line has moved on by what these are in space, so most lines are settled in a few steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import cv2
import numpy as np

from calibration.cameras.camera import Camera
from calibration.cameras.camera_row import CENTRE, K4, MODEL, PINHOLE, TAU_Y
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Bytes, Floats, Ints, Singles
from capture.hull.bounds import Box
from capture.hull.distance import BORDER_PX, DistanceImage, Extent
from capture.hull.implicit import gather
from capture.hull.scales import view_scales
from capture.mask_boxes import box_of
from capture.silhouettes.views.following import LANES, LATTICE_PX, Others, PackedViews, follow
from capture.silhouettes.views.pair_distances import fill_pair_distances

__all__ = ["ALL_OTHERS", "Frame", "Others", "PackedViews", "Scene", "lattice_of", "lines_that_meet", "outline_box"]

#: Lines of sight are followed in steps of this many pixels at least.
_STEP_PX = 2.0

Frame = tuple[Camera, tuple[int, int]]


ALL_OTHERS = Others(tolerated=0, needed=1)
"""No view has the point outside its silhouette, and at least one can tell."""


def outline_box(mask: Bools) -> DistanceImage:
    """Return where a silhouette is and what it says, without distances."""
    height, width = mask.shape
    x, y, w, h = box_of(mask)
    nothing = np.zeros((2, 2), dtype=np.float32)
    if w == 0:
        return DistanceImage(nothing, (0, 0), (np.nan,) * 4, Extent.EMPTY, False)
    box = (float(x), float(y), float(x + w - 1), float(y + h - 1))
    if (w, h) == (width, height) and mask.all():
        return DistanceImage(nothing, (0, 0), box, Extent.FULL, False)
    near = min(x, y, width - x - w, height - y - h) <= BORDER_PX
    return DistanceImage(nothing, (x, y), box, Extent.PARTIAL if near else Extent.COMPLETE, not near)


@dataclass(frozen=True, eq=False)
class Scene:
    """Where the subject of a frame is and which views tell of it: silhouettes of one frame have that in common.

    Attributes:
        used: (n,) the views that take part.
        cameras: theirs.
        box: where the subject is, world mm; None if the silhouettes contradict each other.
        rows: (n, 36) the cameras packed.
        gains: (n,) as in `PackedViews`.
        step: least step along a line, mm.
        frames: of each of these the camera of whole images, and where (x, y) in these its silhouettes begin.
        outlines: the silhouettes looked at, and where they are.
        packings: by how much larger, the silhouettes that were packed last, and packed.
    """

    used: Ints
    cameras: list[Camera]
    box: Box | None
    rows: Floats
    gains: Floats
    step: float
    frames: list[Frame]
    outlines: list[tuple[Bools, DistanceImage]]
    packings: dict[int, tuple[list[Bools], PackedViews]] = field(default_factory=dict)

    @classmethod
    def of(cls, masks: Sequence[Bools], rig: Rig, frames: Sequence[Frame] | None = None) -> Scene:
        """Look at silhouettes (H, W), one per camera; larger ones of the same frame hold for smaller ones, too.

        ``frames``: of all cameras; None: the silhouettes are those of whole images.
        """
        outlines = [(mask, outline_box(mask)) for mask in masks]
        evidence = gather([outline for _, outline in outlines], rig)
        used = np.flatnonzero(evidence.used)
        if evidence.box is None:
            return cls(used, evidence.cameras, None, np.zeros((0, 36)), np.zeros(0), 1.0, [], outlines)
        rows = np.array([camera.packed() for camera in evidence.cameras])
        away = np.linalg.norm(rows[:, CENTRE] - evidence.box.centre, axis=1)
        scales = view_scales(rows, evidence.box)
        step = _STEP_PX * float(np.median(scales.metric * away))
        known: list[Frame] = []
        for camera, index in zip(evidence.cameras, used.tolist(), strict=True):
            known.append((camera, (0, 0)) if frames is None or camera is not rig[index] else frames[index])
        return cls(used, evidence.cameras, evidence.box, rows, scales.gain, step, known, outlines)

    def packed(self, masks: Sequence[Bools], larger: int) -> PackedViews:
        """Return the views with these silhouettes, some pixels ``larger``, or smaller where that is negative.

        They are made once for the same arrays, which must not be changed in place meanwhile.
        """
        before, known = self.packings.get(larger, ([], None))
        if known is not None and all(one is other for one, other in zip(before, masks, strict=True)):
            return known
        self.packings[larger] = (list(masks), self._packed(masks, larger))
        return self.packings[larger][1]

    def _packed(self, masks: Sequence[Bools], larger: int) -> PackedViews:
        """Return the views with silhouettes, as `packed` does."""
        layout, pixels, distances = np.zeros((len(self.used), 12), dtype=np.int64), 0, 0
        rare = self.rows[:, K4 : TAU_Y + 1].any(axis=1)
        layout[:, 10] = (self.rows[:, MODEL] == PINHOLE) & ~rare
        for place, index in enumerate(self.used.tolist()):
            height, width = masks[index].shape
            before, image = self.outlines[index]
            image = image if masks[index] is before else outline_box(masks[index])
            whole, (x, y) = self.frames[place]
            layout[place, 5:9] = -x, -y, whole.size[0] - x, whole.size[1] - y
            layout[place, [0, 9, 11]] = pixels, 1, distances
            if image.view is Extent.EMPTY:
                continue
            room = max(larger, 1)
            left, top, right, bottom = (int(side) for side in image.box)
            x0, y0 = max(left - room, 0), max(top - room, 0)
            x1, y1 = min(right + room + 1, width), min(bottom + room + 1, height)
            layout[place, 1:5], layout[place, 9] = (x1 - x0, y1 - y0, x0, y0), int(image.carves_outside)
            pixels += (x1 - x0) * (y1 - y0)
            distances += ((x1 - x0 + 1) // 2) * ((y1 - y0 + 1) // 2)
        shown, away = np.empty(pixels, np.uint8), np.empty(distances, np.float32)
        for place, index in enumerate(self.used.tolist()):
            if layout[place, 1] > 0:
                _pack(masks[index], larger, layout[place], shown, away)
        return PackedViews(self.rows, shown, away, layout, self.gains)


def _pack(mask: Bools, larger: int, layout: Ints, shown: Bytes, away: Singles) -> None:
    """Fill a mask (H, W), some pixels larger, and its distances where the layout of its view says."""
    start, width, height, x, y = layout[:5].tolist()
    out = shown[start : start + width * height].reshape(height, width)
    # The image's border is no edge.
    square = np.ones((2 * abs(larger) + 1, 2 * abs(larger) + 1), np.uint8)
    (cv2.dilate if larger > 0 else cv2.erode)(mask[y : y + height, x : x + width].view(np.uint8), square, dst=out)
    half = ((height + 1) // 2, (width + 1) // 2)
    target = away[layout[11] : layout[11] + half[0] * half[1]].reshape(half)
    fill_pair_distances(out, target)


@lru_cache(maxsize=64)
def lattice_of(camera: Camera) -> Floats:
    """Return the directions (h, w, 3) of the lines of sight of a camera through every `LATTICE_PX`-th pixel."""
    across, down = (np.arange(0.0, side + LATTICE_PX, LATTICE_PX) for side in camera.size)
    pixels = np.stack(np.broadcast_arrays(across[None, :], down[:, None]), axis=-1)
    return np.ascontiguousarray(camera.rays(pixels)[1])


def lines_that_meet(
    scene: Scene,
    place: int,
    asked: tuple[Bools, tuple[int, int], int],
    views: PackedViews,
    box: Box,
    others: Others,
    coarse: int = 1,
) -> Bools:
    """Return (h, w) which lines of sight of the view at ``place`` of the scene meet the others' hull within a box.

    ``asked``: (h, w) through which pixels of a grid they are, the (row, column) of the grid's first and its spacing.
    ``coarse``: a power of two; every so many of them are followed first, along both axes, and of the others, finer and
    finer, those alone around which they differ.
    """
    grid, (top, left), spacing = asked
    camera, (x, y) = scene.frames[place]
    where = (top + y, left + x, spacing, coarse)
    centre, within = scene.rows[place, CENTRE], (box.low, box.high)
    return follow(grid, where, centre, lattice_of(camera), place, views, within, scene.step, others, LANES)
