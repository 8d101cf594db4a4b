"""Priors behind one interface: derivatives, closed forms, files, and the errors a user can meet."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

from calibration.foundation.errors import InputError
from tracking.priors.files import load_prior, save_prior
from tracking.priors.gplvm import BackMap, Kernel, exact_gplvm, fitc_gplvm
from tracking.priors.pose_chart import PoseChart
from tracking.priors.prior import fit_linear_prior, project_pose, require_rig

QUADS = ("pelvis", "chest", "head", "tail")
CHART = PoseChart(np.stack([np.eye(3)] * 4), length_scale=100.0)


def curve_poses(count, rng, noise=0.0):
    """Poses on a smooth closed curve in R^18, as a gait cycle makes them."""
    phase = np.linspace(0, 2 * np.pi, count, endpoint=False)
    waves = np.column_stack([np.sin(phase), np.cos(phase), 0.3 * np.sin(2 * phase), 0.2 * np.cos(3 * phase)])
    mixing = np.random.default_rng(11).normal(size=(4, 18))
    return waves @ mixing + 0.5 + noise * rng.normal(size=(count, 18))


def linear(rng):
    return fit_linear_prior(curve_poses(40, rng, 0.01), 3, CHART, rig_name="mouse", quad_names=QUADS)


def gplvm(rng):
    poses = curve_poses(40, rng, 0.01)
    latents = linear(rng).back(poses)
    back = BackMap(poses, rng.normal(size=(40, 3)), 0.3)
    return exact_gplvm(latents, poses, Kernel(2.0, 1.5, 1e-2), back, CHART, rig_name="mouse", quad_names=QUADS)


def fitc(rng):
    poses = curve_poses(80, rng, 0.01)
    latents = linear(rng).back(poses)
    back = BackMap(poses[::4], rng.normal(size=(20, 3)), 0.3)
    kernel = Kernel(2.0, 1.5, 1e-2)
    return fitc_gplvm(
        latents, poses, latents[::4] + 0.05, kernel, back, CHART, rig_name="mouse", quad_names=QUADS, keep=30
    )


KINDS = pytest.mark.parametrize("make", [linear, gplvm, fitc])


@KINDS
def test_derivatives_against_finite_differences(make):
    rng = np.random.default_rng(1)
    prior = make(rng)
    step = 1e-6
    for x in rng.normal(size=(5, 3)):
        shifts = step * np.eye(3)
        mean = [(prior.mean(x + s) - prior.mean(x - s)) / (2 * step) for s in shifts]
        variance = [(prior.variance(x + s) - prior.variance(x - s)) / (2 * step) for s in shifts]
        np.testing.assert_allclose(prior.mean_jacobian(x), np.stack(mean, axis=1), atol=1e-7)
        np.testing.assert_allclose(prior.variance_gradient(x), variance, atol=1e-7)


@KINDS
def test_one_evaluation_and_batches_agree(make):
    rng = np.random.default_rng(2)
    prior = make(rng)
    points = rng.normal(size=(2, 4, 3))
    means, variances = prior.mean(points), prior.variance(points)
    assert means.shape == (2, 4, 18)
    assert variances.shape == (2, 4)
    for index in np.ndindex(2, 4):
        at = prior.evaluate(points[index])
        np.testing.assert_allclose(at.mean, means[index], atol=1e-12)
        np.testing.assert_allclose(at.variance, variances[index], rtol=1e-9)
        np.testing.assert_array_equal(at.mean_jacobian, prior.mean_jacobian(points[index]))
        np.testing.assert_array_equal(at.variance_gradient, prior.variance_gradient(points[index]))
    assert prior.back(prior.training_poses).shape == prior.training_latents.shape


def test_exact_gplvm_is_gaussian_regression_by_the_book():
    # The joint Gaussian of training poses and a new one, conditioned (Rasmussen and Williams, 2.23-24).
    rng = np.random.default_rng(3)
    prior = gplvm(rng)
    x, kernel = rng.normal(size=3), prior.kernel
    every = np.vstack([prior.training_latents, x])
    squared = ((every[:, None] - every[None]) ** 2).sum(-1)
    joint = kernel.alpha * np.exp(-0.5 * kernel.gamma * squared) + kernel.noise * np.eye(len(every))
    solved = np.linalg.solve(joint[:-1, :-1], joint[:-1, -1])
    centre = prior.training_poses.mean(axis=0)
    np.testing.assert_allclose(prior.mean(x), centre + solved @ (prior.training_poses - centre), atol=1e-9)
    np.testing.assert_allclose(prior.variance(x), joint[-1, -1] - solved @ joint[:-1, -1], atol=1e-12)


def test_fitc_with_every_latent_inducing_is_the_exact_model():
    rng = np.random.default_rng(4)
    poses = curve_poses(40, rng, 0.01)
    latents = linear(rng).back(poses)
    back = BackMap(poses, np.zeros((40, 3)), 0.3)
    names = {"rig_name": "mouse", "quad_names": QUADS}
    kernel = Kernel(2.0, 8.0, 1e-2)
    exact = exact_gplvm(latents, poses, kernel, back, CHART, **names)
    sparse = fitc_gplvm(latents, poses, latents, kernel, back, CHART, **names)
    points = rng.normal(size=(30, 3))
    np.testing.assert_allclose(sparse.mean(points), exact.mean(points), atol=1e-3)
    np.testing.assert_allclose(sparse.variance(points), exact.variance(points), atol=1e-3)


def test_variance_is_low_on_the_training_set_and_full_far_away():
    prior = gplvm(np.random.default_rng(5))
    near = prior.variance(prior.training_latents)
    assert near.max() < 0.1 * prior.kernel.alpha
    assert near.min() >= prior.kernel.noise
    far = np.full(3, 50.0)
    np.testing.assert_allclose(prior.variance(far), prior.kernel.alpha + prior.kernel.noise)
    np.testing.assert_allclose(prior.mean(far), prior.centre)


def test_linear_prior_is_principal_components():
    rng = np.random.default_rng(6)
    prior = linear(rng)
    np.testing.assert_allclose(prior.training_latents.std(axis=0), 1.0, rtol=1e-9)
    gram = prior.components.T @ prior.components
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-9)
    residual = prior.training_poses - prior.mean(prior.training_latents)
    covariance = np.linalg.eigvalsh(np.cov(prior.training_poses.T, bias=True))
    assert np.mean(residual**2) == pytest.approx(covariance[:-3].sum() / 18)
    assert prior.noise == pytest.approx(np.mean(residual**2))


@KINDS
def test_projection_finds_the_latent_point_of_a_pose_of_the_model(make):
    prior = make(np.random.default_rng(7))
    truth = prior.training_latents[5] + 0.05
    found = project_pose(prior, prior.mean(truth))
    np.testing.assert_allclose(prior.mean(found), prior.mean(truth), atol=1e-5)


@KINDS
def test_save_then_load(make, tmp_path):
    prior = make(np.random.default_rng(8))
    save_prior(prior, tmp_path / "a.npz")
    save_prior(prior, tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    again = load_prior(tmp_path / "a.npz", rig_name="mouse", quad_names=QUADS)
    assert type(again) is type(prior)
    assert (again.rig_name, again.quad_names) == ("mouse", QUADS)
    assert again.chart.length_scale == prior.chart.length_scale
    points = np.random.default_rng(9).normal(size=(6, 3))
    np.testing.assert_array_equal(again.mean(points), prior.mean(points))
    np.testing.assert_array_equal(again.variance(points), prior.variance(points))
    np.testing.assert_array_equal(again.back(prior.training_poses), prior.back(prior.training_poses))


def test_prior_of_another_rig_is_refused(tmp_path):
    prior = gplvm(np.random.default_rng(10))
    save_prior(prior, tmp_path / "mouse.npz")
    with pytest.raises(InputError, match=r"prior of rig 'mouse' \(4 quads\) cannot drive rig 'human' \(21 quads\)"):
        load_prior(tmp_path / "mouse.npz", rig_name="human", quad_names=[f"q{i}" for i in range(21)])
    renamed = dataclasses.replace(prior, quad_names=("pelvis", "chest", "head", "trunk"))
    with pytest.raises(InputError, match="quads the rig lacks: trunk"):
        require_rig(renamed, "mouse", QUADS)
    require_rig(prior, "mouse", QUADS)


def test_bad_files(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        load_prior(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(InputError, match="not a prior file"):
        load_prior(tmp_path / "text.npz")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(InputError, match="not a prior file"):
        load_prior(tmp_path / "other.npz")
    np.savez(tmp_path / "new.npz", version=99, kind="gplvm")
    with pytest.raises(InputError, match="version 99"):
        load_prior(tmp_path / "new.npz")
    np.savez(tmp_path / "torn.npz", version=1, kind="gplvm")
    with pytest.raises(InputError, match="missing"):
        load_prior(tmp_path / "torn.npz")


def test_bad_training_poses():
    rng = np.random.default_rng(12)
    names = {"rig_name": "mouse", "quad_names": QUADS}
    with pytest.raises(InputError, match=r"must be \(n, 18\)"):
        fit_linear_prior(rng.normal(size=(9, 12)), 2, CHART, **names)
    with pytest.raises(InputError, match="latent dimension must lie from 1 to 8"):
        fit_linear_prior(rng.normal(size=(9, 18)), 9, CHART, **names)
    holed = rng.normal(size=(9, 18))
    holed[2, 3] = np.nan
    with pytest.raises(InputError, match="1 hold NaN"):
        fit_linear_prior(holed, 2, CHART, **names)
    with pytest.raises(InputError, match="span 1 dimensions"):
        fit_linear_prior(np.outer(np.arange(9.0), np.ones(18)), 3, CHART, **names)
    with pytest.raises(InputError, match="above 0"):
        Kernel(1.0, 1.0, 0.0)


def test_run_time_imports_no_torch(tmp_path):
    save_prior(gplvm(np.random.default_rng(13)), tmp_path / "prior.npz")
    script = (
        "import sys, numpy as np\n"
        "from tracking.priors.files import load_prior\n"
        f"prior = load_prior({str(tmp_path / 'prior.npz')!r})\n"
        "prior.evaluate(np.zeros(prior.latent_dim))\n"
        "import tracking.priors.gplvm_training, vivarig.commands.train\n"
        "heavy = [name for name in sys.modules if name.split('.')[0] in ('torch', 'gpytorch')]\n"
        "print(heavy)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
