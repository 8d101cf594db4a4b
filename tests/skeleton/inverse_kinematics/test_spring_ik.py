"""Spring inverse kinematics: derivatives, recovery of known motion, robustness, limits, bad input."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from benchmarks.springs import filmed, own_markers, spoil
from calibration.foundation.errors import InputError
from skeleton.actors.actor import sample_actor
from skeleton.bodies import BODIES, load_body
from skeleton.bodies.marker_sets import MarkerSet, builtin_markers, load_marker_set, match_names, save_marker_set
from skeleton.inverse_kinematics import spring_energy as kernels
from skeleton.inverse_kinematics.fits import SkeletonFit
from skeleton.inverse_kinematics.scaling import scale_body
from skeleton.inverse_kinematics.spring_ik import Springs, fit_skeleton, run_frames, spring_problem
from skeleton.inverse_kinematics.spring_window import fit_smoothly
from skeleton.motion_files import MarkerSeries, read_motion
from skeleton.tree.articulation import articulation_of
from skeleton.tree.joint_tree import Skeleton

MOUSE34 = [
    "Nose",
    "Ear_R",
    "Ear_L",
    "TTI",
    "TailTip",
    "Head",
    "Trunk",
    "Tail_0",
    "Tail_1",
    "Tail_2",
    "Shoulder_L",
    "Shoulder_R",
    "Knee_L",
    "Knee_R",
    "Neck",
    "Elbow_L",
    "Elbow_R",
    "Wrist_L",
    "Wrist_R",
    "Forepaw_L",
    "Forepaw_R",
    "Heel_L",
    "Heel_R",
    "Spine",
    "Eye_L",
    "Eye_R",
    "Tail_3",
    "Tail_4",
    "Hip_L",
    "Hip_R",
    "Lisfranc_R",
    "MTP_L",
    "Lisfranc_L",
    "MTP_R",
]


def swaying(body: Skeleton, frames: int, rng: np.random.Generator) -> np.ndarray:
    """Smooth motion (T, D) within the limits, turning and walking away from the origin."""
    time = np.arange(frames) / 100.0
    q = np.zeros((frames, body.dimension))
    for joint in body.joints:
        columns = body.columns(joint.name)
        if joint.kind == "free":
            continue
        low, high = np.maximum(joint.bounds[:, 0], -1.0), np.minimum(joint.bounds[:, 1], 1.0)
        wave = np.sin(2 * np.pi * (rng.uniform(0.4, 1.5, len(low)) * time[:, None] + rng.random(len(low))))
        q[:, columns] = 0.5 * np.where(wave > 0, wave * high, -wave * low)
    q[:, 0], q[:, 5] = np.linspace(0, 150, frames), np.linspace(0, 2.0, frames)
    return body.clamp(q)


def markers_of(body: Skeleton, q: np.ndarray, markers: MarkerSet) -> np.ndarray:
    """World places (T, M, 3) of a set's markers."""
    segments = np.array([body.index(name) for name in markers.segments])
    return body.forward(q).points(segments, markers.offsets)


@pytest.mark.parametrize("name", BODIES)
def test_articulation_is_the_skeleton(name: str, rng: np.random.Generator) -> None:
    body = load_body(name)
    same = articulation_of(body)
    q = rng.normal(0.0, 0.3, (3, body.dimension))
    positions, rotations = same.forward(q)
    pose = body.forward(q)
    np.testing.assert_allclose(positions, pose.positions, atol=1e-10)
    np.testing.assert_allclose(rotations, pose.rotations, atol=1e-12)
    segments = np.arange(len(body.joints))
    offsets = rng.normal(0.0, 5.0, (len(segments), 3))
    np.testing.assert_allclose(
        same.jacobian(q[0], segments, offsets)[1], body.jacobian(q[:1], segments, offsets)[1][0], atol=1e-9
    )


def _system(problem, q, cutoff):  # type: ignore[no-untyped-def]
    body = problem.body
    size = body.dimension
    normal, bend, gradient = np.zeros((size, size)), np.zeros((size, size)), np.zeros(size)
    energy = kernels.assemble(
        problem.packed, q, problem.targets[0], problem.stiffness[0], cutoff, problem.rest[0], problem.rest_stiffness,
        normal, bend, gradient, np.empty(len(problem.names)),
    )  # fmt: skip
    return energy, gradient, normal, bend


def test_gradient_and_hessian_by_finite_differences(rng: np.random.Generator) -> None:
    body, markers = load_body("mouse"), builtin_markers("mouse")
    q = swaying(body, 20, rng)[:1] * 0.3
    points = markers_of(body, q, markers) + rng.normal(0.0, 1.0, (1, len(markers.names), 3))
    problem = spring_problem(body, markers.names, points)
    pose = q[0] * 0.9
    for cutoff in (1e12, 4.0):
        _, gradient, _, _ = _system(problem, pose, cutoff)
        step = 1e-6
        unit = step * np.eye(len(pose))
        measured = [
            (_system(problem, pose + u, cutoff)[0] - _system(problem, pose - u, cutoff)[0]) / (2 * step) for u in unit
        ]
        np.testing.assert_allclose(measured, gradient, atol=2e-6 * np.abs(gradient).max())
    _, _, normal, bend = _system(problem, pose, 1e12)
    columns = [(_system(problem, pose + u, 1e12)[1] - _system(problem, pose - u, 1e12)[1]) / (2 * step) for u in unit]
    whole = np.tril(normal + bend)
    whole = whole + np.tril(whole, -1).T
    # Within a ball the kernel leaves out how the chart itself bends: a small part of the whole.
    assert np.abs(np.array(columns) - whole).max() < 0.01 * np.abs(whole).max()


def test_sparse_factor_solves_the_normal_equations(rng: np.random.Generator) -> None:
    body = articulation_of(load_body("rat"))
    parents = body.coordinate_parents
    root = rng.normal(size=(body.dimension, body.dimension))
    dense = np.zeros_like(root)
    for k in range(body.dimension):  # entries only between a coordinate and those above it
        i = k
        while i >= 0:
            dense[k, i] = dense[i, k] = root[k, i] + (60.0 if i == k else 0.0)
            i = parents[i]
    wanted = rng.normal(size=body.dimension)
    matrix, vector = dense.copy(), wanted.copy()
    assert kernels.factor(matrix, parents)
    kernels.solve_factored(matrix, parents, vector)
    np.testing.assert_allclose(vector, np.linalg.solve(dense, wanted), atol=1e-12)


@pytest.mark.parametrize("name, noise", [("mouse", 0.3), ("human", 3.0)])
def test_known_motion_is_recovered_and_sigma_is_honest(name: str, noise: float, rng: np.random.Generator) -> None:
    body, markers = load_body(name), builtin_markers(name).with_sd(1e-3)
    q = swaying(body, 60, rng)
    truth = body.forward(q).positions
    points = markers_of(body, q, markers)
    exact = Springs(cutoff=np.inf, tolerance=1e-9)
    clean = fit_skeleton(body, markers.names, points, marker_set=markers, springs=exact)
    # Some spine joints have no marker of their own: what is left to the springs may be off a little.
    assert np.median(np.linalg.norm(clean.positions - truth, axis=2)) < 0.05 * noise
    assert clean.rms_mm < 0.01 * noise
    noisy = points + rng.normal(0.0, noise, points.shape)
    fit = fit_skeleton(body, markers.names, noisy, np.full(len(markers.names), noise), marker_set=markers)
    off = np.linalg.norm(fit.positions - truth, axis=2)
    assert off.mean() < 1.5 * noise
    # Root mean square of error over sigma is 1 for an honest sigma; joint springs pull a little off the
    # truth.
    honest = np.sqrt(np.mean((off / (np.sqrt(3.0) * fit.sigma)) ** 2))
    assert 0.6 < honest < 1.4
    assert (fit.trust == 0).all()
    assert body.limit_violation(fit.coordinates).angle.max() < 1e-9


def test_same_equilibrium_from_twenty_starts(rng: np.random.Generator) -> None:
    for name in BODIES:
        body, markers = load_body(name), builtin_markers(name)
        q = swaying(body, 30, rng)[17:18]
        points = markers_of(body, q, markers) + rng.normal(0.0, 0.5, (1, len(markers.names), 3))
        problem = spring_problem(body, markers.names, np.repeat(points, 20, axis=0), springs=Springs(tolerance=1e-12))
        starts = np.repeat(q, 20, axis=0)
        turning = ~problem.body.is_length
        starts[:, turning] += rng.uniform(-np.pi / 6, np.pi / 6, (20, int(turning.sum())))
        found = run_frames(problem, np.arange(20), starts, warm=False).coordinates
        places, _ = problem.body.forward(found)
        assert np.ptp(places, axis=0).max() < 1e-3  # mm


@pytest.mark.parametrize("name, far", [("mouse", 15.0), ("rat", 30.0), ("human", 200.0)])
def test_missing_and_wrong_markers(name: str, far: float, rng: np.random.Generator) -> None:
    body, markers = load_body(name), builtin_markers(name)
    q = swaying(body, 60, rng)
    truth = body.forward(q).positions
    points = markers_of(body, q, markers) + rng.normal(0.0, 1.0, (60, len(markers.names), 3))
    sigma = np.ones(len(markers.names))
    spoiled = points.copy()
    wrong = rng.random(points.shape[:2]) < 0.05
    spoiled[wrong] += rng.normal(0.0, far, (int(wrong.sum()), 3))
    spoiled[rng.random(points.shape[:2]) < 0.3] = np.nan

    def error(values: np.ndarray) -> float:
        fit = fit_smoothly(body, markers.names, values, sigma, rate_hz=100.0, time_s=0.03)
        return float(np.linalg.norm(fit.positions - truth, axis=2).mean())

    assert error(spoiled) < 1.5 * error(points)


def test_a_limb_without_markers_stays_near_its_last_pose(rng: np.random.Generator) -> None:
    """The forearm's and hand's markers go missing for two frames while the elbow is bent far from rest."""
    body, markers = load_body("human"), builtin_markers("human")
    q = swaying(body, 60, rng)
    q[:, body.columns("left_elbow")] = [[1.2, 0.0]]
    q = body.clamp(q)
    truth = body.forward(q).positions[:, body.index("left_wrist")]
    points = markers_of(body, q, markers)
    gone = [k for k, segment in enumerate(markers.segments) if segment in ("left_elbow", "left_wrist")]
    points[30:32, gone] = np.nan

    def error(springs: Springs) -> float:
        fit = fit_skeleton(body, markers.names, points, springs=springs)
        found = fit.positions[30:32, body.index("left_wrist")]
        return float(np.linalg.norm(found - truth[30:32], axis=1).mean())

    assert error(Springs()) < 0.3 * error(Springs(memory=False))


def test_springs_graded_by_anatomy_beat_uniform_ones() -> None:
    """On a studio actor with soft tissue; `benchmarks.springs` has the whole sweep for all bodies."""
    actor = sample_actor("human", 3)
    pose, points = filmed(actor, "walk", 103, frames=60)
    markers, names = own_markers(actor), actor.marker_names
    truth = actor.skeleton.landmarks(pose)[1]

    def error(springs: MarkerSet, sigma: np.ndarray | None, values: np.ndarray = points) -> float:
        fit = fit_skeleton(actor.skeleton, names, values, sigma, marker_set=springs)
        found = actor.skeleton.landmarks(actor.skeleton.forward(fit.coordinates))[1]
        return float(np.linalg.norm(found - truth, axis=2).mean())

    uniform = [error(markers.with_sd(spread), None) for spread in (0.2, 1.6, 2.8, 4.0, 5.2, 8.8)]
    graded = error(markers, np.ones(len(names)))
    assert graded < 0.95 * min(uniform)
    # 30 % of the markers missing and 5 % far off, each frame from the one before only.
    assert error(markers, np.ones(len(names)), spoil(points, 200.0, 9)) < 1.5 * graded


def test_frames_without_markers_are_lost_but_held(rng: np.random.Generator) -> None:
    body, markers = load_body("mouse"), builtin_markers("mouse")
    q = swaying(body, 30, rng)
    points = markers_of(body, q, markers)
    points[10:13] = np.nan
    points[20, 3:] = np.nan
    fit = fit_skeleton(body, markers.names, points)
    assert fit.trust[9] == 0 and (fit.trust[10:13] == 2).all() and fit.trust[20] == 2
    assert np.isinf(fit.sigma[10]).all() and np.isnan(fit.residuals[10]).all()
    np.testing.assert_allclose(fit.coordinates[10], fit.coordinates[9])


def test_a_window_is_smoother_and_no_worse(rng: np.random.Generator) -> None:
    body, markers = load_body("mouse"), builtin_markers("mouse")
    q = swaying(body, 170, rng)  # more than one window
    truth = body.forward(q).positions
    points = markers_of(body, q, markers) + rng.normal(0.0, 1.0, (170, len(markers.names), 3))
    sigma = np.ones(len(markers.names))
    single = fit_skeleton(body, markers.names, points, sigma)
    smooth = fit_smoothly(body, markers.names, points, sigma, rate_hz=100.0, time_s=0.05, start=single)

    def bends(values: np.ndarray) -> float:
        return float(np.abs(np.diff(values, 2, axis=0)).mean())

    assert bends(smooth.positions - truth) < 0.3 * bends(single.positions - truth)
    errors = [np.linalg.norm(fit.positions - truth, axis=2).mean() for fit in (single, smooth)]
    assert errors[1] < errors[0]
    assert body.limit_violation(smooth.coordinates).angle.max() < 1e-9


@pytest.mark.realdata
@pytest.mark.parametrize("body_name, keypoints, most_mm", [("rat", "rat23", 4.0), ("mouse", "mouse34", 5.0)])
def test_real_rodents(shared_data: Path, body_name: str, keypoints: str, most_mm: float) -> None:
    folder = shared_data / "rodent_mocap"
    if body_name == "rat":
        series = read_motion(folder / "test_rodent_mocap_1000_frames.nwb", unit_mm=1.0, up="z")
        assert isinstance(series, MarkerSeries)
        names, points = list(series.names), series.positions[:500]
    else:
        with h5py.File(folder / "test_mouse_mocap_3600_frames.h5") as file:
            names, points = MOUSE34, file["tracks"][:500, 0]
    scaled = scale_body(
        load_body(body_name), names, points, marker_set=builtin_markers(keypoints), length_sd=0.1, frames=20
    )
    fit = fit_smoothly(
        scaled.skeleton, names, points, marker_set=scaled.marker_set, rate_hz=100.0, time_s=0.03
    )  # no rate is stored
    assert fit.median_mm < most_mm
    violation = scaled.skeleton.limit_violation(fit.coordinates)
    assert violation.angle.max() < 1e-9 and violation.shift.max() < 1e-9
    turns = 2 * np.arccos(np.clip(np.abs((fit.rotations[1:] * fit.rotations[:-1]).sum(axis=2)), 0, 1))
    assert np.degrees(turns.max()) < 45.0  # a flip is 180
    assert fit.trusted_share > 0.95


def test_marker_sets_are_those_of_the_flesh_files() -> None:
    from skeleton.actors.shapes import load_flesh

    for name in BODIES:
        wanted = {marker["name"] for marker in load_flesh(name).markers}
        markers = builtin_markers(name)
        assert set(markers.names) == wanted
        assert set(markers.segments) <= set(load_body(name).joint_names)


def test_marker_sets_round_trip(tmp_path: Path) -> None:
    markers = builtin_markers("mouse")
    save_marker_set(markers, tmp_path / "m.toml", comment="mine")
    again = load_marker_set(tmp_path / "m.toml")
    assert again.names == markers.names and again.segments == markers.segments
    np.testing.assert_allclose(again.offsets, markers.offsets, atol=1e-3)
    np.testing.assert_allclose(again.sd_mm, markers.sd_mm)


def test_bad_input_says_what_to_do(rng: np.random.Generator) -> None:
    body, markers = load_body("mouse"), builtin_markers("mouse")
    q = swaying(body, 4, rng)
    points = markers_of(body, q, markers)
    with pytest.raises(InputError, match=r"none of the 2 marker names is known .*did you mean 'nose_tip'"):
        fit_skeleton(body, ["nose_tipp", "xyz"], points[:, :2])
    with pytest.raises(InputError, match="look like metres: multiply them by 1000"):
        fit_skeleton(body, markers.names, points / 1000.0)
    with pytest.raises(InputError, match="look like centimetres: multiply them by 10"):
        fit_skeleton(body, markers.names, points / 10.0)
    with pytest.raises(InputError, match="is this the right body"):
        fit_skeleton(body, markers.names, points * 20.0)
    with pytest.raises(InputError, match=r"markers must be \(T, 56, 3\)"):
        fit_skeleton(body, markers.names, points[:, :5])
    with pytest.raises(InputError, match="sigma: NaN in frame 0 for marker 'nose_tip', which is observed"):
        fit_skeleton(body, markers.names, points, np.full(56, np.nan))
    with pytest.raises(InputError, match="no frame shows 3 markers"):
        fit_skeleton(body, markers.names, np.full_like(points, np.nan))
    assert match_names(["left_ear"], ["Left Ear"], "x") == [(0, 0)]


def test_the_documented_example_runs() -> None:
    text = (Path(__file__).parents[3] / "docs" / "reference" / "skeleton.md").read_text()
    code = text.split("```python\n", 1)[1].split("```", 1)[0]
    scope: dict[str, object] = {}
    exec(compile(code, "docs/reference/skeleton.md", "exec"), scope)
    fit = scope["fit"]
    assert isinstance(fit, SkeletonFit) and fit.median_mm < 1e-6
