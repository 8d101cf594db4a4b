"""Results as the types that motion files hold: points, a joint tree in motion, named coordinates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibration.cameras.rig import camera_of_world
from calibration.foundation.errors import InputError
from calibration.foundation.trust import Trust
from calibration.geometry.transforms import quaternion_from_rotation, rotation_from_quaternion
from skeleton.motion_files import JointMotion, MarkerSeries
from vivarig.results.findings import Findings, SkeletonFindings

__all__ = ["POINT_SETS", "axes_in_words", "joint_edges", "joint_motion", "point_series", "rigid_bones", "up_axis"]

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
        sigma = findings.track.sigma
    else:
        skeleton = _need_skeleton(findings)
        if what == "joints":
            names, points, trust = skeleton.joint_names, skeleton.positions, skeleton.joint_trust
            sigma = skeleton.sigma
        else:
            names, points, trust = skeleton.landmark_names, skeleton.landmarks, skeleton.landmark_trust
            sigma = skeleton.landmark_sigma
    if trusted_only:
        points = np.where((trust == Trust.TRUSTED)[:, :, None], points, np.nan)
    confidence = np.where(np.isfinite(points).all(axis=2), _CONFIDENCE[trust], 0.0)
    return MarkerSeries(names, points, rate, up=up_axis(findings), confidence=confidence, sigma=sigma)


def joint_edges(findings: Findings, what: str) -> tuple[tuple[str, str], ...]:
    """Return pairs of points of a set that a bone joins, or a row of bones; none for points that are on no bone."""
    skeleton = findings.skeleton
    if skeleton is None or what not in ("joints", "landmarks"):
        return ()
    names, carriers = skeleton.joint_names, np.arange(len(skeleton.joint_names))
    order: list[int] = list(carriers)
    if what == "landmarks":
        if skeleton.landmark_joints is None:
            return ()
        names, carriers = skeleton.landmark_names, skeleton.landmark_joints
        # Of several on one segment the one at its joint stands for it.
        some = slice(0, 100)
        apart = np.linalg.norm(skeleton.landmarks[some] - skeleton.positions[some][:, carriers], axis=2)
        order = [int(at) for at in np.argsort(np.nan_to_num(apart).mean(axis=0), kind="stable")]
    standing: dict[int, str] = {}
    for at in order:
        standing.setdefault(int(carriers[at]), names[at])
    edges, loose = [], []
    for name, joint in zip(names, carriers, strict=True):
        above = int(joint) if standing[int(joint)] != name else int(skeleton.parents[joint])
        while above >= 0 and above not in standing:
            above = int(skeleton.parents[above])
        if above >= 0:
            edges.append((standing[above], name))
        else:
            loose.append(name)
    # Points around a root that is not among them: all to the first.
    return (*edges, *((loose[0], name) for name in loose[1:]))


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
    return JointMotion(s.joint_names, parents, offsets, tips, shifts, turns, s.rate_hz, up=up_axis(findings))


def rigid_bones(motion: JointMotion) -> tuple[JointMotion, float]:
    """Return the motion with bones that keep their lengths, and how far its joints then are off, mm rms.

    Many readers of BVH know rotations of joints below the root and nothing else.
    """
    shifts = np.where((np.array(motion.parents) < 0)[None, :, None], motion.shifts, 0.0)
    rigid = replace(motion, shifts=shifts)
    apart = np.linalg.norm(rigid.poses()[0] - motion.poses()[0], axis=2)
    return rigid, float(np.sqrt(np.nanmean(apart**2)))
