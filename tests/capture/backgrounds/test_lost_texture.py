"""What has the colour of shade but not the ground's marks is no shade."""

from __future__ import annotations

import cv2
import numpy as np

from capture.backgrounds.background import SCALE, background_of
from capture.silhouettes.difference import PlateModel

SIZE = (360, 480)
SHADE, TROUSERS = np.s_[30:160, 40:200], np.s_[180:330, 240:400]


def scene(*, marked: bool, channels: int) -> tuple[PlateModel, np.ndarray]:
    """Return the model of a floor, and an image with a shade of 0.7 and cloth of the same mean colour on it."""
    rng = np.random.default_rng(0)
    marks = cv2.GaussianBlur(rng.normal(0.0, 1.0, SIZE), (0, 0), 1.5)
    ground = 120.0 + (25.0 / marks.std() * marks if marked else 0.0 * marks)
    clip = [ground[..., None] + rng.normal(0.0, 1.0, (*SIZE, channels)) for _ in range(20)]
    model = PlateModel(background_of([np.clip(image, 0, 255).astype(np.uint8) for image in clip]), shadow_floor=0.5)
    image = ground.copy()
    image[SHADE] *= 0.7
    image[TROUSERS] = 0.7 * 120.0
    noisy = image[..., None] + rng.normal(0.0, 1.0, (*SIZE, channels))
    return model, np.clip(noisy, 0, 255).astype(np.uint8)


def test_cloth_of_the_colour_of_shade_is_seen_by_the_marks_it_hides() -> None:
    for channels in (1, 3):
        model, image = scene(marked=True, channels=channels)
        seen = model.evidence_in(image, None, np.ones(channels)) > 4 * SCALE
        assert seen[TROUSERS][9:-9, 9:-9].mean() > 0.85 and seen[SHADE].mean() < 0.02
        shaded, plain = model.both_in(image, (slice(0, SIZE[0]), slice(0, SIZE[1])), np.ones(channels))
        assert (shaded[seen] == plain[seen]).all()


def test_ground_without_marks_says_nothing() -> None:
    model, image = scene(marked=False, channels=3)
    seen = model.evidence_in(image, None, np.ones(3)) > 4 * SCALE
    assert seen[TROUSERS].mean() < 0.01 and seen[SHADE].mean() < 0.01
