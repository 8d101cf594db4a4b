"""A joint that skeleton and surface put at different places is less sure, and not trusted where they part far."""

from __future__ import annotations

import numpy as np

from skeleton.bodies import load_body
from skeleton.bodies.marker_sets import LANDMARK, builtin_markers
from skeleton.inverse_kinematics.fits import SkeletonFit
from skeleton.inverse_kinematics.spring_ik import fit_skeleton
from tracking.sequence.tracked_points import TrackedLimbs
from vivarig.stages.joint_doubt import torn_from_surface, trust_by_joint, with_model_error

FRAMES = 6
BODY = load_body("human")
MARKERS = builtin_markers("human").with_landmarks(BODY)


def fitted(*, ankle_off_mm: float = 0.0, lost: int | None = None) -> SkeletonFit:
    """Fit a standing person; in frame 2 the surface carries the left ankle beside where its markers are."""
    segments = np.array([BODY.index(name) for name in MARKERS.segments])
    points = np.repeat(BODY.forward(BODY.rest()).points(segments, MARKERS.offsets), FRAMES, axis=0)
    points[2, MARKERS.names.index(LANDMARK + "left_ankle"), 1] += ankle_off_mm
    if lost is not None:
        points[lost] = np.nan
    return fit_skeleton(BODY, MARKERS.names, points, marker_set=MARKERS)


def limbs(views: float = 4.0) -> TrackedLimbs:
    shape = FRAMES, len(BODY.joint_names)
    none = np.zeros((FRAMES, 1), np.int64)
    return TrackedLimbs(none, none, np.zeros(shape, np.int64), np.zeros(shape), np.full(FRAMES, views))


def test_where_skeleton_and_surface_part_the_joint_is_doubted() -> None:
    ankle, wrist = BODY.index("left_ankle"), BODY.index("left_wrist")
    sigmas = {}
    for off in (0.0, 30.0, 120.0):
        fit = fitted(ankle_off_mm=off)
        torn = torn_from_surface(fit, MARKERS, BODY)
        assert torn is not None
        trust = trust_by_joint(fit, BODY, limbs(), torn)["joint_trust"]
        sigmas[off] = with_model_error(fit, limbs(), torn, BODY).sigma
        assert (trust[2, ankle] > 0) == (off == 120.0)
        assert not trust[:, wrist].any() and not trust[[0, 4, 5]].any()
    assert sigmas[0.0][2, ankle] < 0.2 * sigmas[30.0][2, ankle] < sigmas[120.0][2, ankle]
    assert sigmas[30.0][2, ankle] > sigmas[30.0][0, ankle] > sigmas[0.0][0, ankle], "once torn, less sure throughout"


def test_hips_deep_in_flesh_are_less_sure_than_surface_and_skeleton_say() -> None:
    fit = fitted()
    sigma = with_model_error(fit, limbs(), np.full((FRAMES, len(BODY.joint_names)), 5.0), BODY).sigma[0]
    of = {name: sigma[BODY.index(name)] for name in ("left_hip", "pelvis", "left_wrist", "left_knee", "left_shoulder")}
    assert of["left_hip"] > of["pelvis"] > of["left_knee"] > of["left_shoulder"]
    assert of["left_wrist"] > of["left_knee"]


def test_a_joint_torn_in_one_frame_is_doubted_in_those_beside_it() -> None:
    torn = np.zeros((FRAMES, len(BODY.joint_names)))
    torn[2, BODY.index("left_knee")] = 90.0
    trust = trust_by_joint(fitted(), BODY, limbs(), torn)["joint_trust"] > 0
    assert trust[:, BODY.index("left_knee")].tolist() == [False, True, True, True, False, False]
    assert not trust[:, BODY.index("left_hip")].any()


def test_the_more_cameras_the_surer_and_a_file_that_does_not_say_has_the_usual_number() -> None:
    fit = fitted(ankle_off_mm=30.0)
    torn = torn_from_surface(fit, MARKERS, BODY)
    two, four, eight, unsaid = (
        with_model_error(fit, limbs(views), torn, BODY).sigma for views in (2.0, 4.0, 8.0, np.nan)
    )
    assert (eight < four).all() and (four < two).all() and (unsaid == four).all()
    ankle = BODY.index("left_ankle")
    assert 0.82 < eight[2, ankle] / four[2, ankle] < 0.9


def test_a_frame_that_was_not_tracked_says_nothing_of_the_others() -> None:
    fit = fitted(lost=4)
    torn = torn_from_surface(fit, MARKERS, BODY)
    assert torn is not None and np.isnan(torn[4]).all()
    assert np.isfinite(with_model_error(fit, limbs(), torn, BODY).sigma[:4]).all()


def test_without_carried_joints_the_springs_alone_tell() -> None:
    markers = builtin_markers("human")
    segments = np.array([BODY.index(name) for name in markers.segments])
    fit = fit_skeleton(BODY, markers.names, BODY.forward(BODY.rest()).points(segments, markers.offsets))
    assert torn_from_surface(fit, markers, BODY) is None
    none = np.zeros((1, len(BODY.joint_names)))
    one = TrackedLimbs(*(none for _ in range(4)), views=np.full(1, 8.0))  # type: ignore[arg-type]
    np.testing.assert_allclose(with_model_error(fit, one, None, BODY).sigma, 0.6 * fit.sigma)
