"""Functional calibration: joint centres and axes from the motion of two rigid segments.

A ball's centre is fixed in both segments: ``R_a(t) c_a + x_a(t) = R_b(t) c_b + x_b(t)`` in all frames, linear in (c_a,
c_b); a hinge's axis likewise, where the least singular direction of that system is the axis (the symmetric methods of
Ehrig et al. 2006 and 2007). Both come with standard deviations from the residuals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Bools, Floats
from calibration.foundation.errors import InputError, SolveError
from calibration.geometry.transforms import fit_rigid

__all__ = ["JointAxis", "JointCentre", "cluster_poses", "joint_axis", "joint_centre"]


@dataclass(frozen=True, eq=False)
class JointCentre:
    """Centre of a ball joint.

    Attributes:
        in_first, in_second: (3,) centre in the frames of the two segments, mm.
        sd_mm: (3,) standard deviation of the centre in the first segment's frame.
        residual_mm: root mean square distance between the two segments' ideas of the centre.
    """

    in_first: Floats
    in_second: Floats
    sd_mm: Floats
    residual_mm: float


@dataclass(frozen=True, eq=False)
class JointAxis:
    """Axis of a hinge.

    Attributes:
        point_in_first, point_in_second: (3,) a point of the axis in either frame, mm.
        direction_in_first, direction_in_second: (3,) unit direction in either frame.
        sd_deg: standard deviation of the direction.
        residual_mm: root mean square distance between the two segments' ideas of the point.
    """

    point_in_first: Floats
    point_in_second: Floats
    direction_in_first: Floats
    direction_in_second: Floats
    sd_deg: float
    residual_mm: float


def cluster_poses(markers: Floats, reference: Floats | None = None) -> tuple[Floats, Floats]:
    """Return rotations (T, 3, 3) and origins (T, 3) of a rigid cluster of markers (T, M, 3).

    The frame is that of ``reference`` (M, 3): by default the first frame that shows all markers, centred. Frames with
    fewer than 3 markers are NaN.
    """
    points = np.asarray(markers, dtype=np.float64)
    seen: Bools = np.asarray(np.isfinite(points).all(axis=2), dtype=np.bool_)
    if reference is None:
        whole = np.flatnonzero(seen.all(axis=1))
        if not len(whole):
            raise InputError("cluster: no frame shows all its markers; pass reference")
        shape = points[whole[0]] - points[whole[0]].mean(axis=0)
    else:
        shape = np.asarray(reference, dtype=np.float64)
    rotations, origins = np.full((len(points), 3, 3), np.nan), np.full((len(points), 3), np.nan)
    for t in range(len(points)):
        if seen[t].sum() >= 3:
            pose = fit_rigid(shape[seen[t]], points[t, seen[t]])
            rotations[t], origins[t] = pose.rotation, pose.translation
    return rotations, origins


def _system(first: tuple[Floats, Floats], second: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    rotations_a, origins_a = (np.asarray(part, dtype=np.float64) for part in first)
    rotations_b, origins_b = (np.asarray(part, dtype=np.float64) for part in second)
    if rotations_a.shape != rotations_b.shape:
        raise InputError(f"segments have {len(rotations_a)} and {len(rotations_b)} frames: are their rates equal?")
    good = np.isfinite(origins_a).all(axis=1) & np.isfinite(origins_b).all(axis=1)
    if good.sum() < 3:
        raise InputError(f"functional calibration wants 3 frames that show both segments, got {good.sum()}")
    matrix = np.concatenate([rotations_a[good], -rotations_b[good]], axis=2).reshape(-1, 6)
    return matrix, (origins_b - origins_a)[good].reshape(-1)


def joint_centre(first: tuple[Floats, Floats], second: tuple[Floats, Floats]) -> JointCentre:
    """Find the centre of a ball between two moving segments, each (rotations (T, 3, 3), origins (T, 3))."""
    matrix, right = _system(first, second)
    u, s, vt = np.linalg.svd(matrix, full_matrices=False)
    if s[-1] < 0.02 * s[0]:
        raise SolveError(
            "joint centre: the joint turns about one axis only; move it in other directions, or ask for its axis"
        )
    solution = vt.T @ ((u.T @ right) / s)
    off = matrix @ solution - right
    variance = float(off @ off) / max(len(right) - 6, 1)
    covariance = vt.T @ np.diag(variance / s**2) @ vt
    return JointCentre(
        solution[:3], solution[3:], np.sqrt(np.diag(covariance)[:3]), float(np.sqrt((off**2).sum() / (len(off) / 3)))
    )


def joint_axis(first: tuple[Floats, Floats], second: tuple[Floats, Floats]) -> JointAxis:
    """Find the axis of a hinge between two moving segments, each (rotations (T, 3, 3), origins (T, 3))."""
    matrix, right = _system(first, second)
    u, s, vt = np.linalg.svd(matrix, full_matrices=False)
    if s[-2] < 0.02 * s[0]:
        raise SolveError("joint axis: the joint hardly turns; move it over a wider range")
    if s[-1] > 0.3 * s[-2]:
        raise SolveError("joint axis: the joint turns about several axes; ask for its centre")
    # All but the least direction determine the point; the least one is the axis, seen from either segment.
    keep = s > 0.5 * (s[-1] + s[-2])
    solution = vt[keep].T @ ((u[:, keep].T @ right) / s[keep])
    off = matrix @ solution - right
    axis_a, axis_b = vt[-1, :3], vt[-1, 3:]
    sd = float(np.degrees(s[-1] / s[-2] / np.sqrt(max(len(right) / 3 - 2, 1))))
    return JointAxis(
        solution[:3],
        solution[3:],
        axis_a / np.linalg.norm(axis_a),
        axis_b / np.linalg.norm(axis_b),
        sd,
        float(np.sqrt((off**2).sum() / (len(off) / 3))),
    )
