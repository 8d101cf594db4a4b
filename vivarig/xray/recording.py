"""Where the X-ray parts of a recording lie, and its clip: the application's side of X-ray work.

calibration/xray/grid/CAMERA.png      image of the undistortion grid (or a folder CAMERA/ of several over time)
calibration/xray/cube/CAMERA/NN.png   images of the bead cube; NN numbers its positions, the same for all cameras
calibration/xray/cube.csv             X,Y,Z[,name] of the cube's beads
calibration/xray/labels.csv           XMALab 2D points that start and name the beads, if any
calibration/xray/bones.csv            lines bead,bone, if any
results/xray/                         maps, rig, pictures
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from calibration.cameras.rig import Rig, load_rig
from calibration.foundation.arrays import Bytes
from calibration.foundation.errors import InputError
from calibration.foundation.files import write_bytes
from capture.recordings.image_stacks import ImageStack, open_stack
from capture.recordings.recording import Recording
from capture.recordings.video import image_files

__all__ = ["BONES", "LABELS", "RecordingClip", "XrayFolder", "open_clip", "write_picture"]

LABELS, BONES = "labels.csv", "bones.csv"


@dataclass(frozen=True)
class XrayFolder:
    """Paths of the X-ray calibration and results of a recording."""

    recording: Recording
    session: Path

    @classmethod
    def of(cls, recording: Recording, session: Path | None = None) -> XrayFolder:
        """Return the folders; ``session`` replaces calibration/xray."""
        return cls(recording, session if session is not None else recording.folder / "calibration" / "xray")

    @property
    def results(self) -> Path:
        """Where X-ray results go."""
        return self.recording.results / "xray"

    @property
    def maps(self) -> Path:
        """File of the distortion maps."""
        return self.results / "distortion.h5"

    @property
    def rig_file(self) -> Path:
        """File of the calibrated rig."""
        return self.results / "rig.toml"

    @property
    def cameras(self) -> tuple[str, ...]:
        """Names of the X-ray cameras."""
        names = tuple(footage.name for footage in self.recording.footage if footage.kind == "xray")
        if not names:
            raise InputError(f'{self.recording.folder}: no camera has kind = "xray" in recording.toml')
        return names

    def rig(self) -> Rig:
        """Return the rig that `xray calibrate` made, or else the recording's own."""
        return load_rig(self.rig_file) if self.rig_file.is_file() else self.recording.need_rig()

    def given(self, name: str) -> Path | None:
        """Return a file of the session that may be there, such as its labels or bones."""
        return self.session / name if (self.session / name).is_file() else None

    def grid_images(self, camera: str) -> list[Path]:
        """Return the grid image of a camera, or several over time."""
        return _images(self.session / "grid", camera, "the undistortion grid")

    def cube_images(self, camera: str) -> list[Path]:
        """Return the cube images of a camera, one per position."""
        return _images(self.session / "cube", camera, "the calibration cube")


def _images(folder: Path, camera: str, what: str) -> list[Path]:
    if (folder / camera).is_dir():
        return image_files(folder / camera)
    found = [path for path in image_files(folder) if path.stem == camera] if folder.is_dir() else []
    if not found:
        raise InputError(f"camera '{camera}': no image of {what}; wanted {folder / camera}.png or a folder of images")
    return found


@dataclass(eq=False)
class RecordingClip:
    """Synchronous frames of some cameras of a recording, read in order; going back opens the files again."""

    names: tuple[str, ...]
    stacks: tuple[ImageStack, ...]
    offsets: tuple[int, ...]
    frames: int
    _streams: list[Iterator[NDArray[Any]]] = field(default_factory=list)
    _next: int = -1

    def __len__(self) -> int:
        return self.frames

    def chunk(self, start: int, stop: int) -> list[list[NDArray[Any]]]:
        """Return for each frame from ``start`` up to ``stop`` one image per view."""
        if start != self._next or not self._streams:
            self._streams = [
                stack.read(start + offset) for stack, offset in zip(self.stacks, self.offsets, strict=True)
            ]
        last = min(stop, self.frames)
        images = [[next(stream) for stream in self._streams] for _ in range(start, last)]
        self._next = last
        return images


def open_clip(recording: Recording, cameras: Sequence[str]) -> RecordingClip:
    """Open the footage of some cameras; views of different length are an error that names the lengths."""
    footage = {item.name: item for item in recording.footage}
    stacks = tuple(open_stack(footage[name].source) for name in cameras)
    offsets = tuple(round(footage[name].offset_frames) for name in cameras)
    for name, offset in zip(cameras, offsets, strict=True):
        if offset < 0:
            raise InputError(f"camera '{name}': offset {offset} frames; give the others a positive one instead")
    lengths = [len(stack) - offset for stack, offset in zip(stacks, offsets, strict=True)]
    if len(set(lengths)) > 1:
        said = ", ".join(f"{name} {n}" for name, n in zip(cameras, lengths, strict=True))
        picture = write_picture(XrayFolder.of(recording).results / "lengths.png", _ends(cameras, stacks, offsets))
        raise InputError(
            f"{recording.folder}: views of different length: {said} frames; cut them alike or set offset;"
            f" first and last frame of each: {picture}"
        )
    return RecordingClip(tuple(cameras), stacks, offsets, lengths[0])


def _ends(cameras: Sequence[str], stacks: Sequence[ImageStack], offsets: Sequence[int]) -> Bytes:
    """Return the first and the last frame of each view, one row per view: what the views show when they end."""
    rows: list[Bytes] = []
    for name, stack, offset in zip(cameras, stacks, offsets, strict=True):
        cells: list[Bytes] = []
        for number in (offset, len(stack) - 1):
            grey = next(iter(stack.read(number, number + 1)))
            cell = np.asarray(grey * (255.0 / max(int(grey.max()), 1)), dtype=np.uint8)
            cell = np.asarray(cv2.resize(cell, (384, 384), interpolation=cv2.INTER_AREA), dtype=np.uint8)
            cv2.putText(cell, f"{name}: {number}", (8, 20), cv2.FONT_HERSHEY_SIMPLEX, 0.5, 255, 1)
            cells.append(cell)
        rows.append(np.hstack(cells))
    return np.vstack(rows)


def write_picture(path: Path, picture: Bytes) -> Path:
    """Write a picture as PNG, atomically, and return its path."""
    good, data = cv2.imencode(".png", picture)
    if not good:
        raise InputError(f"{path}: the picture could not be encoded")
    write_bytes(path, data.tobytes())
    return path
