"""The edge before a screen: at half of the subject's own colour there, whatever that is; thin parts are kept."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from capture.backgrounds.keys import ChromaModel, key_colour
from capture.hull import overlap
from capture.silhouettes.cleanup import Cleaning
from capture.silhouettes.edges.keyed_edge import keyed_edge
from capture.silhouettes.models import CameraModel

GREEN, BLUE = (60, 180, 70), (170, 80, 40)
SUBJECTS = [(25, 25, 25), (230, 230, 230), (120, 120, 120), (120, 150, 205), (70, 80, 150)]
SHAPE = (140, 180)


def filmed(
    share: np.ndarray, subject: np.ndarray, screen: tuple[int, int, int], rng: np.random.Generator, noise: float = 2.0
) -> np.ndarray:
    mixed = np.array(screen) + share[:, :, None] * (subject - np.array(screen))
    return np.clip(mixed + rng.normal(0, noise, (*share.shape, 3)), 0, 255).astype(np.uint8)


def cut_out(image: np.ndarray) -> np.ndarray:
    return CameraModel("chroma", key_colour(image), Cleaning(), grey=False).silhouette(image)


def ramp(width: float) -> np.ndarray:
    """Return the coverage of a subject in columns 60 to 120 whose sides are ``width`` px of even motion blur."""
    columns = np.arange(SHAPE[1], dtype=np.float64)
    row = np.clip(np.minimum(columns - 60, 120 - columns) / width + 0.5, 0.0, 1.0)
    return np.where((np.arange(SHAPE[0]) >= 30)[:, None] & (np.arange(SHAPE[0]) < 110)[:, None], row[None, :], 0.0)


@pytest.mark.parametrize("screen", [GREEN, BLUE])
@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("width", [1.5, 6.5, 14.5])
def test_an_edge_lies_at_half_however_wide_it_is(
    screen: tuple[int, int, int], subject: tuple[int, int, int], width: float, rng: np.random.Generator
) -> None:
    share = ramp(width)
    found = cut_out(filmed(share, np.array(subject), screen, rng))
    rows = found[40:100]
    # The half lies on the centres of columns 60 and 120: 60 columns and one, half of either end. A wide ramp rises too
    # little to be climbed to its very top.
    assert rows.sum(axis=1).mean() == pytest.approx(60.0, abs=1.0 + 0.1 * width)
    assert rows[:, 70:111].all()


def test_parts_of_other_colours_keep_what_is_theirs(rng: np.random.Generator) -> None:
    true = np.zeros(SHAPE, np.uint8)
    cv2.ellipse(true, (90, 70), (60, 40), 0, 0, 360, 1, -1)
    share = cv2.GaussianBlur(true.astype(np.float64), (0, 0), 0.6)
    stripes = ((np.arange(SHAPE[1])[None, :] + np.arange(SHAPE[0])[:, None]) // 4) % 3
    subject = np.array([(230, 230, 230), (30, 30, 30), (60, 60, 170)], dtype=np.float64)[stripes]
    for screen in (GREEN, BLUE):
        assert overlap(cut_out(filmed(share, subject, screen, rng)), true.view(np.bool_)) > 0.995


def test_a_part_near_the_screens_colour_is_not_eaten_from_beside_another(rng: np.random.Generator) -> None:
    true = np.zeros(SHAPE, np.uint8)
    true[40:100, 40:140] = 1
    share = cv2.GaussianBlur(true.astype(np.float64), (0, 0), 0.6)
    subject = np.broadcast_to(np.array((140.0, 110.0, 100.0)), (*SHAPE, 3)).copy()
    subject[:, 90:] = (120, 150, 205)
    found = cut_out(filmed(share, subject, BLUE, rng))
    lost = true.view(np.bool_) & ~found
    # The two corners between them, from where ground and skin are both in one step; no band from side to side.
    assert lost.sum() <= 2 * 5 * 5 and not lost[46:94].any()
    assert overlap(found, true.view(np.bool_)) > 0.99


@pytest.mark.parametrize("width", [1, 2, 3])
def test_a_tail_stays_whole_and_is_as_wide_as_it_is(width: int, rng: np.random.Generator) -> None:
    true = np.zeros(SHAPE, np.uint8)
    cv2.ellipse(true, (50, 70), (35, 30), 0, 0, 360, 1, -1)
    true[68 : 68 + width, 80:165] = 1
    share = cv2.GaussianBlur(true.astype(np.float64), (0, 0), 0.6)
    for noise in (2.0, 4.5):
        found = cut_out(filmed(share, np.array((70, 80, 150)), GREEN, rng, noise))
        assert found[68 : 68 + width, 90:164].any(axis=0).all()
        assert found[:, 90:160].sum(axis=0).mean() == pytest.approx(width, abs=0.15)


def test_a_tail_that_is_faint_in_places_is_kept_beyond_them(rng: np.random.Generator) -> None:
    true = np.zeros(SHAPE)
    cv2.ellipse(true, (50, 70), (35, 30), 0, 0, 360, 1.0, -1)
    true[70, 80:165] = 1.0
    true[70, 100:160:12] = 0.3  # less than half of what is beside it
    found = cut_out(filmed(true, np.array((70, 80, 150)), GREEN, rng))
    kept = np.delete(found[70, 86:165], np.arange(14, 74, 12))
    assert kept.all()


def test_light_that_the_screen_throws_back_moves_no_edge(rng: np.random.Generator) -> None:
    true = np.zeros(SHAPE, np.uint8)
    cv2.ellipse(true, (90, 70), (60, 40), 0, 0, 360, 1, -1)
    share = cv2.GaussianBlur(true.astype(np.float64), (0, 0), 0.6)
    spill = 0.35 * np.exp(-cv2.distanceTransform(true, cv2.DIST_L2, 5) / 3)[:, :, None]
    for subject in SUBJECTS:
        image = filmed(share, np.array(subject) * (1 - 0.3 * spill) + spill * np.array(GREEN), GREEN, rng)
        assert overlap(cut_out(image), true.view(np.bool_)) > 0.99


def test_nothing_is_found_on_a_bare_screen_and_what_is_given_is_not_changed(rng: np.random.Generator) -> None:
    share = ramp(1.5)
    bare = filmed(np.zeros_like(share), np.zeros(3), GREEN, rng)
    model: ChromaModel = key_colour(bare)
    assert not cut_out(bare).any()
    assert not keyed_edge(np.zeros(SHAPE, dtype=bool), bare, np.float32(bare), model.sigma).any()
    image = filmed(share, np.array((70, 80, 150)), GREEN, rng)
    fat = cv2.dilate((share > 0).astype(np.uint8), np.ones((7, 7), np.uint8)).view(np.bool_)
    before = fat.copy()
    screen = np.broadcast_to(np.float32(GREEN), (*SHAPE, 3))
    assert keyed_edge(fat, image, screen, 2.0).sum() < fat.sum()
    np.testing.assert_array_equal(fat, before)
