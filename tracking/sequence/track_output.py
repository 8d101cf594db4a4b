"""What a track gives the stages after it: surface, virtual markers and joints of each frame, with their sigma."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from calibration.foundation.arrays import Bools, Floats
from tracking.fitting.markers import carried_points, point_sigma
from tracking.fitting.settings import COMMON
from tracking.fitting.solver import FrameFit, FrameSolver
from tracking.limbs.chains import Limbs, limbs_of
from tracking.limbs.evidence import cloth_over
from tracking.quads.attachment import attach_posed_quads
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.limb_trust import limb_doubt, limits_of
from tracking.sequence.track import Track
from tracking.sequence.track_file import TrackHeader, TrackRows, save_track
from tracking.sequence.trust import Reason
from tracking.subjects.subject import Subject

__all__ = ["MODEL_ERROR", "marker_sigma", "write_track"]

MODEL_ERROR = 7.5
"""What the deformation model itself misses, thousandths of the subject's size; part of each marker's sigma."""
UNLIKE = 1.2
"""The same of a rodent, at least, as a multiple of what its outlines leave in the frame: of a real one, with fur and
flanks that the template has not, they leave six times as much as of a drawn one, and points lie as much further off.
Chosen on 98 marked points of one mouse: 0.73 of the errors within 1.88 sigma, where it was 0.2."""
AT_ONCE = 16
"""Frames whose surface is carried together."""


def write_track(
    path: Path, track: Track, subject: Subject, solver: FrameSolver, *, rate_hz: float, parameters: Mapping[str, Any]
) -> None:
    """Write ``track.h5`` of a track (see `tracking.sequence.track_file`)."""
    limbs = limbs_of(subject.cage_rig.quads)
    owner = limbs.of_markers(subject.template.binding[subject.marker_vertices])
    doubt = limb_doubt(track.limb_record, unit=solver.unit, limits=limits_of(track.limb_names))
    doubt = np.maximum(doubt, cloth_over(limbs, solver.template))
    markers, sigma = _markers(track, subject, solver, doubt[:, owner])
    header = TrackHeader(
        subject=subject.name,
        body=subject.body,
        rate_hz=rate_hz,
        start_frame=track.start,
        quad_names=subject.cage_rig.quads.quad_names,
        marker_names=subject.marker_names,
        cage_joint_names=subject.joint_names,
        reasons=tuple(reason.name.lower().replace("_", " ") for reason in Reason),
        faces=subject.template.faces,
        vertices=len(subject.template.vertices),
        limb_names=track.limb_names,
        limb_joint_names=subject.bones.skeleton.joint_names,
        limb_joints=_limbs_of_joints(limbs, subject),
        marker_limbs=owner,
        cage_joint_limbs=limbs.of_points(subject.joint_binding),
        point_names=() if track.point_status is None or subject.points is None else subject.points.names,
    )
    rows = TrackRows(
        rotations=track.rotations,
        centres=track.centres,
        latent=track.latent,
        overlap=track.overlap,
        agreement=track.agreement,
        residual=track.residual,
        variance=track.variance,
        departure=track.departure,
        lead=track.lead,
        trust=track.trust,
        reason=track.reason,
        limb_trust=track.limb_trust,
        limb_reason=track.limb_reason,
        limb_sigma=doubt,
        limbs=track.limb_record,
        cage_joints=carried_points(subject.cage_rig, subject.joint_binding, track.rotations, track.centres),
        markers=markers,
        marker_sigma=sigma,
        point_status=track.point_status,
    )
    save_track(path, header, rows, _surfaces(track, subject), parameters)


def _tracked(track: Track) -> Iterator[tuple[int, QuadPose, FrameFit]]:
    for frame, fit in enumerate(track.fits):
        if fit is not None:
            yield frame, QuadPose(track.rotations[frame], track.centres[frame]), fit


def _surfaces(track: Track, subject: Subject) -> Iterator[tuple[int, Floats]]:
    """Yield the vertices (V, 3) of each frame that was tracked."""
    binding = subject.template.binding.astype(np.float32)
    poses = ((frame, pose) for frame, pose, _ in _tracked(track))
    # Several at a time: to read the coordinates is what it costs.
    while some := list(islice(poses, AT_ONCE)):
        carried = np.concatenate([subject.cage_rig.carriers(pose) for _, pose in some], axis=1)
        vertices: Floats = np.asarray(binding @ carried.astype(np.float32))
        yield from ((frame, vertices[:, 3 * k : 3 * k + 3]) for k, (frame, _) in enumerate(some))


def _markers(track: Track, subject: Subject, solver: FrameSolver, doubt: Floats) -> tuple[Floats, Floats]:
    """Return markers (T, M, 3) and their sigma (T, M), mm, to which the ``doubt`` (T, M) of their limbs adds."""
    markers = np.full((len(track.trust), len(subject.marker_vertices), 3), np.nan)
    sigma = np.full(markers.shape[:2], np.nan)
    rows = np.ascontiguousarray(subject.template.binding[subject.marker_vertices], np.float64)
    for frame, pose, fit in _tracked(track):
        markers[frame] = subject.cage_rig.deform(rows, pose)
        sigma[frame] = np.hypot(marker_sigma(rows, subject, solver, fit), doubt[frame])
    return markers, sigma


def marker_sigma(rows: Floats, subject: Subject, solver: FrameSolver, fit: FrameFit) -> Floats:
    """1 sigma (M,) of bound points (M, 4 Q + F) along one axis, mm, but for what doubt about their limbs adds."""
    floor, erring = MODEL_ERROR * solver.unit, solver.erring(fit.residual)
    if solver.posture is not None:
        floor, common = max(floor, UNLIKE * fit.residual), max(COMMON, erring)
    else:
        # Outlines that a codec left ragged lie further off than expected, and clean ones do not.
        common = COMMON * max(1.0, erring)
    return point_sigma(subject.cage_rig, rows, fit, floor, common)


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
