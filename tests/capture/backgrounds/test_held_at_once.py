"""What is held while a camera without a plate is learnt: images once, and few numbers of their size."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import TypeVar

import cv2
import numpy as np
import pytest

from capture.backgrounds.appearance import _BINS, _LEAST_CHANGE, _change
from capture.backgrounds.background import MOST_SPREAD, NoiseCurve, background_of
from capture.backgrounds.medians import median_and_spread
from capture.backgrounds.uncovered import filled, ground_over

T = TypeVar("T")
#: Arrays of the size of a ground that are held at most while it is made, itself counted.
HELD = 6.0
NOISE = NoiseCurve(np.array([0.0, 255.0]), np.array([1.5, 4.0]))


def most_held(work: Callable[[], T]) -> tuple[T, int]:
    tracemalloc.start()
    try:
        return work(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("shape", [(12, 490, 310), (12, 64, 50), (5, 65, 7), (3, 1, 40), (3, 200, 1)])
def test_change_in_strips_is_that_of_whole_images(shape: tuple[int, int, int]) -> None:
    stack = np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)
    spread = cv2.blur(stack.std(axis=0, dtype=np.float32), (3, 3))
    usual = max(float(np.median(spread)), 0.1)
    wanted = np.clip(2.0 * np.log2(np.maximum(spread / usual, 1e-3) / _LEAST_CHANGE), 0, _BINS - 1).astype(np.uint8)
    found, held = most_held(lambda: _change(stack))
    assert np.array_equal(found, wanted)
    if stack.size > 10**6:
        assert held < 3 * stack.nbytes, "whole images in single precision take eight times as much"


def test_a_ground_is_limited_and_filled_in_place() -> None:
    rng = np.random.default_rng(2)
    stack = rng.integers(60, 90, (8, 640, 1000, 3), dtype=np.uint8)
    free = np.ones((8, 64, 100), bool)
    free[:, 10:20, 30:40] = False
    centre, spread, known = median_and_spread(stack, free, least=2)
    ground_over(stack, free, NOISE)  # what is compiled is held, too
    ground, held = most_held(lambda: ground_over(stack, free, NOISE))
    floor = NOISE.at(centre)
    limited = np.clip(spread, floor, np.float32(MOST_SPREAD) * floor)
    inside = known & ground.seen
    assert inside.any() and not ground.seen.all()
    assert np.array_equal(ground.background.centre[inside], centre[inside])
    assert np.array_equal(ground.background.spread[inside], limited[inside])
    assert held < HELD * centre.nbytes


def test_filled_keeps_what_it_is_given() -> None:
    values = np.random.default_rng(3).normal(size=(90, 70, 3)).astype(np.float32)
    known = np.ones((90, 70), bool)
    known[20:60, 10:50] = False
    before = values.copy()
    found = filled(values, known)
    assert np.array_equal(values, before) and np.array_equal(found[known], values[known])


def test_a_background_is_limited_by_the_noise() -> None:
    stack = np.random.default_rng(4).integers(0, 256, (6, 40, 50, 3), dtype=np.uint8)
    found = background_of(stack.copy(), NOISE, most_spread=MOST_SPREAD)
    floor = NOISE.at(found.centre)
    assert (found.spread >= floor).all() and (found.spread <= np.float32(MOST_SPREAD) * floor).all()
    assert found.spread.dtype == np.float32
