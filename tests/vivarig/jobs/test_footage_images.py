"""Images of a camera by the recording's frames, its clock being early or late."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from capture.recordings.recording import Footage
from vivarig.jobs.footage_images import grey_images_of, images_of


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("offset", [0, 2, -3])
def test_grey_images_are_those_of_the_frames_asked_for(tmp_path: Path, offset: int, step: int) -> None:
    for index in range(12):
        cv2.imwrite(str(tmp_path / f"{index:02d}.png"), np.full((8, 8), 10 * index, np.uint8))
    frames = range(1, 10, step)
    images = list(grey_images_of(Footage("cam", tmp_path, offset_frames=offset), frames))
    expected = [None if frame + offset < 0 else 10 * (frame + offset) for frame in frames if frame + offset < 12]
    assert [None if image is None else int(image[0, 0]) for image in images] == expected


@pytest.mark.parametrize("offset", [0, 2, -3])
@pytest.mark.parametrize("frames", [range(1, 14), [1, 2, 5, 9], [4, 13]])
def test_images_are_those_of_some_frames(tmp_path: Path, offset: int, frames: range | list[int]) -> None:
    for index in range(12):
        cv2.imwrite(str(tmp_path / f"{index:02d}.png"), np.full((8, 8), 10 * index, np.uint8))
    images = list(images_of(Footage("cam", tmp_path, offset_frames=offset), frames))
    expected = [10 * (frame + offset) if 0 <= frame + offset < 12 else None for frame in frames]
    assert [None if image is None else image.tolist() for image in images] == [
        None if level is None else np.full((8, 8, 3), level).tolist() for level in expected
    ]


def test_a_camera_of_masks_alone_has_no_images(tmp_path: Path) -> None:
    assert list(images_of(Footage("cam", tmp_path, masks=tmp_path), [1, 2])) == [None, None]
