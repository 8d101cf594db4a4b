"""Running wheels: found from the feet, contacts and strides told on them, floors and belts never taken for one."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.walking.contacts import f1_of
from benchmarks.walking.wheels import wheel_run
from skeleton.analysis.belts import Belt, find_belt
from skeleton.analysis.contacts import detect_contacts, foot_points, ground_of
from skeleton.analysis.gait import GaitPaths, gait_of
from skeleton.analysis.wheels import Rim, Wheel, given_wheel
from skeleton.bodies import load_body
from skeleton.motions import make_motion


@pytest.mark.parametrize("inside, radius, speed", [(True, 62.5, 450.0), (True, 175.0, 600.0), (False, 100.0, 250.0)])
def test_a_wheel_is_found_and_strides_are_told_on_it(inside: bool, radius: float, speed: float) -> None:
    run = wheel_run(11, radius=radius, speed=speed, stride_hz=4.5, inside=inside, seconds=2.0)
    wheel = ground_of(run.feet, run.rate_hz)
    assert isinstance(wheel, Wheel) and wheel.rim.inside == inside
    assert wheel.rim.radius_mm == pytest.approx(radius, rel=0.06)
    assert abs(float(wheel.rim.axis @ run.axis)) > 0.999
    across = wheel.rim.centre - run.centre
    assert np.linalg.norm(across - (across @ run.axis) * run.axis) < 0.05 * radius
    for foot, points in run.feet.items():
        assert f1_of(detect_contacts(points, run.rate_hz, belt=wheel).states, run.stands[foot]) > 0.92
    frames = len(run.turned)
    place = np.broadcast_to(run.centre[:2], (frames, 2))
    gait = gait_of(GaitPaths(run.feet, place, np.zeros(frames), np.full(frames, 60.0)), run.rate_hz)
    gone = radius * float(run.turned[-1] - run.turned[0])
    assert gait.speed_mm_s * frames / run.rate_hz == pytest.approx(gone, rel=0.06)
    lengths = np.concatenate([one.length_mm for one in gait.feet.values()])
    assert len(lengths) >= 20 and float(np.mean(lengths)) == pytest.approx(speed / 4.5, rel=0.08)
    assert "of a wheel, found from the feet" in gait.belt.words()


def test_on_a_flat_ground_nothing_of_it_would_be_seen() -> None:
    """What the wheel is worth: taken for a belt, the same feet have hardly a stance that is one."""
    run = wheel_run(11, radius=62.5, speed=450.0, stride_hz=4.5, seconds=2.0)
    flat = find_belt(list(run.feet.values()), run.rate_hz)
    scores = [f1_of(detect_contacts(p, run.rate_hz, belt=flat).states, run.stands[f]) for f, p in run.feet.items()]
    assert max(scores) < 0.9


def test_a_wheel_that_is_named_turns_as_the_feet_say() -> None:
    run = wheel_run(12, radius=62.5, speed=300.0, stride_hz=4.0, seconds=2.0)
    wheel = given_wheel(run.centre, run.axis, 62.5, list(run.feet.values()), run.rate_hz)
    assert wheel.given and wheel.rim.inside and "named in recording.toml" in wheel.words()
    true = 62.5 * np.gradient(run.turned) * run.rate_hz
    speeds = np.linalg.norm(wheel.surface.velocity, axis=1)
    assert np.median(np.abs(speeds / true - 1.0)) < 0.04


def test_unrolled_and_back() -> None:
    rng = np.random.default_rng(3)
    for inside in (True, False):
        rim = Rim(np.array([3.0, -8.0, 70.0]), np.array([0.3, 1.0, 0.05]), 60.0, inside)
        below = rim.centre + 50.0 * (-1.0 if inside else 1.0) * rim.frame[2]
        points = below + rng.normal(0, 15.0, (20, 4, 3))
        np.testing.assert_allclose(rim.rolled(rim.unrolled(points)), points, atol=1e-9)
        wheel = Wheel(rim, Belt(rng.normal(0, 100.0, (20, 2))))
        np.testing.assert_allclose(wheel.back(wheel.without(points, 100.0), 100.0), points, atol=1e-9)


@pytest.mark.parametrize("motion", ["walk", "trot", "rear", "explore"])
def test_a_floor_and_a_belt_are_no_wheel(motion: str) -> None:
    body = load_body("mouse")
    made = make_motion(body, motion, seconds=1.5, rate_hz=120.0, rng=np.random.default_rng(1))
    feet = foot_points(body, body.forward(made.coordinates))
    assert not isinstance(ground_of(feet, 120.0), Wheel)
    carried = np.arange(len(made.coordinates))[:, None, None] * np.array([1.5, 0.5, 0.0])
    assert not isinstance(ground_of({foot: points - carried for foot, points in feet.items()}, 120.0), Wheel)
