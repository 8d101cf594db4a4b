"""Deformed motions: priorities hold, what is not asked stays, goals out of reach are said; feet that stand."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import rotation_from_vector, vector_from_rotation
from skeleton.analysis.belts import still_ground
from skeleton.bodies import load_body
from skeleton.inverse_kinematics import footplants
from skeleton.inverse_kinematics.deformation import Constraint, balance_goal, deform_motion, limb_of
from skeleton.inverse_kinematics.footplants import plant_feet, soles_of
from skeleton.inverse_kinematics.shape_constraints import Hold, joined_holds, shape_goals
from skeleton.motions import make_motion

HUMAN = load_body("human")


def _walk(frames: int = 40) -> Floats:
    return make_motion(HUMAN, "walk", frames=frames, rate_hz=60.0, rng=np.random.default_rng(5)).coordinates


def _place(motion: Floats, point: str) -> Floats:
    return HUMAN.forward(motion).points(*HUMAN.points([point]))[:, 0]


def test_a_wrist_goes_where_it_is_told_and_nothing_but_its_arm_moves() -> None:
    raw = _walk()
    goals = np.full((40, 3), np.nan)
    goals[10:20] = _place(raw, "left_wrist")[10:20] + np.array([40.0, 0.0, 60.0])
    arm = limb_of(HUMAN, "left_wrist")
    found = deform_motion(HUMAN, raw, [Constraint("w", "left_wrist", goals, np.full(40, 2), joints=arm)])
    np.testing.assert_allclose(_place(found.coordinates, "left_wrist")[10:20], goals[10:20], atol=1e-3)
    np.testing.assert_array_equal(found.coordinates[:10], raw[:10])
    others = [c for c, name in enumerate(HUMAN.coordinate_names) if not any(name.startswith(joint) for joint in arm)]
    np.testing.assert_array_equal(found.coordinates[:, others], raw[:, others])
    assert np.isnan(found.residuals[:10]).all()


def test_a_lower_layer_does_not_disturb_a_higher_one_even_out_of_reach() -> None:
    raw = _walk(6)
    foot = _place(raw, "left_ball") + np.array([0.0, 0.0, 30.0])
    far = _place(raw, "right_ball") + np.array([0.0, 0.0, -400.0])
    high = [
        Constraint("reached", "left_ball", foot, np.full(6, 5), joints=limb_of(HUMAN, "left_ball")),
        Constraint("too far", "right_ball", far, np.full(6, 5), joints=limb_of(HUMAN, "right_ball")),
    ]
    chest = _place(raw, "chest") + np.array([50.0, 30.0, -40.0])
    low = Constraint("chest", "chest", chest, np.full(6, 1))
    alone, both = (deform_motion(HUMAN, raw, some, most_iterations=200) for some in (high, [*high, low]))
    assert np.abs(alone.residuals[:, 0]).max() < 1e-4
    assert alone.residuals[:, 1].min() > 50.0  # said, not stretched
    assert np.abs(both.residuals[:, 0] - alone.residuals[:, 0]).max() < 1e-6 * 1700.0
    lengths = [
        np.linalg.norm(_place(m, "left_knee") - _place(m, "left_ankle"), axis=1) for m in (raw, both.coordinates)
    ]
    np.testing.assert_allclose(lengths[0], lengths[1])


def test_a_joint_that_met_its_limit_on_a_detour_is_let_go_again() -> None:
    """A walk of which one frame kept its toes at a limit once they had been there, and missed its plant by 20 mm."""
    walk = make_motion(HUMAN, "walk", seconds=8, rate_hz=25.0, rng=np.random.default_rng(2)).coordinates
    raw = HUMAN.clamp(walk + 0.01 * np.random.default_rng(3).normal(size=walk.shape))
    plants = plant_feet(HUMAN, raw, 25.0, still_ground(len(raw)))
    some = slice(116, 126)
    held = [
        Constraint(c.name, c.point, np.where(plants.held[c.name][some, None], c.goals[some], np.nan), c.priority[some],
                   joints=c.joints)
        for c in plants.constraints if c.name in plants.held
    ]  # fmt: skip
    lower = [
        Constraint(
            "wrist", "left_wrist", _place(raw, "left_wrist")[some] + np.array([80.0, 0.0, 60.0]), np.full(10, 2)
        ),
        Constraint("chest", "chest", _place(raw, "chest")[some] + np.array([0.0, 40.0, -30.0]), np.full(10, 3)),
    ]
    alone, both = (deform_motion(HUMAN, raw[some], one, most_iterations=100) for one in (held, held + lower))
    assert np.nanmax(np.abs(both.residuals[:, : len(held)] - alone.residuals)) < 1e-6


def test_orientation_and_balance_are_tasks_like_any_other() -> None:
    raw = _walk(5)
    pose = HUMAN.forward(raw)
    wanted = rotation_from_vector(np.array([0.0, 0.2, 0.1])) @ pose.rotations[:, HUMAN.index("head")]
    turn = Constraint("look", "head", vector_from_rotation(wanted), np.full(5, 3), "orientation")
    goal = balance_goal(HUMAN, raw, np.broadcast_to([20.0, 10.0, 0.0], (5, 3)))
    found = deform_motion(HUMAN, raw, [turn, Constraint("balance", "", goal, np.full(5, 2), "balance")])
    np.testing.assert_allclose(HUMAN.forward(found.coordinates).rotations[:, HUMAN.index("head")], wanted, atol=1e-5)
    np.testing.assert_allclose(balance_goal(HUMAN, found.coordinates, np.zeros((5, 3))), goal, atol=1e-2)


@pytest.mark.parametrize("name, rate, noise", [("human", 60.0, 4.0), ("mouse", 120.0, 0.2)])
def test_feet_stand_and_do_not_sink(name: str, rate: float, noise: float) -> None:
    body = load_body(name)
    motion = make_motion(body, "walk", frames=120, rate_hz=rate, rng=np.random.default_rng(6))
    raw = motion.coordinates.copy()
    rng = np.random.default_rng(7)
    raw[:, :3] += noise * np.sin(np.arange(120)[:, None] / 9.0 + rng.uniform(0, 6, 3))  # the body sways
    plants = plant_feet(body, raw, rate, still_ground(120))
    clean = deform_motion(body, raw, plants.constraints).coordinates
    pose = body.forward(clean)
    for foot, names in body.floor_points.items():
        stands = plants.contacts[foot].states
        for point in names:
            track = pose.points(*body.points([point]))[:, 0]
            steps = np.linalg.norm(np.diff(track, axis=0), axis=1)[stands[1:] & stands[:-1]]
            assert np.median(steps) < (0.3 if name == "human" else 0.05)
            assert np.percentile(plants.level_mm[point] - track[:, 2], 95) < (0.3 if name == "human" else 0.05)
    np.testing.assert_array_equal(clean[:, :6], raw[:, :6])  # the body itself is left alone


def test_feet_stand_on_the_floor_unless_they_say_otherwise() -> None:
    body, rate = load_body("mouse"), 120.0
    raw = make_motion(body, "walk", frames=90, rate_hz=rate, rng=np.random.default_rng(6)).coordinates.copy()
    raw[:, 2] += 0.3
    ground, rest = still_ground(90), soles_of(body).height_mm["left_palm"]
    levels = [
        plant_feet(body, raw, rate, ground, soles=soles_of(body, sigma_mm=sigma)).level_mm["left_palm"]
        for sigma in (0.0, 0.1, 0.2)
    ]
    np.testing.assert_allclose(levels, [rest + 0.3, rest + 0.3, rest], atol=0.02)
    grown = soles_of(body, grown=1.1, sigma_mm=1.0)
    assert plant_feet(body, raw, rate, ground, soles=grown).level_mm["left_palm"] == pytest.approx(1.1 * rest)


def test_a_stance_gives_way_so_that_its_ankle_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Toes that are seen bent are laid flat: about a joint above the sole, which would push the foot back."""
    raw = make_motion(HUMAN, "walk", frames=90, rate_hz=60.0, rng=np.random.default_rng(6)).coordinates.copy()
    raw[:, HUMAN.coordinate_names.index("left_toes")] += 0.2

    def moved() -> tuple[float, float]:
        plants = plant_feet(HUMAN, raw, 60.0, still_ground(90))
        clean = deform_motion(HUMAN, raw, plants.constraints).coordinates
        (start, stop), *_ = plants.contacts["left_foot"].intervals
        ways = [(_place(clean, name) - _place(raw, name))[start:stop] for name in ("left_ankle", "left_toe_tip")]
        return float(np.linalg.norm(np.median(ways[0], axis=0)[:2])), float(np.abs(np.median(ways[1], axis=0)).max())

    ankle, tip = moved()
    monkeypatch.setattr(footplants, "_given_way", lambda *_: {})
    pushed, _ = moved()
    assert ankle < 0.75 * pushed and tip > 2.0


@pytest.mark.parametrize("seed", [0, 2, 12])
def test_goals_within_reach_are_met_although_joints_meet_their_limits_on_the_way(seed: int) -> None:
    """Joints at their limits were laid back to the raw pose, and of some limbs nothing moved at all."""
    body, rng, names = load_body("mouse"), np.random.default_rng(seed), ("left_palm", "left_finger_tip")
    size = 0.6 if seed == 12 else 0.3
    walk = make_motion(body, "walk", frames=3, rate_hz=120.0, rng=rng).coordinates
    for far in (0.3, size) if size == 0.6 else (size,):
        raw = body.clamp(walk + far * rng.normal(size=(1, walk.shape[1])) * (np.arange(walk.shape[1]) > 5))
        other = body.clamp(raw + 1.5 * far * rng.normal(size=raw.shape[1]))
    own = [i for i, name in enumerate(body.coordinate_names) if name.startswith(limb_of(body, names[0]))]
    reached = raw.copy()
    reached[:, own] = other[:, own]
    goals = body.forward(reached).points(*body.points(names))
    wanted = [
        Constraint(name, name, goals[:, i], np.full(3, 10), joints=limb_of(body, name)) for i, name in enumerate(names)
    ]
    assert deform_motion(body, raw, wanted).residuals.max() < 1e-3


def test_holds_of_one_point_do_not_overlap_and_ease_in() -> None:
    low, high = Hold(10, 30, (1.0, 0.0, 0.0), "relative", 1), Hold(20, 25, (5.0, 0.0, 0.0), "relative", 3)
    joined = joined_holds([low, high])
    assert [(one.first, one.last, one.priority) for one in joined] == [(10, 19, 1), (20, 25, 3), (26, 30, 1)]
    track = np.stack([np.arange(60.0), np.zeros(60), np.zeros(60)], axis=1)
    goals, priority = shape_goals(track, [Hold(20, 30, (0.0, 0.0, 9.0), "still", 2, ramp=5)])
    assert np.ptp(goals[20:31, 0]) == 0.0 and (goals[20:31, 2] == 9.0).all()
    assert np.isnan(goals[13]).all() and np.isnan(goals[37]).all() and priority[25] == 2
    assert 0.0 < goals[17, 2] < 9.0 and 0.0 < goals[33, 2] < 9.0
    absolute, _ = shape_goals(track, [Hold(20, 30, (7.0, 8.0, 9.0))])
    np.testing.assert_array_equal(absolute[20:31], np.broadcast_to([7.0, 8.0, 9.0], (11, 3)))


def test_bad_input() -> None:
    with pytest.raises(InputError, match="kind must be one of point"):
        Constraint("x", "head", np.zeros((3, 3)), np.ones(3), "torque")
    with pytest.raises(InputError, match="has 3 frames, the motion 5"):
        deform_motion(HUMAN, _walk(5), [Constraint("x", "head", np.zeros((3, 3)), np.ones(3))])
    with pytest.raises(InputError, match="mode must be one of"):
        Hold(1, 2, (0.0, 0.0, 0.0), "bent")
    with pytest.raises(InputError, match="the motion has 10"):
        shape_goals(np.zeros((10, 3)), [Hold(1, 20, (0.0, 0.0, 0.0))])
