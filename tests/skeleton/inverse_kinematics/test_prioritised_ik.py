"""Prioritised inverse kinematics: hierarchy, the published chain, unreachable goals, recruiting."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.foundation.errors import InputError
from skeleton.bodies import load_body
from skeleton.bodies.marker_sets import MarkerSet
from skeleton.inverse_kinematics.prioritised_ik import PrioritisedOptions, fit_prioritised, solve_pose
from skeleton.inverse_kinematics.prioritised_tasks import Layer, check_recruiting
from skeleton.tree.articulation import Articulation, articulation_of
from skeleton.tree.joint_tree import Joint, Skeleton

TIP = MarkerSet(("tip",), ("j19",), np.array([[50.0, 0.0, 0.0]]), np.ones(1))


@pytest.fixture(scope="module")
def chain() -> Articulation:
    """Twenty balls of 50 mm: 60 coordinates, 1 m."""
    joints = tuple(
        Joint(f"j{i}", None if i == 0 else f"j{i - 1}", "ball", np.array([50.0 if i else 0.0, 0.0, 0.0]))
        for i in range(20)
    )
    return articulation_of(Skeleton("chain", joints))


def tip_of(chain: Articulation, q: np.ndarray) -> np.ndarray:
    return chain.points(q[None], np.array([19]), TIP.offsets)[0, 0]


def test_published_chain_reaches_its_goals_within_29_iterations(chain: Articulation) -> None:
    rng = np.random.default_rng(0)
    start = 0.1 * rng.normal(size=60)
    for _ in range(20):
        direction = rng.normal(size=3)
        goal = rng.uniform(200.0, 950.0) * direction / np.linalg.norm(direction)
        options = PrioritisedOptions(pull=0.0, goal_mm=1.0)  # 0.1 % of the length
        q, iterations, done = solve_pose(chain, [Layer("goal", TIP, goal[None, None])], 0, start, options)
        assert done and iterations <= 29
        assert np.linalg.norm(tip_of(chain, q) - goal) < 1.0


def test_unreachable_goals_stretch_the_chain_and_stay_stable(chain: Articulation) -> None:
    rng = np.random.default_rng(1)
    for _ in range(3):
        direction = rng.normal(size=3)
        direction /= np.linalg.norm(direction)
        layer = Layer("far", TIP, 1500.0 * direction[None, None])
        options = PrioritisedOptions(pull=0.0, most_iterations=300)
        q, _, _ = solve_pose(chain, [layer], 0, 0.1 * rng.normal(size=60), options)
        assert np.linalg.norm(tip_of(chain, q) - 1500.0 * direction) == pytest.approx(500.0, abs=0.01)


def _points(names: list[str]) -> MarkerSet:
    body = load_body("human")
    found = [body.point(name) for name in names]
    segments = tuple(body.joint_names[index] for index, _ in found)
    return MarkerSet(tuple(names), segments, np.array([offset for _, offset in found]), np.ones(len(names)))


@pytest.mark.parametrize("spread, reach", [(0.0, (300.0, 0.0, -200.0)), (900.0, (500.0, 200.0, 900.0))])
def test_a_lower_layer_does_not_change_a_higher_one(spread: float, reach: tuple[float, float, float]) -> None:
    """The second case has feet at a split step and hands far out of reach, against the joint limits."""
    skeleton = load_body("human")
    body = articulation_of(skeleton)
    feet = _points(["left_ball", "left_toe_tip", "right_ball", "right_toe_tip"])
    hands = _points(["left_wrist", "right_wrist", "head_top"])
    rest = skeleton.forward(skeleton.rest())
    foot_goals = rest.points(*skeleton.points(feet.names)) + np.array(
        [[0, 0, 0], [0, 0, 0], [spread, 0, 0], [spread, 0, 0]]
    )
    hand_goals = rest.points(*skeleton.points(hands.names)) + np.array(reach)
    options = PrioritisedOptions(most_iterations=500, tolerance_mm=1e-9)
    layers = [Layer("contacts", feet, foot_goals), Layer("hands", hands, hand_goals)]

    def foot_error(q: np.ndarray) -> np.ndarray:
        segments = np.array([body.segment(name) for name in feet.segments])
        return np.linalg.norm(body.points(q[None], segments, feet.offsets)[0] - foot_goals[0], axis=1)

    alone, _, _ = solve_pose(body, layers[:1], 0, body.rest, options)
    both, _, _ = solve_pose(body, layers, 0, body.rest, options)
    assert np.linalg.norm(foot_error(both)) - np.linalg.norm(foot_error(alone)) < 1e-6  # mm
    assert skeleton.limit_violation(both).angle.max() < 1e-9
    without = np.linalg.norm(
        body.points(alone[None], np.array([body.segment(s) for s in hands.segments]), hands.offsets)[0] - hand_goals[0]
    )
    with_hands = np.linalg.norm(
        body.points(both[None], np.array([body.segment(s) for s in hands.segments]), hands.offsets)[0] - hand_goals[0]
    )
    assert with_hands < without  # the lower layer does what it can


def test_results_object_and_rate_mismatch() -> None:
    body = load_body("human")
    feet = _points(["left_ball", "right_ball"])
    goals = np.repeat(body.forward(body.rest()).points(*body.points(feet.names)), 3, axis=0)
    marks = _points(["head_top", "left_wrist"])
    wanted = np.repeat(body.forward(body.rest()).points(*body.points(marks.names)), 3, axis=0)
    wanted = wanted + np.array([30.0, 0.0, 0.0])
    fit = fit_prioritised(body, [Layer("contacts", feet, goals), Layer("markers", marks, wanted)])
    assert fit.residuals.shape == (3, 4) and fit.positions.shape == (3, len(body.joints), 3)
    assert fit.residuals[:, :2].max() < 1e-3 and (fit.trust == 0).all()
    with pytest.raises(InputError, match="has 2 frames, 'contacts' 3: are their rates equal"):
        fit_prioritised(body, [Layer("contacts", feet, goals), Layer("markers", marks, wanted[:2])])


def test_recruiting_rule() -> None:
    body = articulation_of(load_body("human"))
    goal = np.zeros((1, 1, 3))
    foot, hand = _points(["left_ball"]), _points(["left_wrist"])
    # The hand may use the whole chain to the root, through joints above the foot that the foot may not use.
    with pytest.raises(InputError, match="may use pelvis, which lies above task 'left_ball'"):
        check_recruiting(body, [Layer("foot", foot, goal, (2,)), Layer("hand", hand, goal)])
    check_recruiting(body, [Layer("foot", foot, goal), Layer("hand", hand, goal, (2,))])
