"""``vivarig export``: results in the formats of other tools."""

from __future__ import annotations

import argparse
from pathlib import Path

from calibration.foundation.errors import InputError
from capture.recordings.recording import load_recording
from skeleton.motion_files import write_motion
from vivarig.console.reporting import CommandReport
from vivarig.export.motions import POINT_SETS, coordinate_series, joint_motion, point_series
from vivarig.export.surfaces import MESH_SUFFIXES, export_surface
from vivarig.export.usd import USD_SUFFIXES
from vivarig.results.findings import load_findings

HELP = (
    "Write results for other programs, by suffix: .c3d .trc .csv .nwb .nc (movement) hold points, .bvh .amc the "
    "skeleton in motion, .mot its coordinates; .glb (glTF) and .usd the moving surface with the skeleton, .ply .obj "
    ".stl the surface as one file per frame. --onto gives the motion to another subject's mesh."
)
EXAMPLE = """  vivarig export mouse_07 mouse_07.c3d
  vivarig export mouse_07 joints.csv --points joints --trusted-only
  vivarig export mouse_07 mouse_07.glb --frames 100:400 --every 2
  vivarig export mouse_07 surface/mouse.ply
  vivarig export walk troll.glb --onto subjects/troll"""

_POINTS = (".c3d", ".trc", ".csv", ".nwb", ".nc")
_MOTIONS = (".bvh", ".amc")
_COORDINATES = (".mot", ".sto")
_SURFACES = (".glb", *USD_SUFFIXES, *MESH_SUFFIXES)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recording", type=Path, help="recording folder")
    parser.add_argument("target", type=Path, metavar="OUT", help="file to write; its suffix names the format")
    parser.add_argument("--points", choices=POINT_SETS, help=f"which points (default: {POINT_SETS[0]})")
    parser.add_argument("--trusted-only", action="store_true", help="frames that are not trusted become missing")
    parser.add_argument("--frames", metavar="A:B", help="surface: only frames A to B - 1")
    parser.add_argument("--every", type=int, metavar="N", help="surface: every how many frames (default 1)")
    parser.add_argument("--onto", metavar="SUBJECT", help="surface: of another subject that moves like the tracked one")


def run(args: argparse.Namespace) -> CommandReport:
    """Write one file."""
    findings = load_findings(load_recording(args.recording))
    suffix = args.target.suffix.lower()
    _check_options(args, suffix)
    if suffix in _MOTIONS:
        write_motion(joint_motion(findings), args.target)
        what = "skeleton in motion"
    elif suffix in _COORDINATES:
        write_motion(coordinate_series(findings), args.target)
        what = "coordinates, radians and mm"
    elif suffix in _POINTS:
        points = args.points or POINT_SETS[0]
        series = point_series(findings, points, trusted_only=args.trusted_only)
        write_motion(series, args.target)
        what = f"{len(series.names)} {points}, mm, z up"
    else:
        every = 1 if args.every is None else args.every
        what = export_surface(
            findings, args.target, frames=args.frames, every=every, trusted_only=args.trusted_only, onto=args.onto
        )
    return CommandReport([f"wrote {args.target}: {what}"], {"target": str(args.target), "holds": what})


def _check_options(args: argparse.Namespace, suffix: str) -> None:
    """Refuse an unknown format, and options that the format has no use for, rather than leave them aside."""
    known = (*_POINTS, *_MOTIONS, *_COORDINATES, *_SURFACES)
    if suffix not in known:
        raise InputError(f"{args.target}: cannot export to '{suffix}'; known are {', '.join(known)}")
    for name, value, suffixes in (
        ("--points", args.points, _POINTS),
        ("--trusted-only", args.trusted_only or None, (*_POINTS, *_SURFACES)),
        ("--frames", args.frames, _SURFACES),
        ("--every", args.every, _SURFACES),
        ("--onto", args.onto, _SURFACES),
    ):
        if value is not None and suffix not in suffixes:
            raise InputError(f"{args.target}: {name} has no meaning for '{suffix}'; it is for {', '.join(suffixes)}")
