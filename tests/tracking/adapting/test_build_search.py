"""A stout mouse that sits upright is found by its build and heading, with nothing told of either."""

from __future__ import annotations

import numpy as np

from calibration.cameras.ring import ring_rig
from skeleton.actors.actor import build_actor
from skeleton.motions import make_motion
from tracking.adapting.build_search import find_build
from tracking.observations.contours import observe
from tracking.observations.rasteriser import cast_masks
from tracking.subjects.shape import builds
from tracking.subjects.subject import builtin_subject

RIG = ring_rig(4, radius=700.0, height=[250.0, 320.0], target=(0.0, 0.0, 30.0), size=(400, 300), field_mm=260.0, seed=3)


def test_builds_begin_with_the_built_in_one_and_grow_at_the_trunk() -> None:
    assert len(builds("human")) == 1
    plain, *stouter = builds("mouse")
    assert set(plain.girths.values()) == {1.0} and stouter
    for slim, stout in zip([plain, *stouter], stouter, strict=False):
        assert stout.girths["rump"] > slim.girths["rump"] and stout.girths["tail"] == 1.0
        assert stout.lengths == slim.lengths
    assert stouter[-1].scaled(1.1).girths["rump"] == 1.1 * stouter[-1].girths["rump"]


def test_a_stout_mouse_that_sits_is_found_with_its_build_and_heading() -> None:
    stout = builds("mouse")[-1]
    actor = build_actor("mouse", girth=stout.joint_girths(), asymmetry=0.015, seed=5)
    motion = make_motion(actor.skeleton, "postures", seconds=6.0, rate_hz=5.0, rng=np.random.default_rng(77))
    pose = actor.skeleton.forward(motion.coordinates)
    upright = int(np.argmin(np.abs(pose.rotations[:, 0, 2, 0] - np.sin(np.radians(60.0)))))  # pelvis 60 degrees up
    skin = actor.skin(pose)[upright]
    middle = 0.5 * (skin.min(axis=0) + skin.max(axis=0)) * [1.0, 1.0, 0.0]
    look = observe(cast_masks(RIG, skin - middle, actor.faces))
    subject = builtin_subject("mouse")
    found = find_build(subject, RIG, lambda frame: look, [0], up=np.array([0.0, 0.0, 1.0]))
    assert not found.plain and found.shape.girths["rump"] / found.shape.scale > 1.2
    assert found.overlap > 0.85
    names = list(actor.skeleton.joint_names)
    truth = pose.positions[upright] - middle
    quads = subject.cage_rig.quads.quad_names
    for quad, joint in (("head", "skull"), ("tail_base", "tail_2")):
        away = found.found[0].pose.centres[quads.index(quad)] - truth[names.index(joint)]
        assert np.linalg.norm(away) < 12.0  # the body from nose to tail base is 90 mm
