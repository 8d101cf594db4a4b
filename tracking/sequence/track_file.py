"""``track.h5``: what tracking leaves for the stages after it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from calibration.foundation.arrays import Bools, Floats
from calibration.foundation.result_files import create_results, text_array
from tracking.fitting.markers import carried_points, point_sigma
from tracking.fitting.solver import FrameSolver
from tracking.limbs.chains import Limbs, limbs_of
from tracking.quads.attachment import attach_posed_quads
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.limb_trust import limb_doubt
from tracking.sequence.tracker import Track
from tracking.sequence.trust import Reason
from tracking.subjects.subject import Subject

__all__ = ["MODEL_ERROR", "write_track"]

MODEL_ERROR = 7.5
"""What the deformation model itself misses, thousandths of the subject's size; part of each marker's sigma."""


def write_track(
    path: Path, track: Track, subject: Subject, solver: FrameSolver, *, rate_hz: float, parameters: Mapping[str, Any]
) -> None:
    """Write a track of T frames with Q quads, d latent numbers, V template vertices, M markers and J carried joints.

    Datasets: ``rotations`` (T, Q, 3, 3), ``centres`` (T, Q, 3), ``latent`` (T, d), ``vertices`` (T, V, 3) float32,
    ``faces``, ``markers`` (T, M, 3), ``marker_sigma`` (T, M), ``cage_joints`` (T, J, 3), ``overlap`` (T, C),
    ``agreement``, ``residual``, ``variance``, ``departure``, ``trust`` and ``reason`` (T), and the names. Of L limbs:
    ``limb_names``, ``limb_trust`` and ``limb_reason`` (T, L), ``limb_sigma`` (T, L) what doubt adds to the sigma of its
    points, and what the verdicts rest on (``limb_bad``, ``limb_residual``, ``limb_lead`` and so on, see `LimbRecord`);
    ``marker_limbs`` (M,), ``cage_joint_limbs`` (J,), and for the N joints ``limb_joint_names`` of the skeleton
    ``limb_joints`` (N, L): which limbs they depend on. Where the recording has 2D points: ``point_names`` (P,) and
    ``point_status`` (T, C, P), what became of each mark (`PointStatus`).
    """
    rig = subject.cage_rig.quads
    template = subject.template
    frames = len(track.trust)
    with create_results(path, stage="track", parameters=parameters) as file:
        file.attrs["subject"] = subject.name
        file.attrs["body"] = subject.body
        file.attrs["rate_hz"] = rate_hz
        file.attrs["start_frame"] = track.start
        file.attrs["lead"] = track.lead
        file["quad_names"] = text_array(list(rig.quad_names))
        file["marker_names"] = text_array(list(subject.marker_names))
        file["cage_joint_names"] = text_array(list(subject.joint_names))
        file["reasons"] = text_array([reason.name.lower().replace("_", " ") for reason in Reason])
        file.create_dataset("faces", data=template.faces.astype(np.int32), track_times=False)
        for name, values in (
            ("rotations", track.rotations),
            ("centres", track.centres),
            ("latent", track.latent),
            ("overlap", track.overlap),
            ("agreement", track.agreement),
            ("residual", track.residual),
            ("variance", track.variance),
            ("departure", track.departure),
            ("trust", track.trust.astype(np.uint8)),
            ("reason", track.reason.astype(np.uint8)),
        ):
            file.create_dataset(name, data=values, track_times=False)
        doubt = _write_limbs(file, track, subject, solver)
        joints = carried_points(subject.cage_rig, subject.joint_binding, track.rotations, track.centres)
        file.create_dataset("cage_joints", data=joints, track_times=False)
        surface = file.create_dataset(
            "vertices", (frames, len(template.vertices), 3), np.float32, chunks=(1, len(template.vertices), 3),
            fillvalue=np.nan, track_times=False,
        )  # fmt: skip
        markers = np.full((frames, len(subject.marker_vertices), 3), np.nan)
        sigma = np.full(markers.shape[:2], np.nan)
        rows = np.ascontiguousarray(template.binding[subject.marker_vertices], np.float64)
        binding = template.binding.astype(np.float32)
        for frame, fit in enumerate(track.fits):
            if fit is None:
                continue
            pose = QuadPose(track.rotations[frame], track.centres[frame])
            surface[frame] = subject.cage_rig.deform(binding, pose)
            markers[frame] = subject.cage_rig.deform(rows, pose)
            sigma[frame] = np.hypot(point_sigma(subject.cage_rig, rows, fit, MODEL_ERROR * solver.unit), doubt[frame])
        file.create_dataset("markers", data=markers, track_times=False)
        file.create_dataset("marker_sigma", data=sigma, track_times=False)
        if track.point_status is not None and subject.points is not None:
            file["point_names"] = text_array(list(subject.points.names))
            file.create_dataset("point_status", data=track.point_status.astype(np.uint8), track_times=False)


def _write_limbs(file: h5py.File, track: Track, subject: Subject, solver: FrameSolver) -> Floats:
    """Write what is known of the limbs; return (T, M) what doubt adds to the markers' sigma, mm."""
    limbs = limbs_of(subject.cage_rig.quads)
    owner = limbs.of_points(subject.template.binding[subject.marker_vertices])
    doubt = limb_doubt(track.limb_record, unit=solver.unit)
    file["limb_names"] = text_array(list(track.limb_names))
    file["limb_joint_names"] = text_array(list(subject.bones.skeleton.joint_names))
    for name, values in (
        ("marker_limbs", owner.astype(np.uint8)),
        ("cage_joint_limbs", limbs.of_points(subject.joint_binding).astype(np.uint8)),
        ("limb_joints", _limbs_of_joints(limbs, subject)),
        ("limb_trust", track.limb_trust.astype(np.uint8)),
        ("limb_reason", track.limb_reason.astype(np.uint8)),
        ("limb_sigma", doubt.astype(np.float32)),
        *((f"limb_{key}", rows.astype(np.float32)) for key, rows in track.limb_record.rows().items()),
    ):
        file.create_dataset(name, data=values, track_times=False)
    return np.asarray(doubt[:, owner])


def _limbs_of_joints(limbs: Limbs, subject: Subject) -> Bools:
    """(N, L) which limbs each joint of the skeleton depends on: its own, and where it hangs on another, that too."""
    skeleton = subject.bones.skeleton
    held = attach_posed_quads(subject.cage_rig.quads, skeleton, subject.bones.pose)
    segment = np.where(held.share >= 0.5, held.distal, held.proximal)
    owner = np.zeros(len(skeleton.joints), np.int64)
    for joint, parent in enumerate(skeleton.parents):
        here = limbs.of_quad[segment == joint]
        owner[joint] = np.bincount(here).argmax() if len(here) else owner[parent] if parent >= 0 else 0
    depends = np.zeros((len(owner), len(limbs)), np.bool_)
    depends[np.arange(len(owner)), owner] = True
    for joint, parent in enumerate(skeleton.parents):
        if parent >= 0:
            depends[joint, owner[parent]] = True
    return depends
