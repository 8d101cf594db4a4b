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

HELP = (
    "Write results for other programs, by suffix: .c3d .trc .csv .nwb .nc (movement) hold points, .bvh .amc the "
    "skeleton in motion, .mot its coordinates. Surfaces (glTF) are not exported yet."
)
EXAMPLE = "  vivarig export mouse_07 mouse_07.c3d\n  vivarig export mouse_07 joints.csv --points joints --trusted-only"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recording", type=Path, help="recording folder")
    parser.add_argument("target", type=Path, metavar="OUT", help="file to write; its suffix names the format")
    parser.add_argument("--points", choices=POINT_SETS, default="landmarks", help="which points (default: landmarks)")
    parser.add_argument("--trusted-only", action="store_true", help="frames that are not trusted become missing")


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
    else:
        known = ", ".join(WRITERS)
        raise InputError(f"{args.target}: cannot export to '{suffix}'; known are {known}")
    return CommandReport([f"wrote {args.target}: {what}"], {"target": str(args.target), "holds": what})
