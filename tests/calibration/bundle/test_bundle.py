"""Bundle adjustment: Jacobians by finite differences, recovery of a known rig, honest covariance, outliers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from board_scenes import film, ring_rig, scene, waved_board

from calibration.boards.board import Board
from calibration.bundle.adjustment import Bundle, adjust, leave_out, minimise, robust_sigma
from calibration.bundle.elimination import back_substitute, reduce
from calibration.bundle.equations import Unknowns, linearise
from calibration.bundle.parameters import Freedom, LensPrior, number_columns
from calibration.bundle.steps import moved, rotate
from calibration.cameras.camera_row import FOCAL, FX, FY, K1, K3, ROTATION, SKEW, TRANSLATION
from calibration.foundation.errors import InputError, SolveError
from calibration.geometry.small_matrices import cholesky, cholesky_solve
from calibration.geometry.transforms import RigidTransform

BOARD = Board("charuco", 16, 12, 50.0, 37.5, "DICT_4X4_1000")
BROWN = Freedom(2, True, "brown4")


def bundle_of(made, rig=None) -> Bundle:
    """The bundle of a scene at its truth, the first camera at the origin."""
    rig = made.rig if rig is None else rig
    table = made.sightings
    targets = table.targets()
    points, index = table.model_points()
    rows = rig.packed()
    return Bundle(
        rows,
        np.stack([made.world_from_board[f].rotation for f in targets.frame]),
        np.stack([made.world_from_board[f].translation for f in targets.frame]),
        points,
        table.camera,
        targets.of_row,
        index,
        table.pixels,
    )


@pytest.mark.parametrize("fisheye", [False, True])
def test_gradient_and_hessian_agree_with_finite_differences(fisheye: bool) -> None:
    rng = np.random.default_rng(5)
    rig = ring_rig(3, rng, fisheye=fisheye)
    board = Board("charuco", 5, 4, 80.0, 60.0, "DICT_4X4_50")
    poses = waved_board(4, rng, board)
    table = film(rig, poses, board)
    targets = table.targets()
    points, index = table.model_points()
    freedom = Freedom(2, True, "fisheye4" if fisheye else "rational", clock=True)
    base = Bundle(
        rig.packed(),
        np.stack([poses[f].rotation for f in targets.frame]),
        np.stack([poses[f].translation for f in targets.frame]),
        points,
        table.camera,
        targets.of_row,
        index,
        table.pixels + rng.normal(0, 1, table.pixels.shape),
        velocity=rng.normal(0, 3, table.pixels.shape),
    )
    columns = number_columns((freedom,) * 3, 0, len(points), np.ones((len(points), 3)))
    unknowns = Unknowns(columns.camera, columns.point, base.target_freedom, columns.count)
    _, h_gg, h_gt, h_tt, g_g, g_t = linearise(base.state, base.observations, unknowns, 0.0)

    def residual(by_global: np.ndarray, by_target: np.ndarray) -> np.ndarray:
        state = moved(base.state, unknowns, by_global, by_target)
        return replace(base, **state._asdict()).residuals().ravel()

    zero_g, zero_t = np.zeros(columns.count), np.zeros((len(base.rotations), 6))
    size = columns.count + zero_t.size
    jacobian = np.empty((2 * len(base.camera), size))
    for i in range(size):
        step = 1e-6
        d = np.zeros(size)
        d[i] = step
        plus = residual(d[: columns.count], d[columns.count :].reshape(-1, 6))
        minus = residual(-d[: columns.count], -d[columns.count :].reshape(-1, 6))
        jacobian[:, i] = (plus - minus) / (2 * step)
    r = residual(zero_g, zero_t)
    want_g, want_h = jacobian.T @ r, jacobian.T @ jacobian
    got_g = np.concatenate([g_g, g_t.ravel()])
    scale = np.sqrt(np.diag(want_h)) + 1e-9
    assert np.abs((got_g - want_g) / (scale * np.linalg.norm(r))).max() < 1e-5
    n = columns.count
    assert np.abs((h_gg - want_h[:n, :n]) / np.outer(scale[:n], scale[:n])).max() < 1e-5
    for t in range(len(zero_t)):
        part = slice(n + 6 * t, n + 6 * t + 6)
        assert np.abs((h_tt[t] - want_h[part, part]) / np.outer(scale[part], scale[part])).max() < 1e-5
        assert np.abs((h_gt[t] - want_h[:n, part]) / np.outer(scale[:n], scale[part])).max() < 1e-5


def test_schur_step_equals_the_dense_step() -> None:
    made = scene(1, cameras=3, frames=6)
    base = bundle_of(made)
    columns = number_columns((BROWN,) * 3, 0, len(base.points))
    unknowns = Unknowns(columns.camera, columns.point, base.target_freedom, columns.count)
    equations = linearise(base.state, base.observations, unknowns, 0.0)
    _, h_gg, h_gt, h_tt, g_g, g_t = equations
    ok, s, b, eliminated = reduce(equations, base.target_freedom, 0.0)
    assert ok
    n, t = len(g_g), len(g_t)
    dense = np.zeros((n + 6 * t, n + 6 * t))
    dense[:n, :n] = h_gg
    for k in range(t):
        part = slice(n + 6 * k, n + 6 * k + 6)
        dense[part, part] = h_tt[k]
        dense[:n, part] = h_gt[k]
        dense[part, :n] = h_gt[k].T
    want = np.linalg.solve(dense, -np.concatenate([g_g, g_t.ravel()]))
    by_global = np.linalg.solve(s, b)
    by_target = back_substitute(eliminated, by_global)
    assert np.allclose(by_global, want[:n], rtol=1e-5, atol=1e-9)
    assert np.allclose(by_target.ravel(), want[n:], rtol=1e-4, atol=1e-8)


def test_leaving_targets_out_agrees_with_solving_without_them() -> None:
    """The quadratic shortcut against the real thing; what is left is of third order in a small change of the lens."""
    made = scene(6, cameras=1, frames=90, wrong=0.0)
    base, table = bundle_of(made), made.sightings
    columns = number_columns((BROWN,), 0, len(base.points))
    none = number_columns((Freedom(0, False, "none"),), 0, len(base.points))
    solved, _, _ = minimise(base, columns)
    folds = [np.arange(0, len(table.targets()), 3), np.arange(1, len(table.targets()), 3)]
    got = leave_out(solved, columns, folds)
    for fold in folds:
        out = np.isin(solved.target, fold)
        without, _, _ = minimise(solved.only(~out), columns)
        posed, _, _ = minimise(replace(solved.only(out), rows=without.rows), none)
        square = (posed.residuals() ** 2).sum(1)
        want = np.array([square[posed.target == t].mean() for t in fold])
        assert np.allclose(got[fold], want, rtol=0.05) and abs(got[fold].mean() / want.mean() - 1) < 0.01
    assert np.isnan(got[2::3]).all()


def test_cholesky_against_numpy(rng: np.random.Generator) -> None:
    a = rng.normal(size=(12, 12))
    a = a @ a.T + np.eye(12)
    ok, low = cholesky(a)
    assert ok and np.allclose(low, np.linalg.cholesky(a))
    b = rng.normal(size=(12, 3))
    assert np.allclose(cholesky_solve(low, b), np.linalg.solve(a, b))
    assert not cholesky(-a)[0]


def test_intervals_cover_the_truth_and_wrong_corners_are_found() -> None:
    """Eight cameras, 0.2 px noise, 2 % wrong: over 6 rigs the 95 % intervals hold 90-99 %."""
    inside, z_all = [], []
    for seed in range(6):
        made = scene(seed, frames=30, board=BOARD)
        start = bundle_of(made)
        solution = adjust(start, (BROWN,) * 8, start_px=3.0)
        assert solution.converged
        wrong = np.linalg.norm(start.residuals(), axis=1) > 3.0
        assert not solution.inlier[wrong].any()  # every corner moved by 3 px or more is left out
        assert (~solution.inlier[~wrong]).mean() < 0.002
        assert abs(solution.sigma_px - 0.2) < 0.005
        z = []
        for c, camera in enumerate(made.rig):
            k, row, sd = camera.lens.intrinsics, solution.bundle.rows[c], solution.camera_sd(c)
            truth = np.array([k[0, 0], k[1, 1], k[0, 2], k[1, 2], *camera.lens.distortion[:4]])
            z += ((np.concatenate([row[FX:SKEW], row[K1:K3]]) - truth) / sd[[0, 1, 2, 3, 5, 6, 7, 8]]).tolist()
            if c:
                rotation = row[ROTATION].reshape(3, 3)
                off = -rotation.T @ row[TRANSLATION] - camera.centre
                z += (off / np.sqrt(np.diag(solution.centre_covariance(c)))).tolist()
        inside += (np.abs(z) < 1.96).tolist()
        z_all += z
    assert 0.90 <= np.mean(inside) <= 0.99
    assert 0.8 < np.std(z_all) < 1.25  # estimates within one rig are correlated; 50 rigs: benchmarks.calibration


def test_tied_focal_lengths_keep_their_ratio() -> None:
    made = scene(3, cameras=3, frames=15, wrong=0.0)
    start = bundle_of(made)
    rows = start.rows.copy()
    rows[:, FOCAL] = rows[:, FOCAL].mean(1, keepdims=True) * 1.01
    solution = adjust(replace(start, rows=rows), (Freedom(1, True, "brown4"),) * 3, start_px=5.0)
    assert np.allclose(solution.bundle.rows[:, FX], solution.bundle.rows[:, FY], rtol=1e-12)


def test_a_bent_board_is_straightened() -> None:
    """Corners displaced by up to 1 mm are recovered to 0.15 mm where the shape is free."""
    rng = np.random.default_rng(2)
    rig = ring_rig(6, rng, radius=1100.0)
    board = Board("charuco", 8, 6, 75.0, 55.0, "DICT_4X4_1000")
    truth = board.points_mm
    bent = truth.copy()
    bent[:, 2] = 1.0 * np.sin(truth[:, 0] / 200.0)
    poses = waved_board(16, rng, board)
    rows = []
    for f, pose in enumerate(poses):
        for c, camera in enumerate(rig):
            pixels = camera.project(pose.apply(bent))
            if ((pixels > 0) & (pixels < 1020)).all():
                rows += [(c, f, k, *p) for k, p in enumerate(pixels + rng.normal(0, 0.1, pixels.shape))]
    table = np.array(rows)
    order = np.lexsort((table[:, 0], table[:, 1]))
    table = table[order]
    frames, target = np.unique(table[:, 1].astype(int), return_inverse=True)
    base = Bundle(
        rig.packed(),
        np.stack([poses[f].rotation for f in frames]),
        np.stack([poses[f].translation for f in frames]),
        truth,
        table[:, 0].astype(int),
        target,
        table[:, 2].astype(int),
        table[:, 3:],
    )
    shape = np.ones((board.corners, 3))
    across, down = board.grid
    shape[0] = shape[across - 1] = 0.0
    shape[across * (down - 1), 2] = 0.0
    solution = adjust(base, (Freedom(0, False, "none"),) * 6, shape=shape)
    from calibration.geometry.transforms import fit_rigid

    fit = fit_rigid(solution.bundle.points, bent)
    assert np.linalg.norm(fit.apply(solution.bundle.points) - bent, axis=1).max() < 0.15


def test_time_offsets_are_recovered() -> None:
    made = scene(4, cameras=3, frames=25, wrong=0.0)
    rng = np.random.default_rng(0)
    velocity = rng.normal(0, 6, made.sightings.pixels.shape)
    late = np.array([0.0, 0.4, -0.25])
    start = bundle_of(made)
    start = replace(start, velocity=velocity, pixels=start.pixels - velocity * late[start.camera, None])
    solution = adjust(start, (replace(BROWN, clock=True),) * 3, start_px=5.0)
    assert np.abs(solution.bundle.offsets - late).max() < 0.005


def test_a_prior_pulls_as_its_information_says() -> None:
    made = scene(6, cameras=2, frames=20, wrong=0.0)
    start = bundle_of(made)
    columns = number_columns((BROWN,) * 2, 0, len(start.points))
    prior = LensPrior(0, np.array([0]), np.array([start.rows[0, FX] + 5.0]), np.array([[1e9]]))
    moved, _, _ = minimise(start, columns, priors=(prior,))
    assert abs(moved.rows[0, FX] - prior.mean[0]) < 1e-3


def test_what_cannot_be_solved_is_said() -> None:
    made = scene(1, cameras=2, frames=5)
    start = bundle_of(made)
    behind = replace(start, translations=start.translations + 1e5)
    with pytest.raises(SolveError, match="behind a camera"):
        adjust(behind, (BROWN,) * 2)
    with pytest.raises(InputError, match="unknown distortion"):
        Freedom(2, True, "brown7")
    with pytest.raises(SolveError, match="not seen by the data"):
        adjust(start.only(start.camera < 0), (BROWN,) * 2)


def test_robust_sigma_of_a_gaussian(rng: np.random.Generator) -> None:
    assert abs(robust_sigma(np.linalg.norm(rng.normal(0, 0.3, (20000, 2)), axis=1)) - 0.3) < 0.01


def test_rotation_of_a_vector_against_the_transforms(rng: np.random.Generator) -> None:
    for size in (0.0, 1e-9, 1e-3, 1.0, 3.1):
        v = rng.normal(size=3)
        v *= size / np.linalg.norm(v)
        assert np.allclose(rotate(v), RigidTransform.from_vectors(v, np.zeros(3)).rotation, atol=1e-14)
