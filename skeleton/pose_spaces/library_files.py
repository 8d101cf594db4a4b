"""Pose library files: one .npz, poses as whole tenths of a milliradian, readable without PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from calibration.foundation.damaged_files import reading
from calibration.foundation.errors import InputError
from calibration.foundation.files import atomic_path
from calibration.foundation.npz_files import read_npz
from skeleton.pose_spaces.pose_library import PoseLibrary
from skeleton.pose_spaces.principal_geodesics import PoseSpace, load_pose_space

__all__ = ["load_library", "load_pose_model", "save_library"]

VERSION = 1
KIND = "vivarig pose library"
#: Stored logarithms per rad.
_SCALE = 1e4


def save_library(library: PoseLibrary, path: Path) -> None:
    """Write a pose library; same library, same bytes."""
    fields: dict[str, Any] = {
        "kind": KIND, "version": VERSION, "body": library.body, "names": np.array(library.names), "up": library.up,
        "mean": library.mean, "tangents": np.round(library.tangents * _SCALE).astype(np.int16),
        "sources": library.sources, "inflation": library.inflation,
    }  # fmt: skip
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, **fields)


def load_library(path: Path) -> PoseLibrary:
    """Read a pose library."""
    found = load_pose_model(path)
    if not isinstance(found, PoseLibrary):
        raise InputError(
            f"{path}: a pose space, wanted a pose library; make one with `vivarig train --skeleton --poses`"
        )
    return found


def load_pose_model(path: Path) -> PoseLibrary | PoseSpace:
    """Read a pose space or a pose library, whichever the file holds."""
    again = "make one with `vivarig train --skeleton`"
    if not Path(path).is_file():
        raise InputError(f"{path}: not a pose model; {again}")
    data = read_npz(path, "a pose model", remedy=again)
    if str(data.get("kind", "")) != KIND:
        return load_pose_space(path)
    with reading(path, "a pose model", remedy=again):
        if int(data["version"]) > VERSION:
            raise InputError(f"{path}: pose library version {data['version']}; update this program")
        tangents = data["tangents"].astype(np.float32) / np.float32(_SCALE)
        names = tuple(str(n) for n in data["names"])
        poses, joints = len(tangents), len(names)
        fits = tangents.shape == (poses, 3 * joints) and data["mean"].shape == (joints, 3, 3)
        if not fits or data["sources"].shape != (poses,) or not poses:
            raise InputError(f"{path}: not a pose model (its fields do not fit together); {again}")
        return PoseLibrary(
            str(data["body"]), names, str(data["up"]), data["mean"], tangents, data["sources"],
            float(data["inflation"]),
        )  # fmt: skip
