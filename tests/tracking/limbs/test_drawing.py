"""Kernels over small drawings of limbs, against plain references."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.geometry.transforms import RigidTransform
from tracking.limbs.drawing import Canvas, ViewDrawing, judged, point_values
from tracking.limbs.feet_apart import SHARE, _are_shown


def _drawing(rng: np.random.Generator) -> ViewDrawing:
    """A body of three limbs and two feet: blobs, partly outside a silhouette."""
    mask = np.zeros((70, 90), np.uint8)
    cv2.ellipse(mask, (40, 35), (30, 18), 0, 0, 360, 1, -1)
    limbs, feet = np.zeros(mask.shape, np.uint32), np.zeros(mask.shape, np.uint32)
    for bit in range(3):
        x, y = (int(v) for v in rng.integers(20, 60, size=2))
        limbs[y - 9 : y + 9, x - 9 : x + 9] |= np.uint32(1 << bit)
    feet[limbs > 0] = 1 << 2
    for foot in range(2):
        x, y = int(rng.integers(10, 80)), int(rng.integers(10, 60))
        feet[y - 7 : y + 7, x - 7 : x + 7] |= np.uint32(1 << foot)
    emptiness = np.asarray(cv2.distanceTransform(1 - mask, cv2.DIST_L2, 5), np.float32)
    return ViewDrawing(Canvas(mask, emptiness, 100.0, 80.0, 2), limbs, feet, 1.5)


def _share_apart(drawing: ViewDrawing, foot: int, near: float) -> float:
    """Share of a foot that lies in the mask and further from all else than outlines err: the whole image asked."""
    own = (drawing.feet >> foot) & 1 > 0
    if not own.any():
        return 0.0
    off = cv2.distanceTransform((drawing.feet & ~np.uint32(1 << foot) == 0).astype(np.uint8), cv2.DIST_L2, 5)
    return float((own & (off > near) & (drawing.canvas.mask > 0)).sum() / own.sum())


def test_a_foot_is_shown_where_enough_of_it_lies_apart_in_the_silhouette() -> None:
    rng = np.random.default_rng(2)
    shown, wanted = [], []
    for _ in range(60):
        drawing = _drawing(rng)
        for near in (1.2, 2.5, 4.0):
            shown.extend(_are_shown(drawing, 2, near).tolist())
            wanted.extend(_share_apart(drawing, foot, near) >= SHARE for foot in range(2))
    assert shown == wanted
    assert 0.2 < np.mean(wanted) < 0.8


def test_points_are_worth_what_they_stand_on() -> None:
    rng = np.random.default_rng(4)
    lens = PinholeLens((400, 300), np.array([[300.0, 0, 180], [0, 300.0, 150], [0, 0, 1]]), np.zeros(5))
    drawing, camera = _drawing(rng), LensCamera("camera", lens, RigidTransform(np.eye(3), np.zeros(3)))
    # 50 poses of 37 points: blocks that are projected together end within the poses.
    points = np.concatenate([rng.uniform(-80, 80, size=(50, 37, 2)), rng.uniform(380, 420, size=(50, 37, 1))], axis=2)
    totals = np.full(50, 0.25)
    point_values(drawing, camera.packed(), points.transpose(2, 0, 1).copy(), 1, 6.0, totals)
    canvas = drawing.canvas
    for pose, total in zip(points, totals, strict=True):
        worth = []
        for x, y in camera.project(pose):
            column, row = int(np.floor((x - canvas.left) / 2)), int(np.floor((y - canvas.top) / 2))
            if not (0 <= row < 70 and 0 <= column < 90):
                worth.append(-1.0)
                continue
            free = canvas.mask[row, column] > 0 and drawing.limbs[row, column] & ~np.uint32(2) == 0
            worth.append(float(free) - min(canvas.emptiness[row, column] / (6.0 * drawing.rate), 1.0))
        assert total == pytest.approx(0.25 + np.mean(worth), abs=1e-6)


def _shares(drawing: ViewDrawing, count: int, near: float, covered: int) -> np.ndarray:
    """(3, L) in empty air, missing and apart, pixel by pixel; clothes have the bit after the last limb's."""
    limbs, mask = drawing.limbs, drawing.canvas.mask
    away = cv2.distanceTransform((limbs == 0).astype(np.uint8), cv2.DIST_L2, 5)
    own = np.array([(limbs >> limb) & 1 > 0 for limb in range(count + 1)])
    area = own.sum(axis=(1, 2)).astype(float)[:count]
    outside = np.array([(drawing.canvas.emptiness[one] > near).sum() for one in own[:count]])
    apart = np.array([(one & (own.sum(axis=0) == 1)).sum() for one in own[:count]])
    missing = np.zeros(count)
    for row, column in np.argwhere((mask > 0) & (away > near)):
        limb = _nearest(limbs, row, column)
        if limb == count and away[row, column] > 2.0 * near:
            limb = _nearest(limbs & covered, row, column)
        if limb < count:
            missing[limb] += 1
    return np.stack([outside, missing, apart]) / np.where(area > 0, area, np.nan)


def _nearest(limbs: np.ndarray, row: int, column: int) -> int:
    """The highest bit of the drawn pixel that is nearest."""
    at = np.argwhere(limbs > 0)
    nearest = at[np.argmin(np.hypot(*(at - [row, column]).T))]
    return int(limbs[tuple(nearest)]).bit_length() - 1


@pytest.mark.parametrize("covered", [0, 0b011])
def test_limbs_are_judged_as_pixel_by_pixel(covered: int) -> None:
    rng = np.random.default_rng(6)
    for _ in range(6):
        drawing, near = _drawing(rng), 3.0
        if covered:
            drawing.limbs[25:45, 30:50] |= np.uint32(0b1000)  # a skirt
        told = np.stack(judged(drawing, 3, near / drawing.rate, covered=covered))
        wanted = _shares(drawing, 3, near, covered)
        np.testing.assert_allclose(told[[0, 2]], wanted[[0, 2]])
        # Pixels as near to two limbs, within the two per cent of the quick distance, may be put down to either.
        np.testing.assert_allclose(told[1].sum(), wanted[1].sum(), rtol=0.1)
        np.testing.assert_allclose(told[1], wanted[1], atol=0.06)


def test_nothing_drawn_is_judged_as_nothing() -> None:
    drawing = _drawing(np.random.default_rng(1))
    drawing.limbs[:] = 0
    assert np.isnan(np.stack(judged(drawing, 3, 2.0))).all()
