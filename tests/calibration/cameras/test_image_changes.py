"""Cropped, scaled, padded and turned images: points project to where the change puts their old pixels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from example_rigs import one_of_each, ring

from calibration.cameras.camera import Camera, LensCamera
from calibration.cameras.image_changes import cropped, padded, rotated, scaled
from calibration.foundation.errors import InputError

POINTS = np.random.default_rng(2).uniform(-60, 60, (40, 3))
CHANGES: dict[str, tuple[Callable[[Camera], Camera], Callable[[np.ndarray], np.ndarray], tuple[int, int]]] = {
    "crop": (lambda c: cropped(c, (30, 20), (500, 400)), lambda p: p - [30, 20], (500, 400)),
    "scale": (lambda c: scaled(c, (320, 120)), lambda p: (p + 0.5) * [0.5, 0.25] - 0.5, (320, 120)),
    "pad": (lambda c: padded(c, 1, 2, 3, 4), lambda p: p - [-1, -2], (644, 486)),
    "quarter": (lambda c: rotated(c, 90), lambda p: np.stack([479 - p[:, 1], p[:, 0]], axis=1), (480, 640)),
    "half": (lambda c: rotated(c, 180), lambda p: [639, 479] - p, (640, 480)),
    "three quarters": (lambda c: rotated(c, 270), lambda p: np.stack([p[:, 1], 639 - p[:, 0]], axis=1), (480, 640)),
}


def without_skew(camera: Camera) -> Camera:
    """Return a camera whose pixels have right angles."""
    if not isinstance(camera, LensCamera):
        return camera
    intrinsics = camera.lens.intrinsics * np.where(np.arange(9).reshape(3, 3) == 1, 0.0, 1.0)
    return replace(camera, lens=replace(camera.lens, intrinsics=intrinsics))


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", ["pinhole5", "pinhole12", "fisheye", "matrix"])
def test_points_go_where_their_pixels_went(change: str, kind: str) -> None:
    camera = without_skew(one_of_each()[kind])
    make, moved, size = CHANGES[change]
    new = make(camera)
    assert new.size == size
    assert new.project(POINTS) == pytest.approx(moved(camera.project(POINTS)), abs=1e-6)


def test_turning_four_times_changes_nothing() -> None:
    camera = without_skew(ring(1)[0])
    assert rotated(rotated(camera, 270), 90).packed() == pytest.approx(camera.packed())
    assert rotated(camera, 360).packed() == pytest.approx(camera.packed())


def test_what_cannot_be_is_refused() -> None:
    camera = ring(1)[0]
    with pytest.raises(InputError, match="not inside its image"):
        cropped(camera, (600, 0), (100, 100))
    with pytest.raises(InputError, match="90, 180 or 270"):
        rotated(camera, 45)
    with pytest.raises(InputError, match="0 or more"):
        padded(camera, -1, 0, 0, 0)
    with pytest.raises(InputError, match="skew"):
        rotated(camera, 90)
    with pytest.raises(InputError, match="tilted"):
        rotated(without_skew(ring(1, distortion=14)[0]), 90)
