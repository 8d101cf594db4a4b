"""vivarig train at the command line: a prior from key poses, its report, and the errors a user can meet."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from calibration.foundation.result_files import create_results, text_array
from calibration.geometry.transforms import rotation_from_vector
from tracking.priors.files import load_prior
from tracking.priors.key_poses import load_key_poses, save_key_poses
from tracking.priors.training_poses import TrainingPoses
from tracking.quads.oriented_quads import QuadRig, Region, load_quad_rig, save_quad_rig
from vivarig.cli import main


@pytest.fixture
def worm(tmp_path):
    """A folder with the rig of a worm of three quads and 30 key poses in which it wriggles."""
    rig = QuadRig(
        "worm",
        ("tail", "middle", "head"),
        np.stack([np.eye(3)] * 3),
        np.array([[-10.0, 0.0, 0.0], [0.0, 0.0, 0.0], [10.0, 0.0, 0.0]]),
        np.ones((3, 4)),
        (Region("rear", (0, 1)), Region("front", (1, 2))),
        1,
    )
    phase = np.linspace(0, 2 * np.pi, 30, endpoint=False)
    bend = np.stack([np.sin(phase), 0 * phase, np.cos(phase)], axis=1)
    turns = np.zeros((30, 3, 3))
    turns[..., 2] = 0.7 * bend
    rotations = rotation_from_vector(turns)
    poses = TrainingPoses(
        rig, rotations, np.einsum("nqij,qj->nqi", rotations, rig.centres), tuple(f"wriggle:{i}" for i in range(30))
    )
    save_quad_rig(rig, tmp_path / "worm.toml")
    save_key_poses(poses, tmp_path / "keys.toml")
    return tmp_path


def words(folder, *more):
    base = ["train", "--rig", str(folder / "worm.toml"), "--key-poses", str(folder / "keys.toml")]
    return [*base, "-o", str(folder / "prior.npz"), "--latent", "2", *more]


def test_prior_picture_and_numbers(worm, capsys):
    extra = ["--restarts", "1", "--picture", str(worm / "latent.png"), "--json", str(worm / "numbers.json")]
    assert main(words(worm, *extra)) == 0
    assert "30 training poses of 3 quads" in capsys.readouterr().out
    prior = load_prior(worm / "prior.npz", rig_name="worm")
    assert prior.latent_dim == 2
    off = prior.mean(prior.training_latents) - prior.training_poses
    assert np.sqrt(np.mean(off**2)) < 0.05 * np.sqrt(np.mean(np.var(prior.training_poses, axis=0)))
    numbers = json.loads((worm / "numbers.json").read_text())
    assert numbers["poses"] == 30
    assert np.isfinite(numbers["log_likelihood"])
    assert (worm / "latent.png").read_bytes().startswith(b"\x89PNG")


def test_without_torch_it_says_what_to_install_and_linear_needs_none(worm):
    # A name that is None in sys.modules cannot be imported: a machine without the extra.
    block = "import sys; sys.modules['torch'] = None; from vivarig.cli import main; sys.exit(main(sys.argv[1:]))"
    refused = subprocess.run([sys.executable, "-c", block, *words(worm)], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert refused.stderr.strip().count("\n") == 0
    assert "in the clone, pip install -e '.[train]'" in refused.stderr
    linear = [sys.executable, "-c", block, *words(worm, "--linear")]
    assert subprocess.run(linear, capture_output=True, text=True, check=False).returncode == 0
    assert load_prior(worm / "prior.npz").latent_dim == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--rig", "unicorn"], "neither a built-in body"),
        (["--latent", "12"], "latent dimension must lie from 1 to 11"),
        (["--held-out", "1.5"], "--held-out must lie"),
        (["--made-up", "walk"], "which body carries its quads"),
        (["--inducing", "99"], "from 2 to 30 poses"),
    ],
)
def test_bad_input_is_one_line(worm, capsys, change, message):
    assert main(words(worm, *change)) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.strip().count("\n") == 0
    assert not (worm / "prior.npz").exists()


def test_nothing_to_train_on(worm, capsys):
    assert main(["train", "--rig", str(worm / "worm.toml"), "-o", str(worm / "prior.npz")]) == 2
    assert "nothing to train on" in capsys.readouterr().err


def test_tracked_frames_become_key_poses(worm, capsys):
    keys = load_key_poses(worm / "keys.toml", load_quad_rig(worm / "worm.toml"))
    recording = worm / "worm_07"
    trust = np.zeros(30, np.uint8)
    trust[20:] = 2
    with create_results(recording / "results" / "track.h5", stage="track", parameters={}) as file:
        file["quad_names"] = text_array(list(keys.rig.quad_names))
        file["rotations"], file["centres"], file["trust"] = keys.rotations, keys.centres, trust
        file["residual"], file["agreement"] = np.zeros(30), np.ones(30)
        file["marker_names"], file["markers"] = text_array(["tip"]), np.zeros((30, 1, 3))
        file["faces"] = np.array([[0, 1, 2]])
    base = ["train", "--rig", str(worm / "worm.toml"), "--recording", str(recording), "-o", str(worm / "prior.npz")]
    base += ["--latent", "2", "--linear"]
    assert main([*base, "--frames", "1,5,9,13,28", "--save-poses", str(worm / "few.toml")]) == 0
    few = load_key_poses(worm / "few.toml", keys.rig)
    assert few.sources == tuple(f"worm_07:{frame}" for frame in (1, 5, 9, 13, 28))
    np.testing.assert_allclose(few.centres, keys.centres[[1, 5, 9, 13, 28]], atol=1e-3)
    assert main(base) == 0
    assert "20 training poses" in capsys.readouterr().out  # the trusted ones
    assert main([*base, "--frames", "1,99"]) == 2
    assert "has frames 0 to 29" in capsys.readouterr().err
