"""Contour samples: where the blurred mask is half full, with the normal there."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from tracking.observations.blurred_edges import blurred_at
from tracking.observations.contours import observe_view


@pytest.mark.parametrize("radius", [12.0, 40.3])
def test_samples_of_a_disc_lie_on_its_rim_and_look_outwards(radius: float) -> None:
    centre = np.array([70.2, 61.7])
    rows, columns = np.indices((130, 150))
    view = observe_view(np.hypot(columns - centre[0], rows - centre[1]) < radius)
    away = view.points - centre
    far = np.linalg.norm(away, axis=1)
    assert np.abs(far - radius).max() < 0.5 and abs(far.mean() - radius) < 0.05
    assert np.einsum("ni,ni->n", view.normals, away / far[:, None]).min() > 0.95


def test_a_mask_blurred_at_some_pixels_is_as_blurred_everywhere() -> None:
    rng = np.random.default_rng(3)
    mask = np.zeros((60, 90), np.uint8)
    cv2.ellipse(mask, (52, 20), (45, 25), 20, 0, 360, 1, -1)  # beyond two edges of the image
    mask[rng.random(mask.shape) < 0.05] ^= 1
    soft = cv2.GaussianBlur(mask.astype(np.float32), (0, 0), 1.0)
    slopes = [cv2.Sobel(soft, cv2.CV_32F, *way, ksize=3, scale=0.125) for way in ((1, 0), (0, 1))]
    at = np.stack([rng.integers(0, 90, 500), rng.integers(0, 60, 500)], axis=1)
    # Sobel mirrors the blurred mask at its edges, we the mask itself.
    inner = ((at > 0) & (at < np.array([89, 59]))).all(axis=1)
    level, slope = blurred_at(mask, at)
    assert level == pytest.approx(soft[at[:, 1], at[:, 0]], abs=2e-7)
    for axis in range(2):
        assert slope[inner, axis] == pytest.approx(slopes[axis][at[inner, 1], at[inner, 0]], abs=2e-7)
