"""``vivarig calibrate``: board footage to rig.toml, with a report that tells the truth about its accuracy."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from calibration.accuracy.measures import held_out, repeatability
from calibration.accuracy.report import CalibrationOutcome, report_html, report_lines, report_numbers
from calibration.boards.board import Board
from calibration.boards.co_visibility import co_visibility, require_connected
from calibration.boards.detection import CameraDetections, grey
from calibration.boards.frame_choice import choose_frames, refuse_rolling_duplicates, sharp_views
from calibration.boards.session import Session, open_session
from calibration.boards.sightings import Sightings, merge_sightings
from calibration.bundle.parameters import DISTORTIONS
from calibration.cameras.camera import Lens
from calibration.cameras.rig import rig_to_toml
from calibration.foundation.errors import InputError
from calibration.foundation.files import write_text
from calibration.geometry.transforms import RigidTransform
from calibration.rig_formats.known_lenses import load_lenses
from calibration.solving.half_turns import align_half_turns, needs_floor
from calibration.solving.rig_solver import RigSolution, SolveOptions, solve_rig
from calibration.solving.world_frame import (
    DistanceCheck,
    check_world,
    load_named_points,
    moved_rig,
    scale_check,
    world_from_board,
    world_from_known_points,
    world_from_three_points,
)
from vivarig.calibration_stage.board_footage import detect_session, frames_of
from vivarig.calibration_stage.marks_calibration import calibrate_from_marks
from vivarig.commands.stage_arguments import whole
from vivarig.console.reporting import CommandReport

__all__ = ["EXAMPLE", "HELP", "add_arguments", "calibrate", "run"]

HELP = """Turn a folder with one board video or image folder per camera into rig.toml, and say how good it is.

Anipose, sleap-anipose and Caliscope sessions are recognised as they are. Results go to SESSION/results unless
--output says otherwise: rig.toml, calibration.html (the report) and a cache of the detections."""
EXAMPLE = """  vivarig board --kind charuco --columns 7 --rows 10 --square 24 my_session
  vivarig calibrate my_session --floor-frame 12 --json calibration.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    parser.add_argument("session", type=Path, help="folder with the board footage")
    parser.add_argument("--board", type=Path, metavar="FILE", help="board description, if not SESSION/board.toml")
    parser.add_argument("--output", type=Path, metavar="DIR", help="where results go (default SESSION/results)")
    parser.add_argument("--cameras", metavar="A,B", help="use these cameras only")
    parser.add_argument("--lens", default="auto", choices=("auto", "pinhole", "fisheye"))
    parser.add_argument("--distortion", default="auto", choices=("auto", *DISTORTIONS), help="terms to solve for")
    parser.add_argument("--intrinsics", type=Path, metavar="FILE", help="known lenses: a rig file, or OpenCV XML/YAML")
    parser.add_argument("--refine-intrinsics", action="store_true", help="start from the known lenses, then free them")
    parser.add_argument(
        "--board-shape", action="store_true", help="let the board's corners move (bent or uneven print)"
    )
    parser.add_argument("--clocks", default="auto", choices=("auto", "on", "off"), help="estimate camera time offsets")
    parser.add_argument("--largest-part", action="store_true", help="if cameras do not connect, solve the largest part")
    parser.add_argument("--frames", type=int, default=200, metavar="N", help="calibrate from N frames at most (200)")
    parser.add_argument("--step", type=int, default=1, metavar="N", help="look at every Nth frame only (1)")
    parser.add_argument("--trim", action="store_true", help="videos start together but end differently")
    parser.add_argument(
        "--workers", type=whole(1), default=os.cpu_count() or 1, metavar="N", help="images searched at once"
    )
    marks = parser.add_argument_group("without a board")
    marks.add_argument("--marks", type=Path, metavar="CSV", help="marks seen in common: frame, camera, mark, x, y")
    marks.add_argument("--wand", metavar="MM,MM", help="places of the marks along a straight wand")
    marks.add_argument("--baseline", type=float, metavar="MM", help="no wand: distance of the first two cameras")
    marks.add_argument(
        "--refine", type=Path, metavar="RIG", help="refine this rig with the marks; frame and scale stay"
    )
    world = parser.add_argument_group("world frame (else: that of the first camera)")
    world.add_argument("--floor-frame", type=int, metavar="N", help="frame in which the board lies on the floor")
    world.add_argument("--floor-board", metavar="NAME", help="which of several boards lies there")
    world.add_argument(
        "--points", type=Path, metavar="FILE", help="points.toml: marked points, known places, distances"
    )
    world.add_argument("--axes", metavar="O,X,Y", help="names of three marked points: origin, on x, on the y side")
    world.add_argument("--below", default="", metavar="A,B", help="cameras that film through the floor on purpose")


def run(args: argparse.Namespace) -> CommandReport:
    """Calibrate one session from the command line."""
    if args.marks is not None:
        return calibrate_from_marks(args)
    outcome, output = calibrate(args)
    short = outcome.shortcomings()
    lines = [*report_lines(outcome), f"wrote {output / 'rig.toml'} and {output / 'calibration.html'}"]
    return CommandReport(lines, report_numbers(outcome), quality_ok=not short, reason="; ".join(short))


def calibrate(args: argparse.Namespace) -> tuple[CalibrationOutcome, Path]:
    """Calibrate one session and write its results; nothing is written before everything is solved."""
    if args.frames < 3 or args.step < 1 or args.workers < 1:
        raise InputError("--frames must be 3 or more, --step and --workers 1 or more")
    session = open_session(args.session, args.board)
    wanted = args.cameras.split(",") if args.cameras else None
    if wanted:
        names = [f.name for f in session.footage]
        for name in wanted:
            if name not in names:
                raise InputError(f"unknown camera '{name}'; the session has {', '.join(names)}")
        session = replace(session, footage=tuple(f for f in session.footage if f.name in wanted))
    if len(session.footage) == 0:
        raise InputError(f"{session.folder}: no camera left")
    output = args.output or session.folder / "results"
    output.mkdir(parents=True, exist_ok=True)
    boards, detections, notes = detect_session(session, output, workers=args.workers, step=args.step, trim=args.trim)
    notes += refuse_rolling_duplicates(detections)
    sightings, blurred = _table(detections, boards)
    if args.largest_part:
        sightings, left = _largest_part(sightings)
        notes += left
    graph = co_visibility(sightings)
    require_connected(graph, sightings)
    floor = args.floor_frame
    chosen, choice = choose_frames(sightings, args.frames)
    if floor is not None and floor not in chosen.frame:
        if floor not in sightings.frame:
            raise InputError(f"--floor-frame {floor}: no camera saw a board in that frame")
        chosen = sightings.of_frames(np.unique(np.append(chosen.frame, floor)))
    choice = replace(choice, blurred_views=blurred)
    fixed: dict[str, Lens] = (
        {} if args.intrinsics is None else load_lenses(args.intrinsics, chosen.cameras, chosen.sizes)
    )
    options = SolveOptions(
        lens=args.lens,
        distortion=args.distortion,
        fixed=fixed,
        refine_fixed=args.refine_intrinsics,
        clocks=args.clocks,
        board_shape=args.board_shape,
    )
    if needs_floor(chosen):
        chosen, decided = _number_on_floor(session, chosen, fixed)
        notes += decided
    solution = solve_rig(chosen, options)
    measured = held_out(chosen, options)
    repeated = repeatability(solution, np.random.default_rng(0))
    world_from_rig, world, distances, problems = _world(solution, args)
    rig = moved_rig(solution.rig, world_from_rig)
    outcome = CalibrationOutcome(
        title=session.folder.resolve().name,
        rig=rig,
        solution=solution,
        world_from_rig=world_from_rig,
        world=world,
        graph=graph,
        held_out=measured,
        repeatability=repeated,
        choice=choice,
        distances=tuple(distances),
        notes=(f"recognised as a {session.layout} session", *notes, *solution.notes),
        problems=tuple(problems),
    )
    page, table = report_html(outcome), rig_to_toml(rig)
    write_text(output / "calibration.html", page)
    write_text(output / "rig.toml", table)
    return outcome, output


def _table(detections: list[CameraDetections], boards: tuple[Board, ...]) -> tuple[Sightings, int]:
    """Return the sightings of sharp views with velocities, and the number of blurred views left out."""
    parts, blurred = [], 0
    for detection in detections:
        sharp, dropped = sharp_views(detection)
        blurred += dropped
        parts.append(sharp.sightings(boards))
    return merge_sightings(parts).with_velocities(), blurred


def _number_on_floor(session: Session, chosen: Sightings, fixed: dict[str, Lens]) -> tuple[Sightings, list[str]]:
    """Make the corner order of a board at rest the same in all cameras, by the floor around it."""
    missing = [name for name in chosen.cameras if name not in fixed]
    if missing:
        raise InputError(
            f"the board was shown in {len(chosen.targets())} poses only, too few for the lens of "
            f"{', '.join(missing)}; give the lenses with --intrinsics"
        )
    frame, images = int(chosen.targets().frame[0]), {}
    for c, name in enumerate(chosen.cameras):
        footage = next(f for f in session.footage if f.name == name)
        images[c] = next(grey(image) for number, image in frames_of(footage) if number == frame)
    rows = np.stack([fixed[name].packed() for name in chosen.cameras])
    return align_half_turns(chosen, rows, images)


def _largest_part(sightings: Sightings) -> tuple[Sightings, list[str]]:
    graph = co_visibility(sightings)
    if graph.connected:
        return sightings, []
    kept = [sightings.cameras[c] for c in graph.parts[0]]
    lost = [name for name in sightings.cameras if name not in kept]
    if len(kept) < 2:
        raise InputError("--largest-part: no two cameras saw a board together")
    note = f"left out, not linked to the rest: {', '.join(lost)}"
    return sightings.of_cameras(kept), [note]


def _world(
    solution: RigSolution, args: argparse.Namespace
) -> tuple[RigidTransform, str, list[DistanceCheck], list[str]]:
    """Return world_from_rig, how it was chosen, distances checked and what is wrong with it."""
    distances: list[DistanceCheck] = []
    problems: list[str] = []
    below = [name for name in args.below.split(",") if name]
    points = None if args.points is None else load_named_points(args.points, solution.rig.names)
    measured = None
    if points is not None:
        measured = points.measured(solution.rig)
        distances, _ = scale_check(points, measured)
    if sum(option is not None for option in (args.floor_frame, args.axes)) > 1:
        raise InputError("--floor-frame and --axes both set the world frame; give one")
    if args.floor_frame is not None:
        world = _floor(solution, args.floor_frame, args.floor_board)
        words = f"board on the floor in frame {args.floor_frame}, its corner the origin, z up"
    elif args.axes is not None:
        if points is None or measured is None:
            raise InputError("--axes names marked points; give them with --points FILE")
        names = args.axes.split(",")
        if len(names) != 3 or any(name not in points.names for name in names):
            raise InputError(f"--axes wants three of the marked points ({', '.join(points.names)}), got {args.axes}")
        world = world_from_three_points(*(measured[points.names.index(name)] for name in names))
        words = f"origin {names[0]}, x towards {names[1]}, {names[2]} on the y side, z up"
    elif points is not None and measured is not None and np.isfinite(points.world).all(1).sum() >= 3:
        known = np.flatnonzero(np.isfinite(points.world).all(1))
        names = [points.names[i] for i in known]
        world, misfit = world_from_known_points(measured[known], points.world[known], names)
        words = f"known coordinates of {', '.join(names)} ({np.sqrt((misfit**2).mean()):.2f} mm RMS), z up"
    else:
        first = solution.rig.names[0]
        return (
            RigidTransform.identity(),
            f"the frame of camera '{first}' (x right, y down, z forward); give --floor-frame or --points for z up",
            distances,
            problems,
        )
    bundle = solution.bundle.bundle
    seen = bundle.translations[bundle.target] + np.einsum(
        "nij,nj->ni", bundle.rotations[bundle.target], bundle.points[bundle.point]
    )
    problems += check_world(moved_rig(solution.rig, world), world.apply(seen), below)
    return world, words, distances, problems


def _floor(solution: RigSolution, frame: int, board: str | None) -> RigidTransform:
    targets = solution.sightings.targets()
    names = [b.name for b in solution.sightings.boards]
    if board is not None and board not in names:
        raise InputError(f"--floor-board {board}: the boards are {', '.join(names)}")
    here = [t for t in range(len(targets)) if targets.frame[t] == frame]
    if board is not None:
        here = [t for t in here if names[targets.board[t]] == board]
    if len(here) != 1:
        raise InputError(
            f"--floor-frame {frame}: {len(here)} boards were solved in that frame"
            + ("; say which with --floor-board" if here else "")
        )
    bundle = solution.bundle.bundle
    return world_from_board(RigidTransform(bundle.rotations[here[0]], bundle.translations[here[0]]))
