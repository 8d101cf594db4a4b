"""A session of board footage turned into rig.toml and its report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from calibration.accuracy.measures import held_out, repeatability
from calibration.accuracy.report import CalibrationOutcome, report_html
from calibration.boards.board import Board
from calibration.boards.co_visibility import CoVisibility, co_visibility, require_connected
from calibration.boards.detection import CameraDetections, grey
from calibration.boards.frame_choice import FrameChoice, choose_frames, refuse_rolling_duplicates, sharp_views
from calibration.boards.session import Session, open_session
from calibration.boards.sightings import Sightings, merge_sightings
from calibration.cameras.lens import Lens
from calibration.cameras.rig import rig_to_toml
from calibration.foundation.errors import InputError
from calibration.foundation.files import write_text
from calibration.rig_formats.known_lenses import load_lenses
from calibration.solving.half_turns import align_half_turns, needs_floor
from calibration.solving.rig_solver import SolveOptions, solve_rig
from calibration.solving.view_checks import late_clocks, refuse_misfit, without_lines
from calibration.solving.world_frame import moved_rig
from vivarig.calibration_stage.board_footage import detect_session, frames_of
from vivarig.calibration_stage.lens_calibration import calibrate_lenses
from vivarig.calibration_stage.options import CalibrateOptions, WorldOptions
from vivarig.calibration_stage.world import choose_world

__all__ = ["calibrate_session", "opened_session"]


@dataclass(frozen=True, eq=False)
class _Seen:
    """What the cameras saw of the boards: frames to calibrate from, how they were chosen, who sees what with whom."""

    chosen: Sightings
    choice: FrameChoice
    graph: CoVisibility
    notes: list[str]


def calibrate_session(folder: Path, options: CalibrateOptions) -> tuple[CalibrationOutcome, Path]:
    """Calibrate one session and write its results; nothing is written before everything is solved."""
    session = opened_session(folder, options)
    if session.scene_file is not None:
        raise InputError(
            f"{session.scene_file}: its poses come from clicked points of the scene: give the clicks: vivarig calibrate"
            f" {folder} --marks clicks.csv (camera, point, x, y; points are numbered from 1 as in object_coords_3d)"
        )
    if session.lenses and options.intrinsics is None:
        options = _with_own_lenses(session, options)
    output = options.output or session.folder / "results"
    output.mkdir(parents=True, exist_ok=True)
    seen = _looked_at(session, output, options)
    chosen, notes = seen.chosen, seen.notes
    fixed: dict[str, Lens] = (
        {} if options.intrinsics is None else load_lenses(options.intrinsics, chosen.cameras, chosen.sizes)
    )
    if needs_floor(chosen):
        chosen, decided = _number_on_floor(session, chosen, fixed)
        notes = [*notes, *decided]
    solving = SolveOptions(
        lens=options.lens,
        distortion=options.distortion,
        fixed=fixed,
        refine_fixed=options.refine_intrinsics,
        clocks=options.clocks,
        board_shape=options.board_shape,
    )
    solution = solve_rig(chosen, solving)
    refuse_misfit(solution)
    notes = [*notes, *late_clocks(solution)]
    measured = held_out(chosen, solving)
    repeated = repeatability(solution, np.random.default_rng(0))
    world_from_rig, world, distances, problems = choose_world(solution, options.world, session, options.workers)
    outcome = CalibrationOutcome(
        title=session.folder.resolve().name,
        rig=moved_rig(solution.rig, world_from_rig),
        solution=solution,
        world_from_rig=world_from_rig,
        world=world,
        graph=seen.graph,
        held_out=measured,
        repeatability=repeated,
        choice=seen.choice,
        distances=tuple(distances),
        notes=(f"recognised as a {session.layout} session", *notes, *solution.notes),
        problems=tuple(problems),
    )
    page, table = report_html(outcome), rig_to_toml(outcome.rig)
    write_text(output / "calibration.html", page)
    write_text(output / "rig.toml", table)
    return outcome, output


def opened_session(folder: Path, options: CalibrateOptions, *, lenses: bool = False) -> Session:
    """Return the session, with the cameras that are wanted; with ``lenses`` that of the lenses alone."""
    session = open_session(folder, options.board)
    if lenses and session.lenses:
        session = replace(session, footage=session.lenses, boards=session.lens_boards or session.boards, lenses=())
    names = [footage.name for footage in session.footage]
    for name in options.cameras:
        if name not in names:
            raise InputError(f"unknown camera '{name}'; the session has {', '.join(names)}")
    if options.cameras:
        session = replace(session, footage=tuple(f for f in session.footage if f.name in options.cameras))
    if len(session.footage) == 0:
        raise InputError(f"{session.folder}: no camera left")
    return session


def _with_own_lenses(session: Session, options: CalibrateOptions) -> CalibrateOptions:
    """Fit the lenses from the session's own pictures of them first; what is left is where the cameras stand."""
    output = options.output or session.folder / "results"
    calibrate_lenses(opened_session(session.folder, options, lenses=True), replace(options, output=output))
    world = options.world
    if world == WorldOptions() and session.rest_frame is not None:
        world = WorldOptions(floor_frame=session.rest_frame)
    return replace(options, intrinsics=output / "lenses", world=world)


def _looked_at(session: Session, output: Path, options: CalibrateOptions) -> _Seen:
    """Find the boards in the footage and choose the frames to calibrate from."""
    boards, detections, notes = detect_session(
        session, output, workers=options.workers, step=options.step, trim=options.trim
    )
    notes += refuse_rolling_duplicates(detections)
    sightings, blurred = _table(detections, boards)
    sightings, flat = without_lines(sightings)
    notes += flat
    if options.largest_part:
        sightings, left = _largest_part(sightings)
        notes += left
    graph = co_visibility(sightings)
    require_connected(graph, sightings)
    floor = options.world.floor_frame
    chosen, choice = choose_frames(sightings, options.frames)
    if floor is not None and floor not in chosen.frame:
        if floor not in sightings.frame:
            raise InputError(f"--floor-frame {floor}: no camera saw a board in that frame")
        chosen = sightings.of_frames(np.unique(np.append(chosen.frame, floor)))
    return _Seen(chosen, replace(choice, blurred_views=blurred), graph, notes)


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
