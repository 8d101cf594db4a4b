"""``vivarig xray triangulate``: bead tracks of several views to motion in 3D, bones and filtered trajectories."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from calibration.foundation.errors import InputError, nearest
from calibration.foundation.files import read_text
from calibration.foundation.names import checked_name, inside
from skeleton.bodies import BODIES, load_body
from skeleton.motion_files.c3d import write_c3d
from skeleton.motion_files.motions import MarkerSeries
from skeleton.motion_files.trc import write_trc
from tracking.beads.bones import pair_distances
from tracking.beads.filtering import Smoothed, smooth_trajectories
from tracking.beads.session import BeadSession, reconstruct
from tracking.beads.store import load_maps, load_tracks, save_beads
from tracking.beads.xmalab_files import write_points_3d, write_rigid_body
from vivarig.console.reporting import CommandReport
from vivarig.xray.recording import XrayFolder

__all__ = ["triangulate", "unused_bones"]


def triangulate(
    folder: XrayFolder, *, names: Path | None, bones: Path | None, method: str, cutoff_hz: float | None, max_gap: int
) -> CommandReport:
    """Triangulate the tracks and write beads.h5 and the files of other tools.

    Args:
        folder: of the recording.
        names: CSV of 'bead,new name'.
        bones: CSV of 'bead,bone' (None: found from rigid groups).
        method: of the filter.
        cutoff_hz: of the filter (None: by residual analysis).
        max_gap: longest gap bridged, frames.
    """
    recording = folder.recording
    tracks = load_tracks(folder.results / "tracks.h5")
    if names is not None:
        tracks = replace(tracks, names=_renamed(names, tracks.names))
    grouped = _bones(bones, tracks.names)
    session = reconstruct(tracks, folder.rig(), load_maps(folder.maps), bones=grouped, max_gap=max_gap)
    motion = session.motion
    smoothed = smooth_trajectories(motion.positions, recording.rate_hz, method=method, cutoff_hz=cutoff_hz)
    save_beads(
        recording.results / "beads.h5",
        session,
        smoothed,
        recording.rate_hz,
        {"filter": method, "cutoff": cutoff_hz},
        bones=grouped,
    )
    write_points_3d(folder.results / "points_3d.csv", motion.names, motion.positions)
    for old in folder.results.glob("*_transformation.csv"):
        old.unlink()  # of bones that this run may not find again
    for bone in session.bones:
        write_rigid_body(inside(folder.results, f"{bone.name}_transformation.csv"), bone.name, bone.pose)
    series = MarkerSeries(motion.names, smoothed.positions, recording.rate_hz)
    write_trc(series, folder.results / "beads.trc")
    write_c3d(series, folder.results / "beads.c3d")
    report = _report(session, _filter_line(smoothed, cutoff_hz), recording.results / "beads.h5")
    note = unused_bones(grouped, recording.subject)
    return replace(report, lines=[*report.lines, note]) if note else report


def _pairs(path: Path, names: tuple[str, ...], second: str) -> list[tuple[str, str]]:
    """Read 'bead,SECOND' lines, each of a bead of ``names``, with or without a header."""
    pairs: list[tuple[str, str]] = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        cells = [cell.strip() for cell in line.split(",")]
        if not line.strip() or cells[0] == "bead":
            continue
        if len(cells) != 2 or cells[0] not in names or not cells[1]:
            raise InputError(f"{path}: line {number}: wanted BEAD,{second} with a bead of {', '.join(names)}")
        if cells[0] in (bead for bead, _ in pairs):
            raise InputError(f"{path}: line {number}: bead '{cells[0]}' comes a second time")
        pairs.append((cells[0], checked_name(cells[1], f"{path}: line {number}: a {second.lower()}")))
    return pairs


def _bones(path: Path | None, names: tuple[str, ...]) -> dict[str, list[str]] | None:
    """Read 'bead,bone' lines."""
    if path is None:
        return None
    bones: dict[str, list[str]] = {}
    for bead, bone in _pairs(path, names, "BONE"):
        bones.setdefault(bone, []).append(bead)
    return bones


def unused_bones(bones: dict[str, list[str]] | None, subject: str | None) -> str:
    """Say which bones are no segments of the body, so that `vivarig skeleton` has no use for them; empty if none."""
    if not bones or subject not in BODIES:
        return ""
    segments = load_body(subject).joint_names
    unknown = [bone for bone in bones if bone not in segments]
    if not unknown:
        return ""
    likely = "; ".join(f"'{bone}': {nearest(bone, segments)}" for bone in unknown)
    return (
        f"note: {', '.join(unknown)} {'is no segment' if len(unknown) == 1 else 'are no segments'} of the {subject}: "
        f"followed as rigid groups, but `vivarig skeleton` will not hold the body to their beads ({likely})"
    )


def _renamed(path: Path, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names with those changed that 'bead,new name' lines change."""
    changes = dict(_pairs(path, names, "NAME"))
    new = tuple(changes.get(name, name) for name in names)
    double = next((name for name in new if new.count(name) > 1), None)
    if double is not None:
        raise InputError(f"{path}: two beads would be called '{double}'")
    return new


def _filter_line(smoothed: Smoothed, given_hz: float | None) -> str:
    """Say how the trajectories beside the triangulated ones were filtered."""
    if smoothed.method == "spline":
        return "  filtered: cubic smoothing spline, stiffness of each coordinate by generalised cross-validation"
    used = smoothed.cutoff_hz[np.isfinite(smoothed.cutoff_hz)]
    if not len(used):
        return "  not filtered: no bead is seen for long enough without a gap"
    kind = "  filtered: fourth-order zero-phase Butterworth, cut-off"
    if given_hz is not None:
        return f"{kind} {given_hz:g} Hz as given"
    return f"{kind} {used.min():.1f} to {used.max():.1f} Hz by residual analysis"


def _report(session: BeadSession, filter_line: str, path: Path) -> CommandReport:
    motion = session.motion
    seen = np.isfinite(motion.positions[..., 0])
    direct = seen & ~motion.bridged
    pairs = [p for group in session.groups for p in pair_distances(motion.positions, motion.names, group)]
    sigma = float(np.nanmedian(np.where(direct, motion.sigma_mm, np.nan))) if direct.any() else float("nan")
    lines = [
        f"{len(motion.names)} beads in {len(seen)} frames: {100 * direct.mean():.1f} % triangulated,"
        f" {100 * motion.bridged.mean():.1f} % bridged, {100 * (~seen).mean():.1f} % gaps",
        f"  typical error {1000 * sigma:.0f} um per coordinate, reprojection"
        f" {float(np.nanmedian(motion.residual_px)) if direct.any() else float('nan'):.2f} px (median)",
    ]
    for bone in session.bones:
        scale = float(np.nanmedian(bone.scale))
        beads = ", ".join(motion.names[b] for b in bone.beads)
        lines.append(f"  {bone.name}: {beads}; pose in {int(bone.used.any(axis=1).sum())} frames, scale {scale:.4f}")
    for pair in pairs:
        lines.append(f"  {pair.first} - {pair.second}: {pair.mean_mm:.3f} mm, SD {1000 * pair.sd_mm:.0f} um")
    lines.append(filter_line)
    lines.append(f"beads: {path}")
    numbers = {
        "triangulated_share": float(direct.mean()),
        "bridged_share": float(motion.bridged.mean()),
        "sigma_mm": sigma,
        "interbead_sd_mm": {f"{p.first} {p.second}": p.sd_mm for p in pairs},
    }
    return CommandReport(lines, numbers)
