"""Lines of sight of one view, followed until they meet what the other views' silhouettes leave of space.

Each view's silhouette comes as distances from it: a point that is so many pixels outside one of them cannot come inside
before the line has moved on by what these are in space, so most lines are settled in a few steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import cv2
import numpy as np

from calibration.cameras.camera import Camera
from calibration.cameras.camera_row import (
    CENTRE,
    CX,
    CY,
    FX,
    FY,
    K1,
    K2,
    K3,
    K4,
    LIMIT,
    MODEL,
    P1,
    P2,
    PINHOLE,
    R00,
    R01,
    R02,
    R10,
    R11,
    R12,
    R20,
    R21,
    R22,
    SKEW,
    TAU_Y,
    TX,
    TZ,
)
from calibration.cameras.projection import project_point
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Bytes, Floats, Ints, Singles
from calibration.foundation.compiled import compiled
from capture.hull.bounds import Box
from capture.hull.distance import BORDER_PX, DistanceImage, Extent
from capture.hull.implicit import gather
from capture.hull.scales import view_scales

__all__ = ["ALL_OTHERS", "Frame", "Others", "PackedViews", "Scene", "lines_that_meet", "outline_box"]

#: Lines of sight are followed in steps of this many pixels at least.
_STEP_PX = 2.0
#: Lines are known exactly for every so many pixels, and interpolated between: lenses are smooth.
_LATTICE_PX = 16
#: OpenCV's distances are right to this share.
_SURE = 0.95


class PackedViews(NamedTuple):
    """Cameras (C, 36), their masks and distances from these in buffers, px, and how they lie in them.

    ``masks`` has every pixel, ``away`` the distance of every second along both axes from what they and the next show.
    ``layout`` (C, 12) has start, width, height, x, y, the image's left, top, right and bottom, carving, plain lens and
    the start of the distances; ``gains`` (C,) how many pixels a point moves in a view at most, times its distance.
    """

    rows: Floats
    masks: Bytes
    away: Singles
    layout: Ints
    gains: Floats


Frame = tuple[Camera, tuple[int, int]]


class Line(NamedTuple):
    """A line of sight, and (C, 3) where it begins and goes in the axes of all cameras."""

    origin: Floats
    direction: Floats
    starts: Floats
    headings: Floats


class Others(NamedTuple):
    """When a point belongs to the others' hull: how many may have it outside, how many must have it inside."""

    tolerated: int
    needed: int


ALL_OTHERS = Others(tolerated=0, needed=1)
"""No view has the point outside its silhouette, and at least one can tell."""


def outline_box(mask: Bools) -> DistanceImage:
    """Return where a silhouette is and what it says, without distances."""
    height, width = mask.shape
    x, y, w, h = cv2.boundingRect(mask.view(np.uint8))
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
        packings: by how much larger, the silhouettes that were packed last, and packed.
    """

    used: Ints
    cameras: list[Camera]
    box: Box | None
    rows: Floats
    gains: Floats
    step: float
    frames: list[Frame]
    packings: dict[int, tuple[list[Bools], PackedViews]] = field(default_factory=dict)

    @classmethod
    def of(cls, masks: Sequence[Bools], rig: Rig, frames: Sequence[Frame] | None = None) -> Scene:
        """Look at silhouettes (H, W), one per camera; larger ones of the same frame hold for smaller ones, too.

        ``frames``: of all cameras; None: the silhouettes are those of whole images.
        """
        evidence = gather([outline_box(mask) for mask in masks], rig)
        used = np.flatnonzero(evidence.used)
        if evidence.box is None:
            return cls(used, evidence.cameras, None, np.zeros((0, 36)), np.zeros(0), 1.0, [])
        rows = np.array([camera.packed() for camera in evidence.cameras])
        away = np.linalg.norm(rows[:, CENTRE] - evidence.box.centre, axis=1)
        scales = view_scales(rows, evidence.box)
        step = _STEP_PX * float(np.median(scales.metric * away))
        known: list[Frame] = []
        for camera, index in zip(evidence.cameras, used.tolist(), strict=True):
            known.append((camera, (0, 0)) if frames is None or camera is not rig[index] else frames[index])
        return cls(used, evidence.cameras, evidence.box, rows, scales.gain, step, known)

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
        room, change = max(larger, 1), cv2.dilate if larger > 0 else cv2.erode
        square = np.ones((2 * abs(larger) + 1, 2 * abs(larger) + 1), np.uint8)
        pixels, distances = [np.zeros(0, np.uint8)], [np.zeros(0, np.float32)]
        layout, start, start_away = np.zeros((len(self.used), 12), dtype=np.int64), 0, 0
        rare = self.rows[:, K4 : TAU_Y + 1].any(axis=1)
        layout[:, 10] = (self.rows[:, MODEL] == PINHOLE) & ~rare
        for place, index in enumerate(self.used.tolist()):
            height, width = masks[index].shape
            image = outline_box(masks[index])
            whole, (x, y) = self.frames[place]
            frame = (-x, -y, whole.size[0] - x, whole.size[1] - y)
            if image.view is Extent.EMPTY:
                layout[place, :10] = (start, 0, 0, 0, 0, *frame, 1)
                continue
            left, top, right, bottom = (int(side) for side in image.box)
            x0, y0 = max(left - room, 0), max(top - room, 0)
            x1, y1 = min(right + room + 1, width), min(bottom + room + 1, height)
            # The image's border is no edge.
            grown = np.asarray(change(masks[index][y0:y1, x0:x1].view(np.uint8), square))
            away = _distances(grown)
            layout[place, :10] = (start, x1 - x0, y1 - y0, x0, y0, *frame, int(image.carves_outside))
            layout[place, 11] = start_away
            pixels.append(grown.ravel())
            distances.append(away.ravel())
            start, start_away = start + grown.size, start_away + away.size
        return PackedViews(self.rows, np.concatenate(pixels), np.concatenate(distances), layout, self.gains)


def _distances(mask: Bytes) -> Singles:
    """Return (h / 2, w / 2) how far every two by two pixels of a mask (h, w) are from such that hold some of it, px.

    No pixel is nearer to the mask: pixels lie within half of one along both axes of the middle of their four.
    """
    height, width = mask.shape
    even = cv2.copyMakeBorder(mask, 0, height % 2, 0, width % 2, cv2.BORDER_REPLICATE)
    pairs = even[::2] | even[1::2]
    some = pairs[:, ::2] | pairs[:, 1::2]
    away = cv2.distanceTransform(1 - some, cv2.DIST_L2, cv2.DIST_MASK_3)
    return np.asarray(np.float32(2.0 * _SURE) * away - np.float32(np.sqrt(2.0)))


@lru_cache(maxsize=64)
def _lattice(camera: Camera) -> Floats:
    """Return the directions (h, w, 3) of the lines of sight of a camera through every `_LATTICE_PX`-th pixel."""
    across, down = (np.arange(0.0, side + _LATTICE_PX, _LATTICE_PX) for side in camera.size)
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
    return _follow(
        grid, where, scene.rows[place, CENTRE], _lattice(camera), place, views, (box.low, box.high), scene.step, others
    )


@compiled
def _projected(rows: Floats, view: int, x: float, y: float, z: float) -> tuple[float, float]:
    """Project a point in the axes of one of some cameras, a lens without the rarer terms, as `project_point` does."""
    a, b = x / z, y / z
    r2 = a * a + b * b
    if z <= 0 or r2 > rows[view, LIMIT]:
        return np.nan, np.nan
    radial = 1 + r2 * (rows[view, K1] + r2 * (rows[view, K2] + r2 * rows[view, K3]))
    p1, p2 = rows[view, P1], rows[view, P2]
    xd = a * radial + 2 * p1 * a * b + p2 * (r2 + 2 * a * a)
    yd = b * radial + p1 * (r2 + 2 * b * b) + 2 * p2 * a * b
    return rows[view, FX] * xd + rows[view, SKEW] * yd + rows[view, CX], rows[view, FY] * yd + rows[view, CY]


@compiled
def _turn(rows: Floats, v: Floats, out: Floats) -> None:
    """Turn a direction into the axes (C, 3) of cameras."""
    for n in range(len(rows)):
        out[n, 0] = rows[n, R00] * v[0] + rows[n, R01] * v[1] + rows[n, R02] * v[2]
        out[n, 1] = rows[n, R10] * v[0] + rows[n, R11] * v[1] + rows[n, R12] * v[2]
        out[n, 2] = rows[n, R20] * v[0] + rows[n, R21] * v[1] + rows[n, R22] * v[2]


@compiled
def _room(depth: float, line: Line, own: int, ask: Ints, side: int, views: PackedViews, others: Others) -> float:
    """Return how many mm a point can move at least along a line before it belongs to the hull of the other views.

    0: it may belong to it within any step; negative: it does. ``own``: the view whose line it is. Views are asked until
    enough have it outside, the two of ``ask`` (2, 2) at ``side`` first; those two are put there for the next point.
    """
    inside, outside = 0, 0
    least = np.inf
    early, late = ask[side, 0], ask[side, 1]
    starts, layout = line.starts, views.layout  # no rows of these: each would be counted where it is used
    for turn in range(views.rows.shape[0] + 2):
        view = early if turn == 0 else late if turn == 1 else turn - 2
        if view == own or (turn == 1 and late == early) or (turn > 1 and view in (early, late)):
            continue
        a, b, c = line.headings[view, 0], line.headings[view, 1], line.headings[view, 2]
        x, y, z = starts[view, 0] + depth * a, starts[view, 1] + depth * b, starts[view, 2] + depth * c
        if layout[view, 10] == 1:
            u, v = _projected(views.rows, view, x, y, z)
        else:
            o, d = line.origin, line.direction
            u, v = project_point(views.rows[view], o[0] + depth * d[0], o[1] + depth * d[1], o[2] + depth * d[2])
        away = 0.0
        # A point behind a camera, or far outside its image, has no pixel.
        across, down = u + 0.5, v + 0.5
        if not (layout[view, 5] <= across < layout[view, 7] and layout[view, 6] <= down < layout[view, 8]):
            if layout[view, 9] == 0 or not (np.isfinite(u) and np.isfinite(v)):
                continue
            away = 1e-6
        column, row_of = u - layout[view, 3], v - layout[view, 4]
        beside = max(max(-column, column - (layout[view, 1] - 1)), max(-row_of, row_of - (layout[view, 2] - 1)))
        if beside >= 0.5 or layout[view, 1] == 0:
            away = max(away, max(beside - 0.5, 1e-6))
        elif away == 0.0:
            i, j = int(np.floor(row_of + 0.5)), int(np.floor(column + 0.5))
            if views.masks[layout[view, 0] + i * layout[view, 1] + j] == 0:
                n = layout[view, 11] + (i // 2) * ((layout[view, 1] + 1) // 2) + j // 2
                away = max(1e-6, float(views.away[n]))
        if away == 0.0:
            inside += 1
            continue
        # A camera sees the point move by its gain times the angle: as fast as it would move across the line of sight
        # at this distance, times the sine between the lines, and faster as it comes nearer. Pixels are as large as
        # one, and half of it may be missing.
        square = x * x + y * y + z * z
        along = x * a + y * b + z * c
        across = np.sqrt(max(square - along * along, 1e-6 * square))
        free, far = square * max(away - 1.0, 0.0), np.sqrt(square)
        least = min(least, free * far / (views.gains[view] * across * far + 2.0 * free))
        ask[side, min(outside, 1)] = view
        outside += 1
        if outside > others.tolerated:
            return float(least)  # one of those must come inside first
    return -1.0 if inside >= others.needed else 0.0


@compiled
def _follow(
    asked: Bools,
    where: tuple[int, int, int, int],
    origin: Floats,
    lattice: Floats,
    own: int,
    views: PackedViews,
    within: tuple[Floats, Floats],
    step: float,
    others: Others,
) -> Bools:
    """Follow lines through the pixels asked (h, w), ``where``: row, column, spacing and coarseness of their grid."""
    height, width = asked.shape
    top, left, spacing, level = where
    met, (low, high) = np.zeros(asked.shape, np.bool_), within
    # From which level on it is known whether a line meets the hull; and how far away, if it does.
    known, depths = np.zeros(asked.shape, np.int8), np.empty(asked.shape, np.float32)
    last, ask = -1.0, np.zeros((2, 2), np.int64)
    d, ends = np.empty(3), np.empty(2)
    starts, headings = np.empty((len(views.rows), 3)), np.empty((len(views.rows), 3))
    line = Line(origin, d, starts, headings)
    _turn(views.rows, origin, starts)
    starts += views.rows[:, TX : TZ + 1]
    while level >= 1:
        for row in range(0, height, level):
            for column in range(0, width, level):
                if not asked[row, column] or known[row, column] > 0:
                    continue
                some, none, guess = False, False, last
                for r in range(max(0, row - level), min(height, row + level + 1), level):
                    for c in range(max(0, column - level), min(width, column + level + 1), level):
                        if known[r, c] > level:
                            some, none = some or met[r, c], none or not met[r, c]
                        guess = depths[r, c] if met[r, c] else guess
                known[row, column] = level
                if some != none:
                    met[row, column] = some
                    depths[row, column] = guess
                    continue
                _direction((top + row * spacing) / _LATTICE_PX, (left + column * spacing) / _LATTICE_PX, lattice, d)
                near, far = 0.0, np.inf
                for axis in range(3):
                    if abs(d[axis]) > 1e-12:
                        a, b = (low[axis] - origin[axis]) / d[axis], (high[axis] - origin[axis]) / d[axis]
                        near, far = max(near, min(a, b)), min(far, max(a, b))
                    elif origin[axis] < low[axis] or origin[axis] > high[axis]:
                        far = -1.0
                if not far < np.inf:  # a lens has no line there
                    continue
                _turn(views.rows, d, headings)
                # From where a neighbour met the hull to both sides in turn.
                ends[0] = ends[1] = guess if near < guess < far else 0.5 * (near + far)
                for turn in range(2 * (int(max(far - near, 0.0) / step) + 1)):
                    side = turn % 2
                    depth = ends[side]
                    if (depth > far) if side == 0 else (depth < near):
                        continue
                    room = _room(depth, line, own, ask, side, views, others)
                    if room < 0:
                        met[row, column] = True
                        depths[row, column] = last = depth
                        break
                    ends[side] += max(step, room) * (1 - 2 * side)
                    if turn == 0:
                        ends[1] -= max(step, room)
                    if ends[0] > far and ends[1] < near:
                        break
        level //= 2
    return met


@compiled
def _direction(p: float, q: float, lattice: Floats, out: Floats) -> None:
    """Fill the direction of the line at a (row, column) of a lattice, interpolated."""
    i, j = min(int(p), lattice.shape[0] - 2), min(int(q), lattice.shape[1] - 2)
    p, q = p - i, q - j
    for axis in range(3):
        upper = (1 - q) * lattice[i, j, axis] + q * lattice[i, j + 1, axis]
        lower = (1 - q) * lattice[i + 1, j, axis] + q * lattice[i + 1, j + 1, axis]
        out[axis] = (1 - p) * upper + p * lower
