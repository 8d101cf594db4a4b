"""Lines of sight against the same written plainly: every point of every line asked of every view."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.projection import project_point
from calibration.cameras.rig import Rig
from capture.silhouettes.views import following
from capture.silhouettes.views.lines_of_sight import Others, Scene, _pack, lines_that_meet
from capture.silhouettes.views.pair_distances import fill_pair_distances
from tests.capture.silhouettes.test_real_footage import RIG, ball
from tests.capture.silhouettes.test_real_footage import camera as camera_of


def bent(view: LensCamera, coefficients: tuple[float, ...]) -> LensCamera:
    lens = PinholeLens(view.size, view.lens.intrinsics, np.array(coefficients))
    return LensCamera(view.name, lens, view.camera_from_world)


def plain_meeting(masks: list[np.ndarray], rig: Rig, own: int, depths: np.ndarray, tolerated: int) -> np.ndarray:
    """Return (H, W) which lines of a view have a point that all but the tolerated of the others have inside."""
    height, width = masks[own].shape
    grid = np.stack(np.meshgrid(np.arange(width, dtype=float), np.arange(height, dtype=float)), axis=-1)
    origins, directions = rig[own].rays(grid)
    met = np.zeros((height, width), dtype=bool)
    for depth in depths:
        outside = np.zeros((height, width), dtype=int)
        for index, (mask, camera) in enumerate(zip(masks, rig, strict=True)):
            if index != own:
                u, v = np.moveaxis(np.rint(camera.project(origins + depth * directions)).astype(int), -1, 0)
                shown = (u >= 0) & (v >= 0) & (u < width) & (v < height)
                outside += ~(shown & mask[np.clip(v, 0, height - 1), np.clip(u, 0, width - 1)])
        met |= outside <= tolerated
    return met


@pytest.mark.parametrize("tolerated", [0, 1])
def test_lines_meet_what_a_walk_along_each_of_them_meets(tolerated: int) -> None:
    rig = Rig(tuple(bent(view, (-0.1, 0.02, 0.001, -0.001)) for view in RIG))
    masks = [ball(view, (0, 0, 40)) | ball(view, (60, 0, 40)) for view in rig]
    masks[1][:, :95] = False  # one view has lost a part
    scene = Scene.of(masks, rig)
    assert scene.box is not None
    box = scene.box.grown(100.0)
    everywhere = np.ones(masks[0].shape, dtype=bool)
    views, others = scene.packed(masks, 1), Others(tolerated=tolerated, needed=2)
    assert scene.packed(masks, 1) is views  # packed once
    one_by_one = lines_that_meet(scene, 0, (everywhere, (0, 0), 1), views, box, others)
    wanted = plain_meeting(masks, rig, 0, np.arange(350.0, 750.0, 1.0), tolerated)
    # The others count as one pixel larger: what is met in the plain way is met here, but where a line grazes the hull
    # between two steps, and a rim besides.
    assert np.count_nonzero(wanted & ~one_by_one) < 0.01 * np.count_nonzero(wanted)
    assert np.count_nonzero(one_by_one) < 1.15 * np.count_nonzero(wanted)
    coarse_first = lines_that_meet(scene, 0, (everywhere, (0, 0), 1), views, box, others, 4)
    assert np.count_nonzero(coarse_first != one_by_one) < 0.05 * np.count_nonzero(wanted)
    assert_those_around_are_believed(coarse_first)


def assert_those_around_are_believed(met: np.ndarray) -> None:
    """Lines between such as agree are not followed: they are as these, at the finest level and the one before."""
    height, width = met.shape
    for level in (2, 1):
        for y in range(0, height, level):
            for x in range(0, width, level):
                rows, columns = {y - (y & level), y + (y & level)}, {x - (x & level), x + (x & level)}
                around = {bool(met[v, u]) for v in rows for u in columns if v < height and u < width}
                assert len(around) > 1 or bool(met[y, x]) in around


@pytest.mark.parametrize("count", [8, 9, 11])
def test_views_beyond_those_that_are_looked_at_at_once_count(count: int) -> None:
    rig = Rig(tuple(camera_of(index, count) for index in range(count)))
    masks = [ball(view, (0, 0, 40)) for view in rig]
    masks[count - 1][:] = ball(rig[count - 1], (60, 0, 40))  # the last view of all has it elsewhere
    scene = Scene.of([ball(view, (0, 0, 40)) for view in rig], rig)
    assert scene.box is not None
    everywhere, views = np.ones(masks[0].shape, dtype=bool), scene.packed(masks, 1)
    for tolerated in (0, 1):
        others, box = Others(tolerated=tolerated, needed=2), scene.box.grown(50.0)
        found = lines_that_meet(scene, 0, (everywhere, (0, 0), 1), views, box, others)
        wanted = plain_meeting(masks, rig, 0, np.arange(350.0, 750.0, 1.0), tolerated)
        assert np.count_nonzero(wanted & ~found) <= 0.02 * np.count_nonzero(wanted)
        assert np.count_nonzero(found) <= 1.2 * np.count_nonzero(wanted) + 40


def test_plain_lenses_are_projected_as_all_others(rng: np.random.Generator) -> None:
    for coefficients in ((), (-0.2, 0.06, 0.001, -0.002), (-0.2, 0.06, 0.001, -0.002, 0.01)):
        rig = Rig(tuple(bent(view, coefficients) for view in RIG))
        masks = [ball(view, (0, 0, 40)) for view in rig]
        views = Scene.of(masks, rig).packed(masks, 1)
        for origin, point in rng.uniform(-600, 600, (100, 2, 3)):
            lanes = following._lanes(views, origin)
            following._turn(views.rows, point - origin, lanes)
            following._project(lanes, np.uintp(0), np.uintp(following.LANES), 1.0)
            for index, view in enumerate(rig):
                seen = lanes[index + following._U], lanes[index + following._V]
                np.testing.assert_allclose(seen, project_point(view.packed(), *point), rtol=1e-9)
    rational = Rig(tuple(bent(view, (-0.2, 0.06, 0.0, 0.0, 0.0, 0.1, 0.0, 0.0)) for view in RIG))
    masks = [ball(view, (0, 0, 40)) for view in rational]
    assert not Scene.of(masks, rational).packed(masks, 1).layout[:, 10].any()
    assert Scene.of(masks, RIG).packed(masks, 1).layout[:, 10].all()


@pytest.mark.parametrize("shape", [(60, 80), (61, 83), (1, 5)])
def test_no_pixel_is_nearer_to_a_mask_than_is_said_of_its_four(
    shape: tuple[int, int], rng: np.random.Generator
) -> None:
    mask = rng.random(shape) < 0.01
    mask[0, 0] = True
    shown, away = np.empty(mask.size, np.uint8), np.empty(mask.size, np.float32)
    layout = np.zeros(12, np.int64)
    layout[1:3] = shape[::-1]
    _pack(mask, 1, layout, shown, away)
    larger = cv2.dilate(mask.view(np.uint8), np.ones((3, 3), np.uint8))
    np.testing.assert_array_equal(shown.reshape(shape), larger)
    true = cv2.distanceTransform(1 - larger, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    half = ((shape[0] + 1) // 2, (shape[1] + 1) // 2)
    of_four = 2.0 * following.SURE * away[: half[0] * half[1]].reshape(half) - np.sqrt(2.0)  # as the kernel reads them
    said = np.repeat(np.repeat(of_four, 2, axis=0), 2, axis=1)[: shape[0], : shape[1]]
    assert (said <= true + 1e-4).all()
    far = true > 20
    assert not far.any() or (true - said)[far].max() < 0.15 * true.max() + 2.0


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (61, 80), (90, 47)])
@pytest.mark.parametrize("share", [0.0005, 0.01, 0.5])
def test_distances_of_pairs_are_those_of_opencv(shape: tuple[int, int], share: float, rng: np.random.Generator) -> None:
    mask = (rng.random(shape) < share).astype(np.uint8)
    mask[shape[0] // 2, shape[1] // 3] = 1
    full = np.zeros((-(-shape[0] // 2) * 2, -(-shape[1] // 2) * 2), np.uint8)
    full[: shape[0], : shape[1]] = mask
    pairs = full.reshape(len(full) // 2, 2, -1, 2).max(axis=(1, 3))
    found = np.empty(pairs.shape, np.float32)
    fill_pair_distances(mask, found)
    wanted = cv2.distanceTransform(1 - pairs, cv2.DIST_L2, cv2.DIST_MASK_3)
    np.testing.assert_allclose(found, wanted, rtol=3e-5)  # it adds up rounded numbers, we whole ones
    fill_pair_distances(np.zeros_like(mask), found)
    assert (found == 8192.0).all()
