"""Solver, finder, tracker and trust on a bending worm filmed by four cameras."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import trimesh
from example_rigs import four_around

from calibration.cameras.rig import Rig
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import rotation_from_vector
from tracking.fitting.point_fit import fit_to_points, moved
from tracking.fitting.settings import Settings
from tracking.fitting.solver import FrameFit, FrameSolver
from tracking.observations.contour_fill import MeshEdges
from tracking.observations.contours import Observation, observe, observe_view
from tracking.observations.rasteriser import cast_masks
from tracking.observations.surface import Surface
from tracking.priors.pose_chart import fit_pose_chart
from tracking.priors.prior import LinearPrior, fit_linear_prior
from tracking.quads.deformation import CageRig
from tracking.quads.oriented_quads import QuadPose
from tracking.quads.placement import Cut, enclose, quads_at_cuts
from tracking.quads.template import Template
from tracking.sequence.rivals import follow_across_jumps, follow_rival
from tracking.sequence.settings import TrackerSettings
from tracking.sequence.tracker import Tracker
from tracking.sequence.trust import Reason, Trust, judge
from tracking.terms.energy import System, prior_term
from tracking.terms.pair_prior import fit_pair_prior
from tracking.terms.rigidity import rigidity_term
from tracking.terms.silhouette import OutlineMatcher
from tracking.terms.texture import FrameMarks


def rig() -> Rig:
    """Four cameras around the origin, 900 mm away, 1 px = 2 mm."""
    return four_around((320, 240), 450.0, 0.35)


@cache
def worm() -> tuple[CageRig, Template]:
    """A cone-like body along x, so that front and back differ, with five quads."""
    mesh = trimesh.creation.capsule(height=240, radius=30, count=[16, 24])
    vertices = np.asarray(mesh.vertices)[:, [2, 0, 1]]
    share = (vertices[:, 0] + 150) / 300
    vertices = vertices * np.stack([np.ones(len(share)), 0.5 + 0.9 * share, 0.7 + 0.3 * share], axis=1)
    cuts = []
    for index, x in enumerate(np.linspace(-158, 158, 5)):
        extents = np.full(4, 25.0) if index in (0, 4) else None
        cuts.append(Cut(f"q{index}", np.array([x, 0, 0]), np.array([1.0, 0, 0]), np.array([0, 1.0, 0]), extents))
    regions = [(f"r{index}", [f"q{index}", f"q{index + 1}"]) for index in range(4)]
    made = quads_at_cuts("worm", vertices, np.asarray(mesh.faces), cuts, regions, root="q2", margin=5.0)
    held = enclose(made, vertices, margin=3.0)
    cage_rig = CageRig(held.rig, held.cage)
    return cage_rig, Template(vertices, np.asarray(mesh.faces), cage_rig.bind(vertices, margin=2.5))


def bent(amount: float, lift: float) -> QuadPose:
    """The worm bent sideways and upwards, as a chain of turns."""
    rest = worm()[0].quads
    rotations, centres = rest.rotations.copy(), rest.centres.copy()
    for way, quads in ((1, (3, 4)), (-1, (1, 0))):
        turn, last = np.eye(3), 2
        for quad in quads:
            turn = rotation_from_vector(np.array([0.0, -way * lift, amount])) @ turn
            centres[quad] = centres[last] + turn @ (rest.centres[quad] - rest.centres[last])
            rotations[quad] = turn @ rest.rotations[quad]
            last = quad
    return QuadPose(rotations, centres)


@cache
def prior() -> LinearPrior:
    poses = [bent(a, b) for a in (-0.5, -0.2, 0.1, 0.4) for b in (-0.3, 0.0, 0.25)]
    rotations, centres = np.array([p.rotations for p in poses]), np.array([p.centres for p in poses])
    chart = fit_pose_chart(rotations, centres, root=2)
    return fit_linear_prior(
        chart.to_vector(rotations, centres)[1], 2, chart, rig_name="worm", quad_names=worm()[0].quads.quad_names
    )


def placed(pose: QuadPose, yaw: float, at: tuple[float, float, float]) -> QuadPose:
    turn = rotation_from_vector(np.array([0.0, 0, yaw]))
    return QuadPose(turn @ pose.rotations, pose.centres @ turn.T + np.array(at))


def solver() -> FrameSolver:
    cage_rig, template = worm()
    cameras = rig()
    return FrameSolver(cage_rig, template, cameras.packed(), [c.size for c in cameras], prior())


def seen(pose: QuadPose) -> Observation:
    cage_rig, template = worm()
    return observe(cast_masks(rig(), cage_rig.deform(template.binding, pose), template.faces))


def error_mm(pose: QuadPose, truth: QuadPose) -> float:
    cage_rig, template = worm()
    away = cage_rig.deform(template.binding, pose) - cage_rig.deform(template.binding, truth)
    return float(np.linalg.norm(away, axis=1).mean())


def test_contour_of_a_disc_lies_on_the_circle() -> None:
    rows, columns = np.mgrid[:120, :160]
    view = observe_view((columns - 70.3) ** 2 + (rows - 55.6) ** 2 < 40**2)
    radius = np.linalg.norm(view.points - [70.3, 55.6], axis=1)
    assert abs(radius.mean() - 40) < 0.1 and radius.std() < 0.3  # px; a binary mask knows its edge to about 0.3
    outward = (view.points - [70.3, 55.6]) / radius[:, None]
    assert np.sum(outward * view.normals, axis=1).min() > 0.95


def test_contour_at_the_image_border_is_no_contour() -> None:
    mask = np.zeros((60, 80), bool)
    mask[20:40, :30] = True
    assert observe_view(mask).points[:, 0].min() > 1.0
    assert len(observe_view(np.zeros((60, 80), bool)).points) == 0


def test_solver_recovers_a_pose_it_never_saw() -> None:
    truth = placed(bent(0.27, 0.12), 0.4, (20.0, -15.0, 5.0))
    start = placed(bent(0.1, 0.0), 0.25, (5.0, -5.0, 0.0))
    at = prior().back(prior().chart.to_vector(start.rotations, start.centres)[1])
    fit = solver().fit(seen(truth), start, at)
    fit = solver().fit(seen(truth), fit.pose, fit.latent, latent_steps=False)
    assert fit.agreement > 0.95
    assert error_mm(fit.pose, truth) < 6.0  # mm: 3 px at 2 mm per px, part of it roll about the worm's axis


def test_solver_fits_a_surface_instead_of_outlines_and_wants_one() -> None:
    cage_rig, template = worm()
    truth = placed(bent(0.27, 0.12), 0.4, (20.0, -15.0, 5.0))
    start = placed(bent(0.2, 0.05), 0.3, (12.0, -10.0, 2.0))
    at = prior().back(prior().chart.to_vector(start.rotations, start.centres)[1])
    surface = Surface.of_mesh(cage_rig.deform(template.binding, truth), template.faces)
    cameras = rig()
    fitter = FrameSolver(
        cage_rig, template, cameras.packed(), [c.size for c in cameras], prior(), settings=Settings(hull=True)
    )
    look = replace(seen(truth), surface=surface)
    fit = fitter.fit(look, start, at)
    fit = fitter.fit(look, fit.pose, fit.latent, latent_steps=False)
    assert error_mm(fit.pose, truth) < 6.0  # mm, as with outlines
    with pytest.raises(InputError, match="the observation has no surface"):
        fitter.fit(seen(truth), start, at)


def test_overlap_counts_pixels() -> None:
    cage_rig, template = worm()
    cameras = rig()
    matcher = OutlineMatcher(MeshEdges.of(template.faces), cameras.packed(), [c.size for c in cameras])
    one, two = placed(bent(0.2, 0.1), 0.3, (0.0, 0, 0)), placed(bent(0.1, 0.1), 0.5, (25.0, 0, 0))
    mine, theirs = (cast_masks(cameras, cage_rig.deform(template.binding, p), template.faces) for p in (one, two))
    theirs[3][:] = False
    found = matcher.overlaps(cage_rig.deform(template.binding, one), matcher.pack(observe(theirs)))
    wanted = [np.sum(a & b) / np.sum(a | b) for a, b in zip(mine, theirs, strict=True)]
    np.testing.assert_allclose(found[:3], wanted[:3], atol=1e-3)  # a pixel centre on an edge may fall either way
    assert np.isnan(found[3])


def test_the_template_in_a_pose_is_kept_as_long_as_the_pose(monkeypatch: pytest.MonkeyPatch) -> None:
    fitter, made = solver(), []
    carry = CageRig.deform
    monkeypatch.setattr(
        CageRig, "deform", lambda rig, rows, pose: made.append(pose.centres[0, 2]) or carry(rig, rows, pose)
    )
    first, second = bent(0.1, 0.0), bent(0.2, 1.0)
    kept = [fitter.deform(pose) for pose in (first, second, first)]
    assert len(made) == 2 and kept[0] is kept[2]
    np.testing.assert_array_equal(kept[1], carry(fitter.cage_rig, fitter._fine.binding, second))
    del first
    assert len(fitter._deformed) == 1


def test_a_wrong_guess_is_doubted_and_the_subject_looked_for() -> None:
    truth = [placed(bent(0.2, 0.1), 1.0 + 0.03 * t, (4.0 * t, 0.0, 0.0)) for t in range(3)]
    looks = [seen(pose) for pose in truth]
    wrong = placed(bent(-0.4, 0.0), -0.6, (60.0, 30.0, 0.0))
    guess = (wrong, prior().back(prior().chart.to_vector(wrong.rotations, wrong.centres)[1]))
    track = Tracker(solver(), rig()).track(lambda frame: looks[frame], 3, start=0, guess=guess)
    for frame in range(3):
        assert error_mm(QuadPose(track.rotations[frame], track.centres[frame]), truth[frame]) < 10.0


def test_a_start_convinces_that_overlaps_as_much_as_where_the_subject_was_found() -> None:
    usual = TrackerSettings()
    assert usual.as_found([]) == usual and usual.as_found([0.97, 0.95, 0.96]) == usual
    less = usual.as_found([0.80, 0.86, 0.84])
    assert less.believed == pytest.approx(0.84 - usual.restart) and less.restart == usual.restart


def test_a_start_that_was_ambiguous_with_another_body_is_looked_for_again() -> None:
    truth = placed(bent(0.3, 0.1), 0.4, (10.0, -20.0, 0.0))
    tracker = Tracker(solver(), rig())
    turned_round = placed(bent(0.3, 0.1), 0.4 + np.pi, (10.0, -20.0, 0.0))
    latent = np.zeros(tracker.solver.prior.latent_dim)
    apart = 150.0 * tracker.solver.unit
    for guess in (truth, turned_round):
        fit, rival = tracker.sought_again(seen(truth), (guess, latent))
        assert error_mm(fit.pose, truth) < 10.0
        assert rival is None or (fit.score - rival.score > 0.01 and rival.pose.distance(fit.pose) > apart)
    # One that is found elsewhere and explains less than what was known is its rival.
    wrong = tracker.solver.fit(seen(truth), turned_round, latent)
    tracker._rivals = lambda observation: [wrong]  # type: ignore[method-assign]
    fit, rival = tracker.sought_again(seen(truth), (truth, latent))
    assert error_mm(fit.pose, truth) < 10.0 and rival is wrong


def test_how_sure_a_start_is_follows_from_its_rival_over_several_frames() -> None:
    truth = [placed(bent(0.3 * np.sin(0.4 * t), 0.1), 0.02 * t, (3.0 * t, 0.0, 0.0)) for t in range(6)]
    looks = [seen(pose) for pose in truth]
    right, turned = (placed(bent(0.0, 0.1), yaw, (0.0, 0.0, 0.0)) for yaw in (0.0, np.pi))
    solve = solver()
    wrong = solve.fit(looks[0], turned, np.zeros(2))
    known = solve.fit(looks[0], right, np.zeros(2))
    tracker = Tracker(solve, rig(), settings=TrackerSettings(believed=0.0))
    track = tracker.track(looks.__getitem__, 6, start=0, guess=(right, np.zeros(2)), rival=wrong)
    assert (track.lead < 1.0).all() and (track.lead > 0.5 * (known.score - wrong.score)).all()
    assert all(error_mm(one.pose, pose) < 10.0 for one, pose in zip(track.fits, truth, strict=True) if one is not None)


def test_tracker_finds_its_start_tracks_marks_blank_frames_and_recovers() -> None:
    count, blank = 12, (6, 7)
    truth = [
        placed(bent(0.35 * np.sin(0.4 * t), 0.1 * np.cos(0.3 * t)), 1.0 + 0.03 * t, (4.0 * t, 0.0, 0.0))
        for t in range(count)
    ]
    looks = [seen(pose) for pose in truth]
    nothing = [np.zeros((240, 320), bool)] * 4
    for frame in blank:
        looks[frame] = observe(nothing)
    track = Tracker(solver(), rig()).track(lambda frame: looks[frame], count, start=3)
    assert list(np.flatnonzero(track.trust == Trust.LOST)) == list(blank)
    assert all(track.reason[frame] == Reason.TOO_FEW_VIEWS for frame in blank)
    assert np.isnan(track.centres[blank[0]]).all()
    for frame in set(range(count)) - set(blank):
        assert error_mm(QuadPose(track.rotations[frame], track.centres[frame]), truth[frame]) < 10.0
    padded = track.padded(5, 20)
    assert padded.start == 8 and len(padded.fits) == 20 and padded.reason[0] == Reason.NOT_TRACKED
    assert np.isnan(padded.lead[0]) and padded.lead[5] == track.lead[0]


def test_a_heading_turned_round_is_taken_back_from_where_the_right_one_is_found() -> None:
    truth = [placed(bent(0.3 * np.sin(0.4 * t), 0.1), 0.02 * t, (3.0 * t, 0.0, 0.0)) for t in range(7)]
    looks = [seen(pose) for pose in truth]
    solve = solver()

    def fit(frame: int, yaw: float) -> FrameFit:
        start = placed(bent(0.0, 0.0), yaw + 0.02 * frame, (3.0 * frame, 0.0, 0.0))
        return solve.fit(looks[frame], start, np.zeros(2))

    fits: list[FrameFit | None] = [fit(frame, np.pi) for frame in range(7)]
    assert all(error_mm(one.pose, pose) > 60.0 for one, pose in zip(fits, truth, strict=True) if one is not None)
    right, wrong = fit(3, 0.0), fits[3]
    contest = follow_rival(solve, looks.__getitem__, fits, 3, right)
    assert contest.gain > 0 and (contest.lead == contest.gain).all(), "never back on what was known"
    for one, pose in zip(fits, truth, strict=True):
        assert one is not None and error_mm(one.pose, pose) < 10.0
    kept = list(fits)
    asked: list[int] = []

    def look(frame: int) -> Observation:
        asked.append(frame)
        return looks[frame]

    assert wrong is not None and follow_rival(solve, look, fits, 3, wrong).gain < 0
    assert all(one is other for one, other in zip(fits, kept, strict=True))
    assert len(asked) < 6, "what owes so much is not followed to both ends"


def test_the_right_side_of_a_jump_is_followed_into_the_wrong_one() -> None:
    truth = [placed(bent(0.3 * np.sin(0.4 * t), 0.1), 0.02 * t, (3.0 * t, 0.0, 0.0)) for t in range(8)]
    looks, solve = [seen(pose) for pose in truth], solver()
    starts = [placed(bent(0.0, 0.0), 0.02 * t + (np.pi if t < 5 else 0.0), (3.0 * t, 0.0, 0.0)) for t in range(8)]
    fits: list[FrameFit | None] = [
        solve.fit(look, start, np.zeros(2)) for look, start in zip(looks, starts, strict=True)
    ]
    assert [error_mm(one.pose, pose) > 60.0 for one, pose in zip(fits, truth, strict=True) if one is not None] == (
        [True] * 5 + [False] * 3
    )
    assert follow_across_jumps(solve, looks.__getitem__, fits)
    for one, pose in zip(fits, truth, strict=True):
        assert one is not None and error_mm(one.pose, pose) < 10.0
    kept = list(fits)
    assert not follow_across_jumps(solve, looks.__getitem__, fits), "where nothing jumps, nothing is tried"
    assert all(one is other for one, other in zip(fits, kept, strict=True))


def test_what_was_found_in_another_frame_takes_back_a_wrong_start() -> None:
    truth = [placed(bent(0.3 * np.sin(0.4 * t), 0.1), 0.02 * t, (3.0 * t, 0.0, 0.0)) for t in range(6)]
    looks = [seen(pose) for pose in truth]
    wrong, right = (placed(bent(0.0, 0.0), yaw, (0.0, 0.0, 0.0)) for yaw in (np.pi, 0.08))
    for others, most in (({}, np.inf), ({4: (right, np.zeros(2))}, 10.0)):
        tracker = Tracker(solver(), rig(), settings=TrackerSettings(believed=0.0))
        track = tracker.track(looks.__getitem__, 6, start=0, guess=(wrong, np.zeros(2)), others=others)
        away = [error_mm(one.pose, pose) for one, pose in zip(track.fits, truth, strict=True) if one is not None]
        assert max(away) < most and (most < np.inf or min(away) > 60.0)


def test_a_course_is_fitted_to_other_silhouettes_from_where_it_is() -> None:
    """Silhouettes that hold less than before, a frame of which nothing is left: no search, and they are followed."""
    truth = [placed(bent(0.3 * np.sin(0.4 * t), 0.1), 0.02 * t, (3.0 * t, 0.0, 0.0)) for t in range(4)]
    shifted = [QuadPose(pose.rotations, pose.centres + np.array([0.0, 8.0, 0.0])) for pose in truth]
    before, after = ([seen(pose) for pose in poses] for poses in (shifted, truth))
    after[3] = observe([np.zeros((240, 320), bool)] * 4)
    tracker = Tracker(solver(), rig())
    course = tracker.follow(before.__getitem__, 4, start=1, guess=(shifted[1], np.zeros(2)))
    rival = course.fits[1]

    def never(*_: object, **__: object) -> None:
        raise AssertionError("what was found is not looked for")

    tracker.finder.rivals = never  # type: ignore[assignment]
    heard: list[int] = []
    again = tracker.fit_again(after.__getitem__, replace(course, rival=rival), lambda done, total: heard.append(done))
    assert heard == [1, 2, 3, 4] and again.first == course.first and np.array_equal(again.lead, course.lead)
    assert again.fits[3] is None and again.rival is not None and again.rival is not rival
    for frame, (old, new) in enumerate(zip(course.fits[:3], again.fits[:3], strict=True)):
        assert old is not None and new is not None
        assert error_mm(old.pose, truth[frame]) > 5.0 > error_mm(new.pose, truth[frame])
    track = tracker.finish(after.__getitem__, again)
    assert track.start == 1 and list(np.flatnonzero(track.trust == Trust.LOST)) == [3]


def test_what_the_other_cameras_saw_is_what_they_saw_alone() -> None:
    masks = [np.zeros((60, 80), bool) for _ in range(3)]
    for k, mask in enumerate(masks):
        mask[20:40, 10 + k : 50] = True
    some, all_of_them = observe(masks, used=np.array([True, False, True])), observe(masks)
    left = all_of_them.without([1])
    assert left.seen == 2 and all_of_them.seen == 3
    for one, other in zip(left.views, some.views, strict=True):
        assert (one.size, one.area, one.box) == (other.size, other.area, other.box)
        for values in ("mask", "points", "normals"):
            np.testing.assert_array_equal(getattr(one, values), getattr(other, values))


def test_tracking_nothing_is_refused() -> None:
    empty = observe([np.zeros((240, 320), bool)] * 4)
    with pytest.raises(InputError, match="no frame has a silhouette in two cameras"):
        Tracker(solver(), rig()).track(lambda _: empty, 5)
    with pytest.raises(InputError, match=r"frame 2: cannot place the subject.*choose another start"):
        Tracker(solver(), rig()).track(lambda _: empty, 5, start=2)


def test_open_template_and_foreign_prior_are_refused() -> None:
    cage_rig, template = worm()
    with pytest.raises(InputError, match="not closed: 3 edges"):
        MeshEdges.of(template.faces[1:])
    with pytest.raises(InputError, match="cannot drive rig"):
        FrameSolver(cage_rig, template, rig().packed(), [(320, 240)] * 4, replace(prior(), rig_name="other"))


def numeric(function, pose: QuadPose, step: float = 1e-6) -> np.ndarray:  # type: ignore[no-untyped-def]
    columns = []
    for number in range(6 * len(pose.centres)):
        change = np.zeros(6 * len(pose.centres))
        change[number] = step
        columns.append((function(moved(pose, change)) - function(moved(pose, -change))) / (2 * step))
    return np.stack(columns, axis=1)


def test_jacobians_of_prior_pairs_and_rigidity_against_finite_differences() -> None:
    cage_rig, _ = worm()
    rng = np.random.default_rng(5)
    pose = moved(bent(0.3, 0.1), rng.normal(0, 1, 30) * np.tile([0.2] * 3 + [8.0] * 3, 5))
    chart = prior().chart

    latent = np.array([0.3, -0.6])
    units = np.tile([chart.length_scale / 10.0] * 3 + [1 / 0.07] * 3, 4)

    def away(at: QuadPose) -> np.ndarray:
        return units * (chart.to_vector(at.rotations, at.centres)[1] - prior().mean(latent))

    system = System.empty(5, 2)
    departure = prior_term(system, chart, prior().evaluate(latent), pose, shift_sigma=10.0, turn_sigma=0.07)
    jacobian = np.hstack([numeric(away, pose), -units[:, None] * prior().mean_jacobian(latent)])
    assert departure == pytest.approx(np.sqrt(np.mean(away(pose) ** 2)))
    np.testing.assert_allclose(system.hessian, jacobian.T @ jacobian, rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(system.gradient, jacobian.T @ away(pose), rtol=1e-5, atol=1e-3)
    pairs = fit_pair_prior(cage_rig.quads, prior(), shift_floor=4.0, turn_floor=0.04)
    rig = cage_rig.quads
    dense = pairs.term(pose).dense(len(rig))
    np.testing.assert_allclose(dense, numeric(lambda p: pairs.term(p).residual.ravel(), pose), atol=1e-5)
    term = rigidity_term(rig, pose)
    dense = term.dense(len(rig))
    np.testing.assert_allclose(dense, numeric(lambda p: rigidity_term(rig, p).residual.ravel(), pose), atol=1e-5)
    hessian, gradient = np.zeros((31, 31)), np.zeros(31)
    term.add_to(hessian, gradient, 0.7)
    np.testing.assert_allclose(hessian[:30, :30], 0.7 * dense.T @ dense, atol=1e-9)
    np.testing.assert_allclose(gradient[:30], 0.7 * dense.T @ term.residual.ravel(), atol=1e-9)


def test_quads_fitted_to_points_reach_them() -> None:
    cage_rig, template = worm()
    truth = placed(bent(0.4, 0.2), 0.5, (30.0, 0, 10.0))
    target = cage_rig.deform(template.binding, truth)
    target[::7] = np.nan
    pose = fit_to_points(
        cage_rig, template.binding, target, placed(cage_rig.quads.rest, 0.3, (0.0, 0, 0)), rigidity=1e-9
    )
    assert error_mm(pose, truth) < 0.05


def test_frames_are_judged_against_the_sequences_own_good_ones() -> None:
    overlap = np.full((40, 4), 0.94) + np.random.default_rng(0).normal(0, 0.002, (40, 4))
    overlap[10] -= 0.06
    overlap[20] -= 0.35
    overlap[30, 2] -= 0.15
    overlap[35] = np.nan
    verdicts = judge(overlap, np.full(40, 1.0), np.full(40, 1.0))
    assert verdicts.trust[10] == Trust.DOUBTFUL and verdicts.reason[10] == Reason.LOW_AGREEMENT
    assert verdicts.trust[20] == Trust.LOST
    assert verdicts.trust[30] == Trust.DOUBTFUL
    assert verdicts.trust[35] == Trust.LOST and verdicts.reason[35] == Reason.TOO_FEW_VIEWS
    assert np.sum(verdicts.trust > 0) == 4


def test_departures_that_last_are_doubted_and_those_of_one_frame_are_not() -> None:
    overlap, departure = np.full((40, 4), 0.9), np.full(40, 1.0)
    departure[10], departure[20:23], departure[30] = 4.0, 4.0, np.nan
    verdicts = judge(overlap, departure, np.full(40, 1.0))
    assert np.flatnonzero(verdicts.trust).tolist() == [20, 21, 22]
    assert (verdicts.reason[20:23] == int(Reason.FAR_FROM_PRIOR)).all()


def test_a_frame_is_tried_again_from_a_neighbours_fit_once() -> None:
    """Frames 2 and 3 fit badly; from neighbours as they are, a second sweep would end where the first did."""

    class Fit:
        def __init__(self, score: float, pose: int) -> None:
            self.agreement, self.score, self.pose, self.latent = score, score, pose, None

    fits: list[Any] = [Fit(0.97, k) for k in range(7)]
    fits[2].agreement = fits[2].score = fits[3].agreement = fits[3].score = 0.9
    tried: list[tuple[int, int]] = []

    def fit(frame: int, pose: int, *about: Any, **options: Any) -> Any:
        tried.append((frame, pose))
        return Fit(0.8, pose)

    one: Any = Tracker.__new__(Tracker)
    one.settings, one.solver = TrackerSettings(), SimpleNamespace(fit=fit, posture=None)
    one.limbs = SimpleNamespace(repair=lambda *about: False)
    known: set[Any] = set()
    for _ in range(2):
        assert not one._repair(lambda frame: frame, fits, known)
    assert tried == [(2, 1), (3, 2), (3, 4), (2, 3)]
    # A rodent whose outlines lie close goes on from where it is, once.
    tried.clear()
    one.solver = SimpleNamespace(glance=fit, posture="of a rodent", lies_close=lambda fit: True)
    for _ in range(2):
        assert not one._repair(lambda frame: frame, fits, known)
    assert tried == [(2, 2), (3, 3)]


class Upright:
    """A posture that costs nothing."""

    def add_to(self, *_: Any) -> None:
        """Add nothing."""

    def of(self, _: Any) -> float:
        """No strain."""
        return 0.0


@pytest.mark.parametrize("close", [True, False])
def test_a_fit_from_the_frame_beside_takes_fewer_samples_and_steps_where_outlines_lie_close(close: bool) -> None:
    truth = placed(bent(0.25, 0.1), 0.4, (20.0, 10.0, 0.0))
    look, one = seen(truth), solver()
    if not close:
        one.settings = replace(one.settings, contour_sigma=0.01)  # nothing lies as close as that
    levels: list[Any] = []
    evaluate = one._evaluate

    def watched(level: Any, *about: Any) -> Any:
        levels.append(level)
        return evaluate(level, *about)

    one._evaluate = watched  # type: ignore[method-assign]
    fit = one.fit(look, placed(truth, 0.01, (3.0, 0.0, 0.0)), np.zeros(2), latent_steps=False, warm=True)
    assert levels[0] is one._warm and levels[-1] is (one._near if close else one._fine)
    if not close:  # a rodent takes fewer samples all the same, and is fitted on until it stays
        one.posture = Upright()  # type: ignore[assignment]
        one.fit(look, placed(truth, 0.01, (3.0, 0.0, 0.0)), np.zeros(2), latent_steps=False, warm=True)
        assert levels[-1] is one._near
    assert not close or error_mm(fit.pose, truth) < 3.0


def test_a_glance_takes_one_step_where_it_is_short_and_does_not_do_where_outlines_are_off() -> None:
    truth = placed(bent(0.25, 0.1), 0.4, (20.0, 10.0, 0.0))
    look, one = seen(truth), solver()
    steps: list[float] = []
    local = one._local_step

    def watched(*about: Any) -> Any:
        taken = local(*about)
        steps.append(float(taken[2].max()))
        return taken

    one._local_step = watched  # type: ignore[method-assign]
    scale = one.settings.robust[-1]
    further = one.glance(look, placed(truth, 0.01, (3.0, 0.0, 0.0)), np.zeros(2))
    assert len(steps) == 2 and steps[0] > scale >= steps[1]
    assert further is not None and error_mm(further.pose, truth) < 3.0
    steps.clear()
    near = one.glance(look, placed(further.pose, 0.002, (0.5, 0.0, 0.0)), further.latent)
    assert len(steps) == 1 and steps[0] <= scale
    assert near is not None and error_mm(near.pose, truth) < 3.0
    one.settings = replace(one.settings, contour_sigma=0.01)  # nothing lies as close as that
    assert one.glance(look, further.pose, further.latent) is None


def test_many_cameras_give_fewer_samples_each_to_the_step_of_all_frames_and_the_same_curvature() -> None:
    cage_rig, template = worm()
    truth = placed(bent(0.25, 0.1), 0.4, (20.0, 10.0, 0.0))
    few, look = solver(), seen(truth)
    cameras = rig()
    twice = Observation((*look.views, *look.views))
    sizes = [camera.size for camera in cameras]
    many = FrameSolver(cage_rig, template, np.tile(cameras.packed(), (2, 1)), 2 * sizes, prior())
    assert few._joint is few._fine and many._joint is many._near
    no_marks = np.zeros(0, np.int64)
    marks = FrameMarks(
        np.zeros((0, template.binding.shape[1]), np.float32), no_marks, np.zeros((0, 2)), no_marks, no_marks
    )
    fit = few.fit(look, placed(truth, 0.01, (3.0, 0.0, 0.0)), np.zeros(2), latent_steps=False, warm=True)
    told = np.trace(many.block(twice, fit, marks, None)[1].hessian)
    many._joint = many._fine
    np.testing.assert_allclose(told, np.trace(many.block(twice, fit, marks, None)[1].hessian), rtol=0.05)
