"""The published way beside ours: a FITC latent variable model of 2,000 poses, and poses from it."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from benchmarks.pose_space_parts.clips import PoseTable, load_clip, without_hands
from calibration.geometry.transforms import rotation_from_vector, vector_from_rotation
from skeleton.pose_spaces.pose_library import grounded, tilts_of
from skeleton.pose_spaces.posing import HandleSet, TangentModel, lay_down, pose_one, turn_about
from skeleton.pose_spaces.principal_geodesics import learn_pose_space
from skeleton.pose_spaces.rotation_tree import RotationTree, place_rotations
from tracking.priors.gplvm import GplvmPrior
from tracking.priors.gplvm_training import GplvmOptions, train_gplvm
from tracking.priors.pose_chart import PoseChart


def trained(vectors: np.ndarray, options: GplvmOptions) -> GplvmPrior:
    """Train on pose vectors (n, D); the chart is only a number of columns here, so zeros fill the last quad."""
    width = -(-vectors.shape[1] // 6) * 6
    padded = np.pad(vectors, ((0, 0), (0, width - vectors.shape[1])))
    quads = width // 6 + 1
    chart = PoseChart(np.repeat(np.eye(3)[None], quads, axis=0), 1.0)
    names = [f"q{i}" for i in range(quads)]
    return train_gplvm(padded, chart, options, np.random.default_rng(0), rig_name="poses", quad_names=names).prior


def fitc_against_full() -> dict[str, float]:
    """Reconstruction of a 500-frame walk, 6-D, 100 inducing points, by FITC and by the full model."""
    clips = [without_hands(load_clip(name)) for name in ("07_01", "07_02")]
    rotations = np.concatenate([clip.rotations for clip in clips])[:500]
    space = learn_pose_space(rotations, clips[0].tree.names, body="cmu")
    vectors = space.tangents(rotations)
    out = {}
    for key, inducing in (("full", None), ("fitc", 100)):
        options = GplvmOptions(latent_dim=6, inducing=inducing, restarts=1, iterations=100, back_constraints=False)
        begin = time.process_time()
        prior = trained(vectors, options)
        # FITC keeps some training latents only; they are evenly spread.
        rows = np.unique(np.linspace(0, len(vectors) - 1, len(prior.training_latents)).round().astype(int))
        shown = prior.mean(prior.training_latents)[:, : vectors.shape[1]]
        out[f"{key}_error_rad"] = float(np.sqrt(((shown - vectors[rows]) ** 2).mean()))
        out[f"{key}_train_s"] = time.process_time() - begin
    out["fitc_ratio"] = out["fitc_error_rad"] / out["full_error_rad"]
    return out


def gplvm_solver(
    table: PoseTable, chosen: np.ndarray, numbers: dict[str, object], handles: tuple[str, ...], sigma: np.ndarray
) -> Callable[..., Callable[..., object]]:
    """Train on chosen frames; return the solver of poses: nearest latent first, then Gauss-Newton in x and y."""
    rotations = table.rotations(chosen)
    rotations[:, 0] = tilts_of(rotations[:, 0], "y")
    space = learn_pose_space(rotations, table.example.names, body="cmu")
    mean = space.mean
    vectors = vector_from_rotation(np.swapaxes(mean, -1, -2) @ rotations).reshape(len(chosen), -1)
    begin = time.process_time()
    options = GplvmOptions(latent_dim=12, inducing=200, restarts=1, iterations=100, back_constraints=False)
    prior = trained(vectors, options)
    numbers["gplvm_train_s"] = time.process_time() - begin
    bases = np.concatenate([np.eye(3)[None], mean])
    size = vectors.shape[1]

    def prepare(tree: RotationTree) -> Callable[..., object]:
        body = grounded(tree)
        points = HandleSet.at(body, handles)
        poses = prior.mean(prior.training_latents)[:, :size].reshape(-1, len(mean), 3)
        placed = place_rotations(tree, mean @ rotation_from_vector(poses), np.zeros((len(poses), 3))).positions
        own = placed[:, points.joints - 1]

        def solve(targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            goal = targets - targets.mean(axis=0)
            apart = []
            for one in own:
                centred = one - one.mean(axis=0)
                apart.append(((centred @ turn_about(1, centred, goal).T - goal) ** 2).sum())
            x = prior.training_latents[int(np.argmin(apart))].copy()
            found = None
            for _ in range(5):
                at = prior.evaluate(x)
                spread = np.sqrt(at.variance)
                directions = np.zeros((size + 3, 12 + size))
                directions[3:, :12] = at.mean_jacobian[:size]
                directions[3:, 12:] = spread * np.eye(size)
                stiffness = np.ones(12 + size)
                model = TangentModel(bases, np.concatenate([np.zeros(3), at.mean[:size]]), directions, stiffness, 1)
                root, turn = lay_down(body, model, points, targets, np.zeros(12 + size))
                rest = np.concatenate([-x, np.zeros(size)])
                found = pose_one(
                    body, model, points, targets, sigma, start=(root, turn, np.zeros(12 + size)), rest=rest
                )
                step = found.coordinates[0, :12]
                x = x + step * min(1.0, 1.0 / max(np.linalg.norm(step), 1e-9))
            assert found is not None
            return found.pose.positions[0, 1:], found.sigma[0, 1:]

        return solve

    return prepare
