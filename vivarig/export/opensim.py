"""Results for OpenSim: the model scaled to the subject with its markers, the tracked markers and the motion."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from calibration.foundation.errors import InputError
from calibration.foundation.hdf5_files import words_of
from calibration.foundation.result_files import open_results, read_parameters
from skeleton.bodies.marker_sets import LANDMARK, MarkerSet
from skeleton.model_files.osim_writing import opensim_coordinates, write_osim
from skeleton.motion_files import CoordinateSeries, write_motion
from skeleton.tree.joint_tree import Skeleton
from tracking.subjects.skeleton import subject_body
from vivarig.export.motions import point_series, up_axis
from vivarig.results.findings import Findings, SkeletonFindings

__all__ = ["export_opensim", "opensim_motion"]


def subject_model(findings: Findings) -> tuple[Skeleton, MarkerSet]:
    """Return the body with the lengths, and the markers at the places, that the skeleton stage found."""
    found = _need(findings)
    with open_results(found.path, stage="skeleton") as file:
        body, markers = subject_body(str(read_parameters(file)["body"]), findings.recording.folder)
        if "scaling" in file:
            group = file["scaling"]
            body = body.scaled(dict(zip(body.joint_names, map(float, group["factors"][:]), strict=True)))
            names, offsets = words_of(group["marker_names"]), group["marker_offsets"][:]
            places = {name: offset for name, offset in zip(names, offsets, strict=True) if LANDMARK not in name}
            markers = markers.with_offsets(
                np.array([places.get(name, old) for name, old in zip(markers.names, markers.offsets, strict=True)])
            )
    joints = tuple(replace(joint, offset=at) for joint, at in zip(body.joints, found.offsets, strict=True))
    return replace(body, joints=joints), markers


def _need(findings: Findings) -> SkeletonFindings:
    if findings.skeleton is None:
        raise InputError(f"{findings.recording.folder}: no skeleton.h5; run `vivarig run {findings.recording.folder}`")
    if not up_axis(findings):
        raise InputError(
            f"{findings.recording.folder}: OpenSim wants to know which way is up, and the rig has no floor; calibrate "
            "with --floor-frame or --points"
        )
    return findings.skeleton


def opensim_motion(findings: Findings) -> CoordinateSeries:
    """Return the motion in the coordinates of the model, degrees and metres."""
    found, (body, _) = _need(findings), subject_model(findings)
    names, values = opensim_coordinates(body, np.asarray(found.coordinates, dtype=np.float64))
    times = np.arange(len(values)) / found.rate_hz
    return CoordinateSeries(names, values, times, in_degrees=True, title=findings.recording.name)


def export_opensim(findings: Findings, target: Path, *, trusted_only: bool) -> str:
    """Write model (.osim), markers (.trc) and motion (.mot) under one name, and say so."""
    body, markers = subject_model(findings)
    write_osim(target, body, markers, name=findings.recording.name)
    write_motion(opensim_motion(findings), target.with_suffix(".mot"))
    words = f"model with {len(body.joints)} bodies and {len(markers.names)} markers, m, y up"
    if findings.track is None:
        return f"{words}; beside it {target.stem}.mot (motion, degrees and m); no track, so no markers measured"
    series = point_series(findings, "markers", trusted_only=trusted_only).with_up("y")
    write_motion(series, target.with_suffix(".trc"))
    return f"{words}; beside it {target.stem}.trc (tracked markers, mm) and {target.stem}.mot (motion, degrees and m)"
