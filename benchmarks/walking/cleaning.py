"""Clean feet: slide, penetration, errors against truth, added noise, hierarchy and speed."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from functools import cache
from pathlib import Path

import h5py
import numpy as np

from benchmarks.walking.plates import ROOT
from calibration.foundation.arrays import Bools, Floats
from calibration.foundation.hdf5_files import words_of
from calibration.geometry.transforms import rotation_from_quaternion
from capture.recordings.recording import load_recording
from skeleton.analysis.belts import still_ground
from skeleton.analysis.contacts import foot_points
from skeleton.bodies import load_body
from skeleton.inverse_kinematics.deformation import Constraint, deform_motion
from skeleton.inverse_kinematics.footplants import FootPlants, plant_feet
from skeleton.motions import make_motion
from skeleton.tree.joint_tree import Pose, Skeleton
from vivarig.cli import main as vivarig
from vivarig.stages.clean import fitted_body

__all__ = ["clean_scores", "hierarchy_scores", "sample_folders"]

HIGH_HZ = {"human": 10.0, "mouse": 30.0}


@cache
def sample_folders() -> dict[str, Path]:
    """Return tracked copies of the sample recordings, made here unless ``GAIT_SAMPLES`` names where they are."""
    given = os.environ.get("GAIT_SAMPLES")
    place = Path(given) if given else Path(tempfile.mkdtemp(prefix="gait-"))
    out = {}
    for name in ("human", "mouse"):
        out[name] = place / name
        if not (out[name] / "results" / "skeleton.h5").is_file():
            shutil.copytree(ROOT / "sample_data" / name, out[name], dirs_exist_ok=True)
            if vivarig(["run", str(out[name]), "--until", "skeleton"]) not in (0, 1):
                raise RuntimeError(f"{name}: the pipeline failed")
    return out


def _truth(name: str) -> tuple[Pose, Floats, list[str]]:
    with h5py.File(ROOT / "sample_data" / name / "truth.h5") as file:
        pose = Pose(file["joints/positions"][:], rotation_from_quaternion(file["joints/rotations"][:]))
        return pose, file["landmarks/positions"][:], list(words_of(file["landmarks/names"]))


def clean_scores() -> dict[str, float]:
    """Clean the tracked samples and compare with their truth."""
    out: dict[str, float] = {}
    gains, rises = [], []
    for name, folder in sample_folders().items():
        fitted = fitted_body(load_recording(folder))
        body, raw = fitted.body, fitted.coordinates
        rate = load_recording(folder).rate_hz
        plants = plant_feet(body, raw, rate, still_ground(len(raw)), soles=fitted.soles)
        clean = deform_motion(body, raw, plants.constraints).coordinates
        feet = [_feet_error(body, motion, name) for motion in (raw, clean)]
        joints = [_joint_errors(body, motion, name) for motion in (raw, clean)]
        gains.append(1.0 - feet[1] / feet[0])
        rises.append(float((joints[1] / joints[0] - 1.0).max()))
        slide, sunk = _slide(body, clean, plants), _penetration(body, clean, plants)
        power, jolt = _noise(body, raw, clean, plants, rate, HIGH_HZ[name])
        print(f"  {name}: slide {_slide(body, raw, plants):.3f} -> {slide:.4f} mm, sunk {sunk:.4f} mm")
        print(f"    feet {feet[0]:.2f} -> {feet[1]:.2f} mm, joints {joints[0].mean():.3f} -> {joints[1].mean():.3f} mm")
        print(f"    worst rise of a joint {100 * rises[-1]:.1f} %, power {power:.3f}, acceleration {jolt:.3f} of raw")
        out |= {
            f"clean_slide_{name}_mm": slide, f"clean_sunk_{name}_mm": sunk, f"clean_feet_gain_{name}": gains[-1],
            f"clean_worst_rise_{name}": rises[-1], f"clean_power_{name}": power, f"clean_acceleration_{name}": jolt,
        }  # fmt: skip
    return out | {"clean_feet_gain": min(gains)}


def _feet_error(body: Skeleton, motion: Floats, name: str) -> float:
    """Return the mean distance of the soles' points from the true ones, mm."""
    true = foot_points(load_body(body.name), _truth(name)[0])
    ours = foot_points(body, body.forward(motion))
    return float(np.mean([np.linalg.norm(ours[foot] - true[foot], axis=2).mean() for foot in ours]))


def _joint_errors(body: Skeleton, motion: Floats, name: str) -> Floats:
    names, places = body.landmarks(body.forward(motion))
    _, true, order = _truth(name)
    return np.asarray(np.linalg.norm(places - true[:, [order.index(one) for one in names]], axis=2).mean(axis=0))


def _held(body: Skeleton, plants: FootPlants) -> list[tuple[str, Bools]]:
    return [(point, plants.held[point]) for names in body.floor_points.values() for point in names]


def _slide(body: Skeleton, motion: Floats, plants: FootPlants) -> float:
    """Return the median way of standing points from frame to frame, mm."""
    pose, ways = body.forward(motion), []
    for point, held in _held(body, plants):
        track = pose.points(*body.points([point]))[:, 0]
        ways.append(np.linalg.norm(np.diff(track, axis=0), axis=1)[held[1:] & held[:-1]])
    return float(np.median(np.concatenate(ways)))


def _penetration(body: Skeleton, motion: Floats, plants: FootPlants) -> float:
    """Return the 95th percentile of how deep points are below the level they stand at, all frames, mm."""
    pose, depths = body.forward(motion), []
    for point, _ in _held(body, plants):
        depths.append(np.maximum(plants.level_mm[point] - pose.points(*body.points([point]))[:, 0, 2], 0.0))
    return float(np.percentile(np.concatenate(depths), 95.0))


def _noise(
    body: Skeleton, raw: Floats, clean: Floats, plants: FootPlants, rate: float, above_hz: float
) -> tuple[float, float]:
    """Return power above a frequency, and the 99.5th percentile of acceleration near ends of stances, as shares of raw.

    Of the joints of the legs and of the soles' points.
    """
    names = [*body.joint_names, *(point for point, _ in _held(body, plants))]
    tracks = [body.forward(motion).points(*body.points(names)) for motion in (raw, clean)]
    window = np.hanning(len(raw))[:, None, None]
    frequency = np.fft.rfftfreq(len(raw), 1.0 / rate)
    powers = [
        float((np.abs(np.fft.rfft((track - track.mean(axis=0)) * window, axis=0)[frequency > above_hz]) ** 2).sum())
        for track in tracks
    ]
    near = np.zeros(len(raw), dtype=bool)
    for _, held in _held(body, plants):
        for edge in np.flatnonzero(np.diff(held.astype(np.int8))):
            near[max(0, edge - 5) : edge + 7] = True
    jolts = [
        float(np.percentile(np.linalg.norm(np.diff(track, 2, axis=0), axis=2)[near[1:-1]], 99.5)) * rate**2
        for track in tracks
    ]
    return powers[1] / powers[0], jolts[1] / jolts[0]


def hierarchy_scores() -> dict[str, float]:
    """Measure what a lower layer does to a higher one, and the time of 200 frames with 8 plants and balance."""
    body = load_body("human")
    motion = make_motion(body, "walk", seconds=200 / 25, rate_hz=25.0, rng=np.random.default_rng(2))
    raw = motion.coordinates + 0.01 * np.random.default_rng(3).normal(size=motion.coordinates.shape)
    raw = body.clamp(raw)
    deform_motion(body, raw[:5], [Constraint("w", "left_wrist", np.zeros((5, 3)) * np.nan, np.full(5, 1))])
    begin = time.process_time()
    plants = plant_feet(body, raw, 25.0, still_ground(len(raw)), balance=True)
    with_balance = deform_motion(body, raw, plants.constraints)
    seconds = time.process_time() - begin
    feet = [one for one in plants.constraints if one.name in plants.held]
    contacts = [Constraint(c.name, c.point, np.where(plants.held[c.name][:, None], c.goals, np.nan), c.priority,
                           joints=c.joints) for c in feet]  # fmt: skip
    wrist = body.forward(raw).points(*body.points(["left_wrist"]))[:, 0] + np.array([80.0, 0.0, 60.0])
    chest = body.forward(raw).points(*body.points(["chest"]))[:, 0] + np.array([0.0, 40.0, -30.0])
    lower = [Constraint("wrist", "left_wrist", wrist, np.full(len(raw), 2)),
             Constraint("chest", "chest", chest, np.full(len(raw), 3))]  # fmt: skip
    alone, both = (deform_motion(body, raw, some, most_iterations=100) for some in (contacts, contacts + lower))
    change = np.nanmax(np.abs(both.residuals[:, : len(contacts)] - alone.residuals))
    length = max(1.0, float(np.linalg.norm(np.ptp(body.forward(body.rest()).positions[0], axis=0))))
    return {
        "clean_200_frames_s": seconds, "clean_plants": float(sum(len(c.intervals) for c in plants.contacts.values())),
        "hierarchy_change": float(change) / length,
        "balance_worst_mm": float(np.nanmax(with_balance.residuals[:, -1])),
    }  # fmt: skip
