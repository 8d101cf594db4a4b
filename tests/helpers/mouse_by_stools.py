"""A small recording of a drawn mouse with a thing beside it in each view; its silhouettes hold both."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from pale_footed_mouse import placed, rig

from calibration.cameras.rig import save_rig
from calibration.foundation.arrays import Bools
from capture.recordings.masks import create_masks
from capture.recordings.recording import Footage, Recording, load_recording, save_recording
from tracking.observations.rasteriser import cast_masks
from tracking.subjects.subject import builtin_subject


def filmed_by_stools(folder: Path, frames: int) -> tuple[Recording, list[list[Bools]]]:
    """Film it with four cameras and leave its silhouettes; return the recording, and those of the animal alone.

    The things are of one colour, high and narrow, and in no common place: only the template's shape parts them from
    the animal.
    """
    mouse, cameras = builtin_subject("mouse"), rig()
    template, faces = mouse.outline_template, np.ascontiguousarray(mouse.outline_template.faces)
    width, height = cameras.cameras[0].size
    rows, columns = np.mgrid[:height, :width]
    floor = (140.0 + 15.0 * np.sin(columns / 17.0) + 10.0 * np.cos(rows / 23.0))[:, :, None] * np.ones(3)
    noise = np.random.default_rng(0)
    animals = []
    for frame in range(frames):
        pose = placed(mouse.cage_rig.quads.rest, 0.03 * frame, (1.0 * frame, 0.0))
        animals.append(cast_masks(cameras, mouse.cage_rig.deform(template.binding, pose), faces))
    footage = [Footage(camera.name, folder / camera.name) for camera in cameras]
    (folder / "results").mkdir(parents=True)
    path = folder / "results" / "silhouettes.h5"
    with create_masks(path, cameras.names, [one.size for one in cameras], frames, {"start": 0}) as writer:
        for camera, one in enumerate(footage):
            one.source.mkdir()
            for frame in range(frames):
                animal = animals[frame][camera]
                right = int(np.flatnonzero(animal.any(axis=0))[-1])
                thing = np.zeros_like(animal)
                thing[80:210, right - 3 : right + 13] = True
                picture = floor.copy()
                picture[thing], picture[animal] = (70.0, 120.0, 70.0), (28.0, 28.0, 30.0)
                picture += noise.normal(0.0, 2.0, picture.shape)
                cv2.imwrite(str(one.source / f"{frame:03d}.png"), np.clip(np.rint(picture), 0, 255).astype(np.uint8))
                told = np.full(1, np.nan, np.float32), np.zeros(1, np.uint16)
                writer.write(one.name, frame, np.packbits(animal | thing, axis=-1)[None], *told)
    save_rig(cameras, folder / "rig.toml")
    save_recording(Recording(folder, "by_stools", 100.0, "mouse", cameras, tuple(footage)))
    return load_recording(folder), animals
