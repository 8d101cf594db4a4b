"""What describes a pixel: the compiled loops and the small blur against plain arithmetic."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from calibration.foundation.arrays import Bools, Bytes, Singles
from tracking.appearance.colours import FEATURES, described


def reference(image: Bytes, ground: Singles, outside: Bools, around_px: float) -> Singles:
    """Light and hue of a pixel over the ground's, its own, and the first against those around, all at full size."""

    def light_and_hue(logs: Singles) -> Singles:
        blue, green, red = (logs[:, :, k] for k in range(3))
        return np.stack([logs.mean(axis=2), red - green, blue - green], axis=2)

    now, then = (np.log(cv2.GaussianBlur(one.astype(np.float32), (0, 0), 0.8) + 8.0) for one in (image, ground))
    ratio, weight = light_and_hue(now - then), outside.astype(np.float32)
    near = cv2.GaussianBlur(weight, (0, 0), around_px) + 1e-3
    usual = cv2.GaussianBlur(ratio * weight[:, :, None], (0, 0), around_px) / near[:, :, None]
    return np.concatenate([ratio, light_and_hue(now), ratio - usual], axis=2)


@pytest.mark.parametrize("around_px", [3.0, 10.6, 25.0])
def test_pixels_are_described_as_plain_arithmetic_has_them(around_px: float) -> None:
    random = np.random.default_rng(3)
    ground = cv2.GaussianBlur(random.uniform(40.0, 220.0, (121, 147, 3)).astype(np.float32), (0, 0), 6.0)
    light = np.linspace(0.7, 1.1, 147, dtype=np.float32)[None, :, None]  # shade that grows to one side
    image = np.clip(ground * light + random.normal(0.0, 4.0, ground.shape), 0, 255).astype(np.uint8)
    outside = np.ones((121, 147), np.bool_)
    outside[40:80, 50:110] = False
    rows, wanted = described(image, ground, outside, around_px), reference(image, ground, outside, around_px)
    assert rows.shape == (121, 147, FEATURES) and rows.dtype == np.float32
    assert np.allclose(rows[:, :, :6], wanted[:, :, :6], atol=1e-5)
    away = np.abs(rows[:, :, 6:] - wanted[:, :, 6:])[outside]
    assert away.max() < 0.01, "at the border; the light changes by 0.45 in all"
    assert away.mean() < 0.002
