"""Filled triangles are those of a test of each pixel's centre."""

from __future__ import annotations

import numpy as np

from tracking.observations.rasteriser import fill_layers


def _covered(triangle: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """(h, w) pixel centres inside a triangle of three pixels (3, 2), whichever way round it goes."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    sides = []
    for (ax, ay), (bx, by) in zip(triangle, np.roll(triangle, -1, axis=0), strict=True):
        sides.append((bx - ax) * (y - ay) - (by - ay) * (x - ax))
    return np.asarray((np.array(sides) >= 0).all(axis=0) | (np.array(sides) <= 0).all(axis=0))


def test_each_triangle_sets_its_bits_where_it_covers_a_pixel_centre() -> None:
    rng = np.random.default_rng(3)
    shape, bits = (40, 50), np.array([1, 2, 4, 8], np.uint32)
    for size in (0.4, 1.5, 6.0, 60.0):  # smaller than a pixel, a few pixels, and beyond the image
        for _ in range(60):
            middles = rng.uniform(-5, 55, size=(4, 1, 2))
            pixels = (middles + size * rng.normal(size=(4, 3, 2))).reshape(-1, 2)
            image = np.zeros(shape, np.uint32)
            fill_layers(pixels, np.arange(12).reshape(4, 3), bits, image)
            wanted = sum(bit * _covered(pixels[3 * k : 3 * k + 3], shape) for k, bit in enumerate(bits))
            np.testing.assert_array_equal(image, wanted)


def test_a_triangle_behind_the_camera_is_left_out() -> None:
    image = np.zeros((5, 5), np.uint32)
    fill_layers(
        np.array([[0.0, 0.0], [4.0, 0.0], [np.nan, np.nan]]), np.array([[0, 1, 2]]), np.ones(1, np.uint32), image
    )
    assert not image.any()
