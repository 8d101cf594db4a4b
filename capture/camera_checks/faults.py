"""Name the camera that is wrong and what is wrong with it: late, turned, moved, mirrored, or exchanged with another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration.cameras.camera import Camera, LensCamera
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Floats, Ints
from calibration.geometry.transforms import RigidTransform, rotation_from_vector
from capture.camera_checks.blocks import gain, mean_cost, median_px, sureness
from capture.camera_checks.fits import Placed, cost_without, fit_lag, fit_pose, residuals, usual_px
from capture.camera_checks.outlines import Outlines
from capture.camera_checks.tangency import OutlineRays, view_of

__all__ = ["MENDED", "CameraCheck", "Fault", "check_cameras"]

#: A fault is named if what mends it lowers the camera's robust cost (0 to 1) by this, on average over its pairs, and
#: by this many standard errors over blocks of pairs and time.
_LEAST_GAIN = 0.05
_LEAST_SURENESS = 4.0
#: Smaller lags (frames) and turns (degrees) than these are no fault worth a word.
_LEAST_LAG = 0.75
_LEAST_TURN = 0.5
#: A camera that is off by this many scales (`check_cameras`) though nothing mends it is said to be unclear.
_UNCLEAR = 3.0
#: Of the cameras in order of their cost, how many are tried each round.
_TRIED = 3
#: A mended camera costs at most this much more than the others among themselves (a wrong silhouette is not mended).
MENDED = 0.15
#: A camera is turned the same all the time: each half of the frames mends the other by this share of what the whole
#: gains (what a wrong silhouette looks like comes and goes).
_STEADY = 0.5
#: A turn leaves at most this share of what the outlines were off; one that leaves more is not what is wrong (on a real
#: mouse a sound camera was "turned by 19 degrees" to gain a fifth).
_LEFT_OVER = 0.5
#: A shift is said beside a turn if it lowers the cost by this much more.
_SHIFT_GAIN = 0.03
#: Share of its own size that the subject must go through a view for a shift of the camera to be told.
_TRAVEL = 0.5
_FLIPS = {"mirrored": (-1, 1), "upside down": (-1, -1), "flipped": (1, -1)}


@dataclass(frozen=True, eq=False)
class Fault:
    """What is wrong with one camera.

    Attributes:
        camera: its name.
        kind: ``late`` (early if negative), ``turned``, ``moved``, ``mirrored`` (left to right), ``upside down``,
            ``flipped`` (top to bottom) or ``exchanged``.
        frames: by how many frames it is late.
        degrees: (3,) by how much it looks too far up, right, and is rolled clockwise, against its calibration.
        shift_mm: (3,) by how much it stands elsewhere, world axes.
        other: the camera with which it is exchanged.
        before_px, after_px: how far its outlines differ from the others', as it is and when mended (medians).
    """

    camera: str
    kind: str
    frames: float
    degrees: Floats
    shift_mm: Floats
    other: str
    before_px: float
    after_px: float


@dataclass(frozen=True, eq=False)
class CameraCheck:
    """How the cameras of a recording hold against each other.

    Attributes:
        names: the cameras.
        disagreement_px: (C,) median distance between a camera's tangent planes and the others'; NaN if not known.
        faults: what is wrong, the worst first.
        mended: the rig with cameras that are turned or moved put right; None if there are none.
        unclear: cameras whose outlines lie far off the others' though nothing that a camera can suffer mends them.
    """

    names: tuple[str, ...]
    disagreement_px: Floats
    faults: tuple[Fault, ...]
    mended: Rig | None = None
    unclear: tuple[str, ...] = ()


def check_cameras(rig: Rig, outlines: Sequence[Outlines], frames: Ints, *, most_lag: int = 30) -> CameraCheck:
    """Hold each camera against the others.

    Args:
        rig: the cameras.
        outlines: of each camera, rows are ``frames``.
        frames: (T,) recording frames in rising order; stretches of successive ones, so that lags can be seen.
        most_lag: largest lag that is looked for, frames.
    """
    nothing = np.zeros(3)
    cameras = [Placed(view_of(c, o), 0.0, nothing, nothing) for c, o in zip(rig, outlines, strict=True)]
    disagreement = np.array([median_px(residuals(c, one, cameras, frames)) for c, one in enumerate(cameras)])
    faults: list[Fault] = []
    if len(rig) < 3 or len(frames) == 0:  # of two that disagree none can be named
        return CameraCheck(rig.names, disagreement, ())
    scale = max(1.0, 4.0 * usual_px(cameras, frames))
    for _ in range(len(rig) - 2):
        costs = [mean_cost(residuals(c, one, cameras, frames), scale) for c, one in enumerate(cameras)]
        order = np.argsort(-np.nan_to_num(costs), kind="stable")[:_TRIED]
        trials = [t for c in order for t in _trials(int(c), rig, outlines, cameras, frames, scale, most_lag)]
        # Of what could be wrong with one camera the likeliest is judged: a late camera looks turned, too.
        likeliest = [max((t for t in trials if t.camera == c), key=lambda trial: trial.gain) for c in order]
        for best in sorted(likeliest, key=lambda trial: -trial.gain):
            fault = _named(best, rig, cameras, frames, scale)
            if fault is not None:
                break
        else:
            break
        faults.append(fault)
        cameras = best.cameras
    off = [median_px(residuals(c, one, cameras, frames)) > _UNCLEAR * scale for c, one in enumerate(cameras)]
    unclear = tuple(name for name, far in zip(rig.names, off, strict=True) if far)
    return CameraCheck(rig.names, disagreement, tuple(faults), _mended(rig, cameras), unclear)


def _mended(rig: Rig, cameras: list[Placed]) -> Rig | None:
    """Return the rig as it was found to be, None where it is as it should."""
    changed = [
        _put_right(camera, one) if isinstance(camera, LensCamera) and (one.turn.any() or one.shift.any()) else camera
        for camera, one in zip(rig, cameras, strict=True)
    ]
    return None if all(a is b for a, b in zip(changed, rig, strict=True)) else Rig(tuple(changed))


def _put_right(camera: LensCamera, one: Placed) -> LensCamera:
    # a line of sight d (world) is turned to R d, so camera axes see it by the camera's rotation times R transposed
    rotation = camera.camera_from_world.rotation @ rotation_from_vector(one.turn).T
    return replace(camera, camera_from_world=RigidTransform(rotation, -rotation @ (camera.centre + one.shift)))


@dataclass(frozen=True, eq=False)
class _Trial:
    camera: int
    kind: str
    cameras: list[Placed]
    gain: float
    other: int = -1


def _trials(
    camera: int,
    rig: Rig,
    outlines: Sequence[Outlines],
    cameras: list[Placed],
    frames: Ints,
    scale: float,
    most_lag: int,
) -> list[_Trial]:
    """Return what could be wrong with a camera, each with what it would gain."""
    one = cameras[camera]
    before = residuals(camera, one, cameras, frames)

    def trial(kind: str, changed: Placed, other: int = -1) -> _Trial:
        new = [*cameras]
        new[camera] = changed
        after = residuals(camera, changed, new, frames)
        return _Trial(camera, kind, new, gain(before, after, scale), other)

    found = [
        trial("late", fit_lag(camera, cameras, frames, scale, most_lag)[0]),
        trial("turned", fit_pose(camera, cameras, frames, scale, shift=False)),
    ]
    if median_px(before) > 2 * scale:
        for kind, signs in _FLIPS.items():
            turned_over = _flipped(outlines[camera], rig[camera], signs)
            found.append(trial(kind, replace(one, view=view_of(rig[camera], turned_over))))
        for other in range(len(cameras)):
            if other != camera and rig[other].size == rig[camera].size:
                new = trial("exchanged", replace(one, view=view_of(rig[camera], outlines[other])), other)
                new.cameras[other] = replace(cameras[other], view=view_of(rig[other], outlines[camera]))
                after = residuals(camera, new.cameras[camera], new.cameras, frames)
                found.append(replace(new, gain=gain(before, after, scale)))
    return found


def _flipped(outlines: Outlines, camera: Camera, signs: tuple[int, int]) -> Outlines:
    size = np.array(camera.size) - 1.0
    pixels = np.where(np.array(signs) < 0, size - outlines.pixels, outlines.pixels)
    return Outlines(pixels, outlines.starts)


def _named(best: _Trial, rig: Rig, cameras: list[Placed], frames: Ints, scale: float) -> Fault | None:
    """Return the fault of a trial if it is large, sure and mends the camera; None otherwise."""
    camera = best.camera
    old, new = cameras[camera], best.cameras[camera]
    before, after = (residuals(camera, c[camera], c, frames) for c in (cameras, best.cameras))
    if best.gain < _LEAST_GAIN or sureness(before, after, scale) < _LEAST_SURENESS:
        return None
    if mean_cost(after, scale) > cost_without(camera, cameras, frames, scale) + MENDED:
        return None
    kind = best.kind
    # Silhouettes of one camera that lack a little in every frame look like a turn, too, but a small one.
    if kind == "turned" and median_px(before) < scale:
        return None
    if kind == "turned" and not _steady(camera, cameras, frames, scale, best.gain):
        return None
    if kind == "turned" and _travels(old.view):
        shifted = fit_pose(camera, cameras, frames, scale, shift=True)
        if best.gain + _SHIFT_GAIN < gain(before, residuals(camera, shifted, cameras, frames), scale):
            kind, new = "moved", shifted
            best.cameras[camera] = shifted
    degrees = np.degrees(_in_camera(rig[camera], new.turn - old.turn))
    if kind == "late" and abs(new.lag - old.lag) < _LEAST_LAG:
        return None
    off, left = median_px(before), median_px(residuals(camera, best.cameras[camera], best.cameras, frames))
    if kind in ("turned", "moved") and (np.linalg.norm(degrees) < _LEAST_TURN or left > _LEFT_OVER * off):
        return None
    return Fault(
        rig.names[camera], kind, new.lag - old.lag, degrees, new.shift - old.shift,
        rig.names[best.other] if best.other >= 0 else "", off, left,
    )  # fmt: skip


def _travels(view: OutlineRays) -> bool:
    """Return whether the subject goes through the view: where it stays, a shift that a turn undoes is free."""
    rays = view.rays[view.seen]
    if not len(rays):
        return False
    middles = rays.mean(axis=1)
    path = np.linalg.norm(np.percentile(middles, 95, axis=0) - np.percentile(middles, 5, axis=0))
    return bool(path > _TRAVEL * np.median(np.linalg.norm(rays.max(axis=1) - rays.min(axis=1), axis=1)))


def _steady(camera: int, cameras: list[Placed], frames: Ints, scale: float, whole: float) -> bool:
    """Return whether the turn that each half of the frames tells of mends the other half, too."""
    middle = len(frames) // 2
    halves = (slice(None, middle), slice(middle, None))
    for told, other in (halves, halves[::-1]):
        part = [replace(one, view=one.view.take(told)) for one in cameras]
        turn = fit_pose(camera, part, frames[told], scale, shift=False).turn
        rest = [replace(one, view=one.view.take(other)) for one in cameras]
        before = residuals(camera, rest[camera], rest, frames[other])
        after = residuals(camera, replace(rest[camera], turn=turn), rest, frames[other])
        if gain(before, after, scale) < _STEADY * whole:
            return False
    return True


def _in_camera(camera: Camera, turn: Floats) -> Floats:
    """Return a rotation vector (3,) of world axes in the axes of a camera: up, right, clockwise."""
    return np.asarray(camera.camera_from_world.rotation @ turn) if isinstance(camera, LensCamera) else turn
