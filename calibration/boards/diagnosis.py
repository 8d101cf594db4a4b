"""Why a board was not found: another size or dictionary, rows and columns exchanged, inverted, a mirrored picture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import cv2
import numpy as np

from calibration.boards.board import Board, marker_dictionary
from calibration.boards.detection import charuco_board, detect_in_image, grey
from calibration.foundation.arrays import Bytes, Floats, Ints

__all__ = ["BoardFinding", "explain_missing"]

LARGEST = 16


@dataclass(frozen=True)
class BoardFinding:
    """What pictures show instead of the board described.

    Attributes:
        board: the board as it seems to be, or None.
        sentence: the difference in words.
        harmless: whether only the print's colours or its numbering habit differ, so that one may go on with ``board``.
    """

    board: Board | None
    sentence: str
    harmless: bool = False


def explain_missing(pictures: Iterable[np.ndarray], board: Board) -> BoardFinding:
    """Say what pictures in which ``board`` was not found show instead."""
    greys = [grey(picture) for picture in pictures]
    turned = replace(board, inverted=not board.inverted)
    for candidate, words in (
        (turned, "with black and white exchanged: its `inverted` is wrong"),
        (replace(board, legacy=not board.legacy), "in the numbering of another OpenCV: its `legacy` is wrong"),
        (replace(turned, legacy=not board.legacy), "inverted and in another OpenCV's numbering"),
    ):
        if board.kind == "chessboard" or (board.kind == "aprilgrid" and candidate.legacy != board.legacy):
            continue
        if _agrees(greys, candidate):
            return BoardFinding(candidate, f"found the board {words}", harmless=True)
    finding = _other_chessboard(greys, board) if board.kind == "chessboard" else _other_markers(greys, board)
    if finding is None and board.dictionary:
        finding = _other_dictionary(greys, board)
    if finding is not None:
        return finding
    return BoardFinding(None, f"no {board.kind} in any of {len(greys)} pictures looked at: check light, focus and size")


def _agrees(greys: list[Bytes], board: Board) -> bool:
    """Whether a layout explains what is seen: corners are found and lie on a flat grid."""
    for picture in greys:
        for view in detect_in_image(picture, (board,)):
            model = board.points_mm[view.corner]
            if len(model) >= 6 and _flat(model[:, :2], view.pixels, 0.1 * _pitch(view.pixels, model)) > 0.8:
                return True
    return False


def _pitch(pixels: Floats, model: Floats) -> float:
    """Return roughly how many pixels one square side takes."""
    near = np.linalg.norm(model - model[0], axis=1)
    step = near[near > 0].min()
    return float(np.median(np.linalg.norm(pixels - pixels[0], axis=1)[near == step]))


def _flat(model: Floats, pixels: Floats, tolerance: float) -> float:
    """Return the share of points that one homography explains."""
    cv2.setRNGSeed(1)
    h, mask = cv2.findHomography(model, pixels, cv2.RANSAC, max(tolerance, 1.0))
    return float(np.mean(mask)) if h is not None else 0.0


def _other_chessboard(greys: list[Bytes], board: Board) -> BoardFinding | None:
    for picture in greys:
        ok, _, meta = cv2.findChessboardCornersSBWithMeta(
            picture, (3, 3), flags=cv2.CALIB_CB_LARGER | cv2.CALIB_CB_NORMALIZE_IMAGE
        )
        if ok:
            rows, columns = np.asarray(meta).shape[:2]
            if {rows, columns} == set(board.grid):
                continue
            seen = f"{columns}x{rows}" if (columns > rows) == (board.columns > board.rows) else f"{rows}x{columns}"
            said = f"{board.grid[0]}x{board.grid[1]}"
            return BoardFinding(None, f"found a chessboard of {seen} inner corners, board.toml says {said}")
    return None


def _markers(picture: Bytes, board: Board) -> tuple[Ints, Floats]:
    corners, ids, _ = cv2.aruco.ArucoDetector(marker_dictionary(board.dictionary)).detectMarkers(picture)
    if ids is None:
        return np.empty(0, np.int64), np.empty((0, 2))
    centres = np.array([np.asarray(c).reshape(4, 2).mean(0) for c in corners])
    return np.asarray(ids).reshape(-1).astype(np.int64), centres


def _other_markers(greys: list[Bytes], board: Board) -> BoardFinding | None:
    """Look for the layout that puts the markers where they are seen."""
    best: tuple[int, Ints, Floats, bool, bool] | None = None
    for picture in greys:
        for inverted in (board.inverted, not board.inverted):
            for mirrored in (False, True):
                seen = np.asarray(255 - picture) if inverted else picture
                ids, centres = _markers(np.asarray(cv2.flip(seen, 1)) if mirrored else seen, board)
                if best is None or len(ids) > best[0]:
                    best = (len(ids), ids, centres, inverted, mirrored)
    if best is None or best[0] < 5:
        return None
    count, ids, centres, inverted, mirrored = best
    numbers = ids - board.first_marker
    capacity = int(marker_dictionary(board.dictionary).bytesList.shape[0])
    found = []
    for columns in range(3, LARGEST):
        for rows in range(3, LARGEST):
            markers = columns * rows if board.kind == "aprilgrid" else columns * rows // 2
            if not numbers.max() < markers <= capacity or numbers.min() < 0:
                continue
            for legacy in (False, True):
                if board.kind == "aprilgrid":
                    if legacy:
                        continue
                    layout = np.stack([numbers % columns, numbers // columns], 1).astype(float)
                else:
                    trial = Board("charuco", columns, rows, 1.0, 0.5, board.dictionary, legacy=legacy)
                    quads = np.asarray(charuco_board(trial).getObjPoints())
                    layout = quads[numbers].reshape(-1, 4, 3).mean(1)[:, :2].astype(float)
                share = _flat(
                    layout, centres, 0.1 * float(np.linalg.norm(np.ptp(centres, axis=0))) / max(columns, rows)
                )
                found.append((share, -abs(markers - numbers.max() - 1), columns, rows, legacy))
    if not found:
        return None
    share, _, columns, rows, legacy = max(found)
    if share < 0.9:
        return None
    likely = replace(board, columns=columns, rows=rows, legacy=legacy, inverted=inverted)
    words = f"found a {columns}x{rows} board, board.toml says {board.columns}x{board.rows}"
    if (columns, rows) == (board.columns, board.rows):
        words = f"found {count} markers of the board but not its corners"
    if mirrored:
        words += ", in a mirrored picture"
    return BoardFinding(likely, words)


def _other_dictionary(greys: list[Bytes], board: Board) -> BoardFinding | None:
    """Look for markers of OpenCV's other dictionaries; the smallest that holds all that are seen is the likely one.

    Dictionaries of one family contain each other (DICT_4X4_50 is the beginning of DICT_4X4_100), and small ones are
    found by chance in texture, so that many different markers are asked for.
    """
    best: tuple[int, int, str] | None = None
    for name in sorted(name for name in dir(cv2.aruco) if name.startswith("DICT_") and name != board.dictionary):
        size = int(marker_dictionary(name).bytesList.shape[0])
        trial = replace(board, kind="chessboard", dictionary=name, columns=4, rows=3)
        seen: set[int] = set()
        for picture in greys:
            seen.update(_markers(picture, trial)[0].tolist())
        if len(seen) >= 5 and (best is None or (len(seen), -size) > best[:2]):
            best = (len(seen), -size, name)
    if best is None:
        return None
    return BoardFinding(
        None, f"found {best[0]} markers of {best[2]} (or a larger one of its kind), not of {board.dictionary}"
    )
