"""``vivarig xray undistort|calibrate|track|triangulate``: beads in biplanar X-ray."""

from __future__ import annotations

import argparse
from pathlib import Path

from calibration.xray.attenuation import Polarity
from capture.recordings.recording import load_recording
from vivarig.console.reporting import CommandReport
from vivarig.jobs.lock import results_lock
from vivarig.xray.calibrate import calibrate
from vivarig.xray.recording import BONES, LABELS, XrayFolder
from vivarig.xray.track import track
from vivarig.xray.triangulate import triangulate
from vivarig.xray.undistort import undistort

__all__ = ["EXAMPLE", "HELP", "add_arguments", "run"]

HELP = "Biplanar X-ray: undistort images, calibrate on a bead cube, track beads, triangulate them."
EXAMPLE = """  vivarig xray undistort rat_xray
  vivarig xray calibrate rat_xray
  vivarig xray track rat_xray                       # or: --start labels.csv --corrections fixed.csv
  vivarig xray triangulate rat_xray --bones bones.csv"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("step", choices=("undistort", "calibrate", "track", "triangulate"))
    parser.add_argument("recording", type=Path, help="recording folder with cameras of kind xray")
    parser.add_argument(
        "--session", type=Path, metavar="FOLDER", help="grid/, cube/ and cube.csv (default: calibration/xray)"
    )
    parser.add_argument("--model", help="undistort: distortion model (default: chosen by cross-validation)")
    parser.add_argument("--unit", default="mm", choices=("mm", "cm", "m"), help="calibrate: unit of cube.csv")
    parser.add_argument(
        "--guess", action="store_true", help="calibrate: the recording's rig is roughly right: start from it"
    )
    parser.add_argument(
        "--references",
        type=Path,
        metavar="CSV",
        help="calibrate: camera,position,bead,x,y of some beads, where the cube looks alike from two sides",
    )
    parser.add_argument(
        "--start",
        type=Path,
        metavar="CSV",
        help="track: XMALab 2D points; the first of its frames with most beads starts them (default: labels.csv of the"
        " session, or found)",
    )
    parser.add_argument("--corrections", type=Path, metavar="CSV", help="track: XMALab 2D points that are kept exactly")
    parser.add_argument("--one-based", action="store_true", help="track: those files count pixels from 1")
    parser.add_argument("--y-up", action="store_true", help="track: in those files y grows upwards")
    parser.add_argument("--cameras", help="track: views to use, comma-separated (default: the X-ray ones)")
    parser.add_argument("--bead-sigma", type=float, metavar="PX", help="track: Gaussian radius of a bead in the image")
    parser.add_argument("--bright", action="store_true", help="beads are brighter than their surroundings")
    parser.add_argument(
        "--bones",
        type=Path,
        metavar="CSV",
        help="triangulate: lines 'bead,bone' (default: bones.csv of the session, or found from rigid groups); bones "
        "named like segments of the body hold them in `vivarig skeleton`",
    )
    parser.add_argument(
        "--names", type=Path, metavar="CSV", help="triangulate: lines 'bead,new name', to rename beads found by itself"
    )
    parser.add_argument("--filter", default="butterworth", choices=("butterworth", "spline"))
    parser.add_argument(
        "--cutoff", type=float, metavar="HZ", help="triangulate: of the filter (default: by residual analysis)"
    )
    parser.add_argument("--max-gap", type=int, default=8, metavar="FRAMES", help="triangulate: longest gap bridged")


def run(args: argparse.Namespace) -> CommandReport:
    """Run one step."""
    folder = XrayFolder.of(load_recording(args.recording), args.session)
    with results_lock(folder.recording.results):
        return _step(args, folder)


def _step(args: argparse.Namespace, folder: XrayFolder) -> CommandReport:
    polarity: Polarity = "bright" if args.bright else "dark"
    if args.step == "undistort":
        return undistort(folder, model=args.model)
    if args.step == "calibrate":
        return calibrate(folder, unit=args.unit, guess=args.guess, references=args.references, polarity=polarity)
    if args.step == "track":
        return track(
            folder,
            cameras=args.cameras.split(",") if args.cameras else None,
            start=args.start or folder.given(LABELS),
            corrections=args.corrections,
            one_based=args.one_based,
            y_up=args.y_up,
            bead_sigma=args.bead_sigma,
            polarity=polarity,
        )
    return triangulate(
        folder,
        names=args.names,
        bones=args.bones or folder.given(BONES),
        method=args.filter,
        cutoff_hz=args.cutoff,
        max_gap=args.max_gap,
    )
