"""Subject scaling: lengths and marker places of an actor that the generic body does not have."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.foundation.errors import InputError
from skeleton.actors.actor import sample_actor
from skeleton.bodies import load_body
from skeleton.bodies.marker_sets import builtin_markers
from skeleton.inverse_kinematics.scaling import _by_factor, _Model, length_groups, scale_body
from skeleton.inverse_kinematics.spring_ik import fit_skeleton
from skeleton.motions import make_motion
from skeleton.tree.articulation import articulation_of


def test_lengths_of_a_known_subject() -> None:
    """Markers that ride rigidly on a scaled body: lengths come back within their standard deviations."""
    generic, markers = load_body("human"), builtin_markers("human")
    factors = dict.fromkeys(generic.joint_names, 0.95) | {"left_hip": 1.05, "right_hip": 1.05}
    subject = generic.scaled(factors)
    segments = np.array([subject.index(name) for name in markers.segments])
    own = markers.offsets * np.array([factors[name] for name in markers.segments])[:, None]
    rng = np.random.default_rng(4)
    q = subject.clamp(np.concatenate([np.zeros((25, 6)), rng.normal(0.0, 0.35, (25, subject.dimension - 6))], axis=1))
    points = subject.forward(q).points(segments, own) + rng.normal(0.0, 1.0, (25, len(segments), 3))
    scaled = scale_body(generic, markers.names, points, np.ones(len(segments)), frames=25)
    assert scaled.factors["left_hip"] == pytest.approx(1.05, abs=0.02)
    assert scaled.factors["left_knee"] == pytest.approx(0.95, abs=0.02)
    assert scaled.rms_mm[1] < 0.3 * scaled.rms_mm[0]
    off = [abs(scaled.factors[name] - factors[name]) / scaled.factor_sd[name] for name in generic.joint_names]
    assert np.median(off) < 1.5
    assert np.isfinite(scaled.offset_sd).all()


def test_an_actor_with_soft_tissue() -> None:
    """The studio's actor has other lengths, girth and sliding skin: scaling lowers the joint error."""
    actor = sample_actor("human", 5)
    rng = np.random.default_rng(8)
    motion = make_motion(actor.skeleton, "walk", frames=60, rate_hz=50.0, rng=rng)
    pose = actor.skeleton.forward(motion.coordinates)
    names, vertices = actor.virtual_markers
    points = actor.skin(pose, motion.time_s)[:, vertices]
    points = points + rng.normal(0.0, 1.0, points.shape)
    generic = load_body("human")
    sigma = np.ones(len(names))
    truth = actor.skeleton.landmarks(pose)[1]
    before = fit_skeleton(generic, names, points, sigma)
    scaled = scale_body(generic, names, points, sigma, frames=25)
    after = fit_skeleton(scaled.skeleton, names, points, sigma, marker_set=scaled.marker_set)

    def error(body, fit) -> float:  # type: ignore[no-untyped-def]
        return float(np.linalg.norm(body.landmarks(body.forward(fit.coordinates))[1] - truth, axis=2).mean())

    assert error(scaled.skeleton, after) < 0.85 * error(generic, before)
    assert error(scaled.skeleton, after) < 12.0


def test_markers_move_with_the_factors_as_they_are_said_to() -> None:
    generic = _Model(load_body("mouse"), builtin_markers("mouse"))
    groups = length_groups(generic.skeleton)
    share = np.zeros((len(generic.skeleton.joints), len(groups)))
    for column, group in enumerate(groups):
        share[group, column] = 1.0
    body = articulation_of(generic.skeleton)
    segments = np.array([body.segment(name) for name in generic.markers.segments])
    rng = np.random.default_rng(5)
    poses = body.rest + rng.normal(scale=0.2, size=(2, len(body.rest)))
    told = _by_factor(generic, segments, generic.markers.offsets, body.forward(poses)[1], share)
    before = body.points(poses, segments, generic.markers.offsets)
    for column in range(len(groups)):
        grown = generic.changed(0.01 * share[:, column], [], np.zeros((0, 3)))
        after = articulation_of(grown.skeleton).points(poses, segments, grown.markers.offsets)
        # A body of other lengths is stood on the floor again, all of it: the root's own shift, which is the pose's.
        away = (after - before) / 0.01 - told[..., column]
        assert np.ptp(away, axis=1).max() < 1e-6


def test_groups_tie_sides_and_numbered_segments() -> None:
    body = load_body("mouse")
    tied = {frozenset(body.joint_names[i] for i in group) for group in length_groups(body)}
    assert frozenset({"left_knee", "right_knee"}) in tied
    assert frozenset({f"tail_{k}" for k in range(1, 9)}) in tied
    apart = length_groups(body, tie_sides=False)
    assert [body.index("left_knee")] in apart


def test_bad_input() -> None:
    body, markers = load_body("mouse"), builtin_markers("mouse")
    with pytest.raises(InputError, match="look like metres"):
        scale_body(body, markers.names, np.random.default_rng(0).normal(0.0, 0.03, (5, 56, 3)))
