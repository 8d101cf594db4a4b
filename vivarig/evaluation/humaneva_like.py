"""A set in HumanEva's layout that the studio films: captured motion that the built-in prior never saw, other bodies.

Rig, image size and rate are those of HumanEva-II (4 colour cameras facing each other, 656x490, 60 Hz). The motions are
clips of CMU subjects that were held out of the human prior, given to actors of other lengths and girths than the
built-in body. **The images are rendered**: figures on this set say nothing of cloth, hair and real sensors.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation, RotationSpline

from calibration.cameras.ring import ring_rig
from calibration.foundation.arrays import Floats, Ints
from calibration.geometry.transforms import rotation_from_quaternion, rotation_from_vector
from calibration.rig_formats import write_rig
from capture.studio.films.acting import Performance, perform
from capture.studio.films.film import film_cameras
from capture.studio.films.recording_writer import write_films
from capture.studio.scene.options import StudioOptions
from skeleton.actors.actor import sample_actor
from skeleton.analysis.humaneva import HEAD_LENGTH_MM, PELVIS_BACK_MM
from skeleton.motion_files import write_motion
from skeleton.motion_files.motions import JointMotion, MarkerSeries
from skeleton.motions.retarget import motion_from_file
from tracking.priors.cmu import CmuTable

__all__ = ["ACTIONS", "FRAMES", "RENDERED", "Action", "action_motion", "film_action", "plug_in_gait_points"]

RATE_HZ, FRAMES = 60.0, 300
RENDERED = "rendered images, not HumanEva's"
_UP = np.array([0.0, 1.0, 0.0])
"""Vertical of CMU's files."""


@dataclass(frozen=True)
class Action:
    """One sequence.

    Attributes:
        subject: HumanEva's name.
        clip: of the CMU database; one that is too short is repeated from where its poses come round again.
        seed: of the actor and the rig.
        circle: radius that its way is bent to, mm; 0 leaves it as it is.
        start: first pose taken of the clip.
    """

    subject: str
    clip: str
    seed: int
    circle: float = 0.0
    start: int = 0


#: Subjects 05, 35, 127 and 17 of the database; none was trained on.
ACTIONS = {
    "Walking_1": Action("S1", "05_01", 501, circle=1100.0),
    "Jog_1": Action("S2", "35_17", 502, circle=1300.0),
    "Balance_1": Action("S3", "127_02", 503, start=65),
    "Box_1": Action("S4", "17_10", 504),
}
STUDIO = StudioOptions(
    seed=61, colour=True, lamps=3, shadows=0.5, texture=0.35, floor_texture=0.15, uneven_light=0.1, noise=2.0,
    vignetting=0.15,
)  # fmt: skip


def action_motion(table: CmuTable, action: Action, frames: int) -> JointMotion:
    """Return ``frames`` frames at 60 Hz of an action's clip."""
    whole = table.motion(table.clips.index(action.clip))
    motion = replace(whole, shifts=whole.shifts[action.start :], rotations=whole.rotations[action.start :])
    knots = int(np.ceil((frames - 1) * motion.rate_hz / RATE_HZ)) + 1
    return _resampled(_laid_out(motion, _repeated(motion, knots), action.circle), frames)


def film_action(
    table: CmuTable,
    name: str,
    root: Path,
    *,
    frames: int = FRAMES,
    workers: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
) -> None:
    """Film one of `ACTIONS` into a HumanEva folder: images, calibration, synchronisation, plates and C3D truth."""
    action = ACTIONS[name]
    performance = _performance(action_motion(table, action, frames), action.seed)
    rig = ring_rig(
        4,
        radius=4600.0,
        height=[1500.0, 1700.0],
        target=(0.0, 0.0, 900.0),
        size=(656, 490),
        field_mm=4400.0,
        distortion=(-0.22, 0.12, 0.0008, -0.0006, 0.0),
        first_angle=np.pi / 4.0,
        jitter=0.02,
        seed=action.seed,
    )
    place = root / action.subject
    films = film_cameras(rig, performance.surface, replace(STUDIO, seed=STUDIO.seed + action.seed))
    studio = root / f".{action.subject}_{name}"
    recording = write_films(
        studio, films, rig, performance.truth(), name=name, subject="human", workers=workers, on_progress=on_progress
    )
    for folder in ("Image_Data", "Sync_Data", "Mocap_Data", "Calibration_Data"):
        (place / folder).mkdir(parents=True, exist_ok=True)
    (root / "Background").mkdir(exist_ok=True)
    write_rig(rig, place / "Calibration_Data", "humaneva", lossy=True)
    points = plug_in_gait_points(dict(zip(*_landmarks(performance), strict=True)))
    series = MarkerSeries(tuple(points), np.stack(list(points.values()), axis=1), RATE_HZ, up="z")
    write_motion(series, place / "Mocap_Data" / f"{name}.c3d")
    for footage in recording.footage:
        (place / "Sync_Data" / f"{name}_({footage.name}).ofs").write_text("1\n1\n1\n")
        if footage.background is not None:
            shutil.move(footage.background, root / "Background" / f"{action.subject}_{name}_({footage.name}).mp4")
        shutil.move(footage.source, place / "Image_Data" / f"{name}_({footage.name}).mp4")
    shutil.rmtree(studio)


def plug_in_gait_points(markers: dict[str, Floats]) -> dict[str, Floats]:
    """Return the Plug-in-Gait points (T, 3) from which `truth_from_points` makes HumanEva's 15 markers again."""
    points = {"TRXO": markers["thorax"]}
    limbs = {"CLO": "shoulder", "HUO": "elbow", "RAO": "wrist", "FEP": "hip", "FEO": "knee", "TIO": "ankle"}
    for letter, side in (("L", "left"), ("R", "right")):
        points |= {letter + code: markers[f"{side}_{joint}"] for code, joint in limbs.items()}
    points["PELO"] = markers["pelvis"] + np.array([PELVIS_BACK_MM, 0.0, 0.0])
    points["PELA"] = points["PELO"] + np.array([100.0, 0.0, 0.0])
    points["HEDO"] = markers["head"] - np.array([0.0, 0.0, HEAD_LENGTH_MM])
    points["HEDP"] = points["HEDO"] + np.array([0.0, 0.0, 100.0])
    return points


def _performance(motion: JointMotion, seed: int) -> Performance:
    """Give a motion to an actor of its own build and bring it to the middle of the floor."""
    actor = sample_actor("human", seed)
    skeleton = actor.skeleton
    coordinates, contacts = motion_from_file(motion, skeleton)
    _, landmarks = skeleton.landmarks(skeleton.forward(coordinates))
    coordinates[:, :2] -= 0.5 * (landmarks.min(axis=(0, 1)) + landmarks.max(axis=(0, 1)))[:2]
    return perform(actor, coordinates, RATE_HZ, contact_names=tuple(skeleton.floor_points), contacts=contacts)


def _landmarks(performance: Performance) -> tuple[tuple[str, ...], list[Floats]]:
    truth = performance.truth().landmarks
    return truth.names, list(truth.positions.transpose(1, 0, 2))


def _repeated(motion: JointMotion, count: int) -> Ints:
    """Return ``count`` frame numbers of a clip: as they are, and again from where the poses come round."""
    last = motion.frames - 1
    if count <= last:
        return np.arange(count)
    turns = motion.rotations[:, 1:].reshape(motion.frames, -1, 4)
    alike = np.abs(np.einsum("aji,bji->abj", turns, turns)).sum(axis=2)
    first, then = np.meshgrid(np.arange(motion.frames), np.arange(motion.frames), indexing="ij")
    # From the first third back into the last third: at least a third of the clip is repeated as it is.
    wanted = (first < motion.frames // 3) & (then > 2 * motion.frames // 3) & (then <= last - 1)
    begin, end = np.unravel_index(np.argmax(np.where(wanted, alike, -np.inf)), alike.shape)
    again = np.arange(begin, end)
    rounds = -(-(count - int(end)) // len(again))
    return np.concatenate([np.arange(end), np.tile(again, rounds)])[:count].astype(np.int64)


def _laid_out(motion: JointMotion, order: Ints, circle: float) -> JointMotion:
    """Play frames in an order, the root's steps one after the other, its way bent by 1 / circle per mm."""
    roots = rotation_from_quaternion(motion.rotations[:, 0])
    heading = np.unwrap(np.arctan2(roots[:, 0, 2], roots[:, 2, 2]))
    tilts = rotation_from_vector(-heading[:, None] * _UP) @ roots
    nexts = np.minimum(order + 1, motion.frames - 1)
    step = motion.shifts[nexts, 0] - motion.shifts[order, 0]
    own = np.einsum("tij,tj->ti", rotation_from_vector(-heading[order, None] * _UP), step)
    way = np.linalg.norm(own[:, [0, 2]], axis=1)
    turn = heading[nexts] - heading[order] + (way / circle if circle > 0 else 0.0)
    at = np.concatenate([[0.0], np.cumsum(turn)[:-1]])
    moved = np.einsum("tij,tj->ti", rotation_from_vector(at[:, None] * _UP), own)
    place = np.concatenate([np.zeros((1, 3)), np.cumsum(moved, axis=0)[:-1]])
    place[:, 1] = motion.shifts[order, 0, 1]
    shifts, turns = motion.shifts[order].copy(), motion.rotations[order].copy()
    shifts[:, 0] = place
    turns[:, 0] = _quaternions(rotation_from_vector(at[:, None] * _UP) @ tilts[order])
    return replace(motion, shifts=shifts, rotations=turns)


def _resampled(motion: JointMotion, frames: int) -> JointMotion:
    """Return ``frames`` frames at 60 Hz, by cubic splines of places and rotations."""
    knots = np.arange(motion.frames) / motion.rate_hz
    times = np.minimum(np.arange(frames) / RATE_HZ, knots[-1])
    turns = np.empty((frames, len(motion.names), 4))
    for joint in range(len(motion.names)):
        spline = RotationSpline(knots, Rotation.from_quat(np.roll(motion.rotations[:, joint], -1, axis=1)))
        turns[:, joint] = np.roll(spline(times).as_quat(), 1, axis=1)
    return replace(motion, shifts=CubicSpline(knots, motion.shifts)(times), rotations=turns, rate_hz=RATE_HZ)


def _quaternions(rotations: Floats) -> Floats:
    return np.roll(Rotation.from_matrix(rotations).as_quat(), 1, axis=1)
