"""What is found around lively places is what is found in the whole image."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from capture.backgrounds.background import SCALE, Background
from capture.silhouettes.cleanup import Cleaning, silhouette_of
from capture.silhouettes.difference import PlateModel
from capture.silhouettes.doubts import doubt_of
from capture.silhouettes.lively_places import evidence_around, lively_places

SHAPE = (700, 1000)


def scene(rng: np.random.Generator, channels: int, floor: float = 1.0) -> tuple[PlateModel, np.ndarray]:
    """A body with a long thin tail that fades, shade beside it and another large part far away."""
    ground = (120 + 20 * rng.random((*SHAPE, channels))).astype(np.float32)
    change = np.zeros(SHAPE, np.float32)
    cv2.ellipse(change, (200, 200), (50, 30), 20, 0, 360, 90.0, -1)
    cv2.line(change, (245, 215), (420, 300), 30.0, 3)
    cv2.line(change, (420, 300), (520, 300), 12.0, 3)  # weak, and it goes on from the rest
    cv2.circle(change, (80, 340), 20, 90.0, -1)
    change[230:260, 150:260] = np.maximum(change[230:260, 150:260], 25.0)
    image = ground - change[:, :, None] + rng.normal(0, 1.5, ground.shape)
    model = PlateModel(Background(ground, np.full(ground.shape, 1.5, np.float32)), shadow_floor=floor)
    return model, np.clip(image, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("floor", [0.5, 1.0])
@pytest.mark.parametrize("channels", [1, 3])
def test_silhouettes_around_lively_places_are_those_of_all(
    rng: np.random.Generator, channels: int, floor: float
) -> None:
    model, image = scene(rng, channels, floor)
    frame = image[:, :, 0] if channels == 1 else image
    light = model.light(frame)
    whole, found = model.evidence_in(frame, None, light), model.evidence_of(frame, light, Cleaning())
    true = silhouette_of(whole, Cleaning())
    assert true[200, 200] and true[340, 80]
    np.testing.assert_array_equal(silhouette_of(found, Cleaning()), true)
    if floor == 1.0:
        assert np.count_nonzero(found) < 0.5 * np.count_nonzero(whole)  # the rest was not looked at
    assert (found[found > 0] == whole[found > 0]).all()


def test_a_rectangle_grows_as_long_as_something_goes_on(rng: np.random.Generator) -> None:
    model, image = scene(rng, 3)
    light = model.light(image)
    places = lively_places(image, model.background, light, 30.0)  # the body alone, not its tail
    asked: list[tuple[slice, slice] | None] = []

    def measure(window: tuple[slice, slice] | None) -> np.ndarray:
        asked.append(window)
        return model.evidence_in(image, window, light)

    found = evidence_around(places, SHAPE, 4.0 * SCALE, measure)
    assert found[300, 500] >= 4 * SCALE
    assert len(asked) > len(places)
    whole = evidence_around([(slice(0, 700), slice(0, 600))], SHAPE, 4.0 * SCALE, measure)
    assert asked[-1] is None  # most of the image: all of it at once
    np.testing.assert_array_equal(whole, measure(None))
    even = np.full((*SHAPE, 1), 130, np.uint8)
    assert lively_places(even, Background(even.astype(np.float32), even / np.float32(65)), np.ones(1), 9.0) == []


def test_the_window_of_a_doubt_is_the_whole_image_where_the_border_cuts_what_differs(rng: np.random.Generator) -> None:
    model, image = scene(rng, 3)
    mask = silhouette_of(model.evidence(image), Cleaning())
    mask[:, 300:] = False
    mask[300:] = False
    inner = doubt_of(image, mask, model, Cleaning())
    assert inner is not None and inner.plain.shape != SHAPE
    assert not inner.wide[:3].any() and not inner.wide[:, -3:].any()
    np.testing.assert_array_equal(inner.image, image[inner.window])
    image[198:202, :160] = 20  # something that differs goes on to the border
    cut = doubt_of(image, mask, model, Cleaning())
    assert cut is not None and cut.plain.shape == SHAPE
