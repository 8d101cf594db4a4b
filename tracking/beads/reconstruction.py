"""Bead tracks to 3D: maximum likelihood over the views that see a bead, with covariance; gaps bridged or marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibration.cameras.camera import LensCamera
from calibration.cameras.rig import Rig
from calibration.cameras.triangulation import triangulate
from calibration.foundation.arrays import Bools, Floats
from calibration.foundation.errors import InputError
from calibration.xray.undistortion import AnyMap, MovingMap, map_at
from tracking.beads.bones import Bone
from tracking.beads.epipolar import EpipolarGeometry, Undistort, fundamental_from_matrices, unchanged
from tracking.beads.tracks import BeadTracks

__all__ = ["BeadMotion", "anchor_bridges", "bridge_gaps", "geometry_of", "raw_pixels", "triangulate_beads"]

#: Least standard deviation of a bead's centre, px: what the fit says of itself leaves out the shape of the
#: background and the remains of the distortion.
FLOOR_PX = 0.08
#: Squared Mahalanobis distance of two coordinates that chance exceeds once in a thousand.
UNLIKELY2 = 13.8


@dataclass(frozen=True, eq=False)
class BeadMotion:
    """Beads in space.

    Attributes:
        names: B beads; cameras: C views.
        positions: (T, B, 3) mm; NaN = gap.
        covariance: (T, B, 3, 3) mm^2.
        residual_px: (T, B) root mean square reprojection error; NaN for bridged frames.
        views: (T, C, B) views each position rests on.
        bridged: (T, B) positions that no two views saw: from the bone's other beads, or between its neighbours
            in time.
        pixels: (T, C, B, 2) raw px.
    """

    names: tuple[str, ...]
    cameras: tuple[str, ...]
    positions: Floats
    covariance: Floats
    residual_px: Floats
    views: Bools
    bridged: Bools
    pixels: Floats

    @property
    def sigma_mm(self) -> Floats:
        """(T, B) standard deviation per coordinate, mm (root of the mean of the three variances)."""
        return np.asarray(np.sqrt(np.trace(self.covariance, axis1=2, axis2=3) / 3.0))


def ideal_pixels(name: str, pixels: Floats, maps: Mapping[str, AnyMap]) -> Floats:
    """Return (T, ..., 2) pixels without the intensifier's distortion: what the rig's camera of that name sees."""
    one = maps.get(name)
    if isinstance(one, MovingMap):
        return np.stack([one.at(t).undistort(frame) for t, frame in enumerate(pixels)])
    return pixels if one is None else one.undistort(pixels)


def raw_pixels(name: str, pixels: Floats, maps: Mapping[str, AnyMap]) -> Floats:
    """Return (T, ..., 2) pixels of the images as brought from those that the rig's camera projects."""
    one = maps.get(name)
    if isinstance(one, MovingMap):
        return np.stack([one.at(t).distort(frame) for t, frame in enumerate(pixels)])
    return pixels if one is None else one.distort(pixels)


def geometry_of(rig: Rig, maps: Mapping[str, AnyMap], *, sigma_px: float = 0.6) -> EpipolarGeometry:
    """Return the epipolar relations of a calibrated rig, from raw pixels; `EpipolarGeometry.at` follows a C-arm."""
    count = len(rig)
    fundamental = np.full((count, count, 3, 3), np.nan)
    matrices = []
    undistort: list[Undistort] = []
    for camera in rig:
        if not isinstance(camera, LensCamera):
            raise InputError(f"camera '{camera.name}': bead tracking wants a camera with a lens")
        pose = camera.camera_from_world
        matrices.append(camera.lens.intrinsics @ np.column_stack([pose.rotation, pose.translation]))
        if camera.name in maps:
            undistort.append(map_at(maps[camera.name], 0).undistort)
        else:
            undistort.append(camera.undistort_points if camera.lens.distortion.any() else unchanged)
    for i in range(count):
        for j in range(count):
            if i != j:
                fundamental[i, j] = fundamental_from_matrices(matrices[i], matrices[j])
    moving = {k: maps[name] for k, name in enumerate(rig.names) if isinstance(maps.get(name), MovingMap)}

    def follow(frame: int) -> tuple[Undistort, ...]:
        return tuple(map_at(moving[k], frame).undistort if k in moving else undistort[k] for k in range(count))

    return EpipolarGeometry(fundamental, sigma_px, tuple(undistort), follow if moving else None)


def triangulate_beads(
    tracks: BeadTracks, rig: Rig, maps: Mapping[str, AnyMap] | None = None, *, gate_px: float = 3.0
) -> BeadMotion:
    """Triangulate tracks: each bead and frame from all X-ray and light views that see it, two or more.

    Views that contradict each other by more than ``gate_px`` give a gap, not a wrong point.
    """
    maps = dict(maps or {})
    ordered = rig.subset(tracks.cameras)
    frames, views, beads = tracks.status.shape
    pixels = np.empty((views, frames * beads, 2))
    sigma = np.empty((views, frames * beads))
    for c, name in enumerate(tracks.cameras):
        pixels[c] = ideal_pixels(name, tracks.pixels[:, c], maps).reshape(-1, 2)
        variance = 0.5 * np.trace(tracks.covariance[:, c].reshape(-1, 2, 2), axis1=1, axis2=2)
        sigma[c] = np.sqrt(np.nan_to_num(variance, nan=1.0) + FLOOR_PX**2)
    solved = triangulate(ordered, pixels, sigma_px=sigma, gate_px=gate_px)
    used = solved.views_used.reshape(views, frames, beads).transpose(1, 0, 2)
    return BeadMotion(
        tracks.names,
        tracks.cameras,
        solved.points.reshape(frames, beads, 3),
        solved.covariance.reshape(frames, beads, 3, 3),
        solved.residual_px.reshape(frames, beads),
        used & np.isfinite(solved.points[:, 0]).reshape(frames, 1, beads),
        np.zeros((frames, beads), dtype=bool),
        tracks.pixels,
    )


def bridge_gaps(
    motion: BeadMotion, bones: Sequence[Bone], *, max_frames: int = 8, max_sigma_mm: float = 0.3, named: bool = False
) -> BeadMotion:
    """Fill gaps whose filling can be trusted, and mark them; the others stay NaN.

    ``named`` says that the user named the bones; groups found from the clip itself are trusted over short gaps only.
    First by the bone: where three or more of its other beads give its pose, the missing bead is known. Then in
    time: a gap of at most ``max_frames`` between seen frames takes the cubic through four frames about it, with the
    error that the same filling makes on this bead's seen frames; beyond ``max_sigma_mm`` it stays a gap.
    """
    positions, covariance = motion.positions.copy(), motion.covariance.copy()
    bridged = motion.bridged.copy()
    for bone in bones:
        predicted = bone.predicted()
        with np.errstate(invalid="ignore"):
            usual = float(np.sqrt(np.nanmean(np.where(bone.used, bone.residual_mm, np.nan) ** 2)))
        # The pose took six of the coordinates' freedoms: its residuals are smaller than the beads' errors.
        count = float(np.mean(bone.used.sum(axis=1)[bone.used.any(axis=1)])) if bone.used.any() else np.nan
        usual *= float(np.sqrt(count / max(count - 2.0, 0.5)))
        for k, bead in enumerate(bone.beads):
            gap = ~np.isfinite(positions[:, bead, 0]) & np.isfinite(predicted[:, k, 0])
            if not named:
                # A group that the clip itself suggested is known to be rigid only where all its beads were seen.
                gap &= _short_gaps(np.isfinite(positions[:, bead, 0]), max_frames)
            # Error of a bead outside the set that carries the pose: its own shape's and the pose's, lever included.
            lever = 1.0 + float(np.linalg.norm(bone.shape[k])) / max(float(np.sqrt(np.mean(bone.shape**2))), 1e-9)
            sigma = usual * lever
            if sigma > max_sigma_mm:
                continue
            positions[gap, bead] = predicted[gap, k]
            covariance[gap, bead] = np.eye(3) * sigma**2
            bridged[gap, bead] = True
    for bead in range(positions.shape[1]):
        _bridge_in_time(positions[:, bead], covariance[:, bead], bridged[:, bead], max_frames, max_sigma_mm)
    return replace(motion, positions=positions, covariance=covariance, bridged=bridged)


def anchor_bridges(motion: BeadMotion, tracks: BeadTracks, rig: Rig, maps: Mapping[str, AnyMap]) -> BeadMotion:
    """Correct bridged positions by the one view that still saw the bead; those that contradict it become gaps again.

    The view fixes two of three coordinates; the bridge is left to tell the depth along its ray (a Kalman update).
    """
    positions, covariance, bridged = motion.positions.copy(), motion.covariance.copy(), motion.bridged.copy()
    seen = tracks.found & bridged[:, None]
    for c, name in enumerate(tracks.cameras):
        camera = rig[name]
        ideal = ideal_pixels(name, tracks.pixels[:, c], maps)
        # Where two views saw the bead and contradict each other, neither is known to be right.
        for t, b in zip(*np.nonzero(seen[:, c] & (seen.sum(axis=1) == 1)), strict=True):
            projected = camera.project_with_jacobians(positions[t, b][None])
            by_point, miss = projected.by_point[0], ideal[t, b] - projected.pixels[0]
            noise = tracks.covariance[t, c, b] + np.eye(2) * FLOOR_PX**2
            spread = by_point @ covariance[t, b] @ by_point.T + noise
            if not float(miss @ np.linalg.solve(spread, miss)) < UNLIKELY2:
                positions[t, b], covariance[t, b], bridged[t, b] = np.nan, np.nan, False
                continue
            gain = covariance[t, b] @ by_point.T @ np.linalg.inv(spread)
            positions[t, b] += gain @ miss
            covariance[t, b] -= gain @ by_point @ covariance[t, b]
    return replace(motion, positions=positions, covariance=covariance, bridged=bridged)


def _short_gaps(seen: Bools, max_frames: int) -> Bools:
    """Whether each frame lies in a gap of at most ``max_frames`` with seen frames before and after."""
    inside = np.zeros(len(seen), dtype=bool)
    edges = np.diff(np.concatenate([[1], seen.astype(np.int8), [1]]))
    for start, stop in zip(np.flatnonzero(edges == -1), np.flatnonzero(edges == 1), strict=True):
        if start > 0 and stop < len(seen) and stop - start <= max_frames:
            inside[start:stop] = True
    return inside


def _bridge_in_time(track: Floats, covariance: Floats, bridged: Bools, max_frames: int, max_sigma_mm: float) -> None:
    """Fill short gaps of one (T, 3) track in place, where the same filling works on its seen frames."""
    seen = np.isfinite(track[:, 0])
    edges = np.diff(np.concatenate([[1], seen.astype(np.int8), [1]]))
    starts, stops = np.flatnonzero(edges == -1), np.flatnonzero(edges == 1)
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        length = stop - start
        if start < 2 or stop + 2 > len(track) or length > max_frames:
            continue
        if not (seen[start - 2 : start].all() and seen[stop : stop + 2].all()):
            continue
        errors = [
            _cubic(track, at, at + length) - track[at : at + length]
            for at in range(2, len(track) - length - 1)
            if seen[at - 2 : at + length + 2].all()
        ]
        if len(errors) < 5:
            continue
        # Twice the usual error: a gap is no random place; beads hide where the motion or the background is hard.
        # Half the worst: paths with sudden turns have rare errors far beyond the usual one.
        usual = 2.0 * np.sqrt(np.mean(np.square(errors), axis=(0, 2)))
        sigma = np.maximum(usual, 0.5 * np.abs(errors).max(axis=(0, 2)))
        # The side nearer in time, continued alone, tells of a turn inside the gap that the rest never showed; straight
        # it is little disturbed by noise, curved by smooth acceleration: a turn shows in both.
        filled = _cubic(track, start, stop)
        turn = [np.abs(filled - _continued(track, start, stop, degree)).max(axis=1) for degree in (1, 2)]
        sigma = np.maximum(sigma, 0.5 * np.fmin(turn[0], turn[1]))
        if sigma.max() > max_sigma_mm:
            continue
        track[start:stop] = filled
        covariance[start:stop] = np.eye(3) * (sigma**2)[:, None, None]
        bridged[start:stop] = True


def _continued(track: Floats, start: int, stop: int, degree: int) -> Floats:
    """Return the frames of a gap from the seen frames of the nearer side, continued; NaN where those are too few."""
    after = np.arange(1, stop - start + 1)[:, None]
    before = after[::-1]

    def beyond(points: Floats, steps: NDArray[np.int64]) -> Floats:
        if len(points) <= degree:
            return np.full((len(steps), 3), np.nan)
        slope, bend = points[0] - points[1], np.zeros(3)
        if degree == 2:
            bend = points[0] - 2.0 * points[1] + points[2]
        return np.asarray(points[0] + steps * slope + 0.5 * steps * (steps + 1) * bend)

    left = beyond(track[max(start - 3, 0) : start][::-1], after)
    right = beyond(track[stop : stop + 3], before)
    return np.where(after <= before, left, right)


def _cubic(track: Floats, start: int, stop: int) -> Floats:
    """Return the cubic through two frames before ``start`` and two from ``stop`` on, at the frames between."""
    knots = np.array([start - 2, start - 1, stop, stop + 1], dtype=np.float64)
    at = np.arange(start, stop, dtype=np.float64)
    value = np.zeros((len(at), 3))
    for i in range(4):
        weight = np.ones(len(at))
        for j in range(4):
            if i != j:
                weight *= (at - knots[j]) / (knots[i] - knots[j])
        value += weight[:, None] * track[int(knots[i])]
    return value
