"""The scene behind the subject: images sorted pixel by pixel."""

from __future__ import annotations

import numpy as np
import pytest

from tracking.appearance.ground import sort_images


@pytest.mark.parametrize("count", [1, 2, 3, 8, 13])
@pytest.mark.parametrize("kind", [np.uint8, np.int16])
def test_images_are_sorted_as_their_pixels_are(count: int, kind: type[np.generic]) -> None:
    values = np.random.default_rng(count).integers(0, 200, (count, 5, 7, 3)).astype(kind)
    wanted = np.sort(values, axis=0)
    sort_images(values)
    np.testing.assert_array_equal(values, wanted)
