"""Anatomical angles: signs and sizes of single joint turns."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.foundation.errors import InputError
from skeleton.analysis.angles import inner_angle, inner_angles, joint_angles, segment_tilt
from skeleton.bodies import load_body


def angles_of(name: str, joint: str, turn: list[float]) -> np.ndarray:
    body = load_body(name)
    q = body.rest()
    columns = body.columns(joint)
    q[0, columns] = turn[: columns.stop - columns.start]
    return joint_angles(body, body.forward(q)).of(joint)[0]


def toe(name: str, joint: str, turn: list[float], point: str) -> np.ndarray:
    body = load_body(name)
    q = body.rest()
    columns = body.columns(joint)
    q[0, columns] = turn[: columns.stop - columns.start]
    index, offset = body.point(point)
    return body.forward(q).points(np.array([index]), offset[None])[0, 0]


def test_signs_are_anatomical() -> None:
    rest = toe("human", "left_hip", [0, 0, 0], "left_knee")
    for turn, part, moved in (
        ([0.0, -0.3, 0.0], 0, lambda p: p[0] > rest[0] + 50),  # flexion: the knee goes forward
        ([0.2, 0.0, 0.0], 1, lambda p: p[1] > rest[1] + 30),  # abduction: the left knee goes left
    ):
        assert moved(toe("human", "left_hip", turn, "left_knee"))
        assert angles_of("human", "left_hip", turn)[part] == pytest.approx(max(map(abs, turn)))
    assert angles_of("human", "right_hip", [-0.2, 0.0, 0.0])[1] == pytest.approx(0.2)
    assert angles_of("human", "left_hip", [0.0, 0.0, -0.25])[2] == pytest.approx(0.25)  # internal rotation
    assert angles_of("human", "right_hip", [0.0, 0.0, 0.25])[2] == pytest.approx(0.25)


def test_inner_angles() -> None:
    straight = inner_angle(np.array([0.0, 0, 0]), np.array([1.0, 0, 0]), np.array([2.0, 0, 0]))
    assert straight == pytest.approx(np.pi)
    right = inner_angle(np.array([[0.0, 0, 0]]), np.array([[1.0, 0, 0]]), np.array([[1.0, 3.0, 0]]))
    assert right[0] == pytest.approx(np.pi / 2)
    mouse = load_body("mouse")
    found = inner_angles(mouse, mouse.forward(mouse.rest()))
    assert found["left_knee"] == pytest.approx(found["right_knee"])
    assert {"left_hip", "left_knee", "left_ankle", "left_elbow"} <= set(found)


def test_trunk_pitch_and_bad_names() -> None:
    mouse = load_body("mouse")
    q = mouse.rest()
    before = segment_tilt(mouse.forward(q), mouse, ("tail_1", "cervical_1"))[0]
    q[0, 4] = -0.5  # the whole animal pitches up
    assert segment_tilt(mouse.forward(q), mouse, ("tail_1", "cervical_1"))[0] - before == pytest.approx(0.5, abs=1e-9)
    with pytest.raises(InputError, match="did you mean 'left_knee'"):
        joint_angles(mouse, mouse.forward(q)).of("left_kne")
