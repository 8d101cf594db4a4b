"""What a rig file format is: how it is recognised, read and written, and what it can hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from calibration.cameras.camera import Camera, LensCamera, MatrixCamera
from calibration.cameras.lens import FisheyeLens, PinholeLens
from calibration.cameras.rig import Rig, decompose_projection
from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from calibration.foundation.names import natural_key
from calibration.geometry.transforms import RigidTransform

__all__ = ["Holds", "ReadOptions", "RigFormat", "losses", "reduced", "with_lens"]


@dataclass(frozen=True)
class ReadOptions:
    """What a file may not say.

    Attributes:
        size: (width, height) px of all cameras, for formats without image sizes.
        unit_mm: millimetres in one unit of the file, for formats that state none.
        y_up: DLT coefficients whose image y grows upwards from the bottom edge (older digitising programs).
    """

    size: tuple[int, int] | None = None
    unit_mm: float | None = None
    y_up: bool = False

    def need_size(self, who: str) -> tuple[int, int]:
        """Return the size, or say that this format needs it from the user."""
        if self.size is None:
            raise InputError(f"{who}: the file holds no image size; give it with --size WIDTHxHEIGHT")
        return self.size


@dataclass(frozen=True)
class Holds:
    """What a format can hold.

    Attributes:
        distortion: the largest number of pinhole coefficients.
        fisheye, skew, kind, size, two_focals: whether it can.
        matrix: whether a bare projection matrix stays one.
        lens: whether it keeps a lens at all (DLT coefficients do not).
        names: whether cameras keep their names.
    """

    distortion: int = 14
    fisheye: bool = True
    skew: bool = True
    kind: bool = False
    size: bool = True
    two_focals: bool = True
    matrix: bool = False
    lens: bool = True
    names: bool = True


@dataclass(frozen=True)
class RigFormat:
    """One file format.

    Attributes:
        name: as given to ``--from`` and ``--to``.
        title: for people.
        recognise: whether a path (file or folder) looks like this format.
        read: path and options to rig.
        write: rig (already reduced to what the format holds) to path.
        holds: what survives.
        unit: the unit it writes, and reads where the file states none.
        is_folder: whether a rig is a folder of files.
    """

    name: str
    title: str
    recognise: Callable[[Path], bool]
    read: Callable[[Path, ReadOptions], Rig]
    write: Callable[[Rig, Path], None]
    holds: Holds
    unit: str = "mm"
    is_folder: bool = False


def with_lens(camera: Camera) -> LensCamera:
    """Return a camera with a lens: itself, or the decomposition of a bare matrix."""
    if isinstance(camera, LensCamera):
        return camera
    if isinstance(camera, MatrixCamera):
        k, pose = decompose_projection(camera.matrix)
        return LensCamera(camera.name, PinholeLens(camera.size, k, np.zeros(0)), pose, camera.kind)
    raise InputError(f"camera '{camera.name}': a {type(camera).__name__} cannot be converted")


def losses(rig: Rig, target: RigFormat) -> list[str]:
    """Return, one line each, what of ``rig`` the target format cannot hold."""
    holds, found = target.holds, []
    for camera in rig:
        lens = with_lens(camera).lens
        who = f"camera '{camera.name}'"
        if isinstance(lens, FisheyeLens):
            if not holds.fisheye:
                found.append(f"{who}: fisheye lens")
        elif lens.distortion[holds.distortion :].any():
            extra = np.flatnonzero(lens.distortion[holds.distortion :])
            found.append(f"{who}: {len(extra)} distortion coefficient(s) beyond the first {holds.distortion}")
        if lens.intrinsics[0, 1] != 0 and not holds.skew and holds.lens:
            found.append(f"{who}: skew of {lens.intrinsics[0, 1]:g} px")
        if lens.intrinsics[0, 0] != lens.intrinsics[1, 1] and not holds.two_focals:
            found.append(f"{who}: different focal lengths in x and y")
        if camera.kind != "light" and not holds.kind:
            found.append(f"{who}: kind '{camera.kind}'")
        if not holds.size:
            found.append(f"{who}: image size {camera.size[0]}x{camera.size[1]}")
    if not holds.names:
        found.append("camera names")
    elif target.is_folder and list(rig.names) != sorted(rig.names, key=natural_key):
        found.append("order of the cameras (a folder of files has only the order of their names)")
    return found


def reduced(rig: Rig, holds: Holds) -> Rig:
    """Return the rig with everything dropped that a format cannot hold."""
    return Rig(tuple(_reduced(camera, holds) for camera in rig))


def _reduced(camera: Camera, holds: Holds) -> Camera:
    if isinstance(camera, MatrixCamera) and holds.matrix:
        return camera
    posed = with_lens(camera)
    lens = posed.lens
    k: Floats = lens.intrinsics.copy()
    if not holds.skew and holds.lens:
        k[0, 1] = 0
    if not holds.two_focals:
        k[0, 0] = k[1, 1] = (k[0, 0] + k[1, 1]) / 2
    if isinstance(lens, FisheyeLens):
        kept = FisheyeLens(lens.size, k, lens.distortion) if holds.fisheye else PinholeLens(lens.size, k, np.zeros(0))
    else:
        kept = PinholeLens(lens.size, k, lens.distortion[: holds.distortion])
    return replace(posed, lens=kept, kind=posed.kind if holds.kind else "light")


def padded(distortion: Floats, length: int) -> Floats:
    """Return coefficients filled with zeros to at least ``length``."""
    out = np.zeros(max(length, len(distortion)))
    out[: len(distortion)] = distortion
    return out


def scaled_pose(rotation: Floats, translation: Floats, unit_mm: float) -> RigidTransform:
    """Return a pose whose translation was in units of ``unit_mm``."""
    with np.errstate(over="ignore"):  # a huge number becomes infinite here and is refused by the camera
        return RigidTransform(rotation, np.asarray(translation, dtype=np.float64).reshape(3) * unit_mm)
