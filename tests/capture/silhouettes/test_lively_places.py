"""What is found around lively places is what is found in the whole image."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from capture.backgrounds.background import SCALE, Background
from capture.silhouettes.cleanup import Cleaning, silhouette_of
from capture.silhouettes.difference import PlateModel
from capture.silhouettes.doubts import doubt_of
from capture.silhouettes.lively_places import lively_places, measure_around

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
    whole, found = model.evidence_in(frame, None, light), model.evidence_of(frame, light, Cleaning()).shaded
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
    evidence = model.measuring(image, light)
    measure_around(places, 4.0 * SCALE, evidence)
    assert evidence.shaded[300, 500] >= 4 * SCALE
    assert evidence.measured_px() > sum((r.stop - r.start) * (c.stop - c.start) for r, c in places)
    rows, columns = evidence.rectangle()
    assert 0 < rows.start < 170 and columns.start < 150 and 520 < columns.stop < 700
    whole = model.measuring(image, light)
    measure_around([(slice(0, 700), slice(0, 900))], 4.0 * SCALE, whole)
    assert whole.measured_px() == SHAPE[0] * SHAPE[1]  # most of the image: all of it at once
    np.testing.assert_array_equal(whole.shaded, model.evidence_in(image, None, light))
    even = np.full((*SHAPE, 1), 130, np.uint8)
    assert lively_places(even, Background(even.astype(np.float32), even / np.float32(65)), np.ones(1), 9.0) == []


def test_the_window_of_a_doubt_reaches_the_border_that_cuts_what_differs(rng: np.random.Generator) -> None:
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
    assert cut is not None and cut.plain.shape != SHAPE
    assert cut.window[1].start == 0 and cut.wide[200 - cut.window[0].start, 0]
    assert not cut.wide[:3].any() and not cut.wide[:, -3:].any()


@pytest.mark.parametrize("channels", [1, 3])
def test_each_pixel_is_measured_once_whatever_the_rectangles(rng: np.random.Generator, channels: int) -> None:
    model, image = scene(rng, channels, 0.5)
    light = model.light(image)
    pieces, at_once = model.measuring(image, light), model.measuring(image, light)
    for top, left in ((100, 150), (180, 100), (90, 300), (100, 150)):
        pieces.measure((slice(top, top + 160), slice(left, left + 200)))
    rectangle = pieces.rectangle()
    assert rectangle == (slice(90, 340), slice(100, 500))
    assert pieces.measured_px() == np.count_nonzero(_covered())
    pieces.measure(rectangle)
    at_once.measure(rectangle)
    assert pieces.measured_px() == at_once.measured_px() == 250 * 400
    for evidence in (pieces, at_once):
        evidence.look_for_marks()
    in_turn = model.measuring(image, light)  # each piece is looked at as it comes, with what was measured beside it
    for part in ((slice(90, 200), slice(100, 320)), (slice(90, 250), slice(100, 500)), rectangle):
        in_turn.measure(part)
        in_turn.look_for_marks()
    assert np.count_nonzero(in_turn.shaded != at_once.shaded) <= 0.001 * in_turn.shaded.size
    np.testing.assert_array_equal(pieces.shaded, at_once.shaded)
    np.testing.assert_array_equal(pieces.plain, at_once.plain)


def _covered() -> np.ndarray:
    out = np.zeros(SHAPE, bool)
    for top, left in ((100, 150), (180, 100), (90, 300)):
        out[top : top + 160, left : left + 200] = True
    return out


@pytest.mark.parametrize("channels", [1, 3])
def test_evidence_is_as_written_plainly(rng: np.random.Generator, channels: int) -> None:
    model, image = scene(rng, channels, 0.5)
    gain = np.full(channels, 1.02)
    evidence = model.measuring(image, gain)
    evidence.measure((slice(0, SHAPE[0]), slice(0, SHAPE[1])))
    expected, sigma = model.background.centre * gain, model.background.spread
    total = np.square((image - expected) / sigma).sum(axis=2)
    own = np.square(expected / sigma).sum(axis=2)
    ratio = (image * expected / np.square(sigma)).sum(axis=2) / own
    across = total - np.square(1.0 - ratio) * own
    shade = (ratio >= 0.5) & (ratio <= model.highlight)
    if channels == 3:
        shade &= (across < 2.0 * model.hue_limit**2) & (total > 12.0)
    plain = np.minimum(SCALE * np.sqrt(total / channels), 255.0)
    assert np.abs(evidence.plain - np.floor(plain)).max() <= 1
    wrong = np.abs(evidence.shaded - np.where(shade, 0.0, np.floor(plain))) > 1
    assert wrong.mean() < 1e-4
