"""Clips of a board that lies on the floor (``floor/``): they set the world's axes and calibrate nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibration.boards.board import Board
from calibration.boards.detection import CameraDetections, detect_boards
from calibration.boards.session import Session
from calibration.boards.sightings import Sightings, merge_sightings
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import RigidTransform
from calibration.solving.target_poses import place_targets
from calibration.solving.world_frame import world_from_board
from vivarig.calibration_stage.board_footage import frames_of

__all__ = ["world_from_clips"]

_LOOKED_AT = 60
"""Frames of a clip: the board lies still."""
_STILL = 3.0
"""Pixels: corners that wander farther were not on a board at rest."""
_MOST_OFF = 5.0
"""Pixels: a board that is farther off in some camera lay elsewhere when that camera filmed."""


def world_from_clips(
    session: Session, rig: Rig, boards: tuple[Board, ...], wanted: str | None, workers: int
) -> tuple[RigidTransform, str]:
    """Return world_from_rig by the board on the floor, and how it was found.

    Clips need not be of the same instant: the board is at rest, so each camera's corners are their medians.
    """
    names = [board.name for board in boards]
    if wanted is not None and wanted not in names:
        raise InputError(f"--floor-board {wanted}: the boards are {', '.join(names)}")
    seen = _at_rest(session, rig, boards, workers)
    here = sorted({int(board) for board in seen.board if wanted in (None, names[int(board)])})
    if len(here) != 1:
        said = (
            "no board was found in them" if not here else f"{len(here)} boards lie there; name one with --floor-board"
        )
        raise InputError(f"{session.folder}: floor clips: {said}")
    seen = seen.where(seen.board == here[0])
    rotations, translations, seen = place_targets(rig.packed(), seen)
    if not np.isfinite(rotations[0]).all():
        raise InputError(f"{session.folder}: floor clips: too few corners of the board to tell how it lies")
    pose = RigidTransform(rotations[0], translations[0])
    off = _off(rig, seen, pose)
    worst = max(off, key=lambda name: off[name])
    if off[worst] > _MOST_OFF:
        raise InputError(
            f"{session.folder}: floor clips: the board is {off[worst]:.0f} px off in camera '{worst}'; it lay "
            "elsewhere, or that camera moved; take its clip away"
        )
    words = (
        f"board on the floor in the clips of {', '.join(off)} ({off[worst]:.2f} px RMS at most), its corner the origin"
    )
    return world_from_board(pose), f"{words}, z up"


def _at_rest(session: Session, rig: Rig, boards: tuple[Board, ...], workers: int) -> Sightings:
    """Return the corners of the boards in all clips as one instant."""
    found = {one.name: CameraDetections(one.name, (0, 0), np.empty(0, np.int64), np.empty(0, bool), ()) for one in rig}
    for clip in session.floor:
        if clip.name in found:
            frames = ((number, image) for number, image in frames_of(clip) if number < _LOOKED_AT or clip.video is None)
            found[clip.name] = detect_boards(frames, boards, name=clip.name, workers=workers)
    parts = []
    for name, one in found.items():
        table = one.sightings(boards)
        key = table.board * (int(table.corner.max(initial=0)) + 1) + table.corner
        first, which = np.unique(key, return_index=True, return_inverse=True)[1:]
        pixels = _medians(table.pixels, which, len(first), f"{session.folder}: floor clip of '{name}'")
        still = table.where(np.isin(np.arange(len(table)), first))
        order = np.argsort(first)
        parts.append(replace(still, frame=np.zeros(len(still), np.int64), pixels=pixels[order]).sorted())
    return merge_sightings(parts)


def _medians(pixels: Floats, which: Ints, count: int, who: str) -> Floats:
    """Return where each corner is over time; a corner that wanders was not on a board at rest."""
    middle = np.array([np.median(pixels[which == k], axis=0) for k in range(count)]).reshape(-1, 2)
    spread = np.linalg.norm(pixels - middle[which], axis=1) if count else np.zeros(0)
    if len(spread) and np.percentile(spread, 90) > _STILL:
        raise InputError(f"{who}: the board moves ({np.percentile(spread, 90):.0f} px); film it lying still")
    return middle


def _off(rig: Rig, seen: Sightings, pose: RigidTransform) -> dict[str, float]:
    """Return how far the placed board's corners are from those seen, px RMS, by camera."""
    points, index = seen.model_points()
    places = pose.apply(points[index])
    off = {}
    for number, camera in enumerate(rig):
        mine = seen.camera == number
        if mine.any():
            misses = camera.project(places[mine]) - seen.pixels[mine]
            off[camera.name] = float(np.sqrt((misses**2).sum(axis=1).mean()))
    return off
