"""One file for another program: which of the results its suffix asks for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.foundation.errors import InputError
from calibration.geometry.transforms import rotation_from_quaternion
from skeleton.motion_files import JointMotion, write_motion, write_nwb
from skeleton.pose_spaces.coding.motion_coding import code_motion, decode_motion
from skeleton.pose_spaces.coding.vpg_files import read_vpg, write_vpg
from skeleton.pose_spaces.rotation_tree import place_rotations, tree_of_motion
from vivarig.export.motions import POINT_SETS, axes_in_words, joint_motion, point_series, rigid_bones
from vivarig.export.nwb_session import nwb_session, start_in_words
from vivarig.export.opensim import export_opensim, opensim_motion
from vivarig.export.surfaces import MESH_SUFFIXES, export_surface
from vivarig.export.usd import USD_SUFFIXES
from vivarig.results.findings import Findings

__all__ = ["ExportOptions", "export_file"]

_POINTS = (".c3d", ".trc", ".csv", ".nwb", ".nc", ".h5")
_MOTIONS = (".bvh", ".amc")
_COORDINATES = (".mot", ".sto")
_MODELS = (".osim",)
_CODED = (".vpg",)
#: Coarseness of coded motion, as a share of the body's size: joints come back to about a third of it.
_CODED_STEP = 0.001
_SURFACES = (".glb", *USD_SUFFIXES, *MESH_SUFFIXES)


@dataclass(frozen=True)
class ExportOptions:
    """What of the results is written.

    Attributes:
        points: one of `vivarig.export.motions.POINT_SETS`; None: the first.
        trusted_only: whether frames that are not trusted become missing.
        frames: "A:B", surface: only these frames.
        every: surface: every how many frames; None: each.
        onto: surface: of another subject that moves like the tracked one.
        bone_shifts: BVH: position channels for joints below the root, too, where the skeleton lets them shift.
        skin: glTF and USD: one surface that the bones carry, in place of a shape per frame.
    """

    points: str | None = None
    trusted_only: bool = False
    frames: str | None = None
    every: int | None = None
    onto: str | None = None
    bone_shifts: bool = False
    skin: bool = False


def export_file(findings: Findings, target: Path, options: ExportOptions) -> str:
    """Write one file and return what it holds, in words."""
    suffix = target.suffix.lower()
    _check(target, suffix, options)
    if suffix in _MOTIONS:
        return _export_tree(findings, target, shifting=options.bone_shifts)
    if suffix in _CODED:
        return _export_coded(joint_motion(findings), target)
    if suffix in _COORDINATES:
        write_motion(opensim_motion(findings), target)
        return "coordinates of the model that .osim writes, degrees and m, y up"
    if suffix in _MODELS:
        return export_opensim(findings, target, trusted_only=options.trusted_only)
    if suffix in _POINTS:
        points = options.points or POINT_SETS[0]
        series = point_series(findings, points, trusted_only=options.trusted_only)
        # OpenSim, which reads TRC, has its y up, and the file cannot say otherwise.
        turned = suffix == ".trc" and series.up != ""
        if suffix == ".nwb":
            write_nwb(series, target, session=nwb_session(findings, points, target))
            return f"{len(series.names)} {points}, {axes_in_words(findings)}; {start_in_words(findings)}"
        write_motion(series.with_up("y") if turned else series, target)
        return f"{len(series.names)} {points}, {'mm, y up' if turned else axes_in_words(findings)}"
    every = 1 if options.every is None else options.every
    return export_surface(
        findings, target, frames=options.frames, every=every, trusted_only=options.trusted_only, onto=options.onto,
        skin=options.skin,
    )  # fmt: skip


def _export_tree(findings: Findings, target: Path, *, shifting: bool) -> str:
    """Write the skeleton in motion: centimetres and y up, as the programs expect that read it."""
    motion = joint_motion(findings)
    axes = "y up" if motion.up else axes_in_words(findings)
    if motion.up:
        motion = motion.with_up("y")
    if shifting or target.suffix.lower() != ".bvh":
        write_motion(motion, target)
        return f"skeleton in motion, {axes}" + (", cm" if target.suffix.lower() == ".bvh" else "")
    rigid, apart = rigid_bones(motion)
    write_motion(rigid, target)
    return f"skeleton in motion, cm, {axes}; bones keep their lengths, which moves joints by {apart:.2f} mm (rms)"


def _export_coded(motion: JointMotion, target: Path) -> str:
    """Write the motion in its own pose space."""
    tree = tree_of_motion(motion)
    rotations, root = rotation_from_quaternion(motion.rotations), motion.shifts[:, 0] + motion.offsets[0]
    places = place_rotations(tree, rotations, root).positions
    size = float(np.nanmedian(np.linalg.norm(np.ptp(places, axis=1), axis=1)))
    coded = code_motion(
        tree, rotations, root, rate_hz=motion.rate_hz, step_mm=_CODED_STEP * size * np.sqrt(len(tree.names))
    )
    length = write_vpg(coded, target)
    again, path = decode_motion(read_vpg(target))
    apart = np.linalg.norm(
        place_rotations(tree, again, path).positions - motion.as_markers(tips=False).positions, axis=2
    )
    plain = 4 * 3 * (len(tree.names) + 1) * motion.frames
    return (
        f"{coded.modes} numbers a frame and the root, {length} bytes for {motion.frames} frames "
        f"(1:{plain / length:.0f} of float32); decoded joints {float(np.sqrt((apart**2).mean())):.2f} mm off (rms)"
    )


def _check(target: Path, suffix: str, options: ExportOptions) -> None:
    """Refuse an unknown format, and options that the format has no use for, rather than leave them aside."""
    known = (*_POINTS, *_MOTIONS, *_COORDINATES, *_MODELS, *_CODED, *_SURFACES)
    if suffix not in known:
        raise InputError(f"{target}: cannot export to '{suffix}'; known are {', '.join(known)}")
    for name, value, suffixes in (
        ("--points", options.points, _POINTS),
        ("--trusted-only", options.trusted_only or None, (*_POINTS, *_MODELS, *_SURFACES)),
        ("--frames", options.frames, _SURFACES),
        ("--every", options.every, _SURFACES),
        ("--onto", options.onto, _SURFACES),
        ("--bone-shifts", options.bone_shifts or None, (".bvh",)),
        ("--skin", options.skin or None, (".glb", *USD_SUFFIXES)),
    ):
        if value is not None and suffix not in suffixes:
            raise InputError(f"{target}: {name} has no meaning for '{suffix}'; it is for {', '.join(suffixes)}")
