"""A rig: cameras in one frame of reference, and its file.

``rig.toml`` loads in Anipose as it is: one table ``[cam_N]`` per camera with ``name``, ``size``, ``matrix``,
``distortions``, ``rotation`` (Rodrigues vector, camera from world) and ``translation``. What Anipose has no field
for goes in keys that it ignores: ``kind``, and ``projection`` for a view known only by its 3x4 matrix.
The unit is millimetres; a file that says ``units = "m"`` or "cm" under ``[metadata]`` is converted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from numpy.typing import ArrayLike
from scipy.linalg import rq

from calibration.cameras.camera import KINDS, Camera, LensCamera, MatrixCamera
from calibration.cameras.lens import FisheyeLens, Lens, PinholeLens
from calibration.cameras.projection import project_points
from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError, nearest
from calibration.foundation.files import write_text
from calibration.foundation.tables import Table, read_toml
from calibration.geometry.transforms import RigidTransform, rotation_from_vector, vector_from_rotation

__all__ = [
    "UNITS_MM",
    "Rig",
    "camera_of_world",
    "decompose_projection",
    "duplicate_cameras",
    "load_rig",
    "rig_from_table",
    "rig_to_toml",
    "save_rig",
]

#: Millimetres in one unit of a file.
UNITS_MM = {"mm": 1.0, "cm": 10.0, "m": 1000.0}


@dataclass(frozen=True, eq=False)
class Rig:
    """Cameras in one world frame (mm), in the order of their file.

    Attributes:
        cameras: at least one, with different names.
    """

    cameras: tuple[Camera, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "cameras", tuple(self.cameras))
        if not self.cameras:
            raise InputError("rig: wanted at least one camera, got none")
        names = self.names
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"rig: two cameras are called '{name}'")

    @property
    def names(self) -> tuple[str, ...]:
        """Camera names in order."""
        return tuple(camera.name for camera in self.cameras)

    def __len__(self) -> int:
        return len(self.cameras)

    def __iter__(self) -> Iterator[Camera]:
        return iter(self.cameras)

    def __getitem__(self, which: str | int) -> Camera:
        if isinstance(which, int):
            return self.cameras[which]
        for camera in self.cameras:
            if camera.name == which:
                return camera
        raise InputError(
            f"unknown camera '{which}'; {nearest(which, self.names)} (the rig has {', '.join(self.names)})"
        )

    def subset(self, names: Iterable[str]) -> Rig:
        """Return the rig of the named cameras, in the order given."""
        return Rig(tuple(self[name] for name in names))

    def packed(self) -> Floats:
        """Return all cameras as rows (C, 36) for compiled kernels (see `calibration.cameras.camera_row`)."""
        return np.stack([camera.packed() for camera in self.cameras])

    def project(self, points: ArrayLike) -> Floats:
        """Project world points (..., 3) into every camera: (C, ..., 2) px, NaN where a camera cannot see."""
        p = np.asarray(points, dtype=np.float64)
        flat = np.ascontiguousarray(p.reshape(-1, 3))
        return np.asarray(project_points(self.packed(), flat).reshape(len(self), *p.shape[:-1], 2))

    @property
    def centres(self) -> Floats:
        """(C, 3) centres of projection, mm."""
        return np.stack([camera.centre for camera in self.cameras])

    def size_mm(self) -> float:
        """Return the largest distance between two cameras, mm."""
        c = self.centres
        return float(np.linalg.norm(c[:, None] - c[None], axis=-1).max())


def decompose_projection(matrix: Floats) -> tuple[Floats, RigidTransform]:
    """Split a 3x4 projection matrix into intrinsics (3, 3) with skew and a pose (RQ decomposition)."""
    m = matrix * np.sign(np.linalg.det(matrix[:, :3]))
    k, r = rq(m[:, :3])
    signs = np.sign(np.diag(k))
    k, r = k * signs, signs[:, None] * r
    t = np.linalg.solve(k, m[:, 3])
    return np.asarray(np.triu(k / k[2, 2])), RigidTransform(r, t)


def load_rig(path: Path | str) -> Rig:
    """Read a ``rig.toml`` (Anipose-compatible)."""
    return rig_from_table(read_toml(path))


def rig_from_table(root: Table) -> Rig:
    """Build a rig from the root table of an Anipose-like file."""
    unit = 1.0
    if "metadata" in root:
        meta = root.table("metadata")
        unit = UNITS_MM[meta.text("units", "mm", choices=tuple(UNITS_MM))]
    tables = [root.table(key) for key in root.content if key != "metadata"]
    if not tables:
        raise InputError(f"{root.path}: no camera table; wanted [cam_0], [cam_1], ... each with name, size, matrix")
    return Rig(tuple(_camera(table, unit) for table in tables))


def _camera(table: Table, unit: float) -> Camera:
    name = table.text("name", default=table.name)
    size = table.size("size")
    kind = table.text("kind", "light", choices=KINDS)
    k = "xray" if kind == "xray" else "light"
    try:
        if "projection" in table:
            p = table.array("projection", (3, 4))
            p = p @ np.diag([1 / unit, 1 / unit, 1 / unit, 1])
            return MatrixCamera(name, size, p, kind=k)  # type: ignore[arg-type]
        rotation = table.array("rotation", (3,), (3, 3))
        r = rotation_from_vector(rotation) if rotation.ndim == 1 else rotation
        t = table.array("translation", (3,), (3, 1)).reshape(3) * unit
        return LensCamera(name, _lens(table, size), RigidTransform(r, t), kind=k)  # type: ignore[arg-type]
    except InputError as error:
        if str(error).startswith(str(table.path)):
            raise
        raise InputError(f"{table.path}: [{table.name}] {error}") from None


def _lens(table: Table, size: tuple[int, int]) -> Lens:
    matrix = table.array("matrix", (3, 3))
    distortion = np.zeros(0)
    if "distortions" in table:
        distortion = table.array("distortions", (None,), (1, None), (None, 1)).ravel()
    if table.flag("fisheye", False):
        return FisheyeLens(size, matrix, distortion[:4] if not distortion[4:].any() else distortion)
    return PinholeLens(size, matrix, distortion)


def rig_to_toml(rig: Rig, metadata: dict[str, Any] | None = None) -> str:
    """Return the text of a ``rig.toml``."""
    # Anipose sorts table names as text: leading zeros keep the order of more than ten cameras there too.
    digits = len(str(len(rig) - 1))
    content: dict[str, Any] = {}
    for index, camera in enumerate(rig):
        content[f"cam_{index:0{digits}d}"] = _camera_table(camera)
    content["metadata"] = {"units": "mm", **(metadata or {})}
    return tomli_w.dumps(content)


def _camera_table(camera: Camera) -> dict[str, Any]:
    table: dict[str, Any] = {"name": camera.name, "size": list(camera.size)}
    if isinstance(camera, LensCamera):
        k, pose, distortion = camera.lens.intrinsics, camera.camera_from_world, camera.lens.distortion
        if isinstance(camera.lens, PinholeLens) and not len(distortion):
            distortion = np.zeros(5)  # Anipose wants the key
    elif isinstance(camera, MatrixCamera):
        k, pose = decompose_projection(camera.matrix)
        distortion = np.zeros(5)
        table["projection"] = camera.matrix.tolist()
    else:
        raise InputError(f"camera '{camera.name}': a {type(camera).__name__} has no place in rig.toml")
    table["matrix"] = k.tolist()
    table["distortions"] = distortion.tolist()
    table["rotation"] = vector_from_rotation(pose.rotation).tolist()
    table["translation"] = pose.translation.tolist()
    table["fisheye"] = isinstance(camera, LensCamera) and isinstance(camera.lens, FisheyeLens)
    if camera.kind != "light":
        table["kind"] = camera.kind
    return table


def camera_of_world(rig: Rig) -> str | None:
    """Return the camera whose own axes the world's are (x right, y down), as in a rig without a floor; None if none."""
    for camera in rig:
        if isinstance(camera, LensCamera):
            pose = camera.camera_from_world
            if np.abs(pose.rotation - np.eye(3)).max() < 1e-9 and np.abs(pose.translation).max() < 1e-6:
                return camera.name
    return None


def save_rig(rig: Rig, path: Path | str, metadata: dict[str, Any] | None = None) -> None:
    """Write a ``rig.toml``, atomically; ``metadata`` joins its ``[metadata]`` table."""
    write_text(path, rig_to_toml(rig, metadata))


def duplicate_cameras(rig: Rig) -> list[tuple[str, str]]:
    """Return pairs of cameras whose poses agree to a micrometre and a microradian: no two real ones do."""
    pairs = []
    posed = [c for c in rig if isinstance(c, LensCamera)]
    for i, a in enumerate(posed):
        for b in posed[i + 1 :]:
            relative: RigidTransform = a.camera_from_world @ b.camera_from_world.inverse()
            if np.abs(relative.translation).max() < 1e-3 and np.abs(relative.rotation - np.eye(3)).max() < 1e-6:
                pairs.append((a.name, b.name))
    return pairs
