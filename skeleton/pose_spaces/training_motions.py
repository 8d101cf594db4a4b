"""Rotations of a body's joints from motion files and recordings: what pose spaces and libraries are learnt from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from calibration.foundation.hdf5_files import words_of
from calibration.foundation.result_files import open_results
from calibration.foundation.trust import Trust
from calibration.geometry.transforms import rotation_from_quaternion
from skeleton.inverse_kinematics.spring_ik import fit_skeleton
from skeleton.motion_files import SUFFIXES, CoordinateSeries, JointMotion, read_motion
from skeleton.motions.retarget import motion_from_file
from skeleton.pose_spaces.rotation_tree import local_rotations, rotations_of_pose
from skeleton.tree.joint_tree import Skeleton

__all__ = ["TrainingClip", "clip_of", "find_motions"]


class TrainingClip(NamedTuple):
    """Rotations (T, J, 3, 3) parent-from-joint of a clip, the root's in a world with z up; and whose it is."""

    name: str
    subject: str
    rotations: Floats


def find_motions(paths: Sequence[Path]) -> list[Path]:
    """Return files, the motion files in folders, and folders that are recordings with results/skeleton.h5."""
    found: list[Path] = []
    for path in paths:
        if (path / "results" / "skeleton.h5").is_file() or path.is_file():
            found.append(path)
        elif path.is_dir():
            inside = [p for p in sorted(path.iterdir()) if p.suffix.lower() in SUFFIXES]
            inside += [p for p in sorted(path.iterdir()) if (p / "results" / "skeleton.h5").is_file()]
            if not inside:
                raise InputError(f"{path}: no motion files ({', '.join(sorted(SUFFIXES))}) and no tracked recordings")
            found += inside
        else:
            raise InputError(f"{path}: no such file or folder")
    if not found:
        raise InputError("nothing to train on: give motion files, recordings, or folders of them")
    return found


def clip_of(path: Path, body: Skeleton, options: dict[str, Any]) -> TrainingClip:
    """Read one clip on a body: joints by the map of retargeting, points by spring IK, a recording's trusted frames."""
    subject = path.stem.split("_")[0] if path.is_file() else path.name
    if path.is_dir():
        return TrainingClip(path.name, subject, _of_recording(path, body))
    motion = read_motion(path, **options)
    if isinstance(motion, JointMotion):
        if body.name != "human":
            raise InputError(f"{path}: files of joint rotations are mapped to the human body only; give points instead")
        coordinates, _ = motion_from_file(motion, body)
        return TrainingClip(path.name, subject, rotations_of_pose(body, body.forward(coordinates)))
    if isinstance(motion, CoordinateSeries):
        raise InputError(f"{path}: holds named coordinates; give joint rotations (.bvh, .amc) or points")
    markers = motion if motion.up in ("z", "") else motion.with_z_up()
    fit = fit_skeleton(body, markers.names, markers.positions)
    good = fit.trust == Trust.TRUSTED
    if not good.any():
        raise InputError(f"{path}: no frame of its points fits body '{body.name}' well enough to learn from")
    return TrainingClip(path.name, subject, rotations_of_pose(body, body.forward(fit.coordinates[good])))


def _of_recording(path: Path, body: Skeleton) -> Floats:
    with open_results(path / "results" / "skeleton.h5", stage="skeleton") as file:
        names = words_of(file["joint_names"])
        if names != body.joint_names:
            raise InputError(f"{path}: its skeleton is of body '{file.attrs['body']}', wanted '{body.name}'")
        good = file["trust"][:] == Trust.TRUSTED
        world = rotation_from_quaternion(file["rotations"][:][good])
    if not len(world):
        raise InputError(f"{path}: no trusted frame to learn from")
    return local_rotations(body.parents, world)
