"""Contacts of studio walks and trots, of tracked samples and of captured people; invariance and speed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import h5py
import numpy as np

from benchmarks.walking.plates import ROOT, data_folder
from calibration.foundation.arrays import Bools, Floats
from calibration.foundation.hdf5_files import words_of
from calibration.geometry.transforms import rotation_from_quaternion
from skeleton.analysis.belts import Belt
from skeleton.analysis.contacts import Contacts, detect_contacts, foot_contacts, foot_points, ground_of
from skeleton.analysis.gait import gait_summary
from skeleton.bodies import load_body
from skeleton.motion_files import read_bvh
from skeleton.motions import Motion, make_motion
from skeleton.motions.retarget import motion_from_file
from skeleton.tree.joint_tree import Pose

__all__ = ["cmu_scores", "speed_score", "studio_motions", "studio_scores", "tracked_scores"]

RATES = {"mouse": 120.0, "rat": 120.0, "human": 60.0}
DUTY_CLIPS = ("07_01", "07_03", "08_01", "08_03", "35_01", "35_17", "35_18", "35_19")
GAITS = {"mouse": ("walk", "trot"), "rat": ("walk", "trot"), "human": ("walk", "jog")}


def studio_motions() -> list[tuple[str, Motion]]:
    """Return three walks and three trots (people: jogs) of each body, 3 s each."""
    return [
        (body, make_motion(load_body(body), gait, seconds=3, rate_hz=RATES[body], rng=np.random.default_rng(seed)))
        for body, gaits in GAITS.items()
        for gait in gaits
        for seed in (3, 4, 5)
    ]


def f1_of(states: Bools, truth: Bools) -> float:
    """Return the frame-wise F1 of contact."""
    both = int(states.sum() + truth.sum())
    return 2.0 * float((states & truth).sum()) / both if both else 1.0


def event_errors(states: Bools, truth: Bools) -> tuple[list[int], int]:
    """Return how far each true event is from the nearest found one, frames, and by how many their numbers differ.

    What happens within three frames of the record's ends is not counted: of such a stance or swing nothing is seen.
    """
    true, found = (np.flatnonzero(np.diff(s.astype(np.int8))) for s in (truth, states))
    inner = true[(true >= 3) & (true < len(truth) - 4)]
    if not len(found):
        return [], len(inner)
    off = [int(np.abs(found - frame).min()) for frame in inner]
    extra = sum(int(np.abs(true - frame).min(initial=len(truth)) > 3) for frame in found if 3 <= frame < len(truth) - 4)
    return off, extra + sum(error > 3 for error in off)


def studio_scores() -> dict[str, float]:
    """Score exact motions on a floor, on a belt, and 17 m away."""
    f1s, errors, counts, belts, moved = [], [], 0, [], True
    for body, motion in studio_motions():
        skeleton, rate = load_body(body), motion.rate_hz
        pose = skeleton.forward(motion.coordinates)
        feet = foot_points(skeleton, pose)
        found = _all(feet, rate)
        # On a belt the body's mean velocity is taken out: the animal walks on the spot.
        frames = np.arange(len(pose))[:, None]
        drift = (pose.positions[-1, 0] - pose.positions[0, 0]) / max(len(pose) - 1, 1) * np.array([1.0, 1.0, 0.0])
        on_belt = _all({foot: points - (frames * drift)[:, None] for foot, points in feet.items()}, rate)
        away = _all({foot: points + np.array([17e3, 0.0, 0.0]) for foot, points in feet.items()}, rate)
        for column, foot in enumerate(motion.feet):
            truth = motion.contacts[:, column]
            f1s.append(f1_of(found[foot].states, truth))
            off, missing = event_errors(found[foot].states, truth)
            errors += off
            counts += missing
            belts.append(_apart(found[foot], on_belt[foot]))
            moved &= bool((found[foot].states == away[foot].states).all())
    return {
        "studio_f1_min": min(f1s), "studio_f1_mean": float(np.mean(f1s)), "studio_worst_frames": float(max(errors)),
        "studio_events_miscounted": float(counts), "belt_worst_frames": float(max(belts)),
        "same_after_17_m": float(moved),
    }  # fmt: skip


def _all(feet: Mapping[str, Floats], rate: float, belt: Belt | None = None) -> dict[str, Contacts]:
    ground = ground_of(feet, rate) if belt is None else belt
    return {foot: detect_contacts(points, rate, belt=ground) for foot, points in feet.items()}


def _apart(one: Contacts, other: Contacts) -> float:
    """Return how far the touch-downs of two lie apart, frames; infinite if their numbers differ."""
    a, b = one.touch_down_s, other.touch_down_s
    return float(np.abs(a - b).max(initial=0.0) * one.rate_hz) if len(a) == len(b) else float("inf")


def tracked_pose(folder: Path) -> tuple[str, float, Pose]:
    """Return body, rate and pose of a tracked recording."""
    with h5py.File(folder / "results" / "skeleton.h5") as file:
        pose = Pose(file["positions"][:], rotation_from_quaternion(file["rotations"][:]))
        return str(file.attrs["body"]), float(file.attrs["rate_hz"]), pose


def tracked_scores(folders: Mapping[str, Path]) -> dict[str, float]:
    """Score the contacts of tracked sample recordings against their truth."""
    out: dict[str, float] = {}
    for name, folder in folders.items():
        body, rate, pose = tracked_pose(folder)
        with h5py.File(ROOT / "sample_data" / name / "truth.h5") as file:
            names = list(words_of(file["contacts/names"]))
            planted = file["contacts/planted"][:].astype(bool)
        found = foot_contacts(load_body(body), pose, rate)
        f1s, errors = [], []
        for column, foot in enumerate(names):
            f1s.append(f1_of(found[foot].states, planted[:, column]))
            errors += event_errors(found[foot].states, planted[:, column])[0]
            print(f"  {name} {foot:12} F1 {f1s[-1]:.3f}")
        out[f"tracked_f1_{name}"] = min(f1s)
        out[f"tracked_worst_frames_{name}"] = float(max(errors, default=0))
    return out


def cmu_scores() -> dict[str, float]:
    """Walks of subjects 07 and 08: phase of left and right; runs of 35: duty factor."""
    phases, duties = {}, {}
    for path in sorted((data_folder() / "cmu" / "bvh").glob("*.bvh")):
        if path.stem[:2] not in ("07", "08", "35"):
            continue
        motion = read_bvh(path, unit_mm=25.4 / 0.45, drop_first=True)
        places = _without_setup(motion.poses()[0][..., [0, 2, 1]] * np.array([1.0, -1.0, 1.0]))
        feet = {
            side: places[:, [motion.names.index(f"{side}Foot"), motion.names.index(f"{side}ToeBase")]]
            for side in ("Left", "Right")
        }
        found = _all(feet, motion.rate_hz)
        left, right = (found[side].touch_down_s for side in ("Left", "Right"))
        shares = [
            (down - start) / (stop - start)
            for mine, other in ((left, right), (right, left))
            for start, stop in pairwise(mine)
            for down in other
            if start <= down < stop
        ]
        if shares:
            phases[path.stem] = float(np.mean(shares))
        if path.stem in DUTY_CLIPS:
            human = load_body("human")
            summary = gait_summary(human, human.forward(motion_from_file(motion, human)[0]), motion.rate_hz)
            shares = [float(share) for foot in summary.feet.values() for share in foot.duty_factor]
            duties[path.stem] = float(np.mean(shares)) if shares else float("nan")
            print(f"  {path.stem}: duty factor {duties[path.stem]:.3f} at {summary.speed_mm_s:.0f} mm/s")
    walks = np.array([phase for name, phase in phases.items() if name[:2] in ("07", "08")])
    runs = [duty for name, duty in duties.items() if name in ("35_17", "35_18", "35_19")]
    strolls = [duty for name, duty in duties.items() if name not in ("35_17", "35_18", "35_19")]
    return {
        "cmu_phase_mean": float(walks.mean()), "cmu_phase_worst": float(np.abs(walks - 0.5).max()),
        "cmu_phase_within_003": float(np.mean(np.abs(walks - 0.5) <= 0.03)), "cmu_clips": float(len(walks)),
        "cmu_run_duty": float(np.nanmean(runs)),
        "cmu_walk_duty": float(np.nanmean(strolls)),
    }  # fmt: skip


def _without_setup(places: Floats) -> Floats:
    """Return joint places (T, J, 3) without setup poses left at the beginning: 07_12 has two, metres from its walk."""
    steps = np.linalg.norm(np.diff(places[:6, 0], axis=0), axis=1)
    jumps = np.flatnonzero(steps > 500.0)  # half a metre a frame is 60 m/s
    return places[jumps[-1] + 1 :] if len(jumps) else places


def speed_score() -> dict[str, float]:
    """Time 10,000 frames of four feet."""
    skeleton = load_body("mouse")
    motion = make_motion(skeleton, "walk", seconds=5, rate_hz=200.0, rng=np.random.default_rng(1))
    feet = foot_points(skeleton, skeleton.forward(motion.coordinates))
    long = {foot: np.concatenate([points] * 10) for foot, points in feet.items()}
    _all(feet, 200.0)
    begin = time.process_time()
    _all(long, 200.0)
    return {"contacts_10000_s": time.process_time() - begin}
