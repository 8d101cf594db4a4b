"""``vivarig export``: results in the formats of other tools."""

from __future__ import annotations

import argparse
from pathlib import Path

from calibration.errors import InputError
from capture.recording import load_recording
from skeleton.motion_files import WRITERS, write_motion
from vivarig.exporting import POINT_SETS, coordinate_series, joint_motion, point_series
from vivarig.report.findings import load_findings
from vivarig.reporting import CommandReport
from vivarig.surface_export import MESH_SUFFIXES, export_surface
from vivarig.usd import USD_SUFFIXES

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recording", type=Path, help="recording folder")
    parser.add_argument("target", type=Path, metavar="OUT", help="file to write; its suffix names the format")
    parser.add_argument("--points", choices=POINT_SETS, default="landmarks", help="which points (default: landmarks)")
    parser.add_argument("--trusted-only", action="store_true", help="frames that are not trusted become missing")
    parser.add_argument("--frames", metavar="A:B", help="surface: only frames A to B - 1")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="surface: every how many frames (default 1)")
    parser.add_argument("--onto", metavar="SUBJECT", help="surface: of another subject that moves like the tracked one")


def run(args: argparse.Namespace) -> CommandReport:
    """Write one file."""
    findings = load_findings(load_recording(args.recording))
    suffix = args.target.suffix.lower()
    if suffix in (".bvh", ".amc"):
        write_motion(joint_motion(findings), args.target)
        what = "skeleton in motion"
    elif suffix in (".mot", ".sto"):
        write_motion(coordinate_series(findings), args.target)
        what = "coordinates, radians and mm"
    elif suffix in (".c3d", ".trc", ".csv", ".nwb", ".nc"):
        series = point_series(findings, args.points, trusted_only=args.trusted_only)
        write_motion(series, args.target)
        what = f"{len(series.names)} {args.points}, mm, z up"
    elif suffix in (".glb", *USD_SUFFIXES, *MESH_SUFFIXES):
        what = export_surface(
            findings, args.target, frames=args.frames, every=args.every, trusted_only=args.trusted_only, onto=args.onto
        )
    else:
        known = ", ".join((*WRITERS, ".glb", *USD_SUFFIXES, *MESH_SUFFIXES))
        raise InputError(f"{args.target}: cannot export to '{suffix}'; known are {known}")
    return CommandReport([f"wrote {args.target}: {what}"], {"target": str(args.target), "holds": what})
