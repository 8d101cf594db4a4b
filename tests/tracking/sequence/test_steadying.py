"""All frames at once: how far each lies from the middle of those beside it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from calibration.geometry.transforms import rotation_from_vector
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.steadying import _bends


def test_a_frame_lies_from_the_middle_of_those_beside_it_by_its_own_turn_and_shift() -> None:
    rng = np.random.default_rng(1)
    quads = 3
    rotations, centres = rotation_from_vector(rng.normal(size=(quads, 3))), rng.normal(size=(quads, 3))
    turn, way = 0.2 * rng.normal(size=(quads, 3)), rng.normal(size=(quads, 3))
    poses = [QuadPose(rotation_from_vector(k * turn) @ rotations, centres + k * way) for k in range(6)]
    off = rng.normal(size=(quads, 6)) * 0.1
    poses[2] = QuadPose(rotation_from_vector(off[:, :3]) @ poses[2].rotations, poses[2].centres + off[:, 3:])
    fits: list[Any] = [SimpleNamespace(pose=pose) for pose in poses]
    bends = _bends(fits)
    assert bends[0] is None and bends[5] is None
    np.testing.assert_allclose(bends[2], off.ravel(), atol=1e-12)
    np.testing.assert_allclose(bends[4], 0.0, atol=1e-12)
    fits[4] = None
    assert [bend is None for bend in _bends(fits)] == [True, False, False, True, True, True]
    assert _bends(fits[:1]) == [None]
