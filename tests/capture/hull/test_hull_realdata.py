"""Hulls of real pictures: the dinosaur turntable (bare projection matrices) and one moment of the Utrecht room."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
import scipy.io
import trimesh

from calibration.cameras.camera import LensCamera, MatrixCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig
from calibration.geometry.transforms import RigidTransform, rotation_from_vector
from capture.hull import Hull, exact_hull, implicit_hull
from capture.recordings.masks import read_masks
from capture.recordings.recording import Footage, Recording
from capture.silhouettes import segment_recording
from capture.silhouettes.cleanup import fill_holes

pytestmark = pytest.mark.realdata


@pytest.fixture(scope="module")
def dinosaur(shared_data: Path) -> tuple[Rig, list[np.ndarray]]:
    """18 views; silhouette: red above blue, opened, largest part, filled."""
    folder = shared_data / "dinosaur"
    matrices = scipy.io.loadmat(folder / "dino_Ps.mat")["P"][0]
    cameras, masks = [], []
    for view in range(0, 36, 2):
        image = cv2.imread(str(folder / f"viff.{view:03d}.png"))
        mask = (image[:, :, 2].astype(int) > image[:, :, 0]).astype(np.uint8)
        mask = cv2.morphologyEx(mask, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
        _, labels, stats, _ = cv2.connectedComponentsWithStats(mask)
        masks.append(fill_holes(labels == 1 + np.argmax(stats[1:, cv2.CC_STAT_AREA]), 1e9))
        cameras.append(MatrixCamera(f"view{view:02d}", (720, 576), matrices[view]))
    return Rig(tuple(cameras)), masks


def check_dinosaur(hull: Hull) -> None:
    mesh = trimesh.Trimesh(hull.vertices, hull.faces, process=False)
    assert mesh.is_watertight and mesh.is_winding_consistent
    assert hull.agreement.mean() >= 0.975 and hull.agreement.min() >= 0.96


def test_dinosaur_implicit(dinosaur: tuple[Rig, list[np.ndarray]]) -> None:
    rig, masks = dinosaur
    # The world has no unit; 0.001 of it is about two pixels.
    check_dinosaur(implicit_hull(masks, rig, voxel_mm=0.001))


def test_dinosaur_exact(dinosaur: tuple[Rig, list[np.ndarray]]) -> None:
    rig, masks = dinosaur
    check_dinosaur(exact_hull(masks, rig, tolerance_px=1.0))


def test_person_and_chair_in_the_utrecht_room(shared_data: Path, tmp_path: Path) -> None:
    """Cut out as the program does it: noise of the codec and hue of the shade are learnt from the recording."""
    folder = shared_data / "utrecht_room"
    derived = json.loads((folder / "calib_derived.json").read_text())
    cameras, footage = [], []
    for name in ("cam1", "cam2", "cam4"):  # in cam3 a board was moved between plate and recording
        c = derived[name]
        lens = PinholeLens(tuple(c["size"]), np.array(c["K"]), np.array(c["dist"]))
        pose = RigidTransform(rotation_from_vector(np.array(c["rvec"])), np.array(c["tvec"]))
        cameras.append(LensCamera(name, lens, pose))
        footage.append(Footage(name, folder / name / "video.avi", folder / name / "background.avi"))
    rig = Rig(tuple(cameras))
    recording = Recording(tmp_path, "room", 50.0, "human", rig, tuple(footage))
    segment_recording(recording, stop=2)
    masks = [read_masks(recording.results / "silhouettes.h5", name, 0)[0] for name in rig.names]
    hull = implicit_hull(masks, rig, voxel_mm=20.0)
    assert hull.flags == 0 and hull.agreement.mean() >= 0.95
    # A seated person with a chair, in litres; three views see it from one half of the room only.
    assert 80e6 < hull.volume < 500e6
