"""Training of the GPLVM: gradients, likelihood by the book, recovery of a known manifold, determinism, errors."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from calibration.foundation.errors import InputError
from tracking.priors.gplvm import squared_distances
from tracking.priors.gplvm_training import GplvmOptions, _BackBasis, _Objective, train_gplvm
from tracking.priors.pose_chart import PoseChart
from tracking.priors.prior import fit_linear_prior, project_pose

CHART = PoseChart(np.stack([np.eye(3)] * 6), length_scale=100.0)
NAMES = {"rig_name": "test", "quad_names": [f"quad{i}" for i in range(6)]}


def gait(phase, rng=None, noise=0.0):
    """A periodic motion whose 30 outputs bend strongly: a closed curve that no plane holds."""
    mixing = np.random.default_rng(11).normal(size=(6, 30))
    waves = [f(k * phase) / k for k in (1, 2, 3) for f in (np.sin, np.cos)]
    clean = np.column_stack(waves) @ mixing
    return clean if rng is None else clean + noise * rng.normal(size=clean.shape)


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("inducing", [None, 12])
def test_gradient_against_finite_differences(back, inducing):
    rng = np.random.default_rng(1)
    poses = gait(np.linspace(0, 6, 30), rng, 0.1)
    options = GplvmOptions(latent_dim=2, back_constraints=back, inducing=inducing)
    features = _BackBasis.fit(poses, 300).features if back else None
    objective = _Objective(poses, options, features)
    at = objective.start(1, rng)
    _, gradient = objective(at)
    step = 1e-5
    for entry in range(len(at)):
        shift = step * np.eye(len(at))[entry]
        numeric = (objective(at + shift)[0] - objective(at - shift)[0]) / (2 * step)
        assert gradient[entry] == pytest.approx(numeric, rel=1e-5, abs=1e-3)


@pytest.mark.parametrize("inducing", [None, 30])
def test_likelihood_is_that_of_independent_gaussians(inducing):
    # Exact, and FITC with (nearly) every latent inducing, where its diagonal correction vanishes.
    rng = np.random.default_rng(2)
    poses = gait(np.linspace(0, 6, 30), rng, 0.1)
    objective = _Objective(poses, GplvmOptions(latent_dim=2, inducing=inducing), None)
    at = objective.start(0, rng)
    at[3:] *= 10  # latents far enough apart for a well-conditioned kernel
    latents, _, kernel = objective.unpack(at)
    covariance = kernel.alpha * np.exp(-0.5 * kernel.gamma * squared_distances(latents, latents))
    covariance += kernel.noise * np.eye(30)
    centred = poses - poses.mean(axis=0)
    expected = multivariate_normal.logpdf(centred.T, mean=np.zeros(30), cov=covariance).sum()
    assert objective.log_likelihood(at) == pytest.approx(expected, rel=1e-9 if inducing is None else 1e-4)


@pytest.mark.parametrize("inducing", [None, 20])
def test_two_latent_dimensions_hold_a_gait_that_two_components_do_not(inducing):
    rng = np.random.default_rng(3)
    train = gait(np.linspace(0, 4 * np.pi, 60, endpoint=False), rng, 0.02)
    held_out = gait(rng.uniform(0, 2 * np.pi, 12))
    options = GplvmOptions(latent_dim=2, restarts=2, iterations=200, inducing=inducing)
    trained = train_gplvm(train, CHART, options, np.random.default_rng(0), **NAMES)
    linear = fit_linear_prior(train, 2, CHART, **NAMES)

    def error(prior):
        found = np.stack([project_pose(prior, pose) for pose in held_out])
        return np.sqrt(np.mean((prior.mean(found) - held_out) ** 2))

    # The training noise is 0.02; principal components leave the harmonics unexplained.
    assert error(trained.prior) < 0.05
    assert error(linear) > 5 * error(trained.prior)
    assert trained.prior.kernel.noise < 0.01


def test_back_constraints_hold_and_keep_neighbours():
    phase = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    poses = gait(phase, np.random.default_rng(4), 0.01)
    options = GplvmOptions(latent_dim=2, restarts=1, iterations=100)
    prior = train_gplvm(poses, CHART, options, np.random.default_rng(0), **NAMES).prior
    np.testing.assert_allclose(prior.back(prior.training_poses), prior.training_latents, atol=1e-8)
    assert np.mean(np.var(prior.training_latents, axis=0)) == pytest.approx(1.0)
    # A pose halfway between two training poses lands near the middle of their latents.
    middle = prior.back(gait(phase + np.pi / 40))
    ends = 0.5 * (prior.training_latents + np.roll(prior.training_latents, -1, axis=0))
    spacing = np.linalg.norm(np.diff(prior.training_latents, axis=0), axis=1).max()
    assert np.linalg.norm(middle - ends, axis=1).max() < spacing


def test_same_seed_same_prior_and_restarts_only_help():
    poses = gait(np.linspace(0, 6, 25), np.random.default_rng(5), 0.05)
    options = GplvmOptions(latent_dim=2, restarts=3, iterations=40)
    calls = []
    first = train_gplvm(
        poses, CHART, options, np.random.default_rng(7), **NAMES, on_progress=lambda *done: calls.append(done)
    )
    second = train_gplvm(poses, CHART, options, np.random.default_rng(7), **NAMES)
    np.testing.assert_array_equal(first.prior.weights, second.prior.weights)
    assert first.report == second.report
    assert first.report.log_likelihood == max(first.report.restarts)
    assert len(first.report.restarts) == 3
    assert all(done <= total == 120 for done, total in calls)


def test_target_stops_early():
    poses = gait(np.linspace(0, 6, 25), np.random.default_rng(5), 0.05)
    whole = GplvmOptions(latent_dim=2, restarts=1, iterations=100)
    best = train_gplvm(poses, CHART, whole, np.random.default_rng(7), **NAMES).report
    target = best.log_likelihood - 20
    stopped = GplvmOptions(latent_dim=2, restarts=1, iterations=100, target=target)
    early = train_gplvm(poses, CHART, stopped, np.random.default_rng(7), **NAMES).report
    assert early.iterations[0] < best.iterations[0]
    assert early.log_likelihood >= target


def test_bad_options():
    poses = gait(np.linspace(0, 6, 25))
    for options, message in [
        (GplvmOptions(latent_dim=25), "latent dimension must lie from 1 to 24"),
        (GplvmOptions(latent_dim=2, inducing=26), "from 2 to 25 poses"),
        (GplvmOptions(latent_dim=2, restarts=0), "at least 1"),
    ]:
        with pytest.raises(InputError, match=message):
            train_gplvm(poses, CHART, options, np.random.default_rng(0), **NAMES)


def test_without_torch_one_line_says_what_to_install(monkeypatch):
    real = importlib.import_module

    def absent(name, *args):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
        return real(name, *args)

    monkeypatch.setattr("tracking.priors.gplvm_training.importlib.import_module", absent)
    with pytest.raises(InputError, match=r"'torch' is not installed.*pip install -e '\.\[train\]'"):
        train_gplvm(gait(np.linspace(0, 6, 9)), CHART, GplvmOptions(), np.random.default_rng(0), **NAMES)
