"""``vivarig calibrate``: board footage to rig.toml, with a report that tells the truth about its accuracy."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from calibration.accuracy.report import report_lines, report_numbers
from calibration.bundle.parameters import DISTORTIONS
from calibration.foundation.errors import InputError
from vivarig.calibration_stage.board_calibration import calibrate_session, opened_session
from vivarig.calibration_stage.clock_offsets import write_clock_offsets
from vivarig.calibration_stage.lens_calibration import calibrate_lenses
from vivarig.calibration_stage.marks_calibration import MarksOptions, calibrate_from_marks
from vivarig.calibration_stage.options import CalibrateOptions, WorldOptions
from vivarig.calibration_stage.survey_calibration import (
    calibrate_from_survey,
    calibrate_project_scene,
    scene_of_project,
)
from vivarig.commands.stage_arguments import whole
from vivarig.console.reporting import CommandReport

__all__ = ["EXAMPLE", "HELP", "add_arguments", "run"]

HELP = """Turn a folder with one board video or image folder per camera into rig.toml, and say how good it is.

Anipose, sleap-anipose, Caliscope and Pose2Sim projects are recognised as they are, also by their root. Results go to
SESSION/results unless --output says otherwise: rig.toml, calibration.html (the report) and a cache of the detections.
--lenses-only takes each camera by itself, from pictures that were not taken together. With --points and --marks the
poses come from surveyed points of the scene, without any board."""
EXAMPLE = """  vivarig board --kind charuco --columns 7 --rows 10 --square 24 my_session
  vivarig calibrate my_session --floor-frame 12 --json calibration.json
  vivarig calibrate lens_pictures --lenses-only
  vivarig calibrate --points scene.toml --marks clicks.csv --intrinsics lens_pictures/results/lenses"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    parser.add_argument("session", type=Path, nargs="?", help="folder with the board footage")
    parser.add_argument("--board", type=Path, metavar="FILE", help="board description, if not SESSION/board.toml")
    parser.add_argument("--output", type=Path, metavar="DIR", help="where results go (default SESSION/results)")
    parser.add_argument("--cameras", metavar="A,B", help="use these cameras only")
    parser.add_argument("--lens", default="auto", choices=("auto", "pinhole", "fisheye"))
    parser.add_argument("--distortion", default="auto", choices=("auto", *DISTORTIONS), help="terms to solve for")
    parser.add_argument("--intrinsics", type=Path, metavar="FILE", help="known lenses: a rig file, or OpenCV XML/YAML")
    parser.add_argument("--lenses-only", action="store_true", help="each camera's lens alone, no poses")
    parser.add_argument("--refine-intrinsics", action="store_true", help="start from the known lenses, then free them")
    parser.add_argument(
        "--board-shape", action="store_true", help="let the board's corners move (bent or uneven print)"
    )
    parser.add_argument("--clocks", default="auto", choices=("auto", "on", "off"), help="estimate camera time offsets")
    parser.add_argument(
        "--recording", type=Path, action="append", default=[], metavar="DIR",
        help="write clock offsets that were found into this recording's recording.toml (may be given again)",
    )  # fmt: skip
    parser.add_argument("--largest-part", action="store_true", help="if cameras do not connect, solve the largest part")
    parser.add_argument("--frames", type=int, default=200, metavar="N", help="calibrate from N frames at most (200)")
    parser.add_argument("--step", type=int, default=1, metavar="N", help="look at every Nth frame only (1)")
    parser.add_argument("--trim", action="store_true", help="videos start together but end differently")
    parser.add_argument(
        "--workers", type=whole(1), default=os.cpu_count() or 1, metavar="N", help="images searched at once"
    )
    marks = parser.add_argument_group("without a board")
    marks.add_argument(
        "--marks", type=Path, metavar="CSV",
        help="marks seen in common: frame, camera, mark, x, y; with --points clicks: camera, point, x, y",
    )  # fmt: skip
    marks.add_argument("--wand", metavar="MM,MM", help="places of the marks along a straight wand")
    marks.add_argument("--baseline", type=float, metavar="MM", help="no wand: distance of the first two cameras")
    marks.add_argument(
        "--refine", type=Path, metavar="RIG", help="refine this rig with the marks; frame and scale stay"
    )
    world = parser.add_argument_group("world frame (else: that of the first camera)")
    world.add_argument("--floor-frame", type=int, metavar="N", help="frame in which the board lies on the floor")
    world.add_argument("--floor-board", metavar="NAME", help="which of several boards lies there")
    world.add_argument(
        "--points",
        type=Path,
        metavar="FILE",
        help="marked points, distances; without a board: surveyed points",
    )
    world.add_argument("--axes", metavar="O,X,Y", help="names of three marked points: origin, on x, on the y side")
    world.add_argument("--below", default="", metavar="A,B", help="cameras that film through the floor on purpose")


def run(args: argparse.Namespace) -> CommandReport:
    """Calibrate one session from the command line."""
    if args.points is not None and (args.marks is not None or args.session is None):
        place = args.session or args.points.parent
        return calibrate_from_survey(args.points, args.marks, args.intrinsics, args.output or place / "results")
    if args.session is None:
        raise InputError("which session? Give the folder of the board footage, or --points for surveyed points")
    if args.lenses_only:
        return calibrate_lenses(opened_session(args.session, _options(args), lenses=True), _options(args))
    scene = None if args.marks is None else scene_of_project(args.session)
    if scene is not None:
        return calibrate_project_scene(args.session, scene, args.marks, _options(args))
    if args.marks is not None:
        marks = MarksOptions(args.marks, args.refine, args.intrinsics, args.wand, args.baseline)
        return calibrate_from_marks(marks, args.output or args.session / "results")
    outcome, output = calibrate_session(args.session, _options(args))
    short = outcome.shortcomings()
    written = write_clock_offsets(outcome, args.recording)
    lines = [*report_lines(outcome), *written, f"wrote {output / 'rig.toml'} and {output / 'calibration.html'}"]
    return CommandReport(lines, report_numbers(outcome), quality_ok=not short, reason="; ".join(short))


def _options(args: argparse.Namespace) -> CalibrateOptions:
    """Return what was asked for."""
    return CalibrateOptions(
        board=args.board,
        output=args.output,
        cameras=_names(args.cameras),
        lens=args.lens,
        distortion=args.distortion,
        intrinsics=args.intrinsics,
        refine_intrinsics=args.refine_intrinsics,
        board_shape=args.board_shape,
        clocks=args.clocks,
        largest_part=args.largest_part,
        frames=args.frames,
        step=args.step,
        trim=args.trim,
        workers=args.workers,
        world=WorldOptions(args.floor_frame, args.floor_board, args.points, _names(args.axes), _names(args.below)),
    )


def _names(text: str | None) -> tuple[str, ...]:
    """Return the names in a list like ``A,B``."""
    return tuple(name for name in (text or "").split(",") if name)
