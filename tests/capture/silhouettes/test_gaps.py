"""Holes and bites of a silhouette that the other views close, and those that they do not."""

from __future__ import annotations

import cv2
import numpy as np

from capture.backgrounds.background import Background
from capture.mask_runs import runs_of
from capture.silhouettes import Cleaning
from capture.silhouettes.cleanup import fill_holes
from capture.silhouettes.difference import PlateModel
from capture.silhouettes.doubts import Doubt, doubt_of
from capture.silhouettes.gaps import _changes, _held, _unlike_the_ground, without_gaps
from capture.silhouettes.judging import _CloseViews, _restore
from capture.silhouettes.models import CameraModel
from capture.silhouettes.views.confirmation import Floor
from capture.silhouettes.views.restoration import seen_above
from tests.capture.silhouettes.test_real_footage import RADIUS, RIG, ball

GROUND = 130.0


def filmed(looks: np.ndarray, first: np.ndarray) -> tuple[Doubt, PlateModel]:
    """Return the doubt about a first silhouette (H, W) of a scene of brightness ``looks`` (H, W) on even ground."""
    shape = (*looks.shape, 1)
    model = PlateModel(Background(np.full(shape, GROUND, np.float32), np.full(shape, 1.5, np.float32)))
    doubt = doubt_of(np.clip(looks, 0, 255).astype(np.uint8), first, model, Cleaning())
    assert doubt is not None
    return doubt, model


def scene(*, hole: float) -> tuple[list[np.ndarray], np.ndarray, np.ndarray, Doubt, PlateModel]:
    """Return a ball's masks, the first lacking a patch that looks ``hole`` and a shaded bite; and its doubt."""
    whole = [ball(view, (0.0, 0.0, RADIUS)) for view in RIG]
    rows, columns = np.nonzero(whole[0])
    row, column = int(rows.mean()), int(columns.mean())
    y, x = np.mgrid[: whole[0].shape[0], : whole[0].shape[1]]
    patch = (x - column) ** 2 + (y - row) ** 2 < 5**2
    bite = whole[0] & (x > column + 6) & (abs(y - row + 8) < 3)
    looks = np.where(whole[0], 25.0, GROUND)
    looks[patch], looks[bite] = hole, 0.7 * GROUND
    lacking = whole[0] & ~patch & ~bite
    doubt, model = filmed(looks, lacking)
    return [lacking, *whole[1:]], whole[0], patch, doubt, model


def closed(masks: list[np.ndarray], doubt: Doubt, model: PlateModel, floor: Floor) -> np.ndarray:
    wide = [fill_holes(mask, np.inf).copy() for mask in masks]
    wide[0][doubt.window] |= doubt.wide
    inside = seen_above(masks, wide, RIG, floor)[1]
    out, none = masks[0].copy(), np.zeros_like(masks[0][doubt.window])
    out[doubt.window] = without_gaps(doubt, masks[0][doubt.window], none, inside[0][doubt.window])
    return out


def test_a_bald_patch_and_a_bite_are_closed_where_all_others_have_the_subject() -> None:
    masks, whole, _, doubt, model = scene(hole=0.75 * GROUND)
    found = closed(masks, doubt, model, Floor(-1.0, 1, 8.0))
    assert (found & ~masks[0]).any()
    assert found[whole].mean() > 0.995
    assert not (found & ~whole).any()


def test_a_hole_that_shows_the_ground_stays_open() -> None:
    masks, _, patch, doubt, model = scene(hole=GROUND)
    found = closed(masks, doubt, model, Floor(-1.0, 1, 8.0))
    assert found[patch].mean() < 0.3  # but for its rim


def test_what_another_view_does_not_have_or_what_is_on_the_floor_is_not_regained() -> None:
    masks, _, _, doubt, model = scene(hole=0.75 * GROUND)
    low = closed(masks, doubt, model, Floor(-1.0, 1, 3 * RADIUS))  # all of the ball is too near to the floor
    assert (low == masks[0]).all()
    beside = [masks[0], ball(list(RIG)[1], (0.0, 60.0, 2 * RADIUS)) & ~masks[1], *masks[2:]]
    assert (closed(beside, doubt, model, Floor(-1.0, 1, 8.0)) == masks[0]).all()


def test_before_a_filmed_empty_scene_gaps_that_look_like_faint_shade_stay() -> None:
    masks, _, patch, doubt, model = scene(hole=0.93 * GROUND)
    regained = {}
    for name in ("moving", "plate"):
        views = _CloseViews.of(masks, [doubt, *(None for _ in masks[1:])], RIG)
        models = [CameraModel(name, model, Cleaning(), grey=True) for _ in masks]
        _restore(views, models, Floor(-1.0, 1, 8.0), [None] * len(masks))
        regained[name] = float(views.masks[0][patch[doubt.window]].mean())
    assert regained["moving"] > 0.95 and regained["plate"] < 0.3


def plainly_held(found: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return what `_held` does, side by side of an image of labels."""
    new = cv2.copyMakeBorder((found & ~mask).view(np.uint8), 1, 1, 1, 1, cv2.BORDER_CONSTANT)
    mask = cv2.copyMakeBorder(mask.view(np.uint8), 1, 1, 1, 1, cv2.BORDER_CONSTANT).view(np.bool_)
    count, labels = cv2.connectedComponents(new, connectivity=4)
    rim, own = np.zeros(count), np.zeros(count)
    inner = labels[1:-1, 1:-1]
    for side in ((0, 1), (2, 1), (1, 0), (1, 2)):
        other = slice(side[0], side[0] + inner.shape[0]), slice(side[1], side[1] + inner.shape[1])
        at = (inner > 0) & (labels[other] != inner)
        rim += np.bincount(inner[at], minlength=count)
        own += np.bincount(inner[at & mask[other]], minlength=count)
    keep = own > 0.55 * rim
    keep[0] = False
    return np.asarray(keep[inner])


def test_the_rims_of_parts_are_those_of_an_image_of_labels() -> None:
    rng = np.random.default_rng(3)
    for share in (0.2, 0.5, 0.8):
        mask = cv2.blur(rng.uniform(size=(60, 71)), (5, 5)) > 0.5
        found = rng.uniform(size=mask.shape) < share
        wanted = plainly_held(found, mask)
        assert 0 < np.count_nonzero(wanted) < np.count_nonzero(found & ~mask)
        np.testing.assert_array_equal(_held(found, mask), wanted)


def test_shade_between_two_limbs_is_no_part_of_them_and_what_is_unlike_the_ground_is() -> None:
    y, x = np.mgrid[:60, :100]
    limbs = ((abs(y - 15) < 5) | (abs(y - 45) < 5)) & (x < 80)
    gap = (abs(y - 30) < 11) & (x < 80)
    for inner, outer, regained in ((0.6, 0.7, False), (1.2, 1.0, False), (0.4, 0.7, True), (0.6, 1.0, True)):
        lit = np.where(limbs, 0.1, np.where(gap, inner, outer)).astype(np.float32)[:, :, None]
        found = _unlike_the_ground(gap & ~limbs, limbs, lit)
        np.testing.assert_array_equal(found, gap & ~limbs if regained else np.zeros_like(gap))
    enclosed = (abs(y - 30) < 3) & (abs(x - 40) < 3)
    lit = np.full((*gap.shape, 1), 0.7, np.float32)
    assert _unlike_the_ground(enclosed, ~enclosed, lit).sum() == enclosed.sum()


def test_the_light_changes_at_the_sides_of_a_part_as_it_is_made_to() -> None:
    mask, new = np.zeros((30, 40), dtype=bool), np.zeros((30, 40), dtype=bool)
    mask[:, :15], new[10:20, 15:25] = True, True
    lit = np.where(mask, 0.2, np.where(new, 0.7, 1.0)).astype(np.float32)[:, :, None]
    runs = runs_of(new, diagonal=False)
    sides, change = _changes(new, mask, lit, runs.table, len(runs.areas))
    np.testing.assert_array_equal(sides[:, 0], (30, 10))  # three open sides of ten pixels, and one held
    np.testing.assert_allclose(change[:, 0], (30 * 0.3, 10 * 0.5), rtol=1e-5)
