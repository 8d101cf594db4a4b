"""Rigs in OpenCV storage files: plain OpenCV, stereo pairs, EasyMocap and JARVIS."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import FisheyeLens, Lens, PinholeLens
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import HUGE, Floats
from calibration.foundation.errors import InputError
from calibration.foundation.files import write_text
from calibration.foundation.names import inside, natural_key
from calibration.geometry.transforms import rotation_from_vector, vector_from_rotation
from calibration.rig_formats.opencv_storage import STORAGE_SUFFIXES, looks_like_storage, read_storage, yaml_storage
from calibration.rig_formats.rig_format import (
    Holds,
    ReadOptions,
    RigFormat,
    padded,
    scaled_pose,
    with_lens,
)

__all__ = ["EASYMOCAP", "JARVIS", "OPENCV"]

# The names people give these four in files written by hand.
_MATRIX = ("camera_matrix", "CameraMatrix", "Camera_Matrix", "cameraMatrix", "intrinsic_matrix", "K", "mtx")
_DISTORTION = ("distortion_coefficients", "DistortionCoeffs", "Distortion_Coefficients", "distCoeffs", "D", "dist")
_ROTATION = ("rotation", "Rotation", "R", "rvec", "rotation_matrix")
_TRANSLATION = ("translation", "Translation", "T", "t", "tvec")


def storage_files(folder: Path) -> list[Path]:
    """Return the storage files of a folder in natural order."""
    return sorted((p for p in folder.iterdir() if looks_like_storage(p)), key=lambda p: natural_key(p.stem))


def camera_files(folder: Path) -> list[Path]:
    """Return the storage files of a folder of cameras; one that is emptied must not make its camera vanish."""
    files = storage_files(folder)
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in STORAGE_SUFFIXES and path not in files:
            raise InputError(f"{path}: empty or not a camera's file; mend it, or take it out of {folder}")
    return files


def _first(content: dict[str, Any], names: tuple[str, ...], where: str, what: str) -> Floats:
    for name in names:
        if name in content:
            return _array(content[name], f"{where}: {name}")
    raise InputError(f"{where}: no {what}; looked for {', '.join(names[:4])}")


def _array(value: Any, where: str) -> Floats:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{where} must be numbers") from None
    if not array.size or not np.isfinite(array).all() or np.abs(array).max() > HUGE:
        raise InputError(f"{where} must be finite numbers of a size that a rig can have")
    return array


def _rotation(value: Floats, where: str) -> Floats:
    if value.size == 9:
        return value.reshape(3, 3)
    if value.size == 3:
        return rotation_from_vector(value.ravel())
    raise InputError(f"{where}: rotation must be 3 or 9 numbers, got {value.size}")


def _vector(value: Floats, where: str) -> Floats:
    if value.size != 3:
        raise InputError(f"{where}: translation must be 3 numbers, got {value.size}")
    return value.ravel()


def _size(content: dict[str, Any], options: ReadOptions, where: str) -> tuple[int, int]:
    pairs = (("image_width", "image_height"), ("Image_Width", "Image_Height"), ("width", "height"))
    for wide, high in pairs:
        if wide in content and high in content:
            pair = _array([content[wide], content[high]], f"{where}: image size")
            if pair.min() < 1 or pair.max() > 1_000_000:
                raise InputError(f"{where}: image size {pair[0]:g} x {pair[1]:g} is not one")
            return int(pair[0]), int(pair[1])
    for name in ("image_size", "imageSize", "size"):
        if name in content:
            pair = _array(content[name], f"{where}: {name}").ravel()
            if pair.size == 2 and pair.min() >= 1 and pair.max() <= 1_000_000:
                return int(pair[0]), int(pair[1])
    return options.need_size(where)


def _lens(size: tuple[int, int], matrix: Floats, distortion: Floats, fisheye: bool, where: str) -> Lens:
    if matrix.size != 9:
        raise InputError(f"{where}: camera matrix must be 3x3, got {matrix.size} numbers")
    try:
        if fisheye:
            return FisheyeLens(size, matrix.reshape(3, 3), distortion.ravel())
        return PinholeLens(size, matrix.reshape(3, 3), distortion.ravel())
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _one(content: dict[str, Any], name: str, options: ReadOptions, where: str) -> LensCamera:
    size = _size(content, options, where)
    distortion = np.zeros(0)
    if any(key in content for key in _DISTORTION):
        distortion = _first(content, _DISTORTION, where, "distortion")
    matrix = _first(content, _MATRIX, where, "camera matrix")
    rotation = _rotation(_first(content, _ROTATION, where, "rotation"), where)
    translation = _vector(_first(content, _TRANSLATION, where, "translation"), where)
    fisheye = content.get("fisheye", 0)
    lens = _lens(size, matrix, distortion, fisheye in (1, True, "true", 1.0), where)
    kind = "xray" if content.get("kind") == "xray" else "light"
    pose = scaled_pose(rotation, translation, options.unit_mm or 1.0)
    return _named(lambda: LensCamera(name, lens, pose, "xray" if kind == "xray" else "light"), where)


def _named(build: Callable[[], LensCamera], where: str) -> LensCamera:
    try:
        return build()
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _is_opencv(path: Path) -> bool:
    if path.is_dir():
        files = storage_files(path)
        return bool(files) and not _is_easymocap(path) and not _is_jarvis(path)
    return looks_like_storage(path) and not _is_easymocap(path) and not _is_jarvis(path)


def _read_opencv(path: Path, options: ReadOptions) -> Rig:
    if path.is_dir():
        return Rig(tuple(_one(read_storage(f), f.stem, options, str(f)) for f in camera_files(path)))
    content = read_storage(path)
    if {"M1", "M2", "R", "T"} <= content.keys():
        return _stereo(content, options, str(path))
    cameras = content.get("cameras")
    if isinstance(cameras, list):
        if not all(isinstance(item, dict) for item in cameras):
            raise InputError(f"{path}: cameras must be a list of cameras, each with camera_matrix, rotation, ...")
        named = [(str(item.get("name", index)), item) for index, item in enumerate(cameras)]
        return Rig(tuple(_one(item, name, options, f"{path}: camera '{name}'") for name, item in named))
    return Rig((_one(content, path.stem, options, str(path)),))


def _stereo(content: dict[str, Any], options: ReadOptions, where: str) -> Rig:
    """Build the pair of OpenCV's stereo sample: R, T bring left camera coordinates to the right camera."""
    size = _size(content, options, where)
    cameras = []
    for side, name in (("1", "left"), ("2", "right")):
        distortion = _array(content[f"D{side}"], f"{where}: D{side}") if f"D{side}" in content else np.zeros(0)
        lens = _lens(size, _array(content[f"M{side}"], f"{where}: M{side}"), distortion, False, where)
        rotation, translation = np.eye(3), np.zeros(3)
        if side == "2":
            rotation = _rotation(_array(content["R"], f"{where}: R"), where)
            translation = _vector(_array(content["T"], f"{where}: T"), where)
        cameras.append(LensCamera(name, lens, scaled_pose(rotation, translation, options.unit_mm or 1.0)))
    return Rig(tuple(cameras))


def _write_opencv(rig: Rig, path: Path) -> None:
    if path.suffix.lower() == ".xml":
        raise InputError(f"{path}: OpenCV files are written as YAML; name it .yml (OpenCV reads both)")
    cameras = []
    for camera in map(with_lens, rig):
        pose, lens = camera.camera_from_world, camera.lens
        cameras.append(
            {
                "name": camera.name,
                "image_width": camera.size[0],
                "image_height": camera.size[1],
                "fisheye": int(isinstance(lens, FisheyeLens)),
                "kind": camera.kind,
                "camera_matrix": lens.intrinsics,
                "distortion_coefficients": padded(lens.distortion, 4)[None],
                "rotation": vector_from_rotation(pose.rotation)[:, None],
                "translation": pose.translation[:, None],
            }
        )
    write_text(path, yaml_storage({"units": "mm", "cameras": cameras}))


OPENCV = RigFormat("opencv", "OpenCV YAML/XML", _is_opencv, _read_opencv, _write_opencv, Holds(kind=True))


def _easymocap_files(path: Path) -> tuple[Path, Path]:
    folder = path if path.is_dir() else path.parent
    return folder / "intri.yml", folder / "extri.yml"


def _is_easymocap(path: Path) -> bool:
    named = path.is_dir() or path.name in ("intri.yml", "extri.yml")
    return named and all(file.is_file() for file in _easymocap_files(path))


def _read_easymocap(path: Path, options: ReadOptions) -> Rig:
    intrinsics_file, extrinsics_file = _easymocap_files(path)
    inner, outer = read_storage(intrinsics_file), read_storage(extrinsics_file)
    names = inner.get("names")
    if not isinstance(names, list) or not names:
        raise InputError(f"{intrinsics_file}: names must list the cameras")
    cameras = []
    for name in map(str, names):
        where = f"{intrinsics_file}: camera '{name}'"
        matrix = _first(inner, (f"K_{name}",), where, "camera matrix")
        distortion = _first(inner, (f"dist_{name}", f"D_{name}"), where, "distortion")
        where = f"{extrinsics_file}: camera '{name}'"
        rotation = _rotation(_first(outer, (f"Rot_{name}", f"R_{name}"), where, "rotation"), where)
        translation = _vector(_first(outer, (f"T_{name}",), where, "translation"), where)
        sizes = {
            key: inner[f"{letter}_{name}"]
            for key, letter in (("width", "W"), ("height", "H"))
            if f"{letter}_{name}" in inner
        }
        size = _size(sizes, options, where)
        pose = scaled_pose(rotation, translation, options.unit_mm or 1000.0)
        lens = _lens(size, matrix, distortion, False, where)
        cameras.append(_named(lambda n=name, le=lens, p=pose: LensCamera(n, le, p), where))  # type: ignore[misc]
    return Rig(tuple(cameras))


def _write_easymocap(rig: Rig, path: Path) -> None:
    inner: dict[str, Any] = {"names": list(rig.names)}
    outer: dict[str, Any] = {"names": list(rig.names)}
    for camera in map(with_lens, rig):
        pose = camera.camera_from_world
        inner[f"K_{camera.name}"] = camera.lens.intrinsics
        inner[f"dist_{camera.name}"] = padded(camera.lens.distortion, 5)[None]
        inner[f"H_{camera.name}"], inner[f"W_{camera.name}"] = camera.size[1], camera.size[0]
        outer[f"R_{camera.name}"] = vector_from_rotation(pose.rotation)[:, None]
        outer[f"Rot_{camera.name}"] = pose.rotation
        outer[f"T_{camera.name}"] = pose.translation[:, None] / 1000
    path.mkdir(parents=True, exist_ok=True)
    write_text(path / "intri.yml", yaml_storage(inner))
    write_text(path / "extri.yml", yaml_storage(outer))


EASYMOCAP = RigFormat(
    "easymocap",
    "EasyMocap intri.yml and extri.yml",
    _is_easymocap,
    _read_easymocap,
    _write_easymocap,
    Holds(distortion=5, fisheye=False),
    unit="m",
)


def _is_jarvis(path: Path) -> bool:
    files = storage_files(path) if path.is_dir() else [path] if looks_like_storage(path) else []
    if not files:
        return False
    with open(files[0], "rb") as file:
        return b"intrinsicMatrix" in file.read(4000)


def _read_jarvis(path: Path, options: ReadOptions) -> Rig:
    """Read one file per camera; JARVIS stores the camera matrix and R transposed."""
    cameras = []
    for file in camera_files(path) if path.is_dir() else [path]:
        content, where = read_storage(file), str(file)
        matrix = _first(content, ("intrinsicMatrix",), where, "camera matrix")
        if matrix.size != 9:
            raise InputError(f"{where}: intrinsicMatrix must be 3x3, got {matrix.size} numbers")
        distortion = _first(content, ("distortionCoefficients",), where, "distortion")
        rotation = _rotation(_first(content, ("R",), where, "rotation"), where)
        translation = _vector(_first(content, ("T",), where, "translation"), where)
        size = _size(content, options, where)
        lens = _lens(size, matrix.reshape(3, 3).T, distortion, False, where)
        pose = scaled_pose(rotation.T, translation, options.unit_mm or 1.0)
        name = file.stem.removeprefix("Calib_")
        cameras.append(_named(lambda n=name, le=lens, p=pose: LensCamera(n, le, p), where))  # type: ignore[misc]
    return Rig(tuple(cameras))


def _write_jarvis(rig: Rig, path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    for camera in map(with_lens, rig):
        pose = camera.camera_from_world
        content = {
            "image_width": camera.size[0],
            "image_height": camera.size[1],
            "intrinsicMatrix": camera.lens.intrinsics.T,
            "distortionCoefficients": padded(camera.lens.distortion, 5)[None],
            "R": pose.rotation.T,
            "T": pose.translation[:, None],
        }
        write_text(inside(path, f"{camera.name}.yaml"), yaml_storage(content))


JARVIS = RigFormat(
    "jarvis",
    "JARVIS YAML, one file per camera",
    _is_jarvis,
    _read_jarvis,
    _write_jarvis,
    Holds(distortion=5, fisheye=False),
    is_folder=True,
)
