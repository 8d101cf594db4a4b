"""Backgrounds that may look several ways are one background in an image: all that plates have, they have."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from capture.backgrounds.adaptive import NearestSamples, RunningMixture
from capture.backgrounds.background import SCALE, Background, background_of, noise_curve
from capture.backgrounds.evidence import ShadeRule
from capture.backgrounds.mixture import fit_mixture
from capture.backgrounds.nearest_look import nearest_look
from capture.silhouettes import Cleaning, ModelOptions
from capture.silhouettes.difference import FollowingModel, PlateModel
from capture.silhouettes.judging import Share, judge_frame
from capture.silhouettes.models import CameraModel
from capture.silhouettes.preparation import Prepared
from capture.silhouettes.shade import learn_shade
from tests.capture.silhouettes.test_bare_skin import RIG, SIZE, ball, on_floor

ARM = ((-8.0, 34.0, 72.0), 13.0)
"""Middle and radius of a ball before a floor of its colour, mm, far above its shade."""


@pytest.mark.parametrize(("channels", "count", "rank"), [(1, 2, 1), (3, 5, 1), (3, 4, 2), (1, 1, 2)])
def test_each_pixel_has_the_look_that_it_resembles(channels: int, count: int, rank: int) -> None:
    rng = np.random.default_rng(5)
    shape, rule, gain = (40, 50, channels), ShadeRule(0.5, 1.15, 3.0), np.full(channels, 1.1)
    looks = [
        Background(*(rng.uniform(*ends, shape).astype(np.float32) for ends in ((60, 200), (2, 6))))
        for _ in range(count)
    ]
    frame = rng.integers(0, 255, shape, dtype=np.uint8)
    found = nearest_look(frame, looks, gain, rule, rank)
    for y, x in rng.integers(0, 40, (60, 2)):
        away = []
        for n, look in enumerate(looks):
            model = PlateModel(look, shadow_floor=rule.floor, highlight=rule.highlight, hue_limit=rule.hue_limit)
            shaded, plain = model.both_in(frame, (slice(0, 40), slice(0, 50)), gain)
            away.append((shaded[y, x], plain[y, x], n))
        shaded, plain, chosen = sorted(away)[min(rank, count) - 1]
        assert (found.shaded[y, x], found.plain[y, x]) == (shaded, plain)
        np.testing.assert_array_equal(found.background.centre[y, x], looks[chosen].centre[y, x])
        np.testing.assert_array_equal(found.background.spread[y, x], looks[chosen].spread[y, x])


def test_shade_that_was_learnt_in_places_leaves_no_marks_on_the_ground() -> None:
    """A scene that was followed knows the shade in every other patch; it then falls on all of them."""
    rng = np.random.default_rng(0)
    rows, columns = np.mgrid[:240, :320]
    patches = (rows // 6 + columns // 6) % 2 == 0
    lit = np.full((240, 320, 1), 150.0, np.float32)
    spread = np.full_like(lit, 1.5)
    known = np.where(patches[..., None], 0.6 * lit, lit)
    model = PlateModel(Background(lit, spread), shadow_floor=0.5, states=(Background(known, spread),))
    image = lit[..., 0].copy()
    image[60:180, 80:240] *= 0.6
    image = (image + rng.normal(0, 1.5, image.shape)).astype(np.uint8)
    assert (model.evidence(image) >= 4 * SCALE).mean() < 0.001


def filmed(view: int, place: float, rng: np.random.Generator, *, subject: bool = True) -> np.ndarray:
    """Return what a view sees: a dark body with a bare arm, moved along x, its shade beside it on the floor."""
    camera = list(RIG)[view]
    image = np.broadcast_to(np.array([110.0, 140.0, 160.0]), (SIZE[1], SIZE[0], 3)).copy()
    if subject:
        image[on_floor(camera, (place, 90.0), 35.0)] *= 0.6
        image[ball(camera, (ARM[0][0] + place, *ARM[0][1:]), ARM[1])] *= 0.7 if view == 0 else 0.25
        image[ball(camera, (place, 0.0, 60.0), 30.0) | ball(camera, (place, 0.0, 25.0), 25.0)] *= 0.2
    return np.clip(image + rng.normal(0, 2.0, image.shape), 0, 255).astype(np.uint8)


@pytest.mark.parametrize("kind", ["plate", "mixture", "mog2", "knn"])
def test_a_bare_arm_is_given_back_whatever_the_background_is_known_by(kind: str) -> None:
    """In the first view the arm looks like shade of the floor; the others have it far above."""
    rng = np.random.default_rng(1)
    models, samples, noise = [], [], noise_curve([])
    for view in range(len(RIG)):
        empty = [filmed(view, 0.0, rng, subject=False) for _ in range(12)]
        model: PlateModel | FollowingModel
        if kind == "plate":
            model = PlateModel(background_of(empty, noise), shadow_floor=0.42)
        elif kind == "mixture":
            first, *others = fit_mixture(empty, noise)
            model = PlateModel(first, shadow_floor=0.42, states=tuple(others))
        else:
            scene = RunningMixture(empty, noise) if kind == "mog2" else NearestSamples(empty, noise)
            model = FollowingModel(scene, shadow_floor=0.42, filmed=True)
        models.append(CameraModel(kind, model, Cleaning(), grey=False))
        samples.append([filmed(view, place, rng) for place in (-20.0, 0.0, 20.0)])
    with ThreadPoolExecutor(1) as pool:
        learnt, floor = learn_shade(models, samples, RIG, pool)
    assert floor is not None
    shares = []
    for view, one in enumerate(learnt):
        masks = np.zeros((1, SIZE[1], SIZE[0]), dtype=bool)
        doubt = one.silhouette_and_doubt(filmed(view, 0.0, rng), masks[0])
        shares.append(Share(masks, np.zeros(1, np.uint16), [None], [None], [doubt]))
    camera = next(iter(RIG))
    body = ball(camera, (0.0, 0.0, 60.0), 30.0) | ball(camera, (0.0, 0.0, 25.0), 25.0)
    arm = ball(camera, *ARM) & ~body
    assert shares[0].masks[0][arm].mean() < 0.3
    judge_frame(0, shares, Prepared(list(learnt), floor), RIG, ModelOptions())
    assert shares[0].masks[0][arm].mean() > 0.9
    assert not shares[0].masks[0][on_floor(camera, (0.0, 90.0), 30.0) & ~body & ~arm].any()
