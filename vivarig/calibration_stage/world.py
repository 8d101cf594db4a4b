"""The world's axes of a calibrated session: from a board on the floor, from marked points, or the first camera's."""

from __future__ import annotations

import numpy as np

from calibration.boards.session import Session
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import RigidTransform
from calibration.solving.rig_solver import RigSolution
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
from vivarig.calibration_stage.floor_clips import world_from_clips
from vivarig.calibration_stage.options import WorldOptions

__all__ = ["choose_world"]


def choose_world(
    solution: RigSolution, options: WorldOptions, session: Session | None = None, workers: int = 1
) -> tuple[RigidTransform, str, list[DistanceCheck], list[str]]:
    """Return world_from_rig, how it was chosen, distances checked and what is wrong with it.

    What was said goes first; then clips of the floor that lie in the session's folder.
    """
    distances: list[DistanceCheck] = []
    problems: list[str] = []
    points = None if options.points is None else load_named_points(options.points, solution.rig.names)
    measured = None
    if points is not None:
        measured = points.measured(solution.rig)
        distances, _ = scale_check(points, measured)
    if options.floor_frame is not None and options.axes:
        raise InputError("--floor-frame and --axes both set the world frame; give one")
    if options.floor_frame is not None:
        world = _floor(solution, options.floor_frame, options.floor_board)
        words = f"board on the floor in frame {options.floor_frame}, its corner the origin, z up"
    elif options.axes:
        if points is None or measured is None:
            raise InputError("--axes names marked points; give them with --points FILE")
        names = list(options.axes)
        if len(names) != 3 or any(name not in points.names for name in names):
            marked = ", ".join(points.names)
            raise InputError(f"--axes wants three of the marked points ({marked}), got {','.join(names)}")
        world = world_from_three_points(*(measured[points.names.index(name)] for name in names))
        words = f"origin {names[0]}, x towards {names[1]}, {names[2]} on the y side, z up"
    elif points is not None and measured is not None and np.isfinite(points.world).all(1).sum() >= 3:
        known = np.flatnonzero(np.isfinite(points.world).all(1))
        names = [points.names[i] for i in known]
        world, misfit = world_from_known_points(measured[known], points.world[known], names)
        words = f"known coordinates of {', '.join(names)} ({np.sqrt((misfit**2).mean()):.2f} mm RMS), z up"
    elif session is not None and session.floor:
        boards = solution.sightings.boards
        world, words = world_from_clips(session, solution.rig, boards, options.floor_board, workers)
    else:
        first = solution.rig.names[0]
        return (
            RigidTransform.identity(),
            f"the frame of camera '{first}' (x right, y down, z forward); for z up give --floor-frame, --points or "
            "clips in floor/",
            distances,
            problems,
        )
    bundle = solution.bundle.bundle
    seen = bundle.translations[bundle.target] + np.einsum(
        "nij,nj->ni", bundle.rotations[bundle.target], bundle.points[bundle.point]
    )
    problems += check_world(moved_rig(solution.rig, world), world.apply(seen), list(options.below))
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
