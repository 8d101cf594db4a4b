"""GPLVM training against GPy: 120 poses of 126 entries, same model, same data, same start, one run.

Model of both: Gaussian kernel with one width, one noise level, latents free (GPy has no back constraints), start
from whitened principal components with the
same kernel and noise. Each optimises until it stops; the time counted is the time to the first iterate whose
log-likelihood reaches the lower of the two final values. Seconds are processor time of the optimisation on one
thread, which other work on the machine does not lengthen.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

import numpy as np

from benchmarks.peers.running import run_peer
from calibration.foundation.arrays import Floats
from tracking.priors.gplvm_training import GplvmOptions, train_gplvm
from tracking.priors.pose_chart import PoseChart

__all__ = ["gplvm_against_gpy", "training_poses"]

POSES, QUADS = 120, 22
ITERATIONS = 1000

#: GPy's own GPLVM and optimiser; the objective is wrapped to note when each value was reached.
GPY = """
import time, warnings
warnings.filterwarnings("ignore")
import GPy
y, d, iterations = given["y"], int(given["d"]), int(given["iterations"])
y = y - y.mean(0)
def fresh():
    power = float((y**2).mean())
    kernel = GPy.kern.RBF(d, variance=power, lengthscale=np.sqrt(d))
    model = GPy.models.GPLVM(y, d, init="PCA", kernel=kernel)
    model.Gaussian_noise.variance = 0.05 * power
    return model
fresh().optimize(max_iters=2)  # first use loads and compiles; not counted
model = fresh()
trace = []
inner = model._objective_grads
def noted(x):
    value = inner(x)
    trace.append((time.process_time(), -float(value[0])))
    return value
model._objective_grads = noted
started = time.process_time()
model.optimize(optimizer="lbfgs", max_iters=iterations)
out["trace"] = np.array([(t - started, v) for t, v in trace])
out["final"] = np.array(float(model.log_likelihood()))
"""


def training_poses(seed: int = 3) -> Floats:
    """(120, 126) poses like a few recorded gait cycles: periodic, of changing speed and style, with noise."""
    rng = np.random.default_rng(seed)
    phase = np.linspace(0, 6 * np.pi, POSES) + 0.1 * rng.normal(size=POSES)
    style = 0.05 * rng.normal(size=(3, POSES)).cumsum(axis=1)
    waves = [f(k * phase) / k for k in (1, 2, 3) for f in (np.sin, np.cos)]
    features = np.column_stack([*waves, *style, style[0] * np.sin(phase)])
    mixing = 0.4 * rng.normal(size=(features.shape[1], 6 * (QUADS - 1)))
    return np.asarray(np.tanh(features @ mixing) + 0.02 * rng.normal(size=(POSES, mixing.shape[1])))


def _ours(poses: Floats, latent_dim: int, target: float | None) -> tuple[float, float]:
    """Train once, to the end or to a log-likelihood; processor seconds and the log-likelihood reached."""
    chart = PoseChart(np.stack([np.eye(3)] * QUADS), 100.0)
    options = GplvmOptions(
        latent_dim, back_constraints=False, restarts=1, iterations=ITERATIONS, target=target, noise_floor=0.0
    )
    started = time.process_time()
    trained = train_gplvm(
        poses, chart, options, np.random.default_rng(0), rig_name="benchmark", quad_names=["q"] * QUADS
    )
    return time.process_time() - started, trained.report.log_likelihood


def _case(poses: Floats, latent_dim: int) -> dict[str, float]:
    peer = run_peer("gpy", GPY, {"y": poses, "d": latent_dim, "iterations": ITERATIONS})
    trace, final_peer = peer["trace"], float(peer["final"])
    _ours(poses, latent_dim, -np.inf)  # first use imports PyTorch; not counted
    _, final = _ours(poses, latent_dim, None)
    target = min(final, final_peer)
    target -= 1e-6 * abs(target)
    seconds, _ = _ours(poses, latent_dim, target)
    seconds_peer = float(trace[np.argmax(trace[:, 1] >= target), 0])
    return {
        "speed_vs_gpy": seconds_peer / seconds,
        "seconds": seconds,
        "seconds_gpy": seconds_peer,
        "log_likelihood": final,
        "log_likelihood_gpy": final_peer,
        "log_likelihood_common": target,
    }


def gplvm_against_gpy(latent_dims: tuple[int, ...] = (2, 10)) -> dict[str, Any]:
    """Train both programs and return the ratio of times to the same likelihood, for each latent dimension.

    Both run in processes of their own on one thread: the matrices are small, and threads on a busy machine
    measure its load. ``speed_vs_gpy`` is the lowest of the ratios; above 1 ours is faster.
    """
    environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    words = [sys.executable, "-m", "benchmarks.gplvm", "--cases", *map(str, latent_dims)]
    done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    cases: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {"speed_vs_gpy": min(case["speed_vs_gpy"] for case in cases.values()), "cases": cases}


def main() -> None:
    if sys.argv[1:2] == ["--cases"]:
        poses = training_poses()
        print(json.dumps({dims: _case(poses, int(dims)) for dims in sys.argv[2:]}))
        return
    result = gplvm_against_gpy()
    print("latent dims    ours s    GPy s   GPy/ours   final log-likelihood: ours        GPy")
    for dims, case in result["cases"].items():
        print(
            f"{dims:>11} {case['seconds']:9.2f} {case['seconds_gpy']:8.2f} {case['speed_vs_gpy']:10.1f}"
            f" {case['log_likelihood']:27.0f} {case['log_likelihood_gpy']:10.0f}"
        )
    print(json.dumps({"gplvm_speed_vs_gpy": result["speed_vs_gpy"], **result}))


if __name__ == "__main__":
    main()
