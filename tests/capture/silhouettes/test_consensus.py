"""Views that hold far more than the subject must not take it out of those that are right."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig
from calibration.geometry.transforms import RigidTransform
from capture.hull.agreement import overlap
from capture.silhouettes.views.consensus import consensus

SIZE, FOCAL, RADIUS = (320, 240), 600.0, 12.0


def camera(index: int) -> LensCamera:
    turn = 2 * np.pi / 5 * index + 0.3
    centre = np.array([700 * np.cos(turn), 700 * np.sin(turn), 300.0 + 40 * index])
    forward = -centre / np.linalg.norm(centre)
    right = np.cross(forward, [0, 0, 1.0])
    right /= np.linalg.norm(right)
    rotation = np.stack([right, np.cross(forward, right), forward])
    lens = PinholeLens(SIZE, np.array([[FOCAL, 0, 159.5], [0, FOCAL, 119.5], [0, 0, 1]]))
    return LensCamera(f"cam{index}", lens, RigidTransform(rotation, -rotation @ centre))


@pytest.mark.parametrize("strips", [[(225, 240, 6, 310)], [(8, 28, 8, 60), (215, 235, 260, 310)]])
def test_what_three_views_hold_beside_a_small_subject_does_not_take_it_out_of_the_other_two(
    strips: list[tuple[int, int, int, int]],
) -> None:
    """As when somebody walks past: the hull of what they hold is as large as the room, and coarse."""
    rig = Rig(tuple(camera(index) for index in range(5)))
    masks = []
    for view in rig:
        ball = np.zeros(SIZE[::-1], np.uint8)
        x, y = np.round(view.project(np.zeros((1, 3)))[0]).astype(int)
        cv2.circle(ball, (int(x), int(y)), round(FOCAL * RADIUS / float(np.linalg.norm(view.centre))), 1, -1)
        masks.append(ball.view(np.bool_))
    found = [mask.copy() for mask in masks]
    for index in (0, 2, 4):
        for top, bottom, left, right in strips:
            found[index][top:bottom, left:right] = True
    verdict = consensus(found, rig)
    assert min(overlap(mask, true) for mask, true in zip(verdict.masks, masks, strict=True)) > 0.95
