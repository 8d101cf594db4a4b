"""A rodent's head that is turned over is found strained, doubted, and put right; so is a trunk that is rolled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from example_rigs import looking_at_origin

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig
from calibration.geometry.transforms import rotation_from_vector
from tracking.adapting.scale_search import make_solver
from tracking.limbs.chains import limbs_of
from tracking.limbs.turned_in_place import nodded, rolled, turned_leads
from tracking.observations.contours import Observation, observe
from tracking.observations.rasteriser import cast_masks
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.limb_mending import LimbMender
from tracking.sequence.limb_trust import TURN, judge_limbs, limits_of
from tracking.sequence.trust import Trust
from tracking.subjects.subject import Subject, builtin_subject


def rig() -> Rig:
    """Four cameras around the origin, 0.6 m away."""
    lens = PinholeLens((320, 320), np.array([[900.0, 0, 160], [0, 900.0, 160], [0, 0, 1]]), np.zeros(5))
    places = [600.0 * np.array([np.cos(a), np.sin(a), 0.5]) for a in (0.3, 1.9, 3.4, 5.0)]
    return Rig(tuple(LensCamera(f"cam{k}", lens, looking_at_origin(at)) for k, at in enumerate(places)))


def standing() -> tuple[Subject, QuadPose, Observation]:
    """A mouse at the origin in its pose of rest, and its silhouettes."""
    mouse = builtin_subject("mouse")
    rest = mouse.cage_rig.quads.rest
    pose = QuadPose(rest.rotations, rest.centres - rest.centres.mean(axis=0))
    surface = mouse.cage_rig.deform(mouse.outline_template.binding, pose)
    return mouse, pose, observe(list(cast_masks(rig(), surface, mouse.outline_template.faces)))


def turned(pose: QuadPose, chain: np.ndarray, turn: np.ndarray) -> QuadPose:
    """A limb's quads turned (3, 3) about its first."""
    rotations, centres = pose.rotations.copy(), pose.centres.copy()
    rotations[chain] = turn @ pose.rotations[chain]
    centres[chain] = pose.centres[chain[0]] + (pose.centres[chain] - pose.centres[chain[0]]) @ turn.T
    return QuadPose(rotations, centres)


def test_the_roll_of_a_trunk_is_known_where_outlines_or_gravity_tell() -> None:
    mouse, level, look = standing()
    solver = make_solver(mouse, rig())
    mender = LimbMender(solver)
    posture = solver.posture
    assert posture is not None
    right = solver.fit(look, level, mender.search.latent_of(level), latent_steps=False)
    leads = [turned_leads(solver, posture, look, right)[0]]
    for angle in (0.5, -0.8):
        pose = rolled(posture, right.pose, angle)
        wrong = replace(right, pose=pose, overlap=solver.overlap(look, pose))
        leads.append(turned_leads(solver, posture, look, wrong)[0])
        back = solver.fit(look, pose, right.latent, latent_steps=False)
        back = solver.fit(look, back.pose, back.latent, latent_steps=False)
        assert np.abs(posture.inclination(back.pose)[: len(posture.spine)]).max() < 0.2
    assert leads[0] > TURN > max(leads[1:])
    up = nodded(posture, right.pose, -0.5)
    looking_up = replace(right, pose=up, overlap=solver.overlap(look, up))
    nods = [turned_leads(solver, posture, look, fit)[1] for fit in (right, looking_up)]
    assert nods[0] > TURN > nods[1]


def test_a_head_turned_over_is_doubted_and_put_right() -> None:
    mouse, truth, look = standing()
    solver = make_solver(mouse, rig())
    mender = LimbMender(solver)
    limbs = mender.evidence.limbs
    head = limbs.names.index("head")
    chain = limbs.chains[head]
    over = turned(truth, chain, rotation_from_vector(np.array([2.6, 0.0, 0.0])))
    wrong = solver.fit(look, over, mender.search.latent_of(over), latent_steps=False)
    right = solver.fit(look, truth, mender.search.latent_of(truth), latent_steps=False)
    assert right.strain == 0.0 and wrong.strain > 0.02
    for fit, believed in ((wrong, False), (right, True)):
        record = mender.record(lambda frame: look, [fit])
        trust, _ = judge_limbs(record, unit=solver.unit, limits=limits_of(limbs.names))
        assert bool(trust[0, head] == Trust.TRUSTED) == believed
    mended = mender.mended(look, wrong)
    assert mended.strain == 0.0
    assert np.linalg.norm(mended.pose.centres[chain] - truth.centres[chain], axis=1).max() < 3.0
    up = mended.pose.rotations[chain[-1]] @ mouse.cage_rig.quads.rotations[chain[-1]].T
    assert up[2, 2] > 0.9


def test_the_root_of_a_tail_is_judged_with_the_trunk() -> None:
    for body in ("mouse", "rat"):
        subject = builtin_subject(body)
        limbs = limbs_of(subject.cage_rig.quads)
        owner = limbs.of_markers(subject.template.binding[subject.marker_vertices])
        judged_by = {name: limbs.names[limb] for name, limb in zip(subject.marker_names, owner, strict=True)}
        assert {judged_by[name] for name in ("rump", "tail_root", "tail_2_skin")} == {"trunk"}
        assert {judged_by[name] for name in ("tail_4_skin", "tail_end")} == {"tail"}
        assert judged_by["left_foot"] == "left_hind_limb" and judged_by["nose_tip"] == "head"


def test_a_head_that_another_place_explains_better_is_looked_for_though_nothing_near_it_is_missing() -> None:
    mouse, truth, look = standing()
    solver = make_solver(mouse, rig())
    mender = LimbMender(solver)
    head = mender.evidence.limbs.names.index("head")
    right = solver.fit(look, truth, mender.search.latent_of(truth), latent_steps=False)
    leads = mender.search.leads(look, right.pose, {})
    assert leads[head] == mender.search.lead(look, right.pose, head) > 0 and np.isnan(leads[0])
    assert mender._badness(look, right)[head] < mender._doubt
    mender.search.lead = lambda *about: -0.03  # type: ignore[method-assign]
    assert mender._badness(look, replace(right))[head] > mender._doubt
    # Fitted there, it comes back or loses: the head is believed after all.
    assert mender.record(lambda frame: look, [right]).lead[0, head] > 0
    aside = turned(truth, mender.evidence.limbs.chains[head], rotation_from_vector(np.array([0.0, 0.0, 1.0])))
    wrong = replace(right, pose=aside, overlap=solver.overlap(look, aside))
    assert mender.record(lambda frame: look, [wrong]).lead[0, head] < 0


def test_a_leg_that_another_place_explains_better_is_believed_where_it_comes_back_from_there() -> None:
    mouse, truth, look = standing()
    solver = make_solver(mouse, rig())
    mender = LimbMender(solver)
    leg = mender.evidence.limbs.names.index("left_hind_limb")
    right = solver.fit(look, truth, mender.search.latent_of(truth), latent_steps=False)
    leads = mender.search.leads
    mender.search.leads = lambda *about: np.where(np.arange(7) == leg, -0.3, leads(*about))  # type: ignore[method-assign]
    limits = limits_of(mender.evidence.limbs.names)
    record = mender.record(lambda frame: look, [right])
    assert record.lead[0, leg] > 0 and judge_limbs(record, unit=solver.unit, limits=limits)[0][0, leg] == Trust.TRUSTED
    # Where a fit from elsewhere wins, it is not.
    mender.search.finished = lambda *about: replace(
        right,
        pose=turned(  # type: ignore[method-assign]
            truth, mender.evidence.limbs.chains[leg], rotation_from_vector(np.array([0.0, 0.0, 1.5]))
        ),
    )
    mender.search.sketches = lambda *about: [mender.search.finished(*about)]  # type: ignore[method-assign]
    record = mender.record(lambda frame: look, [replace(right)])
    assert record.lead[0, leg] == -0.3
    assert judge_limbs(record, unit=solver.unit, limits=limits)[0][0, leg] == Trust.DOUBTFUL
