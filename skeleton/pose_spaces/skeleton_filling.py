"""Lost and doubtful frames of skeleton.h5 filled with the most likely motion: marked, with its sigma, never trusted."""

from __future__ import annotations

from typing import NamedTuple

import h5py
import numpy as np

from calibration.foundation.arrays import Bools, Floats, Ints
from calibration.foundation.trust import Trust
from calibration.geometry.transforms import quaternion_from_rotation
from skeleton.inverse_kinematics.fits import same_sign
from skeleton.motions.retarget import motion_from_rotations
from skeleton.pose_spaces.gap_filling import GapProcess, Motion, gap_process, gaps_of, learn_gap_model
from skeleton.pose_spaces.posing import HandleSet
from skeleton.pose_spaces.rotation_tree import place_rotations, rotations_of_pose, tree_of_skeleton
from skeleton.pose_spaces.seen_points import with_seen_points
from skeleton.tree.joint_tree import Skeleton

__all__ = ["FillReport", "fill_skeleton_file"]

#: Frames taken at a time, which bounds memory.
_BLOCK = 20_000
#: Motions drawn for the sigma of joint places.
_DRAWS = 24


class FillReport(NamedTuple):
    """How many ``gaps`` and ``frames`` were filled, how many frames were too long a gap, and the median sigma, mm."""

    gaps: int
    frames: int
    left: int
    sigma_mm: float


def fill_skeleton_file(
    file: h5py.File, body: Skeleton, *, rate_hz: float, most_s: float, samples: int = 0, seed: int = 0
) -> FillReport:
    """Fill gaps of at most ``most_s`` in an open skeleton file.

    A frame is known if it and all its joints are trusted. Joints that are trusted in a frame that is not known are
    conditions on it and stay as they are; of a frame that is lost as a whole, all is made up. Written: coordinates,
    positions, rotations, sigma and landmarks of the frames, ``filled`` (T, J), and with ``samples`` possible motions
    ``samples/coordinates`` (N, F, D) of the frames ``samples/frames`` (F,). Trust stays what it was.
    """
    frames = len(file["trust"])
    filled = np.zeros((frames, len(body.joints)), np.bool_)
    drawn: list[Floats] = []
    numbers: list[Ints] = []
    sigmas: list[Floats] = []
    count = left = 0
    rng = np.random.default_rng(seed)
    for low in range(0, frames, _BLOCK):
        rows = slice(low, min(low + _BLOCK, frames))
        coordinates, trust = file["coordinates"][rows], file["trust"][rows]
        joint_trust = (
            file["joint_trust"][rows] if "joint_trust" in file else np.repeat(trust[:, None], len(body.joints), 1)
        )
        bad: Bools = (joint_trust != Trust.TRUSTED) | (trust == Trust.LOST)[:, None]
        known = ~bad.any(axis=1) & (trust == Trust.TRUSTED) & np.isfinite(coordinates).all(axis=1)
        bad[~known & ~bad.any(axis=1)] = True
        gaps = gaps_of(known, round(most_s * rate_hz))
        left += int((~known).sum()) - sum(b - a for a, b in gaps)
        if not gaps or known.sum() < 16:
            continue
        pose = body.forward(coordinates)
        motion = Motion(rotations_of_pose(body, pose), pose.positions[:, 0])
        model = learn_gap_model(motion, known, body.joint_names, body=body.name, rate_hz=rate_hz, gaps=gaps)
        for gap in gaps:
            part = slice(*gap)
            process = _conditioned(
                gap_process(model, motion, known, gap), body, pose.positions, file["sigma"][rows], bad, gap
            )
            made = _coordinates(body, process.motion(process.mean))
            coordinates[part] = _only(body, coordinates[part], made, bad[part])
            spread = _spread(body, process, rng)
            sigma = file["sigma"][low + gap[0] : low + gap[1]]
            sigma = np.where(bad[part], np.maximum(spread, 1e-3), sigma)
            _write(file, body, slice(low + gap[0], low + gap[1]), coordinates[part], sigma)
            filled[low + gap[0] : low + gap[1]] = bad[part]
            sigmas.append(sigma[bad[part]])
            for _ in range(samples):
                one = _only(body, coordinates[part], _coordinates(body, process.motion(process.draw(rng))), bad[part])
                drawn.append(one)
            numbers.append(np.arange(*gap) + low)
            count += 1
    file["filled"] = filled
    if samples and count:
        file["samples/frames"] = np.concatenate(numbers)
        file["samples/coordinates"] = np.stack([np.concatenate(drawn[number::samples]) for number in range(samples)])
    middle = float(np.median(np.concatenate(sigmas))) if sigmas else float("nan")
    return FillReport(count, int(filled.any(axis=1).sum()), left, middle)


def _conditioned(
    process: GapProcess, body: Skeleton, positions: Floats, sigma: Floats, bad: Bools, gap: tuple[int, int]
) -> GapProcess:
    """The process with the joints that are trusted inside the gap as seen points."""
    part = slice(*gap)
    if bad[part].all():
        return process
    joints = np.arange(len(body.joints))
    points = np.where(bad[part][..., None], np.nan, positions[part])
    spread = np.clip(np.nan_to_num(sigma[part], nan=10.0, posinf=10.0), 0.5, None)
    handles = HandleSet(joints, np.zeros((len(joints), 3)))
    return with_seen_points(process, tree_of_skeleton(body), handles, points, spread)


def _coordinates(body: Skeleton, motion: Motion) -> Floats:
    pose = place_rotations(tree_of_skeleton(body), motion.rotations, motion.root)
    world = {name: pose.rotations[:, j] for j, name in enumerate(body.joint_names)}
    return motion_from_rotations(body, world, motion.root)


def _only(body: Skeleton, old: Floats, new: Floats, bad: Bools) -> Floats:
    """Coordinates with those of bad joints made new."""
    out = np.array(old)
    for j, joint in enumerate(body.joints):
        start = int(body.packed.starts[j])
        columns = slice(start, start + len(joint.coordinate_names))
        out[:, columns] = np.where(bad[:, j, None], new[:, columns], out[:, columns])
    return out


def _spread(body: Skeleton, process: GapProcess, rng: np.random.Generator) -> Floats:
    """(g, J) standard deviation of joint places per axis, mm, over motions drawn."""
    tree = tree_of_skeleton(body)
    places = []
    for _ in range(_DRAWS):
        motion = process.motion(process.draw(rng))
        places.append(place_rotations(tree, motion.rotations, motion.root).positions)
    return np.asarray(np.sqrt(np.var(places, axis=0).mean(axis=2)))


def _write(file: h5py.File, body: Skeleton, rows: slice, coordinates: Floats, sigma: Floats) -> None:
    pose = body.forward(coordinates)
    file["coordinates"][rows] = coordinates
    file["positions"][rows] = pose.positions
    file["rotations"][rows] = same_sign(quaternion_from_rotation(pose.rotations))
    file["sigma"][rows] = sigma
    file["landmarks"][rows] = body.landmarks(pose)[1]
