"""``vivarig export``: results in the formats of other tools."""

from __future__ import annotations

import argparse
from pathlib import Path

from capture.recordings.recording import load_recording
from vivarig.console.reporting import CommandReport
from vivarig.export.files import ExportOptions, export_file
from vivarig.export.motions import POINT_SETS
from vivarig.results.clean_motion import cleaned
from vivarig.results.findings import load_findings

HELP = (
    "Write results for other programs, by suffix: .c3d .trc .csv .nwb .nc (movement) .h5 (SLEAP 3D) hold points, "
    ".osim OpenSim's model of the subject with markers and motion beside it (.mot: its motion alone), .bvh .amc the "
    "skeleton in motion (.vpg: in a few bytes a frame, for vivarig convert); .glb (glTF) and .usd the moving surface "
    "with the skeleton, .ply .obj .stl the surface as one file per frame. --onto gives the motion to another "
    "subject's mesh."
)
EXAMPLE = """  vivarig export mouse_07 mouse_07.c3d
  vivarig export mouse_07 joints.csv --points joints --trusted-only
  vivarig export mouse_07 mouse_07.osim
  vivarig export mouse_07 mouse_07.glb --frames 100:400 --every 2
  vivarig export mouse_07 small.glb --skin
  vivarig export mouse_07 surface/mouse.ply
  vivarig export walk troll.glb --onto subjects/troll"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recording", type=Path, help="recording folder")
    parser.add_argument("target", type=Path, metavar="OUT", help="file to write; its suffix names the format")
    parser.add_argument("--points", choices=POINT_SETS, help=f"which points (default: {POINT_SETS[0]})")
    parser.add_argument("--clean", action="store_true", help="the skeleton with feet that stand, of `vivarig clean`")
    parser.add_argument("--trusted-only", action="store_true", help="frames that are not trusted become missing")
    parser.add_argument("--frames", metavar="A:B", help="surface: only frames A to B - 1")
    parser.add_argument("--every", type=int, metavar="N", help="surface: every how many frames (default 1)")
    parser.add_argument("--onto", metavar="SUBJECT", help="surface: of another subject that moves like the tracked one")
    parser.add_argument("--skin", action="store_true", help="glTF, USD: bones carry one surface; small, any length")
    parser.add_argument("--bone-shifts", action="store_true", help="BVH: position channels below the root, too")


def run(args: argparse.Namespace) -> CommandReport:
    """Write one file."""
    options = ExportOptions(
        args.points, args.trusted_only, args.frames, args.every, args.onto, args.bone_shifts, args.skin
    )
    findings = load_findings(load_recording(args.recording))
    what = export_file(cleaned(findings) if args.clean else findings, args.target, options)
    return CommandReport([f"wrote {args.target}: {what}"], {"target": str(args.target), "holds": what})
