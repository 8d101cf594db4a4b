"""Limbs of the built-in human: which there are, what silhouettes say of them, and how a lost arm is found again."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from example_rigs import looking_at_origin

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools
from calibration.geometry.transforms import RigidTransform, rotation_from_vector
from tracking.adapting.scale_search import make_solver
from tracking.limbs import drawing
from tracking.limbs.chains import Limbs, limbs_of
from tracking.limbs.evidence import LimbEvidence
from tracking.observations.contours import Observation, observe
from tracking.observations.rasteriser import cast_masks
from tracking.quads.body_rig import builtin_attachment
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.track_output import MODEL_ERROR, marker_sigma
from tracking.sequence.tracker import Tracker
from tracking.subjects.garments import Skirt, dressed
from tracking.subjects.subject import Subject, builtin_subject


@cache
def human() -> Subject:
    return builtin_subject("human")


@cache
def limbs() -> Limbs:
    return limbs_of(human().cage_rig.quads)


def rig() -> Rig:
    """Four cameras around the origin, 4 m away."""
    lens = PinholeLens((320, 320), np.array([[500.0, 0, 160], [0, 500.0, 160], [0, 0, 1]]), np.zeros(5))
    places = [4000.0 * np.array([np.cos(a), np.sin(a), 0.2]) for a in (0.3, 1.9, 3.4, 5.0)]
    return Rig(tuple(LensCamera(f"cam{k}", lens, looking_at_origin(at)) for k, at in enumerate(places)))


@cache
def scene() -> tuple[QuadPose, tuple[Bools, ...]]:
    """A pose with an arm stretched out sideways, and its silhouettes."""
    rest = human().cage_rig.quads.rest
    pose = arm_turned(QuadPose(rest.rotations, rest.centres - rest.centres.mean(axis=0)), 1.2)
    vertices = human().cage_rig.deform(human().outline_template.binding, pose)
    return pose, tuple(cast_masks(rig(), vertices, human().outline_template.faces))


def arm_turned(pose: QuadPose, angle: float) -> QuadPose:
    """Turn the left arm about its first quad, sideways."""
    chain = limbs().chains[limbs().names.index("left_arm")]
    turn = rotation_from_vector(np.array([angle, 0.0, 0.0]))
    rotations, centres = pose.rotations.copy(), pose.centres.copy()
    rotations[chain] = turn @ pose.rotations[chain]
    centres[chain] = pose.centres[chain[0]] + (pose.centres[chain] - pose.centres[chain[0]]) @ turn.T
    return QuadPose(rotations, centres)


def seen() -> Observation:
    return observe(list(scene()[1]))


@pytest.mark.parametrize("body", ["human", "mouse", "rat"])
def test_every_body_has_trunk_head_and_four_limbs(body: str) -> None:
    found = limbs_of(builtin_attachment(body).rig)
    ends = ("arm", "leg") if body == "human" else ("fore_limb", "hind_limb")
    wanted = {"trunk", "head", *(f"{side}_{end}" for side in ("left", "right") for end in ends)}
    assert set(found.names) == wanted | (set() if body == "human" else {"tail"})
    assert found.names[0] == "trunk"
    assert sorted(np.concatenate(found.chains)) == list(range(len(found.of_quad)))


def test_points_belong_to_the_limb_that_carries_them() -> None:
    owner = dict(zip(human().joint_names, limbs().of_points(human().joint_binding), strict=True))
    for joint, limb in (("left_wrist", "left_arm"), ("right_knee", "right_leg"), ("head", "head"), ("pelvis", "trunk")):
        assert limbs().names[owner[joint]] == limb


def test_a_moved_limb_hangs_on_the_trunk_as_in_the_other_pose() -> None:
    pose = scene()[0]
    limb = limbs().names.index("left_arm")
    turned = RigidTransform(rotation_from_vector(np.array([0.2, 0.3, 1.0])), np.array([10.0, 20.0, 30.0]))
    other = QuadPose(turned.rotation @ pose.rotations, turned.apply(pose.centres))
    hanging = limbs().moved(arm_turned(pose, -1.0), limb, other)
    assert np.allclose(hanging.centres, pose.centres)
    assert np.allclose(hanging.rotations, pose.rotations)


def test_silhouettes_speak_against_a_wrong_arm() -> None:
    pose, _ = scene()
    evidence = LimbEvidence(make_solver(human(), rig()), limbs())
    arm = limbs().names.index("left_arm")
    assert evidence.sight(seen(), pose).bad.max() < 0.01
    wrong = evidence.sight(seen(), arm_turned(pose, -1.2)).bad
    assert wrong[arm] > 0.1
    assert wrong[arm] > 4 * np.delete(wrong, arm).max()


def without_arm() -> Observation:
    """The scene with the left arm erased from all views."""
    pose, masks = scene()
    template = human().outline_template
    vertices = human().cage_rig.deform(template.binding, pose)
    arm = limbs().of_points(template.binding) == limbs().names.index("left_arm")
    rest = template.faces[~arm[template.faces].any(axis=1)]
    return observe([mask & kept for mask, kept in zip(masks, cast_masks(rig(), vertices, rest), strict=True)])


def test_an_erased_arm_stands_in_empty_air() -> None:
    evidence = LimbEvidence(make_solver(human(), rig()), limbs())
    arm = limbs().names.index("left_arm")
    assert evidence.sight(without_arm(), scene()[0]).outside[arm].max() > 0.3


def test_an_arm_that_is_erased_is_doubted_and_the_head_is_not() -> None:
    pose, _ = scene()
    tracker = Tracker(make_solver(human(), rig()), rig())
    guess = (pose, tracker.solver.prior.back(_vector(tracker, pose)))
    track = tracker.track(lambda frame: without_arm() if frame else seen(), 2, start=0, guess=guess)
    arm = limbs().names.index("left_arm")
    assert not track.limb_trust[0].any() and track.trust[0] == 0
    assert track.limb_trust[1, arm] > 0 and track.trust[1] > 0
    assert not track.limb_trust[1, limbs().names.index("head")]


def test_a_lost_arm_is_found_without_the_rest() -> None:
    pose, _ = scene()
    tracker = Tracker(make_solver(human(), rig()), rig())
    start = arm_turned(pose, -1.2)
    lost = tracker.solver.fit(seen(), start, tracker.solver.prior.back(_vector(tracker, start)), latent_steps=False)
    hand = human().cage_rig.quads.quad_names.index("left_hand")
    assert np.linalg.norm(lost.pose.centres[hand] - pose.centres[hand]) > 200
    found = tracker.limbs.mended(seen(), lost)
    assert np.linalg.norm(found.pose.centres[hand] - pose.centres[hand]) < 60
    assert found.agreement > lost.agreement + 0.02


def _vector(tracker: Tracker, pose: QuadPose) -> np.ndarray:
    return np.asarray(tracker.solver.prior.chart.to_vector(pose.rotations, pose.centres)[1])


def leg_bent(pose: QuadPose, angle: float) -> QuadPose:
    """Bend the left knee."""
    chain = limbs().chains[limbs().names.index("left_leg")]
    knee, beyond = chain[2], chain[3:]
    turn = rotation_from_vector(np.array([0.0, angle, 0.0]))
    rotations, centres = pose.rotations.copy(), pose.centres.copy()
    rotations[beyond] = turn @ pose.rotations[beyond]
    centres[beyond] = pose.centres[knee] + (pose.centres[beyond] - pose.centres[knee]) @ turn.T
    return QuadPose(rotations, centres)


def test_cloth_that_swings_is_no_limbs_fault_and_a_foot_under_the_hem_is_missed() -> None:
    worn = Skirt(0.55, 0.2, 0.3)
    evidence = LimbEvidence(make_solver(dressed(human(), worn), rig()), limbs())
    rest = human().cage_rig.quads.rest
    pose = QuadPose(rest.rotations, rest.centres - rest.centres.mean(axis=0))

    def seen(skirt: Skirt, at: QuadPose) -> Observation:
        template = dressed(human(), skirt).outline_template
        return observe(cast_masks(rig(), human().cage_rig.deform(template.binding, at), template.faces))

    swung = evidence.sight(seen(replace(worn, hem=0.34), pose), pose)
    assert not np.nan_to_num(swung.missing).any()
    left = limbs().names.index("left_leg")
    bent = evidence.sight(seen(worn, leg_bent(pose, 0.9)), pose)
    assert np.nan_to_num(bent.missing[left]).max() > 0.1
    assert not np.nan_to_num(np.delete(bent.missing, [left, left + 1], axis=0)).any()


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_small_canvas_samples_the_silhouette_wherever_its_corner_lies(step: int) -> None:
    random = np.random.default_rng(5)
    for _ in range(60):
        first, size, there = int(random.integers(-20, 20)), int(random.integers(1, 30)), int(random.integers(1, 25))
        line, small = random.integers(1, 200, there), np.zeros(size, int)
        to, of = drawing._sampled(first, step, size, there)
        small[to] = line[of]
        at = first + step * np.arange(size)
        assert np.array_equal(small, np.where((at >= 0) & (at < there), line[np.clip(at, 0, there - 1)], 0))


def test_points_of_a_person_are_less_sure_where_outlines_are_ragged() -> None:
    """As sure as ever where outlines leave no more than is expected, 8 thousandths of the size."""
    solver, pose = make_solver(human(), rig()), scene()[0]
    start = Tracker(solver, rig()).limbs.search.latent_of(pose)
    fit = solver.fit(seen(), pose, start, latent_steps=False, last_steps=1)
    rows = np.ascontiguousarray(human().template.binding[human().marker_vertices], np.float64)
    clean, usual, ragged = (
        marker_sigma(rows, human(), solver, replace(fit, residual=left * solver.unit)) for left in (1.0, 7.9, 12.0)
    )
    floor = MODEL_ERROR * solver.unit
    assert np.array_equal(clean, usual) and (clean > floor).all()
    ratio = np.sqrt((ragged**2 - floor**2) / (clean**2 - floor**2))
    assert ratio == pytest.approx(1.5**2, rel=1e-3)  # the curvature's part alone
