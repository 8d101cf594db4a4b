"""The tracked surface for other programs: moving in glTF or USD, or a mesh file per frame; on another body if asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import trimesh

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from calibration.foundation.files import written_by_library
from calibration.foundation.trust import Trust
from skeleton.motion_files.motions import JointMotion
from tracking.quads.oriented_quads import QuadPose
from tracking.subjects.motion_transfer import transferred
from tracking.subjects.skin import subject_as_told
from tracking.subjects.subject import load_subject, scaled_subject
from vivarig.export.gltf import write_glb
from vivarig.export.motions import axes_in_words, joint_motion, up_axis
from vivarig.export.skinning import Skin, fit_skin
from vivarig.export.usd import USD_SUFFIXES, write_usd
from vivarig.results.findings import Findings, TrackFindings

__all__ = ["MESH_SUFFIXES", "export_surface"]

MESH_SUFFIXES = (".ply", ".obj", ".stl")


def export_surface(
    findings: Findings,
    target: Path,
    *,
    frames: str | None = None,
    every: int = 1,
    trusted_only: bool = False,
    onto: str | None = None,
    skin: bool = False,
) -> str:
    """Write the surface and say what was written.

    Args:
        findings: results of a recording.
        target: .glb, .usd (with the skeleton, where there is one), or .ply, .obj, .stl: one file per frame, numbered.
        frames: "A:B", frames A to B - 1; None for all.
        every: every how many frames.
        trusted_only: leave frames out that are not trusted; frames that were not tracked always are.
        onto: subject (built-in or folder) that takes the motion over.
        skin: .glb, .usd: one surface on bones instead of one shape per frame.
    """
    track = findings.track
    if track is None:
        raise InputError(f"{findings.recording.folder}: no track.h5; run `vivarig track` first")
    chosen = _chosen(track, frames, every, trusted_only)
    faces, surface = _own(track, chosen) if onto is None else _other(findings, track, chosen, onto)
    what = "surface" if onto is None else f"surface of {onto}"
    if skin and (onto is not None or findings.skeleton is None):
        raise InputError(
            "--skin puts the tracked surface on its own skeleton: not with --onto, not without skeleton.h5"
        )
    if target.suffix.lower() in (".glb", *USD_SUFFIXES):
        motion = None
        if onto is None and findings.skeleton is not None:
            motion = _part(joint_motion(findings), chosen)
        words = f"{what}{' and skeleton' if motion is not None else ''}, {len(chosen)} frames"
        rate, name = findings.recording.rate_hz, findings.recording.name
        limbs = None
        if track.limb_trust is not None:
            limbs = (track.limb_names, track.limb_trust[chosen])
        carried: Skin | None = None
        if skin and motion is not None:
            carried = fit_skin(motion, lambda row: track.vertices_at(int(chosen[row])))
            words += f"; bones carry the surface within {carried.apart_mm:.2f} mm (rms)"
        if target.suffix.lower() in USD_SUFFIXES:
            write_usd(target, chosen, (carried or surface, faces), motion, rate_hz=rate, name=name, limbs=limbs)
            return f"{words}, {axes_in_words(findings)}"
        shapes = np.stack(list(surface)) if carried is None else carried
        write_glb(target, chosen / rate, (shapes, faces), motion, name=name, notes=_notes(chosen, limbs))
        return f"{words}, " + ("m, y up" if up_axis(findings) else axes_in_words(findings))
    target.parent.mkdir(parents=True, exist_ok=True)
    for frame, vertices in zip(chosen, surface, strict=True):
        path = target.with_name(f"{target.stem}_{frame:06d}{target.suffix}")
        mesh = trimesh.Trimesh(vertices, faces, process=False)
        with written_by_library(path) as temporary:
            mesh.export(temporary, file_type=target.suffix.lower().lstrip("."))
    return f"{what}, {len(chosen)} files {target.stem}_NNNNNN{target.suffix}, {axes_in_words(findings)}"


def _notes(chosen: Ints, limbs: tuple[tuple[str, ...], Ints] | None) -> dict[str, object]:
    """Return what a scene says of its frames: numbers, and by limb a digit each (trusted 0, doubtful 1, lost 2)."""
    notes: dict[str, object] = {"frames": chosen.tolist()}
    if limbs is not None:
        names, trust = limbs
        notes["limb_trust"] = {name: "".join(map(str, trust[:, at])) for at, name in enumerate(names)}
    return notes


def _chosen(track: TrackFindings, frames: str | None, every: int, trusted_only: bool) -> Ints:
    """Frames to write."""
    first, last = 0, track.frames
    if frames is not None:
        start, colon, stop = frames.partition(":")
        try:
            first, last = int(start or 0), int(stop or track.frames)
        except ValueError:
            raise InputError(f"--frames wants A:B, e.g. 100:400, got {frames!r}") from None
        if not colon or not 0 <= first < last <= track.frames:
            raise InputError(f"--frames {frames}: the track has frames 0 to {track.frames - 1}")
    if every < 1:
        raise InputError(f"--every must be 1 or more, got {every}")
    there = track.tracked
    good = there & (track.trust == Trust.TRUSTED) if trusted_only else there
    chosen = np.arange(first, last, every)
    chosen = chosen[good[chosen]]
    if not len(chosen):
        raise InputError(f"{track.path}: none of these frames is {'trusted' if trusted_only else 'tracked'}")
    return chosen


def _own(track: TrackFindings, chosen: Ints) -> tuple[Ints, Iterator[Floats]]:
    return np.asarray(track.faces, np.int64), (track.vertices_at(int(frame)) for frame in chosen)


def _other(findings: Findings, track: TrackFindings, chosen: Ints, onto: str) -> tuple[Ints, Iterator[Floats]]:
    """Faces and posed vertices of another subject that moves as the tracked one."""
    folder = findings.recording.folder
    parameters = track.parameters
    rotations, centres = track.quads(chosen)
    tracked = load_subject(str(parameters["subject"]), base=folder)
    shape = parameters.get("shape")
    if shape and shape["kept"]:
        tracked = subject_as_told(tracked, shape)
    else:
        tracked = scaled_subject(tracked, float(parameters["scale"]))
    other = load_subject(onto, base=folder)
    poses = transferred(tracked.cage_rig.quads, other.cage_rig.quads, rotations, centres)
    binding = other.template.binding.astype(np.float32)
    return other.template.faces, (
        other.cage_rig.deform(binding, QuadPose(turns, places))
        for turns, places in zip(poses.rotations, poses.centres, strict=True)
    )


def _part(motion: JointMotion, chosen: Ints) -> JointMotion:
    return replace(motion, shifts=motion.shifts[chosen], rotations=motion.rotations[chosen])
