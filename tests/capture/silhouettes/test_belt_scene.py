"""A walker on a belt whose pattern passes: the belt is scene, its walker is cut out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from calibration.cameras.camera import Camera, LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig, save_rig
from calibration.foundation.arrays import Bools, Bytes
from calibration.geometry.transforms import RigidTransform
from capture.backgrounds.belt_scene import BeltView, find_belt_scene, stilled_frames
from capture.recordings.masks import read_masks
from capture.recordings.recording import load_recording
from capture.silhouettes import segment_recording

FRAMES, RATE, SPEED = 100, 30.0, -220.0


def _camera(name: str, eye: tuple[float, float, float]) -> Camera:
    k = np.array([[300.0, 0.0, 119.5], [0.0, 300.0, 89.5], [0.0, 0.0, 1.0]])
    back = np.array(eye) / np.linalg.norm(eye)
    right = np.cross([0.0, 0.0, 1.0], back)
    right /= np.linalg.norm(right)
    turn = np.stack([right, np.cross(-back, right), -back])
    return LensCamera(name, PinholeLens((240, 180), k, np.zeros(5)), RigidTransform(turn, -turn @ np.array(eye)))


def _film(camera: Camera, folder: Path) -> list[Bools]:
    """Write images of a dark blob that bobs above a belt with a pattern, in a room that has one, too; return masks."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(1)
    pattern = cv2.GaussianBlur(rng.uniform(0, 255, (120, 1600)), (0, 0), 3.0)
    pattern = np.clip(128 + 6.0 * (pattern - 127.5), 60, 235)
    width, height = camera.size
    grid = np.stack(np.meshgrid(np.arange(width), np.arange(height)), axis=-1).reshape(-1, 2).astype(float)
    origins, directions = camera.rays(grid)
    places = (origins - origins[..., 2:] / directions[..., 2:] * directions)[:, :2].reshape(height, width, 2)
    on_belt = (np.abs(places[..., 1]) < 60) & (np.abs(places[..., 0]) < 150)
    masks = []
    for t in range(FRAMES):
        across = (places[..., 1] + 60).astype(np.float32)
        along = (places[..., 0] - SPEED / RATE * t + 300).astype(np.float32)
        image = np.where(on_belt, cv2.remap(pattern.astype(np.float32), along, across, cv2.INTER_LINEAR), 150.0)
        middle = np.array([9.0 * np.sin(t / 5.0), 3.0 * np.cos(t / 3.0), 13.0])
        ball = rng.normal(size=(4000, 3))
        ball = ball / np.linalg.norm(ball, axis=1, keepdims=True) * np.array([26.0, 12.0, 11.0]) + middle
        mask = np.zeros((height, width), np.uint8)
        cv2.fillConvexPoly(mask, cv2.convexHull(np.round(camera.project(ball)).astype(np.int32)), 1)
        image[mask > 0] = 35.0
        image += rng.normal(0.0, 2.0, image.shape)
        cv2.imwrite(str(folder / f"{t:04d}.png"), np.clip(np.round(image), 0, 255).astype(np.uint8))
        masks.append(mask.astype(bool))
    return masks


@pytest.fixture(scope="module")
def treadmill(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[Bools]]]:
    place = tmp_path_factory.mktemp("belt")
    eyes = {"side": (20.0, -190.0, 260.0), "slant": (150.0, 120.0, 250.0)}
    cameras = {name: _camera(name, eye) for name, eye in eyes.items()}
    save_rig(Rig(tuple(cameras.values())), place / "rig.toml")
    masks = {name: _film(camera, place / "videos" / name) for name, camera in cameras.items()}
    lines = "".join(f'\n[cameras.{name}]\nimages = "videos/{name}"\n' for name in cameras)
    (place / "recording.toml").write_text(
        f'name = "belt"\nrate_hz = {RATE}\nsubject = "mouse"\nbelt = [{SPEED}, 0.0]\n{lines}'
    )
    return place, masks


def _overlap(found: Bytes | Bools, true: list[Bools]) -> float:
    both = np.array(true)
    return float((found & both).sum() / (found | both).sum())


def test_the_belt_stands_still_and_its_walker_does_not(treadmill: tuple[Path, dict[str, list[Bools]]]) -> None:
    place, masks = treadmill
    recording = load_recording(place)
    assert recording.rig is not None
    view = BeltView(recording.rig["side"], np.array([SPEED / RATE, 0.0]))
    found = find_belt_scene(place / "videos" / "side", view, 24, start=0, stop=FRAMES)
    assert found is not None
    images = np.stack(list(stilled_frames(place / "videos" / "side", found[0], 0, FRAMES, gray=True)))
    assert images.shape == (FRAMES, 180, 240)
    free = ~np.array(masks["side"]).any(axis=0) & found[0].region
    raw = np.stack([cv2.imread(str(path), cv2.IMREAD_GRAYSCALE) for path in sorted((place / "videos/side").iterdir())])
    assert images[10:-10, free].std(axis=0).mean() < 0.35 * raw[10:-10, free].std(axis=0).mean()
    # A belt that is said to go elsewhere explains nothing.
    wrong = replace(view, velocity=np.array([0.0, SPEED / RATE]))
    assert find_belt_scene(place / "videos" / "side", wrong, 24, start=0, stop=FRAMES) is None


def test_silhouettes_on_a_belt(treadmill: tuple[Path, dict[str, list[Bools]]], tmp_path: Path) -> None:
    place, masks = treadmill
    recording = load_recording(place)
    scores = {}
    for name, one in (("named", recording), ("not named", replace(recording, belt=None))):
        target = tmp_path / f"{name}.h5"
        segment_recording(one, target, stop=50, workers=1)
        scores[name] = min(_overlap(read_masks(target, camera), true[:50]) for camera, true in masks.items())
    assert scores["named"] > 0.9, scores
    assert scores["not named"] < scores["named"] - 0.1, scores
