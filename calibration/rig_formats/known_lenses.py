"""Lenses that are already known: from any rig file, or from OpenCV storage files, one per camera."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import FisheyeLens, Lens, PinholeLens
from calibration.foundation.errors import InputError
from calibration.rig_formats import read_rig, recognise
from calibration.rig_formats.opencv_storage import looks_like_storage, read_storage
from calibration.rig_formats.rig_format import ReadOptions

__all__ = ["load_lenses", "load_stated_lenses"]

_MATRIX = ("camera_matrix", "CameraMatrix", "Camera_Matrix", "cameraMatrix", "intrinsic_matrix", "K", "mtx")
_DISTORTION = ("distortion_coefficients", "DistortionCoeffs", "Distortion_Coefficients", "distCoeffs", "D", "dist")


def load_lenses(path: Path | str, cameras: Sequence[str], sizes: Sequence[tuple[int, int]]) -> dict[str, Lens]:
    """Return the known lenses by camera name; cameras that the file does not know are not in the result.

    A folder may hold one folder per camera with an OpenCV XML or YAML file in it. ``sizes`` are used where a file
    states none. Poses in the files are ignored.
    """
    place = Path(path)
    if not place.exists():
        raise InputError(f"{place}: no such file or folder")
    lenses: dict[str, Lens] = {}
    if place.is_dir():
        for name, size in zip(cameras, sizes, strict=True):
            inside = sorted((place / name).iterdir()) if (place / name).is_dir() else []
            for file in (f for f in inside if f.is_file() and looks_like_storage(f)):
                lens = _opencv_lens(file, size)
                if lens is not None:
                    lenses[name] = lens
    if not lenses and recognise(place) is not None:
        same = set(sizes)
        rig = read_rig(place, options=ReadOptions(size=sizes[0] if len(same) == 1 else None))
        lenses = {c.name: c.lens for c in rig if isinstance(c, LensCamera) and c.name in cameras}
        if not lenses:
            raise InputError(f"{place}: knows {', '.join(rig.names)}, none of the session's {', '.join(cameras)}")
    if not lenses:
        raise InputError(f"{place}: no known lens for any of {', '.join(cameras)}")
    return lenses


def load_stated_lenses(path: Path | str, cameras: Sequence[str]) -> dict[str, Lens]:
    """Return the lenses of a file or folder that states the size of its images, by camera name."""
    place = Path(path)
    if place.is_dir() and any((place / name).is_dir() for name in cameras):
        return load_lenses(place, cameras, [(0, 0)] * len(cameras))
    rig = read_rig(place)
    return {camera.name: camera.lens for camera in rig if isinstance(camera, LensCamera)}


def _opencv_lens(file: Path, size: tuple[int, int]) -> Lens | None:
    content = read_storage(file)
    if "image_width" in content and "image_height" in content:
        size = int(content["image_width"]), int(content["image_height"])
    if min(size) < 1:
        raise InputError(f"{file}: does not state its image size (image_width, image_height); add it")
    matrix = next((content[key] for key in _MATRIX if key in content), None)
    if matrix is None:
        return None
    terms = next((content[key] for key in _DISTORTION if key in content), np.zeros(0))
    if str(content.get("distortion_model", "")) == "fisheye":
        return FisheyeLens(size, np.asarray(matrix, np.float64).reshape(3, 3), np.asarray(terms, np.float64).ravel())
    return PinholeLens(size, np.asarray(matrix, np.float64).reshape(3, 3), np.asarray(terms, np.float64).ravel())
