"""Which of a frame's 2D points to believe: what cameras agree on, and what lies on the silhouettes.

A point marked in several views is looked for in space; views that do not see it there are wrong. A point that lies off
the silhouettes in two views contradicts them and is dropped for the frame; in one view, that view is dropped.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import cv2
import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Floats, Ints
from tracking.observations.contours import View
from tracking.observations.marks import Marks, MarkStatus

__all__ = ["believe"]

NEAR = 0.035
"""How far a mark may lie off the silhouette, or from where other views put it, as a share of the silhouette's size."""
LEAST_CONFIDENCE = 0.1
"""Marks of less are none."""


def believe(rig: Rig, views: Sequence[View], pixels: Floats, confidence: Floats) -> Marks:
    """Sort the marks of one frame.

    Args:
        rig: C cameras.
        views: their silhouettes.
        pixels: (C, P, 2) marks, px; NaN where there is none.
        confidence: (C, P).
    """
    given = np.isfinite(pixels).all(axis=2) & (confidence >= LEAST_CONFIDENCE)
    seen = np.array([len(view.points) > 0 for view in views])
    given &= seen[:, None]
    status = np.where(given, int(MarkStatus.ALONE), int(MarkStatus.NOT_GIVEN))
    near = np.array([NEAR * max(view.box[2:]) for view in views])
    off = np.zeros_like(given)
    for camera, view in enumerate(views):
        if given[camera].any():
            off[camera] = given[camera] & (_outside(view, pixels[camera]) > near[camera])
    status[off] = int(MarkStatus.OFF_THE_SILHOUETTE)
    contradicted = off.sum(axis=0) >= 2
    status[:, contradicted] = np.where(given[:, contradicted], int(MarkStatus.CONTRADICTS_OUTLINES), 0)
    kept = status == int(MarkStatus.ALONE)
    for point in np.flatnonzero(kept.sum(axis=0) >= 2):
        cameras = np.flatnonzero(kept[:, point])
        agree = _agreeing(rig, cameras, pixels[cameras, point], near[cameras])
        if agree.sum() >= 2:
            status[cameras, point] = np.where(agree, int(MarkStatus.CONFIRMED), int(MarkStatus.OTHER_VIEWS_DISAGREE))
        elif len(cameras) > 2:
            status[cameras, point] = int(MarkStatus.OTHER_VIEWS_DISAGREE)
    used = (status == int(MarkStatus.CONFIRMED)) | (status == int(MarkStatus.ALONE))
    marks = np.argwhere(used)
    rows, columns = np.asarray(marks[:, 0], np.int64), np.asarray(marks[:, 1], np.int64)
    confirmed: Bools = status[rows, columns] == int(MarkStatus.CONFIRMED)
    return Marks(columns, rows, pixels[rows, columns], confidence[rows, columns], confirmed, status)


def _outside(view: View, pixels: Floats) -> Floats:
    """How far each pixel (P, 2) lies outside a silhouette, px; NaN counts as inside."""
    room = int(0.2 * max(view.box[2:])) + 2
    free = cv2.copyMakeBorder(1 - view.mask, room, room, room, room, cv2.BORDER_CONSTANT, value=1)
    distance = cv2.distanceTransform(free, cv2.DIST_L2, 5)
    at = np.nan_to_num(pixels) - np.array(view.box[:2]) + room
    high = np.array(free.shape[::-1]) - 1
    inside = np.clip(at, 0, high)
    column, row = np.rint(inside).astype(int).T
    return np.asarray(distance[row, column] + np.linalg.norm(at - inside, axis=1), np.float64)


def _agreeing(rig: Rig, cameras: Ints, pixels: Floats, near: Floats) -> Bools:
    """(K,) which of K cameras see one and the same point, tried from every two of them."""
    chosen = [rig.cameras[camera] for camera in cameras]
    rays = [camera.rays(pixel) for camera, pixel in zip(chosen, pixels, strict=True)]
    best, best_rank = np.zeros(len(cameras), bool), (1, 0.0)
    for a, b in itertools.combinations(range(len(cameras)), 2):
        place = _meeting(*rays[a], *rays[b])
        if place is None:
            continue
        off = np.array(
            [
                np.linalg.norm(camera.project(place) - pixel) / limit
                for camera, pixel, limit in zip(chosen, pixels, near, strict=True)
            ]
        )
        agree = np.nan_to_num(off, nan=np.inf) <= 1.0
        rank = (int(agree.sum()), -float(off[agree].mean()) if agree.any() else -np.inf)
        if rank > best_rank:
            best, best_rank = agree, rank
    return best


def _meeting(first: Floats, one: Floats, second: Floats, other: Floats) -> Floats | None:
    """Return the middle (3,) of the shortest line between two rays, None where they are parallel or meet behind."""
    between = second - first
    cosine = float(one @ other)
    sine = 1.0 - cosine**2
    if not sine > 1e-4:
        return None
    s = float(between @ (one - cosine * other)) / sine
    t = float(between @ (cosine * one - other)) / sine
    if s <= 0 or t <= 0:
        return None
    return np.asarray(0.5 * (first + s * one + second + t * other))
