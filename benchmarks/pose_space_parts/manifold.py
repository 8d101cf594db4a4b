"""Jacobian, independence of the joints' own axes, and how many modes walks need."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.pose_space_parts.clips import load_clip
from calibration.geometry.transforms import rotation_from_vector, vector_from_rotation
from skeleton.pose_spaces.principal_geodesics import PoseSpace, learn_pose_space
from skeleton.pose_spaces.rotation_tree import place_rotations

WALKS = (
    "07_01", "07_02", "07_03", "07_06", "07_07", "07_08", "07_09", "07_10", "07_11", "08_01", "08_02", "08_03",
    "08_06", "08_08", "08_09", "08_10", "35_01", "35_02", "35_03", "35_04", "35_05", "35_06", "35_07", "35_08",
)  # fmt: skip


def jacobian_error() -> float:
    """Largest difference of the explicit Jacobian of all joints to central differences, mm per unit, relative."""
    clip = load_clip("35_01")
    space = learn_pose_space(clip.rotations, clip.tree.names, body="cmu").truncated(12)
    x = space.coordinates(clip.rotations)[40] * 1.3

    def places(at: np.ndarray) -> np.ndarray:
        return place_rotations(clip.tree, space.rotations(at), np.zeros((1, 3))).positions[0]

    pose = place_rotations(clip.tree, space.rotations(x), np.zeros((1, 3)))
    spins = pose.rotations[0, space.used] @ space.spins(x)
    exact = np.zeros((len(clip.tree.names), 3, space.modes))
    for joint in range(len(clip.tree.names)):
        above = int(clip.tree.parents[joint])
        while above > 0:
            place = np.flatnonzero(space.used == above)
            if len(place):
                lever = pose.positions[0, joint] - pose.positions[0, above]
                exact[joint] += np.cross(spins[place[0]].T, lever).T
            above = int(clip.tree.parents[above])
    step = 1e-5
    numeric = np.stack(
        [(places(x + step * e) - places(x - step * e)) / (2 * step) for e in np.eye(space.modes)], axis=-1
    )
    return float(np.abs(exact - numeric).max() / np.abs(exact).max())


def turned_frames() -> dict[str, float]:
    """Reconstruction by 12 modes before and after every joint's own axes are turned by 180 degrees."""
    clip = load_clip("85_12")
    some = clip.rotations[::5]
    joints = len(clip.tree.names)
    axes = np.eye(3)[np.arange(joints) % 3]
    turn = rotation_from_vector(np.pi * axes)
    turn[0] = np.eye(3)
    parents = np.maximum(clip.tree.parents, 0)
    other = np.swapaxes(turn[parents], -1, -2) @ some @ turn
    other[:, 0] = some[:, 0]
    out = {}
    pair = []
    for shown in (some, other):
        space = learn_pose_space(shown, clip.tree.names, body="cmu").truncated(12)
        pair.append(space.rotations(space.coordinates(shown)))
    back = turn[parents] @ pair[1] @ np.swapaxes(turn, -1, -2)
    out["pga_change_rad"] = float(np.abs(vector_from_rotation(np.swapaxes(back, -1, -2) @ pair[0])[:, 1:]).max())
    euler = [_euler_pca(shown) for shown in (some, other)]
    back = turn[parents] @ euler[1] @ np.swapaxes(turn, -1, -2)
    apart = vector_from_rotation(np.swapaxes(back, -1, -2) @ euler[0])[:, 1:]
    out["euler_change_deg"] = float(np.degrees(np.linalg.norm(apart, axis=2)).mean())
    return out


def _euler_pca(rotations: np.ndarray) -> np.ndarray:
    """Principal components of Euler angles (ZYX, as in the files): the baseline that depends on the axes."""
    y = np.arcsin(np.clip(-rotations[..., 2, 0], -1, 1))
    z = np.arctan2(rotations[..., 1, 0], rotations[..., 0, 0])
    x = np.arctan2(rotations[..., 2, 1], rotations[..., 2, 2])
    angles = np.stack([z, y, x], axis=-1).reshape(len(rotations), -1)
    mean = angles.mean(axis=0)
    _, _, axes = np.linalg.svd(angles - mean, full_matrices=False)
    shown = mean + (angles - mean) @ axes[:12].T @ axes[:12]
    parts = shown.reshape(len(rotations), -1, 3)
    z, y, x = (rotation_from_vector(parts[..., i, None] * np.eye(3)[axis]) for i, axis in enumerate((2, 1, 0)))
    return np.asarray(z @ y @ x)


def modes() -> dict[str, object]:
    """Modes that hold 95 and 99 % of walks, clip by clip, and the time to learn from all of them."""
    each: dict[str, tuple[int, int]] = {}
    for name in WALKS:
        clip = load_clip(name)
        space: PoseSpace = learn_pose_space(clip.rotations, clip.tree.names, body="cmu")
        each[name] = (space.modes_for(0.95), space.modes_for(0.99))
    together = np.concatenate([load_clip(name).rotations for name in WALKS])
    begin = time.perf_counter()
    learn_pose_space(together, load_clip("07_01").tree.names, body="cmu")
    return {
        "modes95_walk": float(np.median([a for a, _ in each.values()])),
        "modes99_walk": float(np.median([b for _, b in each.values()])),
        "modes_by_clip": {name: list(pair) for name, pair in each.items()},
        "learn_s": time.perf_counter() - begin,
        "learn_frames": len(together),
    }
