"""Captured motion carried to a body of another build: directions of the bones are kept, lengths are the body's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation, RotationSpline

from benchmarks.people.builds import Build
from calibration.foundation.arrays import Floats
from tracking.priors.cmu import load_cmu

__all__ = ["RATE_HZ", "MovingPerson", "carry", "person"]

RATE_HZ = 60.0
#: Nobody leaves the cameras' view: longer ways are shortened, as on a treadmill.
FARTHEST_MM = 1600.0
#: The database bends ankles by up to 90 degrees where a marker was lost; a foot turns by no more than this from rest.
ANKLE_DEG = 40.0
#: The database has its left at +x, up at +y and forward at +z.
WORLD_FROM_CMU = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
#: Which captured joint turns which bone; bones not named go with their parent (hands with the forearm). The captured
#: lower back bends 103 mm above the hips, where "spine04" begins; "spine05" begins at the hips: it is the sacrum, and
#: goes with the pelvis.
TRUNK = {
    "root": "Hips", "spine05": "Hips", "spine04": "LowerBack", "spine03": "Spine", "spine02": "Spine",
    "spine01": "Spine1", "neck01": "Neck", "neck02": "Neck1", "neck03": "Neck1", "head": "Head",
}  # fmt: skip
SIDE = {
    "pelvis": "Hips", "clavicle": "{}Shoulder", "shoulder01": "{}Shoulder", "upperarm01": "{}Arm",
    "upperarm02": "{}Arm", "lowerarm01": "{}ForeArm", "lowerarm02": "{}ForeArm", "upperleg01": "{}UpLeg",
    "upperleg02": "{}UpLeg", "lowerleg01": "{}Leg", "lowerleg02": "{}Leg", "foot": "{}Foot",
}  # fmt: skip
SIDES = {"L": "Left", "R": "Right"}
#: Bones whose direction at rest is laid along the captured skeleton's: bone, its end, and the captured ends.
LIMBS = (
    ("upperarm01", "lowerarm01", "Arm", "ForeArm"), ("lowerarm01", "wrist", "ForeArm", "Hand"),
    ("upperleg01", "lowerleg01", "UpLeg", "Leg"), ("lowerleg01", "foot", "Leg", "Foot"),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class MovingPerson:
    """A body through time: its build, skin (T, V, 3), bones' heads (T, B, 3) in mm and turns from rest (T, B, 3, 3)."""

    build: Build
    vertices: Floats
    heads: Floats
    turns: Floats


@dataclass(frozen=True, eq=False)
class Captured:
    """A stretch of captured motion, in our world.

    Attributes:
        rest: joint to its place (3,) in the captured skeleton's zero pose, mm.
        turns: joint to (T, 3, 3) from that pose.
        root: (T, 3) way of the hips, mm.
    """

    rest: dict[str, Floats]
    turns: dict[str, Floats]
    root: Floats

    def way(self, start: str, end: str) -> Floats:
        """Return the vector between two joints of the zero pose."""
        return np.asarray(self.rest[end] - self.rest[start])


def captured(cmu: Path, clip: str, start_s: float, frames: int) -> Captured:
    """Return a stretch of a clip of the table of poses at 15 Hz, smoothly between them."""
    table = load_cmu(cmu)
    motion = table.motion(table.clips.index(clip))
    places, turns = motion.poses()
    times = np.arange(len(places)) / motion.rate_hz
    wanted = start_s + np.arange(frames) / RATE_HZ
    to, back = WORLD_FROM_CMU, WORLD_FROM_CMU.T
    rest = np.zeros((len(motion.names), 3))
    for joint, parent in enumerate(motion.parents):
        rest[joint] = motion.offsets[joint] + (rest[parent] if parent >= 0 else 0.0)
    root = CubicSpline(times, places[:, 0])(wanted) @ to.T
    way = root[-1, :2] - root[0, :2]
    far = float(np.linalg.norm(way))
    if far > FARTHEST_MM:
        root[:, :2] -= np.linspace(0.0, 1.0, frames)[:, None] * way * (1.0 - FARTHEST_MM / far)
    return Captured(
        dict(zip(motion.names, rest @ to.T, strict=True)),
        {
            name: to @ RotationSpline(times, Rotation.from_matrix(turns[:, joint]))(wanted).as_matrix() @ back
            for joint, name in enumerate(motion.names)
        },
        root,
    )


def carry(build: Build, motion: Captured) -> MovingPerson:
    """Move a body by captured turns, skinned linearly by its own weights; the lowest point of the skin is the floor."""
    laid = _laid_along(build, motion)
    sources = TRUNK | {
        f"{bone}.{side}": name.format(word) for side, word in SIDES.items() for bone, name in SIDE.items()
    }
    frames, bones = len(motion.root), len(build.bones)
    turns, heads = np.zeros((frames, bones, 3, 3)), np.zeros((frames, bones, 3))
    leg = [("UpLeg", "Leg"), ("Leg", "Foot")]
    own = [("upperleg01", "lowerleg01"), ("lowerleg01", "foot")]
    size = sum(np.linalg.norm(build.way(f"{a}.L", f"{b}.L")) for a, b in own) / sum(
        np.linalg.norm(motion.way(f"Left{a}", f"Left{b}")) for a, b in leg
    )
    for index, bone in enumerate(build.bones):
        parent = int(build.parents[index])
        heads[:, index] = (
            motion.root * size
            if parent < 0
            else heads[:, parent] + turns[:, parent] @ (build.heads[index] - build.heads[parent])
        )
        turns[:, index] = (
            motion.turns[sources[bone]] @ laid.get(bone, np.eye(3)) if bone in sources else turns[:, parent]
        )
        if bone.startswith("foot"):
            turns[:, index] = turns[:, parent] @ _at_most(turns[:, parent].swapaxes(1, 2) @ turns[:, index], ANKLE_DEG)
    skin = np.empty((frames, len(build.vertices), 3))
    for frame in range(frames):
        shifts = heads[frame] - np.einsum("bij,bj->bi", turns[frame], build.heads)
        blended = np.tensordot(build.weights, turns[frame], 1)
        skin[frame] = np.einsum("vij,vj->vi", blended, build.vertices) + build.weights @ shifts
    middle = -0.5 * (heads[:, 0].min(axis=0) + heads[:, 0].max(axis=0))
    shift = np.array([middle[0], middle[1], -np.percentile(skin[..., 2].min(axis=1), 5)])
    return MovingPerson(build, skin + shift, heads + shift, turns)


def person(build: Build, cmu: Path, clip: str, start_s: float, frames: int) -> MovingPerson:
    """Return a body of a build in a stretch of a captured clip."""
    return carry(build, captured(cmu, clip, start_s, frames))


def _laid_along(build: Build, motion: Captured) -> dict[str, Floats]:
    """Return the turns (3, 3) that lay limb bones at rest along those of the captured skeleton."""
    laid: dict[str, Floats] = {}
    for side, word in SIDES.items():
        for bone, end, start, stop in LIMBS:
            before = laid.get(f"{bone}.{side}".replace("lower", "upper"), np.eye(3))
            way = before @ build.way(f"{bone}.{side}", f"{end}.{side}")
            turn = _smallest_turn(way, motion.way(word + start, word + stop)) @ before
            laid[f"{bone}.{side}"] = laid[f"{bone[:-1]}2.{side}"] = turn
        shank = laid[f"lowerleg01.{side}"]
        ahead = np.array([1.0, 0.0, 0.0])
        laid[f"foot.{side}"] = _smallest_turn(shank @ ahead, ahead) @ shank  # toes ahead in the zero pose
    return laid


def _at_most(turns: Floats, degrees: float) -> Floats:
    """Return turns (T, 3, 3) by no larger an angle, about the same axes."""
    vectors = Rotation.from_matrix(turns).as_rotvec()
    angles = np.linalg.norm(vectors, axis=1, keepdims=True)
    return Rotation.from_rotvec(vectors * np.minimum(1.0, np.radians(degrees) / np.maximum(angles, 1e-9))).as_matrix()


def _smallest_turn(start: Floats, end: Floats) -> Floats:
    axis = np.cross(start, end)
    sine = float(np.linalg.norm(axis))
    if sine == 0.0:
        return np.eye(3)
    return Rotation.from_rotvec(axis / sine * np.arctan2(sine, start @ end)).as_matrix()
