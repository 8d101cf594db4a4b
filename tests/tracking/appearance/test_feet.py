"""Feet that silhouettes lack are seen in the images where they stand, and not where a wrong fit puts them."""

from __future__ import annotations

import numpy as np
from pale_footed_mouse import Filmed, filmed, placed

from tracking.appearance.colours import described, learnt
from tracking.appearance.feet import shown_share
from tracking.appearance.ground import ground_of
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.limb_trust import PLACES


def moved_leg(scene: Filmed, pose: QuadPose, leg: int, by: np.ndarray) -> QuadPose:
    """A pose with one leg elsewhere."""
    centres = pose.centres.copy()
    centres[scene.limbs.chains[int(scene.feet.legs[leg])]] += by
    return QuadPose(pose.rotations, centres)


def test_feet_are_shown_where_they_stand_and_not_beside() -> None:
    scene = filmed()
    known = scene.learnt_with(scene.poses)
    right = np.array([scene.shown(known, frame, scene.poses[frame]) for frame in (0, 2)])
    assert (right < PLACES).mean() >= 0.75
    wrong = []
    for leg in range(4):
        for by in (np.array([22.0, 0.0, 0.0]), np.array([0.0, -22.0, 0.0]), np.array([0.0, 0.0, 22.0])):
            wrong.append(scene.shown(known, 2, moved_leg(scene, scene.poses[2], leg, by))[leg])
    assert (np.array(wrong) >= PLACES).all()


def test_a_foot_where_another_stands_is_not_shown_though_the_images_have_a_paw_there() -> None:
    scene = filmed()
    known = scene.learnt_with(scene.poses)
    pose = scene.poses[2]
    ends = [int(scene.limbs.chains[int(leg)][-1]) for leg in scene.feet.legs]
    names = [scene.limbs.names[int(leg)] for leg in scene.feet.legs]
    hind, fore = names.index("left_hind_limb"), names.index("left_fore_limb")
    before = scene.shown(known, 2, pose)
    assert before[fore] < PLACES
    stepped = moved_leg(scene, pose, hind, pose.centres[ends[fore]] - pose.centres[ends[hind]])
    after = scene.shown(known, 2, stepped)
    assert after[hind] == 1.0 and after[fore] == 1.0
    others = [k for k in range(4) if k not in (hind, fore)]
    np.testing.assert_allclose(after[others], before[others], atol=0.01)  # skin of a leg reaches far


def test_a_wrong_fit_does_not_confirm_itself() -> None:
    """Colours learnt from a template that is a leg's length off, or turned round, do not show its feet there."""
    scene = filmed()
    for change in (
        lambda pose: QuadPose(pose.rotations, pose.centres + np.array([25.0, 20.0, 10.0])),
        lambda pose: placed(pose, np.pi, (pose.centres.mean(axis=0)[0] + 25.0, pose.centres.mean(axis=0)[1])),
    ):
        poses = [change(pose) for pose in scene.poses]
        known = scene.learnt_with(poses)
        shown = np.array([scene.shown(known, frame, poses[frame]) for frame in (0, 2)])
        assert (shown < PLACES).mean() <= 0.25


def test_too_few_cameras_show_nothing() -> None:
    scores = np.full((1, 4, 3, 50), -1.0, np.float32)
    scores[:, :, :, 0] = 2.0
    assert (shown_share(scores) == 0.0).all()
    scores[:, :, 1:] = np.nan
    assert (shown_share(scores) == 1.0).all()


def test_the_ground_is_what_images_show_beside_the_silhouettes() -> None:
    rng = np.random.default_rng(1)
    scene = rng.integers(40, 200, (40, 60, 3)).astype(np.uint8)
    images, masks = [], []
    for left in (0, 12, 24, 36, 48):
        mask = np.zeros((40, 60), bool)
        mask[10:30, left : left + 10] = True
        image = scene.copy()
        image[mask] = 5
        images.append(image)
        masks.append(mask)
    assert np.array_equal(ground_of(images, masks), scene)
    everywhere = [np.ones((40, 60), bool)] * 5
    assert ground_of(images, everywhere).shape == scene.shape


def test_skin_is_told_from_shade_by_its_hue() -> None:
    rng = np.random.default_rng(2)
    ground = np.full((60, 60, 3), 150.0, np.float32)
    image = ground * np.linspace(1.0, 0.5, 60, dtype=np.float32)[None, :, None]
    skin = np.zeros((60, 60), bool)
    skin[20:28, 10:50] = True
    image[skin] *= np.array([0.85, 0.85, 1.15], np.float32)
    noisy = np.clip(image + rng.normal(0, 2, image.shape), 0, 255).astype(np.uint8)
    rows = described(noisy, ground, ~skin, 8.0)
    left = np.zeros((60, 60), bool)
    left[:, :30] = True
    odds = learnt(rows[skin & left], rows[~skin & left]).odds(rows[~left])
    assert np.median(odds[skin[~left]]) > 1.0 > -1.0 > np.median(odds[~skin[~left]])
