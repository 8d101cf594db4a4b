"""The world frame of a rig: floor board, named points or an L-frame; up is +z, the floor z = 0, millimetres.

A rig comes out of the bundle in the frame of its first camera. The functions here return world_from_rig, and
`check_world` tells an underground or mirrored world from a good one.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.cameras.camera import LensCamera
from calibration.cameras.rig import Rig
from calibration.cameras.triangulation import triangulate
from calibration.foundation.arrays import Floats, measured
from calibration.foundation.damaged_files import guarded
from calibration.foundation.errors import InputError, SolveError
from calibration.foundation.files import read_text
from calibration.geometry.transforms import RigidTransform, fit_rigid, fit_similarity

__all__ = [
    "DistanceCheck",
    "NamedPoints",
    "check_world",
    "load_named_points",
    "moved_rig",
    "scale_check",
    "world_from_board",
    "world_from_known_points",
    "world_from_three_points",
]


def moved_rig(rig: Rig, world_from_rig: RigidTransform) -> Rig:
    """Return the rig with its cameras expressed in the world frame."""
    rig_from_world = world_from_rig.inverse()
    cameras = []
    for camera in rig:
        if not isinstance(camera, LensCamera):
            raise InputError(f"camera '{camera.name}' is known only by its matrix and cannot be moved")
        cameras.append(LensCamera(camera.name, camera.lens, camera.camera_from_world @ rig_from_world, camera.kind))
    return Rig(tuple(cameras))


def world_from_board(rig_from_board: RigidTransform) -> RigidTransform:
    """Return world_from_rig of a board lying print side up on the floor.

    A board's own z goes into the paper, so the world is the board turned half about its x axis: origin and x
    axis as on the board, y up the page, z up from the floor.
    """
    up = RigidTransform(np.diag([1.0, -1.0, -1.0]), np.zeros(3))
    return up @ rig_from_board.inverse()


def world_from_three_points(origin: Floats, on_x: Floats, on_y_side: Floats) -> RigidTransform:
    """Return world_from_rig with the origin and the x axis through two points and z = 0 through all three.

    The third lies where y is positive. These are also the three markers of an L-frame: its corner, the end of
    its x arm, the end of its y arm.
    """
    x = on_x - origin
    z = np.cross(x, on_y_side - origin)
    if np.linalg.norm(x) < 1e-9 or np.linalg.norm(z) < 1e-6 * np.linalg.norm(x) ** 2:
        raise InputError("world frame: the three points lie on one line; choose one well off the x axis")
    x, z = x / np.linalg.norm(x), z / np.linalg.norm(z)
    rotation = np.stack([x, np.cross(z, x), z])
    return RigidTransform(rotation, -rotation @ origin)


def world_from_known_points(measured: Floats, known: Floats, names: Sequence[str]) -> tuple[RigidTransform, Floats]:
    """Return world_from_rig and the misfit (n,) mm from points (n, 3) whose world coordinates are known.

    Raises `SolveError` where the mirror image of the points fits and they themselves do not.
    """
    if len(measured) < 3:
        raise InputError(f"world frame: wanted three points with known coordinates, got {len(measured)}")
    fit = fit_rigid(measured, known)
    misfit = np.linalg.norm(fit.apply(measured) - known, axis=1)
    mirror = np.array([1.0, 1.0, -1.0])
    mirrored = fit_rigid(measured * mirror, known)
    mirrored_misfit = np.linalg.norm(mirrored.apply(measured * mirror) - known, axis=1)
    spread = np.sqrt(((known - known.mean(0)) ** 2).sum(1).mean())
    if np.sqrt((misfit**2).mean()) > 0.05 * spread and (mirrored_misfit**2).mean() < 0.1 * (misfit**2).mean():
        raise SolveError(
            f"mirrored world: the points {', '.join(names)} fit their known coordinates only in a mirror (misfit "
            f"{np.sqrt((misfit**2).mean()):.0f} mm, mirrored {np.sqrt((mirrored_misfit**2).mean()):.1f} mm); an axis "
            "of the coordinates is reversed or the videos are flipped"
        )
    return fit, misfit


def check_world(rig: Rig, scene: Floats, below: Sequence[str] = ()) -> list[str]:
    """Return what is wrong with a world whose floor should be z = 0, one sentence each.

    ``scene`` (n, 3) are points that were seen (board corners), world mm; ``below`` names cameras that look
    through the floor on purpose.
    """
    wrong = []
    for camera in rig:
        height = float(camera.centre[2])
        if height < 0 and camera.name not in below:
            wrong.append(
                f"underground: camera '{camera.name}' lies {-height:.0f} mm under the floor; if it films from below, "
                f"say --below {camera.name}"
            )
    depths = scene[np.isfinite(scene).all(1)][:, 2]
    if len(depths):
        tall = max(float(np.percentile(np.abs(depths), 95)), 1.0)
        share = float((depths < -0.05 * tall).mean())
        if share > 0.5 and len(wrong) >= len(rig) - len(below):
            wrong.append(
                f"upside-down world: {share:.0%} of the board's corners lie under the floor as well; z points down: "
                "the floor board was face down, or the floor points run clockwise (swap x and y)"
            )
        elif share > 0.3:
            wrong.append(
                f"{share:.0%} of the board's corners lie under the floor: the floor is not where it was said to be"
            )
    return wrong


@dataclass(frozen=True)
class DistanceCheck:
    """A known distance against the rig's: names, known and measured, mm."""

    first: str
    second: str
    known_mm: float
    measured_mm: float

    @property
    def error(self) -> float:
        """Relative error of the rig's scale."""
        return self.measured_mm / self.known_mm - 1


@dataclass(frozen=True, eq=False)
class NamedPoints:
    """Points marked in images by hand, and what is known of them.

    Attributes:
        names: their names.
        pixels: (c, n, 2) in the rig's camera order, NaN where not marked.
        world: (n, 3) known coordinates, mm; NaN where unknown.
        distances: known distances (first, second, mm).
    """

    names: tuple[str, ...]
    pixels: Floats
    world: Floats
    distances: tuple[tuple[str, str, float], ...]

    def measured(self, rig: Rig) -> Floats:
        """Triangulate the points (n, 3) in the rig's frame, mm."""
        points = triangulate(rig, self.pixels, robust=False).points
        for name, point in zip(self.names, points, strict=True):
            if not np.isfinite(point).all():
                raise InputError(f"point '{name}' is marked in fewer than two usable views")
        return points


@guarded("a file of named points")
def load_named_points(path: Path | str, cameras: Sequence[str]) -> NamedPoints:
    """Read points.toml: ``[points.NAME]`` with ``pixels.CAMERA = [u, v]`` and optional ``world = [x, y, z]``.

    ``[[distances]]`` with ``between = [A, B]`` and ``mm = LENGTH`` checks the scale.
    """
    try:
        table = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not a TOML file: {error}") from None
    entries = table.get("points")
    if not isinstance(entries, Mapping) or not entries:
        raise InputError(f"{path}: no [points.NAME] table")
    names = tuple(entries)
    pixels = np.full((len(cameras), len(names), 2), np.nan)
    world = np.full((len(names), 3), np.nan)
    for i, name in enumerate(names):
        for camera, value in entries[name].get("pixels", {}).items():
            if camera not in cameras:
                raise InputError(f"{path}: point '{name}': unknown camera '{camera}'; the rig has {', '.join(cameras)}")
            if len(value) != 2:
                raise InputError(f"{path}: point '{name}': pixels.{camera} must be [u, v]")
            pixels[list(cameras).index(camera), i] = value
        if "world" in entries[name]:
            if len(entries[name]["world"]) != 3:
                raise InputError(f"{path}: point '{name}': world must be [x, y, z] in mm")
            world[i] = entries[name]["world"]
    distances = []
    for entry in table.get("distances", []):
        a, b = entry["between"]
        for name in (a, b):
            if name not in names:
                raise InputError(f"{path}: distance between unknown point '{name}'; points are {', '.join(names)}")
        distances.append((str(a), str(b), float(entry["mm"])))
    lengths = measured(np.array([length for _, _, length in distances]), f"{path}: distances")
    if not (lengths > 0).all():
        raise InputError(f"{path}: distances are lengths above 0 mm")
    return NamedPoints(names, measured(pixels, f"{path}: pixels"), measured(world, f"{path}: world"), tuple(distances))


def scale_check(points: NamedPoints, found: Floats) -> tuple[list[DistanceCheck], float | None]:
    """Compare known distances with the rig's; also the scale that known coordinates ask for (1 = right)."""
    checks = []
    for a, b, known in points.distances:
        i, j = points.names.index(a), points.names.index(b)
        checks.append(DistanceCheck(a, b, known, float(np.linalg.norm(found[i] - found[j]))))
    known_points = np.isfinite(points.world).all(1)
    scale = None
    if known_points.sum() >= 3:
        scale = float(fit_similarity(found[known_points], points.world[known_points]).scale)
    return checks, scale
