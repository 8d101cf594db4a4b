"""Quads where the skin has them: nearer to the skinned body than quads that take half of a joint's rotation."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from calibration.geometry.transforms import rotation_from_quaternion
from skeleton.actors.actor import build_actor
from skeleton.tree.joint_tree import Pose
from tracking.adapting.skin_following_search import learn_following
from tracking.priors.files import builtin_prior
from tracking.quads import skin_following
from tracking.quads.attachment import attach_posed_quads, carry_quads, posed_by_rotations
from tracking.quads.oriented_quads import QuadPose
from tracking.quads.skin_following import builtin_following, save_following
from tracking.subjects.subject import builtin_subject


def test_the_human_template_lies_on_the_skin() -> None:
    subject, actor, following = builtin_subject("human"), build_actor("human"), builtin_following("human")
    segments = builtin_prior("human").training_segments
    assert following is not None and segments is not None
    # Poses beside those that it was learned from (every fifth).
    rotations = rotation_from_quaternion(segments[2::130].astype(float))
    attachment = attach_posed_quads(subject.cage_rig.quads, subject.bones.skeleton, subject.bones.pose)
    poses = posed_by_rotations(attachment.skeleton, rotations)
    carried = carry_quads(attachment, poses)
    off = []
    for quads in (carried, following.applied(attachment, rotations, carried)):
        meshes = [
            subject.cage_rig.deform(subject.template.binding, QuadPose(*pose))
            for pose in zip(quads.rotations, quads.centres, strict=True)
        ]
        skins = [actor.skin(Pose(poses.positions[[k]], poses.rotations[[k]]))[0] for k in range(len(poses))]
        off.append(np.mean(np.linalg.norm(np.array(meshes) - np.array(skins), axis=2)))
    assert off[0] > 12.0
    assert off[1] < 0.6 * off[0]


def test_a_body_without_a_table_is_left_as_it_is() -> None:
    assert builtin_following("mouse") is None


def test_what_is_learned_is_read_again(tmp_path: Path, monkeypatch: object) -> None:
    learned = learn_following("human", step=400)
    save_following(learned, tmp_path / "human_skin.npz")
    monkeypatch.setattr(skin_following, "following_path", lambda body: tmp_path / f"{body}_skin.npz")  # type: ignore[attr-defined]
    again = builtin_following.__wrapped__("human")
    assert again is not None and again.quad_names == learned.quad_names
    for one, other in zip(again.weights, learned.weights, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    assert [list(js) for js in again.joints] == [list(js) for js in learned.joints]
