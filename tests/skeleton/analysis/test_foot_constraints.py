"""Feet of a studio mouse against floor and belt, as typed intervals."""

from __future__ import annotations

import numpy as np
import pytest

from skeleton.analysis.belts import given_belt, still_ground
from skeleton.analysis.contacts import detect_contacts, foot_points
from skeleton.analysis.foot_constraints import foot_constraints, foot_poses
from skeleton.bodies import load_body
from skeleton.motions import make_motion

RATE = 120.0


@pytest.mark.parametrize("moving", [False, True])
def test_every_stance_is_a_fixed_foot_at_its_place(moving: bool) -> None:
    body = load_body("mouse")
    motion = make_motion(body, "walk", seconds=1.5, rate_hz=RATE, rng=np.random.default_rng(3))
    pose = body.forward(motion.coordinates)
    way = np.array([-150.0, 20.0]) if moving else np.zeros(2)
    carried = np.arange(len(pose))[:, None] / RATE * np.append(way, 0.0)
    belt = given_belt(way, len(pose)) if moving else still_ground(len(pose))
    contacts = {
        foot: detect_contacts(points + carried[:, None], RATE, belt=belt)
        for foot, points in foot_points(body, pose).items()
    }
    poses = foot_poses(body, pose)
    for own in poses.values():
        own[:, :3, 3] += carried
    found = foot_constraints(poses, contacts, RATE, belt, size_mm=8.0)
    assert {foot for foot, _ in found} == set(motion.feet)
    for foot, one in found:
        planted = motion.contacts[one.first : one.last + 1, motion.feet.index(foot)]
        assert one.kind == "space" and planted.mean() > 0.7
        assert one.spread_mm < 1.0 and abs(one.place[2]) < 3.0 and 0.0 <= one.confidence <= 1.0
        # The same place wherever the ground carries the foot.
        still = pose.points(*body.points(body.floor_points[foot][:1]))[one.first : one.last + 1, 0]
        assert np.linalg.norm(one.place - still.mean(axis=0)) < 1e-6
