"""What stands still in silhouettes is told from a subject that moves, and not taken off one that does not."""

from __future__ import annotations

import cv2
import numpy as np

from calibration.foundation.arrays import Bools, Bytes
from tracking.appearance.furniture import FEWEST, find_furniture

BOX = np.s_[60:110, 90:130]


def scene(places: list[int]) -> tuple[list[Bytes], list[Bools], list[Bools]]:
    """Images of a disc of two colours that goes past, and before, a box; silhouettes of both, and of the disc alone."""
    noise = np.random.default_rng(1)
    images, both, alone = [], [], []
    for x in places:
        image = np.full((140, 240, 3), 150.0)
        image[BOX] = (60.0, 60.0, 70.0)
        disc = np.zeros((140, 240), np.uint8)
        cv2.circle(disc, (x, 85), 30, 1, -1)
        subject = disc.view(np.bool_)
        image[subject] = (40.0, 50.0, 120.0)
        image[subject & (np.arange(140)[:, None] > 90)] = (130.0, 60.0, 40.0)
        held = subject.copy()
        held[BOX] = True
        images.append(np.clip(np.rint(image + noise.normal(0.0, 2.0, image.shape)), 0, 255).astype(np.uint8))
        both.append(held)
        alone.append(subject)
    return images, both, alone


def test_a_box_is_taken_off_and_who_goes_before_it_stays() -> None:
    images, both, alone = scene([40, 55, 70, 85, 110, 150, 170, 190, 200, 205])
    found = find_furniture(images, both)
    assert found is not None and found.still[BOX].mean() > 0.95
    assert found.still.sum() < 1.05 * found.still[BOX].sum()
    for image, mask, subject in zip(images, both, alone, strict=True):
        ours = found.cleared(image, mask)
        assert (ours & subject).sum() / (ours | subject).sum() > 0.96


def test_a_subject_that_stays_is_not_taken_for_a_thing() -> None:
    images, both, _ = scene([110] * 10)
    assert find_furniture(images, both) is None


def test_nothing_stands_still_where_nothing_was_brought() -> None:
    images, _, alone = scene([40, 55, 70, 85, 110, 150, 170, 190, 200, 205])
    assert find_furniture(images, alone) is None
    assert find_furniture(images[: FEWEST - 1], alone[: FEWEST - 1]) is None
