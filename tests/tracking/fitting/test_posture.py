"""How a rodent holds itself: postures it takes cost nothing, those it does not cost overlap."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest
from example_rigs import looking_at_origin

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig
from calibration.geometry.transforms import rotation_from_vector
from tracking.adapting.scale_search import make_solver
from tracking.fitting.pale_parts import pale_vertices
from tracking.fitting.posture import COST, NECK, Posture, posture_of
from tracking.fitting.stance import AHEAD, BESIDE, SOLE
from tracking.observations.contours import observe
from tracking.observations.rasteriser import cast_masks
from tracking.quads.oriented_quads import QuadPose, QuadRig
from tracking.subjects.subject import load_subject
from tracking.terms.energy import System


@pytest.fixture(scope="module", params=["mouse", "rat"])
def rig(request: pytest.FixtureRequest) -> QuadRig:
    return load_subject(request.param).cage_rig.quads


def known(rig: QuadRig) -> Posture:
    posture = posture_of(rig)
    assert posture is not None
    return posture


def turned(rig: QuadRig, *vectors: tuple[float, float, float]) -> QuadPose:
    """The body at rest, turned as a whole by rotation vectors, one after the other."""
    rotations = rig.rotations
    for vector in vectors:
        rotations = rotation_from_vector(np.array(vector)) @ rotations
    return QuadPose(rotations, rig.centres)


@pytest.mark.parametrize("heading", [0.0, 2.0, -1.0])
@pytest.mark.parametrize("pitch", [0.0, -1.4, 0.8])
@pytest.mark.parametrize("roll", [0.0, 0.9, -0.9])
def test_standing_rearing_and_leaning_animals_are_at_ease(
    rig: QuadRig, heading: float, pitch: float, roll: float
) -> None:
    assert known(rig).of(turned(rig, (roll, 0, 0), (0, pitch, 0), (0, 0, heading))) == 0.0


@pytest.mark.parametrize("heading", [0.0, 2.0])
def test_a_back_on_the_ground_is_not_a_posture(rig: QuadRig, heading: float) -> None:
    """Head and trunk both face down: each pays its limit and its whole fall."""
    strain = known(rig).of(turned(rig, (np.pi, 0, 0), (0, 0, heading)))
    assert strain == pytest.approx(COST * (0.5 + 1.0 + 0.2 + 1.0), rel=0.05)


def test_a_rolled_head_and_a_wrung_neck_cost_overlap(rig: QuadRig) -> None:
    posture = known(rig)

    def with_head(vector: tuple[float, float, float]) -> float:
        rotations = rig.rotations.copy()
        rotations[posture.head] = rotation_from_vector(np.array(vector)) @ rotations[posture.head]
        return posture.of(QuadPose(rotations, rig.centres))

    assert with_head((0.8, 0, 0)) == 0.0
    assert with_head((0, 0, 1.4)) == 0.0
    assert with_head((0, 0, NECK + 0.5)) == pytest.approx(0.5 * COST, rel=1e-6)
    assert with_head((2.0, 0, 0)) == pytest.approx(COST * (0.5 - np.cos(2.0) + 2.0 - NECK), rel=0.05)


def test_people_have_no_such_rule() -> None:
    assert posture_of(load_subject("human").cage_rig.quads) is None


def pull(posture: Posture, pose: QuadPose) -> np.ndarray:
    """The step (Q, 6) that the posture asks for: down its gradient."""
    system = System.empty(len(pose.centres), 0)
    posture.add_to(system, pose, 1.0)
    assert np.linalg.eigvalsh(system.hessian).min() > -1e-6 * np.abs(system.hessian).max()
    return -system.gradient.reshape(-1, 6)


def without_feet(rig: QuadRig) -> Posture:
    return replace(known(rig), stance=None)


@pytest.mark.parametrize("heading", [0.0, 2.0])
def test_a_rolled_trunk_is_turned_back_and_a_level_one_left(rig: QuadRig, heading: float) -> None:
    posture = without_feet(rig)
    for pitch in (0.0, -0.8, 0.8):
        level = pull(posture, turned(rig, (0, pitch, 0), (0, 0, heading)))
        assert np.abs(np.delete(level, posture.head, axis=0)).max() < 1e-6
        # The head alone is turned back: about the body's left.
        left = np.array([-np.sin(heading), np.cos(heading), 0.0])
        assert np.sign(level[posture.head, :3] @ left).round() == -np.sign(pitch)
    axis = np.array([np.cos(heading), np.sin(heading), 0.0])
    for roll in (0.3, -0.6):
        step = pull(posture, turned(rig, (roll, 0, 0), (0, 0, heading)))
        along = step[list(posture.level), :3] @ axis
        assert (np.sign(along) == -np.sign(roll)).all()


def test_a_spine_wrung_in_one_place_is_unwound_there(rig: QuadRig) -> None:
    posture = replace(without_feet(rig), level=(), sway=np.zeros(0))
    names = list(rig.quad_names)
    rotations = rig.rotations.copy()
    quad = names.index("thorax")
    for turn, unwound in (((0.4, 0, 0), True), ((0, 0.4, 0), False), ((0, 0, 0.4), False)):
        rotations[quad] = rotation_from_vector(np.array(turn)) @ rig.rotations[quad]
        step = pull(posture, QuadPose(rotations, rig.centres))
        assert (step[quad, 0] < -1.0) == unwound  # a spine may bend, not twist
        if not unwound:
            assert np.abs(np.delete(step, posture.head, axis=0)).max() < 1e-6


def test_feet_are_drawn_under_the_body_and_to_a_floor_that_is_near(rig: QuadRig) -> None:
    stance = known(rig).stance
    assert stance is not None
    centres = rig.centres - rig.centres[stance.trunk]
    foot = stance.feet[0]
    for height, drawn in ((0.15, True), (20.0, False)):
        shifted = centres + np.array([0.0, 0.0, height * stance.length - centres[foot, 2]])
        shifted[foot] += [-0.4 * stance.length, 0.0, 0.0]  # behind the body
        step = pull(known(rig), QuadPose(rig.rotations, shifted))[foot]
        assert step[3] > 0  # ahead
        # On a floor far below nothing says where it stands.
        assert (step[5] < -1e-3) == drawn
    away, near = (stance.away(QuadPose(rig.rotations, values)) for values in (shifted, centres))
    assert away[0] > near[0] + 1


def test_it_is_the_ball_of_the_foot_that_stands_there(rig: QuadRig) -> None:
    """Between foot and toes: neither quad by itself, and both are drawn alike."""
    posture = known(rig)
    stance = posture.stance
    assert stance is not None
    centres = rig.centres.copy()
    middle = centres[list(stance.hips)].mean(axis=0)
    for foot, toe, side in zip(stance.feet, stance.toes, (1.0, -1.0), strict=True):
        place = middle + stance.length * np.array([AHEAD, side * BESIDE, 0.0])
        shift = place - 0.5 * (centres[foot] + centres[toe])
        centres[[foot, toe]] += [shift[0], shift[1], 0.0]
    for foot in stance.feet:
        centres[foot, 2] = SOLE * stance.length
    standing = QuadPose(rig.rotations, centres)
    np.testing.assert_allclose(stance.away(standing), 0.0, atol=1e-6)
    np.testing.assert_allclose(pull(posture, standing)[[*stance.feet, *stance.toes], 3:5], 0.0, atol=1e-6)
    centres[[stance.feet[0], stance.toes[0]]] -= [0.15 * stance.length, 0.0, 0.0]
    behind = QuadPose(rig.rotations, centres)
    np.testing.assert_allclose(stance.away(behind), [1.0, 0.0], atol=1e-6)
    step = pull(posture, behind)
    assert step[stance.toes[0], 3] == pytest.approx(step[stance.feet[0], 3]) and step[stance.toes[0], 3] > 0


@pytest.mark.parametrize("heading", [0.0, 2.0])
def test_where_hind_feet_stand_is_not_known_of_an_animal_that_is_curled_up(rig: QuadRig, heading: float) -> None:
    posture = known(rig)
    for turn, told in ((0.6, True), (-0.6, True), (1.0, False), (-1.0, False)):
        pose = turned(rig, (0, 0, heading))
        rotations = pose.rotations.copy()
        rotations[posture.neck] = rotation_from_vector(np.array([0, 0, turn])) @ rotations[posture.neck]
        assert np.isfinite(posture.hind_feet_away(QuadPose(rotations, pose.centres))).all() == told


def test_feet_are_pale(rig: QuadRig) -> None:
    binding = np.kron(np.eye(len(rig)), np.ones((1, 4)))
    pale = pale_vertices(rig, binding)
    assert pale is not None
    named = {name for name, bare in zip(rig.quad_names, pale, strict=True) if bare}
    assert {"left_toe", "right_foot", "left_finger"} <= named
    assert not named & {"lumbar", "head", "nose", "left_hip", "right_shoulder", "tail_tip"}
    human = load_subject("human").cage_rig.quads
    assert pale_vertices(human, np.kron(np.eye(len(human)), np.ones((1, 4)))) is None


def test_outlines_that_fit_outvote_the_posture_and_those_that_do_not_are_outvoted() -> None:
    """A foot lifted behind the body: kept where clean outlines show it, drawn back where they err by millimetres."""
    lens = PinholeLens((400, 400), np.array([[1100.0, 0, 200], [0, 1100.0, 200], [0, 0, 1]]), np.zeros(5))
    places = [600.0 * np.array([np.cos(a), np.sin(a), 0.4]) for a in (0.3, 1.3, 2.4, 3.4, 4.5, 5.5)]
    cameras = Rig(tuple(LensCamera(f"cam{k}", lens, looking_at_origin(at)) for k, at in enumerate(places)))
    mouse = load_subject("mouse")
    solver = make_solver(mouse, cameras)
    posture, rest = solver.posture, mouse.cage_rig.quads.rest
    assert posture is not None and posture.stance is not None
    moved = rest.centres - rest.centres.mean(axis=0)
    chain = [mouse.cage_rig.quads.quad_names.index(f"left_{part}") for part in ("foot", "toe")]
    moved[chain] += [-6.0, 3.0, 5.0]
    truth = QuadPose(rest.rotations, moved)
    surface = mouse.cage_rig.deform(mouse.outline_template.binding, truth)
    masks = cast_masks(cameras, surface, mouse.outline_template.faces)
    latent = np.zeros(solver.prior.latent_dim)
    away = []
    for error in (0, 5):
        kernel = np.ones((2 * error + 1, 2 * error + 1), np.uint8)
        wide = [cv2.dilate(mask.astype(np.uint8), kernel).astype(bool) for mask in masks]
        fit = solver.fit(observe(wide), truth, latent, latent_steps=False)
        away.append(float(np.linalg.norm(fit.pose.centres[chain[0]] - moved[chain[0]])))
    assert away[0] < 0.5 * away[1]
