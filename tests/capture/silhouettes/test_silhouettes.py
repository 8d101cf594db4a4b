"""From videos to silhouettes: a ball that rolls over a textured floor with shadow, noise and flicker."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig, save_rig
from calibration.foundation.errors import InputError
from calibration.foundation.once import keeping
from calibration.geometry.transforms import RigidTransform
from capture.backgrounds.adaptive import NearestSamples, RunningMixture
from capture.backgrounds.appearance import sitting_place
from capture.backgrounds.background import background_of, light_gain, noise_curve
from capture.backgrounds.followed_inwards import ground_of, temporal_modes
from capture.backgrounds.keys import ThresholdModel, key_colour
from capture.backgrounds.mixture import fit_mixture
from capture.hull import HullFlag, implicit_hull, overlap
from capture.hull.sequence import HullSettings, reconstruct_hulls
from capture.hull.store import read_hull, read_hulls
from capture.recordings.masks import MaskFlag, read_masks
from capture.recordings.recording import load_recording
from capture.recordings.seen_frames import lent
from capture.recordings.video import write_video
from capture.silhouettes import Cleaning, ModelOptions, segment_recording
from capture.silhouettes.cleanup import clean_mask, silhouette_of
from capture.silhouettes.difference import FollowingModel, PlateModel
from capture.silhouettes.edges.graph_cut import least_cut
from capture.silhouettes.edges.thin_ends import follow_thin_end
from capture.silhouettes.judging import mask_flags
from capture.silhouettes.models import CameraModel
from capture.silhouettes.segment import _segment_chunk, check_frames, learn_model, learn_models
from capture.silhouettes.sitting import Cut, learn_sitting
from capture.silhouettes.still import activity, still_parts
from capture.silhouettes.views.consensus import consensus
from capture.silhouettes.views.ray_agreement import ray_agreement

SIZE = (160, 120)
FRAMES, RADIUS = 14, 40.0


def camera(index: int) -> LensCamera:
    turn = np.pi / 2 * index + 0.3
    centre = np.array([500 * np.cos(turn), 500 * np.sin(turn), 380.0])
    forward = np.array([0, 0, RADIUS]) - centre
    forward /= np.linalg.norm(forward)
    right = np.cross(forward, [0, 0, 1.0])
    right /= np.linalg.norm(right)
    rotation = np.stack([right, np.cross(forward, right), forward])
    lens = PinholeLens(SIZE, np.array([[260.0, 0, 79.5], [0, 260.0, 59.5], [0, 0, 1]]))
    return LensCamera(f"cam{index}", lens, RigidTransform(rotation, -rotation @ centre))


RIG = Rig(tuple(camera(index) for index in range(4)))


def ball_centre(frame: int) -> np.ndarray:
    return np.array([-110.0 + 220 * frame / (FRAMES - 1), 20 * np.sin(frame), RADIUS])


def truth(view: LensCamera, frame: int) -> np.ndarray:
    grid = np.stack(np.meshgrid(np.arange(SIZE[0], dtype=float), np.arange(SIZE[1], dtype=float)), axis=-1)
    origins, rays = view.rays(grid)
    towards = ball_centre(frame) - origins
    along = (towards * rays).sum(axis=-1)
    return np.asarray((towards**2).sum(axis=-1) - along**2 < RADIUS**2)


def floor_points(view: LensCamera) -> np.ndarray:
    grid = np.stack(np.meshgrid(np.arange(SIZE[0], dtype=float), np.arange(SIZE[1], dtype=float)), axis=-1)
    origins, rays = view.rays(grid)
    return np.asarray(origins + rays * (-origins[..., 2:] / rays[..., 2:]))


@dataclass(frozen=True)
class Scene:
    plate: np.ndarray
    images: list[np.ndarray]


def film(view: LensCamera, *, hard: bool, rng: np.random.Generator) -> Scene:
    """A grey floor with texture; hard: a shadow beside the ball, sensor noise and mains flicker."""
    ground = floor_points(view)
    texture = cv2.GaussianBlur(rng.normal(size=(SIZE[1], SIZE[0])), (0, 0), 2.0)
    plate = 150 + 60 * texture
    noise = 2.5 if hard else 0.6
    images = []
    for frame in range(FRAMES):
        light = plate.copy()
        if hard:
            middle = ball_centre(frame)[:2] + np.array([0.0, 35.0])
            light *= 1 - 0.35 * (np.linalg.norm(ground[..., :2] - middle, axis=-1) < RADIUS)
        light[truth(view, frame)] = 40
        if hard:
            light *= 1 + 0.06 * np.sin(1.9 * frame)
        images.append(np.clip(light + noise * rng.normal(size=light.shape), 0, 255).astype(np.uint8))
    return Scene(np.clip(plate, 0, 255).astype(np.uint8), images)


def write_recording(folder: Path, scenes: list[Scene], *, plates: bool = True, extra: str = "") -> Path:
    folder.mkdir()
    save_rig(RIG, folder / "rig.toml")
    lines = ['name = "ball"', "rate_hz = 50.0", extra]
    for view, scene in zip(RIG, scenes, strict=True):
        write_video(folder / f"{view.name}.mkv", scene.images, 50.0, codec="ffv1")
        lines += [f"[cameras.{view.name}]", f'video = "{view.name}.mkv"']
        if plates:
            cv2.imwrite(str(folder / f"{view.name}.png"), scene.plate)
            lines.append(f'background = "{view.name}.png"')
    (folder / "recording.toml").write_text("\n".join(lines) + "\n")
    return folder


def scores(folder: Path) -> np.ndarray:
    file = folder / "results" / "silhouettes.h5"
    return np.array(
        [[overlap(mask, truth(view, f)) for f, mask in enumerate(read_masks(file, view.name))] for view in RIG]  # type: ignore[arg-type]
    )


def test_cameras_learnt_one_by_one_are_put_together_to_the_same_models(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    folder = write_recording(tmp_path / "ball", [film(view, hard=False, rng=rng) for view in RIG])  # type: ignore[arg-type]
    recording = load_recording(folder)
    kept: dict[str, bytes] = {}
    made: list[str] = []

    def keep(name: str, make: Callable[[], Any]) -> Any:
        if name not in kept:
            made.append(name)
            kept[name] = pickle.dumps(make())
        return pickle.loads(kept[name])

    with keeping(keep):
        shown = [learn_model(recording, ModelOptions(), camera, beside=[1, 3]) for camera in range(4)]
        assert made == [f"camera {k}" for k in range(4)]
        told: list[tuple[int, int]] = []
        models = learn_models(recording, workers=2, on_progress=lambda *done: told.append(done))
        assert len(made) == 4, "learnt once, threads know it, too"
        assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    segment_recording(recording, tmp_path / "ahead.h5", models=models)
    segment_recording(recording, tmp_path / "whole.h5", models=learn_models(recording))
    assert (tmp_path / "ahead.h5").read_bytes() == (tmp_path / "whole.h5").read_bytes()
    # Images that came by while cameras were learnt are those that are cut out.
    seen = [one[1] for one in shown if one is not None]
    assert [sorted(one.images) for one in seen] == [[1, 3]] * 4
    for path, some in (("lent.h5", seen), ("decoded.h5", [])):
        with lent({one.source: lambda one=one: one for one in some}):
            segment_recording(recording, tmp_path / path, start=1, stop=4, only=[1, 3], models=models)
    assert (tmp_path / "lent.h5").read_bytes() == (tmp_path / "decoded.h5").read_bytes()


@pytest.mark.parametrize(("hard", "least"), [(False, 0.97), (True, 0.93)])
def test_silhouettes_against_truth_and_hulls_from_them(
    tmp_path: Path, rng: np.random.Generator, hard: bool, least: float
) -> None:
    scenes = [film(view, hard=hard, rng=rng) for view in RIG]  # type: ignore[arg-type]
    folder = write_recording(tmp_path / "ball", scenes)
    recording = load_recording(folder)
    report = segment_recording(recording, workers=1)
    assert scores(folder).mean() >= least
    assert report.models == ("plate",) * 4
    assert np.nanmean(report.agreement) > 0.9
    file = recording.results / "silhouettes.h5"
    first = file.read_bytes()
    segment_recording(recording, workers=3)
    assert file.read_bytes() == first  # whatever the number of workers
    few = tmp_path / "few.h5"  # a frame is cut out as it is among the others
    segment_recording(recording, few, models=learn_models(recording), start=1, stop=9, only=[1, 4, 5, 8])
    alone = tmp_path / "alone.h5"  # models are those of the whole recording, however few frames are wanted
    segment_recording(recording, alone, start=1, stop=9, only=[1, 4, 5, 8])
    assert alone.read_bytes() == few.read_bytes()
    for view in RIG:
        np.testing.assert_array_equal(read_masks(few, view.name), read_masks(file, view.name, [1, 4, 5, 8]))
    check_frames(recording, 1, None)
    with pytest.raises(InputError, match="wanted frames 5 to 4"):  # before anything is learnt
        check_frames(recording, 5, 5)
    hulls = reconstruct_hulls(file, RIG, recording.results / "hull.h5", HullSettings(voxel_mm=6.0))
    ball = 4 / 3 * np.pi * RADIUS**3
    assert (hulls.volume > 0.95 * ball).all() and (hulls.volume < 1.6 * ball).all()
    some = read_hull(recording.results / "hull.h5", 5)
    assert some.volume == pytest.approx(hulls.volume[5])
    assert np.linalg.norm(some.vertices.mean(axis=0) - ball_centre(5)) < 15
    assert len(list(read_hulls(recording.results / "hull.h5"))) == FRAMES


def test_no_plate_needed_while_the_subject_moves(tmp_path: Path, rng: np.random.Generator) -> None:
    scenes = [film(view, hard=False, rng=rng) for view in RIG]  # type: ignore[arg-type]
    folder = write_recording(tmp_path / "ball", scenes, plates=False)
    report = segment_recording(load_recording(folder), workers=2)
    assert report.models == ("moving",) * 4
    assert scores(folder).mean() > 0.9


def test_bad_frames_are_counted_and_passed(tmp_path: Path, rng: np.random.Generator) -> None:
    scenes = [film(view, hard=False, rng=rng) for view in RIG]  # type: ignore[arg-type]
    for scene in scenes:
        scene.images[3] = scene.plate.copy()
    scenes[0].images[7][:] = 255 - scenes[0].plate  # a flash: everything differs
    folder = write_recording(tmp_path / "ball", scenes)
    recording = load_recording(folder)
    report = segment_recording(recording, workers=2)
    assert (report.flags[3] & MaskFlag.EMPTY).all()
    assert report.flags[7, 0] != 0
    hulls = reconstruct_hulls(recording.results / "silhouettes.h5", RIG, recording.results / "hull.h5")
    assert hulls.flags[3] & HullFlag.NO_SILHOUETTE and hulls.volume[3] == 0
    assert (hulls.volume[[2, 4, 6, 8]] > 0).all()


def test_other_views_drop_a_blob_and_name_the_view_that_misses_something() -> None:
    masks = [truth(view, 6) for view in RIG]  # type: ignore[arg-type]
    blob = [mask.copy() for mask in masks]
    blob[1][5:25, 5:25] = True
    verdict = consensus(blob, RIG)
    assert verdict.repaired[1] and overlap(verdict.masks[1], masks[1]) > 0.95
    assert verdict.agreement[1] < 0.92 and not verdict.contradicted.any()
    missing = [mask.copy() for mask in masks]
    columns = np.flatnonzero(masks[2].any(axis=0))
    missing[2][:, : int(columns.mean())] = False
    verdict = consensus(missing, RIG)
    assert verdict.contradicted.tolist() == [False, False, True, False]


def test_thin_tail_is_kept_and_specks_are_not() -> None:
    evidence = np.zeros((60, 80), dtype=np.uint8)
    evidence[20:40, 10:40] = 200
    evidence[30, 40:70] = 60  # a tail one pixel thin, weak, connected to the body
    evidence[5, 5] = 255  # a hot pixel
    evidence[28:30, 20:22] = 0  # a pinhole
    mask = silhouette_of(evidence, Cleaning())
    assert mask[30, 40:70].all() and not mask[5, 5] and mask[20:40, 10:40].all()
    assert not clean_mask(np.zeros((4, 4), bool), Cleaning()).any()


def test_still_part_is_scene_and_the_moving_one_is_not(rng: np.random.Generator) -> None:
    images, masks = [], []
    for frame in range(8):
        image = np.full((60, 100), 120, dtype=np.uint8)
        mask = np.zeros((60, 100), dtype=bool)
        mask[20:40, 10 + 2 * frame : 30 + 2 * frame] = True
        mask[10:25, 80:92] = True
        image[mask] = 30
        images.append(image)
        masks.append(mask)
    still = still_parts(masks, activity(images, 1.0))
    assert still[10:25, 80:92].all() and not still[:, :60].any()


def test_light_gain_is_found_under_a_subject(rng: np.random.Generator) -> None:
    plate = rng.uniform(60, 180, (60, 80, 1)).astype(np.float32)
    image = np.clip(plate * 1.12, 0, 255).astype(np.uint8)
    image[:, :30] = 20
    assert light_gain(image, plate)[0] == pytest.approx(1.12, abs=0.01)


def test_noise_is_measured_between_frames(rng: np.random.Generator) -> None:
    scene = rng.uniform(30, 220, (200, 300))
    pair = [np.clip(np.round(scene + rng.normal(0, 3.0, scene.shape)), 0, 255).astype(np.uint8) for _ in range(2)]
    assert noise_curve([(pair[0], pair[1])]).sigma == pytest.approx(3.0, rel=0.15)


def test_shadow_is_background_and_a_darker_thing_is_not(rng: np.random.Generator) -> None:
    colour = np.array([70.0, 140.0, 90.0])
    plate = np.clip(colour + rng.normal(0, 1, (40, 60, 3)), 0, 255).astype(np.uint8)
    image = plate.astype(float)
    image[5:15, 5:25] *= 0.65  # shadow: same hue
    image[20:35, 30:50] = [110, 60, 60]  # a thing of another hue and similar brightness
    model = PlateModel(background_of([plate]))
    mask = silhouette_of(model.evidence(image.astype(np.uint8)), Cleaning())
    assert not mask[5:15, 5:25].any() and mask[20:35, 30:50].mean() > 0.99
    with pytest.raises(InputError, match="background is 60 x 40 px, the image 30 x 40"):
        model.evidence(image.astype(np.uint8)[:, :30])


def test_mixture_learns_a_background_with_two_states(rng: np.random.Generator) -> None:
    """The left half blinks, the right does not: a value between the two states is neither."""
    images = []
    for n in range(24):
        scene = np.full((20, 30), 120.0)
        scene[:, :10] = 200 if n % 3 else 60
        images.append(np.clip(scene + rng.normal(0, 3, scene.shape), 0, 255).astype(np.uint8))
    first, *others = fit_mixture(images)
    model = PlateModel(first, shadow_floor=1.0, states=tuple(others))
    assert np.median(first.centre[:, :10]) == pytest.approx(200, abs=3)
    frame = images[0].copy()
    frame[5:15, 2:8] = 130
    assert (model.evidence(frame)[5:15, 2:8] > 9 * 8).all()
    assert np.median(model.evidence(images[1])) < 4 * 8 and np.median(model.evidence(images[0])[:, :10]) < 4 * 8


@pytest.mark.parametrize("kind", [RunningMixture, NearestSamples])
def test_adaptive_backgrounds_follow_the_light_and_never_learn_the_subject(
    kind: type[RunningMixture] | type[NearestSamples], rng: np.random.Generator
) -> None:
    """One side of the scene brightens by up to half in 300 frames, beyond any highlight; the subject sits."""
    noise = noise_curve([])

    def filmed(frame: int, *, subject: bool) -> np.ndarray:
        scene = np.full((60, 80), 120.0)
        scene *= 1 + 0.5 * frame / 300 * np.clip((np.arange(80) - 40) / 40, 0, 1)
        if subject:
            scene[20:40, 30:60] = 20
        return np.clip(scene + rng.normal(0, 2, scene.shape), 0, 255).astype(np.uint8)

    empty = [filmed(0, subject=False) for _ in range(12)]
    following = CameraModel("mog2", FollowingModel(kind(empty, noise), shadow_floor=0.5), Cleaning(), True)
    plate = CameraModel("plate", PlateModel(background_of(empty, noise), shadow_floor=0.5), Cleaning(), True)
    true = np.zeros((60, 80), dtype=bool)
    true[20:40, 30:60] = True
    found = [following.silhouette(filmed(frame, subject=True)) for frame in range(300)]
    assert min(overlap(mask, true) for mask in found) > 0.98
    assert overlap(plate.silhouette(filmed(299, subject=True)), true) < 0.5


def test_ground_that_a_resting_subject_hides_is_found_or_filled(rng: np.random.Generator) -> None:
    """A dark disc lies on one place for 30 of 36 images and shifts by its radius for six; a shadow goes with it.

    The median is the disc. The ground has waves of 10 grey levels; what is never seen is filled to their size.
    """
    rows, columns = np.mgrid[:120, :160]
    ground = 140 + 10 * np.sin(columns / 15.0) * np.cos(rows / 12.0)
    images, true = [], []
    for n in range(36):
        middle = 70 + (25 if n >= 30 else 0) + n % 3
        disc_here = (columns - middle) ** 2 + (rows - 60) ** 2 < 25**2
        shade = (columns - middle) ** 2 / 4 + (rows - 85) ** 2 < 10**2
        scene = np.where(disc_here, 30.0, np.where(shade, 0.7, 1.0) * ground)
        images.append(np.clip(scene + rng.normal(0, 1.5, scene.shape), 0, 255).astype(np.uint8))
        true.append(disc_here)
    noise = noise_curve([(images[0], images[3])])
    assert np.median(background_of(images, noise).centre[55:65, 65:75]) < 60
    stack = np.stack(images)[:, :, :, None]
    found = ground_of(temporal_modes(stack, noise), noise)
    assert not found.seen[55:65, 80:90].any() and found.seen[:30].all()
    assert np.abs(found.background.centre[:, :, 0] - ground)[true[0]].max() < 25
    model = PlateModel(found.background)
    for n in (0, 35):
        assert overlap(silhouette_of(model.evidence(images[n]), Cleaning()), true[n]) > 0.97


def test_keys(rng: np.random.Generator) -> None:
    screen = np.full((40, 60, 3), (60, 180, 70), np.uint8)
    screen[10:30, 20:40] = (60, 60, 180)
    assert silhouette_of(key_colour(screen).evidence(screen), Cleaning())[10:30, 20:40].all()
    assert silhouette_of(key_colour(screen).evidence(screen), Cleaning()).sum() == 400
    # A screen under uneven light, whose b is commoner than its a: each channel has a histogram of its own.
    uneven = np.clip(screen * np.linspace(1.0, 0.8, 60)[None, :, None], 0, 255).astype(np.uint8)
    noisy = np.clip(uneven + rng.normal(0, 2, uneven.shape), 0, 255).astype(np.uint8)
    assert silhouette_of(key_colour(noisy).evidence(noisy), Cleaning()).sum() == pytest.approx(400, abs=8)
    backlit = np.full((40, 60), 230, np.uint8)
    backlit[10:30, 20:40] = 30
    assert silhouette_of(ThresholdModel().evidence(backlit), Cleaning()).sum() == 400
    assert silhouette_of(ThresholdModel(dark=False).evidence(255 - backlit), Cleaning()).sum() == 400
    with pytest.raises(InputError, match="chroma key: wanted colour images"):
        key_colour(backlit)


def test_unknown_model_and_missing_background_are_refused(tmp_path: Path, rng: np.random.Generator) -> None:
    scenes = [film(view, hard=False, rng=rng) for view in RIG]  # type: ignore[arg-type]
    recording = load_recording(write_recording(tmp_path / "ball", scenes, plates=False))
    with pytest.raises(InputError, match="unknown silhouette model 'palte'; did you mean 'plate'"):
        segment_recording(recording, options=ModelOptions("palte"))
    with pytest.raises(InputError, match="camera 'cam0': the plate model needs a background"):
        segment_recording(recording, options=ModelOptions("plate"))
    with pytest.raises(InputError, match="camera 'cam0': the masks model needs masks"):
        segment_recording(recording, options=ModelOptions("masks"))
    assert not (recording.results / "silhouettes.h5").exists()


def test_lines_of_sight_confirm_what_the_hull_does() -> None:
    masks = [truth(view, 6) for view in RIG]  # type: ignore[arg-type]
    # Perfect silhouettes: only the rim may miss the hull by its pixel steps.
    assert ray_agreement(masks, RIG).min() > 0.98
    half = [mask.copy() for mask in masks]
    columns = np.flatnonzero(masks[2].any(axis=0))
    half[2][:, : int(columns.mean())] = False
    hull = implicit_hull(half, RIG, voxel_mm=2.0)
    # Silhouettes count one pixel larger for the lines of sight: 4 % of this ball's area.
    np.testing.assert_allclose(ray_agreement(half, RIG), hull.agreement, atol=0.06)
    empty = [*masks[:3], np.zeros_like(masks[3])]
    assert np.isnan(ray_agreement(empty, RIG)[3]) and np.isfinite(ray_agreement(empty, RIG)[:3]).all()
    apart = [masks[0], np.roll(masks[1], 55, axis=0), *masks[2:]]
    assert np.nanmin(ray_agreement(apart, RIG)) < 0.5


def test_cut_keeps_a_thin_bright_part_and_drops_speckle(rng: np.random.Generator) -> None:
    grey = np.full((80, 120), 60, dtype=np.uint8)
    shape = np.zeros(grey.shape, dtype=bool)
    shape[30:55, 20:60] = True
    shape[40:43, 60:105] = True
    grey[shape] = 160
    odds = np.where(shape, 1.0, -1.0).astype(np.float32) + rng.normal(0, 0.6, grey.shape).astype(np.float32)
    assert overlap(least_cut(odds, grey), shape) > 0.99
    assert not least_cut(np.full(grey.shape, -1.0, np.float32), grey).any()


def test_thin_end_is_followed_to_its_tip_and_no_farther() -> None:
    grey = np.full((120, 200), 50, dtype=np.uint8)
    mask = np.zeros(grey.shape, dtype=np.uint8)
    cv2.circle(mask, (50, 60), 25, 1, -1)
    known = mask.copy()
    line = np.array([[70, 60], [110, 62], [150, 72]], dtype=np.int32)[:, None]
    cv2.polylines(mask, [line], False, 1, 5)
    cv2.polylines(known, [line[:2]], False, 1, 5)
    grey[mask > 0] = 140
    found = follow_thin_end(known > 0, grey)
    assert found[70:76, 146:151].any() and not found[:, 158:].any()  # the tip is at x = 150, steps are 2 px
    assert not (found & (cv2.dilate(mask, np.ones((5, 5), np.uint8)) == 0)).any()
    ball = (cv2.circle(np.zeros_like(mask), (50, 60), 25, 1, -1)) > 0
    assert (follow_thin_end(ball, grey) == ball).all()


def test_looks_of_a_sitting_subject_are_learnt_without_a_plate(rng: np.random.Generator) -> None:
    """A smooth grey body on rough ground that shifts by a few pixels: no picture shows what is behind it."""
    ground = np.clip(cv2.GaussianBlur(rng.normal(size=(160, 200)), (0, 0), 1.2) * 120 + 60, 0, 255)
    images, true = [], []
    for step in range(6):
        mask = np.zeros(ground.shape, np.uint8)
        cv2.ellipse(mask, (98 + 2 * (step % 3), 78 + 4 * (step % 2)), (34, 22), 8.0 * (step % 2), 0, 360, 1, -1)
        image = np.where(mask > 0, 150.0, ground) + rng.normal(0, 1.5, ground.shape)
        images.append(np.clip(image, 0, 255).astype(np.uint8))
        true.append(mask > 0)
    model = learn_sitting([images], [sitting_place(images)], [[]], len(images), None)[0]
    assert model is not None
    found = [overlap(Cut.of(model, image).silhouette(model), mask) for image, mask in zip(images, true, strict=True)]
    assert np.mean(found) > 0.9  # the edge is known to about a pixel: 4 % of the area


def test_a_camera_that_saw_nothing_does_not_stop_the_others(tmp_path: Path, rng: np.random.Generator) -> None:
    scenes = [film(view, hard=False, rng=rng) for view in RIG]  # type: ignore[arg-type]
    scenes[0] = Scene(scenes[0].plate, [scenes[0].plate.copy() for _ in range(FRAMES)])
    recording = load_recording(write_recording(tmp_path / "ball", scenes))
    report = segment_recording(recording, stop=4, workers=2)
    assert (report.flags[:, 0] & MaskFlag.EMPTY).all() and np.isnan(report.agreement[:, 0]).all()
    assert not (report.flags[:, 1:] & MaskFlag.EMPTY).any() and (report.agreement[:, 1:] > 0.9).all()
    hulls = reconstruct_hulls(recording.results / "silhouettes.h5", RIG, recording.results / "hull.h5")
    assert (hulls.flags & HullFlag.EMPTY_SILHOUETTE).all() and (hulls.volume > 0).all()


def test_an_all_white_silhouette_says_nothing_about_the_others() -> None:
    masks = [truth(view, 6) for view in RIG]  # type: ignore[arg-type]
    white = [np.ones_like(masks[0]), *masks[1:]]
    verdict = consensus(white, RIG)
    assert np.isnan(verdict.agreement[0]) and verdict.agreement[1:].min() > 0.95 and not verdict.repaired.any()
    nothing = consensus([np.zeros_like(mask) for mask in masks], RIG)
    assert np.isnan(nothing.agreement).all() and not nothing.contradicted.any()


def test_the_flags_of_a_mask_are_those_of_the_window_that_holds_it() -> None:
    mask = np.zeros((40, 60), dtype=bool)
    assert mask_flags(mask) == mask_flags(mask, np.s_[5:20, 5:30]) == MaskFlag.EMPTY
    mask[10:20, 10:30] = True
    assert mask_flags(mask) == mask_flags(mask, np.s_[10:20, 8:40]) == 0
    mask[10:20, 30:59] = True  # the last column but one
    assert mask_flags(mask) == mask_flags(mask, np.s_[5:25, 8:60]) == MaskFlag.TOUCHES_BORDER
    mask[:] = True
    assert mask_flags(mask) == mask_flags(mask, np.s_[0:40, 0:60]) == MaskFlag.FULL


def test_masks_of_a_chunk_are_all_new_where_another_lay_before() -> None:
    masks = np.ones((3, 4, 5), dtype=bool)
    some = np.zeros((4, 5), np.uint8)
    some[1, 2] = 1
    share = _segment_chunk(iter([None, some]), None, masks, keep=False, doubt=False)
    assert share.masks is masks and masks.sum(axis=(1, 2)).tolist() == [0, 1, 0]
    assert ((share.flags & MaskFlag.NO_FRAME) > 0).tolist() == [True, False, True]
