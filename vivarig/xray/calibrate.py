"""``vivarig xray calibrate``: X-ray cameras, and light ones that saw it too, from images of a bead cube."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from calibration.cameras.camera import LensCamera
from calibration.cameras.rig import Rig, save_rig
from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError, SolveError
from calibration.foundation.files import read_text
from calibration.geometry.transforms import RigidTransform, mean_rigid
from calibration.rig_formats import write_rig
from calibration.xray.attenuation import Polarity
from calibration.xray.cube import BeadCube, CubeCalibration, CubeImage, calibrate_with_cube, draw_cube, load_cube
from calibration.xray.spots import Spots
from calibration.xray.undistortion import DistortionMap, map_at
from capture.recordings.video import read_image
from tracking.beads.store import load_maps
from vivarig.console.reporting import CommandReport
from vivarig.xray.recording import XrayFolder, write_picture

__all__ = ["calibrate"]

#: Reprojection error of a cube calibration above which the command says so, px.
GOOD_CUBE_PX = 0.5


def calibrate(
    folder: XrayFolder, *, unit: str, guess: bool, references: Path | None, polarity: Polarity
) -> CommandReport:
    """Calibrate on the cube and write the rig, MayaCam files and pictures.

    Args:
        folder: of the recording.
        unit: of cube.csv.
        guess: start X-ray cameras from the recording's rig.
        references: CSV of beads named by hand, where the cube looks alike from two sides.
        polarity: of the beads.
    """
    cube = load_cube(folder.session / "cube.csv", unit=unit)
    # The cube is photographed where the first grid was; a C-arm moves during the film.
    maps = {name: map_at(one, 0) for name, one in load_maps(folder.maps).items()}
    views, result, left_out = _solve(folder, cube, maps, _cube_views(folder, guess, _references(references), polarity))
    rig = _with_others(result, folder.recording.rig)
    save_rig(rig, folder.rig_file, {"made_by": "vivarig xray calibrate"})
    xray = Rig(tuple(camera for camera in rig if camera.kind == "xray"))
    for label in ("mayacam2", "mayacam1"):
        write_rig(xray, folder.results / label, label, lossy=True)
    _draw_fit(folder, cube, maps, views.images, result)
    return _report(folder, result, left_out)


@dataclass(frozen=True, eq=False)
class _CubeViews:
    """Images of the cube, light cameras that saw it, and cameras of the rig to start from."""

    images: tuple[CubeImage, ...]
    light: Mapping[str, LensCamera]
    guess: Mapping[str, LensCamera]

    def without(self, camera: str) -> _CubeViews:
        """Return the views of all cameras but a light one."""
        return replace(
            self,
            images=tuple(item for item in self.images if item.camera != camera),
            light={name: one for name, one in self.light.items() if name != camera},
        )


def _cube_views(
    folder: XrayFolder, with_guess: bool, hints: Mapping[tuple[str, int], dict[str, Floats]], polarity: Polarity
) -> _CubeViews:
    """Read the images of the cube of every camera that takes part."""
    recording = folder.recording
    light: dict[str, LensCamera] = {}
    guess: dict[str, LensCamera] = {}
    images: list[CubeImage] = []
    for footage in recording.footage:
        own = recording.rig[footage.name] if recording.rig is not None else None
        if footage.kind == "light":
            # A light camera takes part where it saw the cube; its lens must be known.
            if not (folder.session / "cube" / footage.name).is_dir() or not isinstance(own, LensCamera):
                continue
            light[footage.name] = own
        elif with_guess and isinstance(own, LensCamera):
            guess[footage.name] = own
        for k, path in enumerate(folder.cube_images(footage.name)):
            position = int(path.stem) - 1 if path.stem.isdigit() else k
            hint = hints.get((footage.name, position))
            images.append(CubeImage(footage.name, position, read_image(path), hint, polarity))
    return _CubeViews(tuple(images), light, guess)


def _solve(
    folder: XrayFolder, cube: BeadCube, maps: Mapping[str, DistortionMap], views: _CubeViews
) -> tuple[_CubeViews, CubeCalibration, list[str]]:
    """Calibrate. Return the views that took part, the result, and a line for each light view that could not."""
    left_out: list[str] = []
    while True:
        try:
            result = calibrate_with_cube(views.images, cube, maps=maps, light=views.light, guess=views.guess)
            return views, result, left_out
        except SolveError as error:
            where = _failure_pictures(folder, views.images, error)
            # Bead balls are hard to see by light: such a view is left out, and said; an X-ray view may not fail.
            lost = next((name for name in views.light if f"camera '{name}'" in str(error)), None)
            if lost is None:
                raise SolveError(f"{error}; what was found: {where}", error.report) from None
            left_out.append(f"{lost}: left out: {error}; what was found: {where}")
            views = views.without(lost)


def _references(path: Path | None) -> dict[tuple[str, int], dict[str, Floats]]:
    """Read camera,position,bead,x,y lines (position from 1)."""
    hints: dict[tuple[str, int], dict[str, Floats]] = {}
    if path is None:
        return hints
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        cells = [cell.strip() for cell in line.split(",")]
        if not line.strip() or cells[0] == "camera":
            continue
        try:
            camera, position, bead, x, y = cells
            hints.setdefault((camera, int(position) - 1), {})[bead] = np.array([float(x), float(y)])
        except ValueError:
            raise InputError(f"{path}: line {number}: wanted camera,position,bead,x,y") from None
    return hints


def _failure_pictures(folder: XrayFolder, images: Sequence[CubeImage], error: SolveError) -> Path:
    """Draw the spots that a failed identification was given over its image."""
    for item in images:
        if f"'{item.camera}', cube position {item.position + 1}:" in str(error):
            spots = error.report.pixels if isinstance(error.report, Spots) else error.report
            found = spots if isinstance(spots, np.ndarray) and spots.ndim == 2 else np.empty((0, 2))
            path = folder.results / f"cube_{item.camera}_{item.position + 1:02d}.png"
            return write_picture(path, draw_cube(item.image, found))
    return folder.results


def _with_others(result: CubeCalibration, old: Rig | None) -> Rig:
    """Return the new cameras in the frame of the old rig's light cameras, if there are any, with its order."""
    new = {camera.name: camera for camera in result.cameras}
    if old is None:
        return Rig(result.cameras)
    shared = [c for c in old if c.name in new and c.kind == "light" and isinstance(c, LensCamera)]
    if shared:
        # Old world from the cube's first frame, by each light camera that has both poses.
        moves = [c.camera_from_world.inverse() @ new[c.name].camera_from_world for c in shared]
        together = RigidTransform(np.stack([m.rotation for m in moves]), np.stack([m.translation for m in moves]))
        back = mean_rigid(together).inverse()
        new = {
            name: LensCamera(name, camera.lens, camera.camera_from_world @ back, camera.kind)
            for name, camera in new.items()
        }
    if not shared and any(camera.kind == "light" for camera in old):
        # No light camera saw the cube: nothing ties the two frames together, so the rig holds X-ray views alone.
        return Rig(tuple(new.values()))
    return Rig(tuple(new.get(camera.name, camera) for camera in old))


def _draw_fit(
    folder: XrayFolder,
    cube: BeadCube,
    maps: Mapping[str, DistortionMap],
    images: Sequence[CubeImage],
    result: CubeCalibration,
) -> None:
    """Draw what was found in each image and where the calibration puts the beads."""
    cameras = {camera.name: camera for camera in result.cameras}
    positions = sorted({one.position for one in images})
    for item in images:
        pose = result.bundle.cube_poses[positions.index(item.position)]
        at = cameras[item.camera].project(pose.apply(cube.points))
        at = maps[item.camera].distort(at) if item.camera in maps else at
        spots = result.spots[item.camera, item.position].pixels
        write_picture(
            folder.results / f"cube_{item.camera}_{item.position + 1:02d}.png",
            draw_cube(item.image, spots, at, cube.names),
        )


def _report(folder: XrayFolder, result: CubeCalibration, left_out: list[str]) -> CommandReport:
    bundle = result.bundle
    lines, numbers = list(left_out), dict[str, object]()
    for c, camera in enumerate(result.cameras):
        rows = (result.observations.camera == c) & bundle.used
        rms = float(np.sqrt(np.mean(bundle.residual[rows] ** 2)))
        spread = np.sqrt(np.diagonal(bundle.centre_covariance[c]))
        focal = camera.lens.intrinsics[0, 0]
        lines.append(
            f"{camera.name} ({camera.kind}): {int(rows.sum())} bead images, reprojection {rms:.3f} px RMS,"
            f" focal length {focal:.1f} +- {bundle.lens_sigma[c, 0]:.1f} px,"
            f" centre +- {spread[0]:.2f}, {spread[1]:.2f}, {spread[2]:.2f} mm"
        )
        numbers[camera.name] = {
            "beads": int(rows.sum()),
            "rms_px": rms,
            "centre_mm": camera.centre,
            "centre_sigma_mm": spread,
        }
    lines.append(f"rig: {folder.rig_file}; MayaCam 1 and 2 and pictures beside it")
    numbers["rms_px"] = bundle.rms_px
    good = bundle.rms_px <= GOOD_CUBE_PX
    return CommandReport(
        lines, numbers, good, "" if good else f"reprojection {bundle.rms_px:.2f} px above {GOOD_CUBE_PX} px"
    )
