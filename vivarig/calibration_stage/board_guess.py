"""A session whose board nobody described: told from its own pictures, given the side of a square."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from calibration.boards.board import save_boards
from calibration.boards.recognition import recognise_charuco
from calibration.boards.session import FLOOR, VIDEOS, Session, open_session
from calibration.foundation.errors import InputError
from calibration.foundation.names import natural_key
from capture.recordings.video import image_files, probe, read_frames, read_image

__all__ = ["described_session"]

_CAMERAS, _PICTURES = 3, 6
"""Cameras, and pictures of each, that the board is looked for in."""


def described_session(folder: Path, boards: Sequence[Path], square_mm: float | None) -> Session:
    """Return the session of a folder's board footage; write its board.toml where ``square_mm`` allows to find it out.

    Args:
        folder: that was surveyed.
        boards: videos and folders of board pictures in it.
        square_mm: side of a square, where the board is a ChArUco board that nothing describes.
    """
    try:
        return open_session(folder)
    except InputError as error:
        if square_mm is None:
            raise InputError(
                f"{error}; or, for a ChArUco board, give the side of a square: vivarig init {folder} --square MM"
            ) from None
    footage = [path for path in boards if FLOOR not in path.relative_to(folder).parts]
    places = sorted({path.parent for path in footage}, key=lambda place: len(place.parts))
    if not places:
        raise InputError(f"{folder}: no board footage but that of the floor")
    pictures = [
        image for path in sorted(footage, key=lambda p: natural_key(p.name))[:_CAMERAS] for image in _some(path)
    ]
    board = recognise_charuco(pictures, square_mm)
    if board is None:
        raise InputError(
            f"{places[0]}: no ChArUco board in {len(pictures)} pictures looked at; describe yours in board.toml"
        )
    save_boards((board,), places[0] / "board.toml")
    return open_session(folder)


def _some(path: Path) -> list[np.ndarray]:
    """Return pictures spread over a video or folder."""
    if path.suffix.lower() in VIDEOS:
        count = probe(path).frames
        numbers = np.unique(np.linspace(0, count - 1, min(_PICTURES, count)).astype(int)).tolist()
        return [image for number in numbers for _, image in read_frames(path, number, number + 1)]
    files = image_files(path) if path.is_dir() else [path]
    return [read_image(files[k]) for k in np.unique(np.linspace(0, len(files) - 1, _PICTURES).astype(int)).tolist()]
