"""Compiled looks at a silhouette's rim and at how the ground is lit, against the same written plainly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import pytest

from capture.backgrounds.background import Background
from capture.backgrounds.uncovered import filled, variation_of
from capture.discs import disc
from capture.silhouettes.cleanup import Cleaning, holes_of
from capture.silhouettes.difference import PlateModel
from capture.silhouettes.doubts import _AROUND_PX, _HOLE_PX, Doubt, _differs, _evidently, _ratios, doubt_of
from capture.silhouettes.edges.half_way import drop_ground
from capture.silhouettes.models import CameraModel
from capture.silhouettes.views.confirmation import _kept
from capture.silhouettes.views.two_sided import _has_more
from tests.capture.silhouettes.test_lively_places import SHAPE, scene


def plain_half_way_edge(mask: np.ndarray, image: np.ndarray, ground: np.ndarray, light: np.ndarray) -> np.ndarray:
    """Return what `drop_ground` leaves, with means over all of the image."""
    here, picture = mask.view(np.uint8).copy(), image.astype(np.float64)
    expected = ground.astype(np.float64) * light

    def shrunk(pixels: int) -> np.ndarray:
        square = np.ones((2 * pixels + 1, 2 * pixels + 1), np.uint8)
        return cv2.erode(here, square, borderType=cv2.BORDER_CONSTANT, borderValue=1)

    for depth in (2, 1):
        inner, side = shrunk(depth), (2 * depth + 3, 2 * depth + 3)
        share = cv2.blur(inner.astype(np.float64), side)
        own = cv2.blur(picture * inner[:, :, None], side).reshape(picture.shape)
        for _ in range(depth):
            rim = (here > shrunk(1)) & (share > 0.02)
            contrast = own / np.maximum(share, 1e-9)[:, :, None] - expected
            power = np.square(contrast).sum(axis=2)
            part = ((picture - expected) * contrast).sum(axis=2)
            here[rim & (power > picture.shape[2] * 16.0**2) & (part < 0.5 * power)] = 0
    return here.view(np.bool_)


def half_way_edge(mask: np.ndarray, *pictures: Any, **options: Any) -> np.ndarray:
    """Return what `drop_ground` leaves of a mask."""
    out = mask.copy()
    drop_ground(out, *pictures, **options)
    return out


@pytest.mark.parametrize("channels", [1, 3])
def test_the_rim_is_dropped_as_written_plainly(channels: int, rng: np.random.Generator) -> None:
    ground = np.full((90, 120, channels), 150, np.float32) + rng.normal(0, 3, (90, 120, channels)).astype(np.float32)
    disc = np.zeros((90, 120), np.uint8)
    cv2.circle(disc, (60, 30), 36, 1, -1)  # cut by the upper border
    cv2.line(disc, (60, 60), (119, 85), 1, 3)  # a thin part that leaves the image
    share = cv2.GaussianBlur(disc.astype(np.float32), (0, 0), 1.5)[:, :, None]
    image = np.clip(share * 60 + (1 - share) * ground * 0.9 + rng.normal(0, 4, ground.shape), 0, 255).astype(np.uint8)
    fat = cv2.dilate(disc, np.ones((5, 5), np.uint8)).view(np.bool_)
    light = np.full(channels, 0.9)
    mended = half_way_edge(fat, image, ground, light)
    np.testing.assert_array_equal(mended, plain_half_way_edge(fat, image, ground, light))
    assert 0 < np.count_nonzero(mended) < np.count_nonzero(fat)
    settled = fat.copy()
    settled[:, 90:] = False
    some = half_way_edge(fat, image, ground, light, settled)
    assert (some[settled] == fat[settled]).all()
    np.testing.assert_array_equal(some[:, 95:], mended[:, 95:])
    part = (slice(20, 80), slice(15, 110))  # of larger images the same as of that part of them
    wanted = half_way_edge(fat[part].copy(), image[part], ground[part], light)
    found = half_way_edge(fat[part].copy(), image, ground[10:], light, corners=((20, 15), (10, 15)))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("step", [1, 2, 3])
def test_light_is_the_ratio_of_means_of_nine_pixels(step: int, rng: np.random.Generator) -> None:
    image = rng.integers(0, 255, (20, 31, 3)).astype(np.uint8)
    centre = rng.uniform(0, 255, (20, 31, 3)).astype(np.float32)
    gain = np.array([0.9, 1.0, 1.1], np.float32)
    smooth = [cv2.blur(one.astype(np.float64), (3, 3))[::step, ::step] for one in (image, centre * gain)]
    wanted = smooth[0] / np.maximum(smooth[1], 8.0)
    whole = _ratios(image, centre, gain, step, (20, 31), ((0, 0), (0, 0)))
    np.testing.assert_allclose(whole, wanted, rtol=1e-5)
    part = _ratios(image[2:].copy(), centre, gain, step, (9, 12), ((1, 4), (3, 4)))
    alone = _ratios(image[3:12, 4:16].copy(), centre[3:12, 4:16].copy(), gain, step, (9, 12), ((0, 0), (0, 0)))
    np.testing.assert_array_equal(part, alone)


def test_the_window_of_a_doubt_holds_what_differs_and_what_judges_it(rng: np.random.Generator) -> None:
    model, _ = scene(rng, 1)
    mask = np.zeros(SHAPE, dtype=bool)
    mask[200:240, 200:230] = True
    quiet = np.clip(model.background.centre, 0, 255).astype(np.uint8)
    quiet[200:240, 200:230] = 20
    quiet[215:218, 230:250] = 20  # hangs together with it
    doubt = doubt_of(quiet, mask, model, Cleaning(), apart=False)
    assert doubt is not None and isinstance(model, PlateModel)
    rows, columns = doubt.window
    assert rows.start <= 200 - _AROUND_PX and rows.stop >= 240 + _AROUND_PX
    assert columns.start <= 200 - _AROUND_PX and columns.stop >= 250 + _AROUND_PX
    assert rows.stop - rows.start < 110 and columns.stop - columns.start < 120
    assert doubt.wide[216 - rows.start, 245 - columns.start]


def test_what_hangs_together_with_a_silhouette_is_followed_as_far_as_its_room(rng: np.random.Generator) -> None:
    model, _ = scene(rng, 1)
    image = np.clip(model.background.centre, 0, 255).astype(np.uint8)
    mask = np.zeros(SHAPE, dtype=bool)
    mask[180:300, 200:230] = True
    image[mask] = 20
    image[215:218, 230:330] = np.uint8(0.8 * image[215:218, 230:330])  # a long shade, beyond what was looked at first
    image[190:193, 300:330] = 20  # evident, and apart from it
    places = (slice(170, 310), slice(190, 240)), (slice(180, 200), slice(290, 340))
    light = model.light(image)
    known = model.measuring(image, light)
    for place in places:
        known.measure(place)
    doubts = [
        doubt_of(image, mask, model, Cleaning(), light, apart=False, known=one)
        for one in (known, None, model.measured(image, (slice(0, SHAPE[0]), slice(0, SHAPE[1])), light))
    ]
    for doubt in doubts:
        assert doubt is not None and doubts[2] is not None
        assert doubt.wide[216 - doubt.window[0].start, 325 - doubt.window[1].start]
    assert doubts[0].window == doubts[2].window
    np.testing.assert_array_equal(doubts[0].plain, doubts[2].plain)
    np.testing.assert_array_equal(doubts[0].beyond, doubts[2].beyond)
    assert doubts[0].beyond[191 - doubts[0].window[0].start, 315 - doubts[0].window[1].start]


def test_specks_do_not_widen_the_window_of_a_doubt(rng: np.random.Generator) -> None:
    model, _ = scene(rng, 1)
    mask = np.zeros(SHAPE, dtype=bool)
    mask[200:240, 200:230] = True
    image = np.clip(model.background.centre, 0, 255).astype(np.uint8)
    image[mask] = 20
    quiet = image.copy()
    for row, column in ((176, 176), (250, 260), (210, 270)):
        image[row, column : column + 2] = 20
    for apart in (False, True):
        with_specks, without = (doubt_of(one, mask, model, Cleaning(), apart=apart) for one in (image, quiet))
        assert with_specks is not None and without is not None and with_specks.window == without.window
    image[225:230, 265:272] = 20  # what is no speck has its place in it
    wider = doubt_of(image, mask, model, Cleaning(), apart=True)
    assert wider is not None and wider.window[1].stop >= 272
    rows, columns = wider.window
    assert wider.beyond[227 - rows.start, 268 - columns.start]
    assert not wider.beyond[210 - rows.start, 270 - columns.start]


@pytest.mark.parametrize("place", [(0, 30, 0, 41), (3, 17, 5, 33), (29, 30, 40, 41)])
def test_what_is_evident_is_so_in_the_mean_of_nine_pixels(
    place: tuple[int, int, int, int], rng: np.random.Generator
) -> None:
    values = rng.integers(0, 255, (30, 41)).astype(np.uint8)
    top, bottom, left, right = place
    wanted = cv2.blur(values, (3, 3))[top:bottom, left:right] >= 128
    np.testing.assert_array_equal(_evidently(values, place, np.uint16(9 * 128 - 4), place).view(np.bool_), wanted)


@pytest.mark.parametrize("known", [(0, 30, 0, 41), (4, 11, 6, 20), (0, 2, 39, 41), (29, 30, 0, 1), (0, 0, 0, 0)])
def test_what_was_not_measured_is_not_looked_at(known: tuple[int, int, int, int], rng: np.random.Generator) -> None:
    values, (top, bottom, left, right) = np.zeros((30, 41), np.uint8), known
    values[top:bottom, left:right] = rng.integers(0, 255, (bottom - top, right - left))
    for place in ((0, 30, 0, 41), (3, 17, 5, 33)):
        wanted = cv2.blur(values, (3, 3))[place[0] : place[1], place[2] : place[3]] >= 40
        np.testing.assert_array_equal(_evidently(values, place, np.uint16(9 * 40 - 4), known).view(np.bool_), wanted)


@pytest.mark.parametrize("channels", [1, 3])
def test_pixels_differ_by_units_of_their_error(channels: int, rng: np.random.Generator) -> None:
    image = rng.integers(0, 255, (20, 31, channels)).astype(np.uint8)
    centre = rng.uniform(20, 255, (20, 31, channels)).astype(np.float32)
    spread = rng.uniform(1, 4, (20, 31, channels)).astype(np.float32)
    gain, at = np.full(channels, 0.9, np.float32), (np.array([0, 7, 19]), np.array([30, 4, 0]))
    ratio, error = (rng.uniform(0.1, 1.0, (3, channels)).astype(np.float32) for _ in range(2))
    ground = centre[at] * gain
    power = np.square(spread[at]) + np.square((error + 0.03) * ground)
    wanted = (np.square(image[at] - ratio * ground) / power).mean(axis=1)
    places = np.stack(at)
    for above, left in ((0, 0), (3, 2)):  # of larger images, from their corners on
        grounds = (*(np.pad(one, ((above, 0), (left, 0), (0, 0))) for one in (centre, spread)), gain)
        found = _differs(image, grounds, places, ratio, error, ((0, 0), (above, left)))
        np.testing.assert_allclose(found, wanted, rtol=1e-4)


@pytest.mark.parametrize("step", [1, 6])
def test_the_variation_of_the_ground_is_its_distance_from_means_of_squares(step: int, rng: np.random.Generator) -> None:
    values = rng.normal(100.0, 10.0, (50, 60, 3)).astype(np.float32)
    known = rng.random((50, 60)) < 0.7
    around = np.zeros_like(known)
    around[10:40, 5:50] = True
    wanted = []
    for scale in (4, 8, 16, 32, 64):
        side = (2 * round(1.7 * scale / step) + 1,) * 2
        mean = cv2.blur(values * known[:, :, None], side) / cv2.blur(known.astype(np.float32), side)[:, :, None]
        wanted.append(1.4826 * np.median(np.abs(values - mean)[known & around], axis=0))
    found = variation_of(values, known, around, step)
    np.testing.assert_allclose(found, np.maximum.accumulate(wanted, axis=0), rtol=1e-3)


def test_what_is_not_known_is_filled_in_from_around(rng: np.random.Generator) -> None:
    rows, columns = np.mgrid[:60, :80].astype(np.float32)
    slope = np.stack([2.0 * rows + columns, 100.0 - rows], axis=2).astype(np.float32)
    known = np.ones((60, 80), dtype=bool)
    known[20:40, 30:50] = False
    hidden = np.where(known[:, :, None], slope, np.float32(7.0))
    found = filled(hidden, known)
    np.testing.assert_allclose(found[known], slope[known], rtol=1e-5)
    assert np.abs(found - slope)[~known].max() < 12.0  # a hole 20 px wide in slopes of 2 and 1 per px


def test_a_silhouette_is_kept_around_what_of_its_grid_is_confirmed(rng: np.random.Generator) -> None:
    for shape, corner in (((30, 41), (3, 6)), ((9, 12), (0, 0)), ((5, 5), (4, 4))):
        mask = rng.random(shape) < 0.8
        grid = (-(-(shape[0] - corner[0]) // 2), -(-(shape[1] - corner[1]) // 2))
        met = rng.random(grid) < 0.1
        near = cv2.dilate(met.view(np.uint8), np.ones((3, 3), np.uint8)).repeat(2, axis=0).repeat(2, axis=1)
        wanted = np.zeros(shape, dtype=bool)
        here = wanted[corner[0] :, corner[1] :]
        here |= near[: here.shape[0], : here.shape[1]] > 0
        np.testing.assert_array_equal(_kept(mask, met, corner), wanted & mask)


@pytest.mark.parametrize("weak", [0.0, 0.002, 0.3])
def test_narrow_gaps_in_what_is_evident_of_a_silhouette_are_none(weak: float, rng: np.random.Generator) -> None:
    mask = np.zeros((60, 80), dtype=bool)
    mask[:45, 12:66] = True
    plain = np.where(rng.random(mask.shape) < weak, 0, 200).astype(np.uint8)
    plain[10:14, 20:40] = plain[20:40, 50:64] = 0 if weak > 0 else 200
    beyond, window = rng.random(mask.shape) < 0.1, (slice(0, 60), slice(0, 80))
    ground = Background(np.zeros((60, 80, 1), np.float32), np.ones((60, 80, 1), np.float32))
    doubt = Doubt(window, plain, beyond, np.uint8(32), np.zeros((60, 80, 1), np.uint8), np.ones(1), ground, (0, 0))
    own, more = doubt.evident(mask)
    differs = (cv2.blur(plain, (3, 3)) >= 64).view(np.uint8)
    np.testing.assert_array_equal(own, cv2.morphologyEx(differs, cv2.MORPH_CLOSE, disc(_HOLE_PX)).view(bool) & mask)
    np.testing.assert_array_equal(more, beyond & ~mask)
    assert (own is mask) == (weak == 0)


@pytest.mark.parametrize("channels", [1, 3])
def test_what_hangs_together_with_a_silhouette_is_known_from_where_it_was_found(
    channels: int, rng: np.random.Generator
) -> None:
    model, image = scene(rng, channels, 0.5)
    image[:, 400:] = model.background.centre[:, 400:].astype(np.uint8)  # it ends in the room where it is looked for
    silhouette = np.zeros(SHAPE, dtype=bool)
    found = CameraModel("plate", model, Cleaning(), grey=channels == 1)
    doubt = found.silhouette_and_doubt(image, silhouette)
    assert doubt is not None and doubt.runs is not None
    mask = silhouette[doubt.window]
    some = mask & (rng.random(mask.shape) < 0.9)  # the other views take some of it out
    holes, other = holes_of(mask), replace(doubt, runs=None)
    np.testing.assert_array_equal(doubt.whole(some, holes), other.whole(some, holes))
    more = mask | (doubt.plain >= doubt.low)  # or give back parts of which nothing was found
    np.testing.assert_array_equal(doubt.whole(more, holes), other.whole(more, holes))


@pytest.mark.parametrize("share", [0.0, 0.01, 0.2])
def test_what_is_missing_right_next_to_a_silhouette_is_no_more(share: float, rng: np.random.Generator) -> None:
    mask = rng.random((30, 41)) < share
    near = cv2.dilate(mask.view(np.uint8), np.ones((5, 5), np.uint8)).view(np.bool_)
    for missing in (near & ~mask, rng.random(mask.shape) < 0.01, np.zeros_like(mask), np.eye(30, 41, dtype=bool)):
        assert _has_more(missing.view(np.uint8), mask.view(np.uint8)) == (missing & ~near).any()
