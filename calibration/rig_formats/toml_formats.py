"""TOML rigs: Anipose (our own rig.toml), Pose2Sim, Caliscope."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import FisheyeLens, PinholeLens
from calibration.cameras.rig import Rig, load_rig, rig_from_table, save_rig
from calibration.foundation.errors import InputError
from calibration.foundation.files import write_text
from calibration.foundation.tables import Table, read_toml
from calibration.geometry.transforms import rotation_from_vector, vector_from_rotation
from calibration.rig_formats.rig_format import Holds, ReadOptions, RigFormat, padded, scaled_pose, with_lens

__all__ = ["ANIPOSE", "CALISCOPE", "POSE2SIM"]


def _tables(path: Path) -> Table | None:
    if path.suffix.lower() != ".toml" or not path.is_file():
        return None
    return read_toml(path)


def _camera_tables(root: Table) -> list[dict[str, Any]]:
    return [value for key, value in root.content.items() if key != "metadata" and isinstance(value, dict)]


def _is_anipose(path: Path) -> bool:
    root = _tables(path)
    if root is None or _is_caliscope(path) or _is_pose2sim(path):
        return False
    return any("matrix" in table or "projection" in table for table in _camera_tables(root))


def _read_anipose(path: Path, options: ReadOptions) -> Rig:
    rig = load_rig(path)
    if options.unit_mm is None or options.unit_mm == 1:
        return rig
    root = read_toml(path)
    for table in _camera_tables(root):
        table["translation"] = (np.asarray(table["translation"], dtype=float) * options.unit_mm).tolist()
    return rig_from_table(root)


ANIPOSE = RigFormat(
    "anipose", "Anipose calibration.toml", _is_anipose, _read_anipose, save_rig, Holds(kind=True, matrix=True)
)


def _is_pose2sim(path: Path) -> bool:
    """Pose2Sim writes Anipose's keys with four distortions and metres; ours state their unit."""
    root = _tables(path)
    if root is None or "cameras" in root:
        return False
    meta = root.content.get("metadata", {})
    if isinstance(meta, dict) and "units" in meta:
        return bool(meta["units"] == "m")
    cameras = _camera_tables(root)
    return bool(cameras) and all(_metric_four(table) for table in cameras)


def _metric_four(table: dict[str, Any]) -> bool:
    distortions, translation = table.get("distortions"), table.get("translation")
    if not isinstance(distortions, list) or len(distortions) != 4 or not isinstance(translation, list):
        return False
    if not all(isinstance(n, int | float) for n in translation):
        return False
    # a camera closer than 5 cm to the origin does not occur; one further than 50 m neither
    return 0 < float(np.abs(translation).max(initial=0)) < 50 and "size" in table


def _read_pose2sim(path: Path, options: ReadOptions) -> Rig:
    root = read_toml(path)
    root.content.setdefault("metadata", {})
    if isinstance(root.content["metadata"], dict) and options.unit_mm is None:
        root.content["metadata"].setdefault("units", "m")
    rig = rig_from_table(root)
    return rig if options.unit_mm is None else _rescaled(rig, options.unit_mm)


def _rescaled(rig: Rig, factor: float) -> Rig:
    cameras = [with_lens(camera) for camera in rig]
    return Rig(
        tuple(
            LensCamera(
                c.name,
                c.lens,
                scaled_pose(c.camera_from_world.rotation, c.camera_from_world.translation, factor),
                c.kind,
            )
            for c in cameras
        )
    )


def _write_pose2sim(rig: Rig, path: Path) -> None:
    content: dict[str, Any] = {}
    for camera in map(with_lens, rig):
        pose = camera.camera_from_world
        content[camera.name] = {
            "name": camera.name,
            "size": [float(n) for n in camera.size],
            "matrix": camera.lens.intrinsics.tolist(),
            "distortions": padded(camera.lens.distortion, 4)[:4].tolist(),
            "rotation": vector_from_rotation(pose.rotation).tolist(),
            "translation": (pose.translation / 1000).tolist(),
            "fisheye": isinstance(camera.lens, FisheyeLens),
        }
    content["metadata"] = {"adjusted": False, "error": 0.0, "units": "m"}
    write_text(path, tomli_w.dumps(content))


POSE2SIM = RigFormat(
    "pose2sim", "Pose2Sim Calib.toml", _is_pose2sim, _read_pose2sim, _write_pose2sim, Holds(distortion=4), unit="m"
)


def _is_caliscope(path: Path) -> bool:
    root = _tables(path)
    if root is None:
        return False
    cameras = root.content.get("cameras")
    return isinstance(cameras, dict) and any(isinstance(t, dict) and "matrix" in t for t in cameras.values())


def _read_caliscope(path: Path, options: ReadOptions) -> Rig:
    root = read_toml(path)
    unit = 1000.0 if options.unit_mm is None else options.unit_mm
    cameras = root.table("cameras")
    found: list[LensCamera] = []
    for key in cameras.content:
        table = cameras.table(key)
        if table.flag("ignore", False):
            continue
        if "rotation" not in table or "translation" not in table:
            raise InputError(f"{path}: [{table.name}] has no rotation and translation: this camera is not yet posed")
        size, matrix = table.size("size"), table.array("matrix", (3, 3))
        distortion = table.array("distortions", (None,)) if "distortions" in table else np.zeros(0)
        lens = FisheyeLens(size, matrix, distortion) if table.flag("fisheye", False) else None
        rotation = table.array("rotation", (3, 3), (3,))
        if rotation.ndim == 1:
            rotation = rotation_from_vector(rotation)
        pose = scaled_pose(rotation, table.array("translation", (3,)), unit)
        found.append(LensCamera(table.text("name", f"cam_{key}"), lens or PinholeLens(size, matrix, distortion), pose))
    return Rig(tuple(found))


def _write_caliscope(rig: Rig, path: Path) -> None:
    # Caliscope knows cameras by number: cam_N keeps its own if all have that form; the name is a key that it ignores
    numbers = [str(int(name[4:])) if re.fullmatch(r"cam_\d{1,6}", name) else "" for name in rig.names]
    if not all(numbers) or len(set(numbers)) < len(numbers):
        numbers = [str(index) for index in range(len(rig))]
    content: dict[str, Any] = {"cameras": {}}
    for number, camera in zip(numbers, map(with_lens, rig), strict=True):
        fisheye = isinstance(camera.lens, FisheyeLens)
        content["cameras"][number] = {
            "cam_id": int(number),
            "name": camera.name,
            "rotation_count": 0,
            "error": 0.0,
            "ignore": False,
            "size": list(camera.size),
            "matrix": camera.lens.intrinsics.tolist(),
            "distortions": padded(camera.lens.distortion, 4 if fisheye else 5).tolist(),
            "fisheye": fisheye,
            "rotation": camera.camera_from_world.rotation.tolist(),
            "translation": (camera.camera_from_world.translation / 1000).tolist(),
        }
    write_text(path, tomli_w.dumps(content))


CALISCOPE = RigFormat(
    "caliscope",
    "Caliscope camera_array.toml",
    _is_caliscope,
    _read_caliscope,
    _write_caliscope,
    Holds(distortion=5),
    unit="m",
)
