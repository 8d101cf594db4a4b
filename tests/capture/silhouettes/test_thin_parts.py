"""A tail that looks like shade and lies in it, given back where the views see it in one place; shade is not."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np

from calibration.cameras.camera import LensCamera
from capture.backgrounds.background import Background
from capture.silhouettes import Cleaning
from capture.silhouettes.difference import PlateModel
from capture.silhouettes.doubts import doubt_of
from capture.silhouettes.edges.hats import ThinParts, _above, _below, thin_structures
from capture.silhouettes.judging import _CloseViews, _restore
from capture.silhouettes.models import CameraModel
from capture.silhouettes.views.confirmation import Floor
from capture.silhouettes.views.thin_parts import with_thin_parts
from tests.capture.silhouettes.test_gaps import GROUND, filmed
from tests.capture.silhouettes.test_real_footage import RADIUS, RIG, ball, on_floor

FLOOR = Floor(0.0, 1, 8.0)


def tail(view: LensCamera, height: float, start: float = 0.6) -> np.ndarray:
    """Return (H, W) a tail from the ball's foot outwards at some height, 2 px thick."""
    points = np.stack([np.linspace(start * RADIUS, 2.2 * RADIUS, 40), np.zeros(40), np.full(40, height)], axis=1)
    image = np.zeros(view.size[::-1], np.uint8)
    cv2.polylines(image, [np.rint(view.project(points)).astype(np.int32)[:, None]], False, 1, thickness=2)
    return image.view(bool)


def test_lines_within_shade_are_thin_and_shade_is_not() -> None:
    view = next(iter(RIG))
    body, shade = ball(view, (0.0, 0.0, RADIUS)), on_floor(view, (40.0, 0.0), 60.0)
    line = tail(view, 4.0) & ~cv2.dilate(body.view(np.uint8), np.ones((9, 9), np.uint8)).view(bool)
    for look in (0.55, 0.9):  # darker and brighter than the shade, within what shade may look like
        looks = np.where(body, 25.0, np.where(line, look * GROUND, np.where(shade, 0.72 * GROUND, GROUND)))
        doubt, model = filmed(looks, body)
        found = np.zeros_like(body)
        at = doubt.window
        ground = Background(model.background.centre[at], model.background.spread[at])
        parts = thin_structures(doubt.image, ground, doubt.light, doubt.wide, body[at])
        found[at] = parts.thin
        kind, inner = parts.dark if look < 0.7 else parts.skin, (line & shade)[at]
        assert kind[inner].mean() > 0.8
        assert found[line].mean() > 0.9
        again = thin_structures(doubt.image, ground, doubt.light, doubt.wide, body[at], model.smooth[at])
        assert (again.thin != found[at]).mean() < 1e-3  # the ground blurred once for all frames
        near = cv2.dilate(line.view(np.uint8), np.ones((7, 7), np.uint8)).view(bool)
        assert found[shade & ~body & ~near].mean() < 0.05  # where it ends in a corner


def test_a_broad_patch_is_told_by_redness_alone() -> None:
    view = next(iter(RIG))
    body, shade = ball(view, (0.0, 0.0, RADIUS)), on_floor(view, (40.0, 0.0), 60.0)
    radius = max(3, round(0.055 * np.sqrt(body.sum())))
    at = np.argwhere(shade & (cv2.distanceTransform(1 - body.view(np.uint8), cv2.DIST_L2, 5) > 4 * radius))[0]
    patch = np.zeros_like(body)
    patch[at[0] : at[0] + 3 * radius, at[1] : at[1] + 3 * radius] = True  # broader than a hat, within twice its width
    still = np.full((*body.shape, 3), GROUND, np.float32)
    ground = Background(still, np.full(still.shape, 1.5, np.float32))
    grey = np.where(body, 25.0, np.where(shade | patch, 0.72 * GROUND, GROUND))
    found = []
    for red in (0.72, 0.95):
        image = grey[..., None].repeat(3, axis=2)
        image[patch, 2] = red * GROUND
        parts = thin_structures(image.astype(np.uint8), ground, np.ones(3), shade | patch, body)
        assert parts.thin[patch].mean() < 0.2
        found.append(parts.broad[patch].mean())
    assert found[0] == 0 and found[1] > 0.8


def test_what_is_thin_must_lie_in_one_place_above_the_floor() -> None:
    body = [ball(view, (0.0, 0.0, RADIUS)) for view in RIG]

    def gained(lines: list[np.ndarray], asked: list[np.ndarray], kind: str = "skin", floor: Floor = FLOOR) -> float:
        parts = [replace(ThinParts.none(line.shape), **{kind: line}) for line in lines]
        out = with_thin_parts(body, parts, RIG, floor)
        assert all((mask & ~new).sum() == 0 for mask, new in zip(body, out, strict=True))
        asked = [part & ~mask for part, mask in zip(asked, body, strict=True)]
        return float(np.concatenate([new[part] for new, part in zip(out, asked, strict=True)]).mean())

    real, deep = ([tail(view, height) for view in RIG] for height in (4.0, -12.0))
    none = [np.zeros_like(mask) for mask in body]
    assert gained(real, real) > 0.7  # where it meets the ball its pixels are the rim's
    assert gained(deep, deep) < 0.25  # a mirror image
    alone = [real[0], *none[1:]]
    assert gained(alone, [real[0]] * 5) < 0.3  # a line that one view shows
    far = [tail(view, 4.0, 1.7) for view in RIG]
    assert gained(far, far) < 0.4  # it does not hang together with the body
    higher = replace(FLOOR, marks=16.0)
    assert gained(real, real, "skin", higher) > 0.7  # skin may seem to lie in the floor as far as views err
    assert gained(real, real, "dark") > 0.7
    assert gained(real, real, "dark", higher) < 0.4  # what is dark may be a shade of it


def test_only_in_colour_and_without_a_filmed_empty_scene() -> None:
    body = [ball(view, (0.0, 0.0, RADIUS)) for view in RIG]
    lines = [tail(view, 4.0) for view in RIG]

    def gains(name: str, channels: int) -> list[int]:
        doubts, models = [], []
        for mask, line in zip(body, lines, strict=True):
            looks = np.where(mask, 25.0, np.where(line, 0.6 * GROUND, GROUND))
            shape = (*mask.shape, channels)
            model = PlateModel(Background(np.full(shape, GROUND, np.float32), np.full(shape, 1.5, np.float32)))
            image = looks.astype(np.uint8)[..., None].repeat(channels, axis=2)
            doubts.append(doubt_of(image, mask, model, Cleaning()))
            models.append(CameraModel(name, model, Cleaning(), channels == 1))
        views = _CloseViews.of(body, doubts, RIG)
        _restore(views, models, Floor(0.0, 1, 60.0), [None] * len(views.masks))
        pairs = zip(views.masks, body, views.windows, strict=True)
        return sorted(int((new & ~old[at]).sum()) for new, old, at in pairs)

    assert gains("moving", 3)[1] > 15  # one view has it behind the ball
    assert max(gains("plate", 3)) == 0
    assert max(gains("moving", 1)) == 0


def test_a_thin_shade_on_the_floor_is_told_by_its_light_and_a_tail_above_it_is_kept() -> None:
    """Views err by a pixel, so a line on the floor may be seen above it; but all views have it in one light there."""
    body = [ball(view, (0.0, 0.0, RADIUS)) for view in RIG]

    def gains(height: float) -> float:
        doubts, models, lines = [], [], [tail(view, height) for view in RIG]
        for mask, line in zip(body, lines, strict=True):
            looks = np.where(mask, 25.0, np.where(line, 0.7 * GROUND, GROUND))
            shape = (*mask.shape, 3)
            model = PlateModel(Background(np.full(shape, GROUND, np.float32), np.full(shape, 1.5, np.float32)))
            doubts.append(doubt_of(looks.astype(np.uint8)[..., None].repeat(3, axis=2), mask, model, Cleaning()))
            models.append(CameraModel("moving", model, Cleaning(), False))
        views = _CloseViews.of(body, doubts, RIG)
        _restore(views, models, Floor(-3.0, 1, 60.0, 0.0), [None] * len(views.masks))
        new = zip(views.masks, lines, body, views.windows, strict=True)
        return float(np.concatenate([out[(line & ~mask)[at]] for out, line, mask, at in new]).mean())

    assert gains(12.0) > 0.5
    assert gains(0.0) < 0.2


def test_hats_are_openings_and_closings_that_the_body_has_no_part_in(rng: np.random.Generator) -> None:
    values = rng.uniform(0.5, 2.0, (40, 50)).astype(np.float32)
    body = np.zeros((40, 50), np.uint8)
    body[10:30, 15:35] = 1
    square, at = np.ones((5, 5), np.uint8), np.flatnonzero(body == 0)
    logs = np.log(values)
    least = cv2.erode(np.where(body > 0, np.float32(99.0), logs), square)
    opened = cv2.dilate(np.where(least == 99.0, np.float32(-99.0), least), square)
    most = cv2.dilate(np.where(body > 0, np.float32(-99.0), logs), square)
    closed = cv2.erode(np.where(most == -99.0, np.float32(99.0), most), square)
    np.testing.assert_allclose(_above(values, body, 2, at), (logs - opened).ravel()[at], atol=1e-5)
    np.testing.assert_allclose(_below(values, body, 2, at), (closed - logs).ravel()[at], atol=1e-5)
