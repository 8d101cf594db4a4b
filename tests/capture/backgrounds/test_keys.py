"""A screen is told in any light and shade, and from one image or many."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from capture.backgrounds.background import SCALE
from capture.backgrounds.keys import ChromaModel, key_colour
from capture.silhouettes.cleanup import Cleaning, silhouette_of

GREEN, BLUE = (60, 180, 70), (170, 80, 40)
SHAPE = (120, 160)


def lit(screen: tuple[int, int, int], light: np.ndarray) -> np.ndarray:
    return np.array(screen, dtype=np.float64) * light[:, :, None]


def noisy(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.clip(image + rng.normal(0, 2, image.shape), 0, 255).astype(np.uint8)


def plain_evidence(model: ChromaModel, image: np.ndarray) -> np.ndarray:
    """Return what `ChromaModel.evidence` does: the distance to the stretch of line that a screen may be on."""
    shown = image.astype(np.float64)
    along = np.maximum(shown @ model.colour, model.shadow_floor * model.light)
    return SCALE * np.linalg.norm(shown - along[:, :, None] * model.colour, axis=2) / model.sigma


def test_evidence_is_the_distance_to_what_a_screen_may_show(rng: np.random.Generator) -> None:
    light = np.linspace(1.0, 0.6, SHAPE[1])[None, :] * np.linspace(1.0, 0.8, SHAPE[0])[:, None]
    model = key_colour(noisy(lit(GREEN, light), rng))
    image = rng.integers(0, 256, (*SHAPE, 3)).astype(np.uint8)
    expected = np.minimum(255.0, plain_evidence(model, image))
    assert np.abs(model.evidence(image) - expected).max() < 1.01  # bytes are cut off


@pytest.mark.parametrize("screen", [GREEN, BLUE])
def test_colour_and_light_of_a_screen_are_found_beside_a_subject_in_all_images(
    screen: tuple[int, int, int], rng: np.random.Generator
) -> None:
    light = np.linspace(1.0, 0.55, SHAPE[1])[None, :] * np.ones((SHAPE[0], 1))
    images = []
    for left in (30, 60):  # columns 60 to 80 are covered in both
        image = lit(screen, light)
        image[40:100, left : left + 50] = (25, 25, 25)
        images.append(noisy(image, rng))
    model = key_colour(np.stack(images))
    length = float(np.linalg.norm(screen))
    np.testing.assert_allclose(model.colour, np.array(screen) / length, atol=0.005)
    np.testing.assert_allclose(model.light / length, light, atol=0.06)
    assert model.sigma == pytest.approx(2.0, abs=0.3)


@pytest.mark.parametrize("screen", [GREEN, BLUE])
@pytest.mark.parametrize("subject", [(25, 25, 25), (230, 230, 230), (120, 120, 120), (120, 150, 205), (70, 80, 150)])
def test_light_and_shade_of_a_screen_are_no_subject(
    screen: tuple[int, int, int], subject: tuple[int, int, int], rng: np.random.Generator
) -> None:
    light = np.linspace(1.0, 0.6, SHAPE[1])[None, :] * np.ones((SHAPE[0], 1))
    light[70:90, 30:130] *= 0.6
    image = lit(screen, light)
    image[30:80, 60:100] = subject
    image = noisy(image, rng)
    true = np.zeros(SHAPE, dtype=bool)
    true[30:80, 60:100] = True
    np.testing.assert_array_equal(silhouette_of(key_colour(image).evidence(image), Cleaning()), true)


def test_the_screen_behind_a_rim_is_that_of_around_in_its_shade(rng: np.random.Generator) -> None:
    light = np.ones(SHAPE)
    light[:, 80:] = 0.6
    image = noisy(lit(GREEN, light), rng)
    true = np.zeros(SHAPE, np.uint8)
    cv2.circle(true, (80, 60), 30, 1, -1)
    mask = true.view(np.bool_)
    image[mask] = (70, 80, 150)
    model = key_colour(image)
    screen = model.screen_around(image, mask, model.evidence(image))
    rim = cv2.dilate(true, np.ones((3, 3), np.uint8)).view(np.bool_) & ~mask
    rim[:, 70:90] = False  # where the shade begins both are within reach
    error = np.abs(screen - lit(GREEN, light))[rim]
    assert error.max() < 4.0  # of the brighter half of the pixels around, of noise 2
    part = (slice(10, 110), slice(20, 140))
    np.testing.assert_allclose(model.within(part).light, model.light[part])
