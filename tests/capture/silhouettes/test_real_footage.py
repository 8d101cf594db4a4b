"""What real footage asks for: a codec's noise, ground under a resting subject, shade, mirror images, mixed edges."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np
import pytest

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import RigidTransform
from capture.backgrounds.background import Background, background_of, empty_scene, noise_curve, noise_over
from capture.backgrounds.followed_inwards import brightest_modes, temporal_modes
from capture.backgrounds.which_ground import better_places
from capture.hull import overlap
from capture.hull.bounds import Box
from capture.recordings.recording import load_recording, save_recording
from capture.silhouettes import Cleaning
from capture.silhouettes.cleanup import holes_of
from capture.silhouettes.difference import PlateModel
from capture.silhouettes.doubts import doubt_of, standing_out
from capture.silhouettes.edges.half_way import drop_ground
from capture.silhouettes.ground import uncovered_ground
from capture.silhouettes.models import CameraModel
from capture.silhouettes.plausible import MaskFigures, implausible
from capture.silhouettes.shade import floor_of, learn_shade
from capture.silhouettes.still import still_parts
from capture.silhouettes.views.confirmation import Floor, confirmed
from capture.silhouettes.views.floor_texture import pixel_at
from capture.silhouettes.views.lines_of_sight import Scene
from capture.silhouettes.views.ray_agreement import ray_agreement
from capture.silhouettes.views.restoration import seen_above
from capture.silhouettes.views.two_sided import two_sided

SIZE = (200, 150)
RADIUS = 40.0


def camera(index: int, count: int) -> LensCamera:
    turn = 2 * np.pi / count * index + 0.3
    centre = np.array([500 * np.cos(turn), 500 * np.sin(turn), 250.0])
    forward = np.array([0, 0, RADIUS]) - centre
    forward /= np.linalg.norm(forward)
    right = np.cross(forward, [0, 0, 1.0])
    right /= np.linalg.norm(right)
    rotation = np.stack([right, np.cross(forward, right), forward])
    lens = PinholeLens(SIZE, np.array([[260.0, 0, 99.5], [0, 260.0, 74.5], [0, 0, 1]]))
    return LensCamera(f"cam{index}", lens, RigidTransform(rotation, -rotation @ centre))


RIG = Rig(tuple(camera(index, 5) for index in range(5)))


def rays(view: LensCamera) -> tuple[np.ndarray, np.ndarray]:
    grid = np.stack(np.meshgrid(np.arange(SIZE[0], dtype=float), np.arange(SIZE[1], dtype=float)), axis=-1)
    return view.rays(grid)


def ball(view: LensCamera, centre: tuple[float, float, float]) -> np.ndarray:
    origins, directions = rays(view)
    towards = np.array(centre) - origins
    along = (towards * directions).sum(axis=-1)
    return np.asarray((towards**2).sum(axis=-1) - along**2 < RADIUS**2)


def on_floor(view: LensCamera, centre: tuple[float, float], radius: float) -> np.ndarray:
    origins, directions = rays(view)
    points = origins + directions * (-origins[..., 2:] / directions[..., 2:])
    return np.asarray(np.linalg.norm(points[..., :2] - centre, axis=-1) < radius)


def test_noise_of_a_codec_that_repeats_still_blocks_is_seen_over_the_whole_length(rng: np.random.Generator) -> None:
    scene = np.full((64, 96, 1), 120.0)
    looks = [np.clip(scene + rng.normal(0, 4.0, scene.shape), 0, 255).astype(np.uint8) for _ in range(4)]
    stack = np.stack([looks[n // 4] for n in range(16)])
    assert noise_curve([(stack[0], stack[1])]).sigma.max() == 1.0  # the floor: nothing changes
    assert noise_over(stack).sigma == pytest.approx(4.0, rel=0.15)


@pytest.mark.parametrize("subject", [25.0, 230.0])
def test_a_subject_that_rests_half_of_the_time_is_not_taken_for_ground(
    subject: float, rng: np.random.Generator
) -> None:
    """It fidgets on one place for 26 of 40 images, then walks about; neither dark nor bright subjects leave a ghost."""
    rows, columns = np.mgrid[:120, :180]
    ground = 120 + 30 * (columns > 90) + cv2.GaussianBlur(rng.normal(0, 40, (120, 180)), (0, 0), 4.0)
    images = []
    for n in range(40):
        x, y = (60 + rng.integers(-4, 5), 60 + rng.integers(-4, 5)) if n < 26 else (20 + 11 * (n - 26), 85)
        here = (columns - x) ** 2 + (rows - y) ** 2 < 16**2
        scene = np.where(here, subject, ground)
        images.append(np.clip(scene + rng.normal(0, 2, scene.shape), 0, 255).astype(np.uint8))
    stack = np.stack(images)[:, :, :, None]
    assert np.abs(np.median(stack[:, 55:65, 55:65, 0], axis=0) - subject).max() < 10  # the median is the subject
    found = uncovered_ground(stack, noise_over(stack), 0.5)
    wrong = np.abs(found.background.centre[:, :, 0] - ground) > 12
    assert wrong.mean() < 0.01  # the subject covers 3.7 % of the image


def test_a_haunch_that_only_breathes_is_not_taken_for_ground_in_a_noisy_image(rng: np.random.Generator) -> None:
    """Its outline stirs by less than the noise of pixels shows, and more than that of cells does; a head turns."""
    rows, columns = np.mgrid[:400, :520]
    ground = 150 + cv2.GaussianBlur(rng.normal(0, 60, rows.shape), (0, 0), 8.0)
    images = []
    for n in range(24):
        breath, turn = 0.5 * np.sin(1.9 * n), 25 * np.sin(0.7 * n)
        haunch = np.hypot(columns - 240, rows - 200) - 60 - breath
        head = np.hypot(columns - 320, rows - 200 - turn) - 30
        cover = np.clip(0.5 - np.minimum(haunch, head), 0.0, 1.0)
        scene = ground + cover * (35 - ground)
        images.append(np.clip(scene + rng.normal(0, 5, scene.shape), 0, 255).astype(np.uint8))
    stack = np.stack(images)[:, :, :, None]
    found = uncovered_ground(stack, noise_over(stack), 0.5)
    covered = np.hypot(columns - 240, rows - 200) < 57
    assert found.seen[covered].mean() < 0.05
    wrong = np.abs(found.background.centre[:, :, 0] - ground) > 40  # the subject differs by 115
    assert wrong[covered].mean() < 0.05


def test_ground_that_lay_in_shade_but_for_a_few_images_is_that_in_full_light(rng: np.random.Generator) -> None:
    """A subject that rears once lights its floor in three images of forty."""
    images = np.full((40, 20, 30, 1), 150.0)
    images[:37, 5:15, 10:20] = 110.0
    stack = np.clip(images + rng.normal(0, 1, images.shape), 0, 255).astype(np.uint8)
    noise = noise_over(stack)
    found = brightest_modes(temporal_modes(stack, noise), np.full((20, 30), 40, np.int32), noise)
    assert found.background.centre == pytest.approx(150.0, abs=3.0)


def test_what_the_views_see_clear_of_the_floor_is_no_shade() -> None:
    """A ball with a smaller part on top that looks like shade, and real shade on the floor beside it."""
    views = list(RIG)
    body = [ball(view, (0.0, 0.0, RADIUS)) for view in views]
    top = [ball(view, (0.0, 30.0, 1.6 * RADIUS)) & ~mask for view, mask in zip(views, body, strict=True)]
    shade = [on_floor(view, (90.0, 0.0), 30.0) & ~mask for view, mask in zip(views, body, strict=True)]
    wide = [a | b | c for a, b, c in zip(body, top, shade, strict=True)]
    seen, _ = seen_above(body, wide, RIG, Floor(-1.0, 1, 8.0))
    for own, part, found in zip(body, top, seen, strict=True):
        assert not (found & own).any()
        assert found[part].mean() > 0.8
    dark = [c & ~b for b, c in zip(top, shade, strict=True)]
    left = sum(np.count_nonzero(a & b) for a, b in zip(seen, dark, strict=True))
    assert left < 0.1 * sum(map(np.count_nonzero, dark))
    # One way or the other: where lines through the inside are not asked for, the floor is asked first.
    quick, inside = seen_above(body, wide, RIG, Floor(-1.0, 1, 8.0), through=[False] * len(views))
    differ = sum(np.count_nonzero(a != b) for a, b in zip(seen, quick, strict=True))
    assert differ < 0.05 * sum(map(np.count_nonzero, seen)) and not any(one.any() for one in inside)
    # Without another view that shows it, it is nothing.
    alone, _ = seen_above(body, [wide[0], *body[1:]], RIG, Floor(-1.0, 1, 8.0))
    assert alone[0][top[0]].mean() < 0.8 * seen[0][top[0]].mean()


def test_a_part_that_stands_out_of_its_surroundings_is_given_back_and_smooth_shade_is_not(
    rng: np.random.Generator,
) -> None:
    rows, columns = np.mgrid[:120, :160]
    ground = np.float32(130) + cv2.GaussianBlur(rng.normal(0, 30, (120, 160)).astype(np.float32), (0, 0), 5.0)
    body = (columns - 80) ** 2 + (rows - 60) ** 2 < 25**2
    ear = ((columns - 80) ** 2 + (rows - 30) ** 2 < 8**2) & ~body
    dark = 1.0 - 0.35 * np.exp(-((columns - 80) ** 2 / 1800 + (rows - 88) ** 2 / 500))
    scene = np.where(body, 20, np.where(ear, 0.72 * ground, dark * ground))
    image = np.clip(scene + rng.normal(0, 1.5, scene.shape), 0, 255).astype(np.uint8)[:, :, None]
    model = PlateModel(Background(ground[:, :, None], np.full((120, 160, 1), 1.5, np.float32)))
    first = CameraModel("plate", model, Cleaning(), True).silhouette(image[:, :, 0])
    assert not first[ear].any()  # the ear looks like shade
    doubt = doubt_of(image[:, :, 0], first, model, Cleaning())
    assert doubt is not None
    assert doubt.plain.shape == first.shape
    wide = doubt.whole(first, holes_of(first))
    assert wide[ear].mean() > 0.9 and wide[95:105, 60:100].mean() > 0.9  # so does shade
    asked = wide & ~first & ((rows < 40) | ((rows > 84) & (rows < 100) & (abs(columns - 80) < 20)))
    found = standing_out(doubt, first, asked)
    assert found[ear].mean() > 0.85 and found[first].all()
    assert found[(rows > 88)].mean() < 0.02


def test_a_place_that_the_subject_came_to_once_is_not_still() -> None:
    masks = [np.zeros((40, 60), dtype=bool) for _ in range(8)]
    moves = np.zeros((40, 60), dtype=bool)
    for n, mask in enumerate(masks):
        mask[5:15, 3 + 2 * n : 13 + 2 * n] = True  # the subject
        mask[30:38, 50:58] = True  # a thing that was moved after the plate was made
    masks[3][30:38, 5:12] = True  # the subject's tail, once
    moves[5:15, 3:28] = True
    still = still_parts(masks, moves)
    assert still[30:38, 50:58].all() and np.count_nonzero(still) == 64


def test_two_sided_agreement_falls_with_what_is_too_much_and_what_is_missing() -> None:
    """The views agree with each other in all of these but one; the images do not."""
    true = [ball(view, (0.0, 0.0, RADIUS)) for view in RIG]
    evident = [(mask, mask) for mask in true]
    kernel = np.ones((9, 9), np.uint8)
    grown = [cv2.dilate(mask.view(np.uint8), kernel).view(np.bool_) for mask in true]
    shrunk = [cv2.erode(mask.view(np.uint8), kernel).view(np.bool_) for mask in true]
    half = [mask | (np.arange(SIZE[0]) < SIZE[0] // 2) for mask in true]
    cut = true[0].copy()
    cut[:70] = False
    floor = Floor(-1.0, 1)
    assert two_sided(true, evident, RIG, floor).min() > 0.99
    for wrong in (grown, shrunk, half):
        right = [overlap(a, b) for a, b in zip(wrong, true, strict=True)]
        np.testing.assert_allclose(two_sided(wrong, evident, RIG, floor), right, atol=0.08)
        assert ray_agreement(wrong, RIG).min() > 0.9 or wrong is half
    lacking = two_sided([cut, *true[1:]], evident, RIG, floor)
    assert lacking[0] < 0.8 and lacking[0] == pytest.approx(overlap(cut, true[0]), abs=0.05)
    assert np.isnan(two_sided(true, [None, *evident[1:]], RIG, floor)[0])


def test_of_a_silhouette_that_lost_all_its_pixels_nothing_is_said() -> None:
    """A scene is found from silhouettes as they were; the other views may then have taken all of one."""
    true = [ball(view, (0.0, 0.0, RADIUS)) for view in RIG]
    scene = Scene.of(true, RIG)
    left = [np.zeros_like(true[0]), *true[1:]]
    nothing = (left[0], left[0])
    two_ways = two_sided(left, [nothing, *((mask, mask) for mask in true[1:])], RIG, None, scene=scene)
    for scores in (two_ways, ray_agreement(left, RIG, scene)):
        assert np.isnan(scores[0]) and np.isfinite(scores[1:]).all()


def test_outlines_tell_the_ground_from_a_ghost() -> None:
    """A bright disc rests on one of two places; one ground has its ghost there, the other not."""
    rows, columns = np.mgrid[:60, :80]
    ground = np.full((60, 80, 1), 100.0, np.float32)
    ghost = ground.copy()
    ghost[(columns - 20) ** 2 + (rows - 30) ** 2 < 64] = 180.0
    images = []
    for n in range(12):
        here = (columns - (20 if n < 7 else 60)) ** 2 + (rows - 30) ** 2 < 64
        images.append(np.where(here, 180, 100).astype(np.uint8)[:, :, None])
    cells, noise, asked = np.stack(images), noise_curve([]), np.ones((60, 80), dtype=bool)
    assert not better_places(cells, ground, ghost, asked, noise).any()
    better = better_places(cells, ghost, ground, asked, noise)
    assert better[25:36, 15:26].all() and not better[:, 45:].any()
    assert not better_places(cells, ghost, ground, ~asked, noise).any()  # what never changed is not asked


def test_what_lies_on_the_floor_or_below_it_is_not_confirmed() -> None:
    """A ball on the floor, its shade beside it and its mirror image below, in five views."""
    floor = Floor(-1.0, 1)
    views = list(RIG)
    true = [ball(view, (0.0, 0.0, RADIUS)) for view in views]
    mirrored = [
        mask | (ball(view, (0.0, 0.0, -RADIUS)) & on_floor(view, (0, 0), 400))
        for view, mask in zip(views, true, strict=True)
    ]
    assert min(overlap(a, b) for a, b in zip(mirrored, true, strict=True)) < 0.75
    assert min(overlap(a, b) for a, b in zip(confirmed(true, RIG, floor), true, strict=True)) > 0.99
    cut = confirmed(mirrored, RIG, floor)
    assert min(overlap(a, b) for a, b in zip(cut, true, strict=True)) > 0.8
    bare = confirmed(mirrored, RIG, None)  # without a floor a mirror image is a body like any other
    assert max(overlap(a, b) for a, b in zip(bare, true, strict=True)) < 0.8
    # A shade that one view shows is nothing to the others.
    shaded = [true[0] | on_floor(views[0], (60.0, 60.0), 50.0), *true[1:]]
    assert overlap(confirmed(shaded, RIG, floor)[0], true[0]) > 0.97


def test_a_view_that_misses_a_part_does_not_take_it_from_the_others() -> None:
    views = list(RIG)
    true = [ball(view, (0.0, 0.0, RADIUS)) for view in views]
    half = true[0].copy()
    half[: int(np.nonzero(half)[0].mean())] = False
    cut = confirmed([half, *true[1:]], RIG, None)
    assert min(overlap(a, b) for a, b in zip(cut[1:], true[1:], strict=True)) > 0.96
    # A view that shows something else altogether destroys nothing.
    wrong = np.zeros_like(half)
    wrong[2:12, 2:12] = True
    kept = confirmed([wrong, *true[1:]], RIG, None)
    assert min(overlap(a, b) for a, b in zip(kept[1:], true[1:], strict=True)) > 0.99


def test_the_floor_is_where_the_subject_stands() -> None:
    frames = [[ball(view, (40.0 * n, 20.0, RADIUS)) for view in RIG] for n in range(-1, 2)]
    found = floor_of(frames, RIG)
    assert found is not None and found.up == 1
    assert found.height == pytest.approx(0.0, abs=8.0)  # a hull of five views has edges beyond the ball
    flying = [[ball(view, (0.0, 0.0, RADIUS + 60.0 * n)) for view in RIG] for n in range(3)]
    assert floor_of(flying, RIG) is None


def test_marks_on_the_floor_say_how_high_it_is(rng: np.random.Generator) -> None:
    """A mirror image makes the hull reach under the floor, which lies at 6 mm."""
    grain = cv2.GaussianBlur(rng.normal(0, 1, (400, 400)).astype(np.float32), (0, 0), 1.5)
    frames, scenes = [], []
    for view in RIG:
        origins, directions = rays(view)
        at = (origins + directions * ((6.0 - origins[..., 2]) / directions[..., 2])[..., None])[..., :2] / 2.0 + 200.0
        drawn = cv2.remap(grain, *at.astype(np.float32).transpose(2, 0, 1), cv2.INTER_LINEAR)
        scenes.append((100.0 + 60.0 * drawn[..., None]).clip(5, 250).repeat(3, axis=2).astype(np.float32))
    for n in range(-1, 2):
        both = [((40.0 * n, 20.0, 6.0 + RADIUS), (40.0 * n, 20.0, 0.0)) for _ in RIG]
        frames.append([ball(view, a) | ball(view, b) for view, (a, b) in zip(RIG, both, strict=True)])
    deep, plain = floor_of(frames, RIG), [np.full_like(scene, 100.0) for scene in scenes]
    assert deep is not None and deep.height < -20.0
    found, bare = floor_of(frames, RIG, scenes), floor_of(frames, RIG, plain)
    assert bare is not None and bare.height == deep.height  # nothing to go by
    assert found is not None and found.height == deep.height  # far from where the subject is lowest: another plane
    shallow = [[ball(view, (40.0 * n, 20.0, RADIUS)) for view in RIG] for n in range(-1, 2)]
    found = floor_of(shallow, RIG, scenes)
    assert found is not None and found.height == pytest.approx(
        6.0 - 0.4 * pixel_at(RIG, Box(*np.zeros((2, 3)))), abs=0.5
    )


@pytest.mark.parametrize("shift", [0.0, 5.0])
def test_the_scene_says_how_far_the_hue_of_its_shade_strays(shift: float, rng: np.random.Generator) -> None:
    """A beige floor, a body of nearly its hue; under a coloured lamp the shade is bluer by 5 grey levels."""
    floor, skin = np.array([120.0, 150.0, 170.0]), np.array([80.0, 115.0, 145.0])
    models, samples, true = [], [], []
    for view in RIG:
        images, masks = [], []
        for n in range(3):
            image = np.broadcast_to(floor, (SIZE[1], SIZE[0], 3)).copy()
            image[on_floor(view, (30.0 * n, 70.0), 45.0)] = 0.7 * floor + np.array([shift, 0.0, 0.0])
            masks.append(ball(view, (30.0 * n, 0.0, RADIUS)))
            image[masks[-1]] = skin if shift == 0.0 else np.array([30.0, 30.0, 40.0])
            images.append(np.clip(image + rng.normal(0, 1.5, image.shape), 0, 255).astype(np.uint8))
        empty = Background(
            np.broadcast_to(floor, images[0].shape).astype(np.float32), np.full(images[0].shape, 1.5, np.float32)
        )
        models.append(CameraModel("plate", PlateModel(empty, shadow_floor=0.42), Cleaning(), False))
        samples.append(images)
        true.append(masks)
    with ThreadPoolExecutor(1) as pool:
        learnt, _ = learn_shade(models, samples, RIG, pool)
    for model, images, masks in zip(learnt, samples, true, strict=True):
        assert overlap(model.silhouette(images[1]), masks[1]) > 0.96
    limits = [model.model.hue_limit for model in learnt if isinstance(model.model, PlateModel)]
    assert shift == 0.0 or min(limits) > 3.0


def test_an_edge_lies_half_way_between_subject_and_background() -> None:
    covered = np.zeros((60, 80), np.float32)
    cv2.circle(covered, (40 * 16 + 5, 30 * 16 + 3), 20 * 16, 1.0, cv2.FILLED, cv2.LINE_8, 4)
    fine = cv2.resize(covered, None, fx=8, fy=8, interpolation=cv2.INTER_NEAREST)
    soft = cv2.resize(cv2.GaussianBlur(fine, (0, 0), 5.0), (80, 60), interpolation=cv2.INTER_AREA)[:, :, None]
    image = np.rint(150 - 120 * soft).astype(np.uint8)
    ground = np.full((60, 80, 1), 150.0, np.float32)
    fat = image[:, :, 0] < 138  # a tenth of the pixel is enough
    mended = fat.copy()
    drop_ground(mended, image, ground, np.ones(1))
    assert overlap(fat, covered > 0) < 0.95 and overlap(mended, covered > 0) > 0.985


def test_silhouettes_that_cannot_be_right_are_named_with_a_way_out() -> None:
    def figures(share: float, pieces: float) -> MaskFigures:
        return MaskFigures(("cam01", "cam03"), np.array([0.01, share]), np.array([1.0, pieces]), np.zeros(2))

    assert implausible(figures(0.02, 3)) == "" and implausible(figures(0.45, 1)) == ""
    said = implausible(figures(0.48, 131))
    assert said.startswith("cam03: the silhouette fills 48 % of the image in 131 pieces; give a background")
    assert implausible(figures(0.03, 60)) and implausible(figures(0.95, 1))


def test_a_plate_is_made_of_several_pictures_or_of_a_stretch_of_a_clip(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    scene = np.full((40, 60), 100.0)
    for name, blot in (("a", slice(0, 8)), ("b", slice(20, 28)), ("c", slice(40, 48))):
        picture = scene + rng.normal(0, 1, scene.shape)
        picture[:, blot] = 30.0  # someone stands before a part of each
        cv2.imwrite(str(tmp_path / f"{name}.png"), picture.clip(0, 255).astype(np.uint8))
    (tmp_path / "clip").mkdir()
    for frame in range(8):
        picture = scene + rng.normal(0, 1, scene.shape)
        picture[:, :30] = 30.0 if frame < 5 else picture[:, :30]
        cv2.imwrite(str(tmp_path / "clip" / f"{frame}.png"), picture.clip(0, 255).astype(np.uint8))
    head = 'name = "a"\nrate_hz = 25.0\n[cameras.cam]\nimages = "clip"\n'
    for words in (
        'background = ["a.png", "b.png", "c.png"]\n',
        'background = "clip"\nbackground_frames = [5, 8]\n',
    ):
        (tmp_path / "recording.toml").write_text(head + words)
        save_recording(load_recording(tmp_path))
        camera = load_recording(tmp_path).footage[0]
        images = empty_scene(camera.backgrounds, camera.background_frames, gray=True)
        assert np.abs(background_of(images).centre[:, :, 0] - 100).max() < 6
    for words, said in (
        ('background = "clip"\nbackground_frames = [5, 5]\n', "from, up to"),
        ("background = [1]\n", "list of paths"),
        ('background = ["a.png", "d.png"]\n', "no such file"),
    ):
        (tmp_path / "recording.toml").write_text(head + words)
        with pytest.raises(InputError, match=said):
            load_recording(tmp_path)
    with pytest.raises(InputError, match="it has 8 frames"):
        empty_scene([tmp_path / "clip"], (9, 12))


def test_marks_on_the_floor_are_looked_for_once() -> None:
    frames = [[ball(view, (40.0 * n, 20.0, RADIUS)) for view in RIG] for n in range(-1, 2)]
    plain = [np.full((*SIZE[::-1], 3), 100.0, np.float32) for _ in RIG]
    marks: list[float | None] = [2.0]  # found before: not looked for in scenes that show none
    found, bare = floor_of(frames, RIG, plain, marks), floor_of(frames, RIG, plain)
    assert found is not None and bare is not None and marks == [2.0]
    assert found.height == pytest.approx(2.0, abs=1.0) and bare.height < 0.0


def test_the_subject_is_found_elsewhere_where_a_door_was_taken_for_it() -> None:
    whole = [ball(view, (0.0, 0.0, RADIUS)) for view in RIG]
    door = np.zeros_like(whole[0])
    door[:, :20] = True
    masks = [door, *whole[1:]]
    assert (confirmed(masks, RIG, None)[0] == door).all()  # it, or the others, must be wrong altogether
    speck = np.zeros_like(door)
    speck[tuple(np.argwhere(whole[0])[0])] = True
    for differs, expected in ((whole[0], whole[0]), (whole[0] & ~np.roll(whole[0], 3), door), (speck, door)):
        found = confirmed(masks, RIG, None, elsewhere=lambda index, differs=differs: differs if index == 0 else None)
        assert (found[0] == expected).mean() > 0.999
        assert all((new & ~old).sum() == 0 for new, old in zip(found[1:], masks[1:], strict=True))
