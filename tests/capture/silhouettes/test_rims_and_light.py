"""Compiled looks at a silhouette's rim and at how the ground is lit, against the same written plainly."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from capture.silhouettes.cleanup import Cleaning
from capture.silhouettes.difference import PlateModel
from capture.silhouettes.doubts import _AROUND_PX, _ratios, doubt_of
from capture.silhouettes.edges.half_way import half_way_edge
from tests.capture.silhouettes.test_lively_places import SHAPE, scene


def plain_half_way_edge(mask: np.ndarray, image: np.ndarray, ground: np.ndarray, light: np.ndarray) -> np.ndarray:
    """Return what `half_way_edge` does, with means over all of the image."""
    here, picture = mask.view(np.uint8).copy(), image.astype(np.float64)
    expected = ground.astype(np.float64) * light

    def shrunk(pixels: int) -> np.ndarray:
        square = np.ones((2 * pixels + 1, 2 * pixels + 1), np.uint8)
        return cv2.erode(here, square, borderType=cv2.BORDER_CONSTANT, borderValue=1)

    for depth in (2, 1):
        inner, side = shrunk(depth), (2 * depth + 3, 2 * depth + 3)
        share = cv2.blur(inner.astype(np.float64), side)
        own = cv2.blur(picture * inner[:, :, None], side).reshape(picture.shape)
        for _ in range(depth):
            rim = (here > shrunk(1)) & (share > 0.02)
            contrast = own / np.maximum(share, 1e-9)[:, :, None] - expected
            power = np.square(contrast).sum(axis=2)
            part = ((picture - expected) * contrast).sum(axis=2)
            here[rim & (power > picture.shape[2] * 16.0**2) & (part < 0.5 * power)] = 0
    return here.view(np.bool_)


@pytest.mark.parametrize("channels", [1, 3])
def test_the_rim_is_dropped_as_written_plainly(channels: int, rng: np.random.Generator) -> None:
    ground = np.full((90, 120, channels), 150, np.float32) + rng.normal(0, 3, (90, 120, channels)).astype(np.float32)
    disc = np.zeros((90, 120), np.uint8)
    cv2.circle(disc, (60, 30), 36, 1, -1)  # cut by the upper border
    cv2.line(disc, (60, 60), (119, 85), 1, 3)  # a thin part that leaves the image
    share = cv2.GaussianBlur(disc.astype(np.float32), (0, 0), 1.5)[:, :, None]
    image = np.clip(share * 60 + (1 - share) * ground * 0.9 + rng.normal(0, 4, ground.shape), 0, 255).astype(np.uint8)
    fat = cv2.dilate(disc, np.ones((5, 5), np.uint8)).view(np.bool_)
    light = np.full(channels, 0.9)
    mended = half_way_edge(fat, image, ground, light)
    np.testing.assert_array_equal(mended, plain_half_way_edge(fat, image, ground, light))
    assert 0 < np.count_nonzero(mended) < np.count_nonzero(fat)
    assert fat[30, 60]  # what was given is not changed
    settled = fat.copy()
    settled[:, 90:] = False
    some = half_way_edge(fat, image, ground, light, settled)
    assert (some[settled] == fat[settled]).all()
    np.testing.assert_array_equal(some[:, 95:], mended[:, 95:])


@pytest.mark.parametrize("step", [1, 2, 3])
def test_light_is_the_ratio_of_means_of_nine_pixels(step: int, rng: np.random.Generator) -> None:
    image = rng.integers(0, 255, (20, 31, 3)).astype(np.uint8)
    centre = rng.uniform(0, 255, (20, 31, 3)).astype(np.float32)
    gain = np.array([0.9, 1.0, 1.1], np.float32)
    smooth = [cv2.blur(one.astype(np.float64), (3, 3))[::step, ::step] for one in (image, centre * gain)]
    wanted = smooth[0] / np.maximum(smooth[1], 8.0)
    np.testing.assert_allclose(_ratios(image, centre, gain, step), wanted, rtol=1e-5)


def test_the_window_of_a_doubt_holds_what_differs_and_what_judges_it(rng: np.random.Generator) -> None:
    model, _ = scene(rng, 1)
    mask = np.zeros(SHAPE, dtype=bool)
    mask[200:240, 200:230] = True
    quiet = np.clip(model.background.centre, 0, 255).astype(np.uint8)
    quiet[200:240, 200:230] = 255 - quiet[200:240, 200:230]
    quiet[215:218, 230:250] = 255 - quiet[215:218, 230:250]  # hangs together with it
    doubt = doubt_of(quiet, mask, model, Cleaning(), apart=False)
    assert doubt is not None and isinstance(model, PlateModel)
    rows, columns = doubt.window
    assert rows.start <= 200 - _AROUND_PX and rows.stop >= 240 + _AROUND_PX
    assert columns.start <= 200 - _AROUND_PX and columns.stop >= 250 + _AROUND_PX
    assert rows.stop - rows.start < 110 and columns.stop - columns.start < 120
    assert doubt.wide[216 - rows.start, 245 - columns.start]
