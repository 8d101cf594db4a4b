"""The table of CMU poses, and the human prior that is made of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from calibration.foundation.errors import InputError
from calibration.geometry.transforms import rotation_from_quaternion, rotation_from_vector, vector_from_rotation
from skeleton.bodies import load_body
from skeleton.motion_files import read_motion
from tracking.priors.captured import captured_poses, hands_zero, held_out_walks, straight_hands, training_set
from tracking.priors.cmu import COPIES, HELD_OUT, WALKERS, load_cmu
from tracking.priors.files import builtin_prior, builtin_prior_path
from tracking.priors.make import joint_quads
from tracking.priors.training_poses import poses_from_skeleton, reconstruction_error
from tracking.quads.attachment import attach_quads, posed_by_rotations

JOINTS = ("Hips", "LeftUpLeg", "LeftLeg", "RightUpLeg", "Spine", "LeftArm")
HUMAN = load_body("human")


def write_table(folder: Path, **changed: object) -> Path:
    """Two clips of four and two poses, in which only some joints turn."""
    rng = np.random.default_rng(1)
    angles = rng.integers(-3000, 3000, (6, 3 * len(JOINTS))).astype(np.int16)
    angles[2, 3:] = 0  # a pose never solved
    offsets = np.zeros((38, 3))
    offsets[:, 1] = 1.0
    fields = {
        "angles_centideg": angles,
        "root_position": np.arange(18.0).reshape(6, 3),
        "channels": [f"{joint}.{axis}rotation" for joint in JOINTS for axis in "ZYX"],
        "clip": ["01_01", "07_01"],
        "subject": ["001", "007"],
        "first": [0, 4],
        "frames": [4, 2],
        "offset_subject": ["001", "007"],
        "offsets": np.stack([offsets, offsets]),
    }
    np.savez(folder / "poses_15hz.npz", **(fields | changed))
    return folder


def test_poses_of_a_clip(tmp_path):
    table = load_cmu(write_table(tmp_path))
    motion = table.motion(0)
    assert motion.frames == 3, "the pose that was never solved is left out"
    assert motion.rate_hz == 15.0
    assert table.motion(0, step=3).frames == 2
    np.testing.assert_allclose(motion.shifts[1, 0], np.array([3.0, 4.0, 5.0]) * 25.4 / 0.45)
    knee = motion.names.index("LeftLeg")
    z, y, _ = np.radians(table.angles[0, 6:9] / 100.0)
    # The last of three turns about moving axes leaves x where the first two put it.
    expected = [np.cos(z) * np.cos(y), np.sin(z) * np.cos(y), -np.sin(y)]
    w, i, j, k = motion.rotations[0, knee]
    first = [1 - 2 * (j * j + k * k), 2 * (i * j + w * k), 2 * (i * k - w * j)]
    np.testing.assert_allclose(first, expected, atol=1e-9)
    assert np.isfinite(motion.tips[motion.names.index("Head")]).all()


def test_bad_tables(tmp_path):
    with pytest.raises(InputError, match="no such file; give the folder of the CMU table"):
        load_cmu(tmp_path)
    (tmp_path / "poses_15hz.npz").write_text("nothing")
    with pytest.raises(InputError, match="not the table of CMU poses"):
        load_cmu(tmp_path)
    with pytest.raises(InputError, match="wanted channels Z, Y, X of each joint"):
        load_cmu(write_table(tmp_path, channels=[f"{joint}.{axis}" for joint in JOINTS for axis in "XYZ"]))


def test_the_file_says_whose_data_it_is_and_who_was_left_out():
    with np.load(builtin_prior_path("human")) as file:
        assert "mocap.cs.cmu.edu" in str(file["note_acknowledgement"])
        assert tuple(str(file["note_held_out_subjects"]).split()) == HELD_OUT
    assert len(set(HELD_OUT)) == 13
    assert not set(HELD_OUT) & set(COPIES)


@pytest.mark.realdata
def test_the_table_is_the_motion_of_the_files(shared_data):
    table = load_cmu(shared_data / "cmu")
    ours = table.motion(table.clips.index("07_01"))
    file = read_motion(shared_data / "cmu" / "bvh" / "07_01.bvh", unit_mm=25.4 / 0.45, drop_first=True)
    assert ours.names == file.names
    apart = np.linalg.norm(ours.poses()[0] - file.poses()[0][::8], axis=2).max(axis=0)
    # Fingers are not in the table.
    assert apart[["Finger" not in name and "Index" not in name for name in ours.names]].max() < 0.5


@pytest.mark.realdata
def test_copies_are_copies_and_no_other_subject_is(shared_data):
    table = load_cmu(shared_data / "cmu")
    owners: dict[bytes, set[str]] = {}
    for clip, subject in enumerate(table.subjects):
        for row in range(int(table.first[clip]), int(table.first[clip] + table.frames[clip]), 20):
            if table.angles[row, 3:].any():
                owners.setdefault(table.angles[row, 3:].tobytes(), set()).add(subject)
    twice = [names for names in owners.values() if len(names) > 1]
    assert set().union(*twice) >= set(COPIES)
    assert all(len(names - set(COPIES)) <= 1 for names in twice)
    assert not set().union(*twice) & set(HELD_OUT)


@pytest.mark.realdata
def test_the_human_prior_shows_walks_of_people_it_never_saw(shared_data):
    table = load_cmu(shared_data / "cmu")
    attachment = attach_quads(joint_quads(HUMAN), HUMAN)
    walks = held_out_walks(table, attachment)
    walks = straight_hands(walks, attachment, hands_zero(walks, HUMAN))
    error = reconstruction_error(builtin_prior("human"), walks.subset(range(0, len(walks), 3)))
    assert error.centre_mm < 15.0
    assert error.rotation_deg < 6.0


def test_hands_of_a_bent_zero_are_laid_straight():
    attachment = attach_quads(joint_quads(HUMAN), HUMAN)
    rng = np.random.default_rng(5)
    segments = rotation_from_vector(0.3 * rng.normal(size=(40, len(HUMAN.joints), 3)))
    bent, flip = rotation_from_vector(np.array([0.1, -0.8, -0.2])), np.diag([1.0, -1.0, 1.0])
    for side, turn in (("left", bent), ("right", flip @ bent @ flip)):
        hand = HUMAN.index(f"{side}_wrist")
        segments[:, hand] = segments[:, HUMAN.parents[hand]] @ turn
    poses = poses_from_skeleton(attachment, posed_by_rotations(HUMAN, segments), "made up")
    straight = straight_hands(poses, attachment, hands_zero(poses, HUMAN))
    assert straight.segments is not None
    turned = rotation_from_quaternion(straight.segments)
    for side in ("left", "right"):
        hand = HUMAN.index(f"{side}_wrist")
        np.testing.assert_allclose(turned[:, hand], turned[:, HUMAN.parents[hand]], atol=1e-6)
    assert straight.sources == poses.sources


def test_the_human_prior_holds_its_hands_straight_on_average():
    prior = builtin_prior("human")
    assert prior.training_segments is not None
    rotations = rotation_from_quaternion(np.asarray(prior.training_segments, float))
    for side in ("left", "right"):
        hand = HUMAN.index(f"{side}_wrist")
        bend = np.swapaxes(rotations[:, HUMAN.parents[hand]], -1, -2) @ rotations[:, hand]
        assert np.degrees(np.linalg.norm(vector_from_rotation(bend).mean(axis=0))) < 10.0  # was 48


@pytest.mark.realdata
def test_training_poses_come_with_their_mirror_images(shared_data):
    table = load_cmu(shared_data / "cmu")
    attachment = attach_quads(joint_quads(HUMAN), HUMAN)
    every = captured_poses(table, attachment, lambda subject, _: subject in WALKERS, step=8)
    chosen = training_set(every, attachment, 40)
    assert len(chosen) == 40
    assert sum(source.endswith(":mirrored") for source in chosen.sources) == 20
    assert len(set(chosen.sources)) == 40
