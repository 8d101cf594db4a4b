"""Poses of the CMU motion capture database as segment rotations of the built-in human.

The database (mocap.cs.cmu.edu; created with funding from NSF EIA-0196217) is read from one table of joint angles,
`poses_15hz.npz`. Of it only rotations are taken: the conversion the table comes from lost a bone of the trunk.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.foundation.arrays import Bools, Floats, Ints
from calibration.foundation.damaged_files import reading
from calibration.foundation.errors import InputError
from calibration.foundation.npz_files import read_npz
from calibration.geometry.euler import rotation_from_angles
from calibration.geometry.transforms import quaternion_from_rotation
from skeleton.motion_files.motions import JointMotion

__all__ = ["ACKNOWLEDGEMENT", "COPIES", "HELD_OUT", "WALKERS", "CmuTable", "load_cmu"]

ACKNOWLEDGEMENT = (
    "The data used in this project was obtained from mocap.cs.cmu.edu. "
    "The database was created with funding from NSF EIA-0196217."
)
#: Subjects whose walks measure the prior, and ten more of all kinds of motion (dance, runs, boxing and household,
#: boxing, building work, sports, a pregnant woman's day, jumps, runs, styles): never trained on.
WALKERS = ("007", "008", "035")
HELD_OUT = (*WALKERS, "005", "009", "014", "017", "062", "086", "111", "118", "127", "137")
#: The same clips under a second number: left out, so that nobody is in training by another name.
COPIES = ("064", "073", "123", "084", "102", "122", "117", "121", "103", "141")

FILE = "poses_15hz.npz"
UNIT_MM = 25.4 / 0.45
#: Joints in the order of a BVH file's OFFSET lines, with their parents; "" is an end site of the joint before it.
_LINES = (
    ("Hips", ""), ("LHipJoint", "Hips"), ("LeftUpLeg", "LHipJoint"), ("LeftLeg", "LeftUpLeg"),
    ("LeftFoot", "LeftLeg"), ("LeftToeBase", "LeftFoot"), ("", "LeftToeBase"), ("RHipJoint", "Hips"),
    ("RightUpLeg", "RHipJoint"), ("RightLeg", "RightUpLeg"), ("RightFoot", "RightLeg"),
    ("RightToeBase", "RightFoot"), ("", "RightToeBase"), ("LowerBack", "Hips"), ("Spine", "LowerBack"),
    ("Spine1", "Spine"), ("Neck", "Spine1"), ("Neck1", "Neck"), ("Head", "Neck1"), ("", "Head"),
    ("LeftShoulder", "Spine1"), ("LeftArm", "LeftShoulder"), ("LeftForeArm", "LeftArm"), ("LeftHand", "LeftForeArm"),
    ("LeftFingerBase", "LeftHand"), ("LeftHandIndex1", "LeftFingerBase"), ("", "LeftHandIndex1"),
    ("LThumb", "LeftHand"), ("", "LThumb"), ("RightShoulder", "Spine1"), ("RightArm", "RightShoulder"),
    ("RightForeArm", "RightArm"), ("RightHand", "RightForeArm"), ("RightFingerBase", "RightHand"),
    ("RightHandIndex1", "RightFingerBase"), ("", "RightHandIndex1"), ("RThumb", "RightHand"), ("", "RThumb"),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class CmuTable:
    """The table of joint angles.

    Attributes:
        angles: (N, 3 J) rotations about z, y and x of each joint, 0.01 degree.
        roots: (N, 3) place of the hips, units of the file.
        joints: J names.
        clips: names of the clips, C.
        subjects: their subjects, C.
        first, frames: (C,) where each clip's rows begin, and how many they are.
        offsets: subject to (38, 3) offset lines of its skeleton.
    """

    angles: Ints
    roots: Floats
    joints: tuple[str, ...]
    clips: tuple[str, ...]
    subjects: tuple[str, ...]
    first: Ints
    frames: Ints
    offsets: dict[str, Floats]

    RATE_HZ = 15.0

    def check(self) -> None:
        """Refuse tables that do not fit each other."""
        rows, clips = len(self.angles), len(self.clips)
        if self.angles.shape != (rows, 3 * len(self.joints)) or self.roots.shape != (rows, 3):
            raise InputError(f"wanted 3 angles of {len(self.joints)} joints and 3 of the root in each of {rows} rows")
        if len(self.subjects) != clips or self.first.shape != (clips,) or self.frames.shape != (clips,):
            raise InputError(f"{clips} clips, but {len(self.subjects)} subjects and {len(self.first)} beginnings")
        if self.first.min(initial=0) < 0 or self.frames.min(initial=0) < 0 or (self.first + self.frames > rows).any():
            raise InputError("a clip lies outside of the table's rows")
        if any(lines.shape != (len(_LINES), 3) for lines in self.offsets.values()) or not set(self.subjects) <= set(
            self.offsets
        ):
            raise InputError(f"wanted {len(_LINES)} offsets of each subject")

    def motion(self, clip: int, *, step: int = 1) -> JointMotion:
        """Return every ``step``-th pose of one clip; poses never solved (every angle 0) are left out."""
        rows = slice(int(self.first[clip]), int(self.first[clip] + self.frames[clip]), step)
        angles = np.asarray(self.angles[rows], float)
        solved: Bools = np.any(angles[:, 3:] != 0, axis=1)
        offsets, tips, names, parents = self._skeleton(self.subjects[clip])
        turns = np.zeros((int(solved.sum()), len(names), 4))
        turns[..., 0] = 1.0
        for index, name in enumerate(names):
            if name in self.joints:
                column = 3 * self.joints.index(name)
                degrees = angles[solved, column : column + 3] / 100.0
                turns[:, index] = quaternion_from_rotation(rotation_from_angles(np.radians(degrees), "zyx"))
        shifts = np.zeros((len(turns), len(names), 3))
        shifts[:, 0] = self.roots[rows][solved] * UNIT_MM
        return JointMotion(names, parents, offsets, tips, shifts, turns, self.RATE_HZ / step, "y")

    def _skeleton(self, subject: str) -> tuple[Floats, Floats, tuple[str, ...], tuple[int, ...]]:
        """Offsets and tips (J, 3) in mm, names and parents of a subject's joints."""
        lines = np.asarray(self.offsets[subject], float) * UNIT_MM
        names = tuple(name for name, _ in _LINES if name)
        tips = np.full((len(names), 3), np.nan)
        offsets = np.array([line for line, (name, _) in zip(lines, _LINES, strict=True) if name])
        for line, (name, parent) in zip(lines, _LINES, strict=True):
            if not name:
                tips[names.index(parent)] = line
        parents = tuple(names.index(parent) if parent else -1 for name, parent in _LINES if name)
        return offsets, tips, names, parents


def load_cmu(folder: Path) -> CmuTable:
    """Read the table from a folder that holds `poses_15hz.npz`."""
    path = Path(folder) / FILE
    if not path.is_file():
        raise InputError(f"{path}: no such file; give the folder of the CMU table with --cmu")
    fields = read_npz(path, "the table of CMU poses")
    with reading(path, "the table of CMU poses"):
        channels = [str(name) for name in fields["channels"]]
        offsets = zip(fields["offset_subject"], fields["offsets"], strict=True)
        table = CmuTable(
            fields["angles_centideg"],
            np.asarray(fields["root_position"], float),
            tuple(name.split(".")[0] for name in channels[::3]),
            tuple(str(name) for name in fields["clip"]),
            tuple(str(name) for name in fields["subject"]),
            fields["first"],
            fields["frames"],
            {str(name): lines for name, lines in offsets},
        )
        table.check()
    if channels != [f"{name}.{axis}rotation" for name in table.joints for axis in "ZYX"]:
        raise InputError(f"{path}: wanted channels Z, Y, X of each joint, got {', '.join(channels[:3])}, ...")
    return table
