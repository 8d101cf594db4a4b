"""Calibrate X-ray views, with light views beside them, on a cube of beads whose 3D positions are known."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.foundation.arrays import HUGE, Bytes, Floats
from calibration.foundation.damaged_files import guarded
from calibration.foundation.errors import InputError, SolveError
from calibration.foundation.files import read_text, write_text
from calibration.geometry.transforms import RigidTransform, mean_rigid
from calibration.xray.attenuation import NOTHING_BLIND, Polarity, attenuation_table, grey_image
from calibration.xray.bundle import BundleResult, CubeObservations, adjust_bundle
from calibration.xray.identification import MIN_BEADS, CubeMatch, identify_cube
from calibration.xray.spot_fit import fit_spot_group, window_radius
from calibration.xray.spots import Spots, find_spots
from calibration.xray.undistortion import DistortionMap

__all__ = ["BeadCube", "CubeCalibration", "CubeImage", "calibrate_with_cube", "draw_cube", "load_cube", "save_cube"]

UNITS_MM = {"mm": 1.0, "cm": 10.0, "m": 1000.0}
SIGMAS = (0.9, 1.4, 2.0, 2.8, 4.0, 5.6)


@dataclass(frozen=True, eq=False)
class BeadCube:
    """A calibration cube.

    Attributes:
        names: of the beads.
        points: (n, 3) mm.
    """

    names: tuple[str, ...]
    points: Floats

    def __len__(self) -> int:
        return len(self.names)


@guarded("a table of beads")
def load_cube(path: Path | str, *, unit: str = "mm") -> BeadCube:
    """Read a cube file as XMALab does: one header line, then ``X,Y,Z[,name]`` per bead, commas or blanks.

    The unit is not in the file: XMALab's own are usually centimetres. A header of three numbers counts as a bead.
    """
    if unit not in UNITS_MM:
        raise InputError(f"unknown unit '{unit}'; valid are {', '.join(UNITS_MM)}")
    names: list[str] = []
    points: list[list[float]] = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        parts = [p for p in next(csv.reader([line.replace(";", ",").replace("\t", ",")]), []) if p.strip()]
        if len(parts) == 1:
            parts = parts[0].split()
        if not parts:
            continue
        try:
            values = [float(p) for p in parts[:3]]
        except ValueError:
            values = []
        if len(values) < 3 or not all(abs(value) < HUGE for value in values):
            if number == 1:
                continue
            raise InputError(f"{path}: line {number}: wanted X,Y,Z[,name], got '{line.strip()[:40]}'")
        points.append(values)
        names.append(parts[3].strip() if len(parts) > 3 else f"{len(points)}")
    if len(points) < MIN_BEADS:
        raise InputError(f"{path}: a cube needs at least {MIN_BEADS} beads, got {len(points)}")
    cube = np.array(points) * UNITS_MM[unit]
    flat = np.linalg.svd(cube - cube.mean(axis=0), compute_uv=False)
    if flat[2] < 0.02 * flat[0]:
        raise InputError(f"{path}: the beads lie in a plane: a cube must have depth to fix a camera")
    if len(set(names)) < len(names):
        raise InputError(f"{path}: two beads have the same name")
    return BeadCube(tuple(names), cube)


def save_cube(cube: BeadCube, path: Path | str) -> None:
    """Write a cube file (mm), with names."""
    rows = [f"{x:.6g},{y:.6g},{z:.6g},{name}" for name, (x, y, z) in zip(cube.names, cube.points, strict=True)]
    write_text(path, "\n".join(["x,y,z,name", *rows]) + "\n")


@dataclass(frozen=True, eq=False)
class CubeImage:
    """One image of the cube.

    Attributes:
        camera: name of the view.
        position: number of the cube's position: images with the same number show the cube at the same place.
        image: (H, W).
        hints: bead name -> raw pixel, where the user named some.
        polarity: of the beads: dark in X-ray images and as steel balls in light ones.
    """

    camera: str
    position: int
    image: NDArray[Any]
    hints: Mapping[str, Floats] | None = None
    polarity: Polarity = "dark"


@dataclass(frozen=True, eq=False)
class CubeCalibration:
    """A calibrated rig of X-ray and light views.

    Attributes:
        cameras: in the frame of the cube at its first position, mm.
        bundle: the fit, with residuals and covariance.
        observations: the beads seen.
        matches: what identification found, per (camera, position).
        spots: all spots found, per (camera, position): for pictures.
    """

    cameras: tuple[LensCamera, ...]
    bundle: BundleResult
    observations: CubeObservations
    matches: dict[tuple[str, int], CubeMatch]
    spots: dict[tuple[str, int], Spots]


def find_cube_spots(image: NDArray[Any], count: int, *, polarity: Polarity = "dark") -> Spots:
    """Find the cube's beads among the spots of an image: those of the size at which ``count`` stand out most."""
    grey = grey_image(image)
    best: tuple[float, Spots] | None = None
    for sigma in SIGMAS:
        spots = find_spots(grey, sigma=sigma, polarity=polarity, min_score=6.0, min_contrast=0.1, max_count=400)
        if not len(spots):
            continue
        # Photon noise makes small spots everywhere; what tells beads is contrast over noise times size.
        strength = np.sort(spots.score * spots.sigma)[::-1]
        # What does not belong to the cube counts against a size.
        crowd = max(len(spots) - 2 * count, 0) / (2.0 * count)
        total = float(strength[:count].sum()) / (1.0 + crowd)
        if best is None or total > best[0]:
            best = total, spots
    if best is None:
        return Spots(np.empty((0, 2)), np.empty(0), np.empty(0), np.empty((0, 2, 2)), np.empty(0))
    # The window of the fit follows the size expected: once more with the size that was found.
    ranked = np.argsort(-best[1].score * best[1].sigma, kind="stable")[:count]
    sigma = float(np.median(best[1].sigma[ranked]))
    spots = find_spots(grey, sigma=sigma, polarity=polarity, min_score=6.0, min_contrast=0.1, max_count=400)
    if not len(spots):
        spots = best[1]
    strength = spots.score * spots.sigma * spots.contrast
    order = np.argsort(-strength, kind="stable")
    usual = float(np.median(strength[order[:count]]))
    return spots.take(order[strength[order] > 0.12 * usual][: 2 * count])


def calibrate_with_cube(
    images: Sequence[CubeImage],
    cube: BeadCube,
    *,
    maps: Mapping[str, DistortionMap] | None = None,
    light: Mapping[str, LensCamera] | None = None,
    guess: Mapping[str, LensCamera] | None = None,
    square_pixels: bool = False,
) -> CubeCalibration:
    """Calibrate all views from images of the cube.

    Args:
        images: of X-ray and light views, in one or more positions.
        maps: distortion map of each X-ray view that has one.
        light: known cameras of the light views (lens held, pose found).
        guess: rough cameras in the frame of the cube's first position.

    Raises:
        SolveError: beads not found or not identified, with the spots as report; views that share no position.
    """
    maps, light, guess = dict(maps or {}), dict(light or {}), dict(guess or {})
    names = list(dict.fromkeys(image.camera for image in images))
    if not names:
        raise InputError("cube calibration: no images of the cube")
    spots: dict[tuple[str, int], Spots] = {}
    matches: dict[tuple[str, int], CubeMatch] = {}
    for item in sorted(images, key=lambda one: one.position):
        key = (item.camera, item.position)
        spots[key] = find_cube_spots(item.image, len(cube), polarity=item.polarity)
        rough = _expected(item, matches, guess)
        matches[key] = _identify(item, spots[key], cube, maps, light, rough)
    cameras, poses, positions = _start(names, matches, light, images)
    number = {position: k for k, position in enumerate(positions)}
    observations = _observations(names, number, matches, spots)
    bundle = adjust_bundle(cameras, poses, cube.points, observations, maps=maps, square_pixels=square_pixels)
    # Now that it is known where each bead must be: fit them all, also those that overlap, and adjust again.
    observations = _guided(images, names, number, bundle, cube, maps, spots)
    bundle = adjust_bundle(
        bundle.cameras, bundle.cube_poses, cube.points, observations, maps=maps, square_pixels=square_pixels
    )
    return CubeCalibration(bundle.cameras, bundle, observations, matches, spots)


def _identify(
    item: CubeImage,
    spots: Spots,
    cube: BeadCube,
    maps: Mapping[str, DistortionMap],
    light: Mapping[str, LensCamera],
    rough: LensCamera | None,
) -> CubeMatch:
    who = f"camera '{item.camera}', cube position {item.position + 1}"
    if len(spots) < MIN_BEADS:
        raise SolveError(f"{who}: {len(spots)} cube beads visible, wanted at least {MIN_BEADS}", spots)
    ideal = _ideal(item.camera, spots.pixels, maps, light)
    known = light.get(item.camera)
    lens = known.lens if known is not None and isinstance(known.lens, PinholeLens) else None
    hints: dict[int, Floats] = {}
    for name, pixel in (item.hints or {}).items():
        if name not in cube.names:
            raise InputError(f"{who}: unknown cube bead '{name}'")
        hints[cube.names.index(name)] = _ideal(item.camera, np.asarray(pixel), maps, light)
    size = (item.image.shape[1], item.image.shape[0])
    try:
        match = identify_cube(ideal, cube.points, size, who=who, guess=rough, lens=lens, hints=hints or None)
    except SolveError as error:
        # The report is for a picture of the image as brought.
        raise SolveError(str(error), spots) from None
    if match.rival_beads >= 0.9 * len(match) and match.rival_rms_px < 3.0 * match.rms_px:
        raise SolveError(
            f"{who}: the cube looks the same from two sides ({len(match)} and {match.rival_beads} beads fit);"
            " name two or three of its beads, or give a rough rig",
            spots,
        )
    return match


def _expected(
    item: CubeImage, matches: dict[tuple[str, int], CubeMatch], guess: Mapping[str, LensCamera]
) -> LensCamera | None:
    """Return roughly where a view stands in the cube's frame, from the user or from images already identified."""
    first = min((position for _, position in matches), default=item.position)
    if item.position == first and item.camera in guess:
        return guess[item.camera]
    for (name, position), seen in matches.items():
        # Another view saw this position, and both views saw an earlier one: that ties this image to the others.
        if position != item.position or name == item.camera:
            continue
        for (own, earlier), before in matches.items():
            if own == item.camera and (name, earlier) in matches:
                there = matches[name, earlier].camera.camera_from_world
                between = before.camera.camera_from_world @ there.inverse()
                pose = between @ seen.camera.camera_from_world
                return replace(before.camera, camera_from_world=pose)
    return None


def _ideal(name: str, pixels: Floats, maps: Mapping[str, DistortionMap], light: Mapping[str, LensCamera]) -> Floats:
    if name in maps:
        return maps[name].undistort(pixels)
    return light[name].undistort_points(pixels) if name in light else pixels


def _start(
    names: list[str],
    matches: dict[tuple[str, int], CubeMatch],
    light: Mapping[str, LensCamera],
    images: Sequence[CubeImage],
) -> tuple[list[LensCamera], list[RigidTransform], list[int]]:
    """Chain the cameras and the cube's positions, each found on its own, into one frame."""
    positions = sorted({position for _, position in matches})
    poses: dict[int, RigidTransform] = {positions[0]: RigidTransform.identity()}
    placed: dict[str, LensCamera] = {}
    size = {item.camera: (item.image.shape[1], item.image.shape[0]) for item in images}
    grown = True
    while grown:
        grown = False
        for (name, position), match in matches.items():
            if name not in placed and position in poses:
                pose = match.camera.camera_from_world @ poses[position].inverse()
                own = light.get(name)
                lens = own.lens if own is not None else replace(match.camera.lens, size=size[name])
                kind = own.kind if own is not None else "xray"
                placed[name] = LensCamera(name, lens, pose, kind)
                grown = True
        for position in positions:
            if position in poses:
                continue
            found = [
                placed[name].camera_from_world.inverse() @ match.camera.camera_from_world
                for (name, at), match in matches.items()
                if at == position and name in placed
            ]
            if found:
                together = RigidTransform(
                    np.stack([p.rotation for p in found]), np.stack([p.translation for p in found])
                )
                poses[position] = mean_rigid(together)
                grown = True
    lost = [name for name in names if name not in placed]
    if lost:
        raise SolveError(
            f"cube calibration: {', '.join(lost)} saw the cube only in positions that no camera linked to"
            f" {', '.join(placed)} saw; photograph one position with both"
        )
    return [placed[name] for name in names], [poses[p] for p in positions], positions


def _observations(
    names: list[str],
    number: Mapping[int, int],
    matches: dict[tuple[str, int], CubeMatch],
    spots: dict[tuple[str, int], Spots],
) -> CubeObservations:
    rows = [
        (names.index(name), number[position], int(bead), spots[name, position], int(spot))
        for (name, position), match in matches.items()
        for spot, bead in zip(match.spots, match.beads, strict=True)
    ]
    return CubeObservations(
        np.array([r[0] for r in rows], dtype=np.int64),
        np.array([r[1] for r in rows], dtype=np.int64),
        np.array([r[2] for r in rows], dtype=np.int64),
        np.array([r[3].pixels[r[4]] for r in rows]),
        np.ones(len(rows)),
    )


def _guided(
    images: Sequence[CubeImage],
    names: list[str],
    number: Mapping[int, int],
    bundle: BundleResult,
    cube: BeadCube,
    maps: Mapping[str, DistortionMap],
    spots: dict[tuple[str, int], Spots],
) -> CubeObservations:
    """Fit each bead at the place where the calibration puts it, those that overlap together."""
    columns: list[tuple[int, int, int]] = []
    pixels: list[Floats] = []
    sigmas: list[float] = []
    for item in images:
        key = (item.camera, item.position)
        c, k = names.index(item.camera), number[item.position]
        at = bundle.cameras[c].project(bundle.cube_poses[k].apply(cube.points))
        if item.camera in maps:
            at = maps[item.camera].distort(at)
        grey = grey_image(item.image)
        fitted, spread = fit_known_spots(grey, at, spots[key], item.polarity)
        near = np.linalg.norm(fitted - at, axis=1) < max(4.5 * bundle.sigma_px * 1.4, 0.7)
        for bead in np.flatnonzero(near):
            columns.append((c, k, int(bead)))
            pixels.append(fitted[bead])
            sigmas.append(float(spread[bead]))
    index = np.array(columns, dtype=np.int64).reshape(-1, 3)
    return CubeObservations(index[:, 0], index[:, 1], index[:, 2], np.array(pixels).reshape(-1, 2), np.array(sigmas))


def fit_known_spots(image: NDArray[Any], at: Floats, like: Spots, polarity: Polarity) -> tuple[Floats, Floats]:
    """Fit spots at (n, 2) places that are known to a pixel or so, each with the neighbours it overlaps.

    Returns:
        (n, 2) px, NaN where there is no spot, and (n,) standard deviation per coordinate, px: at least 0.02, and
        infinite for a spot whose neighbour is too close to tell them apart.
    """
    table = attenuation_table(image.dtype, polarity)
    sigma, contrast = float(np.median(like.sigma)), float(np.median(like.contrast))
    reach = window_radius(sigma)
    fitted = np.full(at.shape, np.nan)
    spread = np.full(len(at), np.inf)
    height, width = image.shape
    with np.errstate(invalid="ignore"):
        inside = (at > sigma).all(axis=1) & (at[:, 0] < width - 1 - sigma) & (at[:, 1] < height - 1 - sigma)
    for i in np.flatnonzero(inside):
        distance = np.linalg.norm(at - at[i], axis=1)
        others = np.flatnonzero(inside & (distance < reach + 1.5 * sigma) & (distance > 0))
        # Two beads in line with the source show as one: neither has a place of its own.
        if len(others) and distance[others].min() < 1.6 * sigma:
            continue
        group = np.concatenate([[i], others[np.argsort(distance[others])][:3]])
        start = np.column_stack([at[group], np.full(len(group), sigma), np.full(len(group), contrast)])
        hold = np.zeros((len(group), 2))
        if len(group) > 1:
            hold[:, 0], hold[:, 1] = 1.0 / (0.2 * sigma) ** 2, 1.0 / (0.4 * contrast) ** 2
        values, covariance, noise = fit_spot_group(image, table, start, hold, reach, 2.0 * sigma, NOTHING_BLIND)
        good = np.isfinite(values[0]).all() and values[0, 3] > max(0.3 * contrast, 4.0 * noise)
        if good and 0.5 * sigma < values[0, 2] < 2.0 * sigma:
            fitted[i] = values[0, :2]
            spread[i] = max(float(np.sqrt(0.5 * np.trace(covariance[0]))), 0.02)
    return fitted, spread


def draw_cube(image: NDArray[Any], spots: Floats, projected: Floats | None = None, names: Sequence[str] = ()) -> Bytes:
    """Return a BGR picture: spots found (red circles), beads where the calibration puts them (green crosses)."""
    grey = grey_image(image)
    picture = cv2.cvtColor(np.asarray(grey * (255.0 / max(int(grey.max()), 1)), dtype=np.uint8), cv2.COLOR_GRAY2BGR)
    for x, y in spots:
        cv2.circle(picture, (round(x), round(y)), 9, (0, 0, 255), 1, cv2.LINE_AA)
    if projected is not None:
        for k, (x, y) in enumerate(projected):
            if np.isfinite(x) and abs(x) < 1e5 and abs(y) < 1e5:
                at = (round(x), round(y))
                cv2.drawMarker(picture, at, (0, 255, 0), cv2.MARKER_CROSS, 11, 1)
                if k < len(names):
                    spot = (at[0] + 7, at[1] - 7)
                    # A dark rim keeps the letters legible in the open beam.
                    for colour, thickness in (((0, 0, 0), 3), ((0, 255, 255), 1)):
                        cv2.putText(picture, names[k], spot, cv2.FONT_HERSHEY_SIMPLEX, 0.35, colour, thickness)
    return np.asarray(picture, dtype=np.uint8)
