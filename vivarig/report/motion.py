"""The motion of a recording of any length as the report shows it: read in blocks, of which little is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.result_files import open_results
from calibration.geometry.transforms import rotation_from_quaternion
from skeleton.analysis.angles import inner_angles, limb_reaches
from skeleton.analysis.gait import GaitPaths, gait_paths
from skeleton.bodies import BODIES, load_body
from skeleton.tree.joint_tree import Pose
from vivarig.results.findings import SkeletonFindings

__all__ = ["MotionCurves", "motion_curves"]

_BLOCK = 4096


@dataclass(frozen=True, eq=False)
class MotionCurves:
    """What the report shows of a motion.

    Attributes:
        root: (T, 3) place of the root joint, mm.
        sigma: (T,) median over the joints of their standard deviation, mm; NaN where nothing was measured.
        angles: limb joint to its inner angle (T,), rad; empty for a body that is not built in.
        signals: what is shown over the gait cycle (T,): inner angles in degrees, heights and reaches in mm.
        gait: what gait takes of it; None for a body that is not built in, or where a frame has no pose.
    """

    root: Floats
    sigma: Floats
    angles: Mapping[str, Floats]
    signals: Mapping[str, Floats]
    gait: GaitPaths | None


def _blocks(skeleton: SkeletonFindings) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Yield positions, rotations and sigma of some frames at a time, read anew: mapped ones would stay in memory."""
    with open_results(skeleton.path, stage="skeleton") as file:
        for first in range(0, len(file["trust"]), _BLOCK):
            here = slice(first, first + _BLOCK)
            yield file["positions"][here], file["rotations"][here], file["sigma"][here]


def motion_curves(skeleton: SkeletonFindings) -> MotionCurves:
    """Read the motion once and keep what the report shows."""
    body = load_body(skeleton.body) if skeleton.body in BODIES else None
    roots, sigmas, angles, reaches, gaits = [], [], [], [], []
    for positions, rotations, sigma in _blocks(skeleton):
        roots.append(positions[:, 0].copy())
        sigmas.append(_medians(sigma))
        if body is not None:
            pose = Pose(positions, rotation_from_quaternion(rotations))
            angles.append(inner_angles(body, pose))
            reaches.append(limb_reaches(body, pose))
            gaits.append(gait_paths(body, pose) if np.isfinite(positions).all() else None)
    whole = [part for part in gaits if part is not None]
    whole_angles = _joined(angles)
    turns = {f"{name} (deg)": np.degrees(values) for name, values in whole_angles.items()}
    return MotionCurves(
        np.concatenate(roots),
        np.concatenate(sigmas),
        whole_angles,
        turns | {f"{name} (mm)": values for name, values in _joined(reaches).items()},
        GaitPaths.joined(whole) if whole and len(whole) == len(gaits) else None,
    )


def _joined(parts: Sequence[Mapping[str, Floats]]) -> dict[str, Floats]:
    return {name: np.concatenate([part[name] for part in parts]) for name in (parts[0] if parts else ())}


def _medians(sigma: Floats) -> Floats:
    known = np.isfinite(sigma).any(axis=1)
    values = np.full(len(sigma), np.nan)
    values[known] = np.nanmedian(sigma[known], axis=1)
    return values
