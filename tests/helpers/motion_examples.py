"""Motion files as others bring them, made of our own bodies' motions."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from calibration.geometry.transforms import quaternion_from_rotation
from skeleton.bodies import load_body
from skeleton.motion_files import write_motion
from skeleton.motion_files.motions import JointMotion, MarkerSeries
from skeleton.motions import make_motion
from skeleton.tree.joint_tree import Pose
from tracking.priors.mocap_points import RAT23
from tracking.priors.motion_mapping import HUMAN_SEGMENTS

RATE = 120.0


def body_as_motion_file(pose: Pose) -> JointMotion:
    """The built-in human's own poses as a y-up file with CMU's names."""
    human = load_body("human")
    to_file = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    world = to_file @ pose.rotations @ to_file.T
    parents = human.parents
    local = np.stack(
        [world[:, j] if p < 0 else np.swapaxes(world[:, p], -1, -2) @ world[:, j] for j, p in enumerate(parents)],
        axis=1,
    )
    offsets = np.array([joint.offset for joint in human.joints]) @ to_file.T
    tips = np.full((len(parents), 3), np.nan)
    for side in ("left", "right"):
        for name in (f"{side}_finger_tip", f"{side}_toe_tip"):
            joint, tip = human.point(name)
            tips[joint] = tip @ to_file.T
    shifts = np.zeros((len(pose), len(parents), 3))
    shifts[:, 0] = pose.positions[:, 0] @ to_file.T - offsets[0]
    names = [HUMAN_SEGMENTS[name].joints[0] for name in human.joint_names]
    return JointMotion(
        tuple(names), tuple(int(p) for p in parents), offsets, tips, shifts, quaternion_from_rotation(local), RATE
    )


def write_human_walk(path: Path, seed: int, frames: int = 90) -> None:
    """Write a walk as CMU's BVH files are: their names, units of 56.444 mm."""
    human = load_body("human")
    motion = make_motion(human, "walk", frames=frames, rate_hz=RATE, rng=np.random.default_rng(seed))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_motion(body_as_motion_file(human.forward(motion.coordinates)), path, unit_mm=56.444)


def write_rat_points(path: Path, frames: int = 60) -> None:
    """Write the 23 points that rats are often labelled with, of one that walks, z up."""
    rat = load_body("rat")
    motion = make_motion(rat, "walk", frames=frames, rate_hz=RATE, rng=np.random.default_rng(3))
    pose = rat.forward(motion.coordinates)
    parts = [rat.point(place) for place, _ in RAT23.values()]
    places = [pose.positions[:, joint] + pose.rotations[:, joint] @ tip for joint, tip in parts]
    write_motion(MarkerSeries(tuple(RAT23), np.stack(places, axis=1), RATE, up="z"), path)
