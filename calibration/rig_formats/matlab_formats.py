"""Rigs in MATLAB files: DANNCE's ``params`` and ``camnames`` cells, with row-vector matrices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.io

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import HUGE, Floats
from calibration.foundation.errors import InputError
from calibration.foundation.files import atomic_path
from calibration.rig_formats.matlab_files import read_matlab
from calibration.rig_formats.rig_format import Holds, ReadOptions, RigFormat, padded, scaled_pose, with_lens

__all__ = ["DANNCE"]


def _is_dannce(path: Path) -> bool:
    return path.suffix.lower() == ".mat" and path.is_file()


def _field(record: Any, name: str, shape: tuple[int, ...] | None, where: str) -> Floats:
    value = record.get(name) if isinstance(record, dict) else None
    if not isinstance(value, np.ndarray) or value.dtype == object:
        raise InputError(f"{where}: params has no numeric field '{name}'")
    value = value.astype(np.float64)
    if shape is not None and value.size != int(np.prod(shape)):
        raise InputError(f"{where}: {name} must be {'x'.join(map(str, shape))}, got {value.size} numbers")
    if not np.isfinite(value).all() or np.abs(value).max(initial=0) > HUGE:
        raise InputError(f"{where}: {name} must be finite numbers of a size that a rig can have")
    return value.reshape(shape) if shape is not None else value.ravel()


def _read_dannce(path: Path, options: ReadOptions) -> Rig:
    content = read_matlab(path)
    params = content.get("params")
    if not isinstance(params, np.ndarray) or params.dtype != object or not params.size:
        raise InputError(f"{path}: no 'params' cell, as in DANNCE's label3d_dannce.mat")
    names = _names(content.get("camnames"), params.size, path)
    unit = options.unit_mm or 1.0
    cameras = []
    for name, record in zip(names, params.ravel(), strict=True):
        where = f"{path}: camera '{name}'"
        size = options.size
        if isinstance(record, dict) and "imageSize" in record:
            wide, high = _field(record, "imageSize", (2,), where)
            size = int(wide), int(high)
        if size is None:
            size = options.need_size(where)
        k = _field(record, "K", (3, 3), where).T  # row vectors: [x y 1] K
        radial, tangential = _field(record, "RDistort", None, where), _field(record, "TDistort", (2,), where)
        distortion = np.array([*radial[:2], *tangential, *radial[2:3]])
        rotation = _field(record, "r", (3, 3), where).T
        translation = _field(record, "t", (3,), where)
        try:
            cameras.append(LensCamera(name, PinholeLens(size, k, distortion), scaled_pose(rotation, translation, unit)))
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
    return Rig(tuple(cameras))


def _names(value: Any, count: int, path: Path) -> list[str]:
    if not isinstance(value, np.ndarray) or value.size != count:
        return [f"Camera{index + 1}" for index in range(count)]
    names = list(value.ravel(order="F"))
    if not all(isinstance(name, str) for name in names):
        raise InputError(f"{path}: camnames must hold one name per camera")
    return names


def _write_dannce(rig: Rig, path: Path) -> None:
    params = np.empty((len(rig), 1), dtype=object)
    names = np.empty((1, len(rig)), dtype=object)
    for index, camera in enumerate(map(with_lens, rig)):
        d, pose = padded(camera.lens.distortion, 5), camera.camera_from_world
        params[index, 0] = {
            "K": camera.lens.intrinsics.T,
            "RDistort": d[[0, 1, 4]][None],
            "TDistort": d[[2, 3]][None],
            "r": pose.rotation.T,
            "t": pose.translation[None],
            "imageSize": np.array([camera.size], dtype=float),
        }
        names[0, index] = camera.name
    with atomic_path(path) as temporary:
        scipy.io.savemat(temporary, {"params": params, "camnames": names})


DANNCE = RigFormat("dannce", "DANNCE .mat", _is_dannce, _read_dannce, _write_dannce, Holds(distortion=5, fisheye=False))
