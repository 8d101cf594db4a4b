"""CMU motions for the benchmark of pose spaces: clips, and a table of many subjects' poses, split by subject."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from calibration.geometry.transforms import rotation_from_quaternion, rotation_from_vector
from skeleton.motion_files.bvh import read_bvh
from skeleton.pose_spaces.rotation_tree import RotationTree, tree_of_motion

ROOT = Path(__file__).resolve().parent.parent.parent
#: Millimetres in one unit of the CMU conversions.
UNIT_MM = 25.4 / 0.45
HANDS = ("Finger", "Index", "Thumb")
#: Joints of one place with another: they would count it twice.
DOUBLES = ("LHipJoint", "RHipJoint", "LowerBack", "Neck", "LeftShoulder", "RightShoulder")


def cmu() -> Path:
    """Return the folder of the CMU motions."""
    return Path(os.environ.get("VIVARIG_DATA", ROOT.parent / "shared" / "data")) / "cmu"


class Clip(NamedTuple):
    """A clip: its body, rotations (T, J, 3, 3) parent-from-joint, root places (T, 3) mm, rate."""

    name: str
    tree: RotationTree
    rotations: np.ndarray
    root: np.ndarray
    rate_hz: float


@cache
def load_clip(name: str) -> Clip:
    """Read a clip of cmu/bvh without its added T-pose."""
    motion = read_bvh(cmu() / "bvh" / f"{name}.bvh", unit_mm=UNIT_MM, drop_first=True)
    root = motion.shifts[:, 0] + motion.offsets[0]
    return Clip(name, tree_of_motion(motion), rotation_from_quaternion(motion.rotations), root, motion.rate_hz)


def without_hands(clip: Clip) -> Clip:
    """Return the clip without finger joints."""
    keep = [j for j, name in enumerate(clip.tree.names) if not any(word in name for word in HANDS)]
    return clip._replace(tree=_subtree(clip.tree, keep), rotations=clip.rotations[:, keep])


def _subtree(tree: RotationTree, keep: list[int]) -> RotationTree:
    parents = [-1 if tree.parents[j] < 0 else keep.index(int(tree.parents[j])) for j in keep]
    return RotationTree(tuple(tree.names[j] for j in keep), np.array(parents), tree.offsets[keep], tree.up)


class PoseTable:
    """Poses of many subjects at 15 Hz.

    Attributes:
        subject: (N,) subject of each frame; subjects whose motions are copies of another's carry that one's name.
        clip: (N,) clip of each frame.
    """

    def __init__(self) -> None:
        with np.load(cmu() / "poses_15hz.npz") as data:
            self._angles = data["angles_centideg"]
            names = data["subject"]
            self.clip = np.repeat(data["clip"], data["frames"])
            self._offsets = {str(s): o * UNIT_MM for s, o in zip(data["offset_subject"], data["offsets"], strict=True)}
            first = data["first"]
        twins: dict[bytes, str] = {}
        alias: dict[str, str] = {}
        for name, start in zip(names, first, strict=True):
            # The middle of a clip tells copies: its first frames may be a common pose.
            key = self._angles[start : start + 40].tobytes()
            alias.setdefault(str(name), twins.setdefault(key, str(name)))
        frames = np.diff([*first, len(self._angles)])
        self.subject = np.repeat([alias[alias[str(name)]] for name in names], frames)
        example = load_clip("07_01").tree
        keep = [j for j, name in enumerate(example.names) if not any(word in name for word in HANDS)]
        self.example = _subtree(example, keep)

    def rotations(self, frames: np.ndarray) -> np.ndarray:
        """Return rotations (n, 25, 3, 3) parent-from-joint; the root's in the world."""
        angles = np.radians(self._angles[frames] / 100.0).reshape(-1, 25, 3)
        z, y, x = (rotation_from_vector(angles[..., i, None] * np.eye(3)[axis]) for i, axis in enumerate((2, 1, 0)))
        return z @ y @ x

    def tree(self, subject: str) -> RotationTree:
        """Return the body of a subject."""
        lines: list[str] = []
        for name in load_clip("07_01").tree.names:
            lines.append(name)
            if name in ("LeftToeBase", "RightToeBase", "Head", "LeftHandIndex1", "LThumb", "RightHandIndex1", "RThumb"):
                lines.append("")
        rows = [lines.index(name) for name in self.example.names]
        return RotationTree(self.example.names, self.example.parents, self._offsets[subject][rows], "y")
