"""What one view holds against a limb, as far as the other views bear it out.

Silhouettes of real footage are wrong here and there, each in its own way: shade under an animal in one view, a tail
that another lacks. What is wrong with a limb is seen by several views. So silhouette that no limb explains counts where
its line of sight meets a place, above the ground that the body stands on, that nearly all other views have in their
silhouettes: something is there. And what of a limb stands in empty air in one view does not count where two others have
silhouette that nothing but this limb explains: it is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.cameras.camera_row import CENTRE_X
from calibration.cameras.projection import project_point, project_point_with_jacobian
from calibration.foundation.arrays import Bools, Floats, Ints, Singles
from calibration.foundation.compiled import compiled
from tracking.limbs.drawing import ViewDrawing, projected, unexplained

__all__ = ["borne_out"]

PIXELS = 40
"""Pixels of one view whose lines of sight are followed, for each limb."""
ROOM = 4.0
"""How far around the body something else may be, in tolerances."""
SLACK = 0.5
"""How far outside another silhouette a place may lie, in tolerances."""
ALONE = 2
"""Other views that show a part of a limb by itself, from which on it is there."""
MAY_LACK = 3
"""One in so many of the other views may lack what is there."""
ROUNDS = 4
"""Newton steps to a line of sight."""


@dataclass(frozen=True, eq=False)
class _Views:
    """Drawings of all views in one array.

    Attributes:
        away: (C, h, w) how far outside the silhouette each small pixel lies, mm. corners: (C, 3) left, top and step of
            the small pixels. shapes: (C, 2) width and height of what is drawn, 0 for a view that saw nothing.
        cameras: (C, 36) packed. sizes: (C, 2) of the images.
    """

    away: Singles
    corners: Floats
    shapes: Ints
    cameras: Floats
    sizes: Ints

    @classmethod
    def of(cls, drawings: Sequence[ViewDrawing | None], cameras: Floats, sizes: Ints) -> _Views:
        shapes = np.array([(0, 0) if one is None else one.limbs.shape[::-1] for one in drawings], np.int64)
        away = np.zeros((len(drawings), *shapes.max(axis=0)[::-1]), np.float32)
        corners = np.zeros((len(drawings), 3))
        for index, one in enumerate(drawings):
            if one is not None:
                width, height = shapes[index]
                away[index, :height, :width] = one.canvas.emptiness / one.rate
                corners[index] = one.canvas.left, one.canvas.top, one.canvas.step
        return cls(away, corners, shapes, cameras, sizes)


# Eight parameters, of which three are settings of the same body.
def borne_out(
    drawings: Sequence[ViewDrawing | None],
    cameras: Floats,
    sizes: Ints,
    vertices: Floats,
    of_vertex: Ints,
    up: Floats,
    tolerance: float,
    asked: tuple[Bools, Bools],
) -> tuple[Floats, Floats]:
    """Return shares (L, C) of what stands in empty air, and of what is missing, that count; 1 where there is none.

    Args:
        drawings: of all views. cameras: (C, 36) packed. sizes: (C, 2) of the images.
        vertices: (V, 3) of the body, mm. of_vertex: (V,) limb of each.
        up: (3,) vertical.
        tolerance: how far outlines may lie from each other, mm.
        asked: (C,) views in which something stands in empty air, and in which something is missing.
    """
    count = int(of_vertex.max()) + 1
    empty, missing = np.ones((count, len(drawings))), np.ones((count, len(drawings)))
    seen = [(index, drawing) for index, drawing in enumerate(drawings) if drawing is not None]
    if len(seen) < 3:
        return empty, missing
    if asked[0].any():
        away = np.zeros((len(drawings), len(vertices)))
        shown = np.zeros(len(vertices), np.int64)
        for index, drawing in seen:
            away[index], alone = _looked_up(drawing, projected(vertices, cameras[index]), of_vertex)
            shown += alone
        for index in np.flatnonzero(asked[0]).tolist():
            out = away[index] > tolerance
            for limb in np.unique(of_vertex[out]):
                empty[limb, index] = 1.0 - float((shown[out & (of_vertex == limb)] >= ALONE).mean())
    if not asked[1].any():
        return empty, missing
    views, box = _Views.of(drawings, cameras, sizes), _around(vertices, up, tolerance)
    for index, drawing in seen:
        if not asked[1][index]:
            continue
        pixels, owner = unexplained(drawing, tolerance)
        for limb in np.unique(owner):
            some = np.flatnonzero(owner == limb)
            some = some[np.linspace(0, len(some) - 1, min(PIXELS, len(some))).astype(int)]
            met = _met(
                np.ascontiguousarray(pixels[some]), index, views.away, views.corners, views.shapes, cameras, sizes,
                box, up, tolerance,
            )  # fmt: skip
            missing[limb, index] = float(met.mean())
    return empty, missing


def _looked_up(drawing: ViewDrawing, pixels: Floats, of_vertex: Ints) -> tuple[Floats, Bools]:
    """(V,) how far outside the silhouette each vertex is, mm; and whether it is on it where no other limb is drawn."""
    canvas = drawing.canvas
    at = np.floor((pixels - np.array([canvas.left, canvas.top])) / canvas.step)
    known = (at >= 0).all(axis=1) & (at < canvas.mask.shape[::-1]).all(axis=1)
    x, y = np.where(known[:, None], at, 0).astype(np.int64).T
    away = np.where(known, canvas.emptiness[y, x] / drawing.rate, np.inf)
    alone = known & (canvas.mask[y, x] > 0) & (drawing.limbs[y, x] == 1 << of_vertex)
    return away, alone


def _around(vertices: Floats, up: Floats, tolerance: float) -> Floats:
    """(3, 3) lowest and highest corner of the room around a body, and in the third row the height of its feet."""
    low, high = vertices.min(axis=0) - ROOM * tolerance, vertices.max(axis=0) + ROOM * tolerance
    return np.stack([low, high, np.full(3, float((vertices @ up).min()) - tolerance)])


# Ten parameters: a kernel over the fields of all views.
@compiled
def _met(
    pixels: Floats,
    view: int,
    away: Singles,
    corners: Floats,
    shapes: Ints,
    cameras: Floats,
    sizes: Ints,
    box: Floats,
    up: Floats,
    tolerance: float,
) -> Bools:
    """(n,) whether the lines of sight of pixels (n, 2) of a view meet a place that nearly all other views have."""
    found = np.zeros(len(pixels), np.bool_)
    jacobian, scratch = np.zeros((2, 3)), np.zeros((2, 16))
    at, way = np.zeros(3), np.zeros(3)
    # number by number: expressions of arrays take numba ten times as long
    reach = 0.0
    for i in range(3):
        reach += (box[1, i] - box[0, i]) ** 2
    reach = 0.5 * np.sqrt(reach)
    steps = int(reach / tolerance) + 1
    for k in range(len(pixels)):
        for i in range(3):
            at[i] = 0.5 * (box[0, i] + box[1, i])
        for _ in range(ROUNDS):
            u, v = project_point_with_jacobian(cameras[view], at[0], at[1], at[2], jacobian, scratch)
            du, dv = pixels[k, 0] - u, pixels[k, 1] - v
            a, b, d = 0.0, 0.0, 0.0
            for i in range(3):
                a += jacobian[0, i] * jacobian[0, i]
                b += jacobian[0, i] * jacobian[1, i]
                d += jacobian[1, i] * jacobian[1, i]
            scale = a * d - b * b
            if not (np.isfinite(du + dv) and scale > 0.0):
                at[0] = np.nan
                break
            for i in range(3):
                at[i] += (jacobian[0, i] * (d * du - b * dv) + jacobian[1, i] * (a * dv - b * du)) / scale
        if not np.isfinite(at[0]):
            continue
        length = 0.0
        for i in range(3):
            way[i] = at[i] - cameras[view, CENTRE_X + i]
            length += way[i] ** 2
        length = np.sqrt(length)
        for i in range(3):
            way[i] /= length
        for step in range(-steps, steps + 1):
            far = tolerance * step
            x, y, z = at[0] + far * way[0], at[1] + far * way[1], at[2] + far * way[2]
            inside = x >= box[0, 0] and x <= box[1, 0] and y >= box[0, 1] and y <= box[1, 1]
            inside = inside and z >= box[0, 2] and z <= box[1, 2] and x * up[0] + y * up[1] + z * up[2] >= box[2, 0]
            if inside and _had(x, y, z, view, away, corners, shapes, cameras, sizes, SLACK * tolerance):
                found[k] = True
                break
    return found


# Ten parameters: part of the kernel above.
@compiled
def _had(
    x: float,
    y: float,
    z: float,
    view: int,
    away: Singles,
    corners: Floats,
    shapes: Ints,
    cameras: Floats,
    sizes: Ints,
    slack: float,
) -> bool:
    """Whether nearly all other views have a place in their silhouettes; one whose image does not hold it has no say."""
    asked, had = 0, 0
    for other in range(len(cameras)):
        if other == view or shapes[other, 0] == 0:
            continue
        u, v = project_point(cameras[other], x, y, z)
        if not (u >= 0.0 and v >= 0.0 and u < sizes[other, 0] and v < sizes[other, 1]):
            continue
        asked += 1
        column = np.floor((u - corners[other, 0]) / corners[other, 2])
        row = np.floor((v - corners[other, 1]) / corners[other, 2])
        drawn = column >= 0.0 and row >= 0.0 and column < shapes[other, 0] and row < shapes[other, 1]
        if drawn and away[other, int(row), int(column)] <= slack:
            had += 1
    return asked >= 2 and had >= asked - asked // MAY_LACK
