"""Recordings of people nobody here built (`stranger/*` of the shared data), and how results are scored on them.

The truth's joints are the bone heads of another project's body and lie up to 50 mm from ours. So beside the raw error
there is the offset-free one: each joint's mean vector from truth to estimate, seen from its parent segment, is removed.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.crane.sequence import data_folder
from calibration.cameras.rig import load_rig, save_rig
from calibration.foundation.arrays import Bools, Bytes, Floats, Ints
from calibration.foundation.hdf5_files import words_of
from calibration.foundation.result_files import open_results
from calibration.foundation.trust import Trust
from capture.recordings.masks import create_masks
from capture.recordings.recording import load_recording

__all__ = ["FAR_MM", "JOINTS", "Scores", "Truth", "offset_free", "run_stranger", "score_results", "write_points"]

FAR_MM = 80.0
"""A limb joint further off than this is wrong, raw."""
WITHIN = 1.88
"""Sigmas along one axis within which 68 % of errors in space lie."""
LIMBS = ("shoulder", "elbow", "wrist", "hip", "knee", "ankle")
#: Joints of the truth, the segment they hang on (from, to), and the joint of `skeleton.h5` whose sigma is theirs.
JOINTS = {
    "pelvis": (None, "pelvis"),
    "thorax": (None, "neck"),
    "head": ("thorax", "head"),
    **{
        f"{side}_{name}": (f"{side}_{parent}" if parent else None, f"{side}_{name}")
        for side in ("left", "right")
        for name, parent in (
            ("shoulder", ""), ("elbow", "shoulder"), ("wrist", "elbow"), ("hip", ""), ("knee", "hip"), ("ankle", "knee")
        )
    },
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Truth:
    """What is known of a recording: joints (T, J, 3) mm, their names, true masks (T, H, W/8) packed per camera.

    Where it is known, also the turns (T, J, 3, 3) of the segments that the joints hang on.
    """

    names: tuple[str, ...]
    joints: Floats
    masks: dict[str, Bytes]
    turns: Floats | None = None

    @classmethod
    def load(cls, name: str) -> Truth:
        """Read the truth of one of the recordings."""
        with np.load(data_folder() / "stranger" / name / "truth.npz") as arrays:
            masks = {key.removeprefix("masks_"): arrays[key] for key in arrays.files if key.startswith("masks_")}
            return cls(tuple(map(str, arrays["joint_names"])), arrays["joints_mm"].astype(np.float64), masks)

    def unpacked(self, camera: str, width: int) -> Bools:
        """Return the true masks (T, H, W) of a camera."""
        return np.unpackbits(self.masks[camera], axis=-1)[..., :width].astype(bool)


@dataclass(frozen=True, eq=False)
class Scores:
    """Of one recording.

    Attributes:
        raw, free: (T, J) errors of the joints, mm: as they are, and with each joint's own offset removed.
        by_points: (T, J) the latter as points alone have it, where the segments' turns are known, too.
        sigma: (T, J) stated, mm along one axis.
        trusted: (T, J) the joint is called trusted. frame_trusted: (T,) the frame is.
        limb: (J,) which joints are of limbs.
    """

    raw: Floats
    free: Floats
    by_points: Floats
    sigma: Floats
    trusted: Bools
    frame_trusted: Bools
    limb: Bools

    @property
    def free_mm(self) -> float:
        """Mean offset-free error over all frames and joints; what was not found counts as a metre."""
        return float(np.nan_to_num(self.free, nan=1000.0).mean())

    @property
    def within(self) -> float:
        """Share of the offset-free errors within 1.88 sigma."""
        return float(np.mean(self.free <= WITHIN * self.sigma))

    @property
    def wrong_trusted(self) -> int:
        """Frames with a limb joint far off that is called trusted."""
        return int(np.any((self.raw > FAR_MM) & self.trusted & self.limb, axis=1).sum())

    @property
    def wrong(self) -> int:
        """Frames with a limb joint far off."""
        return int(np.any((self.raw > FAR_MM) & self.limb, axis=1).sum())

    @property
    def trusted_share(self) -> float:
        """Share of joints and frames that are called trusted."""
        return float(self.trusted.mean())


def offset_free(found: Floats, truth: Floats, names: tuple[str, ...], turns: Floats | None = None) -> Floats:
    """Return (T, J) distances after each joint's mean vector in its parent segment is removed.

    ``turns`` (T, J, 3, 3) are those of the segments. Points alone do not tell them: then the trunk's axes come from
    hips, shoulders, pelvis and thorax; a limb's segment takes them along by the smallest turn from its mean direction
    in the trunk to where it points: twist, which points do not tell, stays the trunk's.
    """
    at = {name: index for index, name in enumerate(names)}
    trunk = _axes(truth[:, at["thorax"]] - truth[:, at["pelvis"]], truth[:, at["left_hip"]] - truth[:, at["right_hip"]])
    free = np.full(found.shape[:2], np.nan)
    for name, (parent, _) in JOINTS.items():
        frame = trunk
        if turns is not None:
            frame = turns[:, at[name]]
        elif parent is not None:
            way = truth[:, at[name]] - truth[:, at[parent]]
            local = np.einsum("tij,ti->tj", trunk, way / np.linalg.norm(way, axis=1, keepdims=True))
            frame = trunk @ _least_turns(local.mean(axis=0), local)
        away = np.einsum("tij,ti->tj", frame, found[:, at[name]] - truth[:, at[name]])
        known = np.isfinite(away).all(axis=1)
        if known.any():
            free[:, at[name]] = np.linalg.norm(away - away[known].mean(axis=0), axis=1)
    return free


def _axes(up: Floats, left: Floats) -> Floats:
    """(T, 3, 3) columns: forward, left, up."""
    z = up / np.linalg.norm(up, axis=1, keepdims=True)
    y = left - np.sum(left * z, axis=1, keepdims=True) * z
    y /= np.linalg.norm(y, axis=1, keepdims=True)
    return np.stack([np.cross(y, z), y, z], axis=2)


def _least_turns(first: Floats, then: Floats) -> Floats:
    """(T, 3, 3) smallest rotations from one direction to others."""
    a = first / np.linalg.norm(first)
    axis = np.cross(a, then)
    x = np.zeros((len(then), 3, 3))
    x[:, 0, 1], x[:, 0, 2], x[:, 1, 2] = -axis[:, 2], axis[:, 1], -axis[:, 0]
    x -= x.transpose(0, 2, 1)
    return np.eye(3) + x + x @ x / np.maximum(1.0 + then @ a, 1e-6)[:, None, None]


def score_results(results: Path, truth: Truth) -> Scores:
    """Score ``skeleton.h5`` of a results folder."""
    with open_results(results / "skeleton.h5", stage="skeleton") as file:
        landmarks = list(words_of(file["landmark_names"]))
        joints = list(words_of(file["joint_names"]))
        found = file["landmarks"][:][:, [landmarks.index(name) for name in truth.names]]
        own = [joints.index(JOINTS[name][1]) for name in truth.names]
        sigma = file["sigma"][:][:, own]
        frame: Ints = file["trust"][:]
        trust = file["joint_trust"][:][:, own] if "joint_trust" in file else np.repeat(frame[:, None], len(own), axis=1)
    raw = np.linalg.norm(found - truth.joints, axis=2)
    limb = np.array([name.rpartition("_")[2] in LIMBS for name in truth.names])
    return Scores(
        raw,
        offset_free(found, truth.joints, truth.names, truth.turns),
        offset_free(found, truth.joints, truth.names),
        sigma,
        trust == int(Trust.TRUSTED),
        frame == int(Trust.TRUSTED),
        limb,
    )


def run_stranger(
    place: Path, name: str, cameras: int, *, plates: bool = True, true_masks: bool = False, points: Path | None = None
) -> Scores:
    """Run one of the recordings with the first cameras, with nothing set, and score it.

    Args:
        place: folder to work in.
        name: "walk", "box" or "walk_dark_shadow".
        cameras: how many.
        plates: with the clips of the empty room.
        true_masks: track the true silhouettes instead of those cut from the videos.
        points: folder with a file of 2D points per camera, ``<camera>.csv``.
    """
    truth = make_recording(place, name, cameras, plates=plates, true_masks=true_masks, points=points)
    if true_masks:
        vivarig("track", str(place))
        vivarig("skeleton", str(place))
    else:
        vivarig("run", str(place), "--until", "skeleton")
    return score_results(place / "results", truth)


def make_recording(
    place: Path, name: str, cameras: int, *, plates: bool = True, true_masks: bool = False, points: Path | None = None
) -> Truth:
    """Write a recording folder that points to the shared videos; with the true silhouettes in its results if asked."""
    source = load_recording(data_folder() / "stranger" / name)
    chosen = [footage.name for footage in source.footage[:cameras]]
    place.mkdir(parents=True, exist_ok=True)
    rig = load_rig(data_folder() / "stranger" / name / "rig.toml").subset(chosen)
    save_rig(rig, place / "rig.toml")
    words = [f'name = "{name}"', f"rate_hz = {source.rate_hz}", 'subject = "human"', 'rig = "rig.toml"']
    for footage in source.footage[:cameras]:
        words += [f"[cameras.{footage.name}]", f'video = "{footage.source.resolve()}"']
        if plates and footage.background is not None:
            words.append(f'background = "{footage.background.resolve()}"')
        if points is not None:
            words.append(f'points = "{(points / footage.name).resolve()}.csv"')
    (place / "recording.toml").write_text("\n".join(words) + "\n")
    truth = Truth.load(name)
    if true_masks:
        sizes = [camera.size for camera in rig.cameras]
        frames = len(truth.joints)
        with create_masks(place / "results" / "silhouettes.h5", chosen, sizes, frames, {"start": 0}) as writer:
            for camera in chosen:
                writer.write(
                    camera, 0, truth.masks[camera], np.full(frames, np.nan, np.float32), np.zeros(frames, np.uint16)
                )
    return truth


def write_points(folder: Path, name: str, cameras: int, *, wrong: float, seed: int = 15) -> Path:
    """Write 2D points of the true joints, a file per camera as DeepLabCut does; return the folder.

    Of the joints in each frame and camera 60 % are given, with 5 px of noise; a share of those is anywhere within the
    body's box grown by half. Confidence says nothing of it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    truth = Truth.load(name)
    rig = load_rig(data_folder() / "stranger" / name / "rig.toml")
    rng = np.random.default_rng(seed)
    titles = [f"{joint},{joint},{joint}" for joint in truth.names]
    head = ["scorer" + ",benchmark" * 3 * len(titles), ",".join(["bodyparts", *titles])]
    head.append(",".join(["coords", *(["x,y,likelihood"] * len(titles))]))
    for camera in rig.cameras[:cameras]:
        pixels = camera.project(truth.joints)
        low, high = pixels.min(axis=1, keepdims=True), pixels.max(axis=1, keepdims=True)
        room = 0.25 * (high - low)
        anywhere = rng.uniform(low - room, high + room, pixels.shape)
        pixels = pixels + rng.normal(0.0, 5.0, pixels.shape)
        pixels = np.where(rng.random(pixels.shape[:2])[..., None] < wrong, anywhere, pixels)
        given = rng.random(pixels.shape[:2]) < 0.6
        rows = [
            ",".join(
                [str(frame)] + [f"{x:.2f},{y:.2f},0.9" if told else ",,0.0" for (x, y), told in zip(*one, strict=True)]
            )
            for frame, one in enumerate(zip(pixels, given, strict=True))
        ]
        (folder / f"{camera.name}.csv").write_text("\n".join(head + rows) + "\n")
    return folder


def vivarig(*words: str) -> None:
    """Run a command; quality below its own threshold (exit code 1) is a result, too."""
    done = subprocess.run([sys.executable, "-m", "vivarig.cli", *words], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"vivarig {' '.join(words)}: {done.stderr.strip().splitlines()[-1]}")
