"""``vivarig silhouettes`` says which masks cannot be right."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig, save_rig
from calibration.geometry.transforms import RigidTransform
from capture.recordings.recording import Footage, Recording, save_recording
from vivarig.cli import main

SIZE = (160, 120)


def camera(index: int) -> LensCamera:
    turn = np.pi / 2 * index + 0.3
    centre = np.array([300 * np.cos(turn), 300 * np.sin(turn), 150.0])
    forward = np.array([0, 0, 15.0]) - centre
    forward /= np.linalg.norm(forward)
    right = np.cross(forward, [0, 0, 1.0])
    right /= np.linalg.norm(right)
    rotation = np.stack([right, np.cross(forward, right), forward])
    lens = PinholeLens(SIZE, np.array([[300.0, 0, 79.5], [0, 300.0, 59.5], [0, 0, 1]]))
    return LensCamera(f"cam{index}", lens, RigidTransform(rotation, -rotation @ centre))


def recording(folder: Path, radius: float) -> Path:
    """Write a recording of a ball, four frames, with masks."""
    rig = Rig(tuple(camera(index) for index in range(4)))
    columns, rows = np.meshgrid(np.arange(SIZE[0], dtype=float), np.arange(SIZE[1], dtype=float))
    footage = []
    for view in rig:
        origins, directions = view.rays(np.stack([columns, rows], axis=-1))
        towards = np.array([0, 0, 15.0]) - origins
        mask = (towards**2).sum(axis=-1) - (towards * directions).sum(axis=-1) ** 2 < radius**2
        for kind in ("images", "masks"):
            (folder / f"{view.name}_{kind}").mkdir(parents=True)
            for frame in range(4):
                cv2.imwrite(str(folder / f"{view.name}_{kind}" / f"{frame:02d}.png"), 255 * mask.astype(np.uint8))
        footage.append(Footage(view.name, folder / f"{view.name}_images", masks=folder / f"{view.name}_masks"))
    save_rig(rig, folder / "rig.toml")
    save_recording(Recording(folder, "ball", 25.0, "mouse", rig, tuple(footage)))
    return folder


def test_masks_that_fill_half_of_the_image_are_refused_with_camera_figure_and_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["silhouettes", str(recording(tmp_path / "sound", 18.0))]) == 0
    assert "common hull: " in capsys.readouterr().out
    # Silhouettes of one body agree with each other, however large.
    assert main(["silhouettes", str(recording(tmp_path / "half", 58.0))]) == 1
    printed = capsys.readouterr()
    said = printed.out + printed.err
    assert "litres, a mouse has less than 0.3" in said and "% of the image; give a background" in said
    assert "cam0: the silhouette fills 47 %" in said
