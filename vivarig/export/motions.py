"""Results as the types that motion files hold: points, a joint tree in motion, named coordinates."""

from __future__ import annotations

import numpy as np

from calibration.cameras.rig import camera_of_world
from calibration.foundation.errors import InputError
from calibration.foundation.trust import Trust
from calibration.geometry.transforms import quaternion_from_rotation, rotation_from_quaternion
from skeleton.motion_files import CoordinateSeries, JointMotion, MarkerSeries
from vivarig.results.findings import Findings, SkeletonFindings

__all__ = ["POINT_SETS", "axes_in_words", "coordinate_series", "joint_motion", "point_series", "up_axis"]

#: What can be exported as points.
POINT_SETS = ("landmarks", "joints", "markers", "beads")
#: Score of a frame by its trust (trusted, doubtful, lost), for the formats that keep one.
_CONFIDENCE = np.array([1.0, 0.5, 0.0])


def _need_skeleton(findings: Findings) -> SkeletonFindings:
    if findings.skeleton is None:
        raise InputError(f"{findings.recording.folder}: no skeleton.h5; run `vivarig run {findings.recording.folder}`")
    return findings.skeleton


def up_axis(findings: Findings) -> str:
    """Return the world's vertical axis, "z"; "" where the rig has no floor and so nobody knows which way is up."""
    rig = findings.recording.rig
    return "" if rig is not None and camera_of_world(rig) is not None else "z"


def axes_in_words(findings: Findings) -> str:
    """Return the unit and the vertical of exported positions."""
    if up_axis(findings):
        return "mm, z up"
    rig = findings.recording.need_rig()
    return (
        f"mm, in the axes of camera '{camera_of_world(rig)}' (x right, y down, z forward), not z up: the rig has no "
        "floor; calibrate with --floor-frame or --points"
    )


def point_series(findings: Findings, what: str, *, trusted_only: bool) -> MarkerSeries:
    """Return one of `POINT_SETS` as points; with ``trusted_only`` those of limbs that are not trusted are missing."""
    rate = findings.recording.rate_hz
    if what == "beads":
        if findings.beads is None:
            raise InputError(f"{findings.recording.folder}: no beads.h5; run `vivarig xray triangulate` first")
        return MarkerSeries(findings.beads.names, findings.beads.positions, rate, up=up_axis(findings))
    if what == "markers":
        if findings.track is None:
            raise InputError(f"{findings.recording.folder}: no track.h5; run `vivarig track` first")
        names, points, trust = findings.track.marker_names, findings.track.markers, findings.track.marker_trust
    else:
        skeleton = _need_skeleton(findings)
        if what == "joints":
            names, points, trust = skeleton.joint_names, skeleton.positions, skeleton.joint_trust
        else:
            names, points, trust = skeleton.landmark_names, skeleton.landmarks, skeleton.landmark_trust
    if trusted_only:
        points = np.where((trust == Trust.TRUSTED)[:, :, None], points, np.nan)
    confidence = np.where(np.isfinite(points).all(axis=2), _CONFIDENCE[trust], 0.0)
    return MarkerSeries(names, points, rate, up=up_axis(findings), confidence=confidence)


def joint_motion(findings: Findings) -> JointMotion:
    """Return the skeleton as a joint tree in motion; what its joints shift by goes in the translation channels."""
    s = _need_skeleton(findings)
    world = rotation_from_quaternion(s.rotations)
    local, shifts = np.empty_like(world), np.empty_like(s.positions)
    offsets = s.offsets.copy()
    for joint, parent in enumerate(s.parents):
        if parent < 0:
            local[:, joint] = world[:, joint]
            offsets[joint] = 0.0
            shifts[:, joint] = s.positions[:, joint]
            continue
        back = np.swapaxes(world[:, parent], -1, -2)
        local[:, joint] = back @ world[:, joint]
        apart = np.einsum("tij,tj->ti", back, s.positions[:, joint] - s.positions[:, parent])
        offsets[joint] = np.nanmedian(apart, axis=0)
        shifts[:, joint] = apart - offsets[joint]
    shifts[np.abs(shifts) < 1e-6] = 0.0
    tips = np.full(offsets.shape, np.nan)
    parents = tuple(int(p) for p in s.parents)
    turns = quaternion_from_rotation(local)
    return JointMotion(s.joint_names, parents, offsets, tips, shifts, turns, s.rate_hz, up="z")


def coordinate_series(findings: Findings) -> CoordinateSeries:
    """Return the skeleton's own coordinates, radians and mm, as OpenSim's MOT holds them."""
    s = _need_skeleton(findings)
    times = np.arange(len(s.coordinates)) / s.rate_hz
    return CoordinateSeries(s.coordinate_names, s.coordinates, times, in_degrees=False, title=findings.recording.name)
