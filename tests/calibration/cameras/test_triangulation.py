"""Recovery of known points, robustness, covariance, and refusal of degenerate geometry."""

from __future__ import annotations

import numpy as np
import pytest
from example_rigs import ring
from scipy.optimize import least_squares

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig
from calibration.cameras.triangulation import Reason, triangulate, triangulate_linear
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import RigidTransform


def test_exact_pixels_give_exact_points(rig: Rig, rng: np.random.Generator) -> None:
    x = rng.uniform(-80, 80, (500, 3))
    p = rig.project(x)
    p[rng.random((8, 500)) < 0.3] = np.nan
    seen = np.isfinite(p[..., 0]).sum(0)
    result = triangulate(rig, p)
    assert np.abs(result.points[seen >= 2] - x[seen >= 2]).max() < 1e-9
    assert np.array_equal(result.views_used.sum(0)[seen >= 2], seen[seen >= 2])
    assert np.abs(triangulate_linear(rig, p)[seen >= 2] - x[seen >= 2]).max() < 1e-9


def test_refinement_is_the_maximum_likelihood(rig: Rig, rng: np.random.Generator) -> None:
    """The reference: a general solver on the same weighted reprojection error."""
    x = rng.uniform(-80, 80, (20, 3))
    sigma = rng.uniform(0.3, 2.0, (8, 20))
    p = rig.project(x) + sigma[..., None] * rng.normal(size=(8, 20, 2))
    result = triangulate(rig, p, sigma_px=sigma, robust=False)
    for i in range(20):

        def residual(point: np.ndarray, i: int = i) -> np.ndarray:
            return ((rig.project(point) - p[:, i]) / sigma[:, i, None]).ravel()

        expected = least_squares(residual, x[i], xtol=1e-14, ftol=1e-14, gtol=1e-14)
        assert np.abs(result.points[i] - expected.x).max() < 1e-6
        covariance = np.linalg.inv(expected.jac.T @ expected.jac)
        assert np.abs(result.covariance[i] / covariance - 1).max() < 1e-3


def test_covariance_covers_the_errors(rig: Rig, rng: np.random.Generator) -> None:
    x = rng.uniform(-80, 80, (4000, 3))
    result = triangulate(rig, rig.project(x) + rng.normal(0, 0.5, (8, 4000, 2)), sigma_px=0.5)
    d = result.points - x
    squared = np.einsum("ni,nij,nj->n", d, np.linalg.inv(result.covariance), d)
    # chi-square of 3 degrees of freedom: mean 3, standard error sqrt(6/4000) = 0.04
    assert abs(squared.mean() - 3) < 0.15


def test_wrong_detections_are_left_out(rig: Rig, rng: np.random.Generator) -> None:
    n = 1000
    x = rng.uniform(-80, 80, (n, 3))
    p = rig.project(x) + rng.normal(0, 0.3, (8, n, 2))
    wrong = np.zeros((8, n), bool)
    for i in range(n):
        wrong[rng.choice(8, 2, replace=False), i] = True
    angle, far = rng.uniform(0, 2 * np.pi, (8, n)), rng.uniform(20, 200, (8, n))
    p += np.where(wrong[..., None], far[..., None] * np.stack([np.cos(angle), np.sin(angle)], -1), 0)
    result = triangulate(rig, p, sigma_px=0.3)
    assert (result.views_used & wrong).sum() < 0.002 * wrong.sum()
    assert np.linalg.norm(result.points - x, axis=1).mean() < 0.25
    worse = triangulate(rig, p, sigma_px=0.3, robust=False)
    assert np.linalg.norm(worse.points - x, axis=1).mean() > 5


def parallel_pair() -> Rig:
    lens = PinholeLens((640, 480), np.array([[800.0, 0, 320], [0, 800, 240], [0, 0, 1]]))
    pose = [RigidTransform(np.eye(3), np.array([-x, 0.0, 0.0])) for x in (0.0, 1.0)]
    return Rig(tuple(LensCamera(f"c{i}", lens, p) for i, p in enumerate(pose)))


def test_degenerate_points_have_a_reason_and_no_number(rig: Rig) -> None:
    x = np.array([[0.0, 0, 0], [10, 0, 0], [0, 10, 0], [5, 5, 5]])
    p = rig.project(x)
    p[:, 0] = np.nan
    p[1:, 1] = np.nan
    p[:, 2] += 100 * np.random.default_rng(0).normal(size=(8, 2))
    result = triangulate(rig, p)
    assert [Reason(code) for code in result.reason[:3]] == [Reason.UNSEEN, Reason.ONE_VIEW, Reason.VIEWS_DISAGREE]
    assert np.isnan(result.points[:3]).all() and np.isnan(result.covariance[:3]).all()
    assert result.reason[3] == Reason.OK
    pair = parallel_pair()
    far = triangulate(pair, pair.project([[0.0, 0, 5000]]))
    assert far.reason[0] == Reason.PARALLEL_RAYS and np.isnan(far.points).all()
    crossed = pair.project([[0.0, 0, 50]])[::-1]
    assert triangulate(pair, crossed, robust=False).reason[0] != Reason.OK
    assert all(reason.text for reason in Reason)


def test_many_cameras_use_a_seeded_choice_of_pairs(rng: np.random.Generator) -> None:
    rig = ring(16)
    x = rng.uniform(-50, 50, (50, 3))
    p = rig.project(x)
    p[3] += 50
    first, second = triangulate(rig, p, seed=3), triangulate(rig, p, seed=3)
    assert np.array_equal(first.points, second.points)
    assert np.abs(first.points - x).max() < 1e-6


def test_bad_input(rig: Rig) -> None:
    with pytest.raises(InputError, match=r"\(8, n, 2\)"):
        triangulate(rig, np.zeros((3, 5, 2)))
    with pytest.raises(InputError, match="positive"):
        triangulate(rig, np.zeros((8, 5, 2)), sigma_px=0)
