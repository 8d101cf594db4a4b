"""Spots: exact centres on known pictures, across bone edges, overlapping."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.foundation.errors import InputError
from calibration.xray.attenuation import NOTHING_BLIND, attenuation_table, grey_image
from calibration.xray.spot_fit import fit_spot_group
from calibration.xray.spots import find_spots, fit_spots


def picture(centres, *, sigma=1.5, contrast=0.6, size=96, edge=None, noise=0.0, seed=0):
    """A film of uniform light with Gaussian absorbers, optionally with a bone whose edge runs at x = edge."""
    y, x = np.mgrid[0:size, 0:size].astype(float)
    depth = np.zeros((size, size))
    for cx, cy in centres:
        depth += contrast * np.exp(-0.5 * ((x - cx) ** 2 + (y - cy) ** 2) / sigma**2)
    if edge is not None:
        depth += 0.6 / (1.0 + np.exp(-(x - edge) / 1.5))
    light = 50000.0 * np.exp(-depth)
    if noise:
        light = light * (1.0 + noise * np.random.default_rng(seed).normal(size=light.shape) / np.sqrt(np.exp(-depth)))
    return np.clip(np.rint(light), 0, 65535).astype(np.uint16)


def test_centre_of_a_clean_spot_is_exact():
    truth = np.array([[30.3, 40.7], [60.0, 20.5]])
    spots = fit_spots(picture(truth), truth + 0.6, sigma=1.5)
    assert np.abs(spots.pixels - truth).max() < 0.01  # rounding to 16 bit and the offset of the logarithm
    assert np.allclose(spots.sigma, 1.5, rtol=0.05)


def test_bright_polarity_mirrors_dark():
    truth = np.array([[30.3, 40.7]])
    dark = fit_spots(picture(truth), truth, sigma=1.5)
    bright = fit_spots(65535 - picture(truth), truth, sigma=1.5, polarity="bright")
    assert np.allclose(dark.pixels, bright.pixels, atol=1e-9)


def test_bone_edge_beside_the_spot_biases_less_than_a_fifth_of_a_pixel():
    truth = np.array([[48.0, 48.0]])
    for edge in (43.0, 46.0, 48.0, 51.0):
        spots = fit_spots(picture(truth, edge=edge), truth, sigma=1.5)
        assert np.hypot(*(spots.pixels[0] - truth[0])) < 0.2


def test_overlapping_spots_fitted_together_are_exact():
    truth = np.array([[40.0, 40.0], [43.5, 41.5]])
    image = picture(truth)
    start = np.column_stack([truth + np.array([[-0.4, 0.3], [0.5, -0.2]]), [1.5, 1.5], [0.6, 0.6]])
    fitted, _, _ = fit_spot_group(image, attenuation_table(np.uint16), start, np.zeros((2, 2)), 7.0, 3.0, NOTHING_BLIND)
    assert np.abs(fitted[:, :2] - truth).max() < 0.02


def test_covariance_says_how_far_centres_scatter():
    truth = np.array([[48.2, 47.6]])
    errors, stated = [], []
    for seed in range(40):
        spots = fit_spots(picture(truth, noise=0.03, seed=seed), truth, sigma=1.5)
        errors.append(spots.pixels[0] - truth[0])
        stated.append(np.trace(spots.covariance[0]) / 2)
    ratio = np.mean(np.square(errors)) / np.mean(stated)
    assert 0.6 < ratio < 1.6  # 80 numbers: one sigma of the ratio is 0.16


def test_find_spots_finds_all_and_nothing_else():
    truth = np.array([[20.0, 20.0], [50.5, 30.2], [70.1, 75.8], [25.0, 70.0]])
    found = find_spots(picture(truth, noise=0.01), sigma=1.5, min_contrast=0.2)
    distance = np.linalg.norm(found.pixels[:, None] - truth[None], axis=2)
    assert len(found) == 4 and distance.min(axis=0).max() < 0.1


def test_bad_images_are_refused():
    with pytest.raises(InputError, match="uint8, uint16"):
        grey_image(np.zeros((32, 32), dtype=np.int64))
    with pytest.raises(InputError, match="16 pixels a side"):
        grey_image(np.zeros((4, 4), dtype=np.uint8))
    with pytest.raises(InputError, match="polarity"):
        attenuation_table(np.uint8, "grey")  # type: ignore[arg-type]
