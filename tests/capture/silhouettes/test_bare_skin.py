"""Bare skin before a floor of its colour: parts that hang on by it, and what is not lit as the floor behind it."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import pytest

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig
from calibration.geometry.transforms import RigidTransform
from capture.silhouettes.cleanup import Cleaning, clean_mask, silhouette_and_holes
from capture.silhouettes.shade import floor_of
from capture.silhouettes.views import floor_light
from capture.silhouettes.views.confirmation import Floor
from capture.silhouettes.views.floor_light import Picture, lit_alike, lit_otherwise
from capture.silhouettes.views.restoration import seen_above

SIZE = (200, 150)
LEG = ((0.0, 0.0, 40.0), 12.0)
"""Middle and radius of a ball that looks like shade, mm, above its own shadow."""
SHADOW = ((0.0, 0.0), 70.0)


def camera(index: int) -> LensCamera:
    turn = 0.5 * np.pi * index + 0.3
    centre = np.array([500 * np.cos(turn), 500 * np.sin(turn), 250.0])
    forward = np.array([0, 0, 40.0]) - centre
    forward /= np.linalg.norm(forward)
    right = np.cross(forward, [0, 0, 1.0])
    right /= np.linalg.norm(right)
    rotation = np.stack([right, np.cross(forward, right), forward])
    lens = PinholeLens(SIZE, np.array([[260.0, 0, 99.5], [0, 260.0, 74.5], [0, 0, 1]]))
    return LensCamera(f"cam{index}", lens, RigidTransform(rotation, -rotation @ centre))


RIG = Rig(tuple(camera(index) for index in range(4)))
FRAMES = [(view, (0, 0)) for view in RIG]


def rays(view: LensCamera) -> tuple[np.ndarray, np.ndarray]:
    grid = np.stack(np.meshgrid(np.arange(SIZE[0], dtype=float), np.arange(SIZE[1], dtype=float)), axis=-1)
    return view.rays(grid)


def ball(view: LensCamera, centre: tuple[float, float, float], radius: float) -> np.ndarray:
    origins, directions = rays(view)
    towards = np.array(centre) - origins
    along = (towards * directions).sum(axis=-1)
    return np.asarray((towards**2).sum(axis=-1) - along**2 < radius**2)


def on_floor(view: LensCamera, centre: tuple[float, float], radius: float) -> np.ndarray:
    origins, directions = rays(view)
    points = origins + directions * (-origins[..., 2:] / directions[..., 2:])
    return np.asarray(np.linalg.norm(points[..., :2] - centre, axis=-1) < radius)


def scene(light_of_leg: float) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray], list[Picture]]:
    """Return what is surely the subject, its leg, its shadow, and image and empty scene in each view."""
    body, legs, shades, pictures = [], [], [], []
    for view in RIG:
        own = ball(view, (0.0, 0.0, 85.0), 25.0)
        leg = ball(view, *LEG) & ~own
        shade = on_floor(view, *SHADOW) & ~own & ~leg
        ratio = np.ones((SIZE[1], SIZE[0], 3), np.float32)
        ratio[shade] = 0.7
        ratio[leg] = light_of_leg
        ratio[own] = 0.2
        ground = np.full_like(ratio, 200.0)
        image = np.rint(200.0 * ratio).astype(np.uint8)
        picture = Picture(image, ground, np.ones(3, np.float32), (0, 0))
        body, legs, shades, pictures = [*body, own], [*legs, leg], [*shades, shade], [*pictures, picture]
    return body, legs, shades, pictures


def reference(
    asked: Sequence[np.ndarray], masks: Sequence[np.ndarray], pictures: Sequence[Picture], rig: Rig, height: float
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return what `lit_otherwise` and `lit_alike` do for whole images, pair by pair, by images of all ratios."""
    square = np.ones((5, 5), np.uint8)
    ratios, free = [], [cv2.dilate(mask.view(np.uint8), square) == 0 for mask in masks]
    for image, ground, light, _ in pictures:
        full = cv2.blur(ground * light, (3, 3))
        ratios.append(cv2.blur(image.astype(np.float32), (3, 3)) / np.maximum(full, np.float32(8.0)))
    low = [cv2.erode(ratio, square) * np.float32(0.94) for ratio in ratios]
    high = [cv2.dilate(ratio, square) * np.float32(1.06) for ratio in ratios]
    otherwise, alike = [], []
    for index, view in enumerate(rig):
        unlike, like = np.zeros_like(asked[index]), np.zeros_like(asked[index])
        for y, x in zip(*(2 * one for one in np.nonzero(asked[index][::2, ::2])), strict=True):
            origin, ray = view.rays(np.array([float(x), float(y)]))
            place = origin + (height - origin[2]) / ray[2] * ray
            lights = []
            for other, camera_of in enumerate(rig):
                if other != index:
                    u, v = np.rint(camera_of.project(place)).astype(int)
                    if 0 <= u < SIZE[0] and 0 <= v < SIZE[1] and free[other][v, u]:
                        lights.append((low[other][v, u], high[other][v, u]))
            known = any((a[0] <= b[1]).all() and (b[0] <= a[1]).all() for n, a in enumerate(lights) for b in lights[:n])
            own = ratios[index][y, x]
            agree = [(least <= own).all() and (own <= most).all() for least, most in lights]
            unlike[y : y + 2, x : x + 2] = known and not any(agree)
            like[y : y + 2, x : x + 2] = bool(agree) and all(agree)
        otherwise.append(unlike & asked[index])
        alike.append(like & asked[index])
    return otherwise, alike


def test_a_foot_below_a_shank_of_the_floors_colour_is_kept_and_what_lies_apart_is_not() -> None:
    evidence = np.zeros((120, 90), np.uint8)
    evidence[10:60, 20:60] = 200  # a body
    evidence[74:80, 40:50] = 200  # its foot
    evidence[30:36, 75:85] = 200  # something beside it, as near
    shank = np.zeros_like(evidence)
    shank[60:74, 42:48] = 200
    plain = np.maximum(evidence, shank)
    for mask in (
        silhouette_and_holes(evidence, Cleaning(), plain)[0],
        clean_mask(evidence > 0, Cleaning(), plain),
    ):
        assert mask[74:80, 40:50].all() and not mask[30:36, 75:85].any() and not mask[62:72].any()
    assert not silhouette_and_holes(evidence, Cleaning())[0][74:80].any()
    # Not over any distance: a shadow reaches far.
    long = np.zeros((120, 90), np.uint8)
    long[10:60, 20:60], long[100:106, 40:50] = 200, 200
    plain = long.copy()
    plain[60:100, 42:48] = 200
    assert not silhouette_and_holes(long, Cleaning(), plain)[0][100:].any()


def test_what_is_not_lit_as_the_floor_behind_it_is_no_shade() -> None:
    body, legs, shades, pictures = scene(0.85)
    asked = [leg | shade for leg, shade in zip(legs, shades, strict=True)]
    found = lit_otherwise(asked, body, pictures, FRAMES, 0.0)
    for leg, shade, out in zip(legs, shades, found, strict=True):
        assert not (out & ~leg & ~shade).any()
        assert out[shade].mean() < 0.02
    # Where the leg's own silhouette hides the floor from the other views, nothing is known of its light.
    assert np.concatenate([out[leg] for leg, out in zip(legs, found, strict=True)]).mean() > 0.4
    # As dark as its shadow it is told by the floor beyond that alone.
    same = lit_otherwise(asked, body, scene(0.7)[3], FRAMES, 0.0)
    before_shade = [on_floor(view, SHADOW[0], SHADOW[1] - 4.0) for view in RIG]
    assert not any((out & dark).any() for out, dark in zip(same, before_shade, strict=True))
    alone = lit_otherwise(asked[:2], body[:2], pictures[:2], FRAMES[:2], 0.0)
    assert not any(out.any() for out in alone)  # one other view is no witness: something may hide the floor from it


def test_what_is_lit_as_all_others_see_the_floor_behind_it_is_shade() -> None:
    body, legs, shades, pictures = scene(0.85)
    asked = [leg | shade for leg, shade in zip(legs, shades, strict=True)]
    found = lit_alike(asked, body, pictures, FRAMES, 0.0)
    # What the body hides from all others, and what the leg hides from one of them, is not known.
    assert np.concatenate([out[shade] for shade, out in zip(shades, found, strict=True)]).mean() > 0.6
    inner = [leg & (cv2.erode(leg.view(np.uint8), np.ones((7, 7), np.uint8)) > 0) for leg in legs]
    assert np.concatenate([out[leg] for leg, out in zip(inner, found, strict=True)]).mean() < 0.05
    assert not any((out & ~some).any() for out, some in zip(found, asked, strict=True))


def test_the_compiled_look_at_the_floor_is_that_of_the_reference() -> None:
    """Noise, a coloured light, a scene of many brightnesses; windows of the images say the same as these do."""
    rng = np.random.default_rng(4)
    body, legs, shades, pictures = scene(0.85)
    asked = [leg | shade for leg, shade in zip(legs, shades, strict=True)]
    noisy = []
    for picture in pictures:
        ground = rng.uniform(2.0, 220.0, picture.ground.shape).astype(np.float32)
        light = rng.uniform(0.9, 1.1, 3).astype(np.float32)
        image = np.clip(np.rint(ground * light * picture.image / 200.0 + rng.normal(0.0, 2.0, ground.shape)), 0, 255)
        noisy.append(Picture(image.astype(np.uint8), ground, light, (0, 0)))
    found, alike = (one(asked, body, noisy, FRAMES, 0.0) for one in (lit_otherwise, lit_alike))
    for told, wanted in zip((found, alike), reference(asked, body, noisy, RIG, 0.0), strict=True):
        assert sum(map(np.count_nonzero, wanted)) > 100
        # Lines of sight are interpolated: one in a thousand may end in the pixel beside.
        differing = sum(np.count_nonzero(a != b) for a, b in zip(told, wanted, strict=True))
        assert differing <= 0.005 * sum(map(np.count_nonzero, asked))
    # Windows with room for what is around what is asked; even corners keep the grid of lines.
    windows = [(slice(2 * n, SIZE[1] - 3 * n), slice(4 * n, SIZE[0] - n)) for n in range(len(RIG))]
    parts = [
        Picture(one.image[here].copy(), one.ground, one.light, (here[0].start, here[1].start))
        for one, here in zip(noisy, windows, strict=True)
    ]
    frames = [(view, (here[1].start, here[0].start)) for view, here in zip(RIG, windows, strict=True)]
    close = lit_otherwise(
        *([image[here].copy() for image, here in zip(images, windows, strict=True)] for images in (asked, body)),
        parts, frames, 0.0,
    )  # fmt: skip
    for whole, part, here in zip(found, close, windows, strict=True):
        np.testing.assert_array_equal(whole[here], part)


def test_what_is_no_shade_by_its_light_may_be_anywhere_above_the_floor() -> None:
    body, legs, shades, pictures = scene(0.85)
    wide = [own | leg | shade for own, leg, shade in zip(body, legs, shades, strict=True)]
    asked = [leg | shade for leg, shade in zip(legs, shades, strict=True)]
    floor = Floor(-2.0, 1, 60.0, 0.0)
    told = lit_otherwise(asked, body, pictures, FRAMES, 0.0)
    through = [False] * len(RIG)
    before, _ = seen_above(body, wide, RIG, floor, through=through)
    after, _ = seen_above(body, wide, RIG, floor, through=through, no_shade=told)
    gained = sum(np.count_nonzero(a & ~b & leg) for a, b, leg in zip(after, before, legs, strict=True))
    assert gained > 0.3 * sum(map(np.count_nonzero, legs))
    wrong = sum(np.count_nonzero(a & ~b & shade) for a, b, shade in zip(after, before, shades, strict=True))
    assert wrong < 0.05 * sum(map(np.count_nonzero, shades))


def test_marks_of_the_floor_are_believed_below_who_lies_down() -> None:
    """Four balls in a row, 40 mm high and 190 long; shade below the floor makes them seem to lie 12 mm lower."""
    frames = []
    for n in range(-1, 2):
        row = [(-75.0 + 50.0 * k, 10.0 * n, 8.0) for k in range(4)]
        frames.append([np.any([ball(view, place, 20.0) for place in row], axis=0) for view in RIG])
    plain = [np.full((*SIZE[::-1], 3), 100.0, np.float32) for _ in RIG]
    bare = floor_of(frames, RIG, plain)
    assert bare is not None and bare.height < -12.0 and np.isnan(bare.marks)
    found = floor_of(frames, RIG, plain, [0.0])
    assert found is not None and found.marks == 0.0 and found.height == pytest.approx(0.0, abs=2.0)
    far = floor_of(frames, RIG, plain, [40.0])
    assert far is not None and np.isnan(far.marks)


def test_places_seen_are_the_nearest_pixels_that_nothing_hides() -> None:
    rng = np.random.default_rng(5)
    hidden = rng.random((30, 40)) < 0.3
    views = floor_light._Windows(
        np.zeros((1, 36)), np.array([[7, 11]]), np.array([hidden.shape]), np.zeros(1, np.int64),
        hidden.ravel().astype(np.uint8),
    )  # fmt: skip
    seen = rng.uniform(-5.0, 60.0, (2, 500))
    seen[:, :4] = [[np.nan, 10.5, 50.5, 12.5], [np.nan, 6.5, 36.5, 8.5]]  # nowhere; the rim; halves
    out = np.empty(500, np.int64)
    floor_light._free_pixels(views, 0, seen, out)
    wanted = np.full(500, -1)
    for n, (x, y) in enumerate(seen.T - (11, 7)):
        if not np.isfinite(x) or not (-0.5 <= x <= 39.5 and -0.5 <= y <= 29.5):
            continue
        row, column = int(np.rint(y)), int(np.rint(x))
        if row < 30 and column < 40 and not hidden[row, column]:
            wanted[n] = row * 40 + column
    np.testing.assert_array_equal(out, wanted)


def ratio_at(picture: Picture, y: int, x: int, c: int) -> np.float32:
    """Return image over ground of one pixel and channel, each the mean of nine pixels, mirrored beyond the window."""
    (height, width), (top, left) = picture.image.shape[:2], picture.corner
    part, full = np.float32(0.0), np.float32(0.0)
    rows = [min(abs(y + dy), 2 * height - 2 - y - dy) for dy in (-1, 0, 1)]
    for column in (min(abs(x + dx), 2 * width - 2 - x - dx) for dx in (-1, 0, 1)):
        now = np.float32(sum(int(picture.image[row, column, c]) for row in rows))
        one, two, three = (picture.ground[top + row, left + column, c] * picture.light[c] for row in rows)
        part, full = part + now, full + (one + two + three)
    ninth = np.float32(1.0 / 9.0)
    return np.float32(part * ninth / max(full * ninth, np.float32(8.0)))


@pytest.mark.parametrize("channels", [1, 3])
def test_ratios_of_pixels_and_least_and_most_around_them(channels: int) -> None:
    rng = np.random.default_rng(6)
    image = rng.integers(0, 256, (9, 13, channels), dtype=np.uint8)
    ground = rng.uniform(1.0, 255.0, (14, 19, channels)).astype(np.float32)
    picture = Picture(image, ground, rng.uniform(0.8, 1.2, channels).astype(np.float32), (3, 4))
    ratios = np.array([[[ratio_at(picture, y, x, c) for c in range(channels)] for x in range(13)] for y in range(9)])
    flat = floor_light._flat(picture)
    pixels = np.array([[0, 0, 3, 3, 3, 8], [2, 12, 0, 5, 12, 7]])
    np.testing.assert_array_equal(floor_light._ratios_at(flat, pixels), ratios[pixels[0], pixels[1]])
    for top, bottom, left, right in ((0, 9, 0, 13), (0, 3, 5, 13), (4, 9, 0, 2), (2, 5, 3, 4)):
        low, high = np.zeros((2, 9, 13 * channels), np.float32)
        floor_light._fill_ranges(flat, (top, bottom, left, right), low, high)
        for y in range(top, bottom):
            for x in range(left, right):
                around = ratios[max(y - 2, 0) : y + 3, max(x - 2, 0) : x + 3].reshape(-1, channels)
                here = slice(x * channels, (x + 1) * channels)
                np.testing.assert_array_equal(low[y, here], around.min(axis=0) * np.float32(1.0 - 0.06))
                np.testing.assert_array_equal(high[y, here], around.max(axis=0) * np.float32(1.0 + 0.06))
        outside = np.ones(low.shape, bool)
        outside[top:bottom, left * channels : right * channels] = False
        assert not low[outside].any() and not high[outside].any()
