"""Boards that look the same upside down, seen lying in one place only: which way round did each camera number them?

A chessboard with an even sum of rows and columns maps onto itself when turned by 180 degrees. Moved about, the
relative poses of the cameras tell the orders apart; a board that only lay on the floor does not. Then the floor
around it decides: each camera's picture is laid out on the floor plane, and seams, marks and shadows of two cameras
match in one order only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import cv2
import numpy as np

from calibration.boards.sightings import Sightings
from calibration.cameras.projection import project_points
from calibration.foundation.arrays import Bools, Bytes, Floats
from calibration.foundation.errors import SolveError
from calibration.geometry.transforms import RigidTransform
from calibration.solving.planar_pose import half_turn, lens_row, planar_poses

__all__ = ["align_half_turns", "needs_floor"]

REACH = 5.0  # the floor is compared as far as this many board lengths from the board
CELLS = 400  # pixels across the layout
MARGIN = 0.1  # one order must correlate better by this much


def needs_floor(sightings: Sightings) -> bool:
    """Whether the corner orders of different cameras cannot be told from the board's motion."""
    ambiguous = all(board.looks_same_upside_down for board in sightings.boards)
    return ambiguous and len(sightings.cameras) > 1 and len(sightings.targets()) < 3


def align_half_turns(sightings: Sightings, rows: Floats, images: Mapping[int, Bytes]) -> tuple[Sightings, list[str]]:
    """Return the sightings with every camera's corners in the order of the first, and notes.

    ``rows`` (c, 36) are the lenses; ``images`` the picture of each camera in which the board lies on the floor.
    """
    targets = sightings.targets()
    board = sightings.boards[targets.board[0]]
    turn = half_turn(board.points_mm)
    layouts: dict[int, tuple[Floats, Floats]] = {}
    for c in sorted(images):
        mine = (sightings.camera == c) & (targets.of_row == 0)
        poses = planar_poses(rows[c], board.points_mm[sightings.corner[mine]], sightings.pixels[mine])
        if not poses:
            raise SolveError(f"camera '{sightings.cameras[c]}': no pose explains the board on the floor")
        pose = poses[0].camera_from_board
        layouts[c] = (
            _on_floor(rows[c], pose, images[c], board.points_mm),
            _on_floor(rows[c], pose @ turn, images[c], board.points_mm),
        )
    around = _away_from_board(board.points_mm)
    cameras = sorted(layouts)
    flips, notes = {cameras[0]: False}, []
    # follow the most decided pair next, as a spanning tree
    while len(flips) < len(cameras):
        best: tuple[float, int, bool] | None = None
        for a in flips:
            for b in (c for c in cameras if c not in flips):
                first = layouts[a][int(flips[a])]
                straight, turned = (_correlation(first, layouts[b][k], around) for k in (0, 1))
                decided = (abs(straight - turned), b, turned > straight)
                if best is None or decided[0] > best[0]:
                    best = decided
        assert best is not None
        if best[0] < MARGIN:
            lost = ", ".join(f"'{sightings.cameras[c]}'" for c in cameras if c not in flips)
            raise SolveError(
                f"the board looks the same upside down, and the floor does not tell which way round {lost} sees it; "
                "show it in three tilted poses, or use a ChArUco board or a chessboard with an odd sum of rows and "
                "columns"
            )
        flips[best[1]] = best[2]
        notes.append(
            f"camera '{sightings.cameras[best[1]]}': the board looks the same upside down; the floor around it decided "
            f"({'turned' if best[2] else 'as found'}, correlation better by {best[0]:.2f})"
        )
    corner = sightings.corner.copy()
    for c, flip in flips.items():
        if flip:
            corner[sightings.camera == c] = board.corners - 1 - corner[sightings.camera == c]
    return replace(sightings, corner=corner).sorted(), notes


def _grid(points: Floats) -> Floats:
    """Floor points (CELLS, CELLS, 3) around the board, in its frame."""
    centre = (points.min(0) + points.max(0)) / 2
    reach = REACH * float(np.ptp(points, axis=0).max())
    steps = np.linspace(-reach, reach, CELLS)
    x, y = np.meshgrid(steps + centre[0], steps + centre[1])
    return np.stack([x, y, np.zeros_like(x)], -1)


def _on_floor(row: Floats, camera_from_board: RigidTransform, image: Bytes, points: Floats) -> Floats:
    """Return the picture laid out on the floor, its local mean removed; NaN where the camera does not see it."""
    grid = _grid(points)
    pixels = project_points(lens_row(row)[None], np.ascontiguousarray(camera_from_board.apply(grid.reshape(-1, 3))))[0]
    h, w = image.shape
    inside = (pixels > 0).all(1) & (pixels[:, 0] < w - 1) & (pixels[:, 1] < h - 1)
    where = np.where(inside[:, None], pixels, -10.0).astype(np.float32).reshape(CELLS, CELLS, 2)
    flat = cv2.remap(image, where[..., 0], where[..., 1], cv2.INTER_LINEAR, borderValue=0).astype(np.float32)
    mask = inside.reshape(CELLS, CELLS).astype(np.float32)
    size = (CELLS // 10 | 1, CELLS // 10 | 1)
    mean = cv2.blur(flat * mask, size) / np.maximum(cv2.blur(mask, size), 1e-3)
    # a lamp's glare or a wall must not outweigh the faint marks of a floor
    return np.where(mask > 0, np.clip(flat - mean, -30, 30), np.nan).astype(np.float64)


def _away_from_board(points: Floats) -> Bools:
    grid = _grid(points)[..., :2]
    margin = 0.3 * float(np.ptp(points, axis=0).max())
    on = (grid > points.min(0)[:2] - margin).all(-1) & (grid < points.max(0)[:2] + margin).all(-1)
    return np.asarray(~on)


def _correlation(a: Floats, b: Floats, around: Bools) -> float:
    both = np.isfinite(a) & np.isfinite(b) & around
    if both.sum() < 500:
        return 0.0
    x, y = a[both], b[both]
    return float((x * y).sum() / np.sqrt(max((x * x).sum() * (y * y).sum(), 1e-12)))
