"""Rigs in small text files: MayaCam 1 and 2 (XMALab), DLT coefficients, HumanEva .cal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from calibration.cameras.camera import LensCamera, MatrixCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import HUGE, Floats
from calibration.foundation.errors import InputError
from calibration.foundation.files import read_text, write_text
from calibration.foundation.names import inside, natural_key
from calibration.geometry.transforms import RigidTransform, rotation_from_vector
from calibration.rig_formats.rig_format import (
    Holds,
    ReadOptions,
    RigFormat,
    padded,
    scaled_pose,
    with_lens,
)

__all__ = ["DLT", "HUMANEVA", "MAYACAM1", "MAYACAM2"]


def _numbers(text: str, where: str) -> list[float]:
    words = [word for word in re.split(r"[\s,;]+", text) if word]
    try:
        values = [float(word) for word in words]
    except ValueError:
        raise InputError(f"{where}: wanted numbers only") from None
    if not np.isfinite(values).all() or any(abs(value) > HUGE for value in values):
        raise InputError(f"{where}: wanted finite numbers of a size that a rig can have")
    return values


def _small_text(path: Path) -> str | None:
    """Return the text of a file that may be one of these formats, None where it cannot be."""
    if not path.is_file() or path.stat().st_size > 1_000_000:
        return None
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _files(path: Path, fits: Callable[[Path], bool]) -> list[Path]:
    """Return the files of a folder that fit, in natural order, or the file itself."""
    if path.is_dir():
        return sorted((p for p in path.iterdir() if fits(p)), key=lambda p: natural_key(p.name))
    return [path] if fits(path) else []


def _suspects(path: Path, files: list[Path]) -> list[Path]:
    """Return files of a folder that should be cameras by their name, or are empty: none may vanish without a word."""
    suffixes = {file.suffix.lower() for file in files}
    others = (
        sorted(p for p in path.iterdir() if p.suffix.lower() in suffixes and p not in files) if path.is_dir() else []
    )
    return [p for p in others if "mayacam" in p.name.lower() or not (_small_text(p) or "").strip()]


def _cameras(path: Path, fits: Callable[[Path], bool], read: Callable[[Path], LensCamera], what: str) -> Rig:
    files = _files(path, fits)
    if not files:
        raise InputError(f"{path}: no {what} here")
    for other in _suspects(path, files):
        raise InputError(f"{other}: empty, or not a {what} like the others; mend it, or take it out of {path}")
    cameras = []
    for file in files:
        try:
            cameras.append(read(file))
        except InputError as error:
            raise error if str(error).startswith(str(file)) else InputError(f"{file}: {error}") from None
    return Rig(tuple(cameras))


# MayaCam 2.0: titled blocks; rotation is camera from world.

_TITLES = ("image size", "camera matrix", "rotation", "translation", "undistortion")


def _fits_mayacam2(path: Path) -> bool:
    text = _small_text(path)
    return text is not None and path.suffix.lower() in (".txt", ".csv") and "camera matrix" in text[:2000].lower()


def _read_mayacam2(path: Path, options: ReadOptions) -> Rig:
    return _cameras(path, _fits_mayacam2, lambda file: _one_mayacam2(file, options), "MayaCam 2.0 file")


def _one_mayacam2(file: Path, options: ReadOptions) -> LensCamera:
    blocks: dict[str, str] = {}
    title = ""
    for line in read_text(file).splitlines():
        word = line.strip().lower()
        if word in _TITLES:
            title = word
            blocks[title] = ""
        elif title:
            blocks[title] += line + "\n"
    sizes = {"image size": (2,), "camera matrix": (9,), "rotation": (9,), "translation": (3,)}
    values: dict[str, Floats] = {}
    for name, counts in sizes.items():
        if name not in blocks:
            raise InputError(f"{file}: no '{name}' block")
        values[name] = np.array(_numbers(blocks[name], f"{file}: '{name}'"))
        if len(values[name]) not in counts:
            raise InputError(f"{file}: '{name}' must hold {counts[0]} numbers, got {len(values[name])}")
    distortion = np.array(_numbers(blocks.get("undistortion", ""), f"{file}: 'undistortion'"))
    wide, high = values["image size"]
    lens = PinholeLens((int(wide), int(high)), values["camera matrix"].reshape(3, 3), distortion)
    pose = scaled_pose(values["rotation"].reshape(3, 3), values["translation"], options.unit_mm or 1.0)
    return LensCamera(_mayacam_name(file), lens, pose)


def _mayacam_name(file: Path) -> str:
    """Return the camera's name: the file's, less the tail that XMALab adds."""
    return re.sub(r"_MayaCam\d*$", "", file.stem) or file.stem


def _rows(rows: Iterable[Iterable[float]]) -> str:
    return "".join(",".join(repr(float(n)) for n in row) + "\n" for row in rows)


def _write_mayacam2(rig: Rig, path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    for camera in map(with_lens, rig):
        pose, distortion = camera.camera_from_world, camera.lens.distortion
        text = f"image size\n{camera.size[0]},{camera.size[1]}\n\n"
        text += "camera matrix\n" + _rows(camera.lens.intrinsics)
        text += "\nrotation\n" + _rows(pose.rotation)
        text += "\ntranslation\n" + _rows(pose.translation[:, None])
        if distortion.any():
            text += "\nundistortion\n" + _rows(padded(distortion, 8)[:, None])
        write_text(inside(path, f"{camera.name}_MayaCam.txt"), text)


MAYACAM2 = RigFormat(
    "mayacam2",
    "MayaCam 2.0 (XMALab), one file per camera",
    lambda path: bool(_files(path, _fits_mayacam2)),
    _read_mayacam2,
    _write_mayacam2,
    Holds(distortion=8, fisheye=False),
    is_folder=True,
)


# MayaCam 1: five rows of three numbers. The image is turned upside down (y from the bottom), the axes are Maya's.

_FLIP = np.diag([-1.0, 1.0, -1.0])


def _fits_mayacam1(path: Path) -> bool:
    if path.suffix.lower() != ".csv":
        return False
    lines = [line for line in (_small_text(path) or "").splitlines() if line.strip()]
    if len(lines) != 5 or any(line.count(",") != 2 for line in lines):
        return False
    try:
        values = _numbers("\n".join(lines), str(path))
    except InputError:
        return False
    return len(values) == 15 and 0 < values[12] < 1 and min(values[13:]) > 1


def _turn(angle: float, axis: int) -> Floats:
    vector = np.zeros(3)
    vector[axis] = angle
    return rotation_from_vector(vector)


def _read_mayacam1(path: Path, options: ReadOptions) -> Rig:
    return _cameras(path, _fits_mayacam1, lambda file: _one_mayacam1(file, options), "MayaCam 1 file")


def _one_mayacam1(file: Path, options: ReadOptions) -> LensCamera:
    values = np.array(_numbers(read_text(file), str(file))).reshape(5, 3)
    centre, angles = values[0] * (options.unit_mm or 1.0), np.radians(values[1])
    wide, high = int(values[4, 1]), int(values[4, 2])
    # world from the flipped camera: the angles are taken out as Rz(az + pi) Ry(-ay) Rx(-ax)
    world_from_flipped = _turn(angles[2] + np.pi, 2) @ _turn(-angles[1], 1) @ _turn(-angles[0], 0)
    rotation = _FLIP @ world_from_flipped.T
    focal = -values[3, 2]
    intrinsics = np.array([[focal, 0, values[3, 0] - 1], [0, focal, high - values[3, 1]], [0, 0, 1]])
    lens = PinholeLens((wide, high), intrinsics, np.zeros(0))
    return LensCamera(_mayacam_name(file), lens, RigidTransform(rotation, -rotation @ centre))


def _write_mayacam1(rig: Rig, path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    near = 0.1
    for camera in map(with_lens, rig):
        k, (wide, high) = camera.lens.intrinsics, camera.size
        r = (_FLIP @ camera.camera_from_world.rotation).T
        angles = np.degrees(
            [
                np.arctan2(-r[2, 1], r[2, 2]),
                np.arctan2(r[2, 0], np.hypot(r[2, 1], r[2, 2])),
                np.arctan2(-r[1, 0], -r[0, 0]),
            ]
        )
        cx, cy, f = k[0, 2] + 1, high - k[1, 2], -k[0, 0]
        plane = [(wide / 2 - cx) * near, (high / 2 - cy) * near, near * f]
        text = _rows([camera.centre, angles, plane, [cx, cy, f], [near, wide, high]])
        write_text(inside(path, f"{camera.name}_MayaCam.csv"), text)


MAYACAM1 = RigFormat(
    "mayacam1",
    "MayaCam 1, one CSV per camera",
    lambda path: bool(_files(path, _fits_mayacam1)),
    _read_mayacam1,
    _write_mayacam1,
    Holds(distortion=0, fisheye=False, skew=False, two_focals=False),
    is_folder=True,
)


# DLT: 11 rows, one column per camera; u = (L1 X + L2 Y + L3 Z + L4) / (L9 X + L10 Y + L11 Z + 1).


def _fits_dlt(path: Path) -> bool:
    if path.suffix.lower() not in (".csv", ".txt"):
        return False
    lines = [line for line in (_small_text(path) or "").splitlines() if line.strip()]
    if len(lines) != 11:
        return False
    try:
        counts = {len(_numbers(line, str(path))) for line in lines}
    except InputError:
        return False
    return len(counts) == 1


def _read_dlt(path: Path, options: ReadOptions) -> Rig:
    lines = [line for line in read_text(path).splitlines() if line.strip()]
    rows = [_numbers(line, str(path)) for line in lines]
    if len(rows) != 11 or len({len(row) for row in rows}) != 1 or not rows[0]:
        raise InputError(f"{path}: DLT coefficients must be 11 rows with one column per camera")
    size = options.need_size(str(path))
    unit = options.unit_mm or 1.0
    cameras = []
    for index, column in enumerate(np.array(rows).T):
        matrix = np.append(column, 1.0).reshape(3, 4) @ np.diag([1 / unit, 1 / unit, 1 / unit, 1])
        if options.y_up:
            matrix = np.array([[1, 0, 0], [0, -1, size[1] - 1], [0, 0, 1.0]]) @ matrix
        camera = MatrixCamera(f"cam{index + 1}", size, matrix)
        # the twelfth coefficient is 1, so the origin lies in front; a negative determinant then mirrors the image
        if np.linalg.det(matrix[:, :3]) < 0:
            raise InputError(
                f"{path}: camera {index + 1} mirrors the image: does y grow upwards? then read with --y-up"
            )
        cameras.append(camera)
    return Rig(tuple(cameras))


def _write_dlt(rig: Rig, path: Path) -> None:
    columns = []
    for camera in rig:
        if isinstance(camera, MatrixCamera):
            matrix = camera.matrix
        else:
            posed = with_lens(camera)
            pose = posed.camera_from_world
            matrix = posed.lens.intrinsics @ np.column_stack([pose.rotation, pose.translation])
        if abs(matrix[2, 3]) < 1e-9 * np.abs(matrix[2]).max():
            raise InputError(
                f"camera '{camera.name}': DLT coefficients do not exist, the world origin lies in its plane"
            )
        columns.append((matrix / matrix[2, 3]).ravel()[:11])
    write_text(path, _rows(np.array(columns).T))


DLT = RigFormat(
    "dlt",
    "DLT coefficients (Argus, DLTdv), 11 rows",
    _fits_dlt,
    _read_dlt,
    _write_dlt,
    Holds(distortion=0, fisheye=False, size=False, matrix=True, lens=False, names=False),
)


# HumanEva .cal: 22 numbers: fc(2) cc(2) skew kc(5) R(9, row by row) T(3) mm; Bouguet's model.


def _fits_humaneva(path: Path) -> bool:
    return path.suffix.lower() == ".cal" and path.is_file()


def _read_humaneva(path: Path, options: ReadOptions) -> Rig:
    return _cameras(path, _fits_humaneva, lambda file: _one_humaneva(file, options), "HumanEva .cal file")


def _one_humaneva(file: Path, options: ReadOptions) -> LensCamera:
    v = _numbers(read_text(file), str(file))
    if len(v) != 22:
        raise InputError(f"{file}: a HumanEva calibration holds 22 numbers, got {len(v)}")
    # Bouguet's skew is a factor of the focal length: u = fx (x + skew y) + cx
    k = np.array([[v[0], v[0] * v[4], v[2]], [0, v[1], v[3]], [0, 0, 1.0]])
    lens = PinholeLens(options.need_size(str(file)), k, np.array(v[5:10]))
    rotation = np.array(v[10:19]).reshape(3, 3)
    u, _, vt = np.linalg.svd(rotation)
    if np.abs(u @ vt - rotation).max() > 1e-3:
        raise InputError(f"{file}: numbers 11-19 are not a rotation matrix")
    pose = scaled_pose(u @ vt, np.array(v[19:22]), options.unit_mm or 1.0)
    return LensCamera(file.stem, lens, pose)


def _write_humaneva(rig: Rig, path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    for camera in map(with_lens, rig):
        k, pose = camera.lens.intrinsics, camera.camera_from_world
        values = [k[0, 0], k[1, 1], k[0, 2], k[1, 2], k[0, 1] / k[0, 0]]
        values += [*padded(camera.lens.distortion, 5), *pose.rotation.ravel(), *pose.translation]
        write_text(inside(path, f"{camera.name}.cal"), "".join(f"{float(n)!r}\n" for n in values))


HUMANEVA = RigFormat(
    "humaneva",
    "HumanEva .cal, one file per camera",
    lambda path: bool(_files(path, _fits_humaneva)),
    _read_humaneva,
    _write_humaneva,
    Holds(distortion=5, fisheye=False, size=False),
    is_folder=True,
)
