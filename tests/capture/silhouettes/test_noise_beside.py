"""A codec draws blocks anew that something passes: the noise that counts is that beside a subject."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np
import pytest

from capture.backgrounds.adaptive import FollowedScene, NearestSamples, RunningMixture
from capture.backgrounds.background import Background, background_of, noise_curve, noise_over
from capture.hull import overlap
from capture.recordings.video import read_frames, write_video
from capture.silhouettes import Cleaning
from capture.silhouettes.difference import FollowingModel, PlateModel
from capture.silhouettes.models import CameraModel
from capture.silhouettes.noise_beside import NearGround, believed_noise, beside, hue_beside, noise_beside
from capture.silhouettes.shade import learn_shade
from tests.capture.silhouettes.test_bare_skin import RIG, SIZE, ball


def ground(away: np.ndarray) -> NearGround:
    return NearGround(away.astype(np.float32), away.astype(np.float32))


@pytest.mark.parametrize(("sigma", "times"), [(1.0, 1.0), (3.0, 1.96 * 3.0 / 4.0), (30.0, 1.0)])
def test_of_bare_ground_one_pixel_in_twenty_may_differ_weakly(
    sigma: float, times: float, rng: np.random.Generator
) -> None:
    """1.96 sigma hold 95 % of a normal distribution; what differs by far more than any codec's noise is no noise."""
    away = sigma * np.abs(rng.normal(0, 1, 40_000))
    assert noise_beside([ground(away[:10_000]), ground(away[10_000:])], 4.0) == pytest.approx(times, rel=0.02)
    assert hue_beside([ground(away)]) == pytest.approx(1.645 * sigma, rel=0.02)
    assert noise_beside([ground(away[:200])], 4.0) == 1.0 and hue_beside([ground(away[:200])]) == 0.0  # too few


def test_shade_beside_a_subject_is_no_noise() -> None:
    mask = np.zeros((60, 60), dtype=bool)
    mask[25:35, 25:35] = True
    still = np.zeros_like(mask)
    still[:, 40:] = True
    free = beside(mask, still)
    assert not free[22:38, 25:35].any() and not free[:, 40:].any()
    assert free[30, 15:21].all() and not free[30, :12].any()
    away, ratio, hue = np.full((60, 60), 1.0), np.full((60, 60), 1.02), np.full((60, 60), 0.5)
    away[:30], ratio[:30], hue[:30] = 9.0, 0.7, 9.0
    found = NearGround.of((away, ratio, hue), free, 1)
    assert len(found.away) > 50 and found.away.max() == 1.0 and found.hue.max() == 0.5


def test_a_camera_has_no_more_noise_than_half_of_them() -> None:
    """One of five sees a mirror image beside the subject; one of four was compressed less."""
    assert believed_noise([1.0, 1.0, 1.0, 2.5, 1.0]) == [1.0] * 5
    assert believed_noise([2.4, 2.5, 2.3, 1.0]) == [2.3, 2.3, 2.3, 1.0]
    assert believed_noise([2.4, 1.5]) == [1.5, 1.5] and believed_noise([1.7]) == [1.7]


@pytest.mark.parametrize(("channels", "floor", "times"), [(3, 0.42, 2.45), (1, 0.5, 1.0)])
def test_in_grey_what_counts_as_shade_anyway_is_no_noise(
    channels: int, floor: float, times: float, rng: np.random.Generator
) -> None:
    """The noise is five times what is believed; 1.96 sigma of it are 2.45 times what may differ weakly."""
    models, samples = [], []
    shape = (SIZE[1], SIZE[0], channels)
    for view in RIG:
        images = []
        for n in range(4):
            scene = np.full(shape, 120.0) + rng.normal(0, 5.0, (*shape[:2], 1))
            scene[ball(view, (20.0 * n, 0.0, 40.0), 30.0)] = 10.0
            images.append(np.clip(np.rint(scene), 0, 255).astype(np.uint8))
        plate = PlateModel(Background(np.full(shape, 120, np.float32), np.ones(shape, np.float32)), shadow_floor=floor)
        models.append(CameraModel("plate", plate, Cleaning(low=4.0, high=40.0), grey=channels == 1))
        samples.append(images)
    with ThreadPoolExecutor(1) as pool:
        learnt, _ = learn_shade(models, samples, RIG, pool)
    found = [model.model.noise_times for model in learnt if isinstance(model.model, PlateModel)]
    assert found == pytest.approx([times] * len(RIG), rel=0.1)


def test_ground_that_nobody_saw_does_not_become_less_sure() -> None:
    """Where spread is far above the usual noise, a codec's adds next to nothing to it."""
    spread = np.full((40, 60, 3), 1.5, np.float32)
    spread[:10, :10] = 30.0
    found = Background(np.zeros_like(spread), spread).noisier(2.0).spread
    assert found[20:] == pytest.approx(3.0) and found[:10, :10] == pytest.approx(30.0, rel=0.01)


def test_a_camera_that_is_no_noisier_keeps_its_model_and_needs_no_arrays_of_its_own() -> None:
    spread = np.full((40, 60, 3), 1.5, np.float32)
    model = PlateModel(Background(np.zeros_like(spread), spread))
    assert model.noisier(1.0) is model and model.noisier(1.5) is not model


@pytest.mark.parametrize("kind", [RunningMixture, NearestSamples])
def test_a_scene_that_is_followed_has_the_noise_that_was_found(
    kind: type[RunningMixture] | type[NearestSamples], rng: np.random.Generator
) -> None:
    images = [rng.normal(120, 1.0, (20, 30, 3)).clip(0, 255).astype(np.uint8) for _ in range(12)]
    scene: FollowedScene = kind(images, noise_curve([]))
    model = FollowingModel(scene, shadow_floor=0.42)
    before = model.now().background.spread.copy()
    model.believe(2.0, 2.5)
    scene.follow(images[0].astype(np.float32))
    assert np.median(model.now().background.spread / before) == pytest.approx(2.0, rel=0.1)
    assert model.now().hue_limit == 2.5


def filmed(
    view: int, frames: int, rng: np.random.Generator, subject: bool
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Images and true masks of a red and blue body that goes over a rough grey floor, as a sensor sees it."""
    camera = list(RIG)[view]
    grain = cv2.GaussianBlur(np.random.default_rng(view).normal(0, 60, (SIZE[1], SIZE[0])), (0, 0), 2.0)
    floor = np.array([120.0, 128.0, 132.0]) + grain[..., None]
    images, masks = [], []
    for n in range(frames):
        image, place = floor.copy(), 6.0 * (n - frames / 2)
        upper, lower = ball(camera, (place, 0.0, 62.0), 28.0), ball(camera, (place, 10.0 * np.sin(n), 25.0), 25.0)
        if subject:
            image[lower] = [110.0, 60.0, 50.0]
            image[upper] = [50.0, 50.0, 170.0]
        images.append(np.clip(image + rng.normal(0, 2.5, image.shape), 0, 255).astype(np.uint8))
        masks.append(upper | lower)
    return images, masks


def test_what_a_codec_leaves_beside_a_subject_is_no_subject(tmp_path: Path, rng: np.random.Generator) -> None:
    """Strong compression repeats still blocks: over the whole image it has hardly any noise."""
    models, samples, true = [], [], []
    for view in range(len(RIG)):
        stored = []
        for name, subject, frames in (("moving", True, 24), ("empty", False, 8)):
            images, masks = filmed(view, frames, rng, subject)
            write_video(tmp_path / f"{name}{view}.mp4", images, 60.0, quality=33)
            stored.append([image for _, image in read_frames(tmp_path / f"{name}{view}.mp4")])
            if subject:
                true.append(masks[::4])
        moving, empty = stored
        noise = noise_over(np.stack(moving))
        plate = PlateModel(background_of(empty, noise), shadow_floor=0.42)
        models.append(CameraModel("plate", plate, Cleaning(), grey=False))
        samples.append(moving[::4])
    with ThreadPoolExecutor(1) as pool:
        learnt, _ = learn_shade(models, samples, RIG, pool)
    before, after = (
        np.mean([
            overlap(model.silhouette(image), mask)
            for model, images, masks in zip(some, samples, true, strict=True)
            for image, mask in zip(images, masks, strict=True)
        ])
        for some in (models, learnt)
    )  # fmt: skip
    assert before < 0.7 < 0.9 < after
