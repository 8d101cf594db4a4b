"""A body of uneven shape that walks, bends and turns, as outlines that cameras see of it."""

from __future__ import annotations

import cv2
import numpy as np

from calibration.cameras.rig import Rig
from calibration.geometry.transforms import rotation_from_vector
from capture.camera_checks.outlines import Outlines, join_outlines

FRAMES = 60


def body(frame: float) -> np.ndarray:
    """Return points (n, 3), mm, of a body of uneven shape that walks, bends and turns."""
    rng = np.random.default_rng(5)
    points = rng.normal(size=(200, 3))
    points *= np.array([30.0, 12.0, 14.0]) / np.linalg.norm(points, axis=1, keepdims=True)
    points[:, 2] += 10 * np.sin(0.21 * frame + points[:, 0] / 20)
    turn = rotation_from_vector([0.2 * np.sin(0.3 * frame), 0.15 * np.sin(0.17 * frame), 0.03 * frame])
    place = [30 * np.sin(0.11 * frame), 25 * np.sin(0.07 * frame + 1), 5 * np.sin(0.4 * frame)]
    return points @ turn.T + place


def seen(rig: Rig, late: dict[int, float] | None = None, frames: int = FRAMES) -> list[Outlines]:
    """Return the outlines that cameras see, some of them late; corners are rounded to pixels as in masks."""
    found = []
    for index, camera in enumerate(rig):
        moments = np.arange(frames) - (late or {}).get(index, 0.0)
        corners = []
        for moment in moments:
            pixels = camera.project(body(moment))
            hull = cv2.convexHull(camera.undistort_points(pixels).astype(np.float32), returnPoints=False)
            corners.append(np.round(pixels[hull.ravel()]))
        found.append(join_outlines(corners))
    return found
