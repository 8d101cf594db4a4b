"""Medians of many pixels at once against numpy's, one pixel after the other."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.foundation.arrays import Bools, Bytes, Singles
from capture.backgrounds.medians import median_and_spread
from capture.silhouettes.still import activity


def _one_by_one(stack: Bytes, free: Bools, least: int) -> tuple[Singles, Singles, Bools]:
    """Return what `median_and_spread` does, by its definition."""
    _, height, width, channels = stack.shape
    centre, spread = np.zeros((2, height, width, channels), np.float32)
    known = np.zeros((height, width), dtype=bool)
    for y, x in np.ndindex(height, width):
        row, column = y * free.shape[1] // height, x * free.shape[2] // width
        seen = stack[free[:, row, column], y, x].astype(float)
        if len(seen) >= least:
            known[y, x] = True
            centre[y, x] = np.median(seen, axis=0)
            spread[y, x] = 1.4826 * np.median(np.abs(seen - centre[y, x]), axis=0)
    return centre, spread, known


@pytest.mark.parametrize(("images", "channels"), [(1, 3), (2, 1), (7, 3), (8, 1), (300, 1)])
def test_medians_are_those_of_the_images_that_count(images: int, channels: int, rng: np.random.Generator) -> None:
    """Values of all sizes, black and white too, more than a strip of them in a row; cells of several pixels."""
    scene = rng.integers(0, 256, (5, 213, channels))
    stack = np.clip(scene + rng.normal(0.0, 4.0, (images, *scene.shape)), 0, 255).astype(np.uint8)
    stack[::3, 1:3] = rng.integers(0, 256, stack[::3, 1:3].shape)
    stack[:, 4, :20], stack[:, 4, 20:40] = 0, 255
    free = rng.random((images, 3, 40)) < 0.5
    free[:, 1, :5] = False
    for wanted, found in zip(_one_by_one(stack, free, 2), median_and_spread(stack, free, least=2), strict=True):
        np.testing.assert_array_equal(found, wanted)
    whole = _one_by_one(stack, np.ones((images, 1, 1), dtype=bool), 1)
    for wanted, found in zip(whole, median_and_spread(stack), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_one_frame_that_differs_is_no_movement_and_two_are() -> None:
    """Of six images and more the second extremes count, of fewer the extremes; any channel may move."""
    images = np.full((6, 20, 20, 3), 100, np.uint8)
    images[2, :10, :, 1] = 200
    assert not activity(list(images), 1.0).any()
    assert activity(list(images[:5]), 1.0)[:8].all()
    images[4, :10, :, 2] = 190
    assert activity(list(images), 1.0)[:8].all() and not activity(list(images), 1.0)[12:].any()
    darker = np.full((7, 20, 20), 100, np.uint8)
    darker[3:5] = 40
    assert activity(list(darker), 1.0).all()
