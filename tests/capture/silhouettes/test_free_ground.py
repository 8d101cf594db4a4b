"""Ground that one view mistook is found by what the others say is free; who sits is decided by all."""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Bools, Bytes
from capture.backgrounds.appearance import sitting_place
from capture.backgrounds.background import Background, NoiseCurve
from capture.silhouettes import Cleaning
from capture.silhouettes.difference import PlateModel
from capture.silhouettes.models import CameraModel, SittingSubject
from capture.silhouettes.preparation import _as_views_know
from capture.silhouettes.views.free_ground import free_of_subject, mended_ground
from tests.capture.silhouettes.test_real_footage import RADIUS, RIG, SIZE, ball

GROUND, LOOK = 130, 40
SHAPE = (SIZE[1], SIZE[0])
NOISE = NoiseCurve(np.array([0.0, 255.0]), np.array([2.0, 2.0]))
#: A ball that goes from one side to the other.
WAY = [(0.0, float(y), RADIUS) for y in np.linspace(-90.0, 90.0, 9)]


def moving_masks() -> list[list[Bools]]:
    """Return the ball's true masks, frame by frame, one per camera."""
    return [[ball(view, centre) for view in RIG] for centre in WAY]


def images(camera: int, masks: list[list[Bools]]) -> Bytes:
    """Return (n, H, W, 1) what a camera films of it."""
    rng = np.random.default_rng(camera)
    clean = np.stack([np.where(views[camera], LOOK, GROUND) for views in masks])
    return np.clip(clean + rng.normal(0.0, 1.0, clean.shape), 0, 255).round().astype(np.uint8)[..., None]


def ghosted(masks: list[list[Bools]], ghosts: bool) -> list[CameraModel]:
    """Return models whose first camera took the ball of the first frame for ground, if there are to be ghosts."""
    models = []
    for index in range(len(RIG)):
        centre = np.full((*SHAPE, 1), GROUND, np.float32)
        if ghosts and index == 0:
            centre[masks[0][0]] = LOOK
        plate = PlateModel(Background(centre, np.full((*SHAPE, 1), 2.0, np.float32)))
        models.append(CameraModel("moving", plate, Cleaning(), True))
    return models


def known(models: list[CameraModel | SittingSubject | None], masks: list[list[Bools]]) -> list[object]:
    """Return what the views make of models."""
    films = [images(camera, masks) for camera in range(len(RIG))]
    few = [[image[:, :, 0] for image in film[::2]] for film in films]
    return list(_as_views_know(models, few, RIG, lambda camera, model: films[camera], map))


def test_what_the_others_show_is_not_free_whatever_the_view_itself_says() -> None:
    masks = moving_masks()[4]
    lacking = [np.zeros_like(masks[0]), *masks[1:]]
    lacking[0][masks[0].nonzero()[0].max(), masks[0].nonzero()[1].mean().astype(int)] = True
    free = free_of_subject(lacking, RIG)
    assert not (free[0] & masks[0]).any()
    assert free[0].mean() > 0.7
    right = free_of_subject(masks, RIG)
    assert not any((one & mask).any() for one, mask in zip(right, masks, strict=True))
    assert (right[0] == free[0]).all()


def test_one_other_view_says_nothing() -> None:
    masks = [mask if index < 1 else np.zeros_like(mask) for index, mask in enumerate(moving_masks()[4])]
    assert not any(one.any() for one in free_of_subject(masks, RIG))


def said_to_sit(model: CameraModel, camera: int, masks: list[list[Bools]]) -> SittingSubject:
    place = sitting_place([image[:, :, 0] for image in images(camera, masks)])
    assert place is not None
    return SittingSubject(place, True, model)


def test_a_ghost_in_one_ground_goes_where_a_camera_says_that_the_subject_sits_and_the_rest_stays() -> None:
    masks = moving_masks()
    models = ghosted(masks, ghosts=True)
    assert known(list(models), masks) == list(models), "nobody asks where no camera says so"
    mended = known([said_to_sit(models[0], 0, masks), *models[1:]], masks)
    ground = [one.model.background.centre[..., 0] for one in mended if isinstance(one, CameraModel)]  # type: ignore[attr-defined]
    assert len(ground) == len(models) and np.abs(ground[0] - GROUND).max() < 4
    for one in ground[1:]:  # what does not differ is left alone, to the bit
        assert (one == GROUND).all()


def test_where_the_subject_never_leaves_the_ground_stays_as_it_was() -> None:
    ground = Background(np.full((*SHAPE, 1), 90.0, np.float32), np.full((*SHAPE, 1), 2.0, np.float32))
    free = np.ones((6, *SHAPE), bool)
    free[:, 20:60, 30:70] = False
    stack = np.full((6, *SHAPE, 1), GROUND, np.uint8)
    found = mended_ground(ground, stack, free, NOISE).centre[..., 0]
    assert (found[24:56, 34:66] == 90.0).all()
    assert (found[:15] == GROUND).all()


def test_ground_that_lies_in_shade_most_of_the_time_keeps_its_full_light() -> None:
    ground = Background(np.full((*SHAPE, 1), GROUND, np.float32), np.full((*SHAPE, 1), 2.0, np.float32))
    stack = np.full((6, *SHAPE, 1), round(0.7 * GROUND), np.uint8)
    stack[:2] = GROUND
    assert (mended_ground(ground, stack, np.ones((6, *SHAPE), bool), NOISE).centre == GROUND).all()


def test_a_subject_that_does_not_move_still_sits() -> None:
    """Its ghost is in every ground, so what the models find are scraps that no other view confirms."""
    masks = [moving_masks()[4]] * 8
    models: list[CameraModel | SittingSubject | None] = []
    for index, model in enumerate(ghosted(masks, ghosts=False)):
        assert isinstance(model.model, PlateModel)
        model.model.background.centre[masks[0][index]] = LOOK
        corner = np.zeros(SHAPE, bool)
        corner[5 + 20 * index : 25 + 20 * index, 5:25] = True  # something else that differs in this view alone
        model.model.background.centre[corner] = LOOK
        models.append(said_to_sit(model, index, moving_masks()))
    assert all(isinstance(one, SittingSubject) for one in known(models, masks))
