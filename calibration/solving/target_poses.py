"""Board poses in the world of known cameras: of all that single views propose, the one that explains them all best."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from calibration.boards.sightings import Sightings
from calibration.cameras.camera_row import LIMIT, R00, R10, R20, TX, TY, TZ
from calibration.foundation.arrays import Bools, Floats
from calibration.foundation.compiled import compiled
from calibration.solving.board_views import Views, board_views, capped_error, compose, set_pose
from calibration.solving.planar_pose import lens_row

__all__ = ["place_targets"]


def place_targets(rows: Floats, sightings: Sightings, views: Views | None = None) -> tuple[Floats, Floats, Sightings]:
    """Return the world pose of every target that explains all its views best, and the sightings in one order.

    Candidates are both planar solutions of every camera that saw the target. Rotations (t, 3, 3) and translations
    (t, 3) are NaN where no camera has one.
    """
    views = board_views(rows, sightings) if views is None else views
    targets = sightings.targets()
    free = rows.copy()
    free[:, 32] = [lens_row(row)[32] for row in rows]
    rotations, translations, turned = _place(free, len(targets), views)
    if not turned.any():
        return rotations, translations, sightings
    mine = np.repeat(turned, views.ends - views.starts)
    corners = np.array([board.corners for board in sightings.boards])[sightings.board]
    return (
        rotations,
        translations,
        replace(sightings, corner=np.where(mine, corners - 1 - sightings.corner, sightings.corner)),
    )


@compiled
def _place(rows: Floats, targets: int, views: Views) -> tuple[Floats, Floats, Bools]:
    """Return the best world pose of each target and which views have the corners of an ambiguous board turned."""
    camera, target, starts, ends, model, pixels, rotations, translations, poses, turn = views
    out, shift = np.full((targets, 3, 3), np.nan), np.full((targets, 3), np.nan)
    turned = np.zeros(camera.shape[0], np.bool_)
    back, away = np.empty((3, 3)), np.empty(3)
    world, place = np.empty((3, 3)), np.empty(3)
    first = 0
    while first < camera.shape[0]:
        last = first
        while last < camera.shape[0] and target[last] == target[first]:
            last += 1
        best = np.inf
        for v in range(first, last):
            row = rows[camera[v]]
            # world_from_camera
            for i in range(3):
                for j in range(3):
                    back[i, j] = row[R00 + 3 * j + i]
                away[i] = -row[R00 + i] * row[TX] - row[R10 + i] * row[TY] - row[R20 + i] * row[TZ]
            straight = poses[v] // 2 if math.isfinite(turn[v, 0]) else poses[v]
            for k in range(straight):
                compose(back, away, rotations[v, k], translations[v, k], world, place)
                error = 0.0
                for o in range(first, last):
                    error += _either(rows[camera[o]], world, place, starts[o], ends[o], model, pixels, turn[o])[0]
                    if error > best:
                        break
                if error < best:
                    best = error
                    out[target[first]] = world
                    shift[target[first]] = place
        if math.isfinite(best):
            for o in range(first, last):
                t = target[first]
                _, turned[o] = _either(rows[camera[o]], out[t], shift[t], starts[o], ends[o], model, pixels, turn[o])
        first = last
    return out, shift, turned


@compiled
def _either(
    row: Floats, world: Floats, place: Floats, first: int, last: int, model: Floats, pixels: Floats, turn: Floats
) -> tuple[float, bool]:
    """Return a view's capped squared error with its board at a world pose, and whether the turned order fits better."""
    posed = row.copy()
    rotation, translation = np.empty((3, 3)), np.empty(3)
    compose(row[R00:TX].reshape(3, 3), row[TX:LIMIT], world, place, rotation, translation)
    set_pose(posed, rotation, translation)
    straight = capped_error(posed, model, pixels, first, last, np.inf)
    if not math.isfinite(turn[0]):
        return straight, False
    for i in range(3):
        translation[i] += rotation[i, 0] * turn[0] + rotation[i, 1] * turn[1] + rotation[i, 2] * turn[2]
        rotation[i, 0], rotation[i, 1] = -rotation[i, 0], -rotation[i, 1]
    set_pose(posed, rotation, translation)
    other = capped_error(posed, model, pixels, first, last, np.inf)
    return min(straight, other), other < straight
