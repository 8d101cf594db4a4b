"""Masks grown by discs against OpenCV's."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from capture.discs import disc, grown


@pytest.mark.parametrize("radius", [0, 1, 2, 5, 13, 40])
def test_growing_is_that_of_the_disc(radius: int, rng: np.random.Generator) -> None:
    """Specks anywhere, at the border too, a body, and nothing; a disc may be larger than the image."""
    body = np.zeros((37, 61), np.uint8)
    cv2.ellipse(body, (20, 15), (14, 7), 30, 0, 360, 1, -1)
    specks = rng.random((37, 61)) < 0.01
    specks[0, 0] = specks[-1, 30] = True
    for mask in (body.view(np.bool_), specks, np.zeros((37, 61), dtype=bool), np.ones((4, 9), dtype=bool)):
        wanted = cv2.dilate(mask.view(np.uint8), disc(radius)).view(np.bool_)
        np.testing.assert_array_equal(grown(mask, radius), wanted)
    part = specks[3:30, 5:50]  # not contiguous
    np.testing.assert_array_equal(grown(part, radius), grown(part.copy(), radius))
