"""Key pose files: save then load, and what is wrong with an edited one."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.foundation.errors import InputError
from calibration.geometry.transforms import rotation_from_vector
from tracking.priors.key_poses import load_key_poses, save_key_poses
from tracking.priors.training_poses import TrainingPoses
from tracking.quads.oriented_quads import QuadRig, Region

RIG = QuadRig(
    "worm",
    ("tail", "middle", "head"),
    np.stack([np.eye(3)] * 3),
    np.array([[0.0, 0.0, 0.0], [10.0, 0.0, 0.0], [20.0, 0.0, 0.0]]),
    np.ones((3, 4)),
    (Region("rear", (0, 1)), Region("front", (1, 2))),
    1,
)


def poses():
    rng = np.random.default_rng(1)
    rotations = rotation_from_vector(rng.normal(size=(4, 3, 3)))
    return TrainingPoses(RIG, rotations, rng.normal(scale=50, size=(4, 3, 3)), tuple(f"clip:{i}" for i in range(4)))


def test_save_then_load(tmp_path):
    save_key_poses(poses(), tmp_path / "keys.toml")
    again = load_key_poses(tmp_path / "keys.toml", RIG)
    assert again.sources == poses().sources
    np.testing.assert_allclose(again.centres, poses().centres, atol=1e-4)
    np.testing.assert_allclose(again.rotations, poses().rotations, atol=1e-8)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('rig = "worm"', 'rig = "snake"', "key poses of rig 'snake', wanted 'worm'"),
        ('name = "head"', 'name = "heed"', "unknown quad 'heed'; did you mean 'head'"),
        ('name = "head"', 'name = "tail"', "quad 'head' is not placed"),
        ("centre = [", "centres = [", "centre of 'tail' must be"),
        ("[[pose]]", "[[pose]", "not TOML"),
    ],
)
def test_what_is_wrong_with_an_edited_file(tmp_path, before, after, message):
    save_key_poses(poses(), tmp_path / "keys.toml")
    text = (tmp_path / "keys.toml").read_text()
    assert before in text
    (tmp_path / "keys.toml").write_text(text.replace(before, after, 1))
    with pytest.raises(InputError, match=message):
        load_key_poses(tmp_path / "keys.toml", RIG)


def test_an_empty_file(tmp_path):
    (tmp_path / "keys.toml").write_text('rig = "worm"\n')
    with pytest.raises(InputError, match="holds no table"):
        load_key_poses(tmp_path / "keys.toml", RIG)
