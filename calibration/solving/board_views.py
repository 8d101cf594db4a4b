"""Every camera's view of every board pose, with the poses that may explain it alone, and how well one does."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibration.boards.sightings import Sightings
from calibration.cameras.camera_row import R00, TX
from calibration.cameras.projection import project_point
from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.compiled import compiled
from calibration.geometry.transforms import RigidTransform
from calibration.solving.planar_pose import half_turn, poses_of_views

__all__ = ["CAP_PX", "Views", "board_views", "capped_error", "compose", "set_pose"]

CAP_PX = 8.0  # a candidate's error is capped here, so that one wrong view cannot outvote the rest
HALF_TURN = np.array([-1.0, -1.0, 1.0])  # of the axes of a board turned by 180 degrees


class Views(NamedTuple):
    """Every camera's view of every target, in the order of the sightings (target by target), and its poses.

    Attributes:
        camera, target: (v,) whose view of what.
        starts, ends: (v,) rows of each view in ``model`` and ``pixels``.
        model, pixels: (n, 3), (n, 2) corners and their images.
        rotations, translations: (v, 4, 3, 3), (v, 4, 3) candidate camera_from_board poses; the second half of them
            with the corners in the other order where the board looks the same upside down.
        poses: (v,) how many of them there are.
        turn: (v, 3) where the half turn that a view may be off by moves the board's origin; NaN: order known.
    """

    camera: Ints
    target: Ints
    starts: Ints
    ends: Ints
    model: Floats
    pixels: Floats
    rotations: Floats
    translations: Floats
    poses: Ints
    turn: Floats


def board_views(rows: Floats, sightings: Sightings) -> Views:
    """Return all views with their candidate poses through the lenses of ``rows`` (c, 36)."""
    points, index = sightings.model_points()
    targets = sightings.targets()
    camera, target, ends = sightings.view_runs()
    model = points[index]
    first, second, rms = poses_of_views(rows, camera, model, sightings.pixels, ends)
    rotations, translations = np.zeros((len(camera), 4, 3, 3)), np.zeros((len(camera), 4, 3))
    rotations[:, :2], translations[:, :2] = first, second
    count = np.isfinite(rms).sum(1)
    turns = np.array([np.full(3, np.nan) if t is None else t.translation for t in _turns(sightings)])
    turn = turns[targets.board[target]]
    for v in np.flatnonzero(np.isfinite(turn[:, 0])):
        for k in range(count[v]):
            r, t = rotations[v, k], translations[v, k]
            rotations[v, count[v] + k], translations[v, count[v] + k] = r * HALF_TURN, r @ turn[v] + t
        count[v] *= 2
    starts = np.concatenate([[0], ends[:-1]])
    return Views(
        camera, target, starts, ends, model, sightings.pixels, rotations, translations, count.astype(np.int64), turn
    )


def _turns(sightings: Sightings) -> list[RigidTransform | None]:
    """Return for each board the half turn that its views may be off by, None where the order is known.

    With fewer than three poses motion cannot tell; the order given (see `calibration.solving.half_turns`) is taken.
    """
    if len(sightings.targets()) < 3:
        return [None] * len(sightings.boards)
    return [half_turn(b.points_mm) if b.looks_same_upside_down else None for b in sightings.boards]


@compiled
def set_pose(row: Floats, rotation: Floats, translation: Floats) -> None:
    """Give a packed camera the pose camera_from_board, so that it projects points of the board."""
    for i in range(3):
        for j in range(3):
            row[R00 + 3 * i + j] = rotation[i, j]
        row[TX + i] = translation[i]


@compiled
def compose(a: Floats, s: Floats, b: Floats, t: Floats, out: Floats, shift: Floats) -> None:
    """Fill rotation and translation of the motion (b, t) followed by (a, s)."""
    for i in range(3):
        for j in range(3):
            out[i, j] = a[i, 0] * b[0, j] + a[i, 1] * b[1, j] + a[i, 2] * b[2, j]
        shift[i] = a[i, 0] * t[0] + a[i, 1] * t[1] + a[i, 2] * t[2] + s[i]


@compiled
def capped_error(row: Floats, model: Floats, pixels: Floats, first: int, last: int, bound: float) -> float:
    """Sum of squared distances of corners from their projection, each capped (NaN too); stops above ``bound``."""
    total = 0.0
    for n in range(first, last):
        u, v = project_point(row, model[n, 0], model[n, 1], model[n, 2])
        square = (u - pixels[n, 0]) ** 2 + (v - pixels[n, 1]) ** 2
        total += square if square < CAP_PX**2 else CAP_PX**2
        if total > bound:
            break
    return total
